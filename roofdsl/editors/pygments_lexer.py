"""The Pygments lexer of `.roof` files (entry point `roof`): for documentation, notebooks, pages and terminals."""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import RegexLexer, bygroups, include
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
)

from roofdsl.editors import vocabulary as words
from roofdsl.lang.machine_attributes import LINES


def _first(names: tuple[str, ...], state: str | None = None) -> tuple[Any, ...]:
    rule = (words.line_start(names), bygroups(Whitespace, Keyword))
    return rule if state is None else (*rule, state)


class RoofLexer(RegexLexer):  # type: ignore[misc, unused-ignore]
    """Highlights whatever it is given, errors too; a character that the language does not have is plain text."""

    name = "Roof"
    aliases: ClassVar[list[str]] = ["roof"]
    filenames: ClassVar[list[str]] = ["*.roof"]
    mimetypes: ClassVar[list[str]] = ["text/x-roof"]
    url = "https://pypi.org/project/roofdsl/"

    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (
                rf"^(kernel|program)([ \t]+)({words.NAME})",
                bygroups(Keyword.Declaration, Whitespace, Name.Function),
            ),
            (rf"^(machine)([ \t]+)({words.NAME})", bygroups(Keyword.Declaration, Whitespace, Name.Class)),
            _first(LINES, "machine"),
            _first(words.SETTINGS, "setting"),
            _first(words.INTENTS, "declaration"),
            (rf"^([ \t]*)(run)([ \t]+)({words.NAME})", bygroups(Whitespace, Keyword, Whitespace, Name.Function)),
            (rf"^([ \t]*)(collective)([ \t]+)({words.NAME})(?=[ \t]+{words.NAME})",
             bygroups(Whitespace, Keyword, Whitespace, Name.Attribute), "exchange"),
            _first(("assume",), "fact"),
            _first(words.STATEMENTS),
            (r"\n", Whitespace),
            include("inside"),
        ],
        "inside": [
            (r"[ \t\r]+", Whitespace),
            (r"#.*", Comment.Single),
            (words.STRING, String.Double),
            (words.quantity(), bygroups(Number, Whitespace, Keyword.Constant)),
            (words.NUMBER, Number),
            (words.any_word(words.OPERATORS), Operator.Word),
            (words.any_word(("for", "in", "by", "const")), Keyword),
            (words.any_word(words.FUNCTION_NAMES) + r"(?=[ \t]*\()", Name.Builtin),
            (r"(?:min|max|[-+*/])=(?!=)|\*\*|//|[-+*/%]|<->|->|[<>=!]=|[<>=]", Operator),
            (r"[()\[\]:,]", Punctuation),
            (words.NAME, Name.Variable),
            (r'"', String.Double),
            (r".", Text),
        ],
        "declaration": [
            (r"\n", Whitespace, "#pop"),
            (rf"(:)([ \t]*)({'|'.join(words.TYPE_NAMES)})\b", bygroups(Punctuation, Whitespace, Keyword.Type)),
            (words.any_word(("col", "index")), Keyword),
            include("inside"),
        ],
        "fact": [
            (r"\n", Whitespace, "#pop"),
            (words.any_word(words.FACT_WORDS), Keyword),
            include("inside"),
        ],
        "exchange": [
            (r"\n", Whitespace, "#pop"),
            (words.any_word(words.EXCHANGE_WORDS), Keyword),
            (rf"(:)([ \t]*)({'|'.join(words.TYPE_NAMES)})\b", bygroups(Punctuation, Whitespace, Keyword.Type)),
            include("inside"),
        ],
        "setting": [(r"\n", Whitespace, "#pop"), (words.any_word(words.TYPE_NAMES), Keyword.Type),
                    (words.NAME, Name.Attribute), include("inside")],
        "machine": [
            (r"\n", Whitespace, "#pop"),
            (words.any_word(("source",)), Keyword),
            (words.any_word(words.TYPE_NAMES), Keyword.Type),
            (r"(,)([ \t]*)(" + words.NAME + ")", bygroups(Punctuation, Whitespace, Name.Attribute)),
            include("inside"),
        ],
    }  # fmt: skip
