"""Statements as pieces of a partition argument: executions, and the projections that fast memory limits.

A *slot* is a projection of the executions of a piece whose image, for any segment of the run, must be held by that
segment: every point of the image needs an object of its own in fast memory. Objects are values that are read (one
object for each value) and running values: a chain of updates of one place, each made from the one before, is one object
that changes in place. An object gets into fast memory by a load or by being made there. The number made there over the
whole run has an upper bound (`made`), which is subtracted from the loads. Objects of different classes are different.
Projections whose objects may coincide (two reads of one array, `A[i, k] * A[j, k]`) share a class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import islpy as isl

from roofdsl.bounds.counting import count, degree
from roofdsl.bounds.exponents import Space, echelon, null_space
from roofdsl.bounds.flow import Flow, Read, Statement, computed, sets
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import IntExpr
from roofdsl.sets.cases import Cases

MOST_LOOPS = 4
"""Up to this many loops, two pieces are combined in all ways; deeper ones only with their loops as they are."""

Coordinates = tuple[tuple[tuple[int, ...], str], ...]
"""The image's coordinates: coefficients of the loops by position, and the rest as text."""


@dataclass(frozen=True)
class Slot:
    """One projection: the directions it loses, its coordinates, its class of objects, and how its images are counted.

    factor: the image has at most this many points for each object (2 if two placements of the same objects are
    combined).
    """

    text: str
    lost: Space
    coordinates: Coordinates
    group: int
    running: bool
    factor: int = 1


@dataclass(frozen=True)
class Piece:
    """Executions (isl.Set without a name, dimensions by position) with their slots.

    objects: isl.UnionSet of the values each class stands for, by class; made: upper bounds on the objects made on chip.
    chains: isl.UnionMaps from executions to the running values they update, for a piece of one statement. halves: the
    inequality counts each execution twice (a set and its mirror image). finished: for an interval product, its values
    made on chip, which count more than others (`intervals`).
    """

    names: tuple[str, ...]
    loops: tuple[str, ...]
    executions: Any
    size: Cases
    slots: tuple[Slot, ...]
    objects: dict[int, Any]
    made: tuple[Cases, ...]
    chains: tuple[Any, ...]
    halves: bool = False
    finished: Cases | None = None


def pieces(flow: Flow) -> list[Piece]:
    """One piece for each statement to which a partition argument may apply."""
    found = (_piece(flow, statement) for statement in flow.statements)
    return [p for p in found if p is not None]


@dataclass
class _Candidate:
    read: Read
    lost: Space
    coordinates: Coordinates
    running: bool


def _piece(flow: Flow, statement: Statement) -> Piece | None:
    n = len(statement.loops)
    if n < 2:
        return None
    whole = statement.domain
    top = degree(flow, count(flow, whole))
    if top < n:
        return None  # the executions lie on a face: there is nothing of full order to bound
    candidates = [c for read in statement.reads if (c := _candidate(statement, read)) is not None]
    # Values that the kernel makes arrive without a load and are subtracted from the bound. If there were as many of
    # them as executions, nothing would be left of the bound.
    candidates = [
        c for c in candidates if c.running or degree(flow, count(flow, computed(c.read.values.range()))) < top
    ]
    domain, classes = _classes(flow, candidates, whole, top)
    slots: list[Slot] = []
    for candidate, group in zip(candidates, classes, strict=True):
        if not any(s.group == group and s.lost == candidate.lost for s in slots):
            text = candidate.read.text
            slots.append(Slot(text, candidate.lost, candidate.coordinates, group, candidate.running))
    objects: dict[int, Any] = {}
    made: list[Cases] = []
    inside = isl.UnionSet.from_set(domain)
    for candidate, group in zip(candidates, classes, strict=True):
        values = candidate.read.values.intersect_domain(inside).range()
        objects[group] = objects[group].union(values) if group in objects else values
        # A running value that the piece itself made stays the same object; only a value that another statement made
        # starts one.
        born = computed(values.subtract(inside) if candidate.running else values)
        made.append(count(flow, born.coalesce()))
    plain = domain.reset_tuple_id()
    size = count(flow, plain)
    chains = tuple(c.read.values for c in candidates if c.running)
    return Piece((statement.name,), statement.loops, plain, size, tuple(slots), objects, tuple(made), chains)


