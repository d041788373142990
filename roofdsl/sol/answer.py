"""Everything `roofdsl sol` answers about a kernel at its sizes on a machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from fractions import Fraction

from roofdsl import budget, reproducibility
from roofdsl.advise.evaluate import Case, Estimate, completed, estimate_at_most
from roofdsl.advise.traffic_upper_bound import NoBound
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.streams import ordinary
from roofdsl.machine.model import Machine, MatrixUnitsOnly
from roofdsl.predict.boundary import memory_boundary
from roofdsl.predict.in_core_time import Code, is_here
from roofdsl.predict.kernel import predict
from roofdsl.predict.level_traffic import is_first_level
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from roofdsl.sol.claim import Claim, judge
from roofdsl.sol.floor import Floor, floor
from roofdsl.sol.schedule import Schedule, best
from roofdsl.store.cut_short import Ended, Limit, recall_within
from roofdsl.store.memo import FOR_MACHINES

SHARE, SHARE_OF_CALL = 6, 40
"""Counting the kernel as written gets at most this fraction (1/SHARE) of the command's remaining time, and less in a
call of a server, which others wait for: the floor and the best order matter more.
"""

SHARE_OF_ESTIMATE, SHARE_OF_ESTIMATE_IN_CALL = 20, 100
"""The same for an upper bound on its time, which most kernels have within milliseconds."""

WRITTEN = "the time as written"


class SpeedOfLight(Record):
    """The floor, the kernel as written, the best order, and the verdict on a claim.

    written: None if it is not found, and then `why_not` says why. It counts loads and stores separately, as the floor
    does, even if the kernel counts each datum once. estimate: if there is no `written`, its time from upper bounds on
    the bytes of some levels, if there are any.
    """

    floor: Floor
    written: Prediction | None
    best: Schedule | None
    claim: Claim | None
    why_not: str = ""
    estimate: Estimate | None = None

    @property
    def as_written(self) -> Prediction | None:
        """What is known of the kernel as written, exactly or at most."""
        return self.estimate.prediction if self.written is None and self.estimate is not None else self.written

    @property
    def is_at_most(self) -> bool:
        """Whether the time of `as_written` is only an upper bound."""
        return self.written is None and self.estimate is not None and not self.estimate.exact


class _Found(Record):
    """The answer without a claim. left_out: what had to be left out to stay within the budget."""

    floor: Floor
    written: Prediction | None
    best: Schedule | None
    why_not: str
    left_out: tuple[str, ...] = ()
    estimate: Estimate | None = None


def speed_of_light(
    kernel: Kernel, parameters: Mapping[str, int], machine: Machine, measured_s: Fraction | None = None
) -> SpeedOfLight:
    """The answer for one launch that starts with its data in memory. Raises what `floor` raises."""
    found = _remembered(kernel, parameters, machine)
    claim = None if measured_s is None else judge(measured_s, found.floor)
    return SpeedOfLight(found.floor, found.written, found.best, claim, found.why_not, found.estimate)


def _remembered(kernel: Kernel, parameters: Mapping[str, int], machine: Machine) -> _Found:
    """The answer, also from an earlier command. Where the processor's own compiler decides, none is remembered."""
    if is_here(machine):
        return _answer(kernel, parameters, machine)[0]
    own = budget.current()
    limit = Limit(share_s(), () if own is None else (own.seconds, own.memory_bytes))
    # the best order may quote the lines of the kernel
    asked = dict(parameters), machine, kernel.source.text
    found = recall_within(
        "speed of light", kernel, asked, limit, lambda: _answer(kernel, parameters, machine), further=FOR_MACHINES
    )
    budget.note_again(found.left_out)
    return found


def _answer(kernel: Kernel, parameters: Mapping[str, int], machine: Machine) -> tuple[_Found, Ended]:
    """The answer, and whether a limit of time cut it short."""
    begun = reproducibility.seen()
    time_s = share_s()
    with budget.noting() as of_floor:
        least = floor(kernel, parameters, machine)
    if not of_floor:
        time_s = share_s()  # without what the floor took, which is remembered
    with budget.noting() as of_written:
        now = _as_written(kernel, parameters, machine, least.unit)
    left_out = (*of_floor, *of_written)
    known = now.exact if now.estimate is None else now.estimate.prediction
    order = best(ordinary(kernel), machine, least, known, now.on_units)
    found = _Found(least, now.exact, order, now.why_not, left_out, now.estimate)
    decided = reproducibility.since(begun)
    whole = now.exact is not None and not now.exact.warnings and not left_out and not decided.clock
    # what is left out is counted as chance, but a budget that is no larger leaves it out again
    again = (decided.chance > 0 and not left_out) or budget.is_memory_spent()
    return found, Ended(None if whole else time_s, again)


