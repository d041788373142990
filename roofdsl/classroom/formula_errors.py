"""What is wrong with a text that should be a formula."""

from __future__ import annotations


class FormulaError(ValueError):
    """Raised for a text that is not a formula or exceeds the limits; the message is for the student."""


class UnknownNameError(FormulaError):
    """A word that is neither a name of the question nor a unit, nor a function."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name
