"""Measure a kernel on the processor: build a variant, verify it, time it, and record everything about the number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from roofdsl.codegen.math_mode import Math
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.indirect import is_indirect, require_data
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.streams import has_streams
from roofdsl.measure.cold_caches import CacheFlusher
from roofdsl.measure.device import describe_cpu, software
from roofdsl.measure.energy_counter import Rapl, details_of, read_energy
from roofdsl.measure.library_kernels import library_runner
from roofdsl.measure.measurement import CORES, MATH, Measurement
from roofdsl.measure.measurement_record import Ran, Setup, recorded
from roofdsl.measure.runner import Runner
from roofdsl.measure.shared_core import watch
from roofdsl.measure.timed_arrays import Restorer, aligned, total_bytes
from roofdsl.measure.timing import DEFAULT, Call, Plan, pinned, time_calls, usable_cores
from roofdsl.measure.verify import verify

VARIANTS = ("loops", "grouped", "parallel", "library")


@dataclass(frozen=True)
class CpuOptions:
    """How a kernel is run. math: what its compiler may do. cores: their number; None means all in the variant
    `parallel`. energy: whether to read the energy of a call as well. clock_hz: a frequency that a core should reach
    while it is timed, if one is known.

    cold: empty the caches before each sample, which is then a single call.
    """

    variant: str = "loops"
    compiler: str = "numba"
    plan: Plan = DEFAULT
    cold: bool = False
    seed: int = 0
    math: Math = "relaxed"
    cores: int | None = None
    energy: bool = False
    clock_hz: float | None = None


def measure_cpu(
    kernel: Kernel,
    params: Mapping[str, int],
    options: CpuOptions | None = None,
    tell: Callable[[str], None] | None = None,
) -> Measurement:
    """Time one launch of `kernel` at `params` after comparing its results with the reference.

    Warm by default: every call uses the same arrays, so that data that fits into a cache is there. `tell` is called
    with the current step. Raises InputError for an illegal kernel, CommandError for unusable sizes, variants and
    compilers, and WrongResult (a CommandError) if the code computes something other than the kernel.
    """
    from roofdsl.checks.deep import require_legal
    from roofdsl.codegen.inputs import random_inputs

    options = options or CpuOptions()
    say = tell or (lambda what: None)
    if is_indirect(kernel):
        require_data(kernel)
    require_legal(kernel)
    values = numbers(kernel, params)
    say("compiling")
    runner = build(kernel, options)
    say("verifying")
    with runner.on_threads():
        verified = verify(kernel, runner.run, values, f"the variant `{options.variant}`")
    say("preparing")
    arrays = aligned(random_inputs(kernel, values, options.seed))
    restore = Restorer((kernel, arrays))
    cpu = describe_cpu()
    alone = runner.threads == 1
    cores = usable_cores()[:1] if alone else usable_cores()
    flush = CacheFlusher(cpu, cores) if options.cold else None

    def prepare() -> None:
        restore()
        if flush is not None:
            flush()

    plan = Plan(options.plan.repeats, options.plan.budget_s, 0.0, 0.0) if options.cold else options.plan
    say("timing")
    with pinned(cores) if alone else nullcontext(False) as is_pinned, runner.on_threads():
        run = runner.bind(arrays, values)
        lasting = partial(restore.lasting, run)
        watching = watch(alone=alone, clock_hz=options.clock_hz)
        times = time_calls([run], plan, prepare, watch=watching, lasting=lasting)
        energy = {}
        if options.energy:
            energy = energy_details(run, times.median_s, prepare, say, cold=options.cold, lasting=lasting)
    ran = Ran(
        kernel, values, runner.variant, runner.compiler, runner.text, runner.threads, verified, total_bytes(arrays),
        {**runner.details, "disturbed_s": list(times.disturbed), **energy, **_data(kernel)},
    )  # fmt: skip
    setup = Setup("cpu", cpu.to_json(), software(), "cold" if options.cold else "warm", is_pinned)
    return recorded(ran, setup, times)


def energy_details(
    run: Call, call_s: float, prepare: Call, say: Callable[[str], None], *, cold: bool, lasting: Callable[[int], int]
) -> dict[str, Any]:
    """What the record says about the energy of a call of `run`, which takes call_s seconds; `lasting` as in
    `time_calls`.
    """

    def calls(count: int) -> int:
        for _ in range(count):
            run()
        return count

    say("reading energy")
    return details_of(lambda: read_energy(Rapl(), calls, call_s, prepare=prepare, single=cold, lasting=lasting))


def _data(kernel: Kernel) -> dict[str, list[str]]:
    """Where the values of index arrays come from, for the record."""
    return {} if kernel.data is None else {"data": list(kernel.data.about)}


def build(kernel: Kernel, options: CpuOptions) -> Runner:
    """The code of a variant, compiled or bound to a library. Raises CommandError if there is no such code."""
    if options.variant not in VARIANTS:
        raise CommandError(f"there is no variant `{options.variant}` on the CPU", f"it has {', '.join(VARIANTS)}")
    if options.cores is not None:
        _check_cores(options.cores, options.variant)
    if options.variant == "library":
        if options.compiler != "numba":
            raise CommandError("the variant `library` does not compile anything", "omit --compiler")
        return library_runner(kernel)
    if options.compiler == "cc" or has_streams(kernel):  # numba has no stores that bypass the caches
        from roofdsl.measure.by_cc import c_runner

        runner = c_runner(kernel, options.variant, options.math, options.cores)
    else:
        from roofdsl.measure.by_numba import numba_runner

        runner = numba_runner(kernel, options.variant, options.math, options.cores)
    cores = {} if options.cores is None else {CORES: options.cores}
    return replace(runner, details={**runner.details, MATH: options.math, **cores})


def _check_cores(cores: int, variant: str) -> None:
    """Raises CommandError for more cores than there are, and for a variant that does not run on that number."""
    usable = len(usable_cores())
    if cores > usable:
        raise CommandError(
            f"{cores} cores were requested, but this process can use only {usable}", f"give at most {usable}"
        )
    if variant == "library" or (variant in ("loops", "grouped")) != (cores == 1):
        raise CommandError(
            f"the variant `{variant}` does not run on {cores} cores", "one core runs `loops`, several `parallel`"
        )
