"""The speed of light of a kernel or program on a machine, in words and as JSON (`roofdsl.sol/1`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil
from typing import Any

from roofdsl.counts.traffic_at import LONGEST_SIMULATION
from roofdsl.machine.quantities import show_bytes, show_number, show_percent, show_time
from roofdsl.predict.prediction import Prediction
from roofdsl.sol.answer import SpeedOfLight
from roofdsl.sol.claim import Claim
from roofdsl.sol.floor import Floor, FloorTerm
from roofdsl.sol.printed import Printed
from roofdsl.sol.program import ProgramLight
from roofdsl.sol.schedule import Schedule
from roofdsl.tell.blocks import Block, Gap, Title, figures, line
from roofdsl.tell.prediction import NOTHING

SCHEMA = "roofdsl.sol/1"


SLOWLY = " (`predict` counts all bytes, which may take too long at these sizes.)"
"""For a time that is certain, or bounded, without all bytes."""

LONGEST_FORMULA = 70
"""Columns of a term's formula in the table; a mix of operations in several types may take several hundred."""

ARGUMENTS = {
    "compulsory": "every input is loaded once and every result stored once",
    "partition": "the capacity in front of the boundary limits the operations per load",
    "stencil": "a time step needs more points than it computes",
    "bottleneck": "values that are live at one moment do not fit, and are loaded again",
    "sweep": "what one sweep over the data leaves waits for the next",
    "operations": "the operations at the machine's rates",
    "launches": "the launch itself",
}

WHY_LONGER = {
    "lines": "since `tile` keeps no sums in registers, so each update loads and stores its result",
    "registers": "since each thread loads for itself what, in the best order, serves a whole warp",
    "sweeps": "since loops that depend on each other are many launches; in the best order, threads wait for each other",
}
"""Why a text takes longer than the best order, by its kind: what the language cannot say."""


def blocks(found: SpeedOfLight, text: Printed | None = None) -> list[Block]:
    """The floor term by term, the kernel as written, the best order and its `text`, and the verdict on a claim."""
    floor = found.floor
    least = f"No code with these operations takes less than {show_time(floor.time_s)}"
    parts = [
        *_head(floor),
        line(f"{least}, {_limited_by(floor)}." if floor.time_s else f"{NOTHING.capitalize()}.", 0),
        *_terms(floor),
        figures(list(_times(found, text)), ("", "time", "over the floor", ""), right=(1, 2)),
    ]
    if found.as_written is not None and found.why_not:
        parts += [Gap(), line(f"note: {_known(found)} ({found.why_not})", 0)]
    if text is not None:
        parts += _printed(found, text)
    return parts + _end(floor, found.claim)


def _limited_by(floor: Floor) -> str:
    """`the time of the operations at the machine's rates`, or the traffic and why no order moves less."""
    why = ARGUMENTS[floor.by.argument]
    if floor.by.argument in ("operations", "launches"):
        return f"the time of {why}"
    return f"the time of the {floor.by.name} traffic, because {why}"


def _printed(found: SpeedOfLight, text: Printed) -> list[Block]:
    """The text of the best order, and how its own time compares."""
    assert found.best is not None
    if text.lines:
        place = ", in place of the kernel's own tiles and order" if text.in_place else ""
        parts: list[Block] = [Gap(), line(f"The lines of the best order found{place}:", 0)]
        parts += [line(own) for own in text.lines]
    else:
        near = "The closest that a `.roof` file can come to the best order found:"
        parts = [Gap(), line(near if text.kind == "registers" else "The kernel in the best order found:", 0)]
        parts += [line(own) for own in text.text.splitlines()]
    told = _compared(found.best, text)
    return [*parts, line(told, 0)] if told else parts


