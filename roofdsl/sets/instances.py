"""Executions of statements, and pairs of them, as integer sets over parameters and loop variables, for yes-or-no
questions.

Every set made here contains at least the executions in question. Expressions without an affine form are left out or
become fresh parameters, and for a step of unknown size only the distance between its multiples is known. An empty set
is therefore a proof. A point of a set is only a suspicion, which is confirmed by evaluating the kernel's own
expressions there. If it is not confirmed, numbers in place of the parameters in `hard` make the sets exact (`decide`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Generic, TypeVar

import islpy as isl

from roofdsl.lang.record import Record
from roofdsl.loops.accesses import PlacedStatement
from roofdsl.loops.affine import affine
from roofdsl.loops.indirect import require_affine
from roofdsl.loops.integers import (
    Compare,
    Condition,
    Const,
    FloorDiv,
    IntExpr,
    Max,
    Min,
    Mod,
    Product,
    Sum,
    Sym,
    sub,
)
from roofdsl.loops.model import For, Kernel
from roofdsl.loops.used_parameters import used_parameters
from roofdsl.sets.domains import surroundings, truth
from roofdsl.sets.library import set_of
from roofdsl.sets.sizes import NotAffine, conjuncts

T = TypeVar("T")
TRIED = 5  # numbers tried for each of up to three parameters that keep a set from being exact; for each of more, 2
COMBINATIONS = 40  # combinations of these numbers that are tried, at most
CASES = 32  # combinations of the starts of loops with steps, around one statement
POINTS = 12  # sets whose smallest point is looked at before giving up


def variable(execution: str, name: str) -> str:
    """The dimension for loop variable `name` in the execution called `x`, `y`, ..."""
    return f"{execution}_{name}"


class Encoder:
    """Kernel expressions as text for the integer-set library, with some parameters as `numbers`.

    hard: parameters that keep a set from being exact. `exact` says whether everything encoded so far is exact.
    """

    def __init__(self, kernel: Kernel, numbers: Mapping[str, int] | None = None) -> None:
        require_affine(kernel)
        self.numbers = dict(numbers or {})
        used = used_parameters(kernel)
        self.names = [n for n in used if n not in self.numbers]
        self._free = {p.name: 1 for p in kernel.parameters if p.name not in used}  # any value will do
        self.hard: set[str] = set()
        self.exact = True
        self._fresh: dict[IntExpr, str] = {}
        self._facts = [f"p_{n} >= 1" for n in self.names]
        self._cases = 1
        self._multiples: set[tuple[str, str]] = set()
        for assumption in conjuncts(kernel.assumptions):
            match assumption:
                case Compare("==", Mod(Sym(n), Sym(b)), Const(0)) if n not in self.numbers and b not in self.numbers:
                    # While b has no number, it is not an affine condition that n is a multiple of b. But n >= b is one,
                    # and `_loop` uses the rest where it matters: no tile is cut off.
                    self._multiples.add((n, b))
                    self._facts.append(f"p_{n} >= p_{b}")
                    self._inexact({b})
                case _:
                    self._facts.append(self._condition(assumption, {}))

    @staticmethod
    def like(other: Encoder) -> Encoder:
        """An encoder with the same parameters, including fresh ones, that has encoded nothing inexactly yet."""
        copy = Encoder.__new__(Encoder)
        copy.__dict__.update(other.__dict__)
        copy.exact = True
        return copy

    def _inexact(self, names: set[str] | frozenset[str]) -> None:
        self.exact = False
        self.hard |= names - self.numbers.keys()

    # ---- sets ----

    def make(self, variables: Sequence[str], constraints: Sequence[str]) -> Any:
        """The isl.Set of `variables` that meet the constraints, if the parameters meet the assumptions."""
        parameters = ", ".join([*(f"p_{n}" for n in self.names), *self._fresh.values()])
        where = " and ".join([*self._facts, *constraints]) or "true"
        return set_of(f"[{parameters}] -> {{ [{', '.join(variables)}] : {where} }}")

    def order(self, variables: Sequence[str], constraints: Sequence[str]) -> Any:
        """The isl.Set of `variables` that meet only the constraints."""
        parameters = ", ".join([*(f"p_{n}" for n in self.names), *self._fresh.values()])
        return set_of(f"[{parameters}] -> {{ [{', '.join(variables)}] : {' and '.join(constraints) or 'true'} }}")

    # ---- executions ----

    def domain(self, placed: PlacedStatement, execution: str, steps_known: bool = False) -> list[str]:
        """Constraints on the loop variables of one execution of a statement.

        steps_known: other constraints ensure that loops with steps of unknown size are at one of their steps.
        """
        self._cases = 1

        def loop(depth: int, outer: Mapping[str, str]) -> tuple[str, list[str]]:
            each = placed.loops[depth]
            name = variable(execution, each.var)
            around = {other.var: other for other in placed.loops[:depth]}
            return name, self._loop(each, {**outer, each.var: name}, around, steps_known)

        return surroundings(placed, loop, self._said)[1]

    def _said(self, condition: Condition, names: Mapping[str, str]) -> list[str]:
        """A condition as a constraint; empty if it has no affine form."""
        try:
            return [self._condition(condition, names)]
        except NotAffine:
            self._inexact(condition.symbols() & frozenset(self.names))
            return []

    def _loop(self, loop: For, names: Mapping[str, str], outer: Mapping[str, For], known: bool) -> list[str]:
        var, starts = names[loop.var], loop.starts
        constraints = [text for bound in loop.bounds for text in self._said(bound, names)]
        step = self.step(loop)
        if step is None:
            if not known:
                self._inexact(loop.step.symbols())
            for stop in loop.stops:
                if isinstance(loop.step, Sym) and self._is_multiple(sub(stop, loop.start), loop.step.name, outer):
                    constraints.append(f"{var} <= {self.expression(stop, names)} - p_{loop.step.name}")
        elif step > 1:
            # The loop begins at the largest of its starts. A start that another one always reaches is not needed, and
            # every start multiplies the cases.
            own = [t for t in starts if not any(_dominates(other, t, outer) for other in starts if other != t)]
            self._cases *= len(own)
            if self._cases > CASES:
                self.exact = False
            else:
                start = self.expression(own[0] if len(own) == 1 else Max(tuple(own)), names)
                constraints.append(f"({var} - {start}) mod {step} = 0")
        return constraints

    def step(self, loop: For) -> int | None:
        """The step of a loop if it is a number; otherwise None."""
        return loop.step.evaluate(self.numbers) if loop.step.symbols() <= self.numbers.keys() else None

    def _is_multiple(self, e: IntExpr, tile: str, loops: Mapping[str, For]) -> bool:
        """Whether an expression is known to be a multiple of a parameter."""
        form = affine(e)
        if form.constant or form.hidden():
            return False
        for name in form.coefficients():
            if name == tile or (name, tile) in self._multiples:
                continue
            loop = loops.get(name)
            if loop is None or loop.step != Sym(tile) or not self._is_multiple(loop.start, tile, loops):
                return False
        return True

    # ---- the order of executions ----

    @staticmethod
    def first(pairs: Any, dimensions: int) -> Any:
        """The first `dimensions` coordinates of the points of a set."""
        return pairs.project_out(isl.dim_type.set, dimensions, pairs.dim(isl.dim_type.set) - dimensions)

    def before(self, loop: For, first: str, second: str) -> str:
        """Text: execution `first` is in an earlier iteration of the loop, given the same ones of the outer loops."""
        a, b = variable(first, loop.var), variable(second, loop.var)
        step = self.step(loop)
        return f"{a} + {f'p_{loop.step}' if step is None else step} <= {b}"

    # ---- expressions; their nesting is limited by the language ----

    def expression(self, e: IntExpr, names: Mapping[str, str]) -> str:
        """Text of an expression in parameters and the loop variables of `names`. Raises NotAffine."""
        if e.symbols() <= self.numbers.keys():
            return f"({e.evaluate(self.numbers)})"
        match e:
            case Sym(name):
                return names.get(name, f"p_{name}")
            case Sum(terms):
                return f"({' + '.join(self.expression(t, names) for t in terms)})"
            case Product(factors):
                return self._product(e, factors, names)
            case Min(terms) | Max(terms):
                word = "min" if isinstance(e, Min) else "max"
                text = self.expression(terms[0], names)
                for t in terms[1:]:
                    text = f"{word}({text}, {self.expression(t, names)})"
                return text
            case FloorDiv(numerator, divisor) | Mod(numerator, divisor):
                if not divisor.symbols() <= self.numbers.keys():
                    return self._opaque(e, divisor.symbols(), names)
                by = divisor.evaluate(self.numbers)
                inner = self.expression(numerator, names)
                return f"floor({inner}/{by})" if isinstance(e, FloorDiv) else f"({inner} mod {by})"
        raise NotAffine(f"`{e}`")

    def _product(self, e: IntExpr, factors: tuple[IntExpr, ...], names: Mapping[str, str]) -> str:
        scale, rest = 1, []
        for f in factors:
            if f.symbols() <= self.numbers.keys():
                scale *= f.evaluate(self.numbers)
            else:
                rest.append(f)
        if len(rest) == 1:
            return f"({scale}*{self.expression(rest[0], names)})"
        others = frozenset().union(*(f.symbols() for f in rest[1:]))
        text = self._opaque(Product(tuple(rest)), others, names)
        if all(isinstance(f, Sym) for f in rest):  # each factor is at least 1, so (f - 1)*(g - 1) >= 0
            total = " + ".join(f"p_{f}" for f in rest)
            facts = [*(f"{text} >= p_{f}" for f in rest), f"{text} >= {total} - {len(rest) - 1}"]
            self._facts += [fact for fact in facts if fact not in self._facts]
        return f"({scale}*{text})"

    def _opaque(self, e: IntExpr, hard: frozenset[str], names: Mapping[str, str]) -> str:
        """A fresh parameter for an expression in parameters that has no affine form."""
        if e.symbols() & names.keys():
            raise NotAffine(f"`{e}`")
        self._inexact(hard)
        return self._fresh.setdefault(e, f"f_{len(self._fresh)}")

    def _condition(self, condition: Condition, names: Mapping[str, str]) -> str:
        def compare(c: Compare) -> str:
            sign = "=" if c.op == "==" else c.op
            return f"({self.expression(c.left, names)} {sign} {self.expression(c.right, names)})"

        return truth(condition, compare)

    # ---- points ----

    def smallest(self, found: Any) -> dict[str, int] | None:
        """A point: parameters and dimensions by name, with the least possible sum of the parameters.

        None for an empty set, and if fresh parameters stand for expressions, because their values would mean nothing.
        """
        if self._fresh:
            return None
        count = found.dim(isl.dim_type.param)
        names = [found.get_dim_name(isl.dim_type.param, i).removeprefix("p_") for i in range(count)]
        names += [found.get_dim_name(isl.dim_type.set, i) for i in range(found.dim(isl.dim_type.set))]
        moved = found.move_dims(isl.dim_type.set, 0, isl.dim_type.param, 0, count).reset_tuple_id()
        columns = [f"c{i}" for i in range(len(names))]
        total = " + ".join(columns[:count]) or "0"
        moved = moved.insert_dims(isl.dim_type.set, 0, 1)
        least = moved.intersect(isl.Set(f"{{ [{', '.join(['s', *columns])}] : s = {total} }}")).lexmin()
        point = least.sample_point()
        if point.is_void():
            return None
        values = [point.get_coordinate_val(isl.dim_type.set, i + 1).to_python() for i in range(len(names))]
        return self._free | dict(zip(names, values, strict=True)) | self.numbers


def _dominates(value: IntExpr, other: IntExpr, loops: Mapping[str, For]) -> bool:
    """Whether `value` is the variable of a loop that starts at `other` or beyond."""
    pending, seen = [value], {value}
    while pending:
        e = pending.pop()
        if not isinstance(e, Sym) or e.name not in loops:
            continue
        terms = loops[e.name].starts
        if other in terms:
            return True
        pending += [t for t in terms if t not in seen]
        seen |= set(terms)
    return False


# ---- questions ----


class Answer(Record, Generic[T]):
    """found: a confirmed example. Otherwise, `proven` says whether there is none at any size.

    hard: the parameters for which only some numbers could be tried.
    """

    found: T | None
    proven: bool
    hard: tuple[str, ...] = ()


def decide(
    kernel: Kernel, suspects: Callable[[Encoder], Iterator[Any]], confirm: Callable[[dict[str, int]], T | None]
) -> Answer[T]:
    """Whether a set made by `suspects` has a point that `confirm` accepts, for some allowed sizes.

    `suspects` yields supersets of the points in question (the exact sets if the encoder stays exact).
    """
    encoder = Encoder(kernel)
    found, clear = _confirmed(encoder, suspects, confirm)
    if found is not None or clear:
        return Answer(found, clear)
    hard = sorted(encoder.hard)
    for numbers in _combinations(kernel, hard):
        found, _ = _confirmed(Encoder(kernel, numbers), suspects, confirm)
        if found is not None:
            return Answer(found, False)
    return Answer(None, False, tuple(hard))


def _confirmed(
    encoder: Encoder, suspects: Callable[[Encoder], Iterator[Any]], confirm: Callable[[dict[str, int]], T | None]
) -> tuple[T | None, bool]:
    clear, looked = True, 0
    for found in suspects(encoder):
        if found.is_empty():
            continue
        clear = False
        # A set may be non-empty only because constraints were left out: its point has to be one of the kernel itself.
        point = encoder.smallest(found) if looked < POINTS else None
        looked += 1
        if point is not None and (confirmed := confirm(point)) is not None:
            return confirmed, False
    return None, clear


def _combinations(kernel: Kernel, hard: list[str]) -> list[dict[str, int]]:
    if not hard:
        return []
    each = TRIED if len(hard) < 4 else 2
    tuples = sorted(product(range(1, each + 1), repeat=min(len(hard), 5)), key=lambda t: (sum(t), t))
    named = [dict(zip(hard, t, strict=False)) for t in tuples[:COMBINATIONS]]
    return [
        numbers
        for numbers in named
        if all(c.holds(numbers) for c in kernel.assumptions if c.symbols() <= numbers.keys())
    ]
