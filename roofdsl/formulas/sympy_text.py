"""Sympy expressions as text for people: cases as `(n - 2 if n >= 3, else 0)`, the greater value as `max(0, n - S)`."""

from __future__ import annotations

from typing import Any

import sympy
from sympy.printing.str import StrPrinter


def readable(value: Any) -> str:
    """The expression as it is, which sympy need not be able to read."""
    return str(_Readable().doprint(value))


class _Readable(StrPrinter):  # type: ignore[misc]  # sympy has no types
    """Sympy calls the method that is named after the class of an expression."""

    def _print_Piecewise(self, value: Any) -> str:
        cases = [
            f"else {self._print(v)}" if where is sympy.true else f"{self._print(v)} if {self._print(where)}"
            for v, where in value.args
        ]
        return f"({', '.join(cases)})"

    def _print_Max(self, value: Any) -> str:
        return f"max({self.stringify(sorted(value.args, key=sympy.default_sort_key), ', ')})"

    def _print_And(self, value: Any) -> str:
        """`2 <= n <= 4 and m >= 2`."""
        least = {c.lhs: c for c in value.args if isinstance(c, sympy.Ge)}
        most = {c.lhs: c for c in value.args if isinstance(c, sympy.Le) and c.lhs in least}
        between = {x: f"{self._print(least[x].rhs)} <= {self._print(x)} <= {self._print(most[x].rhs)}" for x in most}
        parts = []
        for c in sorted(value.args, key=sympy.default_sort_key):
            if isinstance(c, sympy.Ge) and c is least[c.lhs] and c.lhs in between:
                parts.append(between[c.lhs])
            elif c not in most.values():
                parts.append(f"({self._print(c)})" if isinstance(c, sympy.Or) else self._print(c))
        return " and ".join(parts)

    def _print_Or(self, value: Any) -> str:
        return " or ".join(self._print(c) for c in sorted(value.args, key=sympy.default_sort_key))

    def _print_Equality(self, value: Any) -> str:
        return f"{self._print(value.lhs)} = {self._print(value.rhs)}"

    def _print_Unequality(self, value: Any) -> str:
        return f"{self._print(value.lhs)} != {self._print(value.rhs)}"
