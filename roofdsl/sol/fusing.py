"""Launches of a program that run as one, block by block, so that what they pass on stays in the last cache.

Consecutive launches may be fused if they begin with the same loops, and if each iteration of these loops touches the
same parts of shared arrays in all of the launches. The fused launch executes a block of iterations of the first launch,
the same block of the second, and so on, and then goes on to the next block; within a launch, the order stays. What a
launch moves for a block is counted as if its data were in memory, except for arrays that an earlier launch wrote in the
same block: the last cache holds everything that a block touches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod

from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.accesses import accesses, statements
from roofdsl.loops.affine import minimum
from roofdsl.loops.integers import Const, Sym, add
from roofdsl.loops.model import Assign, For, Kernel, Let
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.program_at_sizes import Launched, ProgramAt, RepeatedAt
from roofdsl.machine.model import Cache, Machine
from roofdsl.predict.time_model import LAUNCH, LAUNCHES, launch_seconds
from roofdsl.sol.answer import speed_of_light
from roofdsl.sol.fused import Kind, Moved, arrays_of, held_of
from roofdsl.sol.level_times import Times
from roofdsl.sol.passed_on import found_again
from roofdsl.sol.schedule import Schedule

LONGEST = 4
"""The maximum number of launches that are fused into one."""

Place = tuple[tuple[int, int], ...]
"""Pairs of a loop, by its depth, and the dimension of an array whose subscript is that loop's variable."""


class Touch(Record):
    """An access to an array with elements of `bytes`. place: None if it is not known where the loops touch it."""

    name: str
    bytes: int
    kind: Kind
    is_write: bool
    place: Place | None
    shape: tuple[int, ...]
    column_major: bool


class FusedLaunches(Record):
    """Launches (indices into `ProgramAt.launched`) that run as one, `times` times.

    loops: the loops of the first launch whose iterations form the blocks, of which there are `blocks`. arrays: what
    stays in the last cache. terms: the time of one fused launch.
    """

    places: tuple[int, ...]
    times: int
    loops: tuple[str, ...]
    blocks: int
    arrays: tuple[str, ...]
    terms: Times

    @property
    def time_s(self) -> Fraction:
        return max(time for _, time in self.terms)


def fusions(at: ProgramAt, best: Sequence[Schedule | None], machine: Machine) -> list[FusedLaunches]:
    """Disjoint groups of launches that are faster fused than one after the other.

    best: the best order of each launch of `at` alone. A kernel that takes several launches on the machine is not fused.
    """
    if machine.last_cache is None or machine.main_memory.duplex or at.exchanges:
        return []
    once = launch_seconds(machine).at({LAUNCHES: 1})
    alone = [None if one is None or dict(one.terms).get(LAUNCH, once) > once else one.time_s for one in best]
    found = []
    for sequence, times in _sequences(at.steps, 1):
        begin = 0
        while begin < len(sequence):
            group = _longest(at, sequence[begin : begin + LONGEST], alone, machine)
            if group is not None:
                found.append(replace(group, times=times))
            begin += 1 if group is None else len(group.places)
    return found


def _sequences(steps: Sequence[int | RepeatedAt], times: int) -> Iterator[tuple[list[int], int]]:
    """Sequences of consecutive launches, each with how often it is executed."""
    own: list[int] = []
    for step in steps:
        if isinstance(step, int):
            own.append(step)
            continue
        yield own, times
        own = []
        yield from _sequences(step.steps, times * step.times)
    yield own, times


def _longest(
    at: ProgramAt, places: Sequence[int], alone_s: Sequence[Fraction | None], machine: Machine
) -> FusedLaunches | None:
    """The longest group that begins with the first of these launches and is faster fused; None if there is none."""
    for length in range(len(places), 1, -1):
        own = tuple(places[:length])
        alone = [alone_s[place] for place in own]
        group = None if None in alone else _fused(at, own, machine)
        if group is not None and group.time_s < sum((t for t in alone if t is not None), Fraction(0)):
            return group
    return None


def _fused(at: ProgramAt, places: tuple[int, ...], machine: Machine) -> FusedLaunches | None:
    """These launches as one, in blocks that fit in the last cache; None if none fit or it is not known to be legal."""
    launched = [at.launched[place] for place in places]
    nests = [_nest(part) for part in launched]
    most = 0
    while all(len(nest) > most for nest in nests) and len({nest[most][1:] for nest in nests}) == 1:
        most += 1
    deepest = next((depth for depth in range(most, 0, -1) if _same_iterations(launched, nests, depth)), 0)
    for depth in range(1, deepest + 1):
        if any(_depends(part.kernel, nest[:depth]) for part, nest in zip(launched, nests, strict=True)):
            return None
        made = _in_blocks(at, places, nests, depth, machine)
        if made is not None:
            return made
    return None


Loop = tuple[str, int, int, int]
"""The variable, start, stop and step of a loop, as numbers."""


