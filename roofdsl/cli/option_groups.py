"""Options of a command that together make one value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def as_one(name: str, make: Callable[..., Any], *, of: Sequence[str], options: Sequence[Decorator]) -> Decorator:
    """A decorator that adds `options`; the command gets `name`, made of the values of the parameters in `of`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def inner(**given: Any) -> Any:
            own = [given.pop(each) for each in of]
            return command(**given, **{name: make(*own)})

        found: Callable[..., Any] = inner
        for option in reversed(options):
            found = option(found)
        return found

    return add
