"""Traffic behind a cache of a kernel that runs in thread blocks: simulated if the accesses are few, otherwise from
working sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roofdsl import budget
from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Cache
from roofdsl.predict.access_orders import Orders
from roofdsl.predict.boundary import Boundary

if TYPE_CHECKING:
    from roofdsl.counts.traffic_at import TrafficAt

NEARER_ACCESSES = 300_000_000
"""A level nearer than the memory, or any level behind thread blocks, is simulated up to this many accesses (a few
seconds) if integer sets are too slow.
"""

FEW_ACCESSES = 3_000_000
"""A launch whose loops the generated code chose (no `parallel for`) is simulated up to this many accesses; beyond, only
if working sets give no answer.
"""

SHARE = 4
"""A launch that is too long to simulate, and has no working sets, gets one part in SHARE of the budget."""

BY_WORKING_SETS = "bytes behind {} counted by blocks and waves: their distinct sectors, moved once where they fit"


def launch_transfers(
    orders: Orders, cache: Cache, values: Mapping[str, int], boundary: Boundary, *, warm: bool = False
) -> tuple[TrafficAt, Boundary]:
    """The traffic of the launch of `orders` behind `cache`, and the boundary with the assumptions.

    warm: right after another launch like it, whose data a shared cache still holds as far as they fit. A cache that
    every multiprocessor has for itself is empty at the start of each launch. Raises CommandError as `transfers_at`
    does, including OutOfReach.
    """
    from roofdsl.counts.histogram_at import NoAnswer
    from roofdsl.counts.sector_traffic import Transfers, transfers_at, warm_transfers_at
    from roofdsl.counts.traffic_at import OutOfReach, access_count
    from roofdsl.loops.sized import Sized

    ordered, at = orders.behind(cache, boundary)
    where = Transfers(at.cache_bytes, at.line_bytes, at.moved_bytes)
    assert orders.launch is not None
    warm = warm and orders.wave(cache) is not None
    find = warm_transfers_at if warm else transfers_at
    executed = access_count(Sized(orders.launch.kernel, values))
    few = NEARER_ACCESSES if orders.is_declared else FEW_ACCESSES
    if executed <= few:
        try:
            return find(ordered, values, where, at.convention, few), at
        except OutOfReach as error:
            try:
                return _by_working_sets(orders, cache, values, at, executed, warm=warm)
            except NoAnswer:
                raise error from None
    try:
        return _by_working_sets(orders, cache, values, at, executed, warm=warm)
    except NoAnswer:
        # Where too many accesses are left to simulate, integer sets may take all the time and find nothing.
        with budget.part(SHARE if executed > NEARER_ACCESSES else 1):
            return find(ordered, values, where, at.convention, NEARER_ACCESSES), at


def _by_working_sets(
    orders: Orders, cache: Cache, values: Mapping[str, int], at: Boundary, executed: int, *, warm: bool
) -> tuple[TrafficAt, Boundary]:
    """As `launch_transfers`, from sets of blocks and waves alone. Raises NoAnswer, and OutOfReach beyond half of the
    budget.
    """
    from roofdsl.counts.histogram_at import NoAnswer
    from roofdsl.counts.sector_traffic import after_another
    from roofdsl.counts.traffic_at import OutOfReach, TrafficAt, convention_totals
    from roofdsl.counts.working_set_traffic import lines_by_working_sets
    from roofdsl.loops.sized import Sized
    from roofdsl.loops.thread_blocks import block_by_block, in_waves
    from roofdsl.loops.transform import repeated
    from roofdsl.sets.library import TooHard, limited

    launch = orders.launch
    if launch is None or at.cache_bytes is None or at.line_bytes is None or at.moved_bytes is None:
        raise NoAnswer("neither lines nor a capacity are stated")
    wave = orders.wave(cache)
    cold = len(launch.blocks) if wave is None else 0
    kernel = block_by_block(launch) if wave is None else in_waves(launch, wave)
    size, line, sector = at.cache_bytes, at.line_bytes, at.moved_bytes

    def moved(kernel: Kernel) -> TrafficAt:
        lines = lines_by_working_sets(Sized(kernel, values), size, line, sector, cold=cold)
        return TrafficAt(*convention_totals(Sized(kernel, values), lines, at.convention), executed, "distinct sectors")

    try:
        with budget.part(2), limited(f"the bytes behind {cache.name} of kernel {kernel.name}"):
            found = after_another(moved(kernel), moved(repeated(kernel, 2))) if warm else moved(kernel)
    except TooHard as error:
        raise OutOfReach(kernel.name, str(error), executed, NEARER_ACCESSES) from None
    return found, replace(at, assumptions=(*at.assumptions, BY_WORKING_SETS.format(cache.name)))
