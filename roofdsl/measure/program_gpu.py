"""Measure a program on a GPU."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from math import ceil

from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.program_at_sizes import Launched, ProgramAt
from roofdsl.measure.device import software
from roofdsl.measure.gpu import VARIANTS, GpuOptions, build_gpu, copies_on, device_runner, energy_details
from roofdsl.measure.gpu_code import GpuCode
from roofdsl.measure.gpu_driver import Call, Driver, find_driver
from roofdsl.measure.gpu_timing import PER_LAUNCH_S, time_launches
from roofdsl.measure.measurement import Measurement
from roofdsl.measure.measurement_record import Ran, Setup
from roofdsl.measure.program import Ready, Tell, check_variant, fallback, order_of, prepare, program_record
from roofdsl.measure.verify import verify

Built = dict[Kernel, tuple[tuple[str, GpuCode], str]]
"""((variant, its code), why the kernel does not run in the requested variant) of each kernel."""


def measure_program_gpu(
    program: ProgramAt, options: GpuOptions | None = None, tell: Tell | None = None, driver: Driver | None = None
) -> Measurement:
    """Like `measure_program_cpu`, on the GPU: in one stream, between events; `naive` replaces missing variants.

    Every launch uses the next of several copies of its arrays, together more than twice the L2 cache, so that it starts
    cold, as the model assumes.
    """
    options, say = options or GpuOptions(), tell or (lambda what: None)
    check_variant(options.variant, VARIANTS, "GPU")
    order = order_of(program)
    device = driver or find_driver()
    about = device.describe()
    built: Built = {}
    memory, l2_bytes = about.get("memory_bytes"), int(about["l2_bytes"])
    restores: list[Call] = []

    def ready(part: Launched) -> Ready:
        found, undo = _ready(part, options, device, l2_bytes, built)
        restores.append(undo)
        return found

    parts = prepare(program, say, ready, int(memory) if memory else None)
    turns = [cycle(part.calls) for part in parts]

    def restore() -> None:
        for undo in restores:
            undo()

    def execute() -> None:
        for k in order:
            next(turns[k])()

    launches = sum(int(parts[k].ran.details.get("launches", 1)) for k in order)
    least = max(ceil(len(part.calls) / part.launched.times) for part in parts)
    say("timing")
    whole = time_launches(device, [execute], options.plan, restore, launches, least=least).times
    say("timing launch by launch")
    samples = []
    for _ in range(len(whole.seconds)):
        restore()
        found = [0.0] * len(parts)
        for k, seconds in zip(order, device.laps([next(turns[k]) for k in order]), strict=True):
            found[k] += seconds
        samples.append(found)
    rotated = any(len(part.calls) > 1 for part in parts)
    setup = Setup("gpu", about, {**software(), **device.software()}, "rotated" if rotated else "warm")
    record = program_record(program, parts, whole, samples, setup, variant=options.variant)
    if not options.energy:
        return record
    energy = energy_details(device, [execute], max(whole.median_s, PER_LAUNCH_S), restore, say)
    return replace(record, details={**record.details, **energy})


def _ready(part: Launched, options: GpuOptions, device: Driver, l2_bytes: int, built: Built) -> tuple[Ready, Call]:
    """One kernel, built once for all its sizes, verified at this one, bound to copies of its arrays; and what restores
    these.
    """

    kernel = part.kernel
    values = numbers(kernel, dict(part.arguments))
    if kernel not in built:

        def code(variant: str) -> tuple[str, GpuCode]:
            return variant, build_gpu(kernel, replace(options, variant=variant), device, values)

        built[kernel] = fallback(options.variant, "naive", code)
    (variant, found), note = built[kernel]
    compute = "tf32" if variant == "library" and options.math_mode == "tf32" else None
    run = device_runner(device, found)
    verified = verify(kernel, run, values, f"the variant `{variant}` on the GPU", compute)
    sets = copies_on(device, kernel, values, options, l2_bytes)
    calls = tuple(found.bind(arrays, values) for arrays in sets.arrays)
    details = {**found.details(values), "copies": len(sets.arrays)}
    ran = Ran(kernel, values, variant, found.compiler, found.text, 1, verified, sets.footprint_bytes, details)
    return Ready(part, ran, calls, sets.arrays, note), sets.restore
