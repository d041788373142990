"""Everything that a characterization finds out about one core: instructions, calls, launches and the clock."""

from __future__ import annotations

from collections.abc import Callable

from roofdsl.lang.record import Record, replace
from roofdsl.machine.core import Core
from roofdsl.machine.instruction import Instruction
from roofdsl.measure.assembled import is_known
from roofdsl.measure.branch_memory import remembered_branches
from roofdsl.measure.call_rates import Launches, block_rates, call_rates, launches
from roofdsl.measure.instruction_rates import RUNS, measure_core


class CoreFacts(Record):
    """instructions: including calls of functions. clock_hz: the median frequency while the core ran alone. shared: the
    number of loops that were never measured without somebody else on the core, and the number of all loops.
    """

    instructions: tuple[Instruction, ...]
    core: Core
    launches: Launches
    clock_hz: float
    shared: tuple[int, int] = (0, 0)


def core_facts(quick: bool, tell: Callable[[float, str], None] | None = None) -> CoreFacts | None:
    """Measures the core that the caller is pinned to, in ten to thirty seconds; None if the processor's instructions
    are unknown.
    """
    if not is_known():
        return None
    rates = measure_core(quick, tell)
    # The shortest calls are those at the highest clock.
    calls, learned = call_rates(rates.core, 1e9 / rates.highest_hz)
    instructions = (*rates.instructions, *calls, *block_rates(RUNS[quick]))
    core = replace(rates.core, learned=learned, remembered=remembered_branches(quick))
    return CoreFacts(instructions, core, launches(), rates.clock_hz, rates.shared)
