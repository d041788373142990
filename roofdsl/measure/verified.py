"""The verification of a measurement's results: what they were compared with, and whether they are shown to be right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

STATUS = {True: "verified", False: "cannot be verified"}
"""How a document states whether results were verified."""


@dataclass(frozen=True)
class Verified:
    """The comparison of the results before anything was timed.

    max_error: the largest difference, relative to the largest size of a value in its array; of_allowed: the largest
    difference relative to what rounding in the kernel's types allows, at most 1; unverified: the share of elements for
    which the reference proves nothing. parameters: the sizes of the comparison, smaller than those timed if the
    reference would take long (the compiled code is the same). unverifiable: the results for which the comparison proves
    nothing, and why, one sentence each; the measurement then counts as not verified.
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
        """Warnings about results that cannot be verified."""
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