def _compared(best: Schedule, text: Printed) -> str:
    """How the time that `predict` gives the text compares with that of the best order; "" for lines that only choose a
    matrix unit, whose time is that of `predict`.
    """
    if text.estimate is None:
        return "" if text.kind == "lines" and not best.directives else _not_predicted(text)
    command = "predict" if text.traffic is None else f"predict --traffic {text.traffic}"
    this = _named(text)
    gives, slowly = f"`{command}` gives {this}", ""
    if text.estimate.at_most:
        gives, slowly = f"By the rules of `{command}`, {this} takes", SLOWLY
    bound, least = text.estimate.sure
    time = show_time(least)
    if text.is_at_most:
        time = f"between {time} and {show_time(text.estimate.time_s)}"
    if text.estimate.time_s <= best.time_s:
        return f"{gives} {time}, too.{slowly}"
    there = dict(best.terms).get(bound)
    if there is None or least <= there:
        return f"{gives} {time}.{slowly}"
    why = f"{bound} takes {show_time(least)}, not {show_time(there)}, {WHY_LONGER[text.kind]}"
    return f"{gives} {time}: {why}.{slowly}"


def _named(text: Printed) -> str:
    """The kernel that a text is, or that it is a part of."""
    return "the printed kernel" if text.text else "the kernel with these lines"


def _not_predicted(text: Printed) -> str:
    """Why there is no time for a text, and what to do."""
    accesses = text.accesses
    if text.why_not:
        return f"`predict` found no time for {_named(text)}, because {text.why_not}."
    if accesses is None:
        return f"`predict` may need more time for {_named(text)} than its budget; try it with smaller sizes."
    made = f"`predict` has to simulate {_named(text)}, which makes {accesses:,} accesses"
    if accesses > LONGEST_SIMULATION:
        return f"{made}, more than its limit of {LONGEST_SIMULATION:,}; try it with smaller sizes."
    return f"{made}; try it with a larger `--budget`, or with smaller sizes."


def program_blocks(found: ProgramLight) -> list[Block]:
    """The floor of the program as one launch, its launches one by one, and the verdict on a claim."""
    floor = found.fused.floor
    parts = [
        *_head(floor),
        line(f"Fused into one launch, it takes at least {show_time(floor.time_s)}, {_limited_by(floor)}.", 0),
        *_terms(floor),
        figures(list(_program_times(found)), ("", "time", "over the floor", ""), right=(1, 2)),
        Gap(),
        figures(
            [_launch_row(p.times, p.answer) for p in found.parts],
            ("kernel", "launches", "at least", "", "best order found", "as written"), right=(1, 2, 4, 5),
        ),
    ]  # fmt: skip
    if found.fused.passed:
        names = ", ".join(f"{p.array} of {p.reader} ({show_bytes(p.bytes)})" for p in found.fused.passed)
        text = f"Arrays that need not be loaded, since an earlier launch may have written them: {names}."
        parts += [Gap(), line(text, 0)]
    for group in found.together:
        names = _listed([found.parts[place].answer.floor.kernel for place in group.places])
        one = len(group.arrays) == 1
        held = f"; {_listed(group.arrays)} stay{'s' if one else ''} in the last cache" if group.arrays else ""
        loops = f"{group.blocks:,} block{'s' if group.blocks > 1 else ''} of the iterations of {_listed(group.loops)}"
        parts += [Gap(), line(f"In the best orders found, {names} are one launch, in {loops}{held}.", 0)]
    if found.kept:
        names = ", ".join(f"{k.array} from {k.writer} to {k.reader}" for k in found.kept)
        parts += [Gap(), line(f"In the best orders found, the last cache holds {names}.", 0)]
    return parts + _end(floor, found.claim)


def _listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), *names[-1:]])


def _head(floor: Floor) -> list[Block]:
    at = ", ".join(f"{name} = {value:,}" for name, value in floor.parameters)
    return [Title(f"{floor.kernel} on {floor.machine}", f"  {at}" if at else "")]


def _terms(floor: Floor) -> list[Block]:
    rows = [(t.name, show_time(t.time_s), _short(t), ARGUMENTS[t.argument]) for t in floor.terms]
    parts: list[Block] = [Gap(), figures(rows, ("term", "at least", "", "because"), right=(1,))]
    for term in floor.terms:
        if _short(term) != term.formula:
            listed = [("" if k else term.name, part) for k, part in enumerate(term.parts)]
            parts += [Gap(), figures(listed)]
    return [*parts, Gap()]


def _short(term: FloorTerm) -> str:
    """The formula, if it fits into the table."""
    long = len(term.formula) > LONGEST_FORMULA and term.parts
    return f"{term.amount:,} operations, listed below" if long else term.formula


