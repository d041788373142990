"""What to say about a token that cannot stand where it stands: what was found, what is expected, what to write."""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.lang.diagnostics import Diagnostic
from roofdsl.lang.lexer import KEYWORDS, RESERVED, Token
from roofdsl.lang.report import closest
from roofdsl.lang.source import Span
from roofdsl.lang.table import TERMINALS

_OPERATORS = frozenset(("PLUS", "MINUS", "STAR", "SLASH", "FLOORDIV", "PERCENT", "POWER", "COMPARE", "AND", "OR"))
_OPERAND = frozenset(("NAME", "NUMBER", "LPAR", "MINUS", "PLUS", "NOT"))
_ITEMS = "NAME IN OUT INOUT TEMP ASSUME TRAFFIC TILE ORDER UNIT COMPUTE FOR PARALLEL IF LET COUNT _DEDENT"
_STATEMENT = frozenset(_ITEMS.split())
_TOP = ("`kernel`, `machine`, `program`, `use`, `traffic` or `cost`",)
_MACHINE = ("a line of a machine (`peak`, `cache`, `memory`, `ceiling`, `link`, `launch`, `clock`, `units`, ...)",)
_WORDS = {
    "NAME": "a name",
    "NUMBER": "a number",
    "STRING": 'a text in double quotes ("...")',
    "_NEWLINE": "the end of the line",
    "_INDENT": "an indented block",
    "$END": "the end of the file",
    "UPDATE": "one of `+= -= *= /= min= max=`",
    "COMPARE": "a comparison",
    "ARROW": "`->` or `<->`",
}
_FOREIGN = {
    "while": "loops are written `for i in range(n):`",
    "def": "a kernel is written `kernel NAME(n):`",
    "function": "a kernel is written `kernel NAME(n):`",
    "return": "results are stored in `out` or `inout` arrays and scalars",
    "pass": "a block holds at least one statement",
    "float": "an array or scalar is declared `in A: f32[n]`",
    "double": "an array or scalar is declared `in A: f64[n]`",
    "int": "parameters need no declaration; an array of integers is declared `in A: i32[n]`",
    "import": 'names of another file are brought in by `use "other.roof"`',
    "include": 'names of another file are brought in by `use "other.roof"`',
    "var": "a register is named by `let t = ...`",
    "forall": "write `parallel for`",
    "foreach": "write `for`",
    "switch": "write `if`, `elif` and `else`",
}


def explain(line: Sequence[Token], at: int, token: Token, accepted: frozenset[str]) -> Diagnostic:
    """The diagnostic for `token`, number `at` of its logical `line`, where the terminals `accepted` could stand."""
    if token.kind == "_INDENT":
        message = "this line is indented, but the line before it opens no block"
        span = Span(token.span.line, 1, token.span.line, max(2, token.span.column))
        return Diagnostic("syntax-indent", message, span, "indented lines follow a line that ends in `:`")
    previous = line[at - 1] if at else None
    span = token.span
    if token.kind in ("_NEWLINE", "$END"):
        span = Span(span.line, max(1, span.column - 1), span.end_line, max(2, span.end_column))
    if token.kind == "_NEWLINE" and "COLON" in accepted and line[0].text not in ("in", "out", "inout", "temp", "link"):
        return Diagnostic("syntax", "`:` is missing at the end of this line", span)
    if token.text in RESERVED and "NAME" in accepted and previous is not None and _OPERAND - accepted:
        message = f"`{token.text}` is a word of the language and cannot be a name"
        return Diagnostic("syntax", message, span, "choose another name")
    first = line[0]
    if at == 1 and first.kind == "NAME" and "UPDATE" in accepted and token.kind in ("NAME", "NUMBER", "STRING", "LPAR"):
        starts = accepted | {"FOR", "LET", "COUNT", "IF", "ASSUME", "TILE", "ORDER", "TRAFFIC", "UNIT", "COMPUTE"}
        help = _word(first.text, starts | {"IN", "OUT", "INOUT", "TEMP", "PARALLEL"})
        return Diagnostic("syntax", f"`{_short(first.text)}` begins no statement or declaration", first.span, help)
    found = {"_NEWLINE": "the line ends here", "$END": "the file ends here", "_DEDENT": "the block ends here"}.get(
        token.kind, f"`{_short(token.text)}` cannot stand here"
    )
    expected = _expected(accepted)
    return Diagnostic("syntax", f"{found}; {expected} is expected", span, _help(line, at, token, accepted))


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
        return "`run` or `repeat`"
    if "ASSUME" in rest:
        rest -= _STATEMENT
        parts.append("a statement or a declaration")
    elif rest >= _OPERAND - {"NOT"}:
        rest -= _OPERAND
        parts.append("an expression")
    elif rest >= {"PLUS", "STAR"}:
        rest -= _OPERATORS
        parts.append("an operator")
    if "COL" in rest:
        rest -= {"COL"}
    order = sorted(rest, key=lambda kind: (kind == "_NEWLINE", kind))
    parts += [_WORDS.get(kind) or f"`{TERMINALS[kind][1]}`" for kind in order]
    return _join(parts[:6])


