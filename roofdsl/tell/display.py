"""How derivations and their quantities appear with `print` and in notebooks. Importing this module sets it up."""

from __future__ import annotations

from roofdsl.counts.derived import Derivation, Quantity, Ratio
from roofdsl.lang.display_writers import Writers, show
from roofdsl.tell import derive_html, derive_latex
from roofdsl.tell.derive_text import to_text
from roofdsl.tell.terms import terms_lines


def _quantity(q: Quantity) -> str:
    if q.terms is not None:
        return "\n".join(terms_lines(q.terms))
    return q.expr or f"no closed form: {q.note}"


def _ratio(r: Ratio) -> str:
    return r.expr or f"no closed form: {r.note or 'nothing is divided'}"


def _derivation(d: Derivation) -> str:
    return to_text(d).rstrip("\n")


show(Quantity, Writers(_quantity, derive_html.inline, derive_latex.inline))
show(Ratio, Writers(_ratio, derive_html.inline, derive_latex.inline))
show(Derivation, Writers(_derivation, derive_html.to_html, lambda d: derive_latex.to_latex([d])))
