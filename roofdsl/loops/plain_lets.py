"""The type of a `let` of numbers, parameters and loop variables alone: that of what its first use combines it with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from roofdsl.lang import tree
from roofdsl.lang.functions import FUNCTIONS
from roofdsl.lang.record import Record
from roofdsl.lang.types import TYPES, ElementType, joined, widest_of
from roofdsl.loops.model import Array

DEEPEST = 16
"""The most `let`s of plain numbers that are followed from one to the next."""


def type_of_plain_let(
    let: tree.Let, rest: Sequence[tree.Item], arrays: Mapping[str, Array], lets: Mapping[str, ElementType]
) -> ElementType:
    """The type of a `let` of plain numbers: the real type of what its first use in `rest` combines it with.

    So `let h = 0.5` does not turn an f32 kernel into f64, and in `w[i] + x[i] / h` only the type of `x` matters.
    Without a use, it is the widest real type of the arrays, or f64. A fraction never gets an integer type.
    """
    items = tuple(_simple(rest))
    known = {name: _Value(type_) for name, type_ in lets.items()}
    found = _met(let.name.text, items, arrays, known, 0)
    if found is None:
        found = widest_of(a.type.component for a in arrays.values() if a.type.kind != "int") or TYPES["f64"]
    own = _Use(let.name.text, arrays, known).value(let.value)
    return _joined((_Value(found), own)).component


class _Value(Record):
    """A part of an expression. `type` is None if it consists of plain numbers alone, which may have a `fraction`.

    holds: the `let` is in it, and has not been combined with a typed value yet.
    """

    type: ElementType | None
    fraction: bool = False
    holds: bool = False


def _joined(operands: Sequence[_Value]) -> ElementType:
    """The type of an operation on values of which at least one has a type (docs/rules.md, rules 6 and 7)."""
    result = joined([(v.type, v.fraction) for v in operands])
    assert result is not None
    return result


def _met(
    name: str, items: Sequence[tree.Assign | tree.Let], arrays: Mapping[str, Array], lets: Mapping[str, _Value],
    depth: int,
) -> ElementType | None:  # fmt: skip
    """The type that the first use of a `let` in `items` combines it with; None if there is none."""
    known = dict(lets)
    for k, item in enumerate(items):
        use = _Use(name, arrays, known)
        value = use.value(item.value)
        if use.found is not None:
            return use.found
        if isinstance(item, tree.Let):
            if value.holds:
                end = _met(item.name.text, items[k + 1 :], arrays, known, depth + 1) if depth < DEEPEST else None
                return None if end is None else _joined((_Value(end), value))
            known[item.name.text] = value
        elif value.holds:
            target = item.target.name
            kept = arrays[target if isinstance(target, str) else target.text].type
            return _joined((_Value(kept), value))
    return None


class _Use:
    """Walks an expression up from its operands to find what a `let` is combined with first: `found`."""

    def __init__(self, name: str, arrays: Mapping[str, Array], lets: Mapping[str, _Value]) -> None:
        self.name, self.arrays, self.lets = name, arrays, lets
        self.found: ElementType | None = None

    def value(self, e: tree.Expr) -> _Value:
        match e:
            case tree.Number(_, number):
                return _Value(None, not isinstance(number, int))
            case tree.Ref(name) if name == self.name:
                return _Value(None, holds=True)
            case tree.Ref(name):
                return _Value(self.arrays[name].type) if name in self.arrays else self.lets.get(name, _Value(None))
            case tree.Index(name):
                return _Value(self.arrays[name.text].type)
            case tree.Group(inner) | tree.Unary(_, inner) | tree.Binary("**", inner, _):
                return self.value(inner)
            case tree.Binary(op, left, right):
                return self._together((self.value(left), self.value(right)), op == "/")
            case tree.Call(name, args) if name.text == "select":
                condition, *arms = (self.value(a) for a in args)
                result = self._together(arms, False)
                if not condition.holds:
                    return result
                return self._together((_Value(None, holds=True), result), False)
            case tree.Call(name, args):
                return self._call(name.text, args)
            case tree.Compare(first, rest):
                compared = self._together((self.value(first), *(self.value(right) for _, right in rest)), False)
                return _Value(None, holds=compared.holds)
            case _:
                raise TypeError(f"no value: {e}")

    def _call(self, function: str, args: Sequence[tree.Expr]) -> _Value:
        gives = FUNCTIONS[function].gives
        result = self._together(tuple(self.value(a) for a in args), gives == "fraction")
        if result.type is None:
            return result
        if gives == "component":
            return _Value(result.type.component)
        return _Value(TYPES["f64"] if gives == "fraction" and result.type.kind == "int" else result.type)

    def _together(self, operands: Sequence[_Value], divides: bool) -> _Value:
        """The value of an operation. divides: of plain numbers, it may have a fraction."""
        holds = any(v.holds for v in operands)
        if all(v.type is None for v in operands):
            return _Value(None, divides or any(v.fraction for v in operands), holds)
        result = _joined(operands)
        if holds and self.found is None:
            self.found = result
        return _Value(result)


def _simple(items: Sequence[tree.Item]) -> Iterator[tree.Assign | tree.Let]:
    for item in items:
        match item:
            case tree.Assign() | tree.Let():
                yield item
            case tree.For(body=body):
                yield from _simple(body)
            case tree.If(branches, orelse):
                for branch in branches:
                    yield from _simple(branch.body)
                yield from _simple(orelse)
