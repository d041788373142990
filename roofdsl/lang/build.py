"""From lark's tree to the syntax tree: one method for each rule, named like it, and one for most lines of machines."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

from lark import Token, v_args
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from roofdsl.lang import tree
from roofdsl.lang.diagnostics import Diagnostic
from roofdsl.lang.layout import span_of
from roofdsl.lang.machine_attributes import LINES
from roofdsl.lang.source import Span
from roofdsl.lang.tree import Expr, Item

MAX_INTEGER = 2**63 - 1
MAX_NESTING = 200


def _with_span(method: Callable[..., Any], _rule: str, children: list[Any], meta: Meta) -> Any:
    """Calls a method of the builder with the span of its node and the node's children."""
    if meta.empty:
        return method(Span(1, 1, 1, 1), *children)
    return method(Span(meta.line, meta.column, meta.end_line, meta.end_column), *children)


@v_args(wrapper=_with_span)
class Builder(Transformer_NonRecursive[Token, tree.File]):
    """Builds nodes bottom up, so that no nesting of the text makes it recurse. Collects the errors it finds."""

    def __init__(self) -> None:
        super().__init__(visit_tokens=False)
        self.errors: list[Diagnostic] = []
        self._depths: dict[int, int] = {}  # by id of an expression that is alive
        self._too_deep: set[int] = set()  # lines

    # ---- helpers ----

    def _error(self, code: str, message: str, span: Span, help: str = "") -> None:
        self.errors.append(Diagnostic(code, message, span, help))

    def _deep(self, node: Expr, *children: Expr) -> Expr:
        """`node` over `children`, or a placeholder if they are nested too deeply."""
        depth = 1 + max((self._depths.get(id(c), 1) for c in children), default=0)
        if depth > MAX_NESTING:
            help = "name parts of it with `let`; a sum of many terms nests one level for each"
            message = f"an expression is nested deeper than the limit of {MAX_NESTING}"
            if node.span.line not in self._too_deep:  # a long sum would be reported again every 200 terms
                self._error("limit-nesting", message, node.span, help)
                self._too_deep.add(node.span.line)
            return tree.Number("0", 0, node.span)
        self._depths[id(node)] = depth
        return node

    # ---- the file ----

    def file(self, span: Span, *items: tree.TopItem) -> tree.File:
        return tree.File(items)

    def use(self, span: Span, path: Token) -> tree.Use:
        return tree.Use(_text(path), span)

    def traffic(self, span: Span, convention: Token) -> tree.Traffic:
        return tree.Traffic(_name(convention), span)

    # ---- kernels ----

    def kernel(
        self, span: Span, name: Token, parameters: tuple[tree.Parameter, ...] | None, block: tuple[Item, ...]
    ) -> tree.Kernel:
        return tree.Kernel(_name(name), parameters or (), block, span)

    def parameters(self, span: Span, *parameters: tree.Parameter | None) -> tuple[tree.Parameter, ...]:
        return tuple(p for p in parameters if p is not None)

    def parameter(
        self, span: Span, const: Token | None, name: Token, _equal: Token | None, default: Expr | None
    ) -> tree.Parameter:
        return tree.Parameter(_name(name), default, const is not None, span)

    def block(self, span: Span, *items: Item) -> tuple[Item, ...]:
        return items

    def declaration(self, span: Span, intent: Token, *groups: tree.Declared) -> tree.Declaration:
        return tree.Declaration(str(intent), groups, span)

    def declared(self, span: Span, *parts: Token | Expr | tuple[Expr, ...] | None) -> tree.Declared:
        """NAME, ..., type NAME, dims or None, `col` or None, the bound of `index(...)` or None."""
        *names, dims, col, below = parts
        words = [_name(p) for p in names if isinstance(p, Token)]
        shape = dims if isinstance(dims, tuple) and not isinstance(dims, Token) else ()
        limit = None if below is None or isinstance(below, Token | tuple) else below
        return tree.Declared(tuple(words[:-1]), words[-1], shape, col is not None, span, limit)

    def index_range(self, span: Span, below: Expr) -> Expr:
        return below

    def assume(self, span: Span, *conditions: Expr) -> tree.Assume:
        return tree.Assume(conditions, span)

    def rises(self, span: Span, array: Token, first: Expr, last: Expr) -> tree.DataFact:
        return tree.DataFact("rises", _name(array), (first, last), span)

    def takes(self, span: Span, array: Token, number: Expr) -> tree.DataFact:
        return tree.DataFact("takes", _name(array), (number,), span)

    def has_alpha(self, span: Span, array: Token, share: Token) -> tree.DataFact:
        return tree.DataFact("alpha", _name(array), (self.number(span_of(share), share),), span)

    def tile(self, span: Span, loops: tuple[tree.Name, ...], sizes: tuple[Expr, ...]) -> tree.Tile:
        return tree.Tile(loops, sizes, span)

    def order(self, span: Span, loops: tuple[tree.Name, ...]) -> tree.Order:
        return tree.Order(loops, span)

    def unit(self, span: Span, name: Token) -> tree.Unit:
        return tree.Unit(_name(name), span)

    def compute(self, span: Span, name: Token) -> tree.Compute:
        return tree.Compute(_name(name), span)

    def names(self, span: Span, *names: Token) -> tuple[tree.Name, ...]:
        return tuple(map(_name, names))

    def loop(self, span: Span, parallel: Token | None, *parts: tree.Clause | tuple[Item, ...]) -> tree.For:
        clauses = tuple(p for p in parts[:-1] if isinstance(p, tree.Clause))
        block = parts[-1]
        assert isinstance(block, tuple)
        return tree.For(clauses, parallel is not None, block, span)

    def clause(self, span: Span, var: Token, _in: Token, function: Token, args: tuple[Expr, ...]) -> tree.Clause:
        return tree.Clause(_name(var), _name(function), args, span)

    def conditional(
        self,
        span: Span,
        condition: Expr,
        block: tuple[Item, ...],
        *rest: tree.Branch | tuple[Span, tuple[Item, ...]] | None,
    ) -> tree.If:
        first = tree.Branch(condition, block, span)
        orelse = rest[-1] if isinstance(rest[-1], tuple) else None
        others = (b for b in rest if isinstance(b, tree.Branch))
        return tree.If((first, *others), orelse[1] if orelse else (), orelse[0] if orelse else None, span)

    def alternative(self, span: Span, condition: Expr, block: tuple[Item, ...]) -> tree.Branch:
        return tree.Branch(condition, block, span)

    def otherwise(self, span: Span, block: tuple[Item, ...]) -> tuple[Span, tuple[Item, ...]]:
        return span, block

    def assign(
        self, span: Span, stream: Token | None, target: tree.Ref | tree.Index, op: Token, value: Expr
    ) -> tree.Assign:
        return tree.Assign(target, str(op), value, span, stream is not None)

    def let(self, span: Span, name: Token, _equal: Token, value: Expr) -> tree.Let:
        return tree.Let(_name(name), value, span)

    def count(self, span: Span, name: Token, amount: Expr) -> tree.Count:
        return tree.Count(_name(name), amount, span)

    # ---- expressions ----

    def exprs(self, span: Span, *expressions: Expr | None) -> tuple[Expr, ...]:
        return tuple(e for e in expressions if e is not None)

    def number(self, span: Span, token: Token) -> Expr:
        value: int | float
        digits = str(token).replace("_", "")
        if digits.isdigit():
            value = int(digits) if len(digits.lstrip("0")) < 20 else MAX_INTEGER + 1
            if value > MAX_INTEGER:
                self._error("number-range", "this integer is larger than 2**63 - 1", span)
                value = 1
        else:
            value = float(digits)
            if not isfinite(value):
                self._error("number-range", "this number is too large for f64 (about 1.8e308)", span)
                value = 1.0
        return self._deep(tree.Number(str(token), value, span))

    def ref(self, span: Span, name: Token) -> Expr:
        return self._deep(tree.Ref(str(name), span))

    def index(self, span: Span, name: Token, subscripts: tuple[Expr, ...]) -> Expr:
        return self._deep(tree.Index(_name(name), subscripts, span), *subscripts)

    def call(self, span: Span, name: Token, args: tuple[Expr, ...] | None) -> Expr:
        return self._deep(tree.Call(_name(name), args or (), span), *(args or ()))

    def group(self, span: Span, inner: Expr) -> Expr:
        return self._deep(tree.Group(inner, span), inner)

    def unary(self, span: Span, op: Token, operand: Expr) -> Expr:
        return self._deep(tree.Unary(str(op), operand, span), operand)

    def binary(self, span: Span, left: Expr, op: Token, right: Expr) -> Expr:
        return self._deep(tree.Binary(str(op), left, right, span), left, right)

    def logic(self, span: Span, left: Expr, op: Token, right: Expr) -> Expr:
        return self._deep(tree.Logic(str(op), left, right, span), left, right)

    def compare(self, span: Span, first: Expr, *rest: Token | Expr) -> Expr:
        operators = [str(r) for r in rest if isinstance(r, Token)]
        operands = [r for r in rest if not isinstance(r, Token)]
        return self._deep(tree.Compare(first, tuple(zip(operators, operands, strict=True)), span), first, *operands)

    # ---- machines ----

    def machine(self, span: Span, name: Token, title: Token | None, *lines: tree.MachineLine) -> tree.MachineBlock:
        return tree.MachineBlock(_name(name), _text(title) if title else None, lines, span)

    def __default__(self, data: Any, children: list[Any], meta: Meta) -> tree.MachineLine:
        """The lines of a machine and a file's `cost`: their parts are identified by their kinds."""
        if data not in (*LINES, "cost"):
            raise TypeError(f"no method for the grammar's rule `{data}`")
        return self._line(str(data), Span(meta.line, meta.column, meta.end_line, meta.end_column), tuple(children))

    def _line(
        self, keyword: str, span: Span, parts: tuple[object, ...], label: Token | None = None
    ) -> tree.MachineLine:
        tokens = [p for p in parts if isinstance(p, Token)]
        notes = [p for p in parts if isinstance(p, tree.Text)]
        return tree.MachineLine(
            keyword,
            tuple(_name(t) for t in tokens if t.type == "NAME"),
            tuple(p for p in parts if isinstance(p, tree.Quantity)),
            tuple(p for p in parts if isinstance(p, tree.Option)),
            _text(label) if label else None,
            next((str(t) for t in tokens if t.type == "ARROW"), ""),
            notes[0] if notes else None,
            span,
        )

    def ceiling(self, span: Span, label: Token, *parts: object) -> tree.MachineLine:
        return self._line("ceiling", span, parts, label)

    def processor(self, span: Span, label: Token, *parts: object) -> tree.MachineLine:
        return self._line("processor", span, parts, label)

    def source(self, span: Span, text: Token) -> tree.MachineLine:
        return self._line("source", span, (), text)

    def note(self, span: Span, text: Token) -> tree.Text:
        return _text(text)

    def option(self, span: Span, name: Token, quantity: tree.Quantity | None) -> tree.Option:
        return tree.Option(_name(name), quantity, span)

    def quantity(self, span: Span, number: Token, unit: str | None) -> tree.Quantity:
        return tree.Quantity(str(number), unit or "", span)

    def unit_name(self, span: Span, name: Token, slash: Token | None, per: Token | None) -> str:
        return str(name) + (f"/{per}" if per else "")

    # ---- programs ----

    def program(
        self, span: Span, name: Token, parameters: tuple[tree.Parameter, ...] | None, steps: tuple[tree.Step, ...]
    ) -> tree.Program:
        return tree.Program(_name(name), parameters or (), steps, span)

    def steps(self, span: Span, *steps: tree.Step) -> tuple[tree.Step, ...]:
        return steps

    def run(self, span: Span, kernel: Token, args: tuple[Expr, ...] | None) -> tree.Run:
        return tree.Run(_name(kernel), args or (), span)

    def collective(  # noqa: PLR0917 what the grammar's rule has, in its order
        self,
        span: Span,
        kind: Token,
        array: Token,
        type_: Token,
        dims: tuple[Expr, ...],
        devices: Expr,
        link: Token | None,
        topology: Token | None,
    ) -> tree.Collective:
        over, by = (None if token is None else _name(token) for token in (link, topology))
        return tree.Collective(_name(kind), _name(array), _name(type_), dims, devices, over, by, span)

    def repeat(self, span: Span, count: Expr, steps: tuple[tree.Step, ...]) -> tree.Repeat:
        return tree.Repeat(count, steps, span)


def _name(token: Token) -> tree.Name:
    return tree.Name(str(token), span_of(token))


def _text(token: Token) -> tree.Text:
    return tree.Text(str(token)[1:-1], span_of(token))
