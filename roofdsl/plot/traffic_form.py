"""The curve of Q(Z) from its closed form, by cases or as a sum of terms, without simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from roofdsl.loops.model import Kernel, Traffic
from roofdsl.sweep.exact_forms import KernelForms, Known
from roofdsl.sweep.numeric import Points, TooLarge

Curve = tuple[tuple[int, ...], tuple[int, ...]]
"""(cache sizes, Q there), in bytes."""

PER_OCTAVE = 8
"""The initial number of cache sizes per doubling."""

LEVEL = 1.01
"""Sizes are added until Q changes by less than this factor between neighbours, or they are adjacent integers."""


def form_curve(
    kernel: Kernel, values: Mapping[str, int], convention: Traffic, line_bytes: int | None, ends: tuple[int, int]
) -> Curve | None:
    """Q at cache sizes from one end to the other; None if no closed form is found that is exact at `values`.

    Every Q is exact. Between two neighbouring sizes, Q is at most that of the first and at least that of the second.
    Their Q differ by at most 1 %, or the form holds for no size between them.
    """
    for forms in (KernelForms(kernel, {}), KernelForms(kernel, values)):  # more kernels have a form at given sizes
        by_cases = forms.at_any_cache(line_bytes, convention)
        if by_cases is not None:
            found = _curve(*by_cases, values, ends)
            if found is not None:
                return found
        terms = forms.terms_at_any_cache(None, line_bytes, convention)
        found = None if terms is None else _curve(terms, 1, values, ends)
        if found is not None:
            return found
    return None


def _curve(known: Known, grain: int, values: Mapping[str, int], ends: tuple[int, int]) -> Curve | None:
    first, last = -(-ends[0] // grain), -(-ends[1] // grain)

    def moved(caches: list[int]) -> list[int] | None:
        return _at(known, values, [c * grain for c in caches])

    found = sampled(moved, first, last)
    if found is None:
        return None
    return tuple(c * grain for c in found), tuple(found.values())


def sampled(moved: Callable[[list[int]], list[int] | None], first: int, last: int) -> dict[int, int] | None:
    """`moved` at integers from `first` to `last`, ascending, denser where it falls; None if it is None anywhere."""
    new, place = [first, last], float(first)
    while (place := place * 2 ** (1 / PER_OCTAVE)) < last:
        new.append(int(place))
    known: dict[int, int] = {}
    while new:
        new = sorted(set(new) - known.keys())
        found = moved(new)
        if found is None:
            return None
        known.update(zip(new, found, strict=True))
        pairs = pairwise(sorted(known))
        new = [(a + b) // 2 for a, b in pairs if b - a > 1 and known[a] > LEVEL * known[b]]
    return dict(sorted(known.items()))


def _at(known: Known, values: Mapping[str, int], caches: list[int]) -> list[int] | None:
    """Q at `values` and each of these caches; None if the form is not known to hold at one, or if Q is too large."""
    import numpy as np

    columns: dict[str, Any] = {**values, "Z": np.array(caches)}
    for exact in (False, True):
        try:
            points = Points(columns, len(caches), exact=exact)
            if not np.all(known.mask(points, columns)):
                return None
            return [int(q) for q in known.values(points)]
        except TooLarge:
            continue
    return None
