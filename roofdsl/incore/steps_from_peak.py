"""Why compiled code takes longer than at the machine's peak: the steps from the peak to its in-core time.

`predict.expected` has the causes of the expected time; `assumed_compiler` has these steps for its own code.
"""

from __future__ import annotations

from collections import Counter

from roofdsl.incore.ceilings import (
    Executed,
    class_cycles,
    dispatch_cycles,
    divider_cycles,
    executed,
    fastest_loads_cycles,
    lanes,
    loads_cycles,
    operations,
    peak_cycles,
    shared_cycles,
    unfused_cycles,
)
from roofdsl.incore.chains import CHAINED
from roofdsl.incore.rates import Rates
from roofdsl.incore.result import Step
from roofdsl.incore.walk import Walked

_ARITHMETIC = ("add", "mul", "fma", "max")
_SHORT = 64
_UNLEARNED = ", with branches that depend on the data"
RELAXED = "`--math relaxed` lets sums be reordered"


def steps_of(walked: Walked, rates: Rates, clock_hz: float) -> tuple[Step, ...]:
    """The steps of one launch; each takes one more cause into account, and those that add nothing are left out."""
    done = executed(walked)
    found = operations(done)
    chain, remedy = _chain(walked, rates)
    length = _hot_length(walked)
    entered = f"short inner loop of {length:g}" if length < _SHORT else "entering and leaving loops"
    ideal = fastest_loads_cycles(done, rates)
    plain = max(ideal, loads_cycles(done, rates, split=False, gathers=False))
    gathered = max(plain, loads_cycles(done, rates, split=False, gathers=True))
    split = max(gathered, loads_cycles(done, rates, split=True, gathers=True))
    calls = sum(count * (rates.call(name) or (0.0, 0.0))[0] for name, count in walked.totals.calls.items())
    named = ", ".join(sorted(walked.totals.calls))
    arithmetic = [e for e in done if e.work.kind.cls in _ARITHMETIC]
    rows = [
        ("", "", peak_cycles(found, rates), ideal),
        ("operations that are not fused pairs", "", unfused_cycles(found, rates), ideal),
        (_width(done, rates), "", class_cycles(arithmetic, rates), plain),
        ("division and square roots", "", divider_cycles(done, rates), plain),
        (_others(done), "", class_cycles(done, rates), plain),
        (f"call of {named}{_UNLEARNED if rates.unlearned else ''}", "", calls, plain),
        ("stride: elements gathered one by one", "", 0.0, gathered),
        ("vectors split lines", "", 0.0, split),
        ("arithmetic beside loads and stores", "", shared_cycles(done, rates), split),
        ("instructions beside the arithmetic", "", dispatch_cycles(done, rates), split),
        (chain, remedy, _unhurried(walked, rates), split),
        (entered, "", walked.cycles, split),
    ]
    return _accumulated(rows, clock_hz)


def _accumulated(rows: list[tuple[str, str, float, float]], clock_hz: float) -> tuple[Step, ...]:
    """Steps in seconds, none shorter than the one before. One that adds less than a thousandth is left out, except the
    last.
    """
    steps: list[Step] = []
    overlapping = loads = 0.0
    for k, (cause, remedy, own, own_loads) in enumerate(rows):
        before = max(overlapping, loads)
        moved = own > overlapping or own_loads > loads
        overlapping, loads = max(overlapping, own), max(loads, own_loads)
        grown = max(overlapping, loads) > 1.001 * before
        if k == 0 or (moved and (grown or k == len(rows) - 1)):
            steps.append(Step(cause, remedy, overlapping / clock_hz, loads / clock_hz))
    last = steps[-1]
    if (last.overlapping_s, last.loads_s) != (overlapping / clock_hz, loads / clock_hz):
        steps[-1] = Step(last.cause, last.remedy, overlapping / clock_hz, loads / clock_hz)
    return tuple(steps)


