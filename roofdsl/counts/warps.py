"""Bytes between the registers and a first cache that serves warps: sectors that a warp's threads touch together.

The threads of a warp execute one access at a time, together, and every sector that any of them touches is moved once. A
warp is N consecutive iterations of the innermost `parallel for` around the access, from the loop's first one on, as in
the generated CUDA. If there is none, it is N iterations of the loop along which most elements of the statement are
adjacent. The last warp of a loop may be smaller. A loop with fewer iterations than a warp has threads shares the warp
with the next loop over threads. The threads of a warp run a loop inside in step: they execute its first iterations
together, and so on, wherever in the arrays each of them begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roofdsl.counts.check_cache import check_cache
from roofdsl.counts.registers import alone
from roofdsl.loops.accesses import PlacedStatement, accesses, scalar_bytes, statements
from roofdsl.loops.affine import affine
from roofdsl.loops.model import Assign, For, Kernel, Let
from roofdsl.loops.sized import Sized, sized


def warp_bytes_at(
    kernel: Kernel, params: Mapping[str, int], warp: int, sector_bytes: int, lanes: Mapping[str, int] | None = None
) -> tuple[int, int]:
    """(loaded, stored) bytes in sectors, with warps of `warp` threads; scalars once per execution (rule 8).

    lanes: threads of a warp along each loop over threads, nothing for a single thread; None if it is not known how a
    launch forms its blocks. Raises CommandError for missing or illegal sizes and for a sector that does not hold a
    whole number of elements, and TooHard.
    """
    at = sized(kernel, params)
    check_cache(kernel, None, sector_bytes)
    loaded, stored = scalar_bytes(at.kernel)
    for placed in statements(at.kernel.body):
        if isinstance(placed.statement, (Assign, Let)):
            if lanes is None:
                own = {_lanes(placed): warp}
            else:
                own = {d: lanes[loop.var] for d, loop in enumerate(placed.loops) if loop.var in lanes}
            more = _of_statement(at, placed, own, sector_bytes)
            loaded, stored = loaded + more[0], stored + more[1]
    return loaded, stored


def _of_statement(at: Sized, placed: PlacedStatement, lanes: Mapping[int, int], sector_bytes: int) -> tuple[int, int]:
    """lanes: threads of a warp along loops, by their places."""
    import islpy as isl

    from roofdsl.sets.access_sets import build
    from roofdsl.sets.cardinality import cardinality
    from roofdsl.sets.count import number
    from roofdsl.sets.library import limited

    loaded = stored = 0
    with limited(f"the sectors of kernel {at.name}"):
        for r in build(alone(at.kernel, placed), at.values, sector_bytes).references:
            touched = r.location
            if placed.loops:
                names = [f"d{i}" for i in range(touched.dim(isl.dim_type.in_))]
                onto = _together(at, placed.loops, lanes)
                touched = touched.apply_domain(isl.Map(f"{{ T[{', '.join(names)}] -> T[{', '.join(onto)}] }}"))
            each = number(cardinality(touched.wrap())) * sector_bytes
            loaded += each * (r.count - r.writes)
            stored += each * r.writes
    return loaded, stored


def _together(at: Sized, loops: Sequence[For], lanes: Mapping[int, int]) -> list[str]:
    """isl text that is the same for executions which the threads of a warp make together, for each of the dimensions
    d0, d1, ... of the loops: the number of the warp along loops over threads, and what the threads inside count.

    A dimension counts iterations, or it is the loop's variable itself if the step is 1 or the start is a maximum
    (`sets.domains`).
    """
    from roofdsl.sets.instances import Encoder

    texts, known = Encoder(at.kernel, at.values), dict[str, str]()
    differing: set[str] = set()  # variables that the threads of a warp have different values of
    found = []
    for k, loop in enumerate(loops):
        step, first = loop.step.evaluate(at.values), texts.expression(loop.start, known)
        counts = step != 1 and len(loop.starts) == 1
        number = f"d{k}" if counts else f"(d{k} - ({first}))"
        apart = bool(loop.start.symbols() & differing)
        if k in lanes:
            found.append(f"floor({number}/{lanes[k] if counts else step * lanes[k]})")
        else:
            found.append(number if apart else f"d{k}")
        if k in lanes or apart:
            differing.add(loop.var)
        known[loop.var] = f"({first} + {step}*d{k})" if counts else f"d{k}"
    return found


def _lanes(placed: PlacedStatement) -> int:
    """The loop around a statement along which its warps run, by its place; -1 without loops."""
    parallel = [d for d, loop in enumerate(placed.loops) if loop.parallel]
    if parallel or not placed.loops:
        return max(parallel, default=-1)
    statement = placed.statement
    assert isinstance(statement, (Assign, Let))
    last = [a.element.subscripts[0 if a.element.array.column_major else -1] for a in accesses(statement)]
    neighbours = [sum(abs(affine(s).coefficients().get(loop.var, 0)) == 1 for s in last) for loop in placed.loops]
    return max(range(len(neighbours)), key=lambda d: (neighbours[d], d))
