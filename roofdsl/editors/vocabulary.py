"""The words of the language, grouped as highlighters color them. Types, functions, units and those keywords that are
not listed here come from the language itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from roofdsl.lang.functions import FUNCTIONS
from roofdsl.lang.grammar import keywords, patterns
from roofdsl.lang.machine_attributes import LINES
from roofdsl.lang.types import TYPES
from roofdsl.lang.units import UNITS

DEFINERS = ("kernel", "machine", "program")
"""What defines the name after it."""

OPERATORS = ("and", "or", "not")
INTENTS = ("inout", "in", "out", "temp")
EXCHANGES = ("collective",)
EXCHANGE_WORDS = ("among", "over", "by")
"""The line of a program that states an exchange among devices, and the keywords inside it."""

FACT_WORDS = ("rises", "from", "to", "takes", "values", "has", "alpha")
"""Keywords inside an assumption about data: `assume offsets rises from 0 to m`."""

_WITHIN = ("by", "col", "index", "const", "source", *FACT_WORDS, *EXCHANGES, *EXCHANGE_WORDS)
"""Keywords that stand inside a line, or begin one that is highlighted in a way of its own."""

SETTINGS = ("traffic", "cost", "unit", "compute")
"""Lines whose further names are words that the language knows: `traffic once`."""

STATEMENTS = tuple(sorted(set(keywords()) - {*DEFINERS, *OPERATORS, *INTENTS, *_WITHIN, *LINES, *SETTINGS}))
"""What else a line may begin with: for, if, tile, run, ..."""

TYPE_NAMES = tuple(TYPES)
FUNCTION_NAMES = (*FUNCTIONS, "range")
UNIT_NAMES = tuple(sorted({u for units in UNITS.values() for u in units if u}, key=lambda u: (-len(u), u)))

NAME = "[A-Za-z_][A-Za-z0-9_]*"
NUMBER = patterns()["NUMBER"]
STRING = patterns()["STRING"]
NO_TARGET = r"(?![ \t]*(?:\[|=|(?:min|max|[-+*/])=))"
"""After a word that may also name an array: not where something is assigned to it."""


def any_word(words: Iterable[str]) -> str:
    """A pattern of whole words."""
    return rf"\b(?:{'|'.join(words)})\b"


def line_start(words: Iterable[str]) -> str:
    """A pattern of the indentation and a first word of a line, in two groups."""
    return rf"^([ \t]*)({'|'.join(words)})\b{NO_TARGET}"


def quantity() -> str:
    """A pattern of a number and its unit, in three groups: `6 MiB`, `2.44 TB/s`."""
    units = "|".join(UNIT_NAMES)
    return rf"({NUMBER})([ \t]*)({units})(?![A-Za-z0-9_/])"
