"""The assumptions of a closed form beyond the kernel's own, as values: facts.

`roofdsl.formulas.fact_text` writes them in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from roofdsl.lang.record import Record
from roofdsl.loops.integers import Compare, Condition, Const, IntExpr, Mod
from roofdsl.sets.quasi import Quasi

CACHE = "Z"
"""The symbol of a cache's size in bytes."""

Relation = Literal["=", ">=", ">", "<"]


class Fact(Record):
    """One of the kinds below. Immutable; equality is structural."""

    def holds(self, env: Mapping[str, int]) -> bool | None:
        """Whether it holds at these sizes (`Z` is the cache's); None if sizes do not decide it. Raises KeyError."""
        raise TypeError(type(self))

    def at(self, values: Mapping[str, int]) -> Fact:
        """The same with numbers for some of the sizes."""
        return self


class Compared(Fact):
    """A comparison of two polynomials in the sizes and the cache size: n >= 4*b, n = 3, Z < 16*n."""

    left: Quasi
    relation: Relation
    right: Quasi

    def holds(self, env: Mapping[str, int]) -> bool:
        a, b = self.left.evaluate(env), self.right.evaluate(env)
        return {"=": a == b, ">=": a >= b, ">": a > b, "<": a < b}[self.relation]

    def at(self, values: Mapping[str, int]) -> Compared:
        return self.substitute({n: Quasi.constant(v) for n, v in values.items()})

    def substitute(self, put: Mapping[str, Quasi]) -> Compared:
        return Compared(self.left.substitute(put), self.relation, self.right.substitute(put))

    def symbols(self) -> frozenset[str]:
        return self.left.names() | self.right.names()


class Remainders(Fact):
    """The sizes belong to certain residue classes."""

    condition: Condition

    def holds(self, env: Mapping[str, int]) -> bool:
        return self.condition.holds(env)

    def at(self, values: Mapping[str, int]) -> Remainders:
        return Remainders(self.condition.substitute({n: Const(v) for n, v in values.items()}))


class CacheMultiple(Fact):
    """The cache size is a multiple of this number of bytes."""

    unit_bytes: int

    def holds(self, env: Mapping[str, int]) -> bool:
        return env[CACHE] % self.unit_bytes == 0


class Row(Record):
    """The rows of an array: the length of each, and how many elements fill a line."""

    array: str
    length: IntExpr
    per_line: int

    @property
    def whole_lines(self) -> Condition:
        """Whether every row begins on a line boundary if the first one does."""
        return Compare("==", Mod(self.length, Const(self.per_line)), Const(0))


class RowsAligned(Fact):
    """The rows of arrays begin on line boundaries. rows: the rows meant; empty if the fact no longer says which."""

    rows: tuple[Row, ...] = ()

    def holds(self, env: Mapping[str, int]) -> bool | None:
        return all(row.whole_lines.holds(env) for row in self.rows) if self.rows else None

    def at(self, values: Mapping[str, int]) -> RowsAligned:
        put = {n: Const(v) for n, v in values.items()}
        return RowsAligned(tuple(Row(r.array, r.length.substitute(put), r.per_line) for r in self.rows))


class LeadingTerms(Fact):
    """The form has only leading terms."""

    def holds(self, env: Mapping[str, int]) -> None:
        return None


def decided(fact: Fact) -> bool | None:
    """Whether a fact holds at all sizes (True) or at none (False); None if that depends on the sizes, or on more."""
    try:
        return fact.holds({})
    except KeyError:
        return None


def at_least(name: str, least: Quasi | int) -> Compared:
    """name >= least."""
    return Compared(Quasi.symbol(name), ">=", least if isinstance(least, Quasi) else Quasi.constant(least))


def fixed(name: str, value: int) -> Compared:
    """The parameter is this number in the form."""
    return Compared(Quasi.symbol(name), "=", Quasi.constant(value))


def whole_units(facts: Iterable[Fact]) -> int:
    """The number of bytes of which the cache size must be a multiple; 1 if nothing is assumed."""
    return next((f.unit_bytes for f in facts if isinstance(f, CacheMultiple)), 1)