def _nest(part: Launched) -> tuple[Loop, ...]:
    """The loops around everything that a launch does, outermost first."""
    values = dict(part.kernel.constants) | numbers(part.kernel, dict(part.arguments))
    found: list[Loop] = []
    body = () if part.kernel.directives else part.kernel.body
    while len(body) == 1 and isinstance(loop := body[0], For):
        if (loop.start.symbols() | loop.stop.symbols() | loop.step.symbols()) - values.keys():
            break
        start, stop, step = (e.evaluate(values) for e in (loop.start, loop.stop, loop.step))
        found.append((loop.var, start, stop, step))
        body = loop.body
    return tuple(found)


def _depends(kernel: Kernel, nest: Sequence[Loop]) -> bool:
    """Whether the bounds of a loop depend on the variables of these loops."""
    names = {name for name, *_ in nest}
    around = {loop for placed in statements(kernel.body) for loop in placed.loops}
    return any((loop.start.symbols() | loop.stop.symbols()) & names for loop in around)


def _same_iterations(launched: Sequence[Launched], nests: Sequence[Sequence[Loop]], depth: int) -> bool:
    """Whether an element that several launches may share, one of them writing it, is touched by the same iteration of
    the first `depth` loops in all of them.
    """
    touched: dict[Kind, list[tuple[int, Touch]]] = {}
    for number, (part, nest) in enumerate(zip(launched, nests, strict=True)):
        for placed in statements(part.kernel.body):
            if not isinstance(placed.statement, Assign | Let):
                return False
            if isinstance(placed.statement, Assign) and placed.statement.target.array.is_scalar:
                return False  # a sum over all iterations
        for touch in _touches(part, nest, depth):
            touched.setdefault(touch.kind, []).append((number, touch))
    for several in touched.values():
        shared = len({number for number, _ in several}) > 1 and any(touch.is_write for _, touch in several)
        if shared and (
            len({(t.place, t.shape, t.column_major) for _, t in several}) > 1 or several[0][1].place is None
        ):
            return False
    return True


def _touches(part: Launched, nest: Sequence[Loop], depth: int) -> Iterator[Touch]:
    """The accesses of a launch to arrays that exist beyond it, in the first `depth` loops."""
    values = dict(part.kernel.constants) | numbers(part.kernel, dict(part.arguments))
    names = {name: k for k, (name, *_) in enumerate(nest[:depth])}
    for placed in statements(part.kernel.body):
        for access in accesses(placed.statement) if isinstance(placed.statement, Assign | Let) else ():
            array = access.element.array
            if array.intent == "temp" or array.is_scalar:
                continue
            shape = tuple(d.evaluate(values) for d in array.dims)
            where = {
                names[s.name]: k
                for k, s in enumerate(access.element.subscripts)
                if isinstance(s, Sym) and s.name in names
            }
            place = tuple(sorted(where.items())) if len(where) == depth else None
            yield Touch(
                array.name,
                array.type.bytes,
                (array.type.name, prod(shape)),
                access.is_write,
                place,
                shape,
                array.column_major,
            )