def _end(floor: Floor, claim: Claim | None) -> list[Block]:
    parts: list[Block] = [line(f"note: {note}", 0) for note in floor.notes]
    if claim is not None:
        parts += [Gap(), line(verdict(claim, floor), 0)]
    return parts


def _program_times(found: ProgramLight) -> Iterator[tuple[str, str, str, str]]:
    floor = found.fused.floor
    yield "floor, fused", show_time(floor.time_s), "", floor.by.name
    count = f"{found.launches:,} launches" if found.launches > 1 else "1 launch"
    yield (
        "floor, as launched",
        show_time(found.launched_s),
        _over(found.launched_s, floor),
        f"{count}, each from memory" if found.launches > 1 else f"{count}, from memory",
    )
    for name, time_s, at_most in (
        ("best orders found", found.best_s, False),
        ("as written", found.written_s, found.is_at_most),
    ):
        if time_s is None:
            yield name, "not found", "", "for one of the launches"
        else:
            yield name, _as_written(time_s, at_most), _over(time_s, floor), ""


def _launch_row(times: int, one: SpeedOfLight) -> tuple[str, ...]:
    best = "" if one.best is None else show_time(one.best.time_s)
    written = "" if one.as_written is None else _as_written(one.as_written.bound_s, one.is_at_most)
    return one.floor.kernel, f"{times:,}", show_time(one.floor.time_s), one.floor.by.name, best, written


def _times(found: SpeedOfLight, text: Printed | None) -> Iterator[tuple[str, str, str, str]]:
    floor = found.floor
    yield "floor", show_time(floor.time_s), "", floor.by.name
    if found.best is not None:
        best = found.best
        limit = max(best.terms, key=lambda term: term[1])[0]
        yield "best order found", show_time(best.time_s), _over(best.time_s, floor), f"{best.what}; {limit}"
    if text is not None and text.estimate is not None:
        own = text.estimate.time_s
        what = (
            f"{text.what}; {text.estimate.prediction.bound}"
            if text.kind == "registers"
            else text.estimate.prediction.bound
        )
        yield "as printed below", _as_written(own, text.is_at_most), _over(own, floor), what
    if found.as_written is not None:
        bound = found.as_written.bound_s
        yield "as written", _as_written(bound, found.is_at_most), _over(bound, floor), found.as_written.bound
    else:
        yield "as written", "not found", "", found.why_not


def _known(found: SpeedOfLight) -> str:
    """How the time as written is known if the kernel is not counted exactly."""
    if found.is_at_most:
        return "the kernel as written is not counted exactly, so its time is an upper bound"
    return "not all bytes of the kernel as written are counted exactly, but its longest term is exact"


def _as_written(time_s: Fraction, is_at_most: bool) -> str:
    return f"at most {show_time(time_s)}" if is_at_most else show_time(time_s)


def _over(time_s: Fraction, floor: Floor) -> str:
    return f"{show_number(time_s / floor.time_s, 3)} x" if floor.time_s else ""


def verdict(claim: Claim, floor: Floor) -> str:
    """`3.96 ms is possible: 13 % above the floor` and the like."""
    time = show_time(claim.measured_s)
    if claim.verdict == "impossible":
        worst = claim.violated[0]
        digits = _digits_apart(claim.measured_s, worst.time_s)
        least = f"{worst.name} alone takes {show_time(worst.time_s, digits)} ({worst.formula})"
        return f"{show_time(claim.measured_s, digits)} is impossible on {floor.machine}: {least}."
    if claim.measured_s == floor.time_s or not floor.time_s:
        return f"{time} is possible: the floor is {show_time(floor.time_s)}."
    if claim.verdict == "near the floor":
        return f"{time} is possible, and within {ceil(100 * claim.above_floor)} % of the floor."
    return f"{time} is possible: {show_percent(float(claim.above_floor))} above the floor."


def _digits_apart(shorter_s: Fraction, longer_s: Fraction) -> int:
    """The number of significant digits, at least four, with which the two times look different."""
    times = float(shorter_s), float(longer_s)
    return next((d for d in range(4, 17) if len({f"{time:.{d - 1}e}" for time in times}) == 2), 17)


