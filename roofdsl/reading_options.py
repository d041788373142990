"""What `-D`, `-I`, `--value`, `--shape` and `--fused` state about files in other languages that this process reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from roofdsl.lang.record import Record


class Options(Record):
    """`defines`: NAME or NAME=VALUE in the order given; `folders`: where `#include` looks, besides the file's own.

    `shapes`: NAME=SIZES:TYPE of arguments of Python functions; `values`: the numbers of arguments of C functions;
    `fused`: whether the loops of Python functions are fused.
    """

    defines: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    values: tuple[tuple[str, str], ...] = ()
    fused: bool = False


class _Current:
    options = Options()


def current() -> Options:
    """The options in force."""
    return _Current.options


def use(options: Options) -> None:
    """Read files with these options from now on."""
    _Current.options = options


@contextmanager
def for_one_command() -> Iterator[None]:
    """After the work in here, the options from before are in force again: a program may run several commands."""
    before = current()
    try:
        yield
    finally:
        use(before)
