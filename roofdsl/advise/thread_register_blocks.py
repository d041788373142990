"""Blocks of results for each thread of a GPU: which ones fit a nest, its sizes and the registers of a thread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from math import ceil, gcd, prod

from roofdsl.advise.edits import parts, uses
from roofdsl.advise.register_blocks import Blocking, Nest
from roofdsl.lang import tree
from roofdsl.loops.model import Array
from roofdsl.predict.fast_memories import MOST_REGISTERS, REGISTER_BYTES

BLOCKS = ((4, 4), (8, 8), (8, 4), (4, 8), (2, 2))
"""Blocks that are tried if two loops run over the results, in this order: first one whose text is short, then those
that load least for each result.
"""

ROWS = ((4,), (8,), (2,))
"""Blocks that are tried if one loop does, in the same order."""


def thread_blocks(nest: Nest, sizes: Mapping[str, int], arrays: Mapping[str, Array]) -> Iterator[Blocking]:
    """Blocks with the factors of `BLOCKS` or `ROWS`, or the largest smaller powers of two that divide the extents.

    sizes: the known trip counts of the nest's loops. A loop over the results with an unknown one is not divided.
    """
    loops = _loops(nest)
    tried: set[tuple[int, ...]] = set()
    for wanted in BLOCKS if len(loops) == 2 else ROWS:
        factors = tuple(gcd(f, sizes.get(v, 1)) for f, v in zip(wanted, loops, strict=True))
        if prod(factors) > 1 and factors not in tried:
            tried.add(factors)
            own = {v: f for v, f in zip(loops, factors, strict=True) if f > 1}
            if registers(nest, own, arrays) <= MOST_REGISTERS:
                yield Blocking(tuple(own.items()), apart=True)


def _loops(nest: Nest) -> tuple[str, ...]:
    """The loops over a block: the two whose blocks read the fewest elements, of equally good ones the last two.

    With `y[b, f, p, q] += x[b, c, p, q] * w[f, c]`, a block of f and q reads 4 + 4 elements for 16 results, one of p
    and q 16 + 1.
    """
    if len(nest.alone) < 2:
        return nest.alone
    pairs = list(combinations(nest.alone, 2))[::-1]
    return min(pairs, key=lambda pair: sum(_times(e, dict.fromkeys(pair, 4)) for e in _read(nest)))


def _read(nest: Nest) -> set[tree.Index]:
    """The elements that one step of the sum reads."""
    return {part for part in parts(nest.update.value) if isinstance(part, tree.Index)}


def _times(element: tree.Index, factors: Mapping[str, int]) -> int:
    """How many elements a block uses in place of this one."""
    return prod(f for v, f in factors.items() if any(v in uses(s) for s in element.subscripts))


def registers(nest: Nest, factors: Mapping[str, int], arrays: Mapping[str, Array]) -> int:
    """The 32-bit registers of a thread for its results, and for each element that one step of the sum reads."""
    target = nest.update.target
    held = [*_read(nest), *([target] if isinstance(target, tree.Index) else [])]
    return sum(_times(e, factors) * ceil(arrays[e.name.text].type.bytes / REGISTER_BYTES) for e in held)


def keeps_updates(nest: Nest) -> bool:
    """Whether only iterations of the sums update one element of the target, so that blocks keep their order.

    For example, `C[b, i, j]` fixes b, i and j. `y[i + r]` fixes neither i nor r.
    """
    target = nest.update.target
    alone = {s.name for s in target.subscripts if isinstance(s, tree.Ref)} if isinstance(target, tree.Index) else set()
    return all(c.var.text in alone or c.var.text in nest.sums for c in nest.clauses)


def in_words(nest: Nest, how: Blocking) -> str:
    """Such as: C in registers (4 x 4 of i, j for each thread)."""
    block, own = " x ".join(str(f) for _, f in how.factors), ", ".join(v for v, _ in how.factors)
    return f"{nest.update.target.name.text} in registers ({block} of {own} for each thread)"  # type: ignore[union-attr]
