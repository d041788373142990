"""What `--set n=4096,b=32` and `--at` say: sizes by name, each once."""

from __future__ import annotations

from collections.abc import Sequence

import click

from roofdsl.lang.units import UnitError, parse_count

LARGEST_PARAMETER = 2**62


def settings_of_options(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> dict[str, int]:
    """The values of all `--set` options together. Raises click.BadParameter."""
    found: dict[str, int] = {}
    for text in value:
        for name, number in parse_settings(text, ctx, param).items():
            _put(found, name, number, ctx, param)
    return found


def _put(
    found: dict[str, int], name: str, number: int, ctx: click.Context | None, param: click.Parameter | None
) -> None:
    """found[name] = number. Raises click.BadParameter if it has another value already, and says what takes several.

    ctx: that of `--set`, None for `--at`.
    """
    before = found.setdefault(name, number)
    if before != number:
        several = f"`sweep` takes several values, as `--set {name}={before},{number}`"
        if ctx is None or any("--at" in p.opts for p in ctx.command.params):
            several = f"`--at {name}={before} --at {name}={number}` takes both"
        raise click.BadParameter(f"`{name}` is given twice, as {before} and {number}; {several}", ctx, param)


def parse_settings(text: str, ctx: click.Context | None = None, param: click.Parameter | None = None) -> dict[str, int]:
    """`n=4096,b=32` as a dict of positive integers. Raises click.BadParameter (exit status 2)."""
    found: dict[str, int] = {}
    for part in text.split(","):
        name, equals, number = (s.strip() for s in part.partition("="))
        if not equals or not name.isidentifier():
            help = "; group digits as in 1_000_000, without commas" if found and name.isdigit() else ""
            raise click.BadParameter(f"`{part.strip()}` is not of the form n=4096{help}", ctx, param)
        try:
            value = parse_count(number)
        except UnitError as error:
            message = f"`{number[:40]}` for `{name}` is not an integer; {error.help}"
            raise click.BadParameter(message, ctx, param) from None
        if not 0 < value <= LARGEST_PARAMETER:
            what = "at most 2**62" if value > 0 else "a positive integer"
            raise click.BadParameter(f"`{name}` must be {what}, not {number[:40]}", ctx, param)
        _put(found, name, value, ctx, param)
    return found