def _join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " or " + parts[-1]


def _help(line: Sequence[Token], at: int, token: Token, accepted: frozenset[str]) -> str:
    kinds = [t.kind for t in line[:at]]
    first = line[0]
    previous = line[at - 1] if at else None
    kind = token.kind
    before = previous.kind if previous else ""
    if kind == "LSQB" and before == "RSQB":
        return "all subscripts stand in one pair of brackets: `A[i, j]`"
    if before == "NUMBER" and kind in ("NAME", "LPAR") and "STAR" in accepted and previous:
        return f"a product is written with `*`: `{previous.text} * {token.text if kind == 'NAME' else '(...)'}`"
    if kind == "COLON" and kinds.count("LSQB") > kinds.count("RSQB"):
        return "there are no slices: write a loop over the elements"
    if kind == "COLON" and first.text in ("kernel", "program") and kinds.count("LPAR") > kinds.count("RPAR"):
        return "a parameter is a positive integer and has no type: `n` or `n = 4096`"
    if first.text in ("kernel", "program") and kind == "COLON" and len(kinds) == 2:
        return f"parameters stand in parentheses, also where there are none: `{first.text} {line[1].text}(n):`"
    if "for" in (t.text for t in line[:2]) and kind != "_NEWLINE":
        if kind == "EQUAL" or (before == "IN" and kind in ("NUMBER", "LPAR", "LSQB")) or accepted == {"LPAR"}:
            return "loops are written `for i in range(n):` or `for i in range(start, stop, step):`"
    elif kind == "EQUAL" and before in ("FLOORDIV", "PERCENT", "POWER"):
        return "the updates are `+= -= *= /= min= max=`"
    elif kind == "EQUAL" and ("COMPARE" in accepted or before == "EQUAL"):
        return "two values are compared by `==`; one statement has one `=`"
    if "UPDATE" in accepted and kind in ("PLUS", "MINUS"):
        return "an update is written `s += 1`"
    if "UPDATE" in accepted and kind in ("FLOORDIV", "PERCENT", "POWER"):
        return "the updates are `+= -= *= /= min= max=`"
    if kind == "IF" and before == "ELSE":
        return "write `elif`"
    if kind in ("ELSE", "ELIF") and not previous:
        return f"`{token.text}` belongs after the block of an `if`, indented like the `if`"
    if kind == "MINUS" and accepted == {"NUMBER"}:
        return "quantities are positive"
    if first.kind == "NAME" and not at:
        return _word(first.text, accepted)
    return ""


def _word(word: str, accepted: frozenset[str]) -> str:
    if word.lower() in _FOREIGN:
        return _FOREIGN[word.lower()]
    keywords = (text for text, kind in KEYWORDS.items() if kind in accepted)
    close = closest(word.lower(), keywords, 0.6 if len(word) > 2 else 0.8)
    return f"did you mean `{close}`?" if close else ""
