"""What was found out about sets and maps of the library, kept by their texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from roofdsl.sets.library import unlimited

T = TypeVar("T")


class ByText(Generic[T]):
    """Answers about sets or maps, at most `most` at a time."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._answers: dict[str, T] = {}

    def of(self, asked: Any, find: Callable[[], T]) -> T:
        """The answer about `asked`, which `find` gives if it is not known. Raises what `find` raises."""
        key = text_of(asked)
        if key not in self._answers:
            self.keep(key, find())
        return self._answers[key]

    def __contains__(self, key: str) -> bool:
        return key in self._answers

    def keep(self, key: str, answer: T) -> None:
        """Keeps the answer about the set or map whose text is `key`."""
        if len(self._answers) >= self.most:
            self._answers.clear()
        self._answers[key] = answer


def text_of(asked: Any) -> str:
    """The text of a set or map."""
    with unlimited():  # the library crashes if it reaches the limit while writing
        return str(asked)
