"""The unit of an exercise's formula, inferred from its quantities: W is in operations, Q in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from roofdsl.classroom.answer_language import Node, Number, names_in, parse, replaced
from roofdsl.classroom.answer_units import Dimension
from roofdsl.classroom.exact import dimension
from roofdsl.classroom.formula_errors import FormulaError

_UNITS = {
    **dict.fromkeys(("W",), "FLOP"),
    **dict.fromkeys(("Q", "loads", "stores", "array", "plateau_from", "plateau_bytes", "size"), "B"),
    **dict.fromkeys(("intensity", "limit", "plateau_intensity"), "FLOP/B"),
    **dict.fromkeys(("bandwidth", "stream"), "B/s"),
    **dict.fromkeys(("peak", "ceiling"), "FLOP/s"),
    "launch": "s",
}
"""The unit of the engine's answer to each question whose answer has a known unit."""


def kind_of(text: str, quantities: Mapping[str, Any], symbols: Mapping[str, Any]) -> Dimension | None:
    """The dimension of a formula in quantities and symbols (plain numbers); None if it does not follow from these."""
    try:
        node = parse(text, {*quantities, *symbols}, units=True)
        return dimension(_with_units(node, quantities, symbols, ()))
    except (FormulaError, KeyError):
        return None


def _with_units(node: Node, quantities: Mapping[str, Any], symbols: Mapping[str, Any], above: tuple[str, ...]) -> Node:
    """The formula with each quantity replaced by 1 in its unit. Raises KeyError for a quantity of unknown unit."""
    values = {}
    for name in names_in(node) & quantities.keys():
        asked = quantities[name]
        if isinstance(asked, str):
            if name in above:
                raise KeyError(name)
            inner = parse(asked, {*quantities, *symbols}, units=True)
            values[name] = _with_units(inner, quantities, symbols, (*above, name))
        else:
            values[name] = Number(Fraction(1), _UNITS[asked.get("ask", "")])
    return replaced(node, values)