def _candidate(statement: Statement, read: Read) -> _Candidate | None:
    n = len(statement.loops)
    step = _step(statement, read)
    if step is not None:
        # All executions of a chain share one object: the projection loses the chain's direction.
        rows = null_space([step], n)  # coordinates that do not change along the chain
        return _Candidate(read, null_space(rows, n), _coordinates(statement, read.subscripts) or (), True)
    found = _coordinates(statement, read.subscripts)
    if found is None:
        return None
    lost = null_space([c for c, _ in found], n)
    return _Candidate(read, lost, found, False) if lost else None


def _step(statement: Statement, read: Read) -> tuple[int, ...] | None:
    """The distance between updates of one running value, if `read` reads the place that the statement writes."""
    if read.array.name != statement.array.name or read.subscripts != statement.target:
        return None
    for relation in sets(read.values):
        if relation.get_tuple_name(isl.dim_type.out) == statement.name:
            distances = relation.reverse().set_tuple_name(isl.dim_type.in_, "").set_tuple_name(isl.dim_type.out, "")
            apart = distances.deltas()
            point = [apart.plain_get_val_if_fixed(isl.dim_type.set, i) for i in range(apart.dim(isl.dim_type.set))]
            return None if any(p.is_nan() for p in point) else tuple(p.to_python() for p in point)
    return None


def _coordinates(statement: Statement, subscripts: tuple[IntExpr, ...]) -> Any:
    """The subscripts as coefficients of the loops, or None if they are not affine."""
    found = []
    for subscript in subscripts:
        form = affine(subscript)
        if form.hidden() & set(statement.loops):
            return None
        by = form.coefficients()
        rest = sorted((str(t), c) for t, c in form.terms if str(t) not in statement.loops)
        found.append((tuple(by.get(v, 0) for v in statement.loops), f"{form.constant} {rest}"))
    return tuple(found)


def _classes(flow: Flow, candidates: list[_Candidate], domain: Any, top: int) -> tuple[Any, list[int]]:
    """(the executions that remain, the class of each candidate).

    A few executions are left out if that keeps the objects of two projections apart.
    """
    groups = list(range(len(candidates)))
    for b, second in enumerate(candidates):
        for a, first in enumerate(candidates[:b]):
            inside = isl.UnionSet.from_set(domain)
            sides = [c.read.values.intersect_domain(inside) for c in (first, second)]
            common = sides[0].range().intersect(sides[1].range())
            if common.is_empty():
                continue
            # Two projections of the same objects would have to share the room of one class, which makes the bound
            # lower. If few executions use an object through both, they are left out instead: a bound for fewer
            # executions is valid, too.
            best: Any = None
            for side in sides if groups[a] != groups[b] else ():
                left_out = side.intersect_range(common).domain()
                less = degree(flow, count(flow, left_out))
                if less < top and (best is None or less < best[0]):
                    best = (less, left_out)
            if best is None:
                old, new = groups[b], groups[a]
                groups = [new if g == old else g for g in groups]
                continue
            for part in sets(best[1]):
                domain = domain.subtract(part)
            domain = domain.coalesce()
    return domain, groups


# ---- pieces together ----


def together(flow: Flow, first: Piece, second: Piece) -> list[Piece]:
    """Two pieces combined into one in the same lattice, in all ways to place the second beside the first without
    overlap.

    Their projections must pair off. A pair of one class with equal coordinates has the same objects (an object counts
    once); a pair with other coordinates counts each object at most twice; objects of different classes add up. A piece
    beside its own mirror image (`first is second`) counts each execution twice: |E| <= H / 2. For A[i, k] * A[j, k], i
    > j, that is the argument of Beaumont, Eyraud-Dubois, Verite, Langou (SPAA 2022).
    """
    n = len(first.loops)
    mirror = first is second
    if len(second.loops) != n or len(first.slots) != len(second.slots):
        return []
    found = []
    shared = _shared(first, second)
    for order in permutations(range(n)) if n <= MOST_LOOPS else [tuple(range(n))]:
        if mirror and order == tuple(range(n)):
            continue
        slots, groups = _paired(first, second, [_moved(s, order) for s in second.slots], shared)
        if slots is None:
            continue
        placed = _placed(second.executions, order)
        executions = first.executions
        common = executions.intersect(placed)
        # Pieces that overlap would count executions twice. The common executions of a piece and its mirror image may be
        # left out of both if they are of lower order.
        if not common.is_empty():
            if not mirror or degree(flow, count(flow, common)) >= degree(flow, first.size):
                continue
            executions, placed = executions.subtract(common), placed.subtract(common)
        objects: dict[int, Any] = {}
        for piece, rename in ((first, groups[0]), (second, groups[1])):
            for group, values in piece.objects.items():
                new = rename[group]
                objects[new] = objects[new].union(values) if new in objects else values
        size = count(flow, executions if mirror else executions.union(placed).coalesce())
        names = first.names if mirror else first.names + second.names
        made = first.made if mirror else first.made + second.made
        if mirror and not common.is_empty():  # an omitted execution may make the value that a running value starts from
            made = (*made, *_begun(flow, first, executions, common))
        both = executions if mirror else executions.union(placed)
        found.append(Piece(names, first.loops, both, size, tuple(slots), objects, made, (), mirror))
    return found


