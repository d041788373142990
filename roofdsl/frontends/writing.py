"""What every front end keeps while it writes a kernel: the statements so far, and what is known of integers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from roofdsl.frontends.integer_facts import Facts
from roofdsl.frontends.poly import Poly
from roofdsl.lang import tree


class Writing:
    """The statements written so far (`out`), the facts about integers at this place (`facts`), and names for unknown
    integers.
    """

    def __init__(self) -> None:
        self.out: list[tree.Item] = []
        self.facts = Facts()
        self._fresh = 0

    def symbol(self) -> Poly:
        """A name for an integer that is not known yet."""
        self._fresh += 1
        return Poly.name(f"@{self._fresh}")

    @contextmanager
    def collected(self) -> Iterator[list[tree.Item]]:
        """Statements written inside the context go to a separate list."""
        before, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = before

    @contextmanager
    def within(self, facts: Facts) -> Iterator[None]:
        """Inside the context, `facts` take the place of the present facts."""
        before, self.facts = self.facts, facts
        try:
            yield
        finally:
            self.facts = before
