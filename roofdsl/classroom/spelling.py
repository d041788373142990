"""How people type formulas and numbers, made into the tokens of the language of answers.

It accepts typographic signs, superscripts, fractions in one character, LaTeX commands, and, if unambiguous, thousands
separators and decimal commas. `typed` decides what a text as a whole means.
"""

from __future__ import annotations

import re
import unicodedata

from roofdsl.classroom.answer_language import MAX_LENGTH
from roofdsl.classroom.formula_errors import FormulaError

_SIGNS = {
    **dict.fromkeys("×·∗⋅•∙⨯✕✖⨉", "*"),
    **dict.fromkeys("−–—‐‑‒﹣", "-"),
    **dict.fromkeys("÷∕⁄", "/"),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", ""),  # takes no room
    **dict.fromkeys("\t\n\r", " "),
    "√": " sqrt ",
    "⌊": " floor(",
    "⌋": ")",
    "⌈": " ceil(",
    "⌉": ")",
    "₂": "2",
    "[": "(",
    "]": ")",
    "{": "(",
    "}": ")",
    "^": "**",
    "µ": "u",
    "μ": "u",
    "’": "'",
}
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ⁽⁾", "0123456789+-n()", strict=True))
_SUPERSCRIPTS = re.compile(f"[{''.join(_RAISED)}]+")
_VULGAR = re.compile(r"(\d*) ?([¼-¾⅐-⅞])")
_GROUP = r"\{((?:[^{}]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\})*)\}"  # with up to three more braces inside
_LATEX = (
    (re.compile(rf"\\(?:d|t)?frac\s*{_GROUP}\s*{_GROUP}"), r"((\1)/(\2))"),
    (re.compile(r"\\lfloor(?![A-Za-z])"), " floor("),
    (re.compile(r"\\lceil(?![A-Za-z])"), " ceil("),
    (re.compile(r"\\r(?:floor|ceil)(?![A-Za-z])"), ")"),
    (re.compile(r"log_\{2\}"), "log_2"),
    (re.compile(r"\\(?:text|mathrm|mathit|operatorname)\s*\{([^{}]*)\}"), r" \1 "),
    (re.compile(r"\\(?:cdot|times|ast)(?![A-Za-z])"), "*"),
    (re.compile(r"\\div(?![A-Za-z])"), "/"),
    (re.compile(r"\\(?:left|right)(?![A-Za-z])|\\[,;:! ()\[\]]"), " "),
    (re.compile(r"\\(?=(?:sqrt|min|max|log)(?![A-Za-z]))"), " "),
)
_ROOT = re.compile(r"\\sqrt\s*\[")
_MODULE = re.compile(r"\b(?:math|np|numpy|sympy|sp)\.(?=[A-Za-z])")
_NAMED = re.compile(r"\s*(?:[A-Za-z]\w*\s*(?:\([^()=]*\)\s*)?)?(?::?=|≈|≅|~)\s*")

_EXPONENT = r"(?:[eE][+-]?\d+)?"
_GROUPED = (
    re.compile(r"(?!0)\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])" + _EXPONENT),  # 12,345.6
    re.compile(r"(?!0)\d{1,3}(?:'\d{3})+(?:\.\d+)?(?![\d'])" + _EXPONENT),  # 12'345.6
    re.compile(r"(?!0)\d{1,3}(?: \d{3})+(?:\.\d+)?(?![\d.])(?! \d)" + _EXPONENT),  # 12 345.6
    re.compile(r"(?!0)\d{1,3}(?:(?:\.\d{3}){2,}(?:,\d+)?|(?:\.\d{3})+,\d+)(?![\d.,])" + _EXPONENT),  # 12.345,6
)
_COMMA = re.compile(r"\d+,\d+(?![\d,])" + _EXPONENT)  # 0,25
_TOKEN = re.compile(
    r"(?P<number>(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<op>\*\*|//|[-+*/(),])",
    re.ASCII,
)
_LISTS = ("min", "max", "pow", "log")


def tokens(text: str) -> list[tuple[str, str]]:
    """(kind, text) of each token: number, name or op. Raises FormulaError for a character that has no meaning."""
    plain = plain_text(text)
    found: list[tuple[str, str]] = []
    brackets: list[bool] = []  # for each open parenthesis, whether commas separate a function's arguments
    at = 0
    while at < len(plain):
        if plain[at] == " ":
            at += 1
            continue
        number = None if brackets and brackets[-1] else _grouped(plain, at)
        match = number or _TOKEN.match(plain, at)
        if match is None:
            raise _unread(plain[at])
        kind, word = ("number", _joined(match[0])) if number else (str(match.lastgroup), match[0])
        if word == "(":
            brackets.append(bool(found) and found[-1][1].lower() in _LISTS)
        elif word == ")" and brackets:
            brackets.pop()
        found.append((kind, word))
        at = match.end()
    return found


def plain_text(text: str) -> str:
    """The text in plain characters. Raises FormulaError for one that is too long."""
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"the formula has {len(text):,} characters; the limit is {MAX_LENGTH}")
    text = text.strip().replace("$", "").replace("\\%", "%")
    if _ROOT.search(text):
        raise FormulaError("write roots other than square roots as powers, such as n**(1/3)")
    for _ in range(8):  # once more for each level of nested fractions
        before = text
        for pattern, meant in _LATEX:
            text = pattern.sub(meant, text)
        if text == before:
            break
    text = _SUPERSCRIPTS.sub(lambda m: f"**({''.join(_RAISED[c] for c in m[0])})", text)
    text = _VULGAR.sub(_vulgar, text)
    text = "".join(_SIGNS.get(c, " " if unicodedata.category(c) == "Zs" else c) for c in text)
    text = unicodedata.normalize("NFKC", text)
    text = "".join(_SIGNS.get(c, c) for c in text)
    text = _MODULE.sub("", text)
    if sum(text.count(c) for c in "=≈≅~") == 1:
        text = _NAMED.sub("", text, count=1) if _NAMED.match(text) else text
    text = text.strip()
    text = text.rstrip(".,; ") if text[-1:] in (".", ",", ";") else text
    if len(text) > 4 * MAX_LENGTH:
        raise FormulaError(f"the formula has more than {MAX_LENGTH} characters written out")
    return text


def _vulgar(match: re.Match[str]) -> str:
    above, _, below = unicodedata.normalize("NFKC", match[2]).partition("\u2044")
    return f"({match[1]}+{above}/{below})" if match[1] else f"({above}/{below})"


def _grouped(text: str, at: int) -> re.Match[str] | None:
    """The match of a number with separated thousands or a decimal comma at a position in a text; None without one."""
    for pattern in (*_GROUPED, _COMMA):
        if match := pattern.match(text, at):
            return match
    return None


def _joined(number: str) -> str:
    """A number with separated thousands or a decimal comma, as the language writes it."""
    comma, point = number.rfind(","), number.find(".")
    if _GROUPED[0].fullmatch(number):
        return number.replace(",", "")
    if comma > point >= 0 or number.count(".") > 1:
        return number.replace(".", "").replace(",", ".")
    return number.replace(",", ".").replace("'", "").replace(" ", "")


def _unread(character: str) -> FormulaError:
    if character in "=≈~":
        return FormulaError("give only the right-hand side, without `=`")
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return FormulaError(f"`{shown}` is not part of a formula")
