"""The assumptions of closed forms, in words and as formulas: `for n >= 4, rows that begin at line boundaries`."""

from __future__ import annotations

from collections.abc import Iterable

from roofdsl.formulas.writing import LATEX_RELATIONS, neat_latex, neat_text
from roofdsl.sets.facts import CACHE, CacheMultiple, Compared, Fact, LeadingTerms, Remainders, RowsAligned


def fact_text(fact: Fact) -> str:
    """A fact in words."""
    match fact:
        case Compared(left, relation, right):
            return f"{neat_text(left)} {relation} {neat_text(right)}"
        case Remainders(condition):
            return str(condition)
        case CacheMultiple(unit_bytes):
            return f"{CACHE} a multiple of {unit_bytes}"
        case RowsAligned():
            return "rows that begin at line boundaries"
        case LeadingTerms():
            return "leading terms"
    raise TypeError(type(fact))


def fact_latex(fact: Fact) -> str | None:
    """A fact for math mode; None for one that is written in words there, too."""
    if isinstance(fact, Compared):
        return f"{neat_latex(fact.left)} {LATEX_RELATIONS[fact.relation]} {neat_latex(fact.right)}"
    return None


def facts_text(facts: Iterable[Fact]) -> str:
    """Facts in sequence, each only once."""
    return ", ".join(dict.fromkeys(map(fact_text, facts)))
