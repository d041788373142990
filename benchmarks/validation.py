"""Predictions against measurements on this computer: every shipped kernel, at sizes from the first cache to memory.

One core is characterized, then every kernel is measured on it as generated (variant `loops`), warm, and predicted
warm: a launch right after another. All runs are in the report, none is left out or repeated until it looks better.

On a computer that others share, the bandwidth of its memory moves by a fifth between minutes. Runs whose data lie in
memory therefore have the streams of the characterization measured again right before and after them; the report gives
both ratios, the one by the machine file and the one by the better of these two. Results are kept kernel by kernel.

What other programs run meanwhile is read from the system. A run beside which they took more than DISTURBED of a core,
or the memory became faster or slower by more than MOVED, is made again, whatever came out of it; the calmest counts.

A run above the roof is made REPEATS times more at once. All of these are in the report; the first one counts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import NamedTuple

from benchmarks.kernels import fresh, shipped
from benchmarks.sizes import accesses_at, is_legal, sizes_for
from benchmarks.validation_kept import Origin, Stored, noted, origin_now, stored_in, with_notes
from benchmarks.validation_report import DISTURBED, STREAMS, Beside, Refusal, Report, is_above
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import BandwidthCeiling, Machine
from roofdsl.measure.bandwidth_curve import Counts, bandwidth
from roofdsl.measure.characterize_cpu import Buffers, characterize_cpu, run_sweep, working_sets
from roofdsl.measure.device import describe_cpu
from roofdsl.measure.machine_file import machine_text, save_machine, to_machine
from roofdsl.measure.measurement import Measurement, save
from roofdsl.measure.multicore_timing import FULL
from roofdsl.measure.other_load import Others
from roofdsl.measure.timing import usable_cores
from roofdsl.predict.kernel import Options
from roofdsl.validate.compare import Comparison
from roofdsl.validate.run import How, Run, compare_all, measure_runs

BEYOND = 8
"""Memory is where so many times the last cache lie, as much as the streams touch by which it is measured: of four times
as much a cache that does not replace strictly the least recently used keeps enough to be seen in copies.
"""

TRIES = 3

REPEATS = 4
"""How often a run above the roof is made again."""

MOVED = 0.1
"""Part by which the bandwidth of memory may differ before and after a calm run."""

MOST_ACCESSES = 300_000_000
"""Of one launch: more would take too long to verify and to repeat."""

FIRST = (
    *STREAMS,
    "matmul",
    "matmul_blocked",
    "minplus",
    "jacobi3d",
    "stencil27",
    "transpose",
    "trsv",
    "lu",
    "cholesky",
    "dot",
    "dot_bf16",
)
"""Kernels that are run before the others, which may be left out for want of time."""


def targets(machine: Machine) -> list[int]:
    """Bytes of data: half of every cache, and BEYOND times the last one."""
    halves = [cache.size_bytes // 2 for cache in machine.caches]
    return [*halves, BEYOND * machine.caches[-1].size_bytes] if machine.caches else [1 << 28]


def run_all(
    folder: Path,
    names: Sequence[str] = (),
    *,
    quick: bool = False,
    tell: bool = False,
    seconds: float = inf,
    resume: bool = False,
) -> Report:
    """Characterizes one core, measures and compares; machine and results are kept in `folder`.

    Once `seconds` are over no more kernels are begun, and the report says which; FIRST come first. With `resume` the
    machine and the kernels whose results are in `folder` are taken up, not measured again; without, they are replaced.
    Raises what `stored_in` raises where that cannot be done.
    """
    begun = time.monotonic()
    stored = stored_in(folder) if resume else None
    if stored is None:
        found = characterize_cpu(quick, 1, None)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "results.json").unlink(missing_ok=True)  # of another run, with another machine
        text = machine_text(found)
        save_machine(folder / "machine.roof", text)
        stored = Stored(to_machine(found), origin_now(text), {})
    session = _Session(stored, tell)
    every = shipped()
    for name in [*FIRST, *(n for n in every if n not in FIRST)]:
        is_stored = name in stored.results
        if names and name not in names and not is_stored:
            continue
        if not is_stored and time.monotonic() - begun > seconds:
            session.refusals.append(Refusal(name, "", "the time given was over"))
            continue
        if session.run(fresh(every[name], name)):
            save(folder / "results.json", [m for own in session.results.values() for m in own])
    return session.report(time.monotonic() - begun)


class _Try(NamedTuple):
    """One measurement: cores that others kept busy, and the bandwidth of memory before and after (0 in caches)."""

    run: Measurement
    others: float
    before: float
    after: float

    @property
    def moved(self) -> float:
        """By how much the memory's bandwidth moved meanwhile."""
        return abs(self.after - self.before) / max(self.after, self.before) if self.before else 0.0

    @property
    def calm(self) -> bool:
        return self.others <= DISTURBED and self.moved <= MOVED


