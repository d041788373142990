"""Measure kernels and programs at their sizes, and compare every measurement, fresh or stored, with its prediction."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Literal

from roofdsl.codegen.math_mode import Math
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.lang.types import TYPES
from roofdsl.loops.model import Kernel
from roofdsl.loops.program_at_sizes import ProgramAt, ProgramOf
from roofdsl.machine.model import Machine
from roofdsl.machine.processor import processor_name
from roofdsl.machine.quantities import group
from roofdsl.measure.measurement import CORES, MATH, OTHERS, Measurement
from roofdsl.measure.other_load import Others, wait_until_calm
from roofdsl.measure.timing import Plan
from roofdsl.predict.contraction import is_contraction
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Accesses, Options
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.program import predict_at
from roofdsl.validate.compare import DEFAULTS, Comparison, Limits, compare, compare_program

AGAIN = 2
"""How often an inconclusive measurement is repeated."""

Backend = Literal["cpu", "gpu"]
Subject = Kernel | ProgramOf


@dataclass(frozen=True)
class Run:
    """One kernel or program at one size in one variant of the backend. cores: on how many; None for the variant's own
    number.
    """

    kernel: Subject
    sizes: Mapping[str, int]
    variant: str
    cores: int | None = None


@dataclass(frozen=True)
class How:
    """How runs are measured.

    cold: whether the caches are emptied before each sample. Otherwise a launch finds the data that the one before it
    left, and the prediction takes that into account. On a GPU small arrays rotate through copies, so that launches on
    them start cold. budget_s: an approximate limit on the seconds of samples for each run. math: what the compiler of
    CPU code may do; math_mode: that of a GPU library. energy: whether to read the energy of a call as well. clock_hz:
    the clock that the machine states, which a core should reach while it is timed.
    """

    backend: Backend = "cpu"
    compiler: str = "numba"
    cold: bool = False
    budget_s: float = 10.0
    repeats: int = 20
    math_mode: str = "default"
    math: Math = "relaxed"
    energy: bool = False
    clock_hz: float | None = None


def clock_here(machines: Sequence[Machine]) -> float | None:
    """The clock that a machine with this computer's processor states, in hertz; None without such a machine."""
    here = [m.clock_hz for m in machines if m.clock_hz is not None and m.processor == processor_name()]
    return float(max(here)) if here else None


def measure_runs(
    runs: Sequence[Run], how: How | None = None, tell: Callable[[float, str], None] | None = None
) -> list[Measurement]:
    """Verify and time every run on this computer.

    `tell` gets the fraction that is done and the current step. Raises what the backends raise; a kernel with wrong
    results raises an error and is not a measurement.
    """
    found = []
    for number, run in enumerate(runs):
        label = f"{run.kernel.name} {', '.join(f'{n}={v}' for n, v in run.sizes.items())}"

        def say(what: str, number: int = number, label: str = label) -> None:
            if tell is not None:
                tell(number / len(runs), f"{label}: {what}")

        found.append(measure_run(run, how or How(), say))
    return found


def measure_settled(
    runs: Sequence[Run],
    how: How,
    inconclusive: Callable[[Measurement], bool],
    tell: Callable[[float, str], None] | None = None,
    wait: Callable[[], object] = wait_until_calm,
    *,
    most_s: float = inf,
    clock: Callable[[], float] = monotonic,
) -> list[Measurement]:
    """Like `measure_runs`, but inconclusive runs are measured again after all others, when the machine is calm or
    `wait` has given up. This happens at most AGAIN times, and no longer after all runs together have taken `most_s`. Of
    the measurements of one run, the fastest conclusive one counts, or the fastest if none is conclusive.
    """
    end = clock() + most_s
    found = measure_runs(runs, how, tell)
    for _ in range(AGAIN):
        places = [k for k, m in enumerate(found) if inconclusive(m)]
        if not places or clock() > end:
            break
        if tell is not None:
            tell(0.0, "waiting for other programs")
        wait()
        for k, again in zip(places, measure_runs([runs[k] for k in places], how, tell), strict=True):
            found[k] = min(found[k], again, key=lambda m: (inconclusive(m), m.median_s))
    return found


