"""Why a command could not be carried out, as a value: the terminal shows its text, a server answers with its parts."""

from __future__ import annotations

import errno
import io
import re
from collections.abc import Sequence
from contextlib import redirect_stderr

import click

from roofdsl import budget
from roofdsl.cli.budget import stopped
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import Record, replace

_NUMBER = re.compile(r"\d[\d_]*(\.\d+)?")
NO_ROOM = (errno.ENOSPC, errno.EIO, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


class Failure(Record):
    """The exit status, one sentence, what to do instead (may be empty), and what stands before them on a terminal."""

    status: int
    message: str
    help: str = ""
    before: str = "error: "


def failure_of(error: Exception) -> Failure:
    """The failure that an exception stands for; any that is not listed here is a bug in roofdsl."""
    if isinstance(error, InputError):
        return Failure(1, str(error), before="")
    if isinstance(error, CommandError):
        return Failure(2, error.message, error.help)
    if isinstance(error, click.ClickException):
        return Failure(2, error.format_message(), _missing(error), before=_usage(error))
    if isinstance(error, OSError) and error.filename is None and error.errno in NO_ROOM:
        return Failure(2, f"the output cannot be written: {error.strerror}")
    if isinstance(error, budget.Spent):
        own = budget.current()
        return out_of_budget(own) if own else Failure(2, "the budget is used up")
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Failure(2, what, "this is a bug in roofdsl; `--debug` shows where it happened")


def with_unit_joined(failure: Failure, args: Sequence[str]) -> Failure:
    """The failure with what to write if a unit is an argument of its own, as in `--cache 32 KiB`."""
    from roofdsl.lang.units import UNITS

    units = UNITS["size"].keys() | UNITS["time"].keys()
    for option, number, unit in zip(("", *args), args, args[1:], strict=False):
        name, equals, value = number.partition("=") if number.startswith("--") else (option, " ", number)
        split = name.startswith("--") and unit in units and _NUMBER.fullmatch(value)
        if split and (f"`{value}`" in failure.message or f"({unit}" in failure.message):
            return replace(failure, help=f"a size or time is one argument: `{name}{equals}{value}{unit}`")
    return failure


def out_of_budget(own: budget.Budget) -> Failure:
    """The failure of a command that was stopped with nothing to show."""
    return Failure(2, *stopped(own))


def _missing(error: click.ClickException) -> str:
    """What to add if the machine is missing; empty for other errors."""
    lacks = isinstance(error, click.MissingParameter) and error.param is not None and "--machine" in error.param.opts
    return "add one, such as `--machine v100`; `roofdsl machines` lists them" if lacks else ""


def _usage(error: click.ClickException) -> str:
    """What click shows before an error's message: how the command is used, where it knows the command."""
    shown = io.StringIO()
    with redirect_stderr(shown):
        error.show()
    return shown.getvalue().rstrip("\n").removesuffix(error.format_message())


def for_people(failure: Failure) -> str:
    """The failure as a terminal shows it."""
    return f"{failure.before}{failure.message}" + (f"\nhelp: {failure.help}" if failure.help else "")
