"""Predictions against measurements on this computer: sets of kernels, at sizes from the first cache to memory.

One core is characterized, then every kernel of the set is measured on it as generated (variant `loops`), warm, and
predicted warm: a launch right after another. All runs are in the report, none is left out or repeated until it looks
better.

On a computer that others share, the bandwidth of its memory moves by a fifth between minutes. Runs whose data lie in
memory therefore have the streams of the characterization measured again right before and after them; the report
predicts these runs by the better of the two. Results are kept kernel by kernel.

The system tells how busy other programs are meanwhile. If they took more than DISTURBED of a core during a run, or the
memory became faster or slower by more than MOVED, or the core was shared during most samples, the run is repeated,
whatever its result; the calmest counts.

A run above the bound is repeated REPEATS times at once. All of these are in the report; the first one counts.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import NamedTuple

from benchmarks.kernel_class import class_of
from benchmarks.sizes import accesses_at, is_legal, sizes_for
from benchmarks.validation_cases import MOST_ACCESSES, SETS, Case
from benchmarks.validation_kept import Origin, Stored, kept_in, machine_in, noted, origin_now, stored_in, with_notes
from benchmarks.validation_runs import DISTURBED, Ran, Refusal, Report, shared
from roofdsl.codegen.math_mode import Math
from roofdsl.counts.traffic_at import footprint_at
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.machine.processor import processor_name
from roofdsl.measure.bandwidth_curve import MANY, PATTERNS, Counts, bandwidth
from roofdsl.measure.bandwidth_sweep import Buffers, run_sweep, working_sets
from roofdsl.measure.characterize_cpu import characterize_cpu
from roofdsl.measure.device import describe_cpu
from roofdsl.measure.machine_file import machine_text, save_machine
from roofdsl.measure.measurement import MATH, Measurement, save
from roofdsl.measure.multicore_timing import FULL
from roofdsl.measure.other_load import Others
from roofdsl.measure.timing import usable_cores
from roofdsl.validate.compare import compare
from roofdsl.validate.run import How, Run, clock_here, compare_all, measure_runs

BEYOND = 8
"""Memory is where so many times the last cache lie, as much as the streams touch by which it is measured: of four times
as much a cache that does not replace strictly the least recently used keeps enough to be seen in copies.
"""

TRIES = 3

REPEATS = 4
"""How often a run above the bound is made again."""

MOVED = 0.1
"""Part by which the bandwidth of memory may differ before and after a calm run."""


def targets(machine: Machine) -> list[int]:
    """Bytes of data: half of what every cache keeps, and BEYOND times the last one."""
    halves = [cache.kept_bytes // 2 for cache in machine.caches]
    return [*halves, BEYOND * machine.caches[-1].size_bytes] if machine.caches else [1 << 28]


def run_all(
    folder: Path,
    names: Sequence[str] = (),
    *,
    of: str = "shipped",
    maths: Sequence[Math] = ("relaxed",),
    machine: Path | None = None,
    quick: bool = False,
    tell: bool = False,
    seconds: float = inf,
    resume: bool = False,
) -> Report:
    """Characterizes one core, measures the kernels of the set `of` and compares; machine and results are kept in
    `folder`.

    maths: what the compiler may do; every run is made with each. machine: a file to take instead of characterizing.
    Once `seconds` are over no more kernels are begun, and the report says which. With `resume` the machine and the
    kernels whose results are in `folder` are taken up, not measured again; without, they are replaced.
    Raises what `stored_in` raises where that cannot be done; CommandError where the machine is another processor's.
    """
    begun = time.monotonic()
    stored = stored_in(folder) if resume else None
    if stored is None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "results.json").unlink(missing_ok=True)  # of another run, with another machine
        text = machine_text(characterize_cpu(quick, 1, None)) if machine is None else _text_of(machine)
        save_machine(folder / "machine.roof", text)
        stored = Stored(machine_in(folder, text), origin_now(text), {})
        if machine is not None and stored.machine.processor != processor_name():
            whose = stored.machine.processor or "an unnamed processor"
            raise CommandError(f"`{machine}` was measured on {whose}, but this computer has {processor_name()}")
    session = _Session(stored, tuple(maths), tell)
    for name, case in SETS[of]().items():
        if names and name not in names and name not in stored.results:
            continue
        if not session.has_all(name) and time.monotonic() - begun > seconds:
            session.refusals.append(Refusal(name, "", "the time limit was reached before"))
            continue
        if session.run(case):
            save(folder / "results.json", [m for own in session.results.values() for m in own])
    return session.report(time.monotonic() - begun)


def _text_of(machine: Path) -> str:
    """Raises CommandError where the file cannot be read."""
    try:
        return machine.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"`{machine}` cannot be read: {error}") from None


def compare_again(folder: Path, names: Sequence[str] = (), *, seconds: float = inf, tell: bool = False) -> Report:
    """The report of the measurements kept in `folder`, with the predictions of the code as it is now.

    The machine is that of the folder's file as it is now. Kernels whose text has changed since are refused. Once
    `seconds` are over, no more are compared. Raises what `kept_in` raises.
    """
    begun = time.monotonic()
    kept = kept_in(folder)
    every = [cases() for cases in SETS.values()]
    runs: list[Ran] = []
    refusals = list(kept.refusals)
    for name, measurements in kept.stored.results.items():
        if names and name not in names:
            continue
        if time.monotonic() - begun > seconds:
            refusals.append(Refusal(name, "", "the time limit was reached before"))
            continue
        known = [cases[name].kernel() for cases in every if name in cases]
        kernel = next((k for k in known if not measurements[0].is_stale(k)), None)
        if kernel is None:
            why = "its text has changed since it was measured" if known else "no kernel has this name now"
            refusals.append(Refusal(name, "", why))
            continue
        for own in _with_repeats(measurements):
            try:
                runs.append(_compared(kernel, own, kept.stored.machine))
            except (CommandError, InputError) as error:
                refusals.append(Refusal(name, _sizes(dict(own[0].parameters)), str(error).split("\n")[0]))
                continue
            if tell:
                print(f"{name} {runs[-1].sizes}: {_told(runs[-1])}", flush=True)
    return Report(kept.stored.machine, tuple(runs), tuple(refusals), notes=kept.notes)


def _with_repeats(measurements: Sequence[Measurement]) -> Iterator[list[Measurement]]:
    """Each first run with its repeats, which are kept right after it."""
    own: list[Measurement] = []
    for m in measurements:
        if own and noted(m).repeat == 0:
            yield own
            own = []
        own.append(m)
    if own:
        yield own


def _compared(kernel: Kernel, measurements: Sequence[Measurement], machine: Machine) -> Ran:
    """A run and its repeats, by the machine, with the memory that was measured beside each."""
    found: list[Ran] = []
    for m in measurements:
        notes = noted(m)
        if found and notes.memory_per_s is None:
            compared = compare(found[0].compared.prediction, m, machine)
        else:
            now = machine if notes.memory_per_s is None else with_memory(machine, max(notes.memory_per_s))
            (compared,) = compare_all([kernel], [m], now)
        found.append(Ran(compared, class_of(kernel), notes.memory_per_s, notes.others))
    return dataclasses.replace(found[0], repeats=tuple(found[1:]))


def _sizes(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{n}={v}" for n, v in sizes.items())


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
        return self.others <= DISTURBED and self.moved <= MOVED and not shared(self.run)


class _Session:
    """The runs of one session, on one machine; `results` are those of each kernel, stored ones among them."""

    def __init__(self, stored: Stored, maths: tuple[Math, ...], tell: bool) -> None:
        self.machine, self.maths, self.tell = stored.machine, maths, tell
        self.origin: Origin = stored.origin
        self.results = {name: list(own) for name, own in stored.results.items()}
        self.streams = MemoryStreams(stored.machine)
        self.runs: list[Ran] = []
        self.refusals: list[Refusal] = []
        self.taken_up = 0

    def report(self, seconds: float) -> Report:
        return Report(self.machine, tuple(self.runs), tuple(self.refusals), seconds, self.taken_up)

    def has_all(self, name: str) -> bool:
        """Whether the kernel's results were stored, with every math mode that is asked for."""
        return {m.details.get(MATH) for m in self.results.get(name, ())} >= set(self.maths)

    def run(self, case: Case) -> bool:
        """One kernel at all sizes; what cannot be run is a refusal. Whether there are results that were not stored."""
        kernel = case.kernel()
        before = len(self.results.get(kernel.name, ()))
        for sizes in self._sizes(kernel, case):
            if not is_legal(kernel, sizes):
                self._refuse(kernel, sizes, "its assumptions do not allow such sizes")
                continue
            if case.sizes is None and (count := accesses_at(kernel, sizes)) > MOST_ACCESSES:
                self._refuse(kernel, sizes, f"{count:.3g} accesses would take too long")
                continue
            for math in self.maths:
                try:
                    self._measure(kernel, sizes, math)
                except (CommandError, InputError) as error:
                    self._refuse(kernel, sizes, str(error).split("\n")[0])
        return len(self.results.get(kernel.name, ())) > before

    def _sizes(self, kernel: Kernel, case: Case) -> list[dict[str, int]]:
        """Those of the case, else those that fill each cache and memory."""
        if case.sizes is not None:
            return [dict(sizes) for sizes in case.sizes]
        found = [sizes_for(kernel, target) for target in targets(self.machine)]
        return [sizes for k, sizes in enumerate(found) if sizes is not None and sizes not in found[:k]]

    def _refuse(self, kernel: Kernel, sizes: Mapping[str, int], why: str) -> None:
        self.refusals.append(Refusal(kernel.name, _sizes(sizes), why))

    def _measure(self, kernel: Kernel, sizes: dict[str, int], math: Math) -> None:
        caches = self.machine.caches
        in_memory = not caches or footprint_at(kernel, sizes) > caches[-1].kept_bytes
        stored = [m for m in self.results.get(kernel.name, ()) if sizes.items() <= dict(m.parameters).items()]
        runs = [m for m in stored if m.details.get(MATH) == math]
        is_stored = bool(runs)
        if not is_stored:
            runs = [self._calmest(kernel, sizes, math, in_memory)]
        ran = _compared(kernel, runs, self.machine)
        if ran.is_above and not is_stored:
            runs += [self._noted(self._once(kernel, sizes, math, in_memory), k + 1) for k in range(REPEATS)]
            ran = _compared(kernel, runs, self.machine)
        self.runs.append(ran)
        if is_stored:
            self.taken_up += 1
        else:
            self.results.setdefault(kernel.name, []).extend(runs)
        if self.tell:
            print(f"{kernel.name} {ran.sizes} {math}: {_told(ran)}{', taken up' if is_stored else ''}", flush=True)

    def _calmest(self, kernel: Kernel, sizes: dict[str, int], math: Math, in_memory: bool) -> Measurement:
        tries: list[_Try] = []
        while len(tries) < TRIES and not any(t.calm for t in tries):
            tries.append(self._once(kernel, sizes, math, in_memory))
        return self._noted(min(tries, key=lambda t: (t.others > DISTURBED, bool(shared(t.run)), t.moved)), 0)

    def _once(self, kernel: Kernel, sizes: dict[str, int], math: Math, in_memory: bool) -> _Try:
        before = self.streams.bytes_per_s() if in_memory else 0.0
        others = Others()
        how = How(budget_s=1.0, math=math, clock_hz=clock_here([self.machine]))
        (run,) = measure_runs([Run(kernel, sizes, "loops")], how)
        busy = others.cores() or 0.0
        return _Try(run, busy, before, self.streams.bytes_per_s() if in_memory else 0.0)

    def _noted(self, done: _Try, repeat: int) -> Measurement:
        memory = (done.before, done.after) if done.before else None
        return with_notes(done.run, self.origin, done.others, memory, repeat)


