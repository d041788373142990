"""The TextMate grammar of `.roof` files, made of the language's own words.

    python -m roofdsl.editors.textmate

writes it into the VS Code extension beside this file. A test fails if this was forgotten after a new keyword.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from roofdsl.editors import vocabulary as words
from roofdsl.lang.machine_attributes import LINES

EXTENSION = Path(__file__).parent / "vscode"
GRAMMAR = EXTENSION / "syntaxes" / "roof.tmLanguage.json"


def grammar() -> dict[str, Any]:
    """The grammar as a JSON document; scopes are those that themes color."""

    def line(names: tuple[str, ...], includes: list[str]) -> dict[str, Any]:
        return {
            "begin": words.line_start(names),
            "beginCaptures": {"2": {"name": "keyword.control.roof"}},
            "end": "$",
            "patterns": [{"include": f"#{name}"} for name in includes],
        }

    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "Roof",
        "scopeName": "source.roof",
        "fileTypes": ["roof"],
        "patterns": [
            {"include": "#comment"},
            {
                "match": rf"^(kernel|program)\s+({words.NAME})",
                "captures": {"1": {"name": "storage.type.roof"}, "2": {"name": "entity.name.function.roof"}},
            },
            {
                "match": rf"^(machine)\s+({words.NAME})",
                "captures": {"1": {"name": "storage.type.roof"}, "2": {"name": "entity.name.type.roof"}},
            },
            line(LINES, ["note", "types", "attributes", "values"]),
            line(words.SETTINGS, ["types", "words", "values"]),
            line(words.INTENTS, ["declared", "values"]),
            {
                "match": rf"^(\s*)(run)\s+({words.NAME})",
                "captures": {"2": {"name": "keyword.control.roof"}, "3": {"name": "entity.name.function.roof"}},
            },
            {
                "begin": rf"^(\s*)(collective)\s+({words.NAME})(?=\s+{words.NAME})",
                "beginCaptures": {
                    "2": {"name": "keyword.control.roof"},
                    "3": {"name": "constant.language.roof"},
                },
                "end": "$",
                "patterns": [
                    {"match": words.any_word(words.EXCHANGE_WORDS), "name": "keyword.control.roof"},
                    {"include": "#declared"},
                    {"include": "#values"},
                ],
            },
            {
                "begin": words.line_start(("assume",)),
                "beginCaptures": {"2": {"name": "keyword.control.roof"}},
                "end": "$",
                "patterns": [
                    {"match": words.any_word(words.FACT_WORDS), "name": "keyword.control.roof"},
                    {"include": "#values"},
                ],
            },
            {"match": words.line_start(words.STATEMENTS), "captures": {"2": {"name": "keyword.control.roof"}}},
            {"include": "#values"},
        ],
        "repository": _repository(),
    }


def _repository() -> dict[str, Any]:
    """The patterns that others include by name."""
    return {
        "comment": {"match": "#.*", "name": "comment.line.number-sign.roof"},
        "note": {"match": r"\bsource\b", "name": "keyword.control.roof"},
        "types": {"match": words.any_word(words.TYPE_NAMES), "name": "storage.type.roof"},
        "words": {"match": words.NAME, "name": "constant.language.roof"},
        "attributes": {
            "match": rf",\s*({words.NAME})",
            "captures": {"1": {"name": "entity.other.attribute-name.roof"}},
        },
        "declared": {
            "patterns": [
                {
                    "match": rf":\s*({'|'.join(words.TYPE_NAMES)})\b",
                    "captures": {"1": {"name": "storage.type.roof"}},
                },
                {"match": words.any_word(("col", "index")), "name": "keyword.control.roof"},
            ]
        },
        "values": {
            "patterns": [
                {"include": "#comment"},
                {"match": words.STRING, "name": "string.quoted.double.roof"},
                {
                    "match": words.quantity(),
                    "captures": {"1": {"name": "constant.numeric.roof"}, "3": {"name": "keyword.other.unit.roof"}},
                },
                {"match": words.NUMBER, "name": "constant.numeric.roof"},
                {"match": words.any_word(words.OPERATORS), "name": "keyword.operator.logical.roof"},
                {"match": words.any_word(("for", "in", "by", "const")), "name": "keyword.control.roof"},
                {
                    "match": words.any_word(words.FUNCTION_NAMES) + r"(?=\s*\()",
                    "name": "support.function.roof",
                },
                {
                    "match": r"(?:min|max|[-+*/])=(?!=)|\*\*|//|[-+*/%]|<->|->|[<>=!]=|[<>=]",
                    "name": "keyword.operator.roof",
                },
                {"match": words.NAME, "name": "variable.other.roof"},
            ]
        },
    }


def text() -> str:
    """The text of the grammar file."""
    return json.dumps(grammar(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    GRAMMAR.write_text(text(), encoding="utf-8")
