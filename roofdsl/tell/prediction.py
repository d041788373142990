"""What `predict` prints: counts, the terms of the time, the bound, and assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import (
    group,
    show_bandwidth,
    show_bytes,
    show_number,
    show_operations,
    show_rate,
    show_size,
    show_time,
)
from roofdsl.predict.occupancy import LatencyCeiling, occupancy_text
from roofdsl.predict.prediction import Cores, Prediction
from roofdsl.tell import energy
from roofdsl.tell.blocks import Block, Gap, Title, figures, items, line
from roofdsl.tell.titles import at, on

HEAD = ("", "amount", "rate", "I", "time", "")
"""The head of the table of terms."""

NUMBERS = (1, 2, 3, 4)
"""The columns of that table that are aligned to the right."""


def blocks(p: Prediction, machine: Machine | None = None) -> list[Block]:
    """The whole prediction: counts, the terms of the time, the bound, and the assumptions.

    machine: that of the prediction, for the title.
    """
    found: list[Block] = [
        Title(f"{p.kernel} on {p.machine if machine is None else on(machine)}", at(p.parameters)),
        Gap(),
        figures(_counts(p)),
        Gap(),
        figures(terms_rows(p, p.bounds), HEAD, NUMBERS),
        Gap(),
        figures(_outcome(p)),
    ]
    if p.expected is not None:
        found += causes(p)
    if p.energy is not None or p.no_energy:
        found += energy.blocks(p)
    if p.assumptions:
        found += [Gap(), line("assumed:"), items(p.assumptions)]
    return found


def _counts(p: Prediction) -> list[tuple[str, str]]:
    where = "compulsory" if p.cache_bytes is None else f"behind {show_size(p.cache_bytes)} of cache"
    if p.line_bytes is not None:
        where += f", lines of {show_size(p.line_bytes)}"
    rows = [
        ("work W", f"{group(p.work)} {p.operation}" + _types(p)),
        ("traffic Q", f"{group(p.memory.bytes)} B ({p.traffic}, {where})"),
    ]
    if p.intensity is not None:
        rows.append(("intensity I", _per_byte(p.intensity, p)))
    if p.ridge is not None:
        rows.append(("balance", _per_byte(p.ridge, p)))
    if p.peak_per_s is not None and p.peak_fraction is not None and len(p.parts) > 1:
        share = show_number(100 * p.peak_fraction, 3)
        rows.append(("ceiling", f"{show_rate(p.peak_per_s, p.operation)}, {share} % of the {p.type} peak"))
        rows.append(("mix", _mix(p)))
    if p.occupancy is not None:
        rows.append(("occupancy", occupancy_text(p.occupancy)))
    for found in p.latency:
        rows.append(("in flight", _in_flight(found)))
    return rows


def _types(p: Prediction) -> str:
    """` in f32 and f64`: the types of the operations, the one that dominates the time first."""
    if not p.type:
        return ""
    *others, last = dict.fromkeys([p.type, *(part.type for part in p.parts)])
    return f" in {', '.join(others)} and {last}" if others else f" in {last}"


def _in_flight(found: LatencyCeiling) -> str:
    needed = f"{show_bytes(found.in_flight_bytes)} towards {found.level}, which needs {show_bytes(found.needed_bytes)}"
    return needed + (f": at most {show_bandwidth(found.bytes_per_s)}" if found.binds else "")


NOTHING = "nothing is computed, and nothing moves"
"""Stands for the rate and the bound where there is no work, no traffic and no time of a launch."""

SMALL_SHARE = Fraction(1, 1000)
"""A share of the operations: several kinds with less than this are summed up as `3 others`."""


def _mix(p: Prediction) -> str:
    """`75 % fma, 25 % add; 60 % of instructions fused`: the share of each class in the operations.

    With several types, the fused instructions are those of the dominant type.
    """
    several = len({part.type for part in p.parts}) > 1
    named = [(f"{part.type + ' ' if several else ''}{part.cls}", Fraction(part.operations, p.work)) for part in p.parts]
    small = [share for _, share in named if share < SMALL_SHARE]
    if len(small) > 1:
        named = [(name, share) for name, share in named if share >= SMALL_SHARE]
        named.append((f"{len(small)} others", sum(small, Fraction(0))))
    shares = ", ".join(f"{show_number(100 * share, 3)} % {name}" for name, share in named)
    if not p.fma_fraction or p.unit is not None:  # pairs elsewhere say nothing of matrix units
        return shares
    of = f"{p.type} " if several else ""
    return shares + f"; {show_number(100 * p.fma_fraction, 3)} % of {of}instructions fused"


def _per_byte(value: Fraction, p: Prediction) -> str:
    return f"{show_number(value)} {p.operation}/B"


def terms_rows(p: Prediction, bounds: Sequence[str]) -> list[tuple[str, ...]]:
    """The rows of the table of terms: name, amount, rate, intensity, time, and a mark at the terms in `bounds`."""
    marks = dict.fromkeys(bounds, "<- bound")
    rows: list[tuple[str, ...]] = []
    if p.peak_per_s is not None:
        amount = show_operations(p.work, p.operation)
        rate = show_rate(p.peak_per_s, p.operation)
        rows.append(("compute", amount, rate, "", show_time(p.compute_s), marks.get("compute", "")))
    for level in p.levels:
        intensity = level.intensity(p.work)
        rows.append(
            (
                level.name,
                show_bytes(level.bytes),
                show_bandwidth(level.rate_bytes_per_s),
                "" if intensity is None else show_number(intensity),
                show_time(level.time_s),
                marks.get(level.name, ""),
            )
        )
    if len(p.in_turn) > 1:
        name, time = p.in_turn_term
        rows.append((name, "in turn", "", "", show_time(time), ""))
    for link in p.links:
        times = f"{show_bytes(link.bytes)} one way"
        rate = show_bandwidth(link.bandwidth_bytes_per_s)
        rows.append((link.name, times, rate, "", show_time(link.time_s), marks.get(link.name, "")))
    if p.launch_s:
        each = show_time(p.launch_s / p.launches)
        launches = f"{group(p.launches)} launch{'es' if p.launches > 1 else ''}"
        rows.append(("launch", launches, f"{each} each", "", show_time(p.launch_s), marks.get("launch", "")))
    return rows


SMALLEST_CAUSE = Fraction(1, 200)
"""Of the expected time: causes with smaller shares are summed up in the text; JSON has all of them."""


def causes(p: Prediction) -> list[Block]:
    """Why the expected time is above the bound: every cause with its share, and what would remove it."""
    assert p.expected is not None
    whole = p.expected.expected_s
    large = [c for c in p.expected.causes if abs(c.share_s) >= SMALLEST_CAUSE * whole]
    rest = [c.share_s for c in p.expected.causes if c not in large]
    rows = [(c.cause, *_share(c.share_s, whole), c.remedy) for c in large]
    left = sum(rest, Fraction(0))
    if abs(left) >= SMALLEST_CAUSE * whole / 10:
        rows.append((f"{len(rest)} smaller cause{'s' if len(rest) > 1 else ''}", *_share(left, whole), ""))
    if not rows:
        return []
    model = p.expected.model.replace(": ", ", ")
    found = model if p.expected.is_of_threads else f"in-core time: {model}"
    return [Gap(), line(f"time above the bound, by cause ({found}):"), figures(rows, (), (1, 2), depth=2)]


def _share(share_s: Fraction, whole: Fraction) -> tuple[str, str]:
    """`+1.2 us` and `34 %` of the expected time."""
    sign = "-" if share_s < 0 else "+"
    return f"{sign}{show_time(abs(share_s), 3)}", f"{show_number(100 * share_s / whole, 2)} %"


def _expected_rate(p: Prediction) -> str:
    """The rate at the expected time, and how that compares with the bound's."""
    assert p.expected is not None
    rate = p.expected_rate_per_s
    per_s = p.memory.bytes / p.expected.expected_s if p.expected.expected_s else Fraction(0)
    shown = show_rate(rate, p.operation) if p.work and rate is not None else show_bandwidth(per_s)
    part = p.bound_s / p.expected.expected_s if p.expected.expected_s else Fraction(1)
    return f"{shown}, {show_number(100 * part, 3)} % of the bound's rate"


