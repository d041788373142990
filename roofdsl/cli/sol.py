"""`roofdsl sol`: what no code for a kernel can beat on a machine, and whether a claimed time is possible."""

from __future__ import annotations

from fractions import Fraction

import click

from roofdsl.cli.options import choose_kernels, json_option, kernels_of, machine_option, set_option, show_json
from roofdsl.cli.text import show_blocks
from roofdsl.lang.units import UnitError, parse_time
from roofdsl.machine.find import load_machine


@click.command()
@click.argument("file")
@machine_option
@set_option
@click.option("--measured", metavar="TIME", help="Judge this time, such as 3.96ms: possible or not.")
@json_option
def sol(*, file: str, machine_name: str, settings: dict[str, int], measured: str | None, as_json: bool) -> None:
    """Find the minimum time of any code for the kernels of FILE on a machine: their speed of light.

    The floor is the longest of the times that no order of the operations avoids: the operations themselves, the bytes
    across every boundary of the memory hierarchy, the launch. Exit status 1: a measured time is impossible.
    """
    machine = load_machine(machine_name)
    claimed = None if measured is None else _time(measured)
    chosen = choose_kernels(file, "the floor is that of a kernel")
    from roofdsl.sol.answer import speed_of_light
    from roofdsl.tell.sol import SCHEMA, blocks, document

    found = [speed_of_light(kernel, own, machine, claimed) for kernel, own in kernels_of(chosen, settings)]
    if as_json:
        documents = [document(f) for f in found]
        show_json(documents[0] if len(documents) == 1 else {"schema": SCHEMA, "kernels": documents})
    else:
        show_blocks(*(blocks(f) for f in found))
    if any(f.claim is not None and f.claim.verdict == "impossible" for f in found):
        raise SystemExit(1)


def _time(text: str) -> Fraction:
    """Seconds. Raises click.BadParameter for anything that is not a positive time with its unit."""
    try:
        value = parse_time(text)
    except UnitError as error:
        raise click.BadParameter(str(error), param_hint="--measured") from None
    if value <= 0:
        raise click.BadParameter("a measured time is positive", param_hint="--measured")
    return value
