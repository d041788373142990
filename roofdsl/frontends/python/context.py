"""What is known while a function is followed: names and their values, loops around, statements written so far."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from roofdsl.frontends.free_names import free_name
from roofdsl.frontends.integer_facts import Facts
from roofdsl.frontends.poly import Poly, Quotient
from roofdsl.frontends.python.places import span_of
from roofdsl.frontends.python.types import stored
from roofdsl.frontends.python.values import Buffer, Shape, Value, View, whole_view
from roofdsl.frontends.refuse import Refused
from roofdsl.frontends.whole_steps import Steps, missing
from roofdsl.frontends.writing import Writing
from roofdsl.lang import tree
from roofdsl.lang.record import Record
from roofdsl.lang.source import Source, Span

Key = tuple[object, ...]
BUILT_IN = ("len", "abs", "min", "max", "sum", "float", "int", "pow", "range", "enumerate", "zip", "reversed", "print")


class Again(Exception):
    """The function has to be followed again, with the new entry in `Learnt`."""


class Learnt:
    """The findings of earlier runs over the function. Keys identify variables in every run."""

    def __init__(self) -> None:
        self.sizes: set[str] = set()  # arguments that are used as integers
        self.equal: dict[str, Poly] = {}  # sizes that must be equal to others
        self.types: dict[Key, tuple[str, bool]] = {}  # types of scalars, and whether they give way
        self.data: set[Key] = set()  # integers whose values are not followed
        self.stored: set[Key] = set()  # scalars that are no `let`
        self.homes: dict[Key, Key] = {}  # arrays that replace others of the previous iteration
        self.unused: set[Key] = set()  # arrays that nothing reads or writes
        self.mixed: set[str] = set()  # arguments of Python's type that are used in two types
        self.whole_steps: dict[Steps, ast.AST] = {}  # lengths of loops that are multiples of their steps


class Module(Record):
    """A parsed file: its functions, the full names of what it imports, and its constants.

    unclear: names that mean something else, or whose meaning does not follow from the text.
    """

    source: Source
    functions: dict[str, ast.FunctionDef]
    imported: dict[str, str]
    constants: dict[str, int | float]
    unclear: frozenset[str] = frozenset()
    has_methods: bool = False


class Access(Record):
    """An element that is read."""

    buffer: Buffer
    subscripts: tuple[Poly, ...]


class Let(Record):
    """A scalar named by `let`, in the block where it is visible."""

    value: Value
    block: object


class Carried:
    """An array that has had its name since before the loop; `read`: whether the loop has read it under this name.

    outer: the same for the surrounding loop, if the array has had its name since before that one, too.
    """

    def __init__(self, value: Value, outer: Carried | None = None) -> None:
        self.value, self.outer, self.read = value, outer, False

    def use(self) -> Value:
        """The array, which is read."""
        self.read = True
        if self.outer is not None:
            self.outer.use()
        return self.value


class Frame:
    """A function that is being followed: the values of its names."""

    def __init__(self, node: ast.FunctionDef, path: Key) -> None:
        self.node, self.path = node, path
        self.env: dict[str, Any] = {}
        self.counts = assignments(node)

    def key(self, name: str) -> Key:
        """The key of a variable of the function."""
        return (*self.path, name)


class Context(Writing):
    """The state of one run over a function."""

    def __init__(self, module: Module, learnt: Learnt, words: set[str]) -> None:
        super().__init__()
        self.module, self.learnt = module, learnt
        self.words = words  # names that the file uses for something other than loops
        self.assumed: dict[Poly, ast.AST] = {}  # polynomials in sizes that are not negative
        self.buffers: dict[Key, Buffer] = {}
        self.parameters: dict[str, ast.AST] = {}
        self.unnamed: list[str] = []  # sizes that nobody has named
        self.frames: list[Frame] = []
        self.blocks: list[tuple[object, set[str]]] = [(object(), set())]
        self.inner: set[str] = set()  # names of `let`s and loops ever used
        self.recorded: list[Access] | None = None
        self.written: list[Buffer] = []
        self.path: Key = ()
        self.root: ast.AST | None = None  # the expression whose value gets a name
        self.wish = ""  # that name
        self.exact = True  # whether numpy rounds every operation as the kernel's code does
        self.known: tuple[Poly, ...] = ()  # polynomials in sizes that are not negative here
        self.guarded = 0  # how many `if`s on sizes and loop variables are around
        self.choosing = 0  # how many `if`s on data are around
        self.dry = 0  # in loops that are followed to learn how their integers change
        self.top: ast.AST | None = None  # the call that is all of a statement, which may have effects

    # ---- messages ----

    def span(self, node: ast.AST) -> Span:
        """Where a node stands in the user's file."""
        return span_of(node, self.module.source)

    def refuse(self, code: str, message: str, node: ast.AST, help: str = "") -> NoReturn:
        """Raises Refused."""
        raise Refused(code, message, node, help)

    def learn_size(self, origins: frozenset[str]) -> NoReturn:
        """Records that arguments are integers after all."""
        self.learnt.sizes |= origins
        raise Again

    # ---- names ----

    @property
    def frame(self) -> Frame:
        """The function that is being followed."""
        return self.frames[-1]

    @property
    def by_numba(self) -> bool:
        """Whether numba compiles the function, by its decorator."""
        names = [d.func if isinstance(d, ast.Call) else d for d in self.frames[0].node.decorator_list]
        return any((n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "")) in ("njit", "jit") for n in names)

    def taken(self) -> set[str]:
        """The names that have a meaning everywhere in the kernel."""
        return {b.name for b in self.buffers.values()} | set(self.parameters)

    def inner_name(self, wish: str, *, own: bool = False) -> str:
        """A name for a loop or a `let`, visible in the block that is being written. own: the user chose it."""
        taken = self.taken().union(*(names for _, names in self.blocks))
        name = free_name(wish, taken if own else taken | self.words)
        self.blocks[-1][1].add(name)
        self.inner.add(name)
        return name

    def index_name(self) -> str:
        """The name of a loop over an array's elements."""
        taken = self.taken().union(self.words, *(names for _, names in self.blocks))
        name = next((n for n in "ijklmnopq" if n not in taken), None)
        return self.inner_name(name or "i")

    def buffer(self, key: Key, wish: str, type_: str, dims: Shape, node: ast.AST, *, weak: bool = False) -> Buffer:
        """An array or scalar of the kernel; always the same one for the same place."""
        found = self.buffers.get(key)
        if found is None:
            found = Buffer("", type_, dims, node, place="local", weak=weak)
            taken = self.taken() | self.inner
            own = wish in self.words and free_name(wish, taken) == wish
            found.name = wish if own else free_name(wish, taken | self.words)
            if key in self.learnt.unused:
                found.name = f"@{len(self.buffers)}"
            self.buffers[key] = found
        return found

    def scalar_type(self, key: Key, type_: str, weak: bool) -> tuple[str, bool]:
        """The type of a scalar: the one learnt, or this one."""
        return self.learnt.types.get(key, (type_, weak))

    def wished(self, node: ast.AST, otherwise: str) -> str:
        """The preferred name of an array that an expression makes: that of the variable to which it is assigned."""
        return self.wish if node is self.root and self.wish else otherwise

    # ---- what is read ----

    def element(self, buffer: Buffer, subscripts: Sequence[Poly], span: Span) -> tree.Ref | tree.Index:
        """An element of an array, or a scalar, as it is written."""
        if self.recorded is not None:
            self.recorded.append(Access(buffer, tuple(subscripts)))
        if not buffer.dims:
            return tree.Ref(buffer.name, span)
        return tree.Index(tree.Name(buffer.name, span), tuple(s.tree(span) for s in subscripts), span)

    def read(self, view: View, node: ast.AST) -> Value:
        """The value of a part of an array."""
        span, buffer = self.span(node), view.buffer

        def at(indices: Sequence[Poly]) -> tree.Expr:
            found = self.element(buffer, view.subscripts(indices), span)
            if buffer.type == "bool":
                return tree.Compare(found, (("!=", tree.Number("0", 0, span)),), span)
            return found

        return Value(view.shape, buffer.type, at, weak=buffer.weak, view=view, simple=True)

    def scalar(self, buffer: Buffer, node: ast.AST) -> Value:
        """The value of a scalar of the kernel."""
        return self.read(whole_view(buffer), node)

    # ---- what is written ----

    def emit(self, item: tree.Item) -> None:
        """Writes a statement."""
        self.out.append(item)

    def assign(self, buffer: Buffer, subscripts: Sequence[Poly], op: str, value: tree.Expr, node: ast.AST) -> None:
        """Writes an assignment."""
        span = self.span(node)
        self.written.append(buffer)
        recorded, self.recorded = self.recorded, None
        target = self.element(buffer, subscripts, span)
        self.recorded = recorded
        self.emit(tree.Assign(target, op, value, span))

    @contextmanager
    def visible(self) -> Iterator[None]:
        """Names of loops and `let`s given inside are forgotten at the end."""
        self.blocks.append((object(), set()))
        try:
            yield
        finally:
            self.blocks.pop()

    # ---- integers ----

    def is_size(self, poly: Poly) -> bool:
        """Whether an integer consists of sizes only."""
        return poly.names <= self.parameters.keys()

    def proven(self, poly: Poly) -> bool:
        """Whether an integer is proven to be nonnegative at every iteration, for all sizes that are assumed."""
        if self.facts.not_negative(poly) or self._by_cases(poly):
            return True
        return any(self.facts.not_negative(poly - a) for a in (*self.assumed, *self.known))

    def _by_cases(self, poly: Poly) -> bool:
        """Whether a quotient of a size is shown not to be too large: for the size 1, and for all others."""
        quotients = [a for m in poly.terms for a in m if isinstance(a, Quotient)]
        names = {n for a in quotients for n in a.of.names}
        if len(names) != 1 or not self.is_size(poly):
            return False
        name = min(names)
        ways = (Poly.number(1), Poly.name(name) + 1)
        return all(self.facts.not_negative(poly.put({name: way})) for way in ways)

    def need(self, poly: Poly, node: ast.AST, message: str, help: str = "", code: str = "py-index") -> None:
        """Ensures that an integer is nonnegative, by proof or by an assumption on sizes. Raises Refused.

        An assumption such as bs <= 1, which only the least sizes meet, is refused, too: nobody means it.
        """
        if self.dry or self.proven(poly):
            return
        least = None if self.guarded else self._least(poly)
        if least is None or not self.is_size(least) or Facts().not_negative(-least):
            self._try_whole_steps(poly, node)
            self.refuse(code, message, node, help)
        if not self.proven(least):
            self.assumed[least] = node

    def _try_whole_steps(self, poly: Poly, node: ast.AST) -> None:
        """Raises Again if an integer is nonnegative once the length of a surrounding loop is a multiple of its step, as
        `n % b == 0` says for blocks of b elements.
        """
        steps = None if self.guarded else missing(self.facts, poly)
        if steps and all(self.is_size(p) for pair in steps for p in pair):
            self.learnt.whole_steps.update(dict.fromkeys(steps, node))
            raise Again

    def expect(self, poly: Poly, node: ast.AST, message: str) -> None:
        """Assumes that an integer is nonnegative, if the program would fail otherwise and sizes decide it.

        Raises Refused if it is negative at all sizes. Inside an `if` on sizes or loop variables, nothing is assumed.
        """
        if self.dry or self.proven(poly):
            return
        if self.proven(-poly - 1):
            self.refuse("py-index", message, node, "the program fails here")
        least = self._least(poly)
        if least is None or not self.is_size(least) or self.guarded:
            return
        if Facts().not_negative(-least):
            self._try_whole_steps(poly, node)
        if not Facts().not_negative(-least - 1):
            self.assumed.setdefault(least, node)

    def _least(self, poly: Poly) -> Poly | None:
        """A polynomial in sizes that an integer is never below; None if none is found."""
        if self.is_size(poly):
            return poly
        greatest = self.facts.greatest(-poly)
        return None if greatest is None else -greatest

    def same(self, a: Poly, b: Poly) -> bool:
        """Whether two sizes are equal. Raises Again if one of them has no name and takes the other's."""
        if a == b:
            return True
        difference = a - b
        for name in reversed([n for n in self.unnamed if n in difference.names]):
            parts = difference.split(name)
            if parts is not None and parts[0].value in (1, -1) and self.is_size(parts[1]):
                self.learnt.equal[name] = -parts[1] if parts[0].value == 1 else parts[1]
                raise Again
        return False


def arguments_of(function: ast.FunctionDef) -> list[ast.arg]:
    """The arguments of a function in their order."""
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def assignments(function: ast.FunctionDef) -> dict[str, int]:
    """The number of assignments to each name in the text of a function; its arguments count once."""
    found: dict[str, int] = {a.arg: 1 for a in arguments_of(function)}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found[node.id] = found.get(node.id, 0) + 1
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = found.get(node.target.id, 0) + 1
    return found


def assigned_names(body: Sequence[ast.stmt]) -> dict[str, ast.AST]:
    """The names that statements assign, and the places of the first assignments."""
    found: dict[str, ast.AST] = {}
    for item in body:
        for part in ast.walk(item):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                found.setdefault(part.id, part)
    return found


def storage(buffer: Buffer) -> str:
    """The type with which a buffer is declared."""
    return stored(buffer.type)
