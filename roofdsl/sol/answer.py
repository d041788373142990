"""Everything `roofdsl sol` answers about a kernel at its sizes on a machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction

from roofdsl import budget
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.streams import ordinary
from roofdsl.machine.model import Machine
from roofdsl.predict.boundary import memory_boundary
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import Options, predict
from roofdsl.predict.prediction import Prediction
from roofdsl.sol.claim import Claim, judge
from roofdsl.sol.floor import Floor, floor
from roofdsl.sol.schedule import Schedule, best

SHARE = 6
"""Counting the kernel as written gets at most this fraction (1/SHARE) of the command's remaining time: the floor and
the best order matter more.
"""

WRITTEN = "the time as written"


class SpeedOfLight(Record):
    """The floor, the kernel as written, the best order, and the verdict on a claim.

    written: None if it is not found, and then `why_not` says why. It counts loads and stores separately, as the floor
    does, even if the kernel counts each datum once.
    """

    floor: Floor
    written: Prediction | None
    best: Schedule | None
    claim: Claim | None
    why_not: str = ""


def speed_of_light(
    kernel: Kernel, parameters: Mapping[str, int], machine: Machine, measured_s: Fraction | None = None
) -> SpeedOfLight:
    """The answer for one launch that starts with its data in memory. Raises what `floor` raises."""
    found = floor(kernel, parameters, machine)
    claim = None if measured_s is None else judge(measured_s, found)
    traffic: Traffic | None = "load_store" if memory_boundary(kernel, machine).convention == "once" else None
    now, why_not = None, ""
    try:
        with _in_its_share():
            now = predict(kernel, parameters, machine, Options(traffic=traffic, code=Code()))
    except CommandError as error:
        why_not = error.message
    except budget.Spent:
        left_out = budget.leave_out(WRITTEN) if budget.current() is not None else "left out, as counting takes too long"
        why_not = f"{WRITTEN}: {left_out}"
    return SpeedOfLight(found, now, best(ordinary(kernel), machine, found, now), claim, why_not)


@contextmanager
def _in_its_share() -> Iterator[None]:
    """Limit what runs inside to its share of the time, also in Python, without a command. Raises Spent or CommandError
    if it takes longer.
    """
    if budget.current() is not None:
        with budget.part(SHARE), budget.region(WRITTEN):
            yield
        return
    with budget.beginning(budget.DEFAULT_S / SHARE, budget.DEFAULT_BYTES, whole=False), budget.region(WRITTEN):
        yield
