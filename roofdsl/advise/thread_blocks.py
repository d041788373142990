"""Blocks of results for each thread of a GPU: which ones fit a nest, its sizes and the registers of a thread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil, gcd, prod

from roofdsl.advise.edits import parts, uses
from roofdsl.advise.register_tiles import Blocking, Nest
from roofdsl.lang import tree
from roofdsl.loops.model import Array
from roofdsl.predict.fast_memories import MOST_REGISTERS, REGISTER_BYTES

BLOCKS = ((4, 4), (8, 4), (4, 8), (8, 8), (2, 2))
"""Blocks that are tried if two loops run over the results, in this order."""

ROWS = ((4,), (8,), (2,))
"""Blocks that are tried if one loop does."""


def thread_blocks(nest: Nest, sizes: Mapping[str, int], arrays: Mapping[str, Array]) -> Iterator[Blocking]:
    """Blocks with the factors of `BLOCKS` or `ROWS`, or the largest smaller powers of two that divide the extents.

    sizes: the trip counts of the nest's loops that are known; nothing fits if one over the results is not.
    """
    extents = [sizes.get(v) for v in nest.block]
    tried: set[tuple[int, ...]] = set()
    for wanted in BLOCKS if len(nest.block) == 2 else ROWS:
        factors = tuple(1 if n is None else gcd(f, n) for f, n in zip(wanted, extents, strict=True))
        if prod(factors) > 1 and factors not in tried and registers(nest, factors, arrays) <= MOST_REGISTERS:
            tried.add(factors)
            yield Blocking(tuple((v, f) for v, f in zip(nest.block, factors, strict=True) if f > 1), apart=True)


def registers(nest: Nest, factors: tuple[int, ...], arrays: Mapping[str, Array]) -> int:
    """The 32-bit registers of a thread for its results, and for each element that one step of the sum reads."""
    by_loop = dict(zip(nest.block, factors, strict=True))

    def of(element: tree.Index) -> int:
        each = prod(f for v, f in by_loop.items() if any(v in uses(s) for s in element.subscripts))
        return each * ceil(arrays[element.name.text].type.bytes / REGISTER_BYTES)

    target = nest.update.target
    read = {part for part in parts(nest.update.value) if isinstance(part, tree.Index)}
    return sum(map(of, read)) + (of(target) if isinstance(target, tree.Index) else 0)


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
