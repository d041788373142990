"""Everything `roofdsl sol` answers about a program: as one launch, as its launches, and with what stays in a cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from roofdsl.lang.record import Record
from roofdsl.lang.types import TYPES
from roofdsl.loops.program_at_sizes import Launched, ProgramAt, RepeatedAt
from roofdsl.machine.model import Machine
from roofdsl.sol.answer import SpeedOfLight, speed_of_light
from roofdsl.sol.claim import Claim, judge
from roofdsl.sol.fused import Fused, Kind, Known, arrays_of, fused, held_of
from roofdsl.sol.fusing import FusedLaunches, fusions
from roofdsl.sol.passed_on import found_again


class Part(Record):
    """`times` launches of a kernel at one size."""

    times: int
    answer: SpeedOfLight


class Kept(Record):
    """An array that a launch reads while the last cache still holds it from the launch before, which wrote it.

    saved_s: the time that this saves at the memory, over all times that it happens. places: of both launches in
    `ProgramAt.launched`.
    """

    array: str
    writer: str
    reader: str
    bytes: int
    saved_s: Fraction
    places: tuple[int, int]


class ProgramLight(Record):
    """The program as one launch (`fused`), its launches one by one, and arrays that stay in the last cache between two.

    together: the groups of launches that are fused in the best order found; `kept` describes the other launches.
    """

    fused: Fused
    parts: tuple[Part, ...]
    kept: tuple[Kept, ...]
    claim: Claim | None
    together: tuple[FusedLaunches, ...] = ()

    @property
    def launches(self) -> int:
        return sum(part.times for part in self.parts)

    @property
    def launched_s(self) -> Fraction:
        """The least time of the launches one after another, each starting with its data in memory."""
        return sum((part.times * part.answer.floor.time_s for part in self.parts), Fraction(0))

    @property
    def written_s(self) -> Fraction | None:
        """The time of all launches as written, exactly or at most; None if that of one launch was not found."""
        found = [None if p.answer.as_written is None else p.times * p.answer.as_written.bound_s for p in self.parts]
        return None if None in found else sum((t for t in found if t is not None), Fraction(0))

    @property
    def is_at_most(self) -> bool:
        """Whether `written_s` is only an upper bound."""
        return any(part.answer.is_at_most for part in self.parts)

    @property
    def best_s(self) -> Fraction | None:
        """The time of all launches in the best order found: some fused, some with data that stays in the last cache."""
        alone = [None if p.answer.best is None else p.answer.best.time_s for p in self.parts]
        if None in alone:
            return None
        every = sum((p.times * (t or 0) for p, t in zip(self.parts, alone, strict=True)), Fraction(0))
        return every - sum((k.saved_s for k in self.kept), Fraction(0)) - _gain(self.together, alone)


def program_light(
    at: ProgramAt, machine: Machine, measured_s: Fraction | None = None, known: Known | None = None
) -> ProgramLight:
    """The answer for one execution of the program. A claim is judged by the floor of the program as one launch, since
    code may fuse its launches. known: see `fused`. Raises what `fused` and `speed_of_light` raise.
    """
    whole = fused(at, machine, known)
    parts = tuple(Part(p.times, speed_of_light(p.kernel, dict(p.arguments), machine)) for p in at.launched)
    claim = None if measured_s is None else judge(measured_s, whole.floor)
    kept = tuple(_kept(at, parts, machine))
    alone = [None if p.answer.best is None else p.answer.best.time_s for p in parts]
    together = tuple(fusions(at, [p.answer.best for p in parts], machine))
    left = tuple(k for k in kept if _is_still_kept(k, at, together, machine))
    lost = sum((k.saved_s for k in kept), Fraction(0)) - sum((k.saved_s for k in left), Fraction(0))
    if _gain(together, alone) <= lost:
        return ProgramLight(whole, parts, kept, claim)
    return ProgramLight(whole, parts, left, claim, together)


def _gain(together: Iterable[FusedLaunches], alone: Sequence[Fraction | None]) -> Fraction:
    """The seconds by which fused launches are faster than the same launches one after another."""
    return sum(
        (
            g.times * (sum((alone[place] or Fraction(0) for place in g.places), Fraction(0)) - g.time_s)
            for g in together
        ),
        Fraction(0),
    )


def _kept(at: ProgramAt, parts: tuple[Part, ...], machine: Machine) -> Iterator[Kept]:
    """Arrays that one launch passes to the next: both have one of this name, type and number of elements.

    The last cache holds them if everything that both launches touch fits in it.
    """
    cache = machine.last_cache
    if cache is None:
        return
    memory = machine.main_memory
    arrays = [arrays_of(part) for part in at.launched]
    lines = [held_of(part, cache.line_bytes) for part in at.launched]
    held = [sum(of[a.name] for a in own) for own, of in zip(arrays, lines, strict=True)]
    for (first, second), times in _neighbors(at.steps).items():
        written = {(a.name, a.kind): a for a in arrays[first] if a.stores}
        best = parts[second].answer.best
        if held[first] + held[second] > cache.size_bytes * cache.copies or first == second or best is None:
            continue
        passed = [
            (a, again)
            for a in arrays[second]
            if a.loads and (before := written.get((a.name, a.kind))) is not None
            if (again := found_again(at.launched[second], a, [(at.launched[first], before)]))
        ]
        others = max((t for name, t in best.terms if name != memory.name), default=Fraction(0))
        stores = max(sum(a.stores for a in arrays[second]), _stores_as_written(parts[second].answer))
        if memory.duplex:
            others = max(others, Fraction(stores) / memory.bandwidth_bytes_per_s)  # stores move beside the loads
        left = max(Fraction(0), best.time_s - others)  # no saving beyond the longest of the other terms
        for a, bytes_ in passed:
            saved = min(left, Fraction(bytes_) / memory.bandwidth_bytes_per_s)
            left -= saved
            names = at.launched[first].kernel.name, at.launched[second].kernel.name
            yield Kept(a.name, *names, bytes_, times * saved, (first, second))


def _is_still_kept(kept: Kept, at: ProgramAt, together: Iterable[FusedLaunches], machine: Machine) -> bool:
    """Whether a launch still finds an array in the last cache where others are fused. If the writer is fused, all
    launches of its group run before the reader, block by block.
    """
    writer, reader = kept.places
    groups = [group.places for group in together]
    if any(reader in places for places in groups):
        return False
    before = [places for places in groups if writer in places]
    return all(_fit([at.launched[place] for place in (*places, reader)], machine) for places in before)


def _fit(launched: Iterable[Launched], machine: Machine) -> bool:
    """Whether the last cache holds all that these launches touch; arrays of the same name, type and size are one."""
    cache = machine.last_cache
    if cache is None:
        return False
    line = cache.line_bytes or 1
    held: dict[tuple[str, Kind], int] = {}
    for part in launched:
        lines = held_of(part, cache.line_bytes)
        for array in arrays_of(part):
            type_name, elements = array.kind
            key = array.name, array.kind
            whole = -(-TYPES[type_name].bytes * elements // line) * line
            held[key] = min(whole, held.get(key, 0) + lines[array.name])
    return sum(held.values()) <= cache.size_bytes * cache.copies


def _stores_as_written(answer: SpeedOfLight) -> int:
    """The bytes that a launch stores into the memory if its best order is the one as written; else 0."""
    now = answer.as_written
    if now is None or answer.best is None or answer.best.lines or answer.best.text:
        return 0
    return now.memory.stores_bytes or 0


def _neighbors(steps: tuple[int | RepeatedAt, ...]) -> dict[tuple[int, int], int]:
    """How often one launch directly follows another, by their indices (first, second)."""
    found: dict[tuple[int, int], int] = {}

    def walk(part: tuple[int | RepeatedAt, ...], times: int) -> tuple[int, int] | None:
        """Count the pairs in these steps; returns the first and the last launch."""
        ends: tuple[int, int] | None = None
        for step in part:
            if isinstance(step, int):
                own: tuple[int, int] | None = (step, step)
            else:
                own = walk(step.steps, times * step.times)
                if own is not None and step.times > 1:
                    _count(found, (own[1], own[0]), times * (step.times - 1))
            if own is not None:
                if ends is not None:
                    _count(found, (ends[1], own[0]), times)
                ends = (own[0] if ends is None else ends[0], own[1])
        return ends

    walk(steps, 1)
    return found


def _count(found: dict[tuple[int, int], int], key: tuple[int, int], times: int) -> None:
    found[key] = found.get(key, 0) + times
