"""Advice: where a kernel stands, which changes help, and which are not legal; and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from roofdsl.advise.advise import NOT_FOUND, Advice, Advised, Lift
from roofdsl.advise.candidate import Refused
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import (
    show_bandwidth,
    show_bytes,
    show_number,
    show_rate,
    show_time,
)
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import ProgramPrediction
from roofdsl.predict.time_model import COMPUTE
from roofdsl.tell.blocks import Block, Gap, Line, Title, figures, items, line
from roofdsl.tell.prediction import NOTHING
from roofdsl.tell.titles import at, on

MOST_ILLEGAL = 3
"""Illegal changes that are shown with their reasons unless all are asked for."""


def blocks(advised: Advised, machine: Machine | None = None, show_all: bool = False) -> list[Block]:
    """The kernel's present state, the changes that help, and those that dependences forbid.

    machine: that of the predictions, for the title.
    """
    now = advised.now.prediction
    title = f"{advised.kernel} on {now.machine if machine is None else on(machine)}"
    found: list[Block] = [Title(title, at(now.parameters)), Gap(), _now(now)]
    keeping = [a for a in advised.advice if not a.precision]
    changing = [a for a in advised.advice if a.precision]
    if keeping:
        found += [Gap(), *_table(advised, keeping)]
    else:
        found += [Gap(), line(f"at this precision, nothing helps: {_why_nothing(advised)}")]
    if changing:
        found += [Gap(), line("with results of lower precision:"), *_table(advised, changing)]
    if any(not a.estimate.exact for a in advised.advice):
        found += [Gap(), line("<= and >=: the exact traffic takes too long to compute; the time is at most this")]
    return [*found, *_refused(advised.refused, show_all)]


def _now(now: Prediction) -> Line:
    if not now.bounds:
        return line(f"now: {NOTHING}")
    rate = show_rate(now.rate_per_s, now.operation) if now.work else show_bandwidth(now.bytes_per_s)
    terms = dict(now.terms)
    levels = {level.name: level for level in now.levels}
    because = []
    for name in now.bounds:
        if name in levels:
            level = levels[name]
            because.append(f"{show_bytes(level.bytes)} at {show_bandwidth(level.bandwidth_bytes_per_s)}")
        elif name == COMPUTE and now.peak_per_s is not None:
            because.append(f"at {show_rate(now.peak_per_s, now.operation)}")
        else:
            because.append(f"{now.launches} x {show_time(terms[name] / now.launches)}")
    return line(f"now: {show_time(now.bound_s)}, {rate}, bound by {now.bound} ({'; '.join(because)})")


def _why_nothing(advised: Advised) -> str:
    now = advised.now.prediction
    if not now.bounds:
        return NOTHING
    level = next((level for level in now.levels if level.name in now.bounds), None)
    if COMPUTE in now.bounds and now.peak_per_s is not None:
        return f"it computes at the peak, {show_rate(now.peak_per_s, now.operation)}"
    if level is not None and advised.compulsory:
        counted = "each datum once" if now.traffic == "once" else "loads and stores together"
        return (
            f"all traffic of {level.name} is compulsory: {show_bytes(level.bytes)}, {counted}, "
            f"at {show_bandwidth(level.bandwidth_bytes_per_s)}"
        )
    unknown = sum(r.why == NOT_FOUND for r in advised.refused)
    if unknown:
        return f"no change with a known time reduces {now.bound}; {unknown} took too long (`--effort`)"
    verb = "bounds" if len(now.bounds) == 1 else "bound"
    return f"{now.bound} {verb} it, and no change known to `advise` reduces that (`sol` searches other orders)"


def _table(advised: Advised, shown: Sequence[Advice]) -> list[Block]:
    rows = []
    notes = []
    for number, one in enumerate(advised.advice, 1):
        if one not in shown:
            continue
        rows.append(
            (
                str(number),
                short(one, advised.advice),
                ("" if one.estimate.exact else "<= ") + show_time(one.estimate.time_s),
                ("" if one.estimate.exact else ">= ") + f"{_gain(one.gain)}x",
                ", ".join(map(_lift, one.lifts)),
                one.estimate.prediction.bound,
            )
        )
        notes.append((str(number), one.because))
    up_to = ", up to rounding" if any(one.rounding for one in shown) else ""
    why = "how the results change:" if shown[0].precision else f"why the results stay the same{up_to}:"
    head = ("", "change", "time", "gain", "lifts", "then bound by")
    return [figures(rows, head, (0, 2, 3)), Gap(), line(why), figures(notes, right=(0,))]


def short(one: Advice, advice: tuple[Advice, ...]) -> str:
    """A change in words; a chain of steps by the numbers of those steps that are in the table."""
    if len(one.steps) == 1:
        return one.what
    numbers = {a.what: str(k) for k, a in enumerate(advice, 1) if len(a.steps) == 1}
    return "together: " + ", then ".join(numbers.get(step.what, step.what) for step in one.steps)


def _gain(gain: Fraction) -> str:
    return show_number(gain, 3)


def _lift(lift: Lift) -> str:
    if lift.before_bytes is not None and lift.after_bytes is not None and lift.before_bytes != lift.after_bytes:
        most = "<= " if lift.at_most else ""
        return f"{lift.name} {show_bytes(lift.before_bytes, 3)} -> {most}{show_bytes(lift.after_bytes, 3)}"
    if lift.before_s == lift.after_s:
        return f"{lift.name} stays"
    return f"{lift.name} {show_time(lift.before_s, 3)} -> {show_time(lift.after_s, 3)}"


def _refused(refused: tuple[Refused, ...], show_all: bool) -> list[Block]:
    found: list[Block] = []
    illegal = [r for r in refused if r.illegal]
    if illegal:
        shown = illegal if show_all else illegal[:MOST_ILLEGAL]
        found += [Gap(), line("not legal:"), items(map(_sentence, shown))]
        if len(shown) < len(illegal):
            found.append(line(f"and {len(illegal) - len(shown)} more (--all)", 2))
    others = [r for r in refused if not r.illegal]
    if show_all and others:
        found += [Gap(), line("tried, without a gain:"), items(map(_sentence, others))]
    return found


def _sentence(refused: Refused) -> str:
    """A refusal in words: its reason alone if that begins with the change, as for dependences."""
    return refused.why if refused.why.startswith(f"`{refused.what}`") else f"{refused.what}: {refused.why}"


def where_time_goes(prediction: ProgramPrediction, machine: Machine, file: str) -> list[Block]:
    """The kernels of a program by their share of the time, with the command that analyzes each."""
    path = file.split(":", maxsplit=1)[0]
    rows = []
    for row in prediction.by_kernel:
        largest = max((p for p in prediction.parts if p.kernel == row.total.kernel), key=lambda p: p.bound_s)
        given = ",".join(f"{n}={v}" for n, v in largest.parameters)
        name = f"{path}:{row.total.kernel}" if Path(path).suffix else row.total.kernel
        command = f"roofdsl advise {name} --machine {machine.name}" + (f" --set {given}" if given else "")
        if row.collectives:
            command = _collective_command(largest, machine)
        share = f"{show_number(100 * row.share, 3)} %"
        rows.append((share, row.total.kernel, f"bound by {row.bounds[0]}", command))
    return [line("where the time goes:"), figures(rows, right=(0,), depth=2)]


def _collective_command(p: Prediction, machine: Machine) -> str:
    """The command that says more about a collective of a program."""
    asked = dict(p.parameters)
    size = f"--bytes {asked['bytes']}B --devices {asked['devices']}"
    return f"roofdsl collective {p.collective} {size} --machine {machine.name} --link {p.links[0].name}"


def to_json(advised: Advised) -> dict[str, Any]:
    """The document `roofdsl.advise/1`."""
    now = advised.now.prediction
    return {
        "schema": "roofdsl.advise/1",
        "kernel": advised.kernel,
        "machine": now.machine,
        "parameters": dict(now.parameters),
        "now": _times(now),
        "advice": [
            {
                "rank": rank,
                "kind": one.kind,
                "change": one.what,
                "steps": [step.what for step in one.steps],
                **_times(one.estimate.prediction),
                "exact": one.estimate.exact,
                "gain": float(one.gain),
                "lifts": [
                    {
                        "name": lift.name,
                        "before_s": float(lift.before_s),
                        "after_s": float(lift.after_s),
                        "before_bytes": lift.before_bytes,
                        "after_bytes": lift.after_bytes,
                        "at_most": lift.at_most,
                    }
                    for lift in one.lifts
                ],
                "because": one.because,
                "changes_rounding": one.rounding,
                "changes_precision": one.precision,
                "text": one.text or None,
            }
            for rank, one in enumerate(advised.advice, 1)
        ],
        "refused": [{"kind": r.kind, "change": r.what, "why": r.why, "illegal": r.illegal} for r in advised.refused],
    }


def _times(p: Prediction) -> dict[str, Any]:
    return {"time_s": float(p.bound_s), "flops_per_s": float(p.rate_per_s), "bound": p.bound}