class _AsWritten(Record):
    """The kernel as written: its prediction if all levels are counted, otherwise an estimate if there is one, and why.

    on_units: the prediction on matrix units, for types that the machine runs only there.
    """

    exact: Prediction | None = None
    estimate: Estimate | None = None
    on_units: Prediction | None = None
    why_not: str = ""


def _as_written(kernel: Kernel, parameters: Mapping[str, int], machine: Machine, unit: str | None) -> _AsWritten:
    """unit: the floor's matrix unit."""
    try:
        found = _predicted(kernel, parameters, machine, None)
    except MatrixUnitsOnly as error:
        on_units = None
        if unit is not None:
            with suppress(CommandError, budget.Spent):
                on_units = _predicted(kernel, parameters, machine, unit)
        return _AsWritten(on_units=on_units, why_not=error.message)
    except CommandError as error:
        why_not = error.message  # matrix units move the same bytes, so what is too hard to count stays so
    except budget.Spent:
        why_not = budget.leave_out(WRITTEN) if budget.current() is not None else "counting takes too long"
    else:
        lacking = level_left_out(found, machine)
        if not lacking:
            return _AsWritten(found)
        why_not = next((text for text in found.warnings if text.startswith(lacking)), f"{lacking} is left out")
        return _AsWritten(estimate=_completed(found, kernel, parameters, machine), why_not=why_not)
    return _AsWritten(estimate=_at_most(kernel, parameters, machine), why_not=why_not)


def _predicted(kernel: Kernel, parameters: Mapping[str, int], machine: Machine, unit: str | None) -> Prediction:
    """The prediction of the kernel as written, on `unit` if one is given. Raises CommandError, and Spent after its
    share of the time.
    """
    with in_its_share(share()):
        return predict(
            kernel, parameters, machine, Options(traffic=convention_of(kernel, machine), unit=unit, code=Code())
        )


def level_left_out(found: Prediction, machine: Machine) -> str:
    """The first level that a prediction leaves out, so that the time may be longer; "" if there is none."""
    shown = {level.name for level in found.levels}
    first = machine.caches[:1] if machine.caches and is_first_level(machine.caches[0]) else ()
    return next((cache.name for cache in (*first, *machine.caches[1:]) if cache.name not in shown), "")


def _completed(found: Prediction, kernel: Kernel, parameters: Mapping[str, int], machine: Machine) -> Estimate | None:
    """The kernel as written, with upper bounds for the levels that the prediction leaves out, if there are any."""
    if level_left_out(found, replace(machine, caches=machine.caches[:1])):
        return None
    try:
        with in_its_share(share_of_estimate()):
            return completed(found, kernel, _case(kernel, parameters, machine))
    except (NoBound, CommandError, budget.Spent):
        return None


def _at_most(kernel: Kernel, parameters: Mapping[str, int], machine: Machine) -> Estimate | None:
    """The kernel as written, with upper bounds on what some levels move; None if there are none within its share."""
    try:
        with in_its_share(share_of_estimate()):
            return estimate_at_most(kernel, _case(kernel, parameters, machine))
    except (CommandError, budget.Spent):
        return None


def _case(kernel: Kernel, parameters: Mapping[str, int], machine: Machine) -> Case:
    return Case(numbers(kernel, parameters), machine, Options(traffic=convention_of(kernel, machine)))


def convention_of(kernel: Kernel, machine: Machine) -> Traffic | None:
    """The convention for the kernel as written: its own, unless that counts each datum once."""
    return "load_store" if memory_boundary(kernel, machine).convention == "once" else None


def share_s() -> float:
    """The time that counting the kernel as written would get now, in seconds."""
    return (budget.DEFAULT_S if budget.current() is None else max(0.0, budget.left_s())) / share()


def share() -> int:
    """Counting the kernel as written gets this fraction, 1/share(), of the time that is left."""
    return SHARE_OF_CALL if budget.is_served() else SHARE


def share_of_estimate() -> int:
    """The same for an upper bound on its time."""
    return SHARE_OF_ESTIMATE_IN_CALL if budget.is_served() else SHARE_OF_ESTIMATE


@contextmanager
def in_its_share(share: int) -> Iterator[None]:
    """Limit what runs inside to 1/`share` of the time, also in Python, without a command. Raises Spent or CommandError
    if it takes longer.
    """
    if budget.current() is not None:
        with budget.part(share), budget.region(WRITTEN):
            yield
        return
    seconds = budget.DEFAULT_S / share
    with budget.beginning(seconds, budget.DEFAULT_BYTES, whole=False, chosen=False), budget.region(WRITTEN):
        yield