def _in_blocks(
    at: ProgramAt, places: tuple[int, ...], nests: Sequence[Sequence[Loop]], depth: int, machine: Machine
) -> FusedLaunches | None:
    """The fused launch, in blocks of as many iterations of the last of `depth` loops as fit in the last cache.

    None if not even one iteration fits, or if no order of a launch is found.
    """
    trips = [max(0, -(-(stop - start) // step)) for _, start, stop, step in nests[0][:depth]]
    launched = [at.launched[place] for place in places]
    cache = machine.last_cache
    if cache is None or not all(trips):
        return None
    together = _that_fit(launched, nests, depth, trips[-1], cache)
    if together == 0:
        return None
    blocks = prod(trips[:-1]) * -(-trips[-1] // together)
    parts = _first(launched, nests, depth, together)
    moved = [arrays_of(part) for part in parts]
    passed = list(_passed(at, places, parts, moved))
    memory = machine.main_memory
    terms: dict[str, Fraction] = {}
    for part in parts:
        try:
            best = speed_of_light(part.kernel, dict(part.arguments), machine).best
        except (CommandError, InputError):
            return None
        if best is None:
            return None
        for name, time in best.terms:
            terms[name] = max(terms.get(name, time), time) if name == LAUNCH else terms.get(name, Fraction(0)) + time
    saved = Fraction(sum(bytes_ for _, bytes_ in passed)) / memory.bandwidth_bytes_per_s
    terms[memory.name] = max(Fraction(0), terms.get(memory.name, Fraction(0)) - saved)
    times = tuple((name, time if name == LAUNCH else time * blocks) for name, time in terms.items())
    names = tuple(dict.fromkeys(name for name, _ in passed))
    return FusedLaunches(places, 1, tuple(name for name, *_ in nests[0][:depth]), blocks, names, times)


def _that_fit(
    launched: Sequence[Launched], nests: Sequence[Sequence[Loop]], depth: int, most: int, cache: Cache
) -> int:
    """The iterations of the last of `depth` loops, at most `most`, whose lines fit in the cache together; 0 if not even
    those of one do.
    """
    room = cache.size_bytes * cache.copies
    once = _held(_first(launched, nests, depth, 1), nests, depth, 1, None)
    together = 0 if once > room else max(1, min(most, room // max(1, once)))
    while together:
        held = _held(_first(launched, nests, depth, together), nests, depth, together, cache.line_bytes)
        if held <= room:
            break
        together = min(together - 1, together * room // held)
    return -(-most // -(-most // together)) if together else 0  # blocks of about the same length


def _held(
    launched: Sequence[Launched],
    nests: Sequence[Sequence[Loop]],
    depth: int,
    together: int,
    line_bytes: int | None,
) -> int:
    """An upper bound of the bytes of the lines (elements, if there are none) that launches touch, which are cut down to
    one block of `together` iterations of the last of `depth` loops.

    Arrays with the same name, type and size are the same. Launches may touch different parts of one: the sum counts,
    but at most the whole array, or the block's part of it if its subscripts are the same loops' everywhere.
    """
    held: dict[tuple[str, Kind], int] = {}
    touches: dict[tuple[str, Kind], set[Touch]] = {}
    for part, nest in zip(launched, nests, strict=True):
        lines = held_of(part, line_bytes)
        for array in arrays_of(part):
            key = array.name, array.kind
            held[key] = held.get(key, 0) + lines[array.name]
        for touch in _touches(part, nest, depth):
            key = touch.name, touch.kind
            touches.setdefault(key, set()).add(replace(touch, is_write=False))
    step = nests[0][depth - 1][3]
    for key, several in touches.items():
        if len(several) == 1 and key in held:
            held[key] = min(held[key], _most_held(next(iter(several)), depth, together, step, line_bytes))
    return sum(held.values())


def _most_held(touch: Touch, depth: int, together: int, step: int, line_bytes: int | None) -> int:
    """The bytes of the lines of all elements that the place of an access allows in one block.

    The elements lie in chunks: each has what is inside of the innermost subscript that is a loop's variable.
    """
    last = len(touch.shape) - 1
    dims = touch.shape[::-1] if touch.column_major else touch.shape
    loops = {last - dim if touch.column_major else dim: loop for loop, dim in touch.place or ()}
    innermost = max(loops, default=-1)
    chunk = prod(dims[innermost + 1 :])
    chunks = prod(length for dim, length in enumerate(dims[: max(0, innermost)]) if dim not in loops)
    if depth - 1 in loops.values():
        if loops[innermost] == depth - 1 and step == 1:
            chunk *= together
        else:
            chunks *= together
    line = line_bytes or touch.bytes
    return chunks * (-(-chunk * touch.bytes // line) + (line > touch.bytes)) * line


def _first(launched: Sequence[Launched], nests: Sequence[Sequence[Loop]], depth: int, together: int) -> list[Launched]:
    """The launches cut down to their first block: the first iteration of each outer loop, and the first `together`
    iterations of the last of `depth` loops.
    """

    def cut(loop: For, own: Sequence[Loop]) -> For:
        inner, many = loop.body[0], (together if len(own) == 1 else 1) * own[0][3]
        body = (cut(inner, own[1:]),) if len(own) > 1 and isinstance(inner, For) else loop.body
        return replace(loop, stop=minimum(loop.stop, add(loop.start, Const(many))), body=body)

    found = []
    for part, nest in zip(launched, nests, strict=True):
        outer = part.kernel.body[0]
        assert isinstance(outer, For)
        found.append(replace(part, kernel=replace(part.kernel, body=(cut(outer, nest[:depth]),)), times=1))
    return found


def _passed(
    at: ProgramAt, places: tuple[int, ...], parts: Sequence[Launched], moved: Sequence[Sequence[Moved]]
) -> Iterator[tuple[str, int]]:
    """Arrays that a launch of the group reads after another one wrote them, with the bytes that need not move.

    What no launch of the group touched before is loaded. A written array need not reach the memory if it is read in the
    group, after it was written, and nowhere else in the program.
    """
    before: dict[tuple[str, object], list[tuple[Launched, Moved]]] = {}
    written: dict[tuple[str, object], Moved] = {}
    outside = {a.kind for k, part in enumerate(at.launched) if k not in places for a in arrays_of(part) if a.loads}
    read: set[tuple[str, object]] = set()
    for part, own in zip(parts, moved, strict=True):
        for array in own:
            key = array.name, array.kind
            again = found_again(part, array, before[key]) if array.loads and key in written else 0
            if again:
                yield array.name, again
                if key not in read and array.kind not in outside:
                    yield array.name, written[key].stores
            if array.loads:  # also before it is written: an update, whose result the next repetition may load
                read.add(key)
        for array in own:
            before.setdefault((array.name, array.kind), []).append((part, array))
        written |= {(a.name, a.kind): a for a in own if a.stores}