def _told(ran: Ran) -> str:
    """A run, and its repeats, in a line."""
    expected = "no expected time" if ran.of_expected is None else f"expected/measured {ran.of_expected:.2f}"
    text = f"{expected}, bound/measured {ran.of_bound:.2f} ({ran.compared.prediction.bound})"
    if ran.repeats:
        text += f"; again: {', '.join(f'{again.of_bound:.2f}' for again in ran.repeats)}"
    return text


def memory_counts(machine: Machine) -> Counts:
    """How a characterized machine's memory counts, in the words of its file."""
    if machine.main_memory.duplex:
        return "duplex"
    return "write_allocate" if machine.caches and machine.caches[-1].write_allocate else "no_write_allocate"


class MemoryStreams:
    """The streams of a characterization on one core, out of cache, to be measured again at any time."""

    def __init__(self, machine: Machine) -> None:
        self.counts = memory_counts(machine)
        share = machine.caches[-1].write_allocate if machine.caches else None
        self.allocated = float(share) if isinstance(share, Fraction) else None
        sizes = working_sets(describe_cpu(), 1, 1)
        self.core = usable_cores()[:1]
        self.size = sizes[-1]
        self.buffers = Buffers(self.size + (1 << 16), 1)

    def bytes_per_s(self) -> float:
        """The fastest of them, as the characterization counts."""
        patterns = (*PATTERNS, *MANY)
        sweep = run_sweep(self.core, [self.size], self.buffers, FULL, lambda part, what: None, patterns=patterns)
        return bandwidth(sweep.points, self.counts, with_updates=True, allocated=self.allocated).bytes_per_s


def with_memory(machine: Machine, bytes_per_s: float) -> Machine:
    """The machine with another bandwidth of its main memory."""
    main, rate = machine.main_memory, Fraction(bytes_per_s)
    times, one, typical = rate / main.bandwidth_bytes_per_s, main.one_stream_bytes_per_s, main.typical_bytes_per_s
    one, typical = (None if stated is None else stated * times for stated in (one, typical))
    main = replace(main, bandwidth_bytes_per_s=rate, one_stream_bytes_per_s=one, typical_bytes_per_s=typical)
    return replace(machine, memories=(main, *machine.memories[1:]))
