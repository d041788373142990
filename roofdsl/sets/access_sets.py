"""From the checked kernel to integer sets: iteration domains, schedule, and the location of every access.

An access instance is a point of the time space T: textual places and loop counters in turn (docs/rules.md, step S1). A
statement takes a place in its body for each of its references, so references need no dimension of their own. Loops with
steps run over counters (`domains`). For symbolic tile sizes, see `sizes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import islpy as isl

from roofdsl.loops.accesses import PlacedStatement, accesses, statements
from roofdsl.loops.indirect import require_affine
from roofdsl.loops.integers import Const, IntExpr, mul
from roofdsl.loops.model import Array, Count, Element, Kernel
from roofdsl.loops.used_parameters import used_parameters
from roofdsl.sets.domains import LoopDims
from roofdsl.sets.facts import Row
from roofdsl.sets.library import set_of
from roofdsl.sets.sizes import DIGIT, Linear, NotAffine, Pair, Sizes, conjuncts, sizes


@dataclass(frozen=True)
class Reference:
    """One place in the text that accesses an array: its instances, and the location of each.

    domain: isl.Set of T; location: isl.Map from T to the lines (or elements) of `array`. An update counts as one
    reference that reads first and writes (its write always hits). Each instance makes `count` raw accesses of
    `array.type.bytes`.
    """

    array: Array
    element: Element
    reads_first: bool
    writes: bool
    count: int
    domain: Any = field(compare=False)
    location: Any = field(compare=False)


@dataclass(frozen=True)
class Domain:
    """The executions of one statement: an isl.Set of T, at the statement's first place."""

    placed: PlacedStatement
    executions: Any


@dataclass(frozen=True)
class AccessSets:
    """All accesses of a kernel as integer sets.

    context: isl parameter set on which the sets are stated. line_bytes: array name -> bytes of one location.
    rows_aligned: the rows that are assumed to start on line boundaries (symbolic sizes only). make_references: called
    once they are needed, since many questions are about the executions alone.
    """

    kernel: Kernel
    sizes: Sizes
    domains: tuple[Domain, ...]
    make_references: Callable[[], tuple[Reference, ...]] = field(compare=False, repr=False)
    context: Any
    line_bytes: Mapping[str, int]
    rows_aligned: tuple[Row, ...]

    @cached_property
    def references(self) -> tuple[Reference, ...]:
        """Every place in the text that accesses an array, in order."""
        return self.make_references()


def build(kernel: Kernel, numbers: Mapping[str, int], line_bytes: int | None, least: int = 1) -> AccessSets:
    """All accesses of `kernel` (directives applied) with some parameters as `numbers`.

    line_bytes: the line size, or None for lines of one element. least: every isl parameter (a size, its quotient by a
    known factor, a number of tiles) is at least this in the context. Raises NotAffine if a subscript, bound or
    condition has no affine form, and CommandError for a kernel with index arrays.
    """
    return _build(kernel, id(kernel.source), tuple(numbers.items()), line_bytes, least)


@lru_cache(maxsize=32)
def _build(
    kernel: Kernel, source: int, known_numbers: tuple[tuple[str, int], ...], line_bytes: int | None, least: int
) -> AccessSets:
    """`build`, kept: most questions about a kernel begin with the same sets.

    source: the identity of the kernel's text. Equal kernels of other texts have other positions in their source, which
    messages quote.
    """
    numbers = dict(known_numbers)
    require_affine(kernel)
    known = sizes(used_parameters(kernel), kernel.assumptions, numbers)
    return _Builder(kernel, known, line_bytes, least).access_sets()


