"""Sets by the names of their dimensions, d0, d1, ..., and of their parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import islpy as isl


def dimensions(domain: Any) -> list[str]:
    """The names of the dimensions of an isl.Set."""
    return [f"d{i}" for i in range(domain.dim(isl.dim_type.set))]


def parameters(domain: Any) -> list[str]:
    """The names of the parameters of an isl.Set."""
    space = domain.get_space()
    return [space.get_dim_name(isl.dim_type.param, i) for i in range(space.dim(isl.dim_type.param))]


def tuple_name(domain: Any) -> str:
    """The tuple name of an isl.Set; empty if it has none."""
    space = domain.get_space()
    return space.get_tuple_name(isl.dim_type.set) if space.has_tuple_name(isl.dim_type.set) else ""


def where(domain: Any, condition: str, more: Iterable[str] = ()) -> Any:
    """The points that meet a condition on dimensions, parameters and `more` parameters, in the space of `domain`."""
    head = f"[{', '.join([*parameters(domain), *more])}]"
    return isl.Set(f"{head} -> {{ {tuple_name(domain)}[{', '.join(dimensions(domain))}] : {condition} }}")


def of_parameters(context: Any, more: Iterable[str], condition: str) -> Any:
    """`context`, an isl parameter set, where a condition on its parameters and `more` holds."""
    names = dict.fromkeys([*parameters(context), *more])
    return context.intersect(isl.Set(f"[{', '.join(names)}] -> {{ : {condition} }}"))
