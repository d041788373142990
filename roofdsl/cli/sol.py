"""`roofdsl sol`: what no code for a kernel can beat on a machine, and whether a claimed time is possible."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import click

from roofdsl.cli.options import (
    Chosen,
    choose,
    json_option,
    kernels_of,
    machine_option,
    set_option,
    settings_of,
    show_json,
)
from roofdsl.cli.text import show_blocks
from roofdsl.lang.units import UnitError, parse_time
from roofdsl.loops.program_at_sizes import program_at
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.reading_options import current

if TYPE_CHECKING:
    from roofdsl.sol.claim import Claim
    from roofdsl.tell.blocks import Block

    Answer = tuple[dict[str, Any], list[Block], Claim | None]


@click.command()
@click.argument("file")
@machine_option
@set_option
@click.option("--measured", metavar="TIME", help="Judge this time, such as 3.96ms: possible or not.")
@json_option
def sol(*, file: str, machine_name: str, settings: dict[str, int], measured: str | None, as_json: bool) -> None:
    """Find the minimum time of any code for the kernels of FILE on a machine: their speed of light.

    The floor is the longest of the times that no order of the operations can avoid: those of the operations themselves,
    of the bytes across each boundary of the memory hierarchy, and of the launch. For a program (FILE:PROGRAM), there
    are two floors: fused into one launch, and as launched. FILE may also be a definition.json of SOL-ExecBench: its
    PyTorch code is read, not run. The exit status is 1 if the time given by --measured is impossible.
    """
    machine = load_machine(machine_name)
    claimed = None if measured is None else _time(measured)
    from roofdsl.tell.sol import SCHEMA

    answers = list(_answers(file, settings, machine, claimed))
    if as_json:
        documents = [document for document, _, _ in answers]
        show_json(documents[0] if len(documents) == 1 else {"schema": SCHEMA, "kernels": documents})
    else:
        show_blocks(*(told for _, told, _ in answers))
    if any(claim is not None and claim.verdict == "impossible" for _, _, claim in answers):
        raise SystemExit(1)


def _answers(file: str, settings: dict[str, int], machine: Machine, claimed: Fraction | None) -> Iterator[Answer]:
    """As JSON, as blocks, and the verdict on the claim, for each kernel or program of FILE."""
    from roofdsl.sol.answer import speed_of_light
    from roofdsl.sol.printed import printed
    from roofdsl.sol.program import program_light
    from roofdsl.tell.sol import blocks, document, program_blocks, program_document

    if file.endswith(".json"):
        from roofdsl.sol.definition import definition_light

        whole = definition_light(file, settings, machine, claimed, fused=current().fused)
        yield program_document(whole), program_blocks(whole), whole.claim
        return
    chosen = choose(file, whole=True)
    if chosen.kernels:
        chosen = Chosen(chosen.checked, chosen.kernels, ())
    own, of_programs = settings_of(chosen, settings)
    for kernel, values in kernels_of(chosen, own):
        found = speed_of_light(kernel, values, machine, claimed)
        text = printed(found, kernel, values, machine)
        yield document(found, text), blocks(found, text), found.claim
    for name in chosen.programs:
        whole = program_light(program_at(chosen.checked, name, of_programs[name]), machine, claimed)
        yield program_document(whole), program_blocks(whole), whole.claim


def _time(text: str) -> Fraction:
    """Seconds. Raises click.BadParameter for anything that is not a positive time with its unit."""
    try:
        value = parse_time(text)
    except UnitError as error:
        raise click.BadParameter(str(error), param_hint="--measured") from None
    if value <= 0:
        raise click.BadParameter("a measured time is positive", param_hint="--measured")
    return value
