"""The parser that lark makes of `grammar.lark`, and the words that the grammar knows."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from lark import Lark

from roofdsl.lang import machine_attributes as machine
from roofdsl.lang.cache_folder import folder
from roofdsl.lang.layout import Layout

GRAMMAR = Path(__file__).with_name("grammar.lark")


def text() -> str:
    """The grammar: the file `grammar.lark`, and the rules made from the table of machine attributes."""
    return GRAMMAR.read_text(encoding="utf-8") + machine.GRAMMAR


@cache
def parser() -> Lark:
    """The LALR parser with a contextual lexer. Its `Layout` has state, so only one text is parsed at a time.

    Building it takes lark a tenth of a second. lark stores the result in a file and reads it again in a hundredth, as
    long as the grammar, lark and Python are the same; a damaged or partly written file is replaced.
    """
    place = _kept_in()
    return Lark(
        text(),
        parser="lalr",
        lexer="contextual",
        start="file",
        postlex=Layout(),
        propagate_positions=True,
        cache=str(place / "grammar.lark.cache") if place is not None else False,
    )


@cache
def patterns() -> dict[str, str]:
    """The regular expression of each terminal, by its name without the underscore of those that leave no token."""
    return {t.name.lstrip("_"): t.pattern.to_regexp() for t in parser().terminals}


@cache
def keywords() -> dict[str, str]:
    """The terminals of the words that the grammar knows, by word: `{"for": "FOR", ...}`."""
    import re

    words = {name.lower(): name for name in patterns() if name != "NAME"}
    return {word: name for word, name in words.items() if re.fullmatch(patterns()[name], word)}


@cache
def reserved() -> frozenset[str]:
    """The keywords that are never names."""
    import re

    return frozenset(word for word in keywords() if not re.fullmatch(patterns()["NAME"], word))


def _kept_in() -> Path | None:
    """The folder in which lark keeps the parser: that of Python's compiled modules, or else the user's cache folder."""
    for place in (Path(__file__).parent / "__pycache__", folder()):
        if place is None:
            continue
        with suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
        if place.is_dir() and os.access(place, os.W_OK):
            return place
    return None
