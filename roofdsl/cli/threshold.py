"""`roofdsl threshold`: what bounds kernels and programs as a parameter grows, and at which values that changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import click

from roofdsl.cli.options import (
    Chosen,
    choose,
    json_option,
    kernels_of,
    machine_option,
    set_option,
    show_json,
    traffic_option,
    unit_option,
)
from roofdsl.cli.text import show_blocks
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Traffic
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.predict.break_even import BreakEven, break_even
from roofdsl.predict.options import Options
from roofdsl.predict.threshold import SEARCH_TO, Bounds, Question, kernel_bounds, program_bounds
from roofdsl.predict.time_forms import Terms, kernel_terms, program_terms, summed
from roofdsl.predict.time_model import COMPUTE
from roofdsl.tell.blocks import Block
from roofdsl.tell.break_even import blocks as break_even_blocks
from roofdsl.tell.threshold import blocks, to_json

SCHEMA = "roofdsl.threshold/1"


@click.command()
@click.argument("file")
@machine_option
@click.option("--over", required=True, metavar="NAME", help="The parameter that grows.")
@set_option
@click.option("--between", "terms", metavar="TERM,TERM,...", help="Compare only these terms, as in launch,compute.")
@traffic_option
@unit_option
@click.option(
    "--levels", type=click.Choice(["all", "memory"]), default="all", help="Use all levels, or only the memory."
)
@click.option(
    "--up-to",
    type=click.IntRange(1),
    default=SEARCH_TO,
    show_default=True,
    help="The largest value to search, if a search is needed.",
)
@click.option(
    "--formula",
    is_flag=True,
    help="Give the value as a formula in the other parameters (by default, for compute and memory).",
)
@json_option
def threshold(
    *,
    file: str,
    machine_name: str,
    over: str,
    settings: dict[str, int],
    terms: str | None,
    traffic: Traffic | None,
    unit: str | None,
    levels: Literal["all", "memory"],
    up_to: int,
    formula: bool,
    as_json: bool,
) -> None:
    """Find the values of a parameter at which the bound of FILE's kernels and programs changes.

    The bound is launch overhead, compute, a memory level or, in programs with collectives, a link. On machines without
    caches, the result is exact for all values. On others, values up to --up-to are searched, which may miss a bound
    that holds only between two powers of two. --formula gives the value from which one term takes as long as another,
    as a formula and as a number.
    """
    machine = load_machine(machine_name)
    chosen = choose(file)
    names = tuple(t.strip() for t in terms.split(",")) if terms else ()
    if len(names) == 1:
        raise click.BadParameter("give two terms or more, as in launch,compute", param_hint="--between")
    if formula:
        if len(names) > 2:
            raise click.BadParameter("a formula compares two terms, as in compute,launch", param_hint="--between")
        first, second = names or (COMPUTE, machine.main_memory.name)
        asked = terms_over(chosen, settings, over, machine, Options(traffic, unit))
        _show(formulas(asked, (first, second), over, machine), as_json)
        return
    question = Question(over, Options(traffic, unit, levels=levels), names, up_to)
    settings.pop(over, None)
    found: list[tuple[dict[str, int], Bounds, tuple[Bounds, ...]]] = []
    for kernel, own in kernels_of(chosen, settings):
        defaults = {p.name: p.default for p in kernel.parameters if p.default is not None and p.name != over}
        found.append((dict(kernel.constants) | defaults | own, kernel_bounds(kernel, own, machine, question), ()))
    for name in chosen.programs:
        whole, parts = program_bounds(chosen.checked, name, settings, machine, question)
        found.append((settings, whole, parts))
    _show([(blocks(machine, over, *each), to_json(machine, over, *each)) for each in found], as_json)


def _show(found: list[tuple[list[Block], dict[str, Any]]], as_json: bool) -> None:
    """Print the text, or the documents with `as_json`."""
    documents = [{"schema": SCHEMA, **document} for _, document in found]
    if as_json:
        show_json(documents[0] if len(documents) == 1 else {"schema": SCHEMA, "kernels": documents})
    else:
        show_blocks(*(told for told, _ in found))


Between = tuple[str, str]


OfLaunches = tuple[str, dict[str, int], tuple[Terms, ...]]
"""A kernel or program: its name, the known numbers of its parameters, and the terms of its launches."""


def formulas(
    asked: Sequence[OfLaunches], between: Between, over: str, machine: Machine
) -> list[tuple[list[Block], dict[str, Any]]]:
    """The text and the document for each: the values of `over` from which the first term of `between` takes at least as
    long as the second.

    For a program, launch by launch and for all of them together. Raises CommandError for an unknown term.
    """
    found = []
    first, second = between
    for name, values, terms in asked:
        each = [(t, _break_even(t, between, over, values, machine)) for t in terms]
        whole = summed(terms)
        total = (whole, _break_even(whole, between, over, values, machine)) if len(terms) > 1 else None
        others = {n: v for n, v in values.items() if n != over}
        document = {
            "kernel": name,
            "machine": machine.name,
            "over": over,
            "between": list(between),
            "parameters": others,
            "formulas": [{"launch": t.label, **c.to_json()} for t, c in each],
            "together": None if total is None else total[1].to_json(),
        }
        head = f"{name} on {machine.name}: {first} takes at least as long as {second}"
        found.append((break_even_blocks(head, each, total, others, values), document))
    return found


def terms_over(
    chosen: Chosen, settings: Mapping[str, int], over: str, machine: Machine, options: Options
) -> list[OfLaunches]:
    """The terms of every selected kernel and program. Raises CommandError if a term has no closed form in all
    parameters, and if `over` is none of them.
    """
    found = []
    for name in (*chosen.kernels, *chosen.programs):
        if name in chosen.programs:
            values, terms = program_terms(chosen.checked, name, machine, settings, options, over=over)
        else:
            values, terms = kernel_terms(chosen.checked, name, machine, settings, options)
        if over not in values:
            raise CommandError(f"{name} has no parameter `{over}` to vary", f"it has {', '.join(values)}")
        found.append((name, {n: v for n, v in values.items() if v is not None}, terms))
    return found


def _break_even(terms: Terms, between: Between, over: str, values: Mapping[str, int], machine: Machine) -> BreakEven:
    first, second = (terms.seconds(name, machine) for name in between)
    return break_even(between[1], (first, second), over, values, within=terms.within)
