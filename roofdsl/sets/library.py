"""The integer-set library under limits of operations and time, and its results as roofdsl's own values."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any

import islpy as isl

from roofdsl import budget, reproducibility
from roofdsl.lang.diagnostics import CommandError
from roofdsl.sets.dimensions import dimensions
from roofdsl.sets.quasi import Monomial, Quasi, floor

MAX_OPERATIONS = 30_000_000
"""The maximum number of integer-set operations for one quantity if there is no budget: 15 seconds to a minute. With a
budget, a limit of this many or more stands for as many as the budget has time for.
"""


class TooHard(CommandError):
    """The integer-set library gave up at its limit of `operations`, or (None) a set has too many parts to try it."""

    def __init__(self, what: str, operations: int | None = None) -> None:
        beyond = "has too many parts to be counted"
        if operations is not None:
            beyond = f"needs more than {operations:,} integer-set operations"
        super().__init__(
            f"{what} {beyond}", "give numbers for the parameters with --set, or split the kernel into smaller ones"
        )


class OverBudget(TooHard):
    """The command's budget is used up (`roofdsl.budget`). With a larger one, there may be an answer."""

    def __init__(self, what: str) -> None:
        CommandError.__init__(self, f"{what}: {budget.leave_out(what)}", "")
        reproducibility.decided_by_chance()  # results that depend on it are not kept


class LibraryFailure(Exception):
    """The integer-set library reported an internal error. Another method may still find the answer."""


@contextmanager
def limited(what: str, operations: int = MAX_OPERATIONS) -> Iterator[None]:
    """Run integer-set code under the operation limit and the command's budget; nested uses share the outermost limit.

    Raises TooHard beyond the limit (OverBudget beyond the budget), naming `what`, and LibraryFailure for any other
    error of the library.
    """
    context = isl.DEFAULT_CONTEXT
    outermost = context.get_max_operations() == 0
    if outermost:
        in_force.begin(operations)
    try:
        with budget.region(what, in_force.renew if outermost else None):
            yield
    except budget.Spent as error:
        raise OverBudget(what) from error
    except isl.Error as error:
        if budget.left_s() <= 0:  # raised in a callback of the library
            raise OverBudget(what) from error
        if "maximal number of operations" in str(error) or is_aborted():
            raise in_force.error(what) from error
        call = re.search(r"isl_\w+", str(error))  # the rest of its text names places in its source
        raise LibraryFailure(f"the integer-set library failed on {what}{f', in {call[0]}' if call else ''}") from error
    finally:
        if outermost:
            context.set_max_operations(0)
            context.reset_operations()


OPERATIONS_PER_SECOND, SLOW_OPERATIONS_PER_SECOND = 2_000_000, 500_000
"""About how many operations the integer-set library does in a second, usually and at worst: turns limits into time."""

LEAST_SECONDS, LEAST_OPERATIONS = 0.25, 100_000
"""The least processor time that a child gets, whatever others have spent, and the least operations of this process."""


class _Limit:
    """A limit: a number of operations, or as many as the command's budget has time for.

    The processor time of child processes counts as operations.
    """

    def __init__(self) -> None:
        self.operations, self.begun_s = MAX_OPERATIONS, 0.0
        self.is_cut = False  # whether the budget allows fewer operations
        self.whole_s = MAX_OPERATIONS / OPERATIONS_PER_SECOND

    def begin(self, operations: int) -> None:
        """Set a new limit: what was spent before does not count."""
        self.operations = operations
        self.begun_s = os.times().children_user
        isl.DEFAULT_CONTEXT.reset_operations()
        allowed = self._in_library()
        self.is_cut = allowed < operations
        isl.DEFAULT_CONTEXT.set_max_operations(allowed)
        self.whole_s = self.seconds()

    @property
    def by_budget(self) -> bool:
        """Whether only the command's budget limits the time."""
        return self.operations >= MAX_OPERATIONS and budget.current() is not None

    def _in_library(self) -> int:
        """The maximum number of operations until the clock is next checked, since nothing else ends a long call."""
        left = max(0.0, budget.left_s())
        in_time = int(min(left, 1e9) * SLOW_OPERATIONS_PER_SECOND) + LEAST_OPERATIONS
        return in_time if self.by_budget else min(self.operations, in_time)

    def renew(self) -> None:
        """Under a budget, stop counting the operations so far: the time that they took counts instead."""
        context = isl.DEFAULT_CONTEXT
        if self.by_budget and context.get_max_operations() and not is_aborted():
            context.reset_operations()
            context.set_max_operations(self._in_library())

    def seconds(self) -> float:
        """The rest of the limit, in seconds."""
        if self.by_budget:
            return max(LEAST_SECONDS, budget.left_s())
        spent = os.times().children_user - self.begun_s
        return max(LEAST_SECONDS, min(self.operations / OPERATIONS_PER_SECOND - spent, budget.left_s()))

    def require_time(self, what: str) -> None:
        """Raises OverBudget if the budget has no time for another child process.

        Each child gets at least LEAST_SECONDS, and there may be hundreds. In a child, which has no timer of the budget,
        nothing else would notice.
        """
        if budget.left_s() <= 0:
            raise self.error(what)

    def error(self, what: str) -> TooHard:
        """The error that `what`, or rather the command's current activity, needs more."""
        own = budget.current()
        what = own.doing[-1] if own and own.doing else what
        if self.by_budget or self.is_cut or budget.left_s() <= LEAST_SECONDS:
            return OverBudget(what)
        return TooHard(what, self.operations)