def document(found: SpeedOfLight, text: Printed | None = None) -> dict[str, Any]:
    """Plain numbers, in seconds and bytes."""
    best, now = found.best, found.as_written
    lines, whole = ((), "") if best is None else (best.lines, best.text)
    if text is not None:
        lines, whole = text.lines, text.text
    own = None if text is None or text.estimate is None else float(text.estimate.time_s)
    at_most = text is not None and text.is_at_most
    return _floor_document(found.floor) | {
        "as_written_s": None if now is None or found.is_at_most else float(now.bound_s),
        "as_written_at_most_s": float(now.bound_s) if now is not None and found.is_at_most else None,
        "as_written_bound": None if now is None else now.bound,
        "why_not": found.why_not or None,
        "expected_s": _expected_s(found.written),
        "best_found_s": None if best is None else float(best.time_s),
        "best_found": list(lines),
        "best_found_text": whole or None,
        "best_found_what": None if best is None else best.what,
        "best_found_predicted_s": None if at_most else own,
        "best_found_predicted_at_most_s": own if at_most else None,
        "headroom": _ratio(found),
        "claim": None if found.claim is None else _claim(found.claim, found.floor),
        "notes": list(found.floor.notes),
    }


def program_document(found: ProgramLight) -> dict[str, Any]:
    """The same of a program: its floor is that of one launch; `program` has its launches one by one."""
    floor, best, written = found.fused.floor, found.best_s, found.written_s
    return _floor_document(floor) | {
        "as_written_s": None if written is None or found.is_at_most else float(written),
        "as_written_at_most_s": float(written) if written is not None and found.is_at_most else None,
        "as_written_bound": None,
        "why_not": next((p.answer.why_not for p in found.parts if p.answer.why_not), None),
        "expected_s": None,
        "best_found_s": None if best is None else float(best),
        "best_found": [],
        "best_found_text": None,
        "best_found_what": "each launch in the best order found",
        "best_found_predicted_s": None,
        "best_found_predicted_at_most_s": None,
        "headroom": float(written / floor.time_s)
        if written is not None and floor.time_s and not found.is_at_most
        else None,
        "claim": None if found.claim is None else _claim(found.claim, floor),
        "notes": list(floor.notes),
        "program": {
            "launches": found.launches,
            "launched_floor_s": float(found.launched_s),
            "passed": [{"array": p.array, "reader": p.reader, "bytes": p.bytes} for p in found.fused.passed],
            "kept": [
                {
                    "array": k.array,
                    "writer": k.writer,
                    "reader": k.reader,
                    "bytes": k.bytes,
                    "saved_s": float(k.saved_s),
                }
                for k in found.kept
            ],
            "fused": [
                {
                    "kernels": [found.parts[place].answer.floor.kernel for place in group.places],
                    "times": group.times,
                    "loops": list(group.loops),
                    "blocks": group.blocks,
                    "arrays": list(group.arrays),
                    "time_s": float(group.time_s),
                }
                for group in found.together
            ],
            "kernels": [{"launches": p.times, "light": document(p.answer)} for p in found.parts],
        },
    }


def _floor_document(floor: Floor) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kernel": floor.kernel,
        "machine": floor.machine,
        "parameters": dict(floor.parameters),
        "work_flops": floor.work,
        "unit": floor.unit,
        "floor_s": float(floor.time_s),
        "floor_by": floor.by.name,
        "terms": [
            {
                "name": t.name,
                "amount": t.amount,
                "time_s": float(t.time_s),
                "formula": t.formula,
                "argument": t.argument,
            }
            for t in floor.terms
        ],
    }


def _expected_s(written: Prediction | None) -> float | None:
    """The expected time as written, where there is a model of the machine's cores; None otherwise."""
    return None if written is None or written.expected is None else float(written.expected.expected_s)


def _ratio(found: SpeedOfLight) -> float | None:
    """The time as written over the floor; None if it is not known exactly."""
    now = found.as_written
    if now is None or found.is_at_most or not found.floor.time_s:
        return None
    return float(now.bound_s / found.floor.time_s)


def _claim(claim: Claim, floor: Floor) -> dict[str, Any]:
    return {
        "measured_s": float(claim.measured_s),
        "verdict": claim.verdict,
        "above_floor": float(claim.above_floor),
        "violated": [t.name for t in claim.violated],
        "text": verdict(claim, floor),
    }
