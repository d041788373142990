"""What is known while a function is read: variables and their values, loops around, statements written so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pycparser import c_ast

from roofdsl.frontends.c.c_types import CType, ctype, element, index_element
from roofdsl.frontends.c.variables import Choice, Pointer, Scopes, State, Unknown, Variable
from roofdsl.frontends.free_names import free_name
from roofdsl.frontends.integer_facts import Facts
from roofdsl.frontends.poly import Poly
from roofdsl.frontends.refuse import Refused
from roofdsl.frontends.whole_steps import Steps
from roofdsl.frontends.writing import Writing
from roofdsl.lang import tree
from roofdsl.lang.record import Record
from roofdsl.lang.source import Span


class Value(Record):
    """A value: `poly` for a known integer, otherwise `expr`. `type` is C's type, `own` the language's.

    `own` is None for numbers, parameters and loop variables, which take the type of the operand they are combined with.
    """

    type: str
    own: str | None
    expr: tree.Expr | None
    poly: Poly | None = None

    def written(self, span: Span) -> tree.Expr:
        """As an expression of the language."""
        if self.poly is not None:
            return self.poly.tree(span)
        assert self.expr is not None
        return self.expr


class Passed(c_ast.Node):  # type: ignore[misc]
    """An expression whose value is known: what an assignment inside another one passes on."""

    __slots__ = ("coord", "value")

    def __init__(self, value: Value, coord: Any) -> None:
        self.value, self.coord = value, coord

    def children(self) -> tuple[Any, ...]:
        return ()


class Access(Record):
    """A use of an element; `facts` hold for the loops around it. guarded: inside an `if` on sizes or loop variables."""

    array: Variable
    subscripts: tuple[Poly, ...]
    facts: Facts
    node: Any
    guarded: bool


class Unit(Record):
    """What an array of structures is an array of in the kernel: elements of one type, `count` for each structure.

    fields: the names of the members of that type, with the first and the last element of each.
    """

    type: str
    count: int
    node: Any
    fields: tuple[tuple[str, int, int], ...]


class Known(Record):
    """A condition of loop variables and sizes.

    `value`: if numbers decide it; `holds`: differences that are >= 0 if it holds; `fails`: differences that are >= 0 if
    it does not hold.
    """

    written: tree.Expr
    value: bool | None
    holds: tuple[Poly, ...] = ()
    fails: tuple[Poly, ...] = ()


class Limit(Record):
    """What the values of an index array are. `kind`: `rises` where element i and the next one are the bounds of a loop,
    `ends` for other bounds of loops, `chooses` for subscripts.

    of: what the limit is named after, which arrays may share: the array that they choose from and its dimension, or the
    first index array.
    """

    kind: str
    of: tuple[object, ...]


class Split(Exception):
    """The statement depends on a known condition, so it has to be written once for each outcome."""

    def __init__(self, place: object, condition: Known) -> None:
        self.place, self.condition = place, condition


class Again(Exception):
    """The function has to be read again, with the new entry in `Learnt`."""


class Learnt:
    """The findings of earlier runs over the function, by the keys of variables."""

    def __init__(self) -> None:
        self.data: set[object] = set()  # integers whose values depend on data
        self.stored: set[object] = set()  # scalars that cannot be a `let`
        self.shapes: dict[object, tuple[Poly, ...]] = {}  # inner dimensions of arrays with linear subscripts
        self.single: set[object] = set()  # pointers that are used for one value only
        self.arrays: set[object] = set()  # pointers to structures that point at more than one
        self.limits: dict[object, Limit] = {}  # of index arrays
        self.indexed: set[object] = set()  # integers that are elements of index arrays
        self.whole_steps: dict[Steps, Any] = {}  # lengths of loops that are multiples of their steps, and why


class Program(Record):
    """A parsed file: functions with bodies, types, the file's variables and `enum`s; `nodes`: all of it, in order.
    `packed`: the lines and columns of structures that attributes or pragmas lay out differently. `originals`: the
    functions before their loops were rewritten, where they were.
    """

    functions: dict[str, Any]
    typedefs: dict[str, Any]
    globals: tuple[Any, ...]
    enums: tuple[Any, ...]
    nodes: tuple[Any, ...]
    packed: frozenset[tuple[int, int]]
    originals: dict[str, Any]


class Context(Writing):
    """The state of one run over one function."""

    def __init__(self, program: Program, learnt: Learnt, spans: Callable[[Any], Span]) -> None:
        super().__init__()
        self.program, self.learnt, self.spans = program, learnt, spans
        self.scopes = Scopes()
        self.env: dict[Variable, State | Value] = {}
        self.sizes: dict[Variable, Poly] = {}  # integers that are never changed: parameters of the kernel
        self.accesses: list[Access] = []
        self.variables: dict[object, Variable] = {}
        self.parameters: dict[str, Span] = {}  # names of integers, in the order of their use
        self.dims: dict[Variable, tuple[Poly | None, ...]] = {}  # None for a dimension that a declaration leaves open
        self.apart: dict[Variable, set[Variable]] = {}  # pointers of the file, and arrays that they may point into
        self.declared: dict[Variable, str] = {}  # arrays and scalars that are used
        self.once: set[tuple[Any, str]] = set()  # members of local structures that one statement of their block sets
        self.members: dict[Variable, dict[str, Variable]] = {}  # of structures that are no elements of arrays
        self.units: dict[Variable, Unit] = {}  # of arrays of structures: what is read and written in them
        self.changing: list[set[str]] = []  # names assigned anywhere in each function being read
        self.lets: dict[Variable, Value] = {}
        self.inner: set[str] = set()  # names of `let`s and loops ever used
        self.active: list[set[str]] = [set()]  # those visible here, by block
        self.choices: dict[object, bool] = {}  # known conditions inside expressions that are decided here
        self.limits: dict[tuple[object, ...], Poly] = {}  # what index arrays rise to, or are below
        self.indexing = False  # elements of integer arrays are read as integers, not as data
        self.calls: list[Any] = []  # the calls whose functions are being inlined
        self.assumed: dict[Poly, Any] = {}  # polynomials in sizes that an `assert` says are not negative
        self.only_asserted: set[str] = set()  # parameters that an `assert` was the first to mention
        self.guarded = 0  # how many `if`s on sizes and loop variables are around
        self.choosing = False  # inside an `if` on data, whose statements are written as one choice
        self.dry = False  # only integers are followed; nothing is written

    # ---- names ----

    def variable(self, name: str, type_: CType, node: Any, place: str) -> Variable:
        """The variable of a declaration; always the same one for the same declaration."""
        if node not in self.variables:
            self.variables[node] = Variable(name, type_, node, place, node)
        return self.variables[node]

    def type_of(self, node: Any) -> CType:
        """The type of a declaration's type node."""
        return ctype(node, self.program.typedefs)

    def member(self, owner: Variable, name: str, type_: CType) -> Variable:
        """The variable of a member of a structure that is no element of an array; `owner` is it, or points at it."""
        known = self.members.setdefault(owner, {})
        if name not in known:
            far = owner.type.pointers and owner.place != "local"
            place = "member" if far or owner.place == "global" else owner.place
            key = (owner.key, name)
            written = f"{owner.name}{'->' if owner.type.pointers else '.'}{name}"
            known[name] = Variable(written, type_, owner.node, place, key, owner=owner, field=name)
        return known[name]

    def named(self, path: str) -> Variable | None:
        """The variable of a name, or of `v.n` for a member of a structure that is a variable itself."""
        first, *fields = path.split(".")
        found = self.scopes.find(first)
        for name in fields:
            found = self.members.get(found, {}).get(name) if found is not None else None
        return found

    def element_of(self, variable: Variable) -> str:
        """The language's type of a scalar, or of the elements of an array. Raises Refused if there is none."""
        if variable in self.units:
            return self.units[variable].type
        if variable.key in self.learnt.limits:
            return index_element(variable.type)
        return element(variable.type, variable.node, variable.name)

    def top_name(self, variable: Variable) -> str:
        """The name of an array, scalar or parameter in the kernel."""
        if variable not in self.declared:
            taken = {*self.declared.values(), *self.parameters, *self.inner}
            self.declared[variable] = free_name(variable.label, taken)
        return self.declared[variable]

    def parameter(self, variable: Variable) -> Poly:
        """A new parameter of the kernel for an integer."""
        return self.new_parameter(variable.label, variable.node)

    def new_parameter(self, wish: str, node: Any) -> Poly:
        """A new parameter of the kernel with a name like `wish`, which `node` is the reason for."""
        name = free_name(wish, {*self.declared.values(), *self.parameters, *self.inner})
        self.parameters[name] = self.spans(node)
        return Poly.name(name)

    def inner_name(self, wish: str) -> str:
        """A name for a `let` or a loop, visible in the block that is being written."""
        taken = {*self.declared.values(), *self.parameters}.union(*self.active)
        name = free_name(wish, taken)
        self.active[-1].add(name)
        self.inner.add(name)
        return name

    def in_c(self, poly: Poly) -> Poly:
        """An integer with the user's own names for members of structures: `v->n` for `v_n`."""
        members = {next(iter(p.names)): Poly.name(v.name) for v, p in self.sizes.items() if v.owner is not None}
        return poly.put(members)

    def is_size(self, poly: Poly) -> bool:
        """Whether an integer consists of parameters of the kernel only."""
        return poly.names <= self.parameters.keys() and not poly.entries

    def learn_whole_steps(self, steps: Sequence[Steps] | None, access: Access) -> None:
        """Raises Again if lengths of loops have to be multiples of their steps so that an access stays in its array.
        Inside an `if` on sizes or loop variables, nothing is assumed.
        """
        if steps and not access.guarded and all(self.is_size(p) for pair in steps for p in pair):
            self.learnt.whole_steps.update(dict.fromkeys(steps, access.node))
            raise Again

    @contextmanager
    def reading(self, *, indexing: bool) -> Iterator[None]:
        """Reads elements of integer arrays as integers (`indexing`), or as data."""
        outer, self.indexing = self.indexing, indexing
        try:
            yield
        finally:
            self.indexing = outer

    # ---- blocks ----

    @contextmanager
    def visible(self) -> Iterator[None]:
        """Names of loops and `let`s given inside are forgotten at the end."""
        self.active.append(set())
        try:
            yield
        finally:
            self.active.pop()

    @contextmanager
    def block(self) -> Iterator[list[tree.Item]]:
        """A block of the kernel: what is written inside goes into its list."""
        with self.visible(), self.collected() as items:
            yield items

    def emit(self, item: tree.Item, node: Any) -> None:
        """Writes a statement."""
        if self.dry:
            raise Refused("c-statement", "this is not integer arithmetic", node)
        self.out.append(item)

    def choice_at(self, node: Any, condition: Known) -> object:
        """What tells a known condition from others, also from the same one in another iteration."""
        return (*map(id, self.calls), id(node), condition.written)

    def chosen(self, node: Any, condition: Known) -> bool:
        """The outcome of a known condition that is currently being written. Raises Split if it is still open."""
        return self.answer(self.choice_at(node, condition), condition)

    def answer(self, place: object, condition: Known) -> bool:
        """The outcome of a known condition, if it is currently being written or proven. Raises Split if it is open."""
        if place in self.choices:
            return self.choices[place]
        for answer, differences in ((True, condition.fails), (False, condition.holds)):
            if any(self.facts.not_negative(-d - 1) for d in differences):
                return answer
        raise Split(place, condition)

    @contextmanager
    def answering(self, place: object, answer: bool) -> Iterator[None]:
        """While statements are written for one answer to a known condition."""
        self.choices[place] = answer
        try:
            yield
        finally:
            del self.choices[place]

    def let(self, wish: str, value: Value, node: Any) -> Value:
        """Names a value at the current place."""
        span = self.spans(node)
        name = self.inner_name(wish)
        self.emit(tree.Let(tree.Name(name, span), value.written(span), span), node)
        return Value(value.type, value.own, tree.Ref(name, span))

    # ---- scalars ----

    def scalar(self, variable: Variable, node: Any) -> Value:
        """The value of a scalar that is kept in the kernel."""
        type_ = element(variable.type, node, variable.name)
        return Value(type_, type_, tree.Ref(self.top_name(variable), self.spans(node)))

    def state(self, variable: Variable) -> State | Value | None:
        """The known state of a variable; a pointer or array that was never changed points at itself. An integer that
        was never set becomes a parameter, unless it is local. None for a scalar that is kept in the kernel. Raises
        Split for one of two states whose condition is open here.
        """
        found = self.env.get(variable)
        while isinstance(found, Choice):
            found = found.iftrue if self.answer(found.place, found.condition) else found.iffalse
        if found is not None:
            return found
        if not variable.type.is_plain:
            return Pointer(variable, (Poly.number(0),))
        if variable.type.is_integer and variable.key not in self.learnt.data:
            if variable.place == "local":
                return Unknown("nothing has been assigned to it")
            if variable not in self.sizes:
                self.sizes[variable] = self.parameter(variable)
            return self.sizes[variable]
        return None