def _width(done: list[Executed], rates: Rates) -> str:
    """The width of the arithmetic, in words."""
    widths: Counter[int] = Counter()
    for e in done:
        kind = e.work.kind
        if kind.cls in (*_ARITHMETIC, "div", "sqrt") and kind.type.startswith("f"):
            widths[kind.bits if lanes(kind) > 1 else 0] += e.times * lanes(kind)  # type: ignore[assignment]
    if not widths:
        return "no arithmetic on vectors"
    widest = max(i.bits for i in rates.stated.values() if i.cls in _ARITHMETIC)
    bits = max(widths, key=lambda b: widths[b])
    return "no SIMD: scalar instructions" if bits == 0 else f"vectors of {bits} bits of {widest}"


_NAMES = {
    "convert": "conversions", "widen": "conversions", "compare": "comparisons", "shuffle": "shuffles",
    "horizontal": "shuffles", "permute": "shuffles", "exchange": "shuffles", "extract": "shuffles",
    "insert": "shuffles", "blend": "blends", "logic": "bit operations", "shift": "shifts", "shift_each": "shifts",
    "mask": "masks", "move": "moves between registers", "add": "integers", "mul": "integer products",
}  # fmt: skip


def _others(done: list[Executed]) -> str:
    """The other work of the vector units, in words: its two most frequent kinds."""
    counts: Counter[str] = Counter()
    for e in done:
        kind = e.work.kind
        vector = kind.cls in _NAMES and not (kind.cls in _ARITHMETIC and kind.type.startswith("f"))
        if vector and not (kind.type == "i64" and kind.bits == 64 and kind.cls in ("add", "mul")):
            counts[_NAMES[kind.cls]] += e.times  # type: ignore[assignment]
    names = [name for name, _ in counts.most_common(2)]
    return " and ".join(names) if names else "other instructions"


def _hot_loop(walked: Walked) -> int | None:
    """The innermost loop that executes the most instructions."""
    totals = walked.totals

    def size(number: int) -> float:
        loop = walked.flow.loops[number]
        return sum(totals.blocks[b] * (walked.flow.blocks[b].stop - walked.flow.blocks[b].start) for b in loop.blocks)

    inner = [loop.number for loop in walked.flow.loops if loop.innermost and totals.entries[loop.number]]
    return max(inner, key=size, default=None)


def _hot_length(walked: Walked) -> float:
    """The iterations per entry of the innermost loop that executes the most instructions, on average; 1 if there is
    none.
    """
    hot = _hot_loop(walked)
    if hot is None:
        return 1.0
    return round(walked.totals.iterations[hot] / max(1, walked.totals.entries[hot]), 1)


def _chain(walked: Walked, rates: Rates) -> tuple[str, str]:
    """In words: the slowest class of instructions in the hot loop that update a vector register; and what helps."""
    hot = _hot_loop(walked)
    if hot is None:
        return "latency", ""
    loop = walked.flow.loops[hot]
    works = [
        walked.works[k]
        for b in sorted(loop.blocks)
        for k in range(walked.flow.blocks[b].start, walked.flow.blocks[b].stop)
    ]
    carried = [w for w in works if w.kind.cls and w.writes in w.reads and w.writes[:1] == "v"]
    if not carried:
        return "latency of dependent instructions", ""
    slowest = max(carried, key=lambda w: rates.cost(w.kind).latency)
    cls = slowest.kind.cls
    of = CHAINED.get(cls, f"{cls} instructions")
    return f"chain of {rates.cost(slowest.kind).latency:g}-cycle {of}", RELAXED if cls in ("add", "fma") else ""


def _unhurried(walked: Walked, rates: Rates) -> float:
    """The launch's time without mispredicted loop ends, but with latencies and the window; 0 if the hot loop is entered
    more than once.
    """
    lost = sum(walked.totals.mispredicted.values()) * rates.mispredict
    hot = _hot_loop(walked)
    entries = walked.totals.entries[hot] if hot is not None else 0
    return max(0.0, walked.cycles - lost) if entries <= 1 else 0.0