def measure_run(run: Run, how: How, say: Callable[[str], None], others: Callable[[], Others] = Others) -> Measurement:
    """A single run of `measure_runs`; its details say what other programs took meanwhile."""
    meanwhile = others()
    found = _measured(run, how, say)
    cores = meanwhile.cores()
    return found if cores is None else dataclasses.replace(found, details={**found.details, OTHERS: cores})


def _measured(run: Run, how: How, say: Callable[[str], None]) -> Measurement:
    plan = Plan(repeats=how.repeats, budget_s=how.budget_s)
    if how.backend == "gpu":
        from roofdsl.measure.gpu import GpuOptions, measure_gpu

        on_gpu = GpuOptions(run.variant, plan, math_mode=how.math_mode, energy=how.energy)
        if isinstance(run.kernel, Kernel):
            return measure_gpu(run.kernel, run.sizes, on_gpu, say)
        from roofdsl.measure.program_gpu import measure_program_gpu

        return measure_program_gpu(run.kernel.at(run.sizes), on_gpu, say)
    from roofdsl.measure.cpu import CpuOptions, measure_cpu

    on_cpu = CpuOptions(
        run.variant, how.compiler, plan, how.cold,
        math=how.math, cores=run.cores, energy=how.energy, clock_hz=how.clock_hz,
    )  # fmt: skip
    if isinstance(run.kernel, Kernel):
        return measure_cpu(run.kernel, run.sizes, on_cpu, say)
    from roofdsl.measure.program_cpu import measure_program_cpu

    return measure_program_cpu(run.kernel.at(run.sizes), on_cpu, say)


def compare_all(
    kernels: Sequence[Subject],
    measurements: Sequence[Measurement],
    machine: Machine,
    *,
    sizes: Mapping[str, int] | None = None,
    options: Options | None = None,
    limits: Limits = DEFAULTS,
    accesses: Accesses | None = None,
    warm: bool | None = None,
) -> list[Comparison]:
    """Compare the measurements of these kernels and programs (at these sizes, if some are given) with their predictions
    on `machine`. Predictions are warm for warm measurements, unless `warm` decides. Accesses to the first cache are as
    compiled if the code was compiled for a CPU, unless `accesses` decides. Raises CommandError if there is no
    measurement, and what prediction raises.
    """
    found = []
    for m in measurements:
        kernel = next((k for k in kernels if k.name == m.kernel), None)
        at = dict(m.parameters)
        if kernel is None or any(at.get(n, v) != v for n, v in (sizes or {}).items()):
            continue
        asked = replace(options or Options(), warm=m.state == "warm" if warm is None else warm)
        asked = replace(asked, accesses=accesses or _accesses(m, machine), code=_code(m))
        if isinstance(kernel, ProgramOf):
            predicted = predict_at(_launches_as_ran(m, kernel.at(at), machine), machine, asked)
            found.append(compare_program(predicted, m, machine, limits))
            continue
        own = {p.name: at[p.name] for p in kernel.parameters if p.name in at}
        ran = _as_ran(m, kernel, own, machine)
        found.append(compare(_predicted(ran, own, machine, asked, m), m, machine, limits))
    if not found:
        names = ", ".join(dict.fromkeys(k.name for k in kernels))
        held = ", ".join(dict.fromkeys(m.kernel for m in measurements)) or "nothing"
        raise CommandError(f"the results contain no measurement of {names} at these sizes", f"they hold {held}")
    return found


def _predicted(
    kernel: Kernel, sizes: Mapping[str, int], machine: Machine, options: Options, measured: Measurement
) -> Prediction:
    """The prediction, on the number of cores that a measurement states, if it does. Otherwise, the bound is that of the
    whole machine, while code that ran on one thread is expected to take the time of one core.
    """
    from roofdsl.predict.on_cores import by_one_core, on_cores

    cores = measured.details.get(CORES)
    if cores is None:
        alone = measured.backend == "cpu" and measured.threads == 1 and (machine.units or 1) > 1
        return (by_one_core if alone else predict)(kernel, sizes, machine, options)
    if not isinstance(cores, int) or cores < 1:
        raise CommandError(f"the result of {kernel.name} states {cores!r} as its number of cores", "measure it again")
    return on_cores(kernel, sizes, machine, cores, options)