class _Session:
    """The runs of one session, on one machine; `results` are those of each kernel, stored ones among them."""

    def __init__(self, stored: Stored, tell: bool) -> None:
        self.machine, self.tell = stored.machine, tell
        self.origin: Origin = stored.origin
        self.results = {name: list(own) for name, own in stored.results.items()}
        self.streams = MemoryStreams(stored.machine)
        self.comparisons: list[Comparison] = []
        self.refusals: list[Refusal] = []
        self.beside: list[tuple[Comparison, Beside]] = []
        self.others: list[tuple[Comparison, float]] = []
        self.repeats: list[tuple[Comparison, tuple[Comparison, ...]]] = []
        self.taken_up = 0

    def report(self, seconds: float) -> Report:
        return Report(
            self.machine,
            tuple(self.comparisons),
            tuple(self.refusals),
            seconds,
            tuple(self.beside),
            tuple(self.others),
            tuple(self.repeats),
            self.taken_up,
        )

    def run(self, kernel: Kernel) -> bool:
        """One kernel at all sizes; what cannot be run is a refusal. Whether there are results that were not stored."""
        done: list[dict[str, int]] = []
        before = len(self.results.get(kernel.name, ()))
        for target in targets(self.machine):
            sizes = sizes_for(kernel, target)
            if sizes is None or sizes in done:
                continue
            done.append(sizes)
            text = ", ".join(f"{n}={v}" for n, v in sizes.items())
            if not is_legal(kernel, sizes):
                self.refusals.append(Refusal(kernel.name, text, "its assumptions do not allow such sizes"))
                continue
            if (count := accesses_at(kernel, sizes)) > MOST_ACCESSES:
                self.refusals.append(Refusal(kernel.name, text, f"{count:.3g} accesses would take too long"))
                continue
            try:
                self._measure(kernel, sizes, target)
            except (CommandError, InputError) as error:
                self.refusals.append(Refusal(kernel.name, text, str(error).split("\n")[0]))
        return len(self.results.get(kernel.name, ())) > before

    def _measure(self, kernel: Kernel, sizes: dict[str, int], target: int) -> None:
        in_memory = not self.machine.caches or target > self.machine.caches[-1].size_bytes
        runs = [m for m in self.results.get(kernel.name, ()) if sizes.items() <= dict(m.parameters).items()]
        is_stored = bool(runs)
        if not is_stored:
            runs = [self._calmest(kernel, sizes, in_memory)]
        first = self._compare(kernel, runs[0])
        if is_above(first.fair_ratio) and not is_stored:
            runs += [self._noted(self._once(kernel, sizes, in_memory), k + 1) for k in range(REPEATS)]
        found = [first, *(self._compare(kernel, m) for m in runs[1:])]
        self.comparisons.append(first.compared)
        if found[1:]:
            self.repeats.append((first.compared, tuple(f.compared for f in found[1:])))
        self.beside += [(f.compared, f.beside) for f in found if f.beside is not None]
        self.others += [(f.compared, f.others) for f in found]
        if is_stored:
            self.taken_up += 1
        else:
            self.results.setdefault(kernel.name, []).extend(runs)
        if self.tell:
            print(f"{kernel.name} {sizes}: {_told(found)}{', taken up' if is_stored else ''}", flush=True)

    def _calmest(self, kernel: Kernel, sizes: dict[str, int], in_memory: bool) -> Measurement:
        tries: list[_Try] = []
        while len(tries) < TRIES and not any(t.calm for t in tries):
            tries.append(self._once(kernel, sizes, in_memory))
        return self._noted(min(tries, key=lambda t: (t.others > DISTURBED, t.moved)), 0)

    def _once(self, kernel: Kernel, sizes: dict[str, int], in_memory: bool) -> _Try:
        before = self.streams.bytes_per_s() if in_memory else 0.0
        others = Others()
        (run,) = measure_runs([Run(kernel, sizes, "loops")], How(budget_s=1.0))
        busy = others.cores() or 0.0
        return _Try(run, busy, before, self.streams.bytes_per_s() if in_memory else 0.0)

    def _noted(self, done: _Try, repeat: int) -> Measurement:
        memory = (done.before, done.after) if done.before else None
        return with_notes(done.run, self.origin, done.others, memory, repeat)

    def _compare(self, kernel: Kernel, run: Measurement) -> _Found:
        """By the machine, and by the memory beside it where that was measured."""
        notes = noted(run)
        (compared,) = compare_all([kernel], [run], self.machine)
        if notes.memory_per_s is None:
            return _Found(compared, None, notes.others)
        now = with_memory(self.machine, max(notes.memory_per_s))
        (by_memory,) = compare_all([kernel], [run], now)
        names = ceilings_beside(self.machine)
        capped = compare_all([kernel], [run], now, options=Options(ceilings=names)) if names else [None]
        return _Found(compared, Beside(by_memory, capped[0], notes.memory_per_s), notes.others)


