"""Integer expressions and conditions over parameters and loop variables: bounds, subscripts, guards."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, Self, TypeVar

from roofdsl.lang.record import Record

T = TypeVar("T")

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Tree(Record):
    """A node of an integer expression or of a condition. Immutable; equality is structural."""

    def args(self) -> tuple[Any, ...]:
        """The nodes right below this one."""
        return ()

    def rebuild(self, args: tuple[Any, ...]) -> Self:
        """The same node with other arguments."""
        return self

    def symbols(self) -> frozenset[str]:
        """The names of the parameters and loop variables that occur."""
        return frozenset().union(*(a.symbols() for a in self.args()))

    def walk(self) -> Iterator[Tree]:
        """This node and all below it."""
        yield self
        for a in self.args():
            yield from a.walk()


def fold(tree: Tree, rows: Mapping[type[Tree], Callable[..., T]]) -> T:
    """The result that a table gives for an expression or condition, from the leaves up: one row for each kind of node.

    A row takes the node and the results of its arguments: `Sum: lambda node, *terms: sum(terms)`. Raises KeyError for a
    kind without a row.
    """
    return rows[type(tree)](tree, *[fold(a, rows) for a in tree.args()])


class IntExpr(Tree):
    """An integer expression."""

    def evaluate(self, env: Mapping[str, int]) -> int:
        """The value for the symbols' values in `env`. Raises KeyError for a missing symbol."""
        raise TypeError(type(self))

    def substitute(self, replacement: Mapping[str, IntExpr]) -> IntExpr:
        """Every symbol in `replacement` replaced, all at once."""
        return self.rebuild(tuple(a.substitute(replacement) for a in self.args()))


class Const(IntExpr):
    value: int

    def evaluate(self, env: Mapping[str, int]) -> int:
        return self.value

    def __str__(self) -> str:
        return str(self.value)


class Sym(IntExpr):
    """A parameter or a loop variable."""

    name: str

    def evaluate(self, env: Mapping[str, int]) -> int:
        return env[self.name]

    def symbols(self) -> frozenset[str]:
        return frozenset((self.name,))

    def substitute(self, replacement: Mapping[str, IntExpr]) -> IntExpr:
        return replacement.get(self.name, self)

    def __str__(self) -> str:
        return self.name


class _Nary(IntExpr):
    terms: tuple[IntExpr, ...]

    def args(self) -> tuple[IntExpr, ...]:
        return self.terms

    def rebuild(self, args: tuple[IntExpr, ...]) -> Self:
        return type(self)(args)


class Sum(_Nary):
    """The sum of the terms; a difference is a sum with a product by -1."""

    def evaluate(self, env: Mapping[str, int]) -> int:
        return sum(t.evaluate(env) for t in self.terms)

    def __str__(self) -> str:
        text = ""
        for term in self.terms:
            part = str(term)
            signed = f" - {part[1:]}" if part.startswith("-") else f" + {part}"
            text += signed if text else part
        return text or "0"


class Product(_Nary):
    def evaluate(self, env: Mapping[str, int]) -> int:
        return prod(t.evaluate(env) for t in self.terms)

    def __str__(self) -> str:
        parts = [f"({t})" if isinstance(t, (Sum, _Division)) else str(t) for t in self.terms]
        return "-" + "*".join(parts[1:]) if len(parts) > 1 and parts[0] == "-1" else "*".join(parts)


class Min(_Nary):
    def evaluate(self, env: Mapping[str, int]) -> int:
        return min(t.evaluate(env) for t in self.terms)

    def __str__(self) -> str:
        return f"min({', '.join(map(str, self.terms))})"


class Max(_Nary):
    def evaluate(self, env: Mapping[str, int]) -> int:
        return max(t.evaluate(env) for t in self.terms)

    def __str__(self) -> str:
        return f"max({', '.join(map(str, self.terms))})"


class _Division(IntExpr):
    numerator: IntExpr
    divisor: IntExpr

    def args(self) -> tuple[IntExpr, ...]:
        return (self.numerator, self.divisor)

    def rebuild(self, args: tuple[IntExpr, ...]) -> Self:
        return type(self)(*args)

    def _sides(self) -> tuple[str, str]:
        def side(e: IntExpr) -> str:
            plain = isinstance(e, (Sym, Min, Max)) or (isinstance(e, Const) and e.value >= 0)
            return str(e) if plain else f"({e})"

        return side(self.numerator), side(self.divisor)


