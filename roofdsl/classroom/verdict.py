"""The verdict on one answer."""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.classroom.answer_language import Node
from roofdsl.lang.record import Record


class Verdict(Record):
    """Whether an answer is right, and the message. `known`: the values that it provides to later parts. `reading` says
    how the answer was read.
    """

    correct: bool
    message: str
    known: Mapping[str, Node] = {}
    reading: str = ""
