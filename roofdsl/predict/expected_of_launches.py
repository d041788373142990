"""The expected time of a kernel on a GPU: the sum over the launches of its generated code (`expected_on_gpu`)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from operator import add

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.predict.crossings import Case
from roofdsl.predict.expected import Cause, Expected, joined
from roofdsl.predict.expected_on_gpu import NoTime, expected_of_launch, joining, launch_of
from roofdsl.predict.in_core_time import NONE_WANTED, Code
from roofdsl.predict.kernel_launches import Launched, launches_of_kernel
from roofdsl.predict.prediction import Prediction

IN_SEQUENCE = "launches follow each other, and do not overlap"
"""The cause of time above the bound: the bound takes each term for all launches together."""


def with_launches(
    case: Case, found: Prediction, code: Code, bound_of: Callable[[int, Kernel], Prediction]
) -> Prediction:
    """The prediction of a kernel on a GPU with its expected time, or with the reason why there is none.

    found: its bound. bound_of: the bound of one of its launches, by its place and its kernel, without notes.
    """
    if code.model == "none":
        return replace(found, no_expected=NONE_WANTED)
    try:
        if code.variant != "loops":
            raise NoTime(f"the variant `{code.variant}` is not generated for GPUs")
        expected = _expected(case, found, bound_of)
    except (NoTime, CommandError) as error:
        return replace(found, no_expected=str(error).splitlines()[0])
    assumed = tuple(dict.fromkeys((*found.assumptions, *expected.assumptions)))
    return replace(found, expected=expected, assumptions=assumed)


def _expected(case: Case, found: Prediction, bound_of: Callable[[int, Kernel], Prediction]) -> Expected:
    """The sum over all launches. Raises NoTime and CommandError if one of them has no expected time."""
    _refuse(case)
    launches = launches_of_kernel(case.kernel, case.values, case.machine)
    if launches.why:
        raise NoTime(launches.why)
    if launches.count == 1:
        return _of_one(case, launches.each[0], found, "")
    bounds_s, parts = Fraction(0), list[Expected]()
    for place, launched in enumerate(launches.each):
        own = found if launched.kernel is None else bound_of(place, launched.kernel)
        one = _of_one(case, launched, own, launched.function)
        bounds_s += launched.times * (one.expected_s - sum((cause.share_s for cause in one.causes), Fraction(0)))
        parts.append(one * launched.times)
    total, apart = reduce(add, parts), Cause(IN_SEQUENCE, bounds_s - found.bound_s)
    longest = max(parts, key=lambda part: part.expected_s)
    return replace(total, causes=joined((*total.causes, apart)), assumptions=longest.assumptions)


def _refuse(case: Case) -> None:
    """Raises NoTime if the options leave out what an expected time needs."""
    if case.options.levels == "memory":
        raise NoTime("it needs the bytes of all levels: leave out `--levels memory`")
    if case.options.data is not None:
        raise NoTime("for data in another memory, it is not modeled how threads wait: leave out `--data`")


def _of_one(case: Case, launched: Launched, bound: Prediction, name: str) -> Expected:
    machine, options = case.machine, case.options
    launch_s = machine.launch_s or Fraction(0)
    if launched.kernel is None:
        return joining(machine, launch_s)
    launch = launch_of(launched, case.values, machine, options.block, bound)
    return expected_of_launch(launch, machine, launch_s, name)
