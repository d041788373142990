"""Which value each read reads: the exact flow of values of a kernel as integer sets over its loop variables.

An execution of the k-th assignment is a point `S<k>[loop variables]`, which also stands for the value it makes. An
input value is `IN_<array>[subscripts]`. A `let` is merged with the assignments of its own block that use it. Scalars
that are assigned are values like array elements; `in` scalars cost nothing and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import islpy as isl

from roofdsl.checks.execution_order import Use, uses
from roofdsl.lang.record import replace
from roofdsl.loops.accesses import PlacedStatement, operands, statements
from roofdsl.loops.integers import IntExpr
from roofdsl.loops.model import (
    Array,
    Assign,
    Binary,
    Call,
    DataCompare,
    Expr,
    Kernel,
    Let,
    LetRef,
    Select,
    Unary,
)
from roofdsl.sets.by_text import ByText
from roofdsl.sets.cases import Cases
from roofdsl.sets.instances import Encoder, variable
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.sizes import NotAffine

MOST_COUNTS = 1024
"""Counts of sets that are kept for one kernel."""


class NotExact(Exception):
    """The kernel's executions have no exact form as integer sets; the message names the obstacle.

    hard: parameters that would have to be numbers for an exact form.
    """

    def __init__(self, message: str, hard: frozenset[str] = frozenset()) -> None:
        super().__init__(message)
        self.hard = hard


@dataclass(frozen=True)
class Read:
    """One place in the text that reads. values: isl.UnionMap from executions to the values they read there."""

    array: Array
    subscripts: tuple[IntExpr, ...]
    values: Any

    @property
    def text(self) -> str:
        """The read as it appears in a kernel."""
        return f"{self.array.name}[{', '.join(map(str, self.subscripts))}]" if self.subscripts else self.array.name


@dataclass(frozen=True)
class Statement:
    """An assignment: its executions (isl.Set of S<k>), and the distinct places it reads.

    element: isl.Map from executions to the element they write, as `E_<array>[subscripts]`.
    """

    name: str
    placed: PlacedStatement
    domain: Any
    reads: tuple[Read, ...]
    array: Array
    target: tuple[IntExpr, ...]
    element: Any

    @property
    def loops(self) -> tuple[str, ...]:
        """The names of the loop variables, outermost first."""
        return tuple(loop.var for loop in self.placed.loops)


@dataclass(frozen=True)
class Flow:
    """All assignments of a kernel and their reads.

    lets: reads of `let`s. context: isl parameter set. registers: the number of values that may be outside fast memory
    while the kernel runs: operands of the current statement, `let`s and scalars. counts: the numbers of points of sets
    that were counted (`counting.count`), since pairs of statements ask for many of them again.
    """

    kernel: Kernel
    statements: tuple[Statement, ...]
    lets: tuple[Read, ...]
    context: Any
    meaning: Mapping[str, Quasi]
    registers: int
    counts: ByText[Cases] = field(default_factory=lambda: ByText(MOST_COUNTS), compare=False, repr=False)

    def inputs(self) -> dict[str, Any]:
        """The elements of each array that are read as inputs, as isl.Set."""
        found: dict[str, Any] = {}
        for read in (*self.lets, *(r for s in self.statements for r in s.reads)):
            for values in sets(read.values.range()):
                if values.get_tuple_name() == f"IN_{read.array.name}" and read.array.dims:
                    old = found.get(read.array.name)
                    found[read.array.name] = values if old is None else old.union(values)
        return {name: values.coalesce() for name, values in found.items()}


def flow(kernel: Kernel, numbers: Mapping[str, int] | None = None) -> Flow:
    """The flow of values of a kernel without directives. Raises NotExact, and CommandError for index arrays."""
    encoder = Encoder(kernel, numbers)
    placed = list(_inlined(kernel))
    try:
        parts = [_Part(encoder, f"S{k}", p) for k, p in enumerate(placed)]
        lets = [p for p in statements(kernel.body) if isinstance(p.statement, Let)]
        reading = [_Part(encoder, f"L{k}", p) for k, p in enumerate(lets)]
    except NotAffine as error:
        raise NotExact(f"{error} is not affine in loop variables and parameters") from None
    if not encoder.exact:
        names = ", ".join(sorted(encoder.hard)) or "its loops"
        raise NotExact(f"its executions are not affine in {names}", frozenset(encoder.hard))
    context = encoder.make([], []).params()
    written: dict[str, Any] = {}
    for part in parts:
        assert part.target is not None
        name = part.target.array.name
        old = written.get(name, isl.UnionMap("{ }"))
        written[name] = old.union(isl.UnionMap.from_map(part.place(part.target)))
    # An execution reads before it writes: the last component of its time is 0 for the read and 1 for the write. As a
    # reader it has another name (R_...), so that it is not taken for a source of what it reads.
    schedule = isl.UnionMap("{ }")
    width = max((2 * len(p.placed.loops) + 2 for p in (*parts, *reading)), default=2)
    for part in (*parts, *reading):
        schedule = schedule.union(isl.UnionMap.from_map(part.moment(width, "", 1)))
        schedule = schedule.union(isl.UnionMap.from_map(part.moment(width, "R_", 0)))
    found = tuple(part.statement(written, schedule) for part in parts)
    read = tuple(r for part in reading for r in part.reads(written, schedule))
    counts = [len(s.reads) for s in found]
    scalars = sum(1 for a in kernel.arrays if a.is_scalar and a.intent != "in")
    meaning = {f"p_{n}": Quasi.symbol(n) for n in encoder.names}
    distinct = {p.statement.name for p in lets if isinstance(p.statement, Let)}
    return Flow(kernel, found, read, context, meaning, max(counts, default=0) + scalars + len(distinct))


def sets(union: Any) -> list[Any]:
    """The isl.Sets (or isl.Maps) of a union."""
    found: list[Any] = []
    if isinstance(union, isl.UnionMap):
        union.foreach_map(found.append)
    else:
        union.foreach_set(found.append)
    return found


def computed(values: Any) -> Any:
    """The values in a union that statements make, as opposed to inputs."""
    found = isl.UnionSet("{ }")
    for part in sets(values):
        if not part.get_tuple_name().startswith("IN_"):
            found = found.union(isl.UnionSet.from_set(part))
    return found


class _Part:
    """An assignment that will become a Statement; or a `let`, which has no target."""

    def __init__(self, encoder: Encoder, name: str, placed: PlacedStatement) -> None:
        self.encoder, self.name, self.placed = encoder, name, placed
        self.names = {loop.var: variable("x", loop.var) for loop in placed.loops}
        self.variables = list(self.names.values())
        self.domain = encoder.make(self.variables, encoder.domain(placed, "x")).set_tuple_name(name)
        every = uses(placed.statement)
        self.target = every[-1] if isinstance(placed.statement, Assign) else None
        self.read: dict[object, Use] = {}
        for use in every:
            if not use.is_write and (use.array.dims or use.array.intent != "in"):
                self.read.setdefault(use.place, use)

    def place(self, use: Use) -> Any:
        """isl.Map from executions to the element that is accessed."""
        where = [self.encoder.expression(s, self.names) for s in use.subscripts]
        parameters = ", ".join(f"p_{n}" for n in self.encoder.names)
        executions, element = f"{self.name}[{', '.join(self.variables)}]", f"E_{use.array.name}[{', '.join(where)}]"
        return isl.Map(f"[{parameters}] -> {{ {executions} -> {element} }}").intersect_domain(self.domain)

    def moment(self, width: int, prefix: str, last: int) -> Any:
        """isl.Map from executions (with the prefix before their tuple's name) to the time at which they happen."""
        position = self.placed.position
        time = [str(position[0])]
        for loop, place in zip(self.variables, position[1:], strict=True):
            time += [loop, str(place)]
        time += ["0"] * (width - 1 - len(time)) + [str(last)]
        parameters = ", ".join(f"p_{n}" for n in self.encoder.names)
        head = f"{prefix}{self.name}[{', '.join(self.variables)}]"
        return isl.Map(f"[{parameters}] -> {{ {head} -> [{', '.join(time)}] }}")

    def statement(self, written: Mapping[str, Any], schedule: Any) -> Statement:
        assert self.target is not None
        reads = self.reads(written, schedule)
        target = self.target
        return Statement(
            self.name, self.placed, self.domain, reads, target.array, target.subscripts, self.place(target)
        )  # fmt: skip

    def reads(self, written: Mapping[str, Any], schedule: Any) -> tuple[Read, ...]:
        """Its reads with their values."""
        return tuple(Read(u.array, u.subscripts, self._values(u, written, schedule)) for u in self.read.values())

    def _values(self, use: Use, written: Mapping[str, Any], schedule: Any) -> Any:
        place = self.place(use)
        name = use.array.name
        # An array that nothing writes has its input values at every execution.
        if name not in written:
            return isl.UnionMap.from_map(place.set_tuple_name(isl.dim_type.out, f"IN_{name}"))
        sink = place.set_tuple_name(isl.dim_type.in_, f"R_{self.name}")
        # Every source is certain, since the executions are exact: each read has one last write before it, or none, in
        # which case it reads the input.
        info = isl.UnionAccessInfo.from_sink(isl.UnionMap.from_map(sink))
        info = info.set_must_source(written[name]).set_schedule_map(schedule)
        answer = info.compute_flow()
        values = isl.UnionMap("{ }")
        for each in sets(answer.get_must_dependence().reverse()):
            values = values.union(isl.UnionMap.from_map(each.set_tuple_name(isl.dim_type.in_, self.name)))
        for each in sets(answer.get_must_no_source()):
            named = each.set_tuple_name(isl.dim_type.in_, self.name).set_tuple_name(isl.dim_type.out, f"IN_{name}")
            values = values.union(isl.UnionMap.from_map(named))
        return values.coalesce()


# ---- lets ----


def _inlined(kernel: Kernel) -> Iterator[PlacedStatement]:
    """The assignments with the `let`s of their own block substituted, unless an operand of the `let` changes in
    between.

    A `let` that is used in an inner block, or after a change of an operand, is not substituted: it is a value in a
    register.
    """
    known: dict[str, tuple[tuple[int, ...], Expr]] = {}
    for placed in statements(kernel.body):
        block = placed.position[:-1]
        known = {n: (b, e) for n, (b, e) in known.items() if b == block[: len(b)]}
        here = {n: e for n, (b, e) in known.items() if b == block}
        statement = placed.statement
        if isinstance(statement, Let):
            known[statement.name] = (block, with_lets(statement.value, here))
        elif isinstance(statement, Assign):
            yield replace(placed, statement=replace(statement, value=with_lets(statement.value, here)))
            changed = statement.target.array.name
            # From here on, a `let` that read the array holds a value that a read at this place would no longer find.
            known = {n: (b, e) for n, (b, e) in known.items() if all(o.array.name != changed for o in operands(e))}


def with_lets(e: Expr, lets: Mapping[str, Expr]) -> Expr:
    """The expression with the values of these `let`s in place of their names."""
    match e:
        case LetRef(name):
            return lets.get(name, e)
        case Unary():
            return replace(e, operand=with_lets(e.operand, lets))
        case Binary():
            return replace(e, left=with_lets(e.left, lets), right=with_lets(e.right, lets))
        case Call():
            return replace(e, args=tuple(with_lets(a, lets) for a in e.args))
        case Select():
            c: DataCompare = e.condition
            condition = replace(c, left=with_lets(c.left, lets), right=with_lets(c.right, lets))
            yes, no = with_lets(e.if_true, lets), with_lets(e.if_false, lets)
            return replace(e, condition=condition, if_true=yes, if_false=no)
        case _:
            return e
