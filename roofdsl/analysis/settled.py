"""Values computed once, and failures found only once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class NoClosedForm(Exception):
    """A quantity has no closed form that this program finds; the message says why."""


class settled(Generic[T]):
    """A property that is computed once; where that raised NoClosedForm, it is raised again without another try.

    What is too hard takes the whole limit of operations to show itself, and several quantities rest on it.
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