def _saturation(cores: Cores) -> str:
    """How many cores saturate a shared level, or a note that too few cores have work for that."""
    if cores.shared is None:
        return ""
    level = cores.shared[0]
    if cores.saturation is None:
        few = (
            "only one core has work, which does"
            if cores.most == 1
            else f"at most {cores.most} cores have work, which do"
        )
        return f"{few} not saturate {level}"
    those = "a single core saturates" if cores.saturation == 1 else "that many cores saturate"
    return f"n_s = {cores.saturation}: {those} {level}"


def _outcome(p: Prediction) -> list[tuple[str, str, str]]:
    slow = Fraction(p.work, 1) / p.no_overlap_s if p.no_overlap_s else Fraction(0)
    slow_bytes = p.memory.bytes / p.no_overlap_s if p.no_overlap_s else Fraction(0)
    if p.work:
        fast_rate, slow_rate = show_rate(p.rate_per_s, p.operation), show_rate(slow, p.operation)
    else:
        fast_rate, slow_rate = show_bandwidth(p.bytes_per_s), show_bandwidth(slow_bytes)
    rows = [
        ("bound", show_time(p.bound_s), f"{fast_rate}, bound by {p.bound}" if p.bounds else NOTHING),
        ("no overlap", show_time(p.no_overlap_s), slow_rate if p.bounds else ""),
    ]
    if p.expected is not None:
        rows.append(("expected", show_time(p.expected.expected_s), _expected_rate(p)))
        for remedy in p.expected.remedies():
            faster = f"{show_number(remedy['speedup'], 3)} times faster with `{remedy['remedy']}`"
            rows.append(("", show_time(remedy["expected_s"]), faster))
    elif p.no_expected:
        rows.append(("expected", "", p.no_expected))
    if p.cores is not None:
        rows.append(("cores", str(p.cores.count), _saturation(p.cores)))
    for name, total in p.counters:
        rate = show_rate(total / p.bound_s, name) if p.bound_s else ""
        rows.append((name, group(total), rate))
    return rows
