"""What `-D` and `-I` say, for the C files that this process reads (`roofdsl.frontends`)."""

from __future__ import annotations

from roofdsl.lang.record import Record


class Options(Record):
    """`defines`: NAME or NAME=VALUE in the order given; `folders`: where `#include` looks, besides the file's own."""

    defines: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


class _Current:
    options = Options()


def current() -> Options:
    """The options that hold now."""
    return _Current.options


def use(options: Options) -> None:
    """From now on C files are read with these options."""
    _Current.options = options
