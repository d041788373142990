"""In-core time of a kernel from the code that its compiler makes for this processor."""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.codegen.math_mode import Math
from roofdsl.incore.assembly import read
from roofdsl.incore.ceilings import dispatch_cycles, executed
from roofdsl.incore.data_branches import OverData
from roofdsl.incore.native import Native, by_cc, by_numba, entered
from roofdsl.incore.rates import Rates, rates_of
from roofdsl.incore.result import InCore, NoInCore
from roofdsl.incore.sampled_data import SampledData, sampled_data, scaled
from roofdsl.incore.state import State
from roofdsl.incore.steps_from_peak import steps_of
from roofdsl.incore.walk import Walked, walk
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.loops.streams import has_streams
from roofdsl.machine.model import Machine

_ARRAYS, _NUMBERS = 3, 1
"""The arguments of the launch whose time a machine states: see `measure.microkernels.nothing`."""


def in_core(  # noqa: PLR0917
    kernel: Kernel,
    values: Mapping[str, int],
    machine: Machine,
    code: str = "numba",
    math: Math = "relaxed",
    variant: str = "loops",
) -> InCore:
    """The in-core time of one launch of a variant (`loops`, `grouped`), from the assembly of `code` ("numba" or "cc").

    values: of all parameters. math: what the compiler may do. Raises NoInCore if the machine states no instructions or
    no clock, if the code cannot be made or read, or if its time depends on unknown data; CommandError for index arrays
    without values.
    """
    rates = rates_of(machine)
    if machine.clock_hz is None:
        raise NoInCore(f"machine {machine.name} states no clock")
    native = native_code(kernel, code, math, variant)
    data = sampled_data(kernel, values)
    walked = walked_through(native, kernel, values, rates, data)
    # Only a walk tells the number of calls and of mispredictions. If the core forgets the branches of calls, the times
    # of all calls change.
    if rates.forgets(walked.totals.calls):
        rates.unlearned = True
        walked = walked_through(native, kernel, values, rates, data)
    remembered = rates.remembers(walked.guessed_wrong * (data.scale if data.whole else 1.0), data.iterations)
    if remembered and walked.guessed_wrong:
        walked = walked_through(native, kernel, values, rates, data, remembered=remembered)
    steps = steps_of(walked, rates, float(machine.clock_hz))
    model = f"assembly of {native.compiler}, {math} math"
    found = InCore(
        model, steps, launch_seconds(native, machine), walked.assumptions, _masked(walked), _gathered(walked),
        instructions=_instructions(walked, rates),
    )  # fmt: skip
    return scaled(found, data)


def native_code(kernel: Kernel, code: str, math: Math = "relaxed", variant: str = "loops") -> Native:
    """The compiled code; always C for stores that bypass the caches. Raises NoInCore if there is none."""
    try:
        by = by_numba if code == "numba" and not has_streams(kernel) else by_cc
        return by(kernel, math, variant)
    except CommandError as error:
        raise NoInCore(str(error)) from None
    except ImportError as error:
        raise NoInCore(f"numba cannot be imported ({error})") from None


def walked_through(
    native: Native,
    kernel: Kernel,
    values: Mapping[str, int],
    rates: Rates,
    data: SampledData | None = None,
    *,
    remembered: float = 0.0,
) -> Walked:
    """One launch at these sizes, with its data or pieces of them. Raises NoInCore, and what `sampled_data` raises.

    remembered: the share of the mispredictions that it avoids, since the core remembers the launch before.
    """
    text = read(native.text)
    state = State(text.data)
    data = data or sampled_data(kernel, values)
    entered(native, kernel, values, data, state)
    return walk(text, native.function, state, rates, OverData(remembered, 1.0 if data.whole else data.scale))


def _masked(walked: Walked) -> bool:
    """Whether all stores to arrays are masked; False if there are none. Others do not count: those on the stack save
    registers, and one that runs once stores the result.
    """
    often = [e.work for e in executed(walked) if e.times > 1]
    stores = [work for work in often if work.store is not None and work.store.base != "rsp"]
    return bool(stores) and all(work.masked for work in stores)


def _gathered(walked: Walked) -> float:
    """The elements that gathers load."""
    return float(sum(e.times * e.work.lanes for e in executed(walked) if e.work.kind.cls == "gather"))


def _instructions(walked: Walked, rates: Rates) -> float:
    """The places that the executed instructions take in the window, those of called functions included."""
    called = 0.0
    for name, count in walked.totals.calls.items():
        busy = (rates.call(name) or (0.0, 0.0))[0]
        called += count * (rates.call_slots(name) or busy * rates.dispatch)
    return dispatch_cycles(executed(walked), rates) * rates.dispatch + called


def launch_seconds(native: Native, machine: Machine) -> float | None:
    """The time of a call with these arguments; None for C code, and if the machine does not state what each argument
    adds.
    """
    if machine.launch_s is None or machine.launch_array_s is None or native.convention != "numba":
        return None
    roles = [a.role for a in native.arguments]
    arrays = roles.count("array") + roles.count("scalar_out") - _ARRAYS
    numbers = roles.count("parameter") - _NUMBERS
    scalars = roles.count("scalar_in")
    added = (
        arrays * machine.launch_array_s
        + numbers * (machine.launch_number_s or 0)
        + scalars * (machine.launch_scalar_s or 0)
    )
    return float(machine.launch_s + added)