class _Builder:
    def __init__(self, kernel: Kernel, known: Sizes, line_bytes: int | None, least: int) -> None:
        self.kernel, self.sizes, self.line, self.least = kernel, known, line_bytes, least
        self.placed = tuple(statements(kernel.body))
        self.loops = LoopDims(known, self.placed)
        self.rows_aligned: list[Row] = []

    # ---- statements ----

    def access_sets(self) -> AccessSets:
        rows: list[tuple[PlacedStatement, list[str], dict[str, Pair], list[str]]] = []
        places = _places(self.placed)
        for placed in self.placed:
            variables, constraints, dims = self.loops.domain(placed)
            time: list[str] = [str(places[placed.position[:1]])]
            for depth, dim in enumerate(dims):
                time += [*dim.names, str(places[placed.position[: depth + 2]])]
            rows.append((placed, time, variables, constraints))
        width = max((len(time) for _, time, _, _ in rows), default=1)
        points = [_instances(placed, time, width) for placed, time, _, _ in rows]
        texts = [t for each in points for t in each]
        # A place that is the same for every access does not affect the order, and one dimension less makes every count
        # cheaper.
        keep = [c for c in range(width) if len({t[c] for t in texts}) > 1 or any(not _is_number(t[c]) for t in texts)]
        head = f"[{', '.join(self.sizes.parameter_names())}] -> "
        domains: list[Domain] = []
        located: list[_Located] = []
        for (placed, _, variables, constraints), instances in zip(rows, points, strict=True):
            times = [f"T[{', '.join(t[c] for c in keep)}]" for t in instances]
            where = " and ".join(constraints) or "true"
            # The executions do not depend on the size of lines, and parsing them takes half of the time.
            executions = set_of(f"{head}{{ {times[0]} : {where} }}")
            domains.append(Domain(placed, executions))
            if isinstance(placed.statement, Count):
                continue
            differs = [c for c, column in enumerate(keep) if len({t[column] for t in instances}) > 1]
            for instance, point, access in zip(instances, times, _merged(placed), strict=False):
                target, more = self._location(access[0], variables)
                text = f"{head}{{ {point} -> {target}{' : ' * bool(more)}{' and '.join(more)} }}"
                located.append((access, text, executions, {c: int(instance[keep[c]]) for c in differs}))
        context = self._context(head)
        return AccessSets(
            self.kernel,
            self.sizes,
            tuple(Domain(d.placed, d.executions.intersect_params(context)) for d in domains),
            lambda: tuple(_reference(each, context) for each in located),
            context,
            {a.name: self.line or a.type.bytes for a in self.kernel.arrays},
            tuple(dict.fromkeys(self.rows_aligned)),
        )

    def _context(self, head: str) -> Any:
        conditions = [f"{p} >= {self.least}" for p in self.sizes.parameter_names()]
        conditions += [f"P_{b} >= {least}" for b, least in self.sizes.least_tile.items()]
        context = isl.Set(f"{head}{{ : {' and '.join(conditions) or 'true'} }}")
        for assumption in conjuncts(self.kernel.assumptions):
            for world in [None, *sorted({b for _, b in self.sizes.tiled})]:
                try:
                    text = self.loops.condition(assumption, {}, world)
                except NotAffine:
                    continue  # an assumption that is not affine restricts nothing here
                context = context.intersect(isl.Set(f"{head}{{ : {text} }}"))
        return context

    # ---- locations ----

    def _location(self, element: Element, variables: dict[str, Pair]) -> tuple[str, list[str]]:
        array = element.array
        subscripts: list[Pair] = [
            self.sizes.value(s, variables, self.loops.dim_worlds.get((array.name, d)))
            for d, s in enumerate(element.subscripts)
        ]
        extents = list(array.dims)
        if array.column_major:
            subscripts.reverse()
            extents.reverse()
        per_line = (self.line or array.type.bytes) // array.type.bytes
        if per_line > 1:
            subscripts = self._in_lines(array, subscripts, extents, per_line)
        out: list[str] = []
        more: list[str] = []
        for d, s in enumerate(subscripts):
            if s.tile is None:
                out.append(str(s.low))
            elif _is_digit(s.low):
                out += [str(s.high), str(s.low)]
            else:
                # The low part may lie outside 0..b - 1, by as many tiles as `reach` says; these are carried into the
                # high part.
                out += [f"h{d}", f"l{d}"]
                below, above = self.sizes.reach(s.low, s.tile)
                b = f"P_{s.tile}"
                cases = [
                    f"(h{d} = {s.high} + {q} and l{d} = {s.low} - {q}*{b} and 0 <= l{d} < {b})"
                    for q in range(-below, above)
                ]
                more.append("(" + " or ".join(cases) + ")")
        return f"A_{array.name}[{', '.join(out)}]", more

    def _in_lines(self, array: Array, subscripts: list[Pair], extents: list[IntExpr], per_line: int) -> list[Pair]:
        """The subscripts with the last one counted in lines; rows are joined if their length is a number."""
        while len(subscripts) > 1:
            # Rows that are not a whole number of lines long begin anywhere in a line. If the length is a number, they
            # are placed end to end, as in memory. Otherwise, this would need a product of a size and a loop variable,
            # which the library does not support, and rows are assumed to begin on lines.
            length = self.sizes.value(extents[-1], {}, None)
            if length.low.terms or subscripts[-1].tile or subscripts[-2].tile:
                if not all(c % per_line == 0 for _, c in length.low.terms) or length.low.constant % per_line:
                    self.rows_aligned.append(Row(array.name, extents[-1], per_line))
                break
            if length.low.constant % per_line == 0:
                break
            # The outermost extent is never asked for: 0 takes its place.
            extents = (
                [*extents[:-2], Const(0)]
                if len(extents) < 3
                else [*extents[:-2], mul(extents[-2], Const(length.low.constant))]
            )
            folded = subscripts[-2].scaled(length.low.constant) + subscripts[-1]
            subscripts = [*subscripts[:-2], folded]
        last = subscripts[-1]
        if last.tile is not None:
            advice = f"`--set {last.tile}=16` makes it known"
            raise NotAffine(f"the lines of {array.name} are cut by tiles of unknown size ({advice})")
        if not last.low.terms:
            return [*subscripts[:-1], Pair(Linear.of({}, last.low.constant // per_line))]
        return [*subscripts[:-1], Pair(Linear.of({f"floor({last.low}/{per_line})": 1}))]


_Located = tuple[tuple[Element, bool, bool, int], str, Any, dict[int, int]]
"""An access (`_merged`), the text of the map to its locations without the conditions of its executions, these, and the
numbers in the dimensions in which the access differs from them.
"""


def _reference(located: _Located, context: Any) -> Reference:
    (element, reads_first, writes, count), text, executions, places = located
    # Reading the conditions of the executions again for every access would take most of the time.
    location = isl.Map(text).intersect_domain(_at(executions, places)).intersect_params(context).coalesce()
    domain = location.domain().coalesce()
    return Reference(element.array, element, reads_first, writes, count, domain, location)


def _at(executions: Any, places: Mapping[int, int]) -> Any:
    """The executions with other numbers in the dimensions of `places`, in each of which they had a single number."""
    name = executions.get_tuple_name()
    for dimension, place in places.items():
        executions = executions.project_out(isl.dim_type.set, dimension, 1).insert_dims(isl.dim_type.set, dimension, 1)
        executions = executions.fix_val(isl.dim_type.set, dimension, place)
    return executions.set_tuple_name(name)


def _is_digit(low: Linear) -> bool:
    """Whether the low part is 0 or a single digit, so that it lies in 0..b-1."""
    if low == Linear(()):
        return True
    return low.constant == 0 and len(low.terms) == 1 and low.terms[0][1] == 1 and low.terms[0][0].endswith(DIGIT)


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdigit()


def _places(placed: tuple[PlacedStatement, ...]) -> dict[tuple[int, ...], int]:
    """The place of every loop and statement in its body; a statement takes one for each reference, and at least one."""
    room: dict[tuple[int, ...], int] = {}
    for each in placed:
        for depth in range(len(each.loops)):
            room[each.position[: depth + 1]] = 1
        room[each.position] = max(1, len(_merged(each)))
    found: dict[tuple[int, ...], int] = {}
    following: dict[tuple[int, ...], int] = {}
    for position in sorted(room):
        body = position[:-1]
        found[position] = following.get(body, 0)
        following[body] = found[position] + room[position]
    return found


def _instances(placed: PlacedStatement, time: list[str], width: int) -> list[list[str]]:
    """The point of each reference of a statement, at least one, all of the same width."""
    tail = ["0"] * (width - len(time))
    first = int(time[-1])
    return [[*time[:-1], str(first + k), *tail] for k in range(max(1, len(_merged(placed))))]


def _merged(placed: PlacedStatement) -> list[tuple[Element, bool, bool, int]]:
    """(element, begins with a read, writes, raw accesses): consecutive accesses to one element are one reference.

    An access right after another one to the same element always hits, in any cache.
    """
    if isinstance(placed.statement, Count):
        return []
    out: list[tuple[Element, bool, bool, int]] = []
    for a in accesses(placed.statement):
        if out and out[-1][0] == a.element:
            element, reads_first, writes, count = out[-1]
            out[-1] = (element, reads_first, writes or a.is_write, count + 1)
        else:
            out.append((a.element, not a.is_write, a.is_write, 1))
    return out