in_force = _Limit()
"""The limit in force."""


@contextmanager
def unlimited() -> Iterator[None]:
    """Suspend the operation limit; operations in the meantime count against it afterwards."""
    context = isl.DEFAULT_CONTEXT
    before = context.get_max_operations()
    context.set_max_operations(0)
    try:
        yield
    finally:
        context.set_max_operations(before)


def is_aborted() -> bool:
    """Whether the library refuses to work because the limit was reached (it then reports all kinds of errors)."""
    try:
        isl.Set("{ [] }")
    except isl.Error:
        return True
    return False


def affine_value(aff: Any) -> Quasi:
    """An isl.Aff as a quasi-polynomial in the names of its parameters and dimensions."""
    terms: dict[Monomial, Fraction] = {(): _fraction(aff.get_constant_val())}
    space = aff.get_domain_local_space()
    for kind in (isl.dim_type.param, isl.dim_type.set):
        for i in range(space.dim(kind)):
            c = aff.get_coefficient_val(isl.dim_type.in_ if kind == isl.dim_type.set else kind, i)
            if not c.is_zero():
                terms[(space.get_dim_name(kind, i), 1),] = _fraction(c)
    total = Quasi.of(terms)
    for i in range(aff.dim(isl.dim_type.div)):
        c = aff.get_coefficient_val(isl.dim_type.div, i)
        if not c.is_zero():
            total += floor(affine_value(aff.get_div(i))) * _fraction(c)
    return total


def quasi_value(polynomial: Any, names: list[str]) -> Quasi:
    """An isl.QPolynomial as a quasi-polynomial; `names` are those of its dimensions."""
    terms: dict[Monomial, Fraction] = {}
    params: list[str] | None = None
    for term in polynomial.get_terms():
        if params is None:
            space = polynomial.get_domain_space()
            params = [space.get_dim_name(isl.dim_type.param, i) for i in range(space.dim(isl.dim_type.param))]
        monomial: list[tuple[Any, int]] = []
        floors: Quasi | None = None
        for i, name in enumerate(params):
            if e := term.get_exp(isl.dim_type.param, i):
                monomial.append((name, e))
        for i, name in enumerate(names):
            if e := term.get_exp(isl.dim_type.set, i):
                monomial.append((name, e))
        for i in range(term.dim(isl.dim_type.div)):
            if e := term.get_exp(isl.dim_type.div, i):
                power = _renamed_floor(term.get_div(i), names) ** e
                floors = power if floors is None else floors * power
        coefficient = _fraction(term.get_coefficient_val())
        key: Monomial = tuple(sorted(monomial, key=lambda t: str(t[0])))
        added = ((key, coefficient),) if floors is None else (floors * Quasi.of({key: coefficient})).terms
        for each, factor in added:
            terms[each] = terms.get(each, Fraction(0)) + factor
    return Quasi.of(terms)


def _renamed_floor(aff: Any, names: list[str]) -> Quasi:
    for i, name in enumerate(names):
        aff = aff.set_dim_name(isl.dim_type.in_, i, name)
    return floor(affine_value(aff))


def pieces(piecewise: Any) -> list[tuple[Any, Quasi]]:
    """(isl.Set, value) of each piece of an isl.PwQPolynomial; dimensions are named d0, d1, ..."""
    found = []
    for domain, polynomial in piecewise.get_pieces():
        found.append((domain, quasi_value(polynomial, dimensions(domain))))
    return found


@lru_cache(maxsize=1 << 11)
def set_of(text: str) -> Any:
    """The isl.Set of a text that is likely to come again: the same points, executions, or pairs of executions."""
    return isl.Set(text)


def _fraction(value: Any) -> Fraction:
    return _read(str(value))


@lru_cache(maxsize=1 << 12)
def _read(text: str) -> Fraction:
    return Fraction(text)
