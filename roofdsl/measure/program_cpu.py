"""Measure a program on the processor."""

from __future__ import annotations

import time
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial

from roofdsl.codegen.inputs import random_inputs
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.loops.program_at_sizes import Launched, ProgramAt
from roofdsl.measure.cold_caches import CacheFlusher
from roofdsl.measure.cpu import VARIANTS, CpuOptions, build, energy_details
from roofdsl.measure.device import describe_cpu, software
from roofdsl.measure.measurement import Measurement
from roofdsl.measure.measurement_record import Ran, Setup
from roofdsl.measure.program import Ready, Tell, check_variant, fallback, order_of, prepare, program_record
from roofdsl.measure.runner import Runner
from roofdsl.measure.shared_core import watch
from roofdsl.measure.timed_arrays import Restorer, aligned, total_bytes
from roofdsl.measure.timing import Clock, Times, pinned, time_calls, time_laps, usable_cores
from roofdsl.measure.verify import verify


def measure_program_cpu(
    program: ProgramAt,
    options: CpuOptions | None = None,
    tell: Tell | None = None,
    clock: Clock = time.perf_counter,
) -> Measurement:
    """Times executions of `program` on the processor after comparing the results of each of its kernels.

    A kernel that does not have the variant (`library` if it is not a product, `parallel` without a parallel loop) runs
    as `loops`, and the record says so. Warm by default: every launch finds in the caches the data that earlier ones
    left. With `options.cold`, the caches are emptied before every launch, and the time of the program is the sum over
    its launches.

    Raises what `measure_cpu` raises, and CommandError for a program of more than MOST_LAUNCHES launches, with
    collectives or with index arrays, and for a number of cores.
    """
    options, say = options or CpuOptions(), tell or (lambda what: None)
    check_variant(options.variant, VARIANTS, "CPU")
    if options.cores is not None:
        raise CommandError(f"{program.name} is a program, and numbers of cores are for kernels", "name its kernels")
    order = order_of(program)
    cpu = describe_cpu()
    built: dict[Kernel, tuple[Runner, str]] = {}
    parts = prepare(program, say, lambda part: _ready(part, options, built), cpu.memory_bytes)
    calls = [part.calls[0] for part in parts]
    sequence = [calls[k] for k in order]

    def execute() -> None:
        for call in sequence:
            call()

    restore = Restorer(*((part.launched.kernel, part.arrays[0]) for part in parts))
    lasting = partial(restore.lasting, execute)
    alone = all(part.ran.threads == 1 for part in parts)
    cores = usable_cores()[:1] if alone else usable_cores()
    flush = CacheFlusher(cpu, cores) if options.cold else None
    say("timing")
    with pinned(cores) if alone else nullcontext(False) as is_pinned, ExitStack() as threads:
        for runner, _ in built.values():
            threads.enter_context(runner.on_threads())
        watching = watch(alone=alone, clock_hz=options.clock_hz)
        whole = None
        if flush is None:
            whole = time_calls([execute], options.plan, restore, clock=clock, watch=watching, lasting=lasting)
        else:
            execute()  # loading or compilation at the first call
        say("timing launch by launch")
        executions = whole.calls if whole else 1
        each = time_laps(
            calls, order, executions, options.plan, restore=restore, flush=flush, clock=clock, watch=watching
        )
        total_s = whole.median_s if whole else sum(sum(sample) for sample in each) / len(each)
        energy = {}
        if options.energy:
            energy = energy_details(execute, total_s, restore, say, cold=options.cold, lasting=lasting)
    summed = Times(tuple(sum(sample) for sample in each), 1)
    setup = Setup("cpu", cpu.to_json(), software(), "cold" if options.cold else "warm", is_pinned)
    found = program_record(program, parts, whole or summed, each, setup, variant=options.variant)
    return replace(found, details={**found.details, **energy})


def _ready(part: Launched, options: CpuOptions, built: dict[Kernel, tuple[Runner, str]]) -> Ready:
    """One kernel, compiled once for all its sizes, verified at this one, bound to its own arrays."""

    kernel, values = part.kernel, dict(part.arguments)
    if kernel not in built:
        built[kernel] = fallback(options.variant, "loops", lambda v: build(kernel, replace(options, variant=v)))
    runner, note = built[kernel]
    with runner.on_threads():
        verified = verify(kernel, runner.run, values, f"the variant `{runner.variant}`")
    arrays = aligned(random_inputs(kernel, values, options.seed))
    ran = Ran(
        kernel, values, runner.variant, runner.compiler, runner.text, runner.threads, verified, total_bytes(arrays),
        runner.details,
    )  # fmt: skip
    return Ready(part, ran, (runner.bind(arrays, values),), (arrays,), note)
