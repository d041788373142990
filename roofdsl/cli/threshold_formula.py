"""`roofdsl threshold --formula`: where two terms of the time are equal, as a formula in the other parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roofdsl.cli.options import Chosen
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.model import Machine
from roofdsl.predict.break_even import BreakEven, break_even
from roofdsl.predict.forms import Terms, kernel_terms, program_terms, summed
from roofdsl.predict.kernel import Options
from roofdsl.tell.blocks import Block
from roofdsl.tell.break_even import blocks as told

Between = tuple[str, str]


OfLaunches = tuple[str, dict[str, int], tuple[Terms, ...]]
"""A kernel or program: its name, the numbers of its parameters as far as there are, and the terms of its launches."""


def formulas(
    asked: Sequence[OfLaunches], between: Between, over: str, machine: Machine
) -> list[tuple[list[Block], dict[str, Any]]]:
    """Of each what is told and its document: from which `over` on the first of `between` takes as long as the other.

    For a program, launch by launch and for all of them together. Raises CommandError for a term that there is not.
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
        head = f"{name} on {machine.name}: {first} takes as long as {second}"
        found.append((told(head, each, total, others, values), document))
    return found


def terms_over(
    chosen: Chosen, settings: Mapping[str, int], over: str, machine: Machine, options: Options
) -> list[OfLaunches]:
    """Every kernel and program chosen. Raises CommandError where a term has no closed form in all parameters."""
    found = []
    for name in (*chosen.kernels, *chosen.programs):
        if name in chosen.programs:
            values, terms = program_terms(chosen.checked, name, machine, settings, options, over=over)
        else:
            values, terms = kernel_terms(chosen.checked, name, machine, settings, options)
        if over not in values:
            raise CommandError(f"{name} has no parameter `{over}` to let grow", f"it has {', '.join(values)}")
        found.append((name, {n: v for n, v in values.items() if v is not None}, terms))
    return found


def _break_even(terms: Terms, between: Between, over: str, values: Mapping[str, int], machine: Machine) -> BreakEven:
    first, second = (terms.seconds(name, machine) for name in between)
    return break_even(between[1], (first, second), over, values, within=terms.within)
