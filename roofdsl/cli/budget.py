"""`--budget`: reads the option, and reports what a command left out."""

from __future__ import annotations

import re
from math import inf

import click

from roofdsl import budget
from roofdsl.lang.units import UnitError, parse_size

_TIME = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?(ms|s|min|h)")
_NUMBER = re.compile(r"\d*\.?\d+(?:[eE][-+]?\d+)?")
MEASURING = frozenset({"measure", "validate"})
"""Commands with their own `--budget SECONDS`, which applies to one measurement and not to the analyses."""
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}

SHOWN = 4
"""The number of omitted items that are listed by name."""


def take_budget(args: list[str]) -> tuple[list[str], float, int]:
    """The arguments without `--budget`, which may be anywhere among them, and its seconds and bytes.

    If the command before it has a `--budget SECONDS` for one measurement, a number without a unit is that option and
    stays. Raises click.UsageError.
    """
    rest, text, command = list[str](), "", ""
    waiting = iter(args)
    for arg in waiting:
        if arg == "--":
            rest += [arg, *waiting]
        elif arg == "--budget" or arg.startswith("--budget="):
            value = arg.partition("=")[2] if "=" in arg else next(waiting, "")
            if not value:
                raise click.UsageError("`--budget` takes a time, as in `--budget 2min`")
            if command in MEASURING and _NUMBER.fullmatch(value):
                rest += ["--budget", value]
            else:
                text = value
        else:
            rest.append(arg)
            command = command or ("" if arg.startswith("-") else arg)
    return rest, *parse_budget(text)


def parse_budget(text: str) -> tuple[float, int]:
    """The seconds and bytes of `2min`, `1h,16GiB` or `none` (no limit); the defaults for an empty text.

    Raises click.UsageError.
    """
    if text in {"", "none"}:
        return (inf, 1 << 62) if text else (budget.DEFAULT_S, budget.DEFAULT_BYTES)
    time, comma, size = (s.strip() for s in text.partition(","))
    match = _TIME.fullmatch(time)
    if match is None or not float(match[1]):
        raise click.UsageError(f"`--budget {text[:40]}` is not a time; write `--budget 2min`, or `--budget 2min,16GiB`")
    try:
        memory = parse_size(size) if comma else budget.DEFAULT_BYTES
    except UnitError as error:
        raise click.UsageError(f"`--budget {text[:40]}`: {error}") from None
    return float(match[1]) * _SECONDS[match[2]], memory


def summary(own: budget.Budget) -> str:
    """The message that says what was left out, and how to get it."""
    names = list(own.left_out)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    listed = ", ".join(names[:SHOWN]) + more
    return f"{listed}: left out to stay within {budget.shown(own)}; `--budget {budget.longer(own)}` searches longer"


def stopped(own: budget.Budget) -> tuple[str, str]:
    """The message that a command was stopped with nothing to show, and what helps."""
    return f"nothing was found within {budget.shown(own)}", f"`--budget {budget.longer(own)}` searches longer"
