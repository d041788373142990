"""This processor's measured ceilings: peaks of each type and class, bandwidth over working sets, cost of a call.

The empirical roofline: loops on one core and on all usable cores at once, of whole vectors in assembly (`vector_loops`)
or compiled by numba (`microkernels`). Every number is the median of its samples, and a peak is that of the fastest
loop. `bandwidth_sweep` measures the bandwidths. A level's bandwidth comes from the fastest working set well inside the
level: a slower stream was disturbed by neighbors or by its own start, and a roof is what can be reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from roofdsl.lang.operation_classes import SPECIAL_FUNCTIONS
from roofdsl.measure.bandwidth_curve import Sweep
from roofdsl.measure.bandwidth_sweep import Buffers, Progress, measured_levels, run_sweep, working_sets
from roofdsl.measure.core_facts import CoreFacts, core_facts
from roofdsl.measure.device import Cpu, describe_cpu, software
from roofdsl.measure.energy_rates import MachineEnergy, energy_or_reason
from roofdsl.measure.level_overlap import Place, measure_pair
from roofdsl.measure.levels_found import Level, noise
from roofdsl.measure.measurement import now
from roofdsl.measure.microkernels import nothing
from roofdsl.measure.multicore_timing import FULL, QUICK, Effort, Rate
from roofdsl.measure.nearest_cache import with_moves
from roofdsl.measure.other_load import BUSY, Others, taken_by_others
from roofdsl.measure.peaks import DTYPES, Peak, at_least_one_core, confirmed, measure_peak, misfits_of, settled, wanted
from roofdsl.measure.random_lines import RandomRates, random_rates
from roofdsl.measure.shared_core import watch
from roofdsl.measure.timing import pinned, time_calls, usable_cores
from roofdsl.measure.walk_rates import WalkRates, walk_rates

CALL_ROUNDS = 7
AGAIN_S = {True: 10.0, False: 30.0}
"""Seconds for repeating doubtful measurements, in a quick and in a full characterization."""


@dataclass(frozen=True)
class Characterization:
    """All measured data; machine_file.py writes it as a machine.

    disturbed: a message about the processor time that other programs took meanwhile; empty if it is little or unknown.
    facts: the costs of instructions on one core; None if this processor's are unknown. walks: the costs, on one core,
    of lines that it accesses one by one; random: those of randomly accessed lines, by level. energy: that of all cores
    together, if it was requested and could be read.
    """

    cpu: Cpu
    software: dict[str, str]
    when: str
    cores: int
    quick: bool
    peaks: tuple[Peak, ...]
    levels: tuple[Level, ...]
    one_core: Sweep
    all_cores: Sweep
    call_s: float
    notes: tuple[str, ...]
    disturbed: str = ""
    facts: CoreFacts | None = None
    walks: WalkRates | None = None
    energy: MachineEnergy | None = None
    random: Mapping[str, RandomRates] = field(default_factory=dict)

    def peak(self, type_name: str, cls: str) -> Peak | None:
        return next((p for p in self.peaks if (p.type, p.cls) == (type_name, cls)), None)

    def alone(self) -> Characterization:
        """The results for one core alone, from the same run, for single-threaded code."""
        peaks = tuple(replace(p, all_cores=p.one_core) for p in self.peaks)
        levels = tuple(
            replace(
                level,
                all_cores=level.one_core,
                holds_bytes=level.holds_alone,
                typical=level.typical_alone,
                larger=level.larger_alone,
            )
            for level in self.levels
        )
        return replace(self, cores=1, peaks=peaks, levels=levels, all_cores=self.one_core, energy=None)


def characterize_cpu(
    quick: bool = False, cores: int | None = None, progress: Progress | None = None, *, energy: bool = False
) -> Characterization:
    """Measure the usable cores, or the first `cores` of them, in one to three minutes (`quick`: about one).

    energy: also read powers, which takes half a minute more; the notes say if that is not possible. Raises ValueError
    for a number of cores that cannot be used.
    """
    usable = usable_cores()
    if cores is not None and not 1 <= cores <= len(usable):
        raise ValueError(f"{cores} cores were requested, but only {len(usable)} can be used")
    team = usable[: cores or len(usable)]
    cpu = describe_cpu()
    effort = QUICK if quick else FULL
    tell = progress or (lambda part, what: None)
    meanwhile = Others()
    classes = wanted(("f64", "f32", "i32", "i16") if quick else tuple(DTYPES))
    peaks = []
    for k, key in enumerate(classes):
        tell(0.35 * k / len(classes), " ".join(key))
        peaks.append(measure_peak(key, team, effort))
    sizes = working_sets(cpu, len(team), 1 if quick else 2)
    buffers = Buffers(max(sizes) + (1 << 16), len(team))
    alone = run_sweep(team[:1], sizes, buffers, effort, lambda p, w: tell(0.35 + 0.33 * p, w))
    together = alone
    if len(team) > 1:
        together = run_sweep(team, sizes, buffers, effort, lambda p, w: tell(0.68 + 0.27 * p, w))
    tell(0.94, "repeating doubtful measurements")
    settle_s = AGAIN_S[quick]
    peaks = list(confirmed(peaks, lambda key: measure_peak(key, team, QUICK), settle_s))
    checked = settled(peaks, len(team), lambda key: measure_peak(key, team, effort), settle_s)
    (alone, together), levels, notes = measured_levels(cpu, team, (alone, together), buffers, effort)
    levels = with_moves(levels, team, effort)
    levels = beside_each_other(levels, team, buffers, effort, lambda p, w: tell(0.95 + 0.04 * p, w))
    with pinned(team[:1]):
        tell(0.97, "strided walks")
        walks = _walks(levels, buffers.blocks[0], quick)
        random = _random(levels, buffers.blocks[0], quick)
        tell(0.98, "instructions")
        facts = core_facts(quick)
    energies, why_not = None, ""
    if energy:
        energies, why_not = energy_or_reason(_places(levels, len(team)), buffers.blocks, team, quick=quick, tell=tell)
    tell(0.99, "call")
    call_s = _call_s()
    others = meanwhile.cores() or 0.0
    disturbed = taken_by_others(others) if others >= BUSY else ""
    misfits = [doubt.why for doubt in misfits_of(checked, len(team))]
    notes = (*notes, *noise(together), *misfits, *_shared(facts), *filter(None, (disturbed, why_not)))
    peaks_found = _at_least_as_called(at_least_one_core(checked), facts)
    return Characterization(
        cpu, software(), now(), len(team), quick, peaks_found, levels, alone, together, call_s, notes, disturbed, facts,
        walks, energies, random,
    )  # fmt: skip


def _shared(facts: CoreFacts | None) -> tuple[str, ...]:
    """A note if instructions were measured while another hardware thread used the core."""
    count, of = facts.shared if facts is not None else (0, 0)
    if not count:
        return ()
    return (f"{count} of {of} loops of instructions were timed while another hardware thread used the core",)


def _at_least_as_called(peaks: Sequence[Peak], facts: CoreFacts | None) -> tuple[Peak, ...]:
    """The peaks. Those of functions are raised to the rates of the `instruction` lines where these are faster."""
    if facts is None:
        return tuple(peaks)
    called = {
        (i.type, i.cls): facts.clock_hz / float(i.throughput)
        for i in facts.instructions
        if i.cls in SPECIAL_FUNCTIONS and i.throughput and i.type and i.bits <= 64
    }
    found = []
    for p in peaks:
        faster = called.get(p.key, 0.0) / p.one_core.per_s
        rates = (p.all_cores, p.one_core)
        found.append(p if faster <= 1 else Peak(*p.key, *(Rate(r.per_s * faster, r.spread) for r in rates)))
    return tuple(found)


def _walks(levels: Sequence[Level], block: Any, quick: bool) -> WalkRates | None:
    """Strided walks of one core in all levels, in a block that streams no longer need."""
    capacities = [(level.name, level.kept_bytes(1)) for level in levels]
    first = levels[0].reported
    way_bytes = first.size_bytes // first.ways if first is not None and first.ways else None
    return walk_rates(capacities, block.ctypes.data, block.nbytes, quick, way_bytes=way_bytes)


def _random(levels: Sequence[Level], block: Any, quick: bool) -> Mapping[str, RandomRates]:
    """Random accesses of one core in all levels, in the same block."""
    capacities = [(level.name, level.kept_bytes(1)) for level in levels]
    return random_rates(capacities, block.ctypes.data, block.nbytes, quick)


def _call_s() -> float:
    """Seconds for an empty call of a compiled function with three arrays and a number.

    It is the lowest median of several rounds: a launch time above that of real calls would not be a bound.
    """
    import numpy as np

    call = nothing()
    a = np.ones(8)
    with pinned(usable_cores()[:1]):
        rounds = (time_calls([lambda: call(a, a, a, 1)], watch=watch(alone=True)) for _ in range(CALL_ROUNDS))
        return min(times.median_s for times in rounds)


# ---- levels together ----


def beside_each_other(
    levels: Sequence[Level], team: Sequence[int], buffers: Buffers, effort: Effort, tell: Progress
) -> tuple[Level, ...]:
    """The levels, each cache with its measured rate while lines from farther away pass through it."""
    found = []
    for k, level in enumerate(levels[:-1]):
        tell(k / len(levels), f"{level.name} beside farther levels")
        all_cores, one_core = level.all_cores, level.one_core
        following, behind = measure_pair(_places(levels, 1), k, team[:1], buffers.blocks, effort)
        one_core = replace(one_core, beside=following, beside_far=behind)
        if len(team) > 1:
            following, behind = measure_pair(_places(levels, len(team)), k, team, buffers.blocks, effort)
        all_cores = replace(all_cores, beside=following, beside_far=behind)
        found.append(replace(level, all_cores=all_cores, one_core=one_core))
    return (*found, *levels[-1:])


def _places(levels: Sequence[Level], cores: int) -> list[Place]:
    """The levels as seen by one of `cores` cores."""
    found = []
    for level in levels:
        copies = cores if level.reported is None else min(level.reported.copies, cores)
        width = level.one_core if cores == 1 else level.all_cores
        found.append(Place(level.name, level.kept_bytes(cores) * copies // cores, dict(width.by_pattern)["load"]))
    return found