def _begun(flow: Flow, piece: Piece, executions: Any, left_out: Any) -> Iterator[Cases]:
    """Running values of `executions` that the omitted executions make."""
    (name,) = piece.names
    kept = isl.UnionSet.from_set(executions.set_tuple_name(name))
    makers = isl.UnionSet.from_set(left_out.set_tuple_name(name))
    for chain in piece.chains:
        yield count(flow, chain.intersect_domain(kept).range().intersect(makers))


def _placed(executions: Any, order: tuple[int, ...]) -> Any:
    """The executions with dimension `order[i]` in place i."""
    names = [f"d{i}" for i in range(len(order))]
    change = isl.Map(f"{{ [{', '.join(names)}] -> [{', '.join(names[o] for o in order)}] }}")
    return executions.apply(change)


def _moved(slot: Slot, order: tuple[int, ...]) -> Slot:
    lost = echelon([[v[o] for o in order] for v in slot.lost])
    coordinates = tuple((tuple(c[o] for o in order), rest) for c, rest in slot.coordinates)
    return replace(slot, lost=lost, coordinates=coordinates)


def _shared(first: Piece, second: Piece) -> set[tuple[int, int]]:
    """The pairs of a class of each piece that have objects in common."""
    if first is second:
        return {(g, g) for g in first.objects}
    return {
        (g, h)
        for g, values in first.objects.items()
        for h, others in second.objects.items()
        if not values.is_disjoint(others)
    }


def _paired(
    first: Piece, second: Piece, moved: list[Slot], shared: set[tuple[int, int]]
) -> tuple[list[Slot] | None, list[dict[int, int]]]:
    """Slots of both, each paired with the other's slot that loses the same directions, or None if they do not pair off;
    and the new names of the classes.

    shared: the pairs of classes with common objects.
    """
    left = list(moved)
    # (0, g) is class g of the first piece, (1, h) class h of the second. Classes with common objects become one, by
    # union and find.
    names: dict[tuple[int, int], tuple[int, int]] = {}

    def root(key: tuple[int, int]) -> tuple[int, int]:
        while key in names:
            key = names[key]
        return key

    def join(a: tuple[int, int], b: tuple[int, int]) -> None:
        if root(a) != root(b):
            names[root(b)] = root(a)

    for g, h in shared:
        join((0, g), (1, h))
    slots: list[Slot] = []
    for slot in first.slots:
        fits = [s for s in left if s.lost == slot.lost]
        if not fits:
            return None, []

        def same(s: Slot, slot: Slot = slot) -> bool:
            return (slot.group, s.group) in shared and not s.running and s.coordinates == slot.coordinates

        other = next((s for s in fits if same(s)), None) or fits[0]
        left.remove(other)
        # One object may be a point of both projections, if these are of one class at different coordinates: x objects
        # then allow 2 x points.
        factor = 1
        if not same(other) and root((0, slot.group)) == root((1, other.group)):
            factor = 2
        join((0, slot.group), (1, other.group))
        slots.append(replace(slot, factor=factor * max(slot.factor, other.factor)))
    number: dict[tuple[int, int], int] = {}

    def called(key: tuple[int, int]) -> int:
        return number.setdefault(root(key), len(number))

    slots = [replace(s, group=called((0, s.group))) for s in slots]
    renames = [{g: called((k, g)) for g in p.objects} for k, p in enumerate((first, second))]
    return slots, renames
