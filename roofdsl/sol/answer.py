"""Everything `roofdsl sol` answers about a kernel at its sizes on a machine."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from roofdsl import budget
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.machine.model import Machine
from roofdsl.predict.boundary import memory_boundary
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import Options, predict
from roofdsl.predict.prediction import Prediction
from roofdsl.sol.claim import Claim, judge
from roofdsl.sol.floor import Floor, floor
from roofdsl.sol.schedule import Schedule, best

SHARE = 3
"""The time as written takes at most one of so many parts of what is left of a command's time."""


class SpeedOfLight(Record):
    """The floor, the kernel as written (None, with a reason, if that takes too long), the best order, and a claim.

    written: loads and stores are counted separately, as in the floor, even if the kernel counts each datum once.
    """

    floor: Floor
    written: Prediction | None
    best: Schedule | None
    claim: Claim | None
    why_not: str = ""


def speed_of_light(
    kernel: Kernel, parameters: Mapping[str, int], machine: Machine, measured_s: Fraction | None = None
) -> SpeedOfLight:
    """The answer for one launch that starts with its data in the memory. Raises what `floor` raises."""
    found = floor(kernel, parameters, machine)
    claim = None if measured_s is None else judge(measured_s, found)
    from roofdsl.sets.library import OverBudget

    traffic: Traffic | None = "load_store" if memory_boundary(kernel, machine).convention == "once" else None
    now, why_not = None, ""
    try:
        with budget.part(SHARE), budget.region("the time as written"):
            now = predict(kernel, parameters, machine, Options(traffic=traffic, code=Code()))
    except CommandError as error:
        why_not = error.message
    except (budget.Spent, OverBudget):
        why_not = "counting the kernel as written takes too long"
    return SpeedOfLight(found, now, best(kernel, machine, found, now), claim, why_not)
