"""Predictions against measurements on this computer: every shipped kernel, at sizes from the first cache to memory.

One core is characterized, then every kernel is measured on it as generated (variant `loops`), warm, and predicted
warm: a launch right after another. All runs are in the report, none is left out or repeated until it looks better.

On a computer that others share, the bandwidth of its memory moves by a fifth between minutes. Runs whose data lie in
memory therefore have the streams of the characterization measured again right before and after them; the report gives
both ratios, the one by the machine file and the one by the better of these two. Results are kept kernel by kernel.

What other programs run meanwhile is read from the system. A run beside which they took more than DISTURBED of a core,
or the memory became faster or slower by more than MOVED, is made again, whatever came out of it; the calmest counts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import NamedTuple

from benchmarks.kernels import fresh, shipped
from benchmarks.sizes import accesses_at, is_legal, sizes_for
from benchmarks.validation_report import DISTURBED, STREAMS, Beside, Refusal, Report
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import BandwidthCeiling, Machine
from roofdsl.measure.characterize_cpu import Buffers, Characterization, characterize_cpu, run_sweep, working_sets
from roofdsl.measure.machine_file import machine_text, save_machine, to_machine
from roofdsl.measure.results import Measurement, save
from roofdsl.measure.sweep import bandwidth
from roofdsl.measure.team import FULL
from roofdsl.measure.timing import usable_cores
from roofdsl.predict.kernel import Options
from roofdsl.validate.compare import Comparison
from roofdsl.validate.run import How, Run, compare_all, measure_runs

BEYOND = 8
"""Memory is where so many times the last cache lie, as much as the streams touch by which it is measured: of four times
as much a cache that does not replace strictly the least recently used keeps enough to be seen in copies.
"""

TRIES = 3

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
    folder: Path, names: Sequence[str] = (), quick: bool = False, tell: bool = False, seconds: float = inf
) -> Report:
    """Characterizes one core, measures and compares; machine and results are kept in `folder`.

    Once `seconds` are over no more kernels are begun, and the report says which; FIRST come first.
    """
    begun = time.monotonic()
    found: Characterization = characterize_cpu(quick, 1, None)
    machine = to_machine(found)
    folder.mkdir(parents=True, exist_ok=True)
    save_machine(folder / "machine.roof", machine_text(found))
    session = _Session(found, machine, tell)
    every = shipped()
    for name in [*FIRST, *(n for n in every if n not in FIRST)]:
        if names and name not in names:
            continue
        if time.monotonic() - begun > seconds:
            session.refusals.append(Refusal(name, "", "the time given was over"))
            continue
        session.run(fresh(every[name], name))
        if session.comparisons:
            save(folder / "results.json", [c.measurement for c in session.comparisons])
    taken = time.monotonic() - begun
    return Report(
        machine,
        tuple(session.comparisons),
        tuple(session.refusals),
        taken,
        tuple(session.beside),
        tuple(session.others),
    )


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
    """The runs of one session, on one machine."""

    def __init__(self, found: Characterization, machine: Machine, tell: bool) -> None:
        self.machine, self.tell = machine, tell
        self.streams = MemoryStreams(found)
        self.comparisons: list[Comparison] = []
        self.refusals: list[Refusal] = []
        self.beside: list[tuple[Comparison, Beside]] = []
        self.others: list[tuple[Comparison, float]] = []

    def run(self, kernel: Kernel) -> None:
        """One kernel at all sizes; what cannot be run is a refusal."""
        done: list[dict[str, int]] = []
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

    def _measure(self, kernel: Kernel, sizes: dict[str, int], target: int) -> None:
        machine = self.machine
        in_memory = not machine.caches or target > machine.caches[-1].size_bytes
        tries: list[_Try] = []
        while len(tries) < TRIES and not any(t.calm for t in tries):
            before = self.streams.bytes_per_s() if in_memory else 0.0
            others = Others()
            (run,) = measure_runs([Run(kernel, sizes, "loops")], How(budget_s=1.0))
            busy = others.cores()
            tries.append(_Try(run, busy, before, self.streams.bytes_per_s() if in_memory else 0.0))
        run, busy, before, after = min(tries, key=lambda t: (t.others > DISTURBED, t.moved))
        measured = [run]
        (compared,) = compare_all([kernel], measured, machine)
        self.comparisons.append(compared)
        self.others.append((compared, busy))
        told = f"{kernel.name} {sizes}: {compared.ratio:.2f} of {compared.prediction.bound}"
        if in_memory:
            now = with_memory(machine, max(before, after))
            (by_memory,) = compare_all([kernel], measured, now)
            names = ceilings_beside(machine)
            capped = compare_all([kernel], measured, now, options=Options(ceilings=names)) if names else [None]
            self.beside.append((compared, Beside(by_memory, capped[0], (before, after))))
            told += f", {by_memory.ratio:.2f} by the memory beside it"
        if self.tell:
            print(told, flush=True)


class Others:
    """Processor time that other programs take, from now on."""

    def __init__(self) -> None:
        self.begun, self.before = time.monotonic(), self._seconds()

    @staticmethod
    def _seconds() -> float:
        """Seconds that all cores were busy, less those of this process; 0 where the system does not tell."""
        try:
            with open("/proc/stat", encoding="ascii") as file:
                user, nice, system, _, _, irq, softirq, steal = (int(x) for x in file.readline().split()[1:9])
        except (OSError, ValueError):
            return 0.0
        own = os.times()
        ticks = os.sysconf("SC_CLK_TCK")
        return (user + nice + system + irq + softirq + steal) / ticks - own.user - own.system

    def cores(self) -> float:
        """How many cores they kept busy; the kernel counts in ticks of some 10 ms, so never more than there are."""
        taken = time.monotonic() - self.begun
        busy = max(0.0, self._seconds() - self.before) / taken if taken else 0.0
        return min(busy, float(os.cpu_count() or 1))


def ceilings_beside(machine: Machine) -> tuple[str, ...]:
    """The names of the ceilings that `characterize` writes of caches beside farther levels."""
    caches = {c.name for c in machine.caches}
    return tuple(
        c.name
        for c in machine.ceilings
        if isinstance(c, BandwidthCeiling) and c.level in caches and " beside " in c.name
    )


class MemoryStreams:
    """The streams of a characterization on one core, out of cache, to be measured again at any time."""

    def __init__(self, found: Characterization) -> None:
        self.memory = found.levels[-1].one_core
        sizes = working_sets(found.cpu, 1, 1)
        self.core = usable_cores()[:1]
        self.size = sizes[-1]
        self.buffers = Buffers(self.size + (1 << 16), 1)

    def bytes_per_s(self) -> float:
        """The fastest of them, as the characterization counts."""
        sweep = run_sweep(self.core, [self.size], self.buffers, FULL, lambda part, what: None)
        return bandwidth(sweep.points, self.memory.counts).bytes_per_s


def with_memory(machine: Machine, bytes_per_s: float) -> Machine:
    """The machine with another bandwidth of its main memory."""
    main = replace(machine.main_memory, bandwidth_bytes_per_s=Fraction(bytes_per_s))
    return replace(machine, memories=(main, *machine.memories[1:]))