def _code(measured: Measurement) -> Code:
    """What ran, as far as in-core times are modeled."""
    if measured.backend == "gpu" and measured.variant == "naive":
        return Code()
    known = measured.variant in ("loops", "grouped") or CORES in measured.details
    if measured.backend != "cpu" or not known:
        return Code("none")
    compiler: Literal["numba", "cc"] = "numba" if measured.compiler.startswith("numba") else "cc"
    math: Math = "strict" if measured.details.get(MATH) == "strict" else "relaxed"
    return Code("auto", compiler, math, "grouped" if measured.variant == "grouped" else "loops")


def _as_ran(measured: Measurement, kernel: Kernel, sizes: Mapping[str, int], machine: Machine) -> Kernel:
    """The kernel with `unit tensor` if cuBLAS multiplied its matrices on a GPU that states the rate of its matrix units
    for them, and with `compute tf32` if they are of f32 and the math mode was tf32; otherwise as it is.

    cuBLAS uses these units for all its types but f32, and for f32 in that mode.
    """
    from roofdsl.counts.work_at import work_at

    if not _multiplied(measured, kernel):
        return kernel
    types = set(work_at(kernel, sizes).by_type)
    if measured.details.get("math_mode") == "tf32" and types == {"f32"} and machine.stated("tf32", "tensor"):
        return replace(kernel, compute_type=TYPES["tf32"], unit="tensor")
    on_units = types and all(machine.stated(name, "tensor") for name in types)
    return replace(kernel, unit="tensor") if on_units else kernel


def _launches_as_ran(measured: Measurement, program: ProgramAt, machine: Machine) -> ProgramAt:
    """The program with each of its kernels as it ran."""
    ran = {(part.of.kernel, part.of.parameters): part.of for part in measured.by_launch}
    launched = []
    for part in program.launched:
        own = ran.get((part.kernel.name, part.parameters))
        kernel = part.kernel if own is None else _as_ran(own, part.kernel, dict(part.arguments), machine)
        launched.append(replace(part, kernel=kernel))
    return replace(program, launched=tuple(launched))


def _multiplied(measured: Measurement, kernel: Kernel) -> bool:
    """Whether a library multiplied matrices on a GPU."""
    by_library = measured.backend == "gpu" and measured.variant == "library"
    return by_library and measured.details.get("operation") in ("gemm", "batched gemm") and is_contraction(kernel)


def _accesses(measured: Measurement, machine: Machine) -> Accesses:
    """Compilers keep in registers what inner loops do not change, if they see the loops as the kernel has them."""
    compiled = measured.backend == "cpu" and measured.variant in ("loops", "parallel")
    return "compiled" if compiled and machine.multiprocessor is None else "written"


def stale(kernels: Sequence[Subject], measurements: Sequence[Measurement]) -> list[str]:
    """Messages about measurements whose kernel has changed since."""
    by_name = {k.name: k for k in kernels}
    return [
        f"{m.kernel} was measured on {m.when}, and its text has changed since: measure it again"
        for m in measurements
        if m.kernel in by_name and _is_stale(by_name[m.kernel], m)
    ]


def check_work(kernels: Sequence[Subject], comparisons: Sequence[Comparison]) -> None:
    """Check that each measurement counts the operations that its kernel performs; `stale` reports kernels that changed.

    Raises CommandError if a result states another W.
    """
    by_name = {k.name: k for k in kernels}
    for c in comparisons:
        m, work = c.measurement, c.prediction.work
        if m.work != work and not _is_stale(by_name[m.kernel], m):
            at = ", ".join(f"{n} = {v}" for n, v in m.parameters)
            raise CommandError(
                f"the result of {m.kernel}{f' at {at}' if at else ''} says {group(m.work)} operations, but it "
                f"does {group(work)}",
                "measure it again; do not edit result files",
            )


def _is_stale(subject: Subject, m: Measurement) -> bool:
    if isinstance(subject, Kernel):
        return m.is_stale(subject)
    from roofdsl.measure.program import program_hash

    return program_hash(subject.at(dict(m.parameters))) != m.source_sha256
