"""Collects diagnostics, and suggests the name that a misspelled one was meant to be."""

from __future__ import annotations

from collections.abc import Iterable

from roofdsl.lang.codes import CODES
from roofdsl.lang.diagnostics import Diagnostic
from roofdsl.lang.source import Span

MAX_DIAGNOSTICS = 1000


class Report:
    """What the checker has found so far."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.full: set[str] = set()
        """The severities of which there are more findings than are kept."""

    def error(self, code: str, message: str, span: Span, help: str = "") -> None:
        """Adds an error; `code` is one of `codes.CODES`."""
        self._add(Diagnostic(_known(code), message, span, help))

    def warning(self, code: str, message: str, span: Span, help: str = "") -> None:
        """Adds a finding that does not make the file wrong."""
        self._add(Diagnostic(_known(code), message, span, help, "warning"))

    def _add(self, diagnostic: Diagnostic) -> None:
        severity = diagnostic.severity
        if severity in self.full or diagnostic in self.diagnostics[-8:]:
            return
        if sum(d.severity == severity for d in self.diagnostics) >= MAX_DIAGNOSTICS:
            self.full.add(severity)
            message = f"more than {MAX_DIAGNOSTICS} {severity}s; the others are not shown"
            diagnostic = Diagnostic("more", message, diagnostic.span, severity=severity)
        self.diagnostics.append(diagnostic)

    @property
    def errors(self) -> list[Diagnostic]:
        """The errors among the findings."""
        return [d for d in self.diagnostics if d.severity == "error"]


def _known(code: str) -> str:
    if code not in CODES:
        raise KeyError(f"diagnostic code {code} is not documented in roofdsl.lang.codes")
    return code


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """The help that names the known word closest to `word`; `otherwise` if there is none."""
    if len(word) > 60:
        return otherwise
    known = sorted(set(known))[:500]
    same = next((k for k in known if k.lower() == word.lower() and k != word), None)
    first = next((k for k in known if word.startswith(f"{k}_")), None)  # `warp_size` for `warp`
    longer = next((k for k in known if len(word) > 2 and k.startswith(f"{word}_")), None)  # `a100_40` for `a100`
    close = same or first or longer or closest(word, [k for k in known if len(k) > 1 or set(word) == {k}], 0.65)
    return f"did you mean `{close}`?" if close else otherwise


def closest(word: str, known: Iterable[str], cutoff: float) -> str | None:
    """The known word most similar to `word`, with a similarity of at least `cutoff` (0 to 1)."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, sorted(set(known))[:500], 1, cutoff)), None)


def listed(words: Iterable[str], last: str = "or") -> str:
    """`a`, `b` or `c`."""
    quoted = [f"`{w}`" for w in words]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + f" {last} {quoted[-1]}"


def plural(count: int, one: str, many: str = "") -> str:
    """`1 subscript`, `2 subscripts`."""
    return f"{count} {one if count == 1 else many or one + 's'}"
