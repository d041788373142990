"""`roofdsl suite`: a table of many kernels on one machine."""

from __future__ import annotations

from pathlib import Path

import click

from roofdsl import budget
from roofdsl.cli.options import (
    Chosen,
    choose,
    choose_kernels,
    json_option,
    machine_option,
    set_option,
    show_json,
    traffic_option,
)
from roofdsl.cli.progress import progress_bar
from roofdsl.cli.text import show_blocks, terminal_width
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.loops.load import kernel as load_kernel
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.machine.find import GROUPS, SIZES, find_model, load_machine, shipped, standard_sizes
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.options import Options
from roofdsl.store.atomic import check_writable, write_whole
from roofdsl.suite.rows import Subject, forms, rows
from roofdsl.tell.suite import blocks, forms_to_json, of_forms, to_csv, to_json

LONGEST_S = 24 * 3600.0
"""Processor time for one kernel if there is no limit."""


@click.command("suite")
@click.argument("files", nargs=-1, required=True, metavar="GROUP|FILE...")
@machine_option
@click.option("--size", type=click.Choice(SIZES), help="One of PolyBench's standard sizes, for its kernels.")
@set_option
@traffic_option
@click.option("--symbolic", is_flag=True, help="Print formulas instead of numbers.")
@click.option(
    "--limit",
    type=click.FloatRange(0.1, 3600),
    metavar="SECONDS",
    help="Processor time for each kernel, instead of that of --budget.",
)
@click.option("-o", "--output", metavar="OUT.csv", help="Also write the table as CSV.")
@json_option
def command(
    *,
    files: tuple[str, ...],
    machine_name: str,
    size: str | None,
    settings: dict[str, int],
    traffic: Traffic | None,
    symbolic: bool,
    limit: float | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Compare many kernels on one machine: W, Q at every level, lower bound, intensity, rate and bound.

    GROUP is `polybench`, the kernels of PolyBench, or `kernels`, all other shipped kernels. Each kernel gets the whole
    `--budget`. Cells without a result stay empty; the reasons are listed below the table.
    """
    machine = load_machine(machine_name)
    if output is not None:
        check_writable(Path(output))
        if symbolic:
            raise CommandError("--symbolic writes no CSV", "use --json > OUT.json")
    subjects = [subject for file in files for subject in subjects_of(file, size, settings)]
    unknown = set(settings) - frozenset().union(*(_names(s.kernel) for s in subjects))
    if unknown:
        raise CommandError(f"none of these kernels has a parameter `{min(unknown)}`")
    seconds = limit or _budget_s()
    with progress_bar("suite") as tell:
        if symbolic:
            closed = forms(subjects, machine, traffic, seconds, tell)
        else:
            found = rows(subjects, machine, Options(traffic, code=Code()), seconds, tell)
    if symbolic:
        if as_json:
            show_json(forms_to_json(closed, machine))
        else:
            show_blocks(*map(of_forms, closed))
        return
    if output is not None:
        write_whole(Path(output), to_csv(found, machine))
    if as_json:
        show_json(to_json(found, machine))
    else:
        show_blocks(blocks(found, machine, size, terminal_width()))


def _budget_s() -> float:
    """Processor time that the command's budget allows for each kernel."""
    own = budget.current()
    return min(LONGEST_S, budget.DEFAULT_S if own is None else own.seconds)


def _names(kernel: Kernel | None) -> frozenset[str]:
    if kernel is None:
        return frozenset()
    return frozenset(p.name for p in kernel.parameters) | {name for name, _ in kernel.constants}


def subjects_of(file: str, size: str | None, settings: dict[str, int]) -> list[Subject]:
    """The kernels of a group or file; those of PolyBench at its standard size `size`, if one is given.

    Raises CommandError for a size of other kernels, which have no standard sizes.
    """
    if file in GROUPS:
        files = [choose(str(path), whole=True) for path in shipped(file).values()]
    else:
        files = [choose_kernels(file, "a suite compares kernels")]
    standard = standard_sizes() if size is not None and _is_polybench(file) else {}
    if size is not None and not any(name in standard for chosen in files for name in chosen.kernels):
        raise CommandError(f"the kernels of `{file}` have no standard sizes", "give sizes with --set n=1024")
    return [subject for chosen in files for subject in _of(chosen, standard, size, settings)]


def _is_polybench(file: str) -> bool:
    """Whether FILE is PolyBench or a file of it, however it is named."""
    if file in GROUPS:
        return file == "polybench"
    return Path(find_model(file).path).resolve() in [path.resolve() for path in shipped("polybench").values()]


def _of(
    chosen: Chosen, standard: dict[str, dict[str, dict[str, int]]], size: str | None, settings: dict[str, int]
) -> list[Subject]:
    """The kernels of a file; none if it has only programs."""
    found = []
    for name in chosen.kernels:
        given = (standard[name][size] if size is not None and name in standard else {}) | settings
        try:
            kernel = load_kernel(chosen.checked, name, given)
        except (CommandError, InputError) as error:
            message = error.message if isinstance(error, CommandError) else error.diagnostics[0].message
            found.append(Subject(name, None, {}, message))
            continue
        known = _names(kernel)
        found.append(Subject(name, kernel, {n: v for n, v in given.items() if n in known}))
    return found
