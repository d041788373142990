"""Which `temp` arrays and scalars may have a copy for each iteration of a loop, and which loops that makes independent.

    for i in range(m):
        for j in range(n):
            S[j] = A[i, j] * 2
        for j in range(n):
            B[i, j] = S[n - 1 - j]

No value of S passes from one iteration of i to another: each element that an iteration reads, it has written before.
With a row S for each i, the iterations are independent.

A value is made by the last write before the read. For fixed iterations of the loops around it, one iteration of a loop
is one contiguous interval of the execution. So the last write is in the same iteration if and only if that iteration
writes the element at all before the read (`_is_covered`). No value may leave the loop either (`_stays_inside`), since
no copy outlives it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from roofdsl.checks.dependence_pairs import alike
from roofdsl.checks.execution_order import Earlier, Use, uses, ways_before
from roofdsl.checks.parallel_loops import members_of_loops, outermost, outside_of, parallel_loops, proven
from roofdsl.lang.diagnostics import InputError
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import LoopId, PlacedStatement, statements
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import For, Kernel
from roofdsl.loops.private_loops import Copied, PrivateLoop
from roofdsl.loops.transform import apply
from roofdsl.sets.instances import Encoder, variable
from roofdsl.sets.library import LibraryFailure, TooHard, limited
from roofdsl.sets.sizes import NotAffine
from roofdsl.store.memo import recall

OPERATIONS = 20_000_000
"""Integer-set operations (about ten seconds) for one array in one loop."""


def private_loops(kernel: Kernel) -> dict[LoopId, PrivateLoop]:
    """The loops of the kernel, with its directives applied, that copies make independent, or at a smaller depth than
    without (`parallel_loops`), for all sizes.

    Only the copies that a loop needs are given: without any one of them, its iterations are not proven independent.
    """
    if is_indirect(kernel) or not any(a.intent == "temp" for a in kernel.arrays):
        return {}
    return recall("private_loops", kernel, (), lambda: _private_loops(kernel))


def _private_loops(kernel: Kernel) -> dict[LoopId, PrivateLoop]:
    own, free = private_temps(kernel), parallel_loops(kernel)
    plain = apply(kernel)
    placed = tuple(statements(plain.body))
    members = members_of_loops(placed)
    found: dict[LoopId, PrivateLoop] = {}
    for loop, inside in members.items():
        depth = len(loop) - 1
        before = free.get(loop, len(loop))
        if loop not in own or before == outermost(loop, members):
            continue
        others = {a.name for a in plain.arrays} - own[loop].keys()
        outside = outside_of(loop, members, partial(proven, plain, placed, inside, depth, among=others))
        if outside is not None and outside < before:
            first = alike(placed, inside, tuple(own[loop]))
            unneeded = {n for n in set(first.values()) if proven(plain, placed, inside, depth, outside, among={n})}
            needed = [n for n in own[loop] if first[n] not in unneeded]
            found[loop] = PrivateLoop(outside, tuple(Copied(name, own[loop][name]) for name in needed))
    return found


def private_scalar_loops(kernel: Kernel) -> dict[LoopId, PrivateLoop]:
    """The outermost loops of the kernel, with its directives applied, whose iterations are independent within one
    execution of the loop if each has its own copy of the scalars that the loop sets, for all sizes.

    Loops that are independent without copies (`parallel_loops`), and those inside them, are left out.
    """
    if is_indirect(kernel) or not any(a.intent == "temp" and a.is_scalar for a in kernel.arrays):
        return {}
    return recall("private_scalar_loops", kernel, (), lambda: _private_scalar_loops(kernel))


def _private_scalar_loops(kernel: Kernel) -> dict[LoopId, PrivateLoop]:
    free, plain = parallel_loops(kernel), apply(kernel)
    placed = tuple(statements(plain.body))
    members, used = members_of_loops(placed), tuple(uses(p.statement) for p in placed)
    found: dict[LoopId, PrivateLoop] = {}
    shared: set[LoopId] = set()
    for loop, inside in sorted(members.items(), key=lambda item: len(item[0])):
        if any(loop[:depth] in shared for depth in range(1, len(loop))):
            continue
        depth, writes = len(loop) - 1, {use.array for i in inside for use in used[i] if use.is_write}
        scalars = {array for array in writes if array.is_scalar}
        if not scalars:
            shared |= {loop} & free.keys()
            continue
        if not all(a.intent == "temp" and _is_private(plain, placed, used, loop, a.name) for a in scalars):
            continue
        if proven(plain, placed, inside, depth, depth, among={array.name for array in writes - scalars}):
            copies = tuple(Copied(a.name, ()) for a in plain.arrays if a in scalars)
            found[loop] = PrivateLoop(depth, copies)
            shared.add(loop)
    return found


def _is_private(
    kernel: Kernel,
    placed: tuple[PlacedStatement, ...],
    used: tuple[tuple[Use, ...], ...],
    loop: LoopId,
    name: str,
) -> bool:
    """Whether each iteration of the loop may certainly have its own copy of a `temp`."""
    return _certainly(partial(_Temp(kernel, placed, used, name).is_private, loop))


def private_temps(kernel: Kernel) -> dict[LoopId, dict[str, tuple[int, ...]]]:
    """For each loop of the kernel with its directives applied: the `temp` arrays and scalars that may have a copy for
    each iteration, with the dimensions that a copy needs.

    The other dimensions can be left out: of the elements that differ only in those, an iteration needs one at a time.
    What cannot be decided is left out.
    """
    if is_indirect(kernel):
        return {}
    plain = apply(kernel)
    placed = tuple(statements(plain.body))
    members, used = members_of_loops(placed), tuple(uses(p.statement) for p in placed)
    found: dict[LoopId, dict[str, tuple[int, ...]]] = {}
    for array in plain.arrays:
        if array.intent != "temp":
            continue
        of = _Temp(plain, placed, used, array.name)
        for loop in sorted(members, key=len, reverse=True):
            inner = (*loop, 0)
            if members.get(inner) == members[loop] and array.name in found.get(inner, {}):
                # no statement between the loops: what the inner one's iterations have for themselves, this one's have
                found.setdefault(loop, {})[array.name] = found[inner][array.name]
            elif of.is_used(members[loop]) and _certainly(partial(of.is_private, loop)):
                kept = tuple(range(len(array.dims)))
                for d in range(len(array.dims)):
                    fewer = tuple(k for k in kept if k != d)
                    if _certainly(partial(of.is_enough, loop, fewer)):
                        kept = fewer
                found.setdefault(loop, {})[array.name] = kept
    return found


def _certainly(question: Any) -> bool:
    try:
        with limited("copies of an array", OPERATIONS):
            return bool(question())
    except (LibraryFailure, TooHard, RecursionError, InputError, NotAffine):
        return False


class _Access(Record):
    """A read or write of the array by a statement."""

    placed: PlacedStatement
    use: Use


class _Temp:
    """One `temp` array or scalar, and its reads and writes."""

    def __init__(
        self, kernel: Kernel, placed: tuple[PlacedStatement, ...], used: tuple[tuple[Use, ...], ...], name: str
    ) -> None:
        self.kernel = kernel
        each = [[use for use in own if use.array.name == name] for own in used]
        self.places = {i for i, own in enumerate(each) if own}
        every = [_Access(p, use) for p, own in zip(placed, each, strict=True) for use in own]
        self.reads = [a for a in every if not a.use.is_write]
        self.writes = [a for a in every if a.use.is_write]

    def is_used(self, inside: list[int]) -> bool:
        """Whether one of these statements mentions it."""
        return not self.places.isdisjoint(inside)

    def is_private(self, loop: LoopId) -> bool:
        """Whether each value read in an iteration of the loop was made in it, and no other read needs what it made."""
        inside = [a for a in self.writes if _is_in(a, loop)]
        return all(
            self._is_covered(read, inside, len(loop)) if _is_in(read, loop) else self._stays_inside(read, loop)
            for read in self.reads
        )

    def is_enough(self, loop: LoopId, kept: tuple[int, ...]) -> bool:
        """Whether an iteration still reads the same values if elements that agree in the subscripts `kept` share one
        place: an element that is read was written after all others of that place.
        """
        writes = [a for a in self.writes if _is_in(a, loop)]
        dropped = [d for d in range(len(self.writes[0].use.subscripts)) if d not in kept]
        for read in self.reads:
            if not _is_in(read, loop):
                continue
            for other in writes:
                sets = _Sets(self.kernel, read.placed.loops[: len(loop)])
                same = sets.equal(other, "x", read, "y", kept)
                for way in _ways(other, read, len(loop)):
                    for d in dropped:
                        for sign in "<>":
                            differ = sets.compared(sign, d, (other, "x"), (read, "y"))
                            if not sets.is_overwritten((other, read), way, [*same, differ], writes):
                                return False
        return True

    def _is_covered(self, read: _Access, writes: list[_Access], depth: int) -> bool:
        """Whether, for every execution of the read, one of the writes comes before it in the same iterations of the
        `depth` outermost loops.
        """
        sets = _Sets(self.kernel, read.placed.loops[:depth])
        left = sets.executions([(read, "y")])
        for write in writes:
            for way in _ways(write, read, depth):
                if sets.is_exact(write, len(way.same)):
                    where = [*sets.equal(write, "x", read, "y"), *sets.before(way, "x", "y")]
                    left = left.subtract(sets.last(sets.executions([(write, "x"), (read, "y")], where), read))
        return bool(left.is_empty())

    def _stays_inside(self, read: _Access, loop: LoopId) -> bool:
        """Whether no execution of a read outside the loop gets its value from inside."""
        others = [a for a in self.writes if not _is_in(a, loop)]
        for write in self.writes:
            if not _is_in(write, loop):
                continue
            for way in _ways(write, read, 0):
                sets = _Sets(self.kernel, ())
                same = sets.equal(write, "x", read, "y")
                if not sets.is_overwritten((write, read), way, same, others):
                    return False
        return True


def _is_in(access: _Access, loop: LoopId) -> bool:
    return access.placed.position[: len(loop)] == loop


def _ways(first: _Access, second: _Access, depth: int) -> Iterator[Earlier]:
    """The ways in which one comes before the other in the same iterations of the `depth` outermost loops."""
    return (way for way in ways_before(first.placed, second.placed) if len(way.same) >= depth)


class _Sets:
    """Sets of executions called x, y and z. Those to be covered contain at least what they should; those that cover
    contain at most that (`is_exact`).

    common: the outermost loops, of which all executions are in the same iterations, with the same variables.
    """

    def __init__(self, kernel: Kernel, common: tuple[For, ...]) -> None:
        self.encoder = Encoder(kernel)
        self.common = common
        names = "|".join(loop.var for loop in common)
        self._own = re.compile(rf"\b[xyz](_(?:{names}))\b") if names else None

    def executions(self, named: list[tuple[_Access, str]], where: list[str] | None = None) -> Any:
        """The isl.Set of the loop variables of several executions, in this order, and then of the common loops."""
        dimensions: list[str] = []
        constraints: list[str] = []
        for access, execution in named:
            dimensions += [variable(execution, loop.var) for loop in access.placed.loops[len(self.common) :]]
            constraints += self.encoder.domain(access.placed, execution)
        constraints += where or ()
        if self._own is not None:
            constraints = [self._own.sub(r"c\1", text) for text in constraints]
        dimensions += [variable("c", loop.var) for loop in self.common]
        return self.encoder.make(dimensions, list(dict.fromkeys(constraints)))

    def last(self, found: Any, *kept: _Access) -> Any:
        """Without the loop variables of the other executions: `kept` are the last ones."""
        import islpy as isl

        left = len(self.common) + sum(len(access.placed.loops) - len(self.common) for access in kept)
        return found.project_out(isl.dim_type.set, 0, found.dim(isl.dim_type.set) - left)

    def is_exact(self, access: _Access, same: int) -> bool:
        """Whether `executions` contains only real executions of an access, given that its `same` outermost loops are
        at values of a real execution.
        """
        encoder = Encoder.like(self.encoder)
        encoder.domain(access.placed, "z", steps_known=True)
        return encoder.exact and all(encoder.step(loop) is not None for loop in access.placed.loops[same:])

    def compared(self, sign: str, dimension: int, *sides: tuple[_Access, str]) -> str:
        """How a subscript of one execution compares with that of another. Raises NotAffine."""
        text = []
        for access, execution in sides:
            names = {loop.var: variable(execution, loop.var) for loop in access.placed.loops}
            text.append(self.encoder.expression(access.use.subscripts[dimension], names))
        return f" {sign} ".join(text)

    def equal(self, a: _Access, x: str, b: _Access, y: str, among: tuple[int, ...] | None = None) -> list[str]:
        """The subscripts (those in `among`) are equal. Raises NotAffine."""
        every = range(len(a.use.subscripts)) if among is None else among
        return [self.compared("=", d, (a, x), (b, y)) for d in every]

    def before(self, way: Earlier, first: str, second: str) -> list[str]:
        """One execution comes before the other in this way."""
        text = [f"{variable(first, loop.var)} = {variable(second, loop.var)}" for loop in way.same]
        return [*text, self.encoder.before(way.loop, first, second)] if way.loop is not None else text

    def is_overwritten(
        self, pair: tuple[_Access, _Access], way: Earlier, where: list[str], writes: list[_Access]
    ) -> bool:
        """Whether one of the writes, to the element of y, always comes between two executions x and y.

        way, where: what holds for x and y.
        """
        first, second = pair
        constraints = [*where, *self.before(way, "x", "y")]
        left = self.executions([(first, "x"), (second, "y")], constraints)
        for write in writes:
            if left.is_empty():
                return True
            for after in _ways(first, write, len(self.common)):
                for till in _ways(write, second, len(self.common)):
                    if not self.is_exact(write, max(len(after.same), len(till.same))):
                        continue
                    between = [*self.equal(write, "z", second, "y"), *self.before(after, "x", "z")]
                    between += self.before(till, "z", "y")
                    named = [(write, "z"), (first, "x"), (second, "y")]
                    found = self.executions(named, [*constraints, *between])
                    left = left.subtract(self.last(found, first, second))
        return bool(left.is_empty())
