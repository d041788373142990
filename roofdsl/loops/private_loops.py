"""What is known of loops whose iterations are independent once each has a copy of its own of some `temp` arrays."""

from __future__ import annotations

from roofdsl.lang.record import Record


class Copied(Record):
    """A `temp` of which each iteration has a copy. kept: the dimensions that tell elements of one iteration apart."""

    name: str
    kept: tuple[int, ...]


class PrivateLoop(Record):
    """A loop that becomes independent by copies. outside: a depth, as `checks.parallel_loops` gives it."""

    outside: int
    copies: tuple[Copied, ...]

    @property
    def copied(self) -> tuple[str, ...]:
        """The names of the arrays and scalars."""
        return tuple(copy.name for copy in self.copies)