class FloorDiv(_Division):
    """`numerator // divisor`, rounding down as Python does."""

    def evaluate(self, env: Mapping[str, int]) -> int:
        return self.numerator.evaluate(env) // self.divisor.evaluate(env)

    def __str__(self) -> str:
        return "{}//{}".format(*self._sides())


class Mod(_Division):
    """`numerator % divisor`, with the divisor's sign as in Python."""

    def evaluate(self, env: Mapping[str, int]) -> int:
        return self.numerator.evaluate(env) % self.divisor.evaluate(env)

    def __str__(self) -> str:
        return "{} % {}".format(*self._sides())


def add(*terms: IntExpr) -> IntExpr:
    """The sum, flattened, constants folded."""
    flat: list[IntExpr] = []
    constant = 0
    for t in terms:
        for u in t.terms if isinstance(t, Sum) else (t,):
            if isinstance(u, Const):
                constant += u.value
            else:
                flat.append(u)
    if constant or not flat:
        flat.append(Const(constant))
    return flat[0] if len(flat) == 1 else Sum(tuple(flat))


def mul(*factors: IntExpr) -> IntExpr:
    """The product, flattened, constants folded to the front."""
    flat: list[IntExpr] = []
    constant = 1
    for f in factors:
        for u in f.terms if isinstance(f, Product) else (f,):
            if isinstance(u, Const):
                constant *= u.value
            else:
                flat.append(u)
    if constant == 0:
        return Const(0)
    if constant != 1 or not flat:
        flat.insert(0, Const(constant))
    return flat[0] if len(flat) == 1 else Product(tuple(flat))


def sub(a: IntExpr, b: IntExpr) -> IntExpr:
    """a - b."""
    return add(a, mul(Const(-1), b))


class Condition(Tree):
    """A truth value over integer expressions."""

    def holds(self, env: Mapping[str, int]) -> bool:
        raise TypeError(type(self))

    def substitute(self, replacement: Mapping[str, IntExpr]) -> Condition:
        """Every symbol in `replacement` replaced, all at once."""
        return self.rebuild(tuple(a.substitute(replacement) for a in self.args()))


class Compare(Condition):
    op: str  # one of == != < <= > >=
    left: IntExpr
    right: IntExpr

    def holds(self, env: Mapping[str, int]) -> bool:
        return bool(COMPARISONS[self.op](self.left.evaluate(env), self.right.evaluate(env)))

    def args(self) -> tuple[IntExpr, IntExpr]:
        return (self.left, self.right)

    def rebuild(self, args: tuple[IntExpr, ...]) -> Self:
        return type(self)(self.op, *args)

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


class _Connective(Condition):
    parts: tuple[Condition, ...]

    def args(self) -> tuple[Condition, ...]:
        return self.parts

    def rebuild(self, args: tuple[Condition, ...]) -> Self:
        return type(self)(args)


class And(_Connective):
    def holds(self, env: Mapping[str, int]) -> bool:
        return all(p.holds(env) for p in self.parts)

    def __str__(self) -> str:
        return " and ".join(f"({p})" if isinstance(p, Or) else str(p) for p in self.parts)


def all_of(parts: Sequence[Condition]) -> Condition | None:
    """The condition that all of these hold; None if there are none."""
    if len(parts) < 2:
        return parts[0] if parts else None
    return And(tuple(parts))


class Or(_Connective):
    def holds(self, env: Mapping[str, int]) -> bool:
        return any(p.holds(env) for p in self.parts)

    def __str__(self) -> str:
        return " or ".join(str(p) for p in self.parts)


class Not(Condition):
    part: Condition

    def holds(self, env: Mapping[str, int]) -> bool:
        return not self.part.holds(env)

    def args(self) -> tuple[Condition]:
        return (self.part,)

    def rebuild(self, args: tuple[Condition, ...]) -> Self:
        return type(self)(*args)

    def __str__(self) -> str:
        return f"not ({self.part})"
