"""One form for even and odd sizes, where a count has one.

The integer-set library writes what depends on n % 2 in several ways, and the same set not always in the same one: as
one polynomial for even n and another for odd n, or as one with floor(n/2), with small sizes apart or not. Here the
pieces become one if the two polynomials differ by something that does not depend on n. The joined value contains
n - 2*floor(n/2), and replaces the pieces wherever it has their values.
"""

from __future__ import annotations

from typing import Any

import islpy as isl

from roofdsl.sets.cases import equal_on
from roofdsl.sets.dimensions import parameters
from roofdsl.sets.quasi import Quasi, floor, floors_of
from roofdsl.sets.residues import joined, periods, periods_of_sets, resolved

Piece = tuple[Any, Quasi]
"""(isl parameter set, the value there)."""

FAR, APART = 1 << 20, 720720
"""A large even size, and the distance between the sizes of several parameters."""


def joined_parities(parts: list[Piece], context: Any) -> list[Piece]:
    """The disjoint pieces of a count, of which one form replaces as many as it can if only one parity matters.

    context: the isl parameter set of all sizes. The values at these stay the same; 0 outside the pieces.
    """
    if len(parts) < 2 or not any(floors_of(v) or _has_floors(d) for d, v in parts) or _has_floors(context):
        return parts
    period = joined(periods_of_sets(d for d, _ in parts), periods(v for _, v in parts))
    if list(period.values()) != [2]:
        return parts
    (name,) = period
    # A guess from one even and one odd size; it is proven below, piece by piece.
    at = [_far_sizes(context, name, rest) for rest in range(2)]
    values = [_value_at(parts, context, sizes) for sizes in at]
    odd = Quasi.symbol(name) - 2 * floor(Quasi.symbol(name) * Quasi.constant(2) ** -1)
    even_value, odd_value = values
    if even_value is None or odd_value is None or even_value == odd_value:
        return parts
    if name in (odd_value - even_value).names():  # products of n with n - 2*floor(n/2) read worse than two cases
        return parts
    # n - 2*floor(n/2) is 0 for even n and 1 for odd n, so it switches from one polynomial to the other.
    both = even_value + (odd_value - even_value) * odd
    covered: Any = None
    others: list[Piece] = []
    for domain, value in parts:
        for basic in domain.get_basic_sets():
            piece = isl.Set.from_basic_set(basic)
            if all(_same(piece, name, rest, (value, both), at[rest]) for rest in range(2)):
                covered = piece if covered is None else covered.union(piece)
            else:
                others.append((piece, value))
    return parts if covered is None else [(covered.coalesce(), both), *others]


def _has_floors(domain: Any) -> bool:
    return any(basic.dim(isl.dim_type.div) for basic in domain.get_basic_sets())


def _far_sizes(context: Any, name: str, rest: int) -> dict[str, int]:
    """Large sizes, of which that of parameter `name` has the remainder `rest` modulo 2."""
    return {n: FAR + APART * k + (rest if n == name else 0) for k, n in enumerate(parameters(context))}


def _value_at(parts: list[Piece], context: Any, sizes: dict[str, int]) -> Quasi | None:
    """The polynomial at these sizes, without floors; 0 outside the pieces, and None outside the context."""
    text = " and ".join(f"{n} = {value}" for n, value in sizes.items())
    point = isl.Set(f"[{', '.join(sizes)}] -> {{ : {text} }}")
    if context.is_disjoint(point):
        return None
    here = [value for domain, value in parts if not domain.is_disjoint(point)]
    return resolved(here[0], sizes) if here else Quasi.constant(0)


def _same(piece: Any, name: str, rest: int, values: tuple[Quasi, Quasi], at: dict[str, int]) -> bool:
    """Whether two values are shown to agree on the sizes of `piece` whose remainder modulo 2 is `rest`."""
    here = piece.intersect_params(isl.Set(f"[{name}] -> {{ : {name} mod 2 = {rest} }}"))
    return here.is_empty() or equal_on(resolved(values[0], at), resolved(values[1], at), here)
