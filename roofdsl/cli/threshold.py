"""`roofdsl threshold`: what bounds kernels and programs as a parameter grows, and from which value on."""

from __future__ import annotations

from typing import Any, Literal

import click

from roofdsl.cli.options import (
    choose,
    json_option,
    kernels_of,
    machine_option,
    set_option,
    show_json,
    traffic_option,
    unit_option,
)
from roofdsl.cli.text import bold, columns
from roofdsl.loops.model import Traffic
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.predict.kernel import Options
from roofdsl.predict.threshold import SEARCH_TO, Bounds, Question, kernel_bounds, program_bounds

SCHEMA = "roofdsl.threshold/1"
LONGEST_FORM = 48
"""Characters of a closed form or of a launch in the table, at most."""


@click.command()
@click.argument("file")
@machine_option
@click.option("--over", required=True, metavar="NAME", help="The parameter that grows.")
@set_option
@click.option("--between", "terms", metavar="TERM,TERM", help="Compare these terms only, as in launch,compute.")
@traffic_option
@unit_option
@click.option("--levels", type=click.Choice(["all", "memory"]), default="all", help="All levels, or the memory alone.")
@click.option(
    "--up-to",
    type=click.IntRange(1),
    default=SEARCH_TO,
    show_default=True,
    help="Where a search ends, if one is needed.",
)
@click.option("--formula", is_flag=True, help="The size as a formula in the other parameters (of compute and memory).")
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
    """Find from which value of a parameter on launches, a memory level or compute bound kernels and programs.

    Exact for all values on machines without caches; elsewhere predictions are searched. With --formula: the value from
    which on one term takes as long as another, in closed form and as a number.
    """
    machine = load_machine(machine_name)
    chosen = choose(file)
    names = tuple(t.strip() for t in terms.split(",")) if terms else ()
    if len(names) == 1:
        raise click.BadParameter("give two terms or more, as in launch,compute", param_hint="--between")
    if formula:
        from roofdsl.cli.threshold_formula import formulas, terms_over

        if len(names) > 2:
            raise click.BadParameter("a formula is of two terms, as in compute,launch", param_hint="--between")
        first, second = names or ("compute", machine.main_memory.name)
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
    _show([(_text(machine, over, *each), _json(machine, over, *each)) for each in found], as_json)


def _show(found: list[tuple[str, dict[str, Any]]], as_json: bool) -> None:
    """Texts, or their documents."""
    documents = [{"schema": SCHEMA, **document} for _, document in found]
    if as_json:
        show_json(documents[0] if len(documents) == 1 else {"schema": SCHEMA, "kernels": documents})
    else:
        click.echo("\n\n".join(text for text, _ in found))


def _text(machine: Machine, over: str, sizes: dict[str, int], whole: Bounds, parts: tuple[Bounds, ...]) -> str:
    at = "".join(f", {n} = {v}" for n, v in sizes.items())
    title = f" ({machine.title})" if machine.title else ""
    lines = [bold(f"{whole.kernel} on {machine.name}{title}, over {over}") + at, ""]
    if len(parts) > 1:
        rows = [["", "launches", "bound", "W", "Q"], *(_row(b) for b in parts), _row(whole, "all together")]
        lines += [f"  {line}" for line in columns(rows, right=(1,))]
        if last := _left(parts, over):
            lines += ["", *(f"  {line}" for line in last)]
    else:
        _, _, bound, work, moved = _row(whole)
        rows = [["bound", bound], *([["W", work], ["Q", moved]] if work else [])]
        lines += [f"  {line}" for line in columns(rows)]
    if whole.searched_to is not None:
        lines += ["", f"  searched up to {over} = {whole.searched_to:,}, not derived: {whole.why}"]
    return "\n".join(lines)


def _row(b: Bounds, name: str = "") -> list[str]:
    bounds = "; ".join(_interval(b, k) for k in range(len(b.intervals)))
    return [name or _label(b), b.launches, bounds, _form(b.work, "FLOP"), _form(b.bytes, "B")]


def _label(b: Bounds) -> str:
    return b.label if len(b.label) <= LONGEST_FORM else f"{b.kernel}(...)"


def _interval(b: Bounds, k: int) -> str:
    """`launch to 12`, `HBM 13 to 99`, `compute from 100`."""
    i = b.intervals[k]
    names = " or ".join(i.names)
    is_last = k == len(b.intervals) - 1
    if i.last is None or (b.searched_to is not None and is_last):
        everywhere = "always" if b.searched_to is None else "as far as searched"
        return f"{names} from {i.first:,}" if k or i.first > 1 else f"{names} {everywhere}"
    if i.first == i.last:
        return f"{names} at {i.first:,}"
    return f"{names} {f'{i.first:,} ' if k or i.first > 1 else ''}to {i.last:,}"


def _form(form: Any, unit: str) -> str:
    from roofdsl.formulas.quotients import Quotient
    from roofdsl.formulas.writing import neat_text

    if form is None:
        return ""
    shown = "case by case" if form.single is None else f"{neat_text(Quotient(form.single))} {unit}"
    return shown if len(shown) <= LONGEST_FORM else "long: in --json"


def _left(parts: tuple[Bounds, ...], over: str) -> list[str]:
    """When the launches stop being bound by their overhead, the first and the last of them."""
    firsts = [(b.first_without("launch"), _label(b)) for b in parts if any("launch" in i.names for i in b.intervals)]
    left = [(first, label) for first, label in firsts if first is not None]
    lines = []
    if left:
        first, label = min(left)
        lines.append(f"first to leave the launch bound: {label} at {over} = {first:,}")
        last, label = max(left)
        lines.append(f"last to leave it:                {label} at {over} = {last:,}")
    never = [label for first, label in firsts if first is None]
    return [*lines, *([f"in it at the largest:            {', '.join(never)}"] if never else [])]


def _json(
    machine: Machine, over: str, sizes: dict[str, int], whole: Bounds, parts: tuple[Bounds, ...]
) -> dict[str, Any]:
    document: dict[str, Any] = {"machine": machine.name, "over": over, "parameters": sizes}
    document |= _bounds_json(whole)
    return document | ({"by_launch": [_bounds_json(b) for b in parts]} if parts else {})


def _bounds_json(b: Bounds) -> dict[str, Any]:
    from roofdsl.formulas.writing import form_text

    def expression(form: Any) -> dict[str, Any]:
        return {"expr": None if form is None else form_text(form), "value": None}

    return {
        "kernel": b.kernel,
        "label": b.label,
        "launches": b.launches,
        "work": expression(b.work),
        "bytes": expression(b.bytes),
        "bounds": [{"from": i.first, "to": i.last, "names": list(i.names)} for i in b.intervals],
        "exact": b.searched_to is None,
        "searched_to": b.searched_to,
        "note": b.why,
    }
