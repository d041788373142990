"""Counting points under a polynomial condition at given sizes, with the few nonlinear dimensions on a grid.

The dimensions with terms of degree 2 or more become parameters of a symbolic count of the other dimensions. numpy
evaluates the resulting quasi-polynomial over all their values.
"""

from __future__ import annotations

from math import lcm, prod
from typing import TYPE_CHECKING, Any

import islpy as isl

from roofdsl.sets.cardinality import cardinality
from roofdsl.sets.dimensions import dimensions, where
from roofdsl.sets.isl_text import affine_text
from roofdsl.sets.library import affine_value, pieces
from roofdsl.sets.misses import CannotCount
from roofdsl.sets.quasi import Floor, Quasi

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

CHUNK = 1 << 20


def count_positive(domain: Any, excess: Quasi, limit: int) -> int:
    """The number of points of `domain` (isl.Set without parameters) with excess > 0, for excess in d0, d1, ...

    Raises TooHard, and CannotCount if more than `limit` grid points or more than 64 bits would be needed.
    """
    excess = excess * lcm(*(c.denominator for _, c in excess))  # so that both parts below are integers
    bent = _bent_dimensions(excess)
    rank = domain.dim(isl.dim_type.set)
    names = frozenset(f"d{i}" for i in bent)
    straight_part = Quasi.of({m: c for m, c in excess if not _touches(m, names)})
    bent_part = excess - straight_part
    others = frozenset(f"d{i}" for i in range(rank)) - names
    if any(_touches(m, others) for m, _ in bent_part):
        return count_positive_all(domain, excess, limit)
    ranges = [_range(domain, i) for i in bent]
    if prod(high - low + 1 for low, high in ranges) > limit:
        raise CannotCount("a reuse distance has degree 2 or more over too many points")
    counted = _fibres(domain, bent, straight_part)
    return _sum_over_grid(counted, bent, ranges, bent_part)


def count_positive_all(domain: Any, excess: Quasi, limit: int) -> int:
    """As count_positive, with every dimension of `excess` on the grid."""
    used = sorted(int(n[1:]) for n in excess.names())
    ranges = [_range(domain, i) for i in used]
    if prod(high - low + 1 for low, high in ranges) > limit:
        raise CannotCount("a reuse distance has degree 2 or more over too many points")
    return _sum_over_grid(_fibres(domain, used, Quasi.constant(0)), used, ranges, excess)


def _bent_dimensions(excess: Quasi) -> list[int]:
    found: set[int] = set()
    for monomial, _ in excess:
        if affine_text(Quasi.of({monomial: 1})) is None:
            for atom, _ in monomial:
                found |= {int(n[1:]) for n in ({atom} if isinstance(atom, str) else atom.of.names())}
    return sorted(found)


def _touches(monomial: Any, names: frozenset[str]) -> bool:
    return any(bool((frozenset((a,)) if isinstance(a, str) else a.of.names()) & names) for a, _ in monomial)


def _range(domain: Any, i: int) -> tuple[int, int]:
    low, high = domain.dim_min_val(i), domain.dim_max_val(i)
    return int(low.to_python()), int(high.to_python())


def _fibres(domain: Any, fixed: list[int], straight: Quasi) -> list[tuple[Any, Quasi]]:
    """The number of points with straight + T > 0 over each value of the fixed dimensions (parameters d<i>)."""
    varies = bool(straight.names() & set(dimensions(domain)))
    for i in range(domain.dim(isl.dim_type.set)):
        domain = domain.set_dim_name(isl.dim_type.set, i, f"d{i}")
    if varies:
        text = affine_text(straight)
        domain = domain.intersect(where(domain, f"{text} + T > 0", ["T"]))
    domain = domain.reset_tuple_id() if domain.has_tuple_id() else domain
    for i in reversed(fixed):
        at = domain.dim(isl.dim_type.param)
        domain = domain.move_dims(isl.dim_type.param, at, isl.dim_type.set, i, 1)
        domain = domain.set_dim_name(isl.dim_type.param, at, f"d{i}")
    found = []
    for part, value in pieces(cardinality(domain)):
        for basic in part.make_disjoint().get_basic_sets():
            found.append((_constraints(basic), value))
    if not varies:  # a constant straight part joins the bent one
        return [([*c, (Quasi.symbol("T") + straight - 1, False)], v) for c, v in found]
    return found


def _constraints(basic: Any) -> list[tuple[Quasi, bool]]:
    """(value, whether it must be 0 rather than at least 0) for every constraint."""
    out = []
    for constraint in basic.get_constraints():
        out.append((affine_value(constraint.get_aff()), constraint.is_equality()))
    return out


def _sum_over_grid(
    counted: list[tuple[list[tuple[Quasi, bool]], Quasi]], fixed: list[int], ranges: list[tuple[int, int]], bent: Quasi
) -> int:
    import numpy as np

    sizes = [high - low + 1 for low, high in ranges]
    points = prod(sizes)
    total = 0
    for start in range(0, points, CHUNK):
        index = np.arange(start, min(points, start + CHUNK), dtype=np.int64)
        env: dict[str, Ints] = {}
        rest = index
        for i, (low, _), size in reversed(list(zip(fixed, ranges, sizes, strict=True))):
            env[f"d{i}"] = rest % size + low
            rest = rest // size
        env["T"] = _evaluate(bent, env)
        for constraints, value in counted:
            mask = np.ones(len(index), dtype=bool)
            for quantity, is_zero in constraints:
                got = _evaluate(quantity, env)
                mask &= (got == 0) if is_zero else (got >= 0)
            if mask.any():
                chosen = {k: v[mask] for k, v in env.items()}
                total += _sum(_evaluate(value, chosen, len(chosen["T"])))
    return total


def _sum(values: Ints) -> int:
    """The exact sum, in Python's integers where 64 bits may be too few."""
    largest = max(abs(int(values.min())), abs(int(values.max())))
    return int(values.sum()) if largest * len(values) < 2**62 else sum(values.tolist())


def _evaluate(value: Quasi, env: dict[str, Ints], length: int | None = None) -> Ints:
    """The integer value at every point. Raises CannotCount if 64 bits may be too few."""
    import numpy as np

    n = length if length is not None else len(next(iter(env.values())))
    scale = lcm(*(c.denominator for _, c in value)) if value else 1
    total = np.zeros(n, dtype=np.int64)
    bound = 0
    for monomial, c in value:
        term = np.full(n, int(c * scale), dtype=np.int64)
        size = abs(int(c * scale))
        for atom, power in monomial:
            base = env[atom] if isinstance(atom, str) else _floor(atom, env, n)
            size *= max(1, int(np.abs(base).max(initial=0))) ** power
            if size >= 2**62:
                raise CannotCount("a reuse distance exceeds 64 bits")
            term *= base**power
        bound += size
        if bound >= 2**62:
            raise CannotCount("a reuse distance exceeds 64 bits")
        total += term
    return total // scale if scale != 1 else total


def _floor(atom: Floor, env: dict[str, Ints], n: int) -> Ints:
    return _evaluate(atom.of, env, n)
