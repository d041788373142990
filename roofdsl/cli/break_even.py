"""`roofdsl break-even`: from which size or batch on kernels and programs are bound by compute."""

from __future__ import annotations

from collections.abc import Mapping

import click

from roofdsl.cli.break_even_text import answer, break_even_rows
from roofdsl.cli.options import (
    Chosen,
    choose,
    json_option,
    machine_option,
    set_option,
    show_json,
    traffic_option,
    unit_option,
)
from roofdsl.cli.text import bold, columns
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Traffic
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_number
from roofdsl.predict.break_even import BreakEven, break_even
from roofdsl.predict.forms import Terms, kernel_terms, program_terms, summed
from roofdsl.predict.kernel import Options

SCHEMA = "roofdsl.break-even/1"


@click.command("break-even")
@click.argument("file")
@click.option("--over", required=True, metavar="NAME", help="The parameter that grows, as in --over batch.")
@machine_option
@set_option
@unit_option
@traffic_option
@json_option
def command(
    *,
    file: str,
    over: str,
    machine_name: str,
    settings: dict[str, int],
    unit: str | None,
    traffic: Traffic | None,
    as_json: bool,
) -> None:
    """From which value of a parameter on compute takes as long as memory: in closed form, and as a number.

    For a program, launch by launch and for all of them together.
    """
    machine = load_machine(machine_name)
    documents, texts = [], []
    for name, values, terms in _terms(choose(file), settings, over, machine, Options(traffic, unit)):
        found = [(t, _break_even(t, over, values, machine)) for t in terms]
        total = (summed(terms), _break_even(summed(terms), over, values, machine)) if len(terms) > 1 else None
        others = {n: v for n, v in values.items() if n != over}
        documents.append(
            {
                "schema": SCHEMA,
                "kernel": name,
                "machine": machine.name,
                "parameter": over,
                "parameters": others,
                "break_even": [{"launch": t.label, **c.to_json()} for t, c in found],
                "together": None if total is None else total[1].to_json(),
            }
        )
        head = f"{name} on {machine.name}: compute takes as long as {machine.main_memory.name}"
        at = ", ".join(f"{n} = {v}" for n, v in others.items())
        texts.append("\n".join([bold(head) + (f" (at {at})" if at else ""), "", *_lines(found, total, values)]))
    if as_json:
        show_json(documents[0] if len(documents) == 1 else {"schema": SCHEMA, "kernels": documents})
    else:
        click.echo("\n\n".join(texts))


def _terms(
    chosen: Chosen, settings: Mapping[str, int], over: str, machine: Machine, options: Options
) -> list[tuple[str, dict[str, int], tuple[Terms, ...]]]:
    """(name, values of its parameters, terms of its launches) of every kernel and program chosen."""
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


def _break_even(terms: Terms, over: str, values: Mapping[str, int], machine: Machine) -> BreakEven:
    memory = machine.main_memory
    both = (terms.compute_s, terms.memory_bytes * (1 / memory.bandwidth_bytes_per_s))
    return break_even(memory.name, both, over, values, within=terms.within)


Found = tuple[Terms, BreakEven]


def _lines(found: list[Found], total: Found | None, values: Mapping[str, int]) -> list[str]:
    if total is None:
        return [f"  {line}" for line in columns(break_even_rows(found[0][1], values))]
    rows = [(t.label, answer(c, values), _limit(c)) for t, c in found]
    head = [("", "", "all else large")] if any(limit for _, _, limit in rows) else []
    return [f"  {line}" for line in columns([*head, *rows, ("all together", answer(total[1], values), "")])]


def _limit(found: BreakEven) -> str:
    """What the threshold of one launch tends to where there is one."""
    return "" if found.first is None or found.limit is None or found.limit <= 0 else show_number(found.limit)
