"""The record of a measurement: the code, the place, and the properties of the kernel at its sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roofdsl.loops.model import Kernel
from roofdsl.measure.measurement import Measurement, now, source_hash, text_hash
from roofdsl.measure.timing import Times
from roofdsl.measure.verified import Verified


@dataclass(frozen=True)
class Setup:
    """Where and how everything in one measurement ran."""

    backend: str
    device: Mapping[str, Any]
    software: Mapping[str, Any]
    state: str
    pinned: bool = False


@dataclass(frozen=True)
class Ran:
    """The code of one kernel at one size: the variant, its text, the comparison with the reference, the bytes of its
    arrays.
    """

    kernel: Kernel
    values: Mapping[str, int]
    variant: str
    compiler: str
    text: str
    threads: int
    verified: Verified
    footprint_bytes: int
    details: Mapping[str, Any]


def recorded(ran: Ran, setup: Setup, times: Times) -> Measurement:
    """The measurement of one kernel, with its W, its counters and its warnings."""
    from roofdsl.counts.counters import counters_at, has_counters
    from roofdsl.counts.work_at import work_at

    kernel, values = ran.kernel, ran.values
    work, noise = work_at(kernel, values), times.warning()
    integers = bool(work.by_type) and all(name.startswith("i") for name in work.by_type)
    return Measurement(
        kernel=kernel.name,
        parameters=(*kernel.constants, *values.items()),
        backend=setup.backend,
        variant=ran.variant,
        device=setup.device,
        software=setup.software,
        when=now(),
        times_s=times.seconds,
        calls_per_repeat=times.calls,
        state=setup.state,
        threads=ran.threads,
        pinned=setup.pinned,
        compiler=ran.compiler,
        work=work.total,
        operation="OP" if integers else "FLOP",
        footprint_bytes=ran.footprint_bytes,
        verified=ran.verified,
        source=kernel.source.name,
        source_sha256=source_hash(kernel),
        generated_sha256=text_hash(ran.text),
        counters=tuple(counters_at(kernel, values).items()) if has_counters(kernel.body) else (),
        warnings=(*ran.verified.warnings(), *((noise,) if noise else ())),
        details=ran.details,
    )
