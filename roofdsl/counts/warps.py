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
from roofdsl.loops.block_shape import lanes
from roofdsl.loops.model import Assign, For, Kernel, Let
from roofdsl.loops.sized import Sized, sized


def warp_bytes_at(
    kernel: Kernel, params: Mapping[str, int], warp: int, sector_bytes: int, block: Mapping[str, int] | None = None
) -> tuple[int, int]:
    """(loaded, stored) bytes in sectors, with warps of `warp` threads; scalars once per execution (rule 8).

    block: threads of a block along each loop over threads, x first, nothing for a single thread; None if it is not
    known how a launch forms its blocks. Raises CommandError for missing or illegal sizes and for a sector that does not
    hold a whole number of elements, and TooHard.
    """
    at = sized(kernel, params)
    check_cache(kernel, None, sector_bytes)
    loaded, stored = scalar_bytes(at.kernel)
    for placed in statements(at.kernel.body):
        if isinstance(placed.statement, (Assign, Let)):
            places = {loop.var: d for d, loop in enumerate(placed.loops)}
            own = {_lanes(placed): warp} if block is None else {places[v]: n for v, n in block.items() if v in places}
            more = _of_statement(at, placed, own, warp, sector_bytes)
            loaded, stored = loaded + more[0], stored + more[1]
    return loaded, stored


def _of_statement(
    at: Sized, placed: PlacedStatement, block: Mapping[int, int], warp: int, sector_bytes: int
) -> tuple[int, int]:
    """block: threads of a block along loops, x first, by the places of these loops."""
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
                onto = together(at, placed.loops, block, warp)
                touched = touched.apply_domain(isl.Map(f"{{ T[{', '.join(names)}] -> T[{', '.join(onto)}] }}"))
            each = number(cardinality(touched.wrap())) * sector_bytes
            loaded += each * (r.count - r.writes)
            stored += each * r.writes
    return loaded, stored


def together(at: Sized, loops: Sequence[For], block: Mapping[int, int], warp: int) -> list[str]:
    """isl text that is the same for executions which the threads of a warp make together: where they are along loops
    over threads, in the dimensions d0, d1, ... of the loops, and what the threads count inside.

    A dimension counts iterations, or it is the loop's variable itself if the step is 1 or the start is a maximum
    (`sets.domains`).
    """
    from roofdsl.sets.instances import Encoder

    texts, known = Encoder(at.kernel, at.values), dict[str, str]()
    differing: set[str] = set()  # variables that the threads of a warp have different values of
    found: list[str] = []
    ranks: dict[int, str] = {}
    for k, loop in enumerate(loops):
        step, first = loop.step.evaluate(at.values), texts.expression(loop.start, known)
        counts = step != 1 and len(loop.starts) == 1
        number = f"d{k}" if counts else f"(d{k} - ({first}))"
        # Threads with different starts are together in the k-th iteration of each, not at the same value of the
        # variable.
        apart = bool(loop.start.symbols() & differing)
        found.append(number if apart else f"d{k}")
        if k in block:
            ranks[k] = number if counts or step == 1 else f"floor({number}/{step})"
        if k in block or apart:
            differing.add(loop.var)
        known[loop.var] = f"({first} + {step}*d{k})" if counts else f"d{k}"
    if sum(threads > 1 for threads in block.values()) <= 1 or all(n & (n - 1) == 0 for n in block.values()):
        along = lanes(tuple(block.values()), warp)  # a warp is a box of threads
        return _with(found, {k: f"floor({ranks[k]}/{n})" for k, n in zip(block, along, strict=True)})
    numbers, stride = list[str](), 1
    for k, threads in block.items():  # of a thread in its block, x first
        numbers.append(f"{stride}*(({ranks[k]}) mod {threads})")
        stride *= threads
    within = f"floor(({' + '.join(numbers)})/{warp})"
    return [*_with(found, {k: f"floor({ranks[k]}/{threads})" for k, threads in block.items()}), within]


def _with(found: Sequence[str], changed: Mapping[int, str]) -> list[str]:
    return [changed.get(k, text) for k, text in enumerate(found)]


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
