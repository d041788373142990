"""The range of an affine form over a set, and a dimension of a set as a parameter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import islpy as isl

from roofdsl.sets.dimensions import dimensions, parameters, tuple_name
from roofdsl.sets.isl_text import affine_text
from roofdsl.sets.library import affine_value
from roofdsl.sets.misses import CannotCount
from roofdsl.sets.quasi import Quasi


def extents(domain: Any, along: Quasi) -> Iterator[tuple[Any, Quasi, Quasi]]:
    """(part of `domain`, low, high): `along`, affine in the dimensions, runs from low to high there, in parameters.

    Raises CannotCount if an end is a fraction of a size.
    """
    if domain.is_empty():
        return
    point = f"{tuple_name(domain)}[{', '.join(dimensions(domain))}]"
    to = isl.Map(f"[{', '.join(parameters(domain))}] -> {{ {point} -> [{affine_text(along)}] }}")
    values = domain.apply(to)
    # Both ends are piecewise in the sizes. A pair of pieces has one form for each end, for the sizes at which both
    # hold.
    for where_low, low in values.dim_min(0).get_pieces():
        for where_high, high in values.dim_max(0).get_pieces():
            here = domain.intersect_params(where_low.params()).intersect_params(where_high.params())
            if here.is_empty():
                continue
            ends = affine_value(low), affine_value(high)
            if any(c.denominator > 1 for end in ends for _, c in end):
                raise CannotCount("a loop ends at a fraction of a size")
            yield here, *ends


def as_parameter(domain: Any, name: str, parameter: str) -> tuple[Any, dict[str, Quasi]]:
    """`domain` with dimension `name` as a parameter, and the new names of all dimensions."""
    at, dims = int(name[1:]), dimensions(domain)
    last = domain.dim(isl.dim_type.param)
    moved = domain.move_dims(isl.dim_type.param, last, isl.dim_type.set, at, 1)
    moved = moved.set_dim_name(isl.dim_type.param, last, parameter)
    renamed = {n: Quasi.symbol(f"d{i - (i > at)}") for i, n in enumerate(dims) if i != at}
    return moved, {**renamed, name: Quasi.symbol(parameter)}
