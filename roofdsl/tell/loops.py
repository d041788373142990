"""Loops as the language writes them, and as sums for math mode."""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.counts.derived import LoopStep
from roofdsl.counts.readable_forms import quasi_of
from roofdsl.formulas.writing import latex, latex_name
from roofdsl.loops.integers import Const, IntExpr, Max, Min, Sum, add


def range_text(loop: LoopStep) -> str:
    """`i in range(1, n - 1)`."""
    if loop.step != Const(1):
        return f"{loop.var} in range({loop.start}, {loop.stop}, {loop.step})"
    if loop.start != Const(0):
        return f"{loop.var} in range({loop.start}, {loop.stop})"
    return f"{loop.var} in range({loop.stop})"


def sums(loops: Sequence[LoopStep]) -> str:
    """The sum signs of a nest, in LaTeX."""
    return " ".join(_sum(loop) for loop in loops)


def _sum(loop: LoopStep) -> str:
    last = latex_expr(add(loop.stop, Const(-1)))
    var = latex_name(loop.var)
    start = latex_expr(loop.start)
    if loop.step == Const(1):
        return f"\\sum_{{{var}={start}}}^{{{last}}}"
    second = latex_expr(add(loop.start, loop.step))
    return f"\\sum_{{{var}={start},{second},\\ldots}}^{{{last}}}"


def latex_expr(e: IntExpr) -> str:
    """A bound or a subscript for math mode."""
    match e:
        case Min(terms) | Max(terms):
            word = "min" if isinstance(e, Min) else "max"
            return f"\\{word}({', '.join(latex_expr(t) for t in terms)})"
        case Sum(terms) if any(isinstance(t, (Min, Max)) for t in terms):
            parts = [latex_expr(t) for t in terms]
            return " + ".join(parts).replace("+ -", "- ")
    try:
        return latex(quasi_of(e))
    except ValueError:
        return f"\\mathtt{{{str(e).replace('%', chr(92) + '%').replace('_', chr(92) + '_')}}}"