class _Found(NamedTuple):
    """One measurement beside its predictions, and the cores that others kept busy meanwhile."""

    compared: Comparison
    beside: Beside | None
    others: float

    @property
    def fair_ratio(self) -> float:
        return self.compared.ratio if self.beside is None else self.beside.by_memory.ratio


def _told(found: Sequence[_Found]) -> str:
    """A run, and its repeats, in a line."""
    first = found[0]
    text = f"{first.compared.ratio:.2f} of {first.compared.prediction.bound}"
    if first.beside is not None:
        text += f", {first.fair_ratio:.2f} by the memory beside it"
    if found[1:]:
        text += f"; again: {', '.join(f'{f.fair_ratio:.2f}' for f in found[1:])}"
    return text


def ceilings_beside(machine: Machine) -> tuple[str, ...]:
    """The names of the ceilings that `characterize` writes of caches beside farther levels."""
    caches = {c.name for c in machine.caches}
    return tuple(
        c.name
        for c in machine.ceilings
        if isinstance(c, BandwidthCeiling) and c.level in caches and " beside " in c.name
    )


def memory_counts(machine: Machine) -> Counts:
    """How a characterized machine's memory counts, in the words of its file."""
    if machine.main_memory.duplex:
        return "duplex"
    return "write_allocate" if machine.caches and machine.caches[-1].write_allocate else "no_write_allocate"


class MemoryStreams:
    """The streams of a characterization on one core, out of cache, to be measured again at any time."""

    def __init__(self, machine: Machine) -> None:
        self.counts = memory_counts(machine)
        sizes = working_sets(describe_cpu(), 1, 1)
        self.core = usable_cores()[:1]
        self.size = sizes[-1]
        self.buffers = Buffers(self.size + (1 << 16), 1)

    def bytes_per_s(self) -> float:
        """The fastest of them, as the characterization counts."""
        sweep = run_sweep(self.core, [self.size], self.buffers, FULL, lambda part, what: None)
        return bandwidth(sweep.points, self.counts).bytes_per_s


def with_memory(machine: Machine, bytes_per_s: float) -> Machine:
    """The machine with another bandwidth of its main memory."""
    main = replace(machine.main_memory, bandwidth_bytes_per_s=Fraction(bytes_per_s))
    return replace(machine, memories=(main, *machine.memories[1:]))
