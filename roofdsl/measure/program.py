"""Measuring a program: all its launches in their order, timed as a whole and each by itself, overhead included.

The language binds no arrays between launches, so that every kernel at every size it runs at has arrays of its own;
launches that are the same run on the same ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.launched import Launched, ProgramAt
from roofdsl.loops.model import Kernel
from roofdsl.machine.quantities import group, show_size
from roofdsl.measure.cpu import VARIANTS as CPU_VARIANTS
from roofdsl.measure.cpu import CpuOptions, build
from roofdsl.measure.gpu import VARIANTS as GPU_VARIANTS
from roofdsl.measure.gpu import GpuOptions, build_gpu, copies_of, device_runner, time_launches
from roofdsl.measure.gpu_driver import Driver, find_driver
from roofdsl.measure.results import Launches, Measurement, now, own_text, source_hash, text_hash
from roofdsl.measure.runner import Call, Runner
from roofdsl.measure.timing import Clock, Times, pinned, time_calls, time_laps, usable_cores
from roofdsl.measure.verified import Verified

MOST_LAUNCHES = 100_000
"""Launches of a program that is measured, at most."""

Tell = Callable[[str], None]


@dataclass(frozen=True)
class _Ready:
    """One kernel at one size, verified and with its arrays: what is left to do is to call it, on one copy or another.

    arrays: kept for as long as `calls` are made, since compiled C knows no more than their addresses. note: why it is
    not of the variant asked for.
    """

    launched: Launched
    variant: str
    compiler: str
    text: str
    threads: int
    verified: Verified
    footprint_bytes: int
    calls: tuple[Call, ...]
    arrays: tuple[Mapping[str, Any], ...]
    restore: Call
    details: Mapping[str, Any]
    note: str = ""


def measure_program_cpu(
    program: ProgramAt,
    options: CpuOptions | None = None,
    tell: Tell | None = None,
    clock: Clock = time.perf_counter,
) -> Measurement:
    """Times executions of `program` on the processor, after the results of each of its kernels were compared.

    A kernel that the variant does not have (`library` of what is no product, `parallel` of what has no parallel loop)
    runs as `loops`, which the record says. Warm by default: every launch finds in the caches what those before it left.
    With `options.cold` they are emptied before every launch; the time of the program is then the sum of its launches'.
    Raises what `measure_cpu` raises, and CommandError for a program of more than MOST_LAUNCHES launches.
    """
    from roofdsl.codegen.inputs import random_inputs
    from roofdsl.measure.buffers import Flusher, Restorer, aligned, total_bytes
    from roofdsl.measure.device import describe_cpu, software
    from roofdsl.measure.verify import verify

    options, say = options or CpuOptions(), tell or _silent
    _check_variant(options.variant, CPU_VARIANTS, "CPU")
    order = _order(program)
    cpu = describe_cpu()
    built: dict[Kernel, tuple[Runner, str]] = {}

    def ready(part: Launched) -> _Ready:
        if part.kernel not in built:
            built[part.kernel] = _fallback(
                options.variant, "loops", lambda variant: build(part.kernel, replace(options, variant=variant))
            )
        runner, note = built[part.kernel]
        values = dict(part.arguments)
        verified = verify(part.kernel, runner.run, values, f"the variant `{runner.variant}`")
        arrays = aligned(random_inputs(part.kernel, values, options.seed))
        return _Ready(
            part, runner.variant, runner.compiler, runner.text, runner.threads, verified, total_bytes(arrays),
            (runner.bind(arrays, values),), (arrays,), Restorer(part.kernel, arrays), runner.details, note,
        )  # fmt: skip

    parts = _prepare(program, say, ready, cpu.memory_bytes)
    calls = [part.calls[0] for part in parts]
    sequence = [calls[k] for k in order]

    def restore() -> None:
        for part in parts:
            part.restore()

    def execute() -> None:
        for call in sequence:
            call()

    flush = Flusher(cpu.last_cache_bytes or 64 << 20) if options.cold else None
    say("timing")
    alone = all(part.threads == 1 for part in parts)
    with pinned(usable_cores()[:1]) if alone else nullcontext(False) as is_pinned:
        whole = None if flush else time_calls([execute], options.plan, restore, clock=clock)
        if flush is not None:
            execute()  # whatever is loaded or compiled at the first call
        say("timing launch by launch")
        each = time_laps(
            calls, order, whole.calls if whole else 1, options.plan, restore=restore, flush=flush, clock=clock
        )
    summed = Times(tuple(sum(sample) for sample in each), 1)
    return _record(
        program, parts, whole or summed, each,
        Measurement(
            kernel=program.name, parameters=program.parameters, backend="cpu", variant=options.variant,
            device=cpu.to_json(), software=software(), when=now(), times_s=(1.0,), calls_per_repeat=1,
            state="cold" if options.cold else "warm", threads=max(part.threads for part in parts), pinned=is_pinned,
            compiler="", work=0, operation="FLOP", footprint_bytes=None, verified=parts[0].verified, source="",
            source_sha256="", generated_sha256="",
        ),
    )  # fmt: skip


def measure_program_gpu(
    program: ProgramAt, options: GpuOptions | None = None, tell: Tell | None = None, driver: Driver | None = None
) -> Measurement:
    """As `measure_program_cpu`, on the GPU: in one stream, between events; `naive` stands in for other variants.

    Every launch takes the next of several copies of its arrays, together more than twice the L2 cache, so that it
    starts cold, as the model has it.
    """
    from roofdsl.codegen.inputs import random_inputs
    from roofdsl.counts.setting import numbers
    from roofdsl.measure.buffers import total_bytes
    from roofdsl.measure.device import software
    from roofdsl.measure.verify import verify

    options, say = options or GpuOptions(), tell or _silent
    _check_variant(options.variant, GPU_VARIANTS, "GPU")
    order = _order(program)
    device = driver or find_driver()
    about = device.describe()
    built: dict[Kernel, tuple[tuple[str, Any], str]] = {}

    def ready(part: Launched) -> _Ready:
        values = numbers(part.kernel, dict(part.arguments))
        if part.kernel not in built:

            def code(variant: str) -> tuple[str, Any]:
                return variant, build_gpu(part.kernel, replace(options, variant=variant), device, values)

            built[part.kernel] = _fallback(options.variant, "naive", code)
        (variant, found), note = built[part.kernel]
        compute = "tf32" if variant == "library" and options.math_mode == "tf32" else None
        run = device_runner(device, found)
        verified = verify(part.kernel, run, values, f"the variant `{variant}` on the GPU", compute)
        host = random_inputs(part.kernel, values, options.seed)
        size = total_bytes(host)
        copies = copies_of(size, int(about["l2_bytes"])) if options.rotate else 1
        sets = [{name: device.put(array) for name, array in host.items()} for _ in range(copies)]
        before = {a.name: device.put(host[a.name]) for a in part.kernel.arrays if a.intent == "inout"}

        def restore() -> None:
            for arrays in sets:
                for name, array in before.items():
                    device.copy(arrays[name], array)

        calls = tuple(found.bind(arrays, values) for arrays in sets)
        details = {**found.details(values), "copies": copies}
        return _Ready(
            part, variant, found.compiler, found.text, 1, verified, size, calls, tuple(sets), restore, details, note
        )  # fmt: skip

    memory = about.get("memory_bytes")
    parts = _prepare(program, say, ready, int(memory) if memory else None)
    turns = [cycle(part.calls) for part in parts]

    def restore() -> None:
        for part in parts:
            part.restore()

    def execute() -> None:
        for k in order:
            next(turns[k])()

    say("timing")
    whole = time_launches(device, [execute], options.plan, restore)
    say("timing launch by launch")
    samples = []
    for _ in range(len(whole.seconds)):
        restore()
        found = [0.0] * len(parts)
        for k, seconds in zip(order, device.laps([next(turns[k]) for k in order]), strict=True):
            found[k] += seconds
        samples.append(found)
    rotated = any(len(part.calls) > 1 for part in parts)
    return _record(
        program, parts, whole, samples,
        Measurement(
            kernel=program.name, parameters=program.parameters, backend="gpu", variant=options.variant, device=about,
            software={**software(), **device.software()}, when=now(), times_s=(1.0,), calls_per_repeat=1,
            state="rotated" if rotated else "warm", threads=1, pinned=False, compiler="", work=0, operation="FLOP",
            footprint_bytes=None, verified=parts[0].verified, source="", source_sha256="", generated_sha256="",
        ),
    )  # fmt: skip


def program_hash(program: ProgramAt) -> str:
    """SHA-256 of the texts of a program, of those that it runs, and of their kernels."""
    texts = [own_text(text.source, text.tree.span) for text in program.texts]
    return text_hash("\n".join([*texts, *dict.fromkeys(source_hash(part.kernel) for part in program.launched)]))


# ---- before timing ----


def _silent(what: str) -> None:
    pass


def _check_variant(variant: str, known: Sequence[str], where: str) -> None:
    if variant not in known:
        raise CommandError(f"there is no variant `{variant}` on the {where}", f"it has {', '.join(known)}")


def _order(program: ProgramAt) -> list[int]:
    if program.exchanges:
        step = program.exchanges[0].step
        raise CommandError(
            f"program {program.name} has a collective (line {step.span.line}), and one device is measured",
            "measure its kernels, or a program of what one device does between two collectives",
        )
    if program.launches > MOST_LAUNCHES:
        raise CommandError(
            f"program {program.name} makes {group(program.launches)} launches, and at most {group(MOST_LAUNCHES)} are "
            "measured",
            "measure a part of it: a smaller `repeat`, or a program that it runs",
        )
    return list(program.order())


def _fallback(variant: str, plain: str, make: Callable[[str], Any]) -> tuple[Any, str]:
    """(code of the variant, ""), or that of the plain one and why the kernel has no other."""
    try:
        return make(variant), ""
    except CommandError as error:
        if variant == plain:
            raise
        return make(plain), f"{plain} in place of {variant}: {error.message}"


def _prepare(
    program: ProgramAt, say: Tell, ready: Callable[[Launched], _Ready], memory_bytes: int | None
) -> list[_Ready]:
    """Every kernel at every size: checked, generated, verified, with its arrays. Raises CommandError for too many."""
    from roofdsl.checks.deep import require_legal

    for kernel in dict.fromkeys(part.kernel for part in program.launched):
        require_legal(kernel)
    found: list[_Ready] = []
    for part in program.launched:
        say(f"verifying {part.kernel.name}")
        found.append(ready(part))
        used = sum(each.footprint_bytes * len(each.calls) for each in found)
        if memory_bytes is not None and used > memory_bytes:
            raise CommandError(
                f"the arrays of the launches of {program.name} take more than the {show_size(memory_bytes)} of memory",
                "every kernel at every size has arrays of its own: take smaller sizes",
            )
    return found


# ---- the record ----


def _record(
    program: ProgramAt, parts: Sequence[_Ready], whole: Times, samples: Sequence[Sequence[float]], frame: Measurement
) -> Measurement:
    """The measurement: `frame` says what holds for all, `samples` are seconds of all launches of each part."""
    each = [
        Launches(part.launched.times, _part(part, [sample[k] / part.launched.times for sample in samples], frame))
        for k, part in enumerate(parts)
    ]
    works = [part.launches * part.of.work for part in each]
    main = each[works.index(max(works))].of
    verified = [part.of.verified for part in each]
    noise = whole.warning()
    notes = list(dict.fromkeys(f"{part.launched.kernel.name}: {part.note}" for part in parts if part.note))
    return replace(
        frame,
        times_s=whole.seconds,
        calls_per_repeat=whole.calls,
        compiler="; ".join(dict.fromkeys(part.compiler for part in parts)),
        work=sum(works),
        operation=main.operation,
        footprint_bytes=sum(part.footprint_bytes for part in parts),
        verified=Verified(
            verified[0].against,
            max(v.max_error for v in verified),
            max(v.of_allowed for v in verified),
            max(v.unverified for v in verified),
            (),
            tuple(dict.fromkeys(reason for v in verified for reason in v.unverifiable)),
        ),
        source=program.texts[0].source.name,
        source_sha256=program_hash(program),
        generated_sha256=text_hash("\n".join(part.text for part in parts)),
        warnings=(*(w for v in verified for w in v.warnings()), *((noise,) if noise else ())),
        details={
            "launches": program.launches,
            "arrays": "every kernel at every size has its own",
            "notes": notes,
            **({"disturbed_s": list(whole.disturbed)} if whole.disturbed else {}),
        },
        by_launch=tuple(each),
    )


def _part(part: _Ready, seconds: list[float], frame: Measurement) -> Measurement:
    from roofdsl.counts.counters import counters_at, has_counters
    from roofdsl.counts.traffic_at import work_at

    kernel, values = part.launched.kernel, dict(part.launched.arguments)
    work = work_at(kernel, values)
    by_type = work.by_type
    return replace(
        frame,
        kernel=kernel.name,
        parameters=part.launched.parameters,
        variant=part.variant,
        times_s=tuple(max(s, 1e-12) for s in seconds),
        calls_per_repeat=part.launched.times,
        threads=part.threads,
        compiler=part.compiler,
        work=work.total,
        operation="OP" if by_type and all(name.startswith("i") for name in by_type) else "FLOP",
        footprint_bytes=part.footprint_bytes,
        verified=part.verified,
        source=kernel.source.name,
        source_sha256=source_hash(kernel),
        generated_sha256=text_hash(part.text),
        counters=tuple(counters_at(kernel, values).items()) if has_counters(kernel.body) else (),
        details={**part.details, **({"note": part.note} if part.note else {})},
    )
