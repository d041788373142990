"""The `-D` and `-I` options with which this process reads C files (`roofdsl.frontends`)."""

from __future__ import annotations

from roofdsl.lang.record import Record


class Options(Record):
    """`defines`: NAME or NAME=VALUE in the order given; `folders`: where `#include` looks, besides the file's own."""

    defines: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


class _Current:
    options = Options()


def current() -> Options:
    """The options in force."""
    return _Current.options


def use(options: Options) -> None:
    """Read C files with these options from now on."""
    _Current.options = options
