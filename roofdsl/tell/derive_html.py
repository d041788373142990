"""A derivation as HTML for notebooks: tables with formulas that MathJax sets."""

from __future__ import annotations

import html

from roofdsl.counts.derived import Derivation, Quantity, Ratio
from roofdsl.tell.as_html import mathjax
from roofdsl.tell.as_html import to_html as render
from roofdsl.tell.derive_equations import equation_blocks
from roofdsl.tell.derive_latex import formula
from roofdsl.tell.derive_steps import step_blocks
from roofdsl.tell.words import heading


def to_html(d: Derivation) -> str:
    """The kernel's name, W, Q, I and the plateaus, or the argument if the steps were requested."""
    blocks = equation_blocks(d) if d.steps is None else step_blocks(d)
    return "\n".join(['<div class="roofdsl">', f"<h3>{html.escape(heading(d))}</h3>", *render(blocks), "</div>"])


def inline(q: Quantity | Ratio) -> str:
    """A single quantity in a notebook: its closed form, or why there is none."""
    found = formula(q)
    if found is not None:
        return mathjax(found)
    return html.escape(q.note or ("undefined" if isinstance(q, Ratio) else "no closed form"))
