"""Values that are computed once, and failures that are found only once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from roofdsl.sets.library import LibraryFailure, OverBudget, TooHard, limited
from roofdsl.sets.misses import CannotCount
from roofdsl.sets.previous import NotCertified
from roofdsl.sets.sizes import NotAffine

T = TypeVar("T")

WORK, COMPULSORY = "the closed form of W", "the closed form of the compulsory traffic"
AT_CACHE, PLATEAUS = "the closed form of Q(Z)", "the plateaus of Q(Z)"
"""The names of the computed quantities, as messages use them."""


class NoClosedForm(Exception):
    """roofdsl finds no closed form of a quantity; the message says why."""


def form_within(compute: Callable[[], T], what: str, operations: int) -> T:
    """The result of `compute`, within `operations` integer-set operations and the command's budget.

    Raises NoClosedForm with the reason, which names `what` if a limit was exceeded.
    """
    try:
        with limited(what, operations):
            return compute()
    except OverBudget as error:
        raise NoClosedForm(error.message) from error
    except TooHard as error:
        instead = "values at given sizes are still available (--set, or `simulate --histogram`)"
        raise NoClosedForm(f"{error.message}; {instead}") from error
    except (CannotCount, LibraryFailure, NotAffine, NotCertified) as error:
        raise NoClosedForm(str(error).split("\n")[0]) from error


class settled(Generic[T]):
    """A property that is computed once. If that raised NoClosedForm, it is raised again without another attempt.

    A quantity that is too hard uses up its whole operation limit before it fails, and several quantities depend on it.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.place = f"{name} settled"

    def __get__(self, instance: Any, owner: type | None = None) -> T:
        known = instance.__dict__
        if self.place not in known:
            try:
                known[self.place] = self.compute(instance), None
            except NoClosedForm as error:
                known[self.place] = None, error
        value: T
        value, failure = known[self.place]
        if failure is not None:
            raise failure
        return value
