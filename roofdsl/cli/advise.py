"""`roofdsl advise`: changes of a kernel, ranked by how much time they are predicted to save."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import click

from roofdsl.advise.advise import EFFORT_S, Advised, advise
from roofdsl.advise.memory_lower_bound import least_memory_s
from roofdsl.advise.program import advise_program
from roofdsl.cli.fused import fused_sentence
from roofdsl.cli.look import look_options
from roofdsl.cli.options import (
    Chosen,
    choose,
    json_option,
    kernels_of,
    machine_option,
    set_option,
    show_json,
    traffic_option,
    warn,
)
from roofdsl.cli.progress import progress_bar
from roofdsl.cli.text import show_blocks
from roofdsl.lang.checked import CheckedKernel
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.plot.advised import Change, Floor, draw_advice
from roofdsl.plot.board import check_format, save_figure
from roofdsl.plot.look import Look
from roofdsl.predict.options import Options
from roofdsl.predict.program import ProgramPrediction
from roofdsl.tell.advice import blocks, short, to_json, where_time_goes
from roofdsl.tell.blocks import Block, Gap, line


@click.command("advise")
@click.argument("file")
@machine_option
@set_option
@traffic_option
@click.option(
    "--unit",
    type=click.Choice(["tensor", "tensor_sparse"]),
    help="Assume that contractions already run on matrix units.",
)
@click.option(
    "--ceiling",
    "ceilings",
    multiple=True,
    metavar="NAME",
    help="A named ceiling that limits the code now (repeatable).",
)
@click.option("--keep-rounding", is_flag=True, help="Suggest only changes that do not affect rounding.")
@click.option("--all", "show_all", is_flag=True, help="Also show illegal changes, and those that gain less than 1 %.")
@click.option(
    "--apply", "apply_number", type=click.IntRange(1), metavar="N", help="Print the kernel with change number N."
)
@click.option("--plot", metavar="OUT.svg|png|pdf", help="Draw the times as bars, colored by bound.")
@look_options("plot", bars=True)
@click.option(
    "--effort",
    type=click.FloatRange(0.1, 600),
    default=EFFORT_S,
    show_default=True,
    metavar="SECONDS",
    help="Processor time for the exact evaluation of one change.",
)
@json_option
def command(
    *,
    file: str,
    machine_name: str,
    settings: dict[str, int],
    traffic: Traffic | None,
    unit: str | None,
    ceilings: tuple[str, ...],
    keep_rounding: bool,
    show_all: bool,
    apply_number: int | None,
    plot: str | None,
    look: Look,
    effort: float,
    as_json: bool,
) -> None:
    """Rank changes to FILE's kernels and programs by their predicted gain on a machine.

    The changes are tiles, loop orders, register blocks, threads, narrower types, matrix units, stores that bypass the
    caches, reciprocals, layouts, and fewer launches. Each change is proven legal from the dependences.
    """
    machine = load_machine(machine_name)
    chosen = choose(file)
    options = Options(traffic, unit, ceilings)
    if apply_number is not None:
        _require_one(chosen, file, "--apply")
    if plot is not None:
        _require_one(chosen, file, "--plot")
        check_format(Path(plot))
    how = partial(advise, machine=machine, options=options, keep_rounding=keep_rounding, effort_s=effort)
    kernels = kernels_of(chosen, settings)
    found = [_with_bar(how, chosen.checked.kernels[k.name], k, own) for k, own in kernels]
    programs = [
        advise_program(chosen.checked, name, settings, machine, options, keep_rounding=keep_rounding)
        for name in chosen.programs
    ]
    everything = [*found, *(advised for advised, _ in programs)]
    if plot is not None:
        _plot(Path(plot), everything[0], machine, kernels[0][0] if kernels else None, look)
    if apply_number is not None:
        click.echo(_changed(everything[0], apply_number), nl=False)
    elif as_json:
        documents = [to_json(a) for a in everything]
        show_json(documents[0] if len(documents) == 1 else {"schema": "roofdsl.advise/1", "kernels": documents})
    else:
        told = _told(found, programs, machine, show_all, file)
        for own, advised in zip(told, found, strict=False):  # programs follow
            if sentence := fused_sentence(file, advised.now.prediction, machine, options):
                own += [Gap(), line(sentence)]
        show_blocks(*told)
    warn(*(w for a in everything for w in a.now.prediction.warnings))


def _require_one(chosen: Chosen, file: str, option: str) -> None:
    names = (*chosen.kernels, *chosen.programs)
    if len(names) != 1:
        raise CommandError(f"{option} needs one kernel", f"pick one, such as {file}:{names[0]}")


def _with_bar(
    how: Callable[..., Advised], given: CheckedKernel, kernel: Kernel, parameters: Mapping[str, int]
) -> Advised:
    with progress_bar(f"advise {kernel.name}") as tell:
        return how(given, kernel, parameters, progress=tell)


def _told(
    found: list[Advised],
    programs: list[tuple[Advised, ProgramPrediction]],
    machine: Machine,
    show_all: bool,
    file: str,
) -> list[list[Block]]:
    told = [blocks(a, machine, show_all) for a in found]
    for advised, prediction in programs:
        told.append([*blocks(advised, machine, show_all), Gap(), *where_time_goes(prediction, machine, file)])
    return told


_NOTHING_HELPS = "no change helps this kernel; run without --apply to see why"


def _changed(advised: Advised, number: int) -> str:
    if number > len(advised.advice):
        count = len(advised.advice)
        have = f"the changes are numbered 1 to {count}; run without --apply to see them" if count else _NOTHING_HELPS
        raise CommandError(f"there is no change number {number} for {advised.kernel}", have)
    text = advised.advice[number - 1].text
    if not text:
        what = advised.advice[number - 1].what
        raise CommandError(f"change {number} ({what}) does not change the text of {advised.kernel}")
    return text


def _plot(path: Path, advised: Advised, machine: Machine, kernel: Kernel | None, look: Look) -> None:
    """Bars for the kernel as it is and for each change by rank; lines for the time of arithmetic and of the fewest
    loads.

    kernel: None for a program, whose fewest loads are not known. Raises what drawing and writing raise.
    """
    now = advised.now.prediction
    at = ", ".join(f"{n} = {v:,}" for n, v in now.parameters)
    title = f"{advised.kernel} on {machine.name}" + (f", {at}" if at else "")
    changes = [Change("as it is", float(now.bound_s), now.bound)]
    for number, one in enumerate(advised.advice, 1):
        label = f"{number}  {short(one, advised.advice)}"
        changes.append(Change(label, float(one.estimate.time_s), one.estimate.prediction.bound, not one.estimate.exact))
    save_figure(path, draw_advice(changes, _floors(advised, machine, kernel), title, look=look))


def _floors(advised: Advised, machine: Machine, kernel: Kernel | None) -> list[Floor]:
    now = advised.now.prediction
    found = []
    if now.compute_s:
        kind = f", {now.type}" if now.type else ""
        found.append(Floor(f"arithmetic at its peak{kind}", float(now.compute_s)))
    values: Mapping[str, int] = dict(now.parameters)
    least = least_memory_s(kernel, values, machine) if kernel is not None else None
    if least:
        found.append(
            Floor(f"fewest loads of any order from {machine.main_memory.name}, with the present types", float(least))
        )
    return found
