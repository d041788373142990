"""How the parameters of a kernel appear in integer sets: as numbers, symbols, or digits of a tile size.

Under `n % b == 0` a symbolic tile size b is made affine by writing n = b*N and every loop variable that runs in tiles
as b*K + k (0 <= k < b). Under `(n - 2) % b == 0` it is n = b*N + 2, and a variable whose tiles begin at 1 is
b*K + k + 1. Expressions of such variables are pairs (H, L) that stand for b*H + L, and the dimensions of arrays that
they subscript become two, H and L (docs/rules.md, step S6). With a number in place of b, n = b*N alone makes everything
affine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import lcm

from roofdsl.lang.record import Record
from roofdsl.loops.integers import And, Compare, Condition, Const, FloorDiv, IntExpr, Max, Min, Mod, Product, Sum, Sym
from roofdsl.sets.quasi import Quasi


class NotAffine(Exception):
    """An expression is not affine with these sizes; the message says which one and why (closed forms are refused)."""


class Linear(Record):
    """An affine form over the names of dimensions and parameters, and over floors as text."""

    terms: tuple[tuple[str, int], ...]
    constant: int = 0

    @staticmethod
    def of(terms: Mapping[str, int], constant: int = 0) -> Linear:
        return Linear(tuple(sorted((k, c) for k, c in terms.items() if c)), constant)

    def __add__(self, other: Linear) -> Linear:
        out = dict(self.terms)
        for k, c in other.terms:
            out[k] = out.get(k, 0) + c
        return Linear.of(out, self.constant + other.constant)

    def scaled(self, factor: int) -> Linear:
        return Linear.of({k: c * factor for k, c in self.terms}, self.constant * factor)

    def __str__(self) -> str:
        parts = [f"{c}*{k}" if c != 1 else k for k, c in self.terms]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return "(" + " + ".join(parts) + ")"


class Pair(Record):
    """tile*high + low; `tile` is None and `high` zero for an ordinary affine value."""

    low: Linear
    high: Linear = Linear(())
    tile: str | None = None

    def __add__(self, other: Pair) -> Pair:
        tile = _one_tile(self, other)
        return Pair(self.low + other.low, self.high + other.high, tile)

    def scaled(self, factor: int) -> Pair:
        return Pair(self.low.scaled(factor), self.high.scaled(factor), self.tile)


def _one_tile(a: Pair, b: Pair) -> str | None:
    if a.tile and b.tile and a.tile != b.tile:
        raise NotAffine(f"it mixes the tile sizes {a.tile} and {b.tile}")
    return a.tile or b.tile


@dataclass(frozen=True)
class Sizes:
    """The parameters of one kernel, for one analysis.

    numbers: parameters with a value. symbols: the others. divided: n -> c if n % c == 0 is assumed for a number c.
    tiled: (n, b) if n % b == 0 is assumed for a symbol b. beyond: n -> c if it is n - c that is assumed to be a
    multiple.
    """

    numbers: Mapping[str, int]
    symbols: tuple[str, ...]
    divided: Mapping[str, int]
    tiled: frozenset[tuple[str, str]]
    least_tile: dict[str, int] = field(default_factory=dict, compare=False)
    """The texts written so far hold for tiles at least this large: constants beside digits must be smaller than a tile.
    """
    beyond: Mapping[str, int] = field(default_factory=dict)

    def multiple(self, name: str) -> Quasi:
        """The part of a parameter that is a multiple."""
        return Quasi.symbol(name) - self.beyond.get(name, 0)

    def reach(self, low: Linear, tile: str) -> tuple[int, int]:
        """(m, M) such that -m*b <= low < M*b for b >= `least_tile`, which this may increase. Raises NotAffine."""
        require_digits(low, tile)
        # Digits are at most b - 1: they add up to -down * (b - 1) at least, and to up * (b - 1) at most.
        down = sum(-c for _, c in low.terms if c < 0)
        up = sum(c for _, c in low.terms if c > 0)
        least = 1
        if low.constant < -down:
            down, least = down + 1, -low.constant - down
        if low.constant >= up:
            up, least = up + 1, max(least, low.constant - up + 1)
        self.least_tile[tile] = max(self.least_tile.get(tile, 1), least)
        return down, up

    def parameter_names(self) -> list[str]:
        """The names of all isl parameters that may occur."""
        names = [self.symbol_text(n) for n in self.symbols]
        return names + [quotient(n, b) for n, b in sorted(self.tiled)]

    def quotients(self) -> list[tuple[str, str, str]]:
        """(isl parameter, n, b) for each n that is cut into tiles of b: the parameter is n / b, or (n - c) / b
        (`beyond`).
        """
        return [(quotient(n, b), n, b) for n, b in sorted(self.tiled)]

    def known(self, given: Mapping[str, int]) -> dict[str, int]:
        """The isl parameters that are determined by the sizes `given`."""
        found = {self.symbol_text(n): given[n] for n in self.symbols if n in given and n not in self.divided}
        part = {n: given[n] - self.beyond.get(n, 0) for n in given}
        found |= {self.symbol_text(n): part[n] // c for n, c in self.divided.items() if n in given}
        return found | {q: part[n] // given[b] for q, n, b in self.quotients() if n in given and b in given}

    def symbol_text(self, name: str) -> str:
        return f"Q_{name}" if name in self.divided else f"P_{name}"

    def meaning(self) -> dict[str, Quasi]:
        """The meaning of each isl parameter in terms of the kernel's own parameters."""
        out: dict[str, Quasi] = {}
        for n in self.symbols:
            whole, part = Quasi.symbol(n), self.multiple(n)
            out[self.symbol_text(n)] = part * Quasi.constant(self.divided[n]) ** -1 if n in self.divided else whole
        for n, b in self.tiled:
            out[quotient(n, b)] = self.multiple(n) * Quasi.symbol(b, -1)
        return out

    def parameter(self, name: str, world: str | None) -> Pair:
        """Parameter `name` as an affine value, in the digits of tile size `world` if it is given."""
        if name in self.numbers:
            return Pair(Linear.of({}, self.numbers[name]))
        if world is not None:
            if name == world:
                return Pair(Linear(()), Linear.of({}, 1), world)
            if (name, world) in self.tiled:
                return Pair(Linear.of({}, self.beyond.get(name, 0)), Linear.of({quotient(name, world): 1}), world)
        if name in self.divided:
            return Pair(Linear.of({self.symbol_text(name): self.divided[name]}, self.beyond.get(name, 0)))
        return Pair(Linear.of({self.symbol_text(name): 1}))

    def value(self, e: IntExpr, variables: Mapping[str, Pair], world: str | None) -> Pair:
        """`e` as an affine value. Raises NotAffine."""
        match e:
            case Const(value):
                return Pair(Linear.of({}, value))
            case Sym(name):
                return variables[name] if name in variables else self.parameter(name, world)
            case Sum(terms):
                total = Pair(Linear(()))
                for t in terms:
                    total = total + self.value(t, variables, world)
                return total
            case Product(factors):
                return self._product([self.value(f, variables, world) for f in factors], e)
            case FloorDiv(numerator, divisor) | Mod(numerator, divisor):
                return self._division(e, self.value(numerator, variables, world), self.value(divisor, variables, world))
            case Min() | Max():
                if e.symbols() <= self.numbers.keys() - variables.keys():
                    return Pair(Linear.of({}, e.evaluate(self.numbers)))
                raise NotAffine(f"`{e}` may stand in a loop's bounds only")
        raise NotAffine(f"`{e}`")

    def _product(self, factors: list[Pair], e: IntExpr) -> Pair:
        scale = 1
        rest: list[Pair] = []
        for f in factors:
            if f.tile is None and not f.low.terms:
                scale *= f.low.constant
            else:
                rest.append(f)
        if not rest:
            return Pair(Linear.of({}, scale))
        if len(rest) == 2:
            tiles = [f for f in rest if f.tile and f.high == Linear.of({}, 1) and f.low == Linear(())]
            others = [f for f in rest if f.tile is None]
            if len(tiles) == 1 and len(others) == 1:  # b * k
                return Pair(Linear(()), others[0].low, tiles[0].tile).scaled(scale)
        if len(rest) > 1:
            raise NotAffine(f"`{e}` is a product of unknown sizes")
        return rest[0].scaled(scale)

    @staticmethod
    def _division(e: IntExpr, numerator: Pair, divisor: Pair) -> Pair:
        if divisor.tile is not None or divisor.low.terms or divisor.low.constant <= 0:
            raise NotAffine(f"`{e}` does not divide by a positive number")
        if numerator.tile is not None:
            raise NotAffine(f"`{e}` divides a value that runs in tiles of unknown size")
        c = divisor.low.constant
        if not numerator.low.terms:
            k = numerator.low.constant
            return Pair(Linear.of({}, k // c if isinstance(e, FloorDiv) else k % c))
        quotient_text = f"floor({numerator.low}/{c})"
        if isinstance(e, FloorDiv):
            return Pair(Linear.of({quotient_text: 1}))
        return Pair(numerator.low + Linear.of({quotient_text: -c}))

    # ---- conditions, as isl text ----

    def nonnegative(self, value: Pair) -> str:
        """Text of `value >= 0`."""
        if value.tile is None:
            return f"{value.low} >= 0"
        below, above = self.reach(value.low, value.tile)
        # From high = below on, it is at least 0; up to high = -above, it is negative. For each high in between, the low
        # part decides.
        cases = [f"{value.high} >= {below}"]
        for h in range(1 - above, below):
            cases.append(f"({value.high} = {h} and {value.low} + {h}*P_{value.tile} >= 0)")
        return "(" + " or ".join(cases) + ")" if len(cases) > 1 else cases[0]

    def compare(self, op: str, left: Pair, right: Pair) -> str:
        """Text of a comparison."""
        difference = left + right.scaled(-1)
        if difference.tile is None:
            return f"({difference.low} {'=' if op == '==' else op} 0)"
        minus_one = Pair(Linear.of({}, -1))
        at_least = self.nonnegative(difference)
        at_most = self.nonnegative(difference.scaled(-1))
        above = self.nonnegative(difference + minus_one)
        below = self.nonnegative(difference.scaled(-1) + minus_one)
        return {
            ">=": at_least,
            "<=": at_most,
            ">": above,
            "<": below,
            "==": f"({at_least} and {at_most})",
            "!=": f"({above} or {below})",
        }[op]


DIGIT = "_digit"
"""The suffix of dimensions that run from 0 to the tile size minus 1."""


def require_digits(low: Linear, tile: str) -> None:
    """Raises NotAffine unless `low` is a sum of digits of `tile` and a constant."""
    for name, _ in low.terms:
        if not name.endswith(DIGIT):
            what = name.removeprefix("P_").removeprefix("Q_")
            advice = f"`assume {what} % {tile} == 0` would say so"
            raise NotAffine(f"{what} is not known to be a multiple of {tile} ({advice})")


def quotient(name: str, tile: str) -> str:
    """The isl parameter that stands for name / tile."""
    return f"N_{len(name)}_{name}_{tile}"  # the length distinguishes (n_a, b) from (n, a_b)


def sizes(parameters: Iterable[str], assumptions: Iterable[Condition], numbers: Mapping[str, int]) -> Sizes:
    """The sizes of a kernel with `numbers` given."""
    symbols = tuple(p for p in parameters if p not in numbers)
    divided: dict[str, int] = {}
    tiled: set[tuple[str, str]] = set()
    beyond: dict[str, int] = {}
    for condition in conjuncts(assumptions):
        match condition:
            case Compare("==", Mod(numerator, divisor), Const(0)) if (found := _less(numerator)) is not None:
                n, constant = found
                # A parameter with several multiples uses one constant; the others are not used.
                if n not in symbols or beyond.setdefault(n, constant) != constant:
                    continue
                match divisor:
                    case Sym(b) if b in symbols:
                        tiled.add((n, b))
                    case Sym(b) if b in numbers:
                        divided[n] = lcm(divided.get(n, 1), numbers[b])
                    case Const(c) if c > 1:
                        divided[n] = lcm(divided.get(n, 1), c)
    divided = {n: c for n, c in divided.items() if c > 1}
    used = divided.keys() | {n for n, _ in tiled}
    return Sizes(
        dict(numbers), symbols, divided, frozenset(tiled), beyond={n: c for n, c in beyond.items() if c and n in used}
    )


def _less(e: IntExpr) -> tuple[str, int] | None:
    """(n, c) of n - c; None for other expressions."""
    match e:
        case Sym(n):
            return n, 0
        case Sum((Sym(n), Const(c))) | Sum((Const(c), Sym(n))):
            return n, -c
    return None


def conjuncts(conditions: Iterable[Condition]) -> list[Condition]:
    """The conditions with every top-level `and` taken apart."""
    out: list[Condition] = []
    for c in conditions:
        out.extend(conjuncts(c.parts) if isinstance(c, And) else [c])
    return out
