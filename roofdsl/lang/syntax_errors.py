"""What to say about a token that cannot stand where it stands: what was found, what is expected, what to write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from lark import Token

from roofdsl.lang.diagnostics import Diagnostic
from roofdsl.lang.findings import closest
from roofdsl.lang.grammar import keywords, patterns, reserved
from roofdsl.lang.layout import span_of
from roofdsl.lang.source import Span
from roofdsl.lang.syntax_hints import of_character, of_line, of_token

_OPERATORS = frozenset(("PLUS", "MINUS", "STAR", "SLASH", "FLOORDIV", "PERCENT", "POWER", "COMPARE", "AND", "OR"))
_OPERAND = frozenset(("NAME", "NUMBER", "LPAR", "MINUS", "PLUS", "NOT"))
_ITEMS = "NAME IN OUT INOUT TEMP ASSUME TRAFFIC TILE ORDER UNIT COMPUTE FOR PARALLEL IF LET COUNT STREAM DEDENT"
_STATEMENT = frozenset(_ITEMS.split())
_TOP = ("`kernel`, `machine`, `program`, `use`, `traffic` or `cost`",)
_MACHINE = ("a line of a machine (`peak`, `cache`, `memory`, `ceiling`, `link`, `launch`, `clock`, `units`, ...)",)
_SELDOM = frozenset(("COL", "INDEX", "RISES", "TAKES", "HAS"))
"""Keywords that are seldom what is missing; the message names the common ones."""
_WORDS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": 'a string in double quotes ("...")',
    "NEWLINE": "the end of the line",
    "INDENT": "an indented block",
    "$END": "the end of the file",
    "UPDATE": "one of `+= -= *= /= min= max=`",
    "COMPARE": "a comparison",
    "ARROW": "`->` or `<->`",
}
_BESIDE_A_NAME = ("NAME", "NUMBER", "STRING", "LPAR")
_CLOSES = {")": "(", "]": "["}
_CHARACTERS = {
    "{": "blocks use `:` and indentation, subscripts use `[` and `]`",
    "}": "blocks use `:` and indentation, subscripts use `[` and `]`",
    ";": "write one statement per line, without `;`",
    "^": "powers are written `**`",
    "&": "conditions are joined by `and`",
    "|": "conditions are joined by `or`",
    "!": "`not` negates a condition, `!=` compares",
    ".": "write numbers as 0.5 or 1.; the language has no attributes",
    "\\": "a line continues inside brackets",
}
_FOREIGN = {
    "while": "loops are written `for i in range(n):`",
    "def": "a kernel is written `kernel NAME(n):`",
    "function": "a kernel is written `kernel NAME(n):`",
    "return": "results are stored in `out` or `inout` arrays and scalars",
    "pass": "a block needs at least one statement",
    "float": "an array or scalar is declared `in A: f32[n]`",
    "double": "an array or scalar is declared `in A: f64[n]`",
    "int": "parameters need no declaration; an array of integers is declared `in A: i32[n]`",
    "import": 'import the names of another file with `use "other.roof"`',
    "include": 'import the names of another file with `use "other.roof"`',
    "var": "name a register with `let t = ...`",
    "cores": "the number of cores is written `units 8`",
    "threads": "the number of cores is written `units 8`",
    "forall": "write `parallel for`",
    "foreach": "write `for`",
    "switch": "write `if`, `elif` and `else`",
}


def explain(line: Sequence[Token], accepts: Iterable[str], text: str) -> Diagnostic:
    """The diagnostic for the last token of a logical `line`, where one of the terminals `accepts` was expected.

    text: the source line of that token.
    """
    *before, token = line
    kind = _kind(token)
    accepted = frozenset(name.lstrip("_") for name in accepts)
    span = span_of(token)
    if kind == "INDENT":
        message = "this line is indented, but the line before it does not open a block"
        span = Span(span.line, 1, span.line, max(2, span.column))
        return Diagnostic("syntax-indent", message, span, "indented lines follow a line that ends in `:`")
    if kind in ("NEWLINE", "$END"):
        span = Span(span.line, max(1, span.column - 1), span.end_line, max(2, span.end_column))
    if kind == "NEWLINE" and "COLON" in accepted and line[0] not in ("in", "out", "inout", "temp", "link"):
        return Diagnostic("syntax", "`:` is missing at the end of this line", span)
    if token in reserved() and "NAME" in accepted and before and _OPERAND - accepted:
        message = f"`{token}` is a reserved word and cannot be a name"
        return Diagnostic("syntax", message, span, of_line(text) or "choose another name")
    first = line[0]
    hint = of_line(text) or of_token(text, span_of(token).column)
    if len(before) == 1 and _kind(first) == "NAME" and "UPDATE" in accepted and kind in _BESIDE_A_NAME:
        help = hint or _word(first, accepted | _STARTS)
        return Diagnostic("syntax", f"`{_short(first)}` begins no statement or declaration", span_of(first), help)
    found = {"NEWLINE": "the line ends here", "$END": "the file ends here", "DEDENT": "the block ends here"}.get(
        kind, f"`{_short(token)}` is not allowed here"
    )
    expected = _expected(accepted)
    return Diagnostic("syntax", f"{found}; {expected} is expected", span, hint or _help(line, accepted))


_STARTS = frozenset({
    "FOR", "LET", "COUNT", "IF", "ASSUME", "TILE", "ORDER", "TRAFFIC", "UNIT", "COMPUTE", "STREAM", "IN", "OUT",
    "INOUT", "TEMP", "PARALLEL",
})  # fmt: skip
"""What begins a statement or a declaration."""


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def _expected(accepted: frozenset[str]) -> str:
    rest = set(accepted)
    parts: list[str] = []
    if "KERNEL" in rest:
        return _join(_TOP)
    if "PEAK" in rest:
        return _join(_MACHINE)
    if "RUN" in rest:
        return "`run`, `repeat` or `collective`"
    if "ASSUME" in rest:
        rest -= _STATEMENT
        parts.append("a statement or a declaration")
    elif rest >= _OPERAND - {"NOT"}:
        rest -= _OPERAND
        parts.append("an expression")
    elif rest >= {"PLUS", "STAR"}:
        rest -= _OPERATORS
        parts.append("an operator")
    rest -= _SELDOM
    order = sorted(rest, key=lambda kind: (kind == "NEWLINE", kind))
    parts += [_WORDS.get(kind) or f"`{_written(kind)}`" for kind in order]
    return _join(parts[:6])


def _join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " or " + parts[-1]


def _help(line: Sequence[Token], accepted: frozenset[str]) -> str:
    """What to write instead, for the mistakes that people make by habit from other languages; empty for others."""
    first, token = line[0], line[-1]
    kinds = [_kind(t) for t in line[:-1]]
    kind = _kind(token)
    found = _in_expression(line, kinds, accepted) or _in_head(line, kinds) or _in_statement(line, kinds, accepted)
    if found:
        return found
    previous = line[-2] if kinds else ""
    if kind in ("ELSE", "ELIF") and not previous:
        return f"`{token}` belongs after the block of an `if`, indented like the `if`"
    if kind == "MINUS" and accepted == {"NUMBER"}:
        return "quantities are positive"
    if len(line) == 1 and kind == "NAME":
        return _word(first, accepted)
    return ""


def _in_expression(line: Sequence[Token], kinds: Sequence[str], accepted: frozenset[str]) -> str:
    """`A[i][j]`, `2n`, `A[1:n]`; kinds: of the tokens before the last one."""
    *_, token = line
    kind, before = _kind(token), kinds[-1] if kinds else ""
    if kind == "LSQB" and before == "RSQB":
        return "put all subscripts into one pair of brackets: `A[i, j]`"
    if before == "NUMBER" and kind in ("NAME", "LPAR") and "STAR" in accepted:
        product = f"a product is written with `*`: `{line[-2]} * {token if kind == 'NAME' else '(...)'}`"
        inside = kinds.count("LSQB") > kinds.count("RSQB")
        return f"{product}; subscripts are separated by `,`" if inside else product
    if kind == "COLON" and kinds.count("LSQB") > kinds.count("RSQB"):
        return "there are no slices: write a loop over the elements"
    return ""


def _in_head(line: Sequence[Token], kinds: Sequence[str]) -> str:
    """`kernel k(n: int):` and `kernel k:`."""
    first, token = line[0], line[-1]
    kind = _kind(token)
    if kind == "COLON" and first in ("kernel", "program") and kinds.count("LPAR") > kinds.count("RPAR"):
        return "a parameter is a positive integer and has no type: `n` or `n = 4096`"
    if first in ("kernel", "program") and kind == "COLON" and len(kinds) == 2:
        return f"a {first} needs parentheses, even without parameters: `{first} {line[1]}():`"
    return ""


def _in_statement(line: Sequence[Token], kinds: Sequence[str], accepted: frozenset[str]) -> str:
    """`for i = 0`, `s //= 2`, `if n = 3`, `i++`, `else if`."""
    *_, token = line
    kind, before = _kind(token), kinds[-1] if kinds else ""
    if "for" in line[:2] and kind != "NEWLINE":  # `for` or `parallel for`: its `=` is no comparison
        if kind == "EQUAL" or (before == "IN" and kind in ("NUMBER", "LPAR", "LSQB")) or accepted == {"LPAR"}:
            return "loops are written `for i in range(n):` or `for i in range(start, stop, step):`"
    elif kind == "EQUAL" and before in ("FLOORDIV", "PERCENT", "POWER"):
        return "the updates are `+= -= *= /= min= max=`"
    elif kind == "EQUAL" and ("COMPARE" in accepted or before == "EQUAL"):
        return "compare values with `==`; a statement has a single `=`"
    if "UPDATE" in accepted and kind in ("PLUS", "MINUS"):
        return "an update is written `s += 1`"
    if "UPDATE" in accepted and kind in ("FLOORDIV", "PERCENT", "POWER"):
        return "the updates are `+= -= *= /= min= max=`"
    if kind == "IF" and before == "ELSE":
        return "write `elif`"
    return ""


def _word(word: str, accepted: frozenset[str]) -> str:
    if word.lower() in _FOREIGN:
        return _FOREIGN[word.lower()]
    known = (text for text, kind in keywords().items() if kind in accepted)
    close = closest(word.lower(), known, 0.65 if len(word) > 2 else 0.8)
    return f"did you mean `{close}`?" if close else ""


def _kind(token: Token) -> str:
    """The terminal of a token; NAME for every word that is not reserved."""
    kind = token.type.lstrip("_")
    return "NAME" if token in keywords() and token not in reserved() else kind


def _written(kind: str) -> str:
    """The text of a terminal that has only one: `kernel`, `(`."""
    pattern = patterns()[kind]
    return kind.lower() if keywords().get(kind.lower()) == kind else re.sub(r"\(\?!.*|\\", "", pattern)


def mismatch(token: Token, opened: Sequence[Token]) -> Diagnostic:
    """The diagnostic for a closing bracket that does not fit the last one `opened`."""
    opening = f"does not match the `{opened[-1]}` that is open" if opened else f"closes no `{_CLOSES[token]}`"
    return Diagnostic("bracket-mismatch", f"`{token}` {opening}", span_of(token))


def bad_character(text: str, token: Token) -> Diagnostic:
    """The diagnostic for a character, given as a token, that begins no token of the language.

    text: the source line of the character.
    """
    span = span_of(token)
    shown = token if token.isprintable() else f"U+{ord(token):04X}"
    if token == '"':
        span = span._replace(end_column=len(text) + 1)
        return Diagnostic("string-unclosed", 'the string that begins here has no closing `"` on its line', span)
    if token == "'":
        message, help = "`'` is not part of the language", 'enclose strings in double quotes: "..."'
    elif token.isalpha():
        message = f"`{shown}` is not allowed in a name"
        help = "names consist of the letters a to z, A to Z, digits and `_`"
    else:
        message = f"the character `{shown}` is not part of the language"
        help = of_character(text, span.column - 1) or _CHARACTERS.get(shown, "")
    return Diagnostic("character", message, span, help)
