"""What is stated about one attribute of machines; `machine_attributes.py` has all of them."""

from __future__ import annotations

from typing import Literal

from roofdsl.lang.record import Record
from roofdsl.lang.units import Kind

Place = Literal["machine", "peak", "cache", "memory", "multiprocessor", "sustained", "core", "instruction"]


class Attribute(Record):
    """One attribute.

    word: its keyword. An attribute of the machine is a line of its own with one quantity; any other is an option of the
    lines named by `of`. kind: the kind of its quantity; None if the word stands alone.
    field: the model's field that it fills: a whole number for sizes and counts, `value` for a word alone, otherwise an
    exact fraction in the kind's base unit. share: whether a number between 0 and 1 may follow a word that stands alone
    and becomes its value; the word alone means 1.
    example: a quantity. needed: the message for a line without it.
    shown: how a value is printed, with `{number}` for the number and `{text}` for the quantity with a suitable unit.
    joins: it is printed without a comma before it.
    about: its description on the language's page.
    """

    word: str
    of: tuple[Place, ...]
    kind: Kind | None
    field: str
    about: str
    value: object = None
    share: bool = False
    example: str = "8"
    needed: str = ""
    shown: str = "{text}"
    joins: bool = False
