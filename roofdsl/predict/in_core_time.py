"""The choice of the in-core time for a prediction, and the expected time that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Literal

from roofdsl import budget
from roofdsl.codegen.math_mode import Math
from roofdsl.incore.result import InCore, NoInCore, Step
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.predict.divided_loops import (
    UNEVEN,
    Division,
    division_if_counted,
    division_of_nest,
    in_words,
    undivided,
)
from roofdsl.predict.expected import Expected, NestTime, expected
from roofdsl.predict.expected_of_inner_loops import InnerLoops, with_inner_loops
from roofdsl.predict.expected_of_nests import Nest, in_sequence, shared_out
from roofdsl.predict.expected_rates import for_data_of
from roofdsl.predict.hardware_traffic import AS_COUNTED, Moving
from roofdsl.predict.prediction import LevelTime, Prediction

Model = Literal["auto", "compiled", "stated", "llvm-mca", "osaca", "none"]
"""compiled: from the assembly of the code that `measure` runs. stated: from the kernel and what the machine states.
auto: compiled on the processor that the machine was measured on, stated elsewhere. none: no expected time.
llvm-mca, osaca: that tool on the innermost loops of the compiled code, where it is installed.
"""


Timed = Callable[[InCore, Sequence[Kernel]], Sequence[InCore]]
"""From the in-core time of a nest, and its inner loops as kernels, to the in-core times of these."""


class Code(Record):
    """The code whose in-core time is wanted: the source of that time, and the compiler, with what it may do.

    variant: of the generated code.
    """

    model: Model = "auto"
    compiler: Literal["numba", "cc"] = "numba"
    math: Math = "relaxed"
    variant: Literal["loops", "grouped"] = "loops"


RELAXED = "--math relaxed"
NONE_WANTED = "not asked for"


def with_expected(
    prediction: Prediction,
    kernel: Kernel,
    values: Mapping[str, int],
    machine: Machine,
    code: Code,
    *,
    as_compiled: bool,
    moving: Callable[[], Moving] = lambda: AS_COUNTED,
    nests: Callable[[], Iterable[Nest]] = tuple,
    inner: Callable[[], InnerLoops | None] = lambda: None,
) -> Prediction:
    """The prediction of one launch with its expected time, or with the reason why there is none.

    as_compiled: whether the bound counts the accesses of compiled code. moving: what the hardware moves. nests: the
    successive loop nests, if there are several. inner: for a single nest, its successive inner loops. All are called
    only if there is an in-core time.
    """
    if code.model == "none":
        return replace(prediction, no_expected=NONE_WANTED)
    try:
        core = _core(prediction, kernel, values, machine, code)
    except NoInCore as error:
        return replace(prediction, no_expected=str(error))
    once, note = moving(), ""
    parts: Sequence[Nest] = ()
    try:
        with budget.part(2):  # the whole is known already
            parts = tuple(nests())
        cores = _of_nests(core, parts, values, machine, code)
    except (CommandError, InputError, NoInCore) as error:
        parts, cores, note = (), [], f"loops count as if they overlapped: {str(error).splitlines()[0]}"
    loops = inner()
    found = composed(
        prediction, core, machine, as_compiled=as_compiled, moving=once, nests=list(zip(parts, cores, strict=True)),
        inner=loops, timed=partial(inner_cores, prediction, values, machine, code),
    )  # fmt: skip
    if note:
        found = replace(found, assumptions=(*found.assumptions, note))
    if code.math == "strict" and found.expected and any(RELAXED in c.remedy for c in found.expected.causes):
        other = with_expected(
            prediction, kernel, values, machine, replace(code, math="relaxed"),
            as_compiled=as_compiled, moving=lambda: once, nests=lambda: parts, inner=lambda: loops,
        )  # fmt: skip
        if other.expected is not None:
            found = replace(found, expected=_with_relaxed(found.expected, other.expected))
    return found


def _with_relaxed(found: Expected, relaxed: Expected) -> Expected:
    """The expected time with what it would be with relaxed math, in all and of each nest."""
    nests = found.nests
    if len(nests) == len(relaxed.nests):
        pairs = zip(nests, relaxed.nests, strict=True)
        nests = tuple(replace(a, expected=replace(a.expected, relaxed_s=b.expected.expected_s)) for a, b in pairs)
    return replace(found, relaxed_s=relaxed.expected_s, nests=nests)


def composed(
    prediction: Prediction,
    core: InCore,
    machine: Machine,
    *,
    as_compiled: bool = False,
    moving: Moving = AS_COUNTED,
    nests: Sequence[tuple[Nest, InCore]] = (),
    inner: InnerLoops | None = None,
    timed: Timed | None = None,
) -> Prediction:
    """The prediction with the expected time for this in-core time, whose assumptions it repeats.

    nests: the successive loop nests with their in-core times, if there are several. inner: for a single nest, its
    successive inner loops. timed: the in-core times of inner loops, which add up to the given one; if None, they
    are combined as one.
    """
    bound, levels, launch = prediction.bound_s, prediction.levels, prediction.launch_s
    usual = machine if prediction.footprint_bytes is None else for_data_of(prediction.footprint_bytes, machine)
    found = expected(bound, levels, launch, core, usual, as_compiled=as_compiled, moving=moving)
    notes: list[str] = []
    if not nests:
        found = _with_inner(found, bound, _moved(levels, moving), usual, inner, timed, notes)
    else:
        times = []
        for nest, own in nests:
            bound_s, its = nest.bound.bound_s, nest.bound.levels
            time = expected(bound_s, its, Fraction(0), own, usual, as_compiled=as_compiled, moving=nest.moving)
            time = _with_inner(time, bound_s, _moved(its, nest.moving), usual, nest.inner, timed, notes)
            times.append(NestTime(nest.kernel, bound_s, its, time))
        found = in_sequence(found, bound, launch, times)
    assumed = dict.fromkeys((*prediction.assumptions, *found.assumptions, *moving.assumptions, *notes))
    return replace(prediction, expected=found, assumptions=tuple(assumed))


def _moved(levels: Sequence[LevelTime], moving: Moving) -> Sequence[LevelTime]:
    """The levels with all traffic of the hardware."""
    return moving.more[-1].levels if moving.more else levels


def _with_inner(  # noqa: PLR0917
    found: Expected,
    bound_s: Fraction,
    levels: Sequence[LevelTime],
    machine: Machine,
    inner: InnerLoops | None,
    timed: Timed | None,
    notes: list[str],
) -> Expected:
    """The expected time of a nest, plus the time that is lost because successive inner loops do not fully overlap. If
    that cannot be found, the reason is added to `notes`.
    """
    if inner is None or timed is None or found.core is None:
        return found
    try:
        return with_inner_loops(found, bound_s, levels, machine, inner, partial(timed, found.core))
    except (CommandError, InputError, NoInCore, ValueError) as error:
        notes.append(f"inner loops count as if they overlapped: {str(error).splitlines()[0]}")
        return found


def inner_cores(  # noqa: PLR0917
    prediction: Prediction,
    values: Mapping[str, int],
    machine: Machine,
    code: Code,
    core: InCore,
    kernels: Sequence[Kernel],
) -> list[InCore]:
    """The in-core times of inner loops, which add up to that of their nest, `core`. Raises NoInCore, CommandError."""
    return shared_out(core, [_divided_evenly(prediction, kernel, values, machine, code) for kernel in kernels])


def _of_nests(
    core: InCore, nests: Sequence[Nest], values: Mapping[str, int], machine: Machine, code: Code
) -> list[InCore]:
    """The in-core times of loop nests, which add up to that of the launch, `core`. Raises NoInCore, CommandError."""
    if not nests:
        return []
    uneven = [step for step in core.steps if step.cause != UNEVEN]
    even = replace(core, steps=tuple(uneven))
    each = shared_out(even, [_divided_evenly(nest.bound, nest.kernel, values, machine, code) for nest in nests])
    found = []
    for nest, own in zip(nests, each, strict=True):
        divided = None if machine.units in (None, 1) else division_of_nest(nest.kernel, values)
        found.append(own if divided is None else _busiest(own, divided, machine.units or 1))
    return found


def _core(prediction: Prediction, kernel: Kernel, values: Mapping[str, int], machine: Machine, code: Code) -> InCore:
    """The in-core time from the source that `code` asks for. Raises NoInCore."""
    if why := without_in_core(machine):
        raise NoInCore(why)
    if prediction.unit is not None:
        raise NoInCore("in-core times of matrix units are not modeled")
    if is_indirect(kernel) and not (code.model == "compiled" or (code.model == "auto" and is_here(machine))):
        raise NoInCore(
            "accesses that depend on data are modeled only from compiled code, on the machine's own processor"
        )
    return _on_all_cores(_divided_evenly(prediction, kernel, values, machine, code), kernel, values, machine.units)


def _divided_evenly(
    prediction: Prediction, kernel: Kernel, values: Mapping[str, int], machine: Machine, code: Code
) -> InCore:
    """The in-core time of work that all cores share evenly. Raises NoInCore."""
    one_core = _of_one_core(kernel, values, machine, code)
    if one_core is not None:
        return _even_share(one_core, machine.units or 1)
    from roofdsl.incore import assumed_compiler

    return assumed_compiler.in_core(kernel, values, machine, relaxed=code.math == "relaxed")


def _of_one_core(kernel: Kernel, values: Mapping[str, int], machine: Machine, code: Code) -> InCore | None:
    """The in-core time of compiled code, which one core runs; None if stated facts are asked for. Raises NoInCore."""
    if code.model == "compiled" or (code.model == "auto" and is_here(machine)):
        from roofdsl.incore import compiled

        return compiled.in_core(kernel, values, machine, code.compiler, code.math, code.variant)
    if code.variant != "loops":
        raise NoInCore(
            f"the variant `{code.variant}` is modeled only from compiled code, on the machine's own processor"
        )
    if code.model in ("llvm-mca", "osaca"):
        from roofdsl.incore import tools

        return tools.in_core_by(code.model, kernel, values, machine, code=code.compiler, math=code.math)
    return None


def _even_share(core: InCore, cores: int) -> InCore:
    """The in-core time of work that one core did and that this many now share evenly."""
    steps = (replace(s, overlapping_s=s.overlapping_s / cores, loads_s=s.loads_s / cores) for s in core.steps)
    return replace(core, steps=tuple(steps))


def _on_all_cores(core: InCore, kernel: Kernel, values: Mapping[str, int], cores: int | None) -> InCore:
    """The in-core time of work that is divided evenly, for the work of the busiest core. Raises NoInCore."""
    if cores in (None, 1):
        return core
    divided = division_if_counted(kernel, values)
    if divided is None:
        raise NoInCore(f"{undivided(kernel)}: `--cores 1` predicts that")
    found = _busiest(core, divided, cores or 1)
    return replace(found, assumptions=(*core.assumptions, *in_words(divided, cores or 1)))


def _busiest(core: InCore, divided: Division, cores: int) -> InCore:
    """The in-core time of the core that has the most of evenly divided work."""
    times = float(cores * divided.busiest(cores))
    if times <= 1:
        return core
    last = core.steps[-1]
    uneven = Step(UNEVEN, divided.remedy(cores), last.overlapping_s * times, last.loads_s * times)
    return replace(core, steps=(*core.steps, uneven))


def without_in_core(machine: Machine) -> str:
    """Why code has no in-core time on this machine; empty for a CPU that states instructions, which may still be too
    few.
    """
    if machine.multiprocessor is not None:
        return f"{machine.name} is a GPU; in-core times are modeled for CPUs"
    if not machine.instructions:
        needed = "the `instruction` lines of a CPU or the `multiprocessor` of a GPU"
        return f"expected times need {needed}; {machine.name} has neither"
    return ""


def without_expected(machine: Machine) -> str:
    """Why code has no expected time on this machine; empty for a GPU, whose times do not start from the core."""
    return "" if machine.multiprocessor is not None else without_in_core(machine)


def is_here(machine: Machine) -> bool:
    """Whether the machine is the processor of this computer, by the name in its file."""
    from roofdsl.machine.processor import processor_name

    return machine.processor != "" and machine.processor == processor_name()
