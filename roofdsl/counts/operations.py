"""What one execution of each statement costs: docs/rules.md, rules 1 to 7.

Where the rules leave room, this is what is counted:

- A pair through a `let` needs the `let` and its one use in the same block, so that both run equally often; the pair is
  recorded at the addition, while the multiplication itself still counts at the `let`.
- Unary minus and `conj` are transparent: `a - (-(b*c))` is one pair. `real`, `imag`, `abs` and `select` are not.
- A pair counts for the product's type in `c + a*b` as it does in `c += a*b` (rule 6); an integer product is not part
  of a pair with a floating-point addition. Of two products, the one of the addition's type fuses, else the left one.
- Powers are products: `x**2 + y` is one pair. `x**1` and `x**0` cost nothing.
- Complex: every addition is 2 adds, with a real operand too; complex / real is 2 divs; real / complex 4 muls, 1 add,
  2 divs; the additions within a division or an `abs` are fused by rule 5 (3 pairs, 1 in real / complex and `abs`).
- `min` and `max` of k arguments are k - 1.
- Every special function is one operation, `tanh` and `sigmoid` too, whatever they are computed by; the square root of a
  complex `abs` is a `sqrt`.
- A `select` of numbers is a number that data choose: operations on it count, in the type of what it is combined with or
  stored to.
- A value whose component type is not that of the operation it enters, or of the array it is stored to, is one cast;
  a product within a pair is not. A literal or a parameter is never cast.
- `tf32` as the compute type renames every f32 operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from roofdsl.counts.chosen_numbers import has_chosen_numbers
from roofdsl.counts.work_record import Statement, StatementOperations
from roofdsl.lang.functions import FUNCTIONS
from roofdsl.lang.record import Record
from roofdsl.lang.types import TYPES, ElementType, widest
from roofdsl.loops.model import (
    Assign,
    Binary,
    Call,
    Count,
    DataCompare,
    Element,
    Expr,
    For,
    If,
    IntValue,
    Kernel,
    Let,
    LetRef,
    Node,
    Number,
    ScalarRef,
    Select,
    Unary,
)


def operation_counts(kernel: Kernel) -> tuple[StatementOperations, ...]:
    """The cost of every statement, in textual order (depth first, the `then` branch before the `else`)."""
    renamed = {"f32": kernel.compute_type.name} if kernel.compute_type else {}
    return tally(kernel.body, renamed)


def tally(body: Sequence[Node], renamed: Mapping[str, str] | None = None) -> tuple[StatementOperations, ...]:
    """The cost of every statement of a block; `renamed` maps type names to those they are counted under."""
    uses = _LetUses()
    uses.block(body, {})
    counter = _Counter(uses.counts, dict(renamed or {}))
    counter.block(body, {})
    return tuple(counter.done)


class _Product(Record):
    """A multiplication that is a whole sub-expression. free: how many of its multiplications are not in a pair yet."""

    type: ElementType
    free: int


class _Value(Record):
    """The value of a sub-expression. `type` is None if it contains only numbers, which cost nothing (rule 2); then
    `fraction` says whether it may have one.
    """

    type: ElementType | None
    product: _Product | None = None
    fraction: bool = False


class _Binding(Record):
    """A `let` in scope: its number in textual order, its block, and the product that it names, if it names one."""

    index: int
    block: int
    product: _Product | None


@dataclass
class _LetUses:
    """How often each `let` is used, in textual order."""

    counts: list[int] = field(default_factory=list)

    def block(self, body: Sequence[Node], outer: Mapping[str, int]) -> None:
        scope = dict(outer)
        for node in body:
            match node:
                case For():
                    self.block(node.body, scope)
                case If():
                    self.block(node.then, scope)
                    self.block(node.orelse, scope)
                case Let():
                    self.expression(node.value, scope)
                    scope[node.name] = len(self.counts)
                    self.counts.append(0)
                case Assign():
                    self.expression(node.value, scope)

    def expression(self, e: Expr | DataCompare, scope: Mapping[str, int]) -> None:
        match e:
            case LetRef():
                self.counts[scope[e.name]] += 1
            case Unary():
                self.expression(e.operand, scope)
            case Binary() | DataCompare():
                self.expression(e.left, scope)
                self.expression(e.right, scope)
            case Call():
                for argument in e.args:
                    self.expression(argument, scope)
            case Select():
                for part in (e.condition, e.if_true, e.if_false):
                    self.expression(part, scope)


class _Counter:
    """Walks a body and closes one StatementOperations for each statement."""

    def __init__(self, let_uses: Sequence[int], renamed: dict[str, str]) -> None:
        self.let_uses, self.renamed = let_uses, renamed
        self.done: list[StatementOperations] = []
        self.lets = self.blocks = 0
        self._clear()

    def _clear(self) -> None:
        self.operations: dict[tuple[str, str], int] = {}
        self.functions: dict[tuple[str, str], int] = {}
        self.pairs: dict[str, int] = {}
        self.cmp = self.casts = 0

    def _close(self, statement: Statement) -> None:
        found = (self.operations, self.pairs, self.cmp, self.casts, self.functions)
        self.done.append(StatementOperations(statement, *found))
        self._clear()

    # ---- statements ----

    def block(self, body: Sequence[Node], outer: Mapping[str, _Binding]) -> None:
        self.scope, self.here = dict(outer), self.blocks
        here, self.blocks = self.blocks, self.blocks + 1
        scope = self.scope
        for node in body:
            match node:
                case For():
                    self.block(node.body, scope)
                case If():
                    self.block(node.then, scope)
                    self.block(node.orelse, scope)
                case Let():
                    value = self.typed(node.value, node.type)
                    self._cast(value, node.type)
                    scope[node.name] = _Binding(self.lets, here, value.product)
                    self.lets += 1
                    self._close(node)
                case Assign():
                    self.assign(node)
                    self._close(node)
                case Count():
                    self._close(node)
            self.scope, self.here = scope, here

    def assign(self, node: Assign) -> None:
        target = node.target.array.type
        value = self.typed(node.value, target)
        if node.op != "=":
            kept = _Value(target)
            match node.op[:-1]:
                case "+" | "-":
                    value = self.addition(kept, value)
                case "*":
                    value = self.multiplication(kept, value)
                case "/":
                    value = self.division(kept, value)
                case _:
                    value = self.minimum((kept, value))
        self._cast(value, target)

    # ---- expressions ----

    def typed(self, e: Expr, target: ElementType) -> _Value:
        """Counts the operations of an expression that is stored to this type, and returns its value."""
        return self.value(e, target if has_chosen_numbers(e) else None)

    def value(self, e: Expr, chosen: ElementType | None) -> _Value:
        """Counts the operations of `e`, and returns its value. chosen: the type of numbers that data choose, as in
        `select(a[i] > 0, 1, 2)`, unless they are combined with a value that has a type; None if there are
        none.
        """
        match e:
            case Number():
                return _Value(None, fraction=not isinstance(e.value, int))
            case IntValue():
                return _Value(None)
            case ScalarRef() | Element():
                return _Value(e.array.type)
            case LetRef():
                let = self.scope[e.name]
                once = self.let_uses[let.index] == 1 and let.block == self.here
                return _Value(e.type, let.product if once else None)
            case Unary():
                return self.value(e.operand, chosen)
            case Binary(op="**"):
                return self.power(self.value(e.left, chosen), e.right)
            case Binary():
                left, right = self.values((e.left, e.right), chosen)
                if e.op == "*":
                    return self.multiplication(left, right)
                return self.division(left, right) if e.op == "/" else self.addition(left, right)
            case Call():
                return self.call(e.function, self.values(e.args, chosen))
            case Select():
                return self.select(e, chosen)

    def values(self, parts: Sequence[Expr], chosen: ElementType | None) -> tuple[_Value, ...]:
        """The values of the operands of one operation; numbers that data choose have the type of the others."""
        if chosen is not None:
            before = (self.operations, self.functions, self.pairs, self.cmp, self.casts)
            self._clear()
            chosen = _widest(tuple(self.value(part, None) for part in parts)) or chosen
            self.operations, self.functions, self.pairs, self.cmp, self.casts = before
        return tuple(self.value(part, chosen) for part in parts)

    def select(self, e: Select, chosen: ElementType | None) -> _Value:
        """A choice: its comparison, and both arms (rule 1)."""
        compared = self.values((e.condition.left, e.condition.right), None if chosen is None else TYPES["f64"])
        by_data = self._enter(compared) is not None
        if by_data:
            self.cmp += 1
        arms = self.values((e.if_true, e.if_false), chosen)
        result = self._enter(arms) or (chosen if by_data else None)
        return _plain(arms) if result is None else _Value(result)

    def addition(self, left: _Value, right: _Value) -> _Value:
        """A sum or difference, fused with a product if there is one."""
        result = _widest((left, right))
        if result is None:
            return _plain((left, right))
        adds = 2 if result.kind == "complex" else 1
        products = [v.product for v in (left, right) if v.product and _fuses(v.product.type, result)]
        products.sort(key=lambda p: p.type.component != result.component)
        chosen = products[0] if products else None
        for v in (left, right):
            if chosen is None or v.product is not chosen:
                self._cast(v, result)
        pairs = min(adds, chosen.free) if chosen else 0
        if chosen:
            self._add(chosen.type, "add", pairs)
            self._pair(chosen.type, pairs)
        self._add(result, "add", adds - pairs)
        return _Value(result)

    def multiplication(self, left: _Value, right: _Value) -> _Value:
        """A product: 1 mul, real times complex 2 muls, complex times complex 4 muls and 2 adds in 2 pairs (rule 4)."""
        result = self._enter((left, right))
        if result is None:
            return _plain((left, right))
        complexes = sum(_is_complex(v) for v in (left, right))
        self._add(result, "mul", (1, 2, 4)[complexes])
        if complexes == 2:
            self._add(result, "add", 2)
            self._pair(result, 2)
        return _Value(result, _Product(result, (1, 2, 2)[complexes]))

    def division(self, left: _Value, right: _Value) -> _Value:
        """A quotient: 1 div; complex by the textbook formula (rule 4)."""
        result = self._enter((left, right))
        if result is None:
            return _Value(None, fraction=True)
        muls, adds, divs = 0, 0, 2 if _is_complex(left) else 1
        if _is_complex(right):
            muls, adds, divs = (6, 3, 2) if _is_complex(left) else (4, 1, 2)
        self._add(result, "mul", muls)
        self._add(result, "add", adds)
        self._pair(result, adds)
        self._add(result, "div", divs)
        return _Value(result)

    def power(self, base: _Value, exponent: Expr) -> _Value:
        """An integer power by repeated squaring (rule 3)."""
        if not isinstance(exponent, Number) or not isinstance(exponent.value, int):
            raise TypeError(f"an exponent that is not an integer literal: {exponent}")
        if base.type is None or exponent.value == 1:
            return base
        if exponent.value == 0:
            return _Value(base.type)
        result = factor = _Value(base.type)
        for _ in range(exponent.value.bit_length() + exponent.value.bit_count() - 2):
            result = self.multiplication(factor, factor)
        return result

    def minimum(self, values: tuple[_Value, ...]) -> _Value:
        result = self._enter(values)
        if result is None:
            return _plain(values)
        self._add(result, "min", len(values) - 1)
        return _Value(result)

    def call(self, function: str, values: tuple[_Value, ...]) -> _Value:
        row = FUNCTIONS[function]
        if row.cls == "min":
            return self.minimum(values)
        (argument,) = values
        if argument.type is None:
            return _Value(None, fraction=argument.fraction or row.gives == "fraction")
        if row.cls == "special":
            kind = TYPES["f64"] if argument.type.kind == "int" and row.gives == "fraction" else argument.type
            self._cast(argument, kind)
            self._special(kind, function)
            return _Value(kind)
        if argument.type.kind == "complex":
            for name, n in row.of_complex:
                if name in FUNCTIONS:
                    self._special(argument.type, name)
                else:
                    self._add(argument.type, name, n)
                self._pair(argument.type, n if name == "add" else 0)
        # a function that keeps the type and costs nothing is as transparent as a minus: a product stays a product
        return argument if row.gives == "widest" else _Value(argument.type.component)

    # ---- counters ----

    def _name(self, t: ElementType) -> str:
        name = t.component.name
        return self.renamed.get(name, name)

    def _add(self, t: ElementType, operation: str, n: int) -> None:
        if n:
            key = (self._name(t), operation)
            self.operations[key] = self.operations.get(key, 0) + n

    def _special(self, t: ElementType, function: str) -> None:
        self._add(t, "special", 1)
        key = (self._name(t), function)
        self.functions[key] = self.functions.get(key, 0) + 1

    def _pair(self, t: ElementType, n: int) -> None:
        if n:
            self.pairs[self._name(t)] = self.pairs.get(self._name(t), 0) + n

    def _cast(self, value: _Value, into: ElementType) -> None:
        if value.type is not None and value.type.component != into.component:
            self.casts += 1

    def _enter(self, values: tuple[_Value, ...]) -> ElementType | None:
        """The type of an operation on `values`, which are cast to it."""
        result = _widest(values)
        if result is not None:
            for v in values:
                self._cast(v, result)
        return result


def _plain(values: tuple[_Value, ...]) -> _Value:
    """The value of an operation on numbers only."""
    return _Value(None, fraction=any(v.fraction for v in values))


def _widest(values: tuple[_Value, ...]) -> ElementType | None:
    """The type of an operation on values; that of integers with a fraction is f64 (rule 7)."""
    types = [v.type for v in values if v.type is not None]
    if not types:
        return None
    result = reduce(widest, types)
    return TYPES["f64"] if result.kind == "int" and any(v.fraction for v in values) else result


def _is_complex(value: _Value) -> bool:
    return value.type is not None and value.type.kind == "complex"


def _fuses(product: ElementType, addition: ElementType) -> bool:
    return product.component.kind == addition.component.kind
