"""`roofdsl plot KIND`: the kinds of figures (`plot.kinds`), each as a command with its options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from roofdsl.cli.lazy import LazyGroup
from roofdsl.cli.look import ceilings_option, figure_option, look_options
from roofdsl.cli.options import (
    choose_all,
    choose_kernels,
    kernels_of,
    machine_option,
    parse_size_option,
    set_option,
    traffic_option,
    type_option,
    unit_option,
    warn,
)
from roofdsl.cli.subjects import subjects_of
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.find import load_machine
from roofdsl.measure.measurement import load
from roofdsl.plot import kinds
from roofdsl.plot.board import check_name, save_figure
from roofdsl.plot.kind import Asked, Kind, Option
from roofdsl.predict.options import Options
from roofdsl.validate.compare import Comparison
from roofdsl.validate.run import compare_all

Decorate = Callable[[Any], Any]
Given = dict[str, Any]

_MACHINE = "NAME|FILE[:NAME]"


def _results(about: str) -> Decorate:
    return click.option("--results", multiple=True, metavar="RESULT.json", help=about)


SHARED: dict[str, Decorate] = {
    "machine": machine_option,
    "machines": click.option(
        "--machine",
        "machine_names",
        multiple=True,
        required=True,
        metavar=_MACHINE,
        help="The machine whose roofs are drawn (repeatable).",
    ),
    "optional machine": click.option(
        "--machine", "machine_name", metavar=_MACHINE, help="Mark the caches of a machine."
    ),
    "set": set_option,
    "traffic": traffic_option,
    "unit": unit_option,
    "type": type_option(),
    "results": _results("Measured times of the FILEs, from `measure` (repeatable)."),
    "results of energy": _results("Measured energies of the FILEs, from `measure --energy` (repeatable)."),
    "ceilings": ceilings_option,
}


class _Kinds(LazyGroup):
    """The kinds as commands: the file of a kind is read when it is requested, and all of them when they are listed."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command that draws a kind. None if no file has that name."""
        return _command(cmd_name, kinds.kind(cmd_name)) if cmd_name in self.commands_at else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of the kinds."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, kinds.kind(name).line) for name in self.commands_at])


@click.group(cls=_Kinds, commands_at=dict.fromkeys(kinds.names(), ("", "")))
def plot() -> None:
    """Draw a figure."""


def _command(name: str, kind: Kind) -> click.Command:
    def run(*, output: str, **given: Any) -> None:
        check_name(Path(output))
        save_figure(Path(output), kind.figure(_asked(kind, given), **given))

    run.__doc__ = kind.about

    def single(ctx: click.Context, param: click.Parameter, value: Sequence[str]) -> Sequence[str]:
        if kind.files == "FILE" and len(value) > 1:
            raise click.UsageError(f"`plot {name}` draws one kernel; run it once for each", ctx)
        return value

    required = not kind.files.startswith("[")
    files = click.argument("files", nargs=-1, metavar=kind.files, required=required, callback=single)
    command: Any = run
    options = [SHARED[each] if isinstance(each, str) else _option(each) for each in kind.options]
    for decorate in reversed([files, *options[:1], figure_option, *options[1:], look_options(bars=kind.has_bars)]):
        command = decorate(command)
    return click.command(name)(command)


def _option(option: Option) -> Decorate:
    def read(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        """The value that an option reads from its text. Raises click.BadParameter."""
        if option.takes == "size":
            return parse_size_option(ctx, param, value)
        if option.read is None or value is None:
            return value
        try:
            return tuple(map(option.read, value)) if option.many else option.read(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param, option.flag) from None

    more: Given = {"is_flag": True} if option.takes == "nothing" else {"metavar": option.metavar, "callback": read}
    if option.takes == "count":
        more = {"type": click.IntRange(1)}
    if option.many:
        more["multiple"] = True
    return click.option(option.flag, option.name, help=option.about, **more)


def _asked(kind: Kind, given: Given) -> Asked:
    """The request that all kinds share, which is taken out of `given`; the kind's own options stay."""
    machines = [load_machine(name) for name in _machine_names(given)]
    settings, sizes, results = given.pop("settings"), given.pop("at", ()), given.pop("results", ())
    if kind.files == "FILE":
        (file,) = given.pop("files")
        chosen = choose_kernels(file, "the figure shows a kernel")
        return Asked(kernels_of(chosen, settings), machines, warn=warn, **_shared(given))
    each = [(subjects_of(c, at), at) for c, many in choose_all(given.pop("files"), settings, sizes) for at in many]
    subjects = [subject for some, _ in each for subject in some]

    def measured(options: Options) -> Sequence[Comparison]:
        """The stored results compared with cold predictions, even if they are warm: the predictions are the points
        drawn.
        """

        stored = [m for path in results for m in load(Path(path))]
        if results and not subjects:
            raise CommandError(
                "measured results are of kernels and programs, and there is none", "give their FILEs before --results"
            )
        names = list(dict.fromkeys(subject for subject, _ in subjects))
        found: list[Comparison] = []
        for _, at in each if results else ():
            some = compare_all(names, stored, machines[0], sizes=at, options=options, warm=False)
            found += [c for c in some if c not in found]
        return found

    return Asked(subjects, machines, measured=measured, warn=warn, **_shared(given))


def _machine_names(given: Given) -> list[str]:
    if "machine_names" in given:
        return list(given.pop("machine_names"))
    name = given.pop("machine_name", None)
    return [] if name is None else [name]


def _shared(given: Given) -> Given:
    """Options that many kinds share and that are passed on unchanged."""
    return {name: given.pop(name) for name in ("traffic", "unit", "types", "ceilings", "look") if name in given}
