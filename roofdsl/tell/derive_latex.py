"""A derivation as a LaTeX fragment, for slides and papers: needs the package amsmath."""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.counts.derived import Derivation, Quantity, Ratio
from roofdsl.tell.as_latex import escape_latex
from roofdsl.tell.as_latex import to_latex as render
from roofdsl.tell.blocks import Heading
from roofdsl.tell.derive_equations import closed_form, equation_blocks
from roofdsl.tell.derive_steps import step_blocks
from roofdsl.tell.words import heading

HEAD = "% roofdsl derive; \\usepackage{amsmath}"


def to_latex(derivations: Sequence[Derivation]) -> str:
    """The fragment for all derivations: the steps if they were requested, otherwise the results."""
    lines = [HEAD]
    for d in derivations:
        blocks = equation_blocks(d) if d.steps is None else step_blocks(d)
        lines += ["", f"% {heading(d)}", *render([Heading(heading(d)), *blocks])]
    return "\n".join(lines) + "\n"


def formula(q: Quantity | Ratio) -> str | None:
    """The closed form for math mode; None if there is none."""
    found = closed_form(q)
    return None if found is None else found.latex


def inline(q: Quantity | Ratio) -> str:
    """A quantity in a notebook: the closed form as display math, or why there is none."""
    found = formula(q)
    if found is not None:
        return f"$\\displaystyle {found}$"
    return escape_latex(q.note or ("undefined" if isinstance(q, Ratio) else "no closed form"))
