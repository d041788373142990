"""Where the bound of a kernel or program changes as a parameter grows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roofdsl.formulas.quotients import Quotient
from roofdsl.formulas.writing import form_text, neat_text
from roofdsl.machine.model import Machine
from roofdsl.predict.threshold import Bounds
from roofdsl.predict.time_model import LAUNCH
from roofdsl.tell.blocks import Block, Gap, Title, figures, items, line
from roofdsl.tell.titles import at, on

LONGEST_FORM = 48
"""The most characters of a closed form, or of a launch's name, in the table."""


def blocks(
    machine: Machine, over: str, parameters: dict[str, int], whole: Bounds, parts: Sequence[Bounds]
) -> list[Block]:
    """The bounds of a kernel, or of a program and its launches, over the values of `over`."""
    found: list[Block] = [Title(f"{whole.kernel} on {on(machine)}, over {over}", at(parameters.items())), Gap()]
    if len(parts) > 1:
        rows = [*(_row(b) for b in parts), _row(whole, "all together")]
        found += [figures(rows, ("", "launches", "bound", "W", "Q"), (1,))]
        if last := _left(parts, over):
            found += [Gap(), items(last, 1)]
    else:
        _, _, bound, work, moved = _row(whole)
        found += [figures([["bound", bound], *([["W", work], ["Q", moved]] if work else [])])]
    if whole.searched_to is not None:
        found += [Gap(), line(f"found by a search up to {over} = {whole.searched_to:,}, because {whole.why}")]
        found += [line("a bound that holds only between two powers of two may be missing")]
    return found


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

    if form is None:
        return ""
    shown = "case by case" if form.single is None else f"{neat_text(Quotient(form.single))} {unit}"
    return shown if len(shown) <= LONGEST_FORM else "long: in --json"


def _left(parts: Sequence[Bounds], over: str) -> list[str]:
    """Where the overhead stops limiting launches: the first and last of them, and those that it limits to the end."""
    firsts = [(b.first_without(LAUNCH), _label(b)) for b in parts if any(LAUNCH in i.names for i in b.intervals)]
    left = [(first, label) for first, label in firsts if first is not None]
    lines = []
    if left:
        first, label = min(left)
        lines.append(f"first to leave the launch bound: {label} at {over} = {first:,}")
        last, label = max(left)
        lines.append(f"last to leave the launch bound:  {label} at {over} = {last:,}")
    never = [label for first, label in firsts if first is None]
    return [*lines, *([f"still launch-bound at the end:   {', '.join(never)}"] if never else [])]


def to_json(
    machine: Machine, over: str, parameters: dict[str, int], whole: Bounds, parts: Sequence[Bounds]
) -> dict[str, Any]:
    """The document `roofdsl.threshold/1` of a kernel or program, without its schema."""
    document: dict[str, Any] = {"machine": machine.name, "over": over, "parameters": parameters}
    document |= _bounds_json(whole)
    return document | ({"by_launch": [_bounds_json(b) for b in parts]} if parts else {})


def _bounds_json(b: Bounds) -> dict[str, Any]:
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
