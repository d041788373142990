"""What `-D`, `-I` and `--shape` say, for the files of other languages that this process reads (`roofdsl.frontends`)."""

from __future__ import annotations

from roofdsl.lang.record import Record


class Options(Record):
    """`defines`: NAME or NAME=VALUE in the order given; `folders`: where `#include` looks, besides the file's own.

    `shapes`: NAME=SIZES:TYPE of arguments of Python functions.
    """

    defines: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()


class _Current:
    options = Options()


def current() -> Options:
    """The options in force."""
    return _Current.options


def use(options: Options) -> None:
    """Read files with these options from now on."""
    _Current.options = options
