"""The time of a prediction as formulas: every term, and the time as their maximum."""

from __future__ import annotations

from fractions import Fraction

from roofdsl.machine.quantities import group, show_bandwidth, show_bytes, show_rate, show_time
from roofdsl.predict.prediction import Prediction
from roofdsl.tell.as_latex import escape_latex
from roofdsl.tell.blocks import Equation, Equations, Math


def equations(p: Prediction) -> Equations:
    """Every term as amount over rate, and the time as their maximum; LaTeX shows them next to the tables."""
    rows = []
    if p.peak_per_s is not None:
        amount, rate = f"{group(p.work)} {p.operation}", show_rate(p.peak_per_s, p.operation)
        rows.append(_term("comp", _over(amount, rate), p.compute_s))
    for level in p.levels:
        amount, rate = show_bytes(level.bytes), show_bandwidth(level.rate_bytes_per_s)
        rows.append(_term(level.name, _over(amount, rate), level.time_s))
    if len(p.in_turn) > 1:
        name, time = p.in_turn_term
        shares = [show_time(share) for _, share in p.in_turn]
        rows.append(_term(name, Math(" + ".join(shares), " + ".join(map(_words, shares))), time))
    for link in p.links:
        amount, rate = show_bytes(link.bytes), show_bandwidth(link.bandwidth_bytes_per_s)
        rows.append(_term(link.name, _over(amount, rate), link.time_s))
    if p.launch_s:
        rows.append(_term("launch", Math(show_time(p.launch_s), _words(show_time(p.launch_s))), p.launch_s))
    # of several launches each has a maximum of its own
    is_one = p.bound_s == max(time for _, time in p.terms)
    rule = Math("max", r"\max") if is_one else Math("sum of max", r"\sum_{\text{launches}} \max")
    whole = show_time(p.bound_s)
    rows.append(Equation(Math("T", "T"), (rule, Math(whole, _words(whole))), remark=(p.bound,)))
    return Equations(tuple(rows))


def _term(name: str, how: Math, time_s: Fraction) -> Equation:
    shown = show_time(time_s)
    return Equation(Math(f"T_{name}", f"T_{{{_words(name)}}}"), (how, Math(shown, _words(shown))))


def _over(amount: str, rate: str) -> Math:
    return Math(f"{amount} / ({rate})", f"\\frac{{{_words(amount)}}}{{{_words(rate)}}}")


def _words(text: str) -> str:
    return f"\\text{{{escape_latex(text)}}}"
