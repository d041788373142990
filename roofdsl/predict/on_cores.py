"""Bound and expected time on some of a CPU's cores, and the curve of the expected time over the number of cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial

from roofdsl.incore.result import NoInCore, NotStated
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import shipped_machines
from roofdsl.machine.model import Machine
from roofdsl.predict.divided_loops import Division, division_if_counted, undivided
from roofdsl.predict.energy import with_energy
from roofdsl.predict.expected import Expected, Rung, causes_of
from roofdsl.predict.expected_on_cores import (
    divisions,
    longest_shared,
    most_cores,
    on_several,
    one_core_with_data,
    saturation,
    timed_on_cores,
)
from roofdsl.predict.in_core_time import without_in_core
from roofdsl.predict.kernel import for_one_core, predict
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Cores, Prediction
from roofdsl.predict.some_cores import some_cores


class Scaling(Record):
    """The expected time of one launch on 1, 2, ... cores.

    single: the prediction for one core. times_s: for each of `cores`. shared: the shared level that takes longest, with
    the seconds of its transfers; saturation: the number of cores from which it is the limit; None if nothing is
    transferred, or if fewer cores than that have work. most: the most cores that have work, None if that is not
    limited.
    """

    single: Prediction
    cores: tuple[int, ...]
    times_s: tuple[Fraction, ...]
    shared: tuple[str, Fraction]
    saturation: int | None
    most: int | None


def scaling(
    kernel: Kernel, values: Mapping[str, int], machine: Machine, cores: Sequence[int], options: Options
) -> Scaling:
    """The expected times on these numbers of cores. `options.code` says what code runs.

    Raises CommandError if there is no expected time, and what `predict` raises.
    """
    try:
        single, found = _single(kernel, values, some_cores(machine, 1), options)
    except CommandError:
        if not (why := without_in_core(machine)):
            raise
        lacking = f"{kernel.name} has no expected time: {why}"
        raise CommandError(lacking, _what_to_do(kernel, values, machine)) from None
    divided = division_if_counted(kernel, values)
    if divided is None and max(cores, default=1) > 1:
        raise CommandError(undivided(kernel), "leave this kernel out, or change its loops")
    one_of, times = {some_cores(machine, 1): (single, found)}, []
    for n in cores:
        one = one_core_with_data(machine, n, single.footprint_bytes)
        if one not in one_of:
            one_of[one] = _single(kernel, values, one, options)
        compiled, nests = options.accesses == "compiled", divisions(one_of[one][1], values)
        several = on_several(*one_of[one], machine, n, divided or Division(), nests, as_compiled=compiled)
        times.append(several.expected_s)
    shared = longest_shared(single, found, machine)
    most = most_cores(divided)
    return Scaling(single, tuple(cores), tuple(times), shared, saturation(found, shared, most), most)


def _single(kernel: Kernel, values: Mapping[str, int], one: Machine, options: Options) -> tuple[Prediction, Expected]:
    """The prediction for one core, and its expected time. Raises CommandError if there is none."""
    single = predict(kernel, values, one, options)
    if single.expected is None:
        lacking = f"{kernel.name} has no expected time on {one.name}: {single.no_expected}"
        raise CommandError(lacking, _what_to_do(kernel, values, one))
    return single, single.expected


def _what_to_do(kernel: Kernel, values: Mapping[str, int], machine: Machine) -> str:
    """A help for a machine that lacks instructions of the kernel: the missing line, and the shipped machines that state
    all of them. Empty if the machine lacks nothing, or if the kernel has an expected time nowhere.
    """
    lacking = _in_core_error(kernel, values, machine)
    if not isinstance(lacking, NotStated):
        return ""
    help = "`roofdsl characterize` measures the instructions of your processor"
    if lacking.line:
        line = f"add a line such as `{lacking.line}` with the machine's own numbers"
        help = f"{line}, or let `roofdsl characterize` measure your processor"
    errors = {m.name: _in_core_error(kernel, values, m) for m in shipped_machines().values()}
    if other := next((e for e in errors.values() if e is not None and not isinstance(e, NotStated)), None):
        return f"no other CPU helps: {other}"
    names = [name for name, error in errors.items() if error is None]
    if not names:
        return f"{help}; no shipped machine states all that {kernel.name} needs"
    state = "state" if len(names) > 1 else "states"
    return f"{help}; of the shipped machines, {', '.join(names)} {state} all that {kernel.name} needs"


def _in_core_error(kernel: Kernel, values: Mapping[str, int], machine: Machine) -> NoInCore | None:
    """Why one core of the machine has no in-core time for the kernel; None if it has one."""
    from roofdsl.incore.assumed_compiler import in_core

    if why := without_in_core(machine):
        return NotStated(why)
    try:
        in_core(kernel, values, some_cores(machine, 1), relaxed=True)
    except NoInCore as error:
        return error
    except CommandError as error:
        return NotStated(error.message)
    return None


def on_cores(kernel: Kernel, values: Mapping[str, int], machine: Machine, cores: int, options: Options) -> Prediction:
    """The prediction on this number of the machine's cores: their bound, and the expected time as in `scaling`.

    Raises CommandError for a GPU, for ceilings, for more cores than the machine has, for a machine that does not state
    what one core gets from the memory, and what `predict` raises.
    """
    _check(machine, cores, options)
    their = some_cores(machine, cores)
    several = replace(predict(kernel, values, their, replace(options, code=None)), cores=Cores(cores))
    if options.code is None:
        return several
    by_one, compiled = partial(predict, kernel, values, options=for_one_core(options)), options.accesses == "compiled"
    timed = timed_on_cores(several, kernel, values, machine, cores=cores, as_compiled=compiled, predicted=by_one)
    return with_energy(timed, their) if options.energy else timed


def by_one_core(kernel: Kernel, values: Mapping[str, int], machine: Machine, options: Options) -> Prediction:
    """The bound of the whole machine, and the expected time of code that runs on one of its cores.

    Raises what `predict` raises.
    """
    whole = predict(kernel, values, machine, replace(options, code=None))
    try:
        found = predict(kernel, values, some_cores(machine, 1), replace(options, ceilings=()))
    except CommandError as error:
        return replace(whole, no_expected=f"the code runs on one core, and {error.message}")
    if found.expected is None:
        return replace(whole, no_expected=found.no_expected)
    alone = Rung(f"one core of {machine.units} runs the code", f"`--cores {machine.units}`", found.bound_s)
    ladder = (alone, *found.expected.ladder)
    expected = replace(found.expected, ladder=ladder, causes=causes_of(whole.bound_s, ladder))
    assumed = tuple(dict.fromkeys((*whole.assumptions, *found.expected.assumptions)))
    timed = replace(whole, expected=expected, assumptions=assumed)
    return with_energy(timed, machine) if options.energy else timed


def _check(machine: Machine, cores: int, options: Options) -> None:
    if machine.multiprocessor is not None:
        raise CommandError(f"{machine.name} is a GPU; numbers of cores are modeled for CPUs", "leave out `--cores`")
    if options.ceilings:
        raise CommandError("a ceiling holds for the whole machine, not for some of its cores", "leave out `--ceiling`")
    if cores > 1 and machine.units is None:
        raise CommandError(f"{machine.name} does not state how many cores it has", "state it as `units 8`")
    if cores > (machine.units or 1):
        has = "a single core" if machine.units == 1 else f"{machine.units} cores"
        help = "its file describes one core; `plot scaling` draws several like it" if machine.units == 1 else ""
        raise CommandError(f"{machine.name} has {has}, not {cores}", help or f"give at most {machine.units}")
