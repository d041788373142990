"""What the results of a measurement were compared with, and whether that shows them to be right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

STATUS = {True: "verified", False: "cannot be verified"}
"""How a document says whether results were verified."""


@dataclass(frozen=True)
class Verified:
    """What the results were compared with before anything was timed.

    max_error: the largest difference, over the largest size of a value in its array; of_allowed: the largest
    difference over what rounding in the kernel's types allows, at most 1; unverified: the share of elements of which
    the reference can say nothing. parameters: the sizes of the comparison, smaller than those timed where the
    reference would take long (the compiled code is the same). unverifiable: of which results the comparison shows
    nothing, and why, a sentence each: the measurement then counts as not verified.
    """

    against: str
    max_error: float
    of_allowed: float
    unverified: float
    parameters: tuple[tuple[str, int], ...]
    unverifiable: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the results were verified."""
        return not self.unverifiable

    def warnings(self) -> tuple[str, ...]:
        """What to say of results that cannot be verified."""
        return tuple(f"cannot be verified: {reason}" for reason in self.unverifiable)

    def to_json(self) -> dict[str, Any]:
        return {
            "status": STATUS[self.holds],
            "against": self.against,
            "max_error": self.max_error,
            "of_allowed": self.of_allowed,
            "unverified": self.unverified,
            "parameters": dict(self.parameters),
            "unverifiable": list(self.unverifiable),
        }
