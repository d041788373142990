"""One pass over the accesses of a kernel with data, and which of its lines are accessed at random.

Every access goes through the caches (`simulate.several_caches`). Only predictions of such kernels need this module: it
loads the integer sets, which the values and times of `predict.random_lines` do without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roofdsl.counts.data_traffic import DataTraffic, Limits, chosen_arrays, data_traffic_at
from roofdsl.loops.array_placement import PAGE
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import sized
from roofdsl.loops.streams import has_streams
from roofdsl.machine.model import Machine
from roofdsl.predict.level_time import LevelTime
from roofdsl.predict.random_lines import Scattered
from roofdsl.predict.strided import Lines


def data_traffic(kernel: Kernel, values: Mapping[str, int], machine: Machine, *, warm: bool) -> DataTraffic | None:
    """One pass over the accesses of a kernel with data: the traffic behind every cache of a machine, also behind what a
    core keeps of it, and the accesses to pages that its TLB does not hold.

    None for other kernels, for stores that bypass the caches, for GPUs, and if the first cache states no line, or one
    whose length is no power of two or no multiple of every element. Raises as `data_traffic_at`.
    """
    line = machine.caches[0].line_bytes if machine.caches else None
    if kernel.data is None or line is None or line & (line - 1) or has_streams(kernel) or machine.multiprocessor:
        return None
    at, core = sized(kernel, values), machine.core
    if any(line % a.type.bytes for a in at.kernel.arrays):
        return None
    sizes = {size for c in machine.caches for size in (c.size_bytes, c.kept_bytes)}
    pages = core.pages if core is not None and core.walk is not None and line <= PAGE else None
    limits = Limits(line, tuple(sorted({max(1, size // line) for size in sizes})), pages or 0, PAGE)
    return data_traffic_at(at, limits, warm=warm)


def scattered_of(
    counted: DataTraffic | None, kernel: Kernel, machine: Machine, levels: Sequence[LevelTime]
) -> Scattered | None:
    """The randomly accessed lines of one launch of a kernel with data; None without any, on a machine without rates,
    and if a level was left out.

    counted: one pass over the accesses of this launch. levels: the bytes of every level.
    """
    names = chosen_arrays(kernel)
    stated = any(part.random_bytes_per_s or part.strided_bytes_per_s for part in machine.hierarchy)
    if counted is None or not names or not stated:
        return None
    behind = [level.name for level in levels if level.nearer != "registers" and level.kind != "link"]
    if behind != [part.name for part in machine.hierarchy[1:]]:
        return None  # a level was left out, so it is unknown where its lines come from
    return Scattered(names, _lines(counted, machine), counted.pages)


def _lines(found: DataTraffic, machine: Machine) -> tuple[Lines, ...]:
    """The randomly accessed lines behind each cache."""
    line = found.limits.line_bytes
    kept = [c.kept_bytes if c is machine.last_cache else c.size_bytes for c in machine.caches]
    each = [found.behind(max(1, size // line)) for size in kept]
    parts = zip(machine.hierarchy[1:], each, strict=True)
    return tuple(Lines(part.name, line * c.begun_apart, line * c.stored_apart) for part, c in parts)
