"""A characterized GPU as a `.roof` machine."""

from __future__ import annotations

import re
from collections.abc import Iterator

from roofdsl.lang.operation_classes import SPECIAL_FUNCTIONS
from roofdsl.machine.quantities import show_bandwidth, show_size, show_time
from roofdsl.measure.characterize_gpu import GpuCharacterization, GpuPeak
from roofdsl.measure.machine_file import about_bandwidth, approximate_size, peak_line, plain_text

_PEAKS = ("fma", "min", "div", *SPECIAL_FUNCTIONS, "tensor")  # measured classes that the language has
_LINE = 128  # bytes of a line in every NVIDIA L2 cache since 2010, in sectors of 32


def gpu_machine_text(found: GpuCharacterization, name: str | None = None) -> str:
    """The text of a file with one machine, in canonical layout; it ends in a newline."""
    versions = ", ".join(f"{k} {v}" for k, v in found.software.items() if "\n" not in v and v != "unknown")
    lines = [
        f"# Measured by `roofdsl characterize --backend gpu` on {found.when}{', quickly' if found.quick else ''}.",
        f"# {versions}.",
        "# L2: lines of 128 B in sectors of 32 B, as in all current NVIDIA GPUs; not measured.",
        *_probed(found),
        *(f"# Note: {note}." for note in found.notes),
        "",
        f'machine {name or gpu_machine_name(found)} "{plain_text(found.name)}, measured":',
        f'    source "roofdsl characterize, {found.when}"',
    ]
    cache, memory = found.levels
    seen = "no step of the curve"
    if cache.seen_bytes is not None:
        seen = f"the curve falls at {approximate_size(cache.seen_bytes)}"
    for peak in _stated(found):
        operation = "OP" if peak.type.startswith("i") else "FLOP"
        note = f"{peak.how}, spread {peak.rate.spread:.0%}"
        cls = "" if peak.cls == "add" else peak.cls
        lines.append("    " + peak_line(peak.type, cls, peak.rate.per_s, operation, note))
    lines += [
        f"    cache L2 {show_size(cache.capacity_bytes)}, {show_bandwidth(cache.bandwidth.bytes_per_s)}, "
        f'line {_LINE} B, sector 32 B, no_write_allocate source "{seen}; {about_bandwidth(cache.bandwidth)}"',
        f"    memory {memory.name} {show_size(memory.capacity_bytes)}, "
        f"{show_bandwidth(memory.bandwidth.bytes_per_s)}, "
        f'line {_LINE} B source "{about_bandwidth(memory.bandwidth)}"',
    ]
    lines += [*_sustained(found)]
    stream = show_time(found.stream_launch_s)
    lines.append(
        f'    launch {show_time(found.launch_s)} source "one of many empty launches in a graph; {stream} in a stream"'
    )
    lines.append(f"    units {found.device['multiprocessors']}")
    unit = found.device.get("multiprocessor")
    if unit:
        options = ", ".join(f"{name} {show_size(v) if name == 'shared' else v}" for name, v in unit.items())
        lines.append(f'    multiprocessor {options} source "as the device reports it"')
    return "\n".join(lines) + "\n"


MOST_ERROR = 0.1
"""The largest error of a law of the bandwidth by occupancy that is stated."""

_DIRECTIONS = {"load": "read", "copy": "mixed"}


def _probed(found: GpuCharacterization) -> Iterator[str]:
    """Comments on results for which the language has no line."""
    p = found.probes
    shared, l1 = show_bandwidth(p.shared.per_s), show_bandwidth(p.l1.per_s)
    yield f"# Shared memory: {shared} (spread {p.shared.spread:.0%}); L1: {l1} read (spread {p.l1.spread:.0%})."
    yield f"# Latency of dependent loads: {', '.join(f'{name} {show_time(s)}' for name, s in p.latencies_s)}."
    for stream, law in p.laws:
        points = ", ".join(
            f"{o.threads // found.device['multiprocessors']}: {show_bandwidth(o.per_s)}"
            for o in p.occupancies
            if o.stream == stream
        )
        yield f"# {stream} by resident threads of a multiprocessor: {points}; the law errs by {law.error:.0%} at most."


def _sustained(found: GpuCharacterization) -> Iterator[str]:
    memory = found.levels[-1].name
    for stream, law in found.probes.laws:
        if law.error <= MOST_ERROR:
            width, latency = show_bandwidth(law.bandwidth_bytes_per_s), show_time(law.latency_s)
            yield (
                f"    sustained {memory} {_DIRECTIONS[stream]} {width}, latency {latency}, exponent {law.exponent:.1f} "
                f'source "fit to {stream} at {sum(o.stream == stream for o in found.probes.occupancies)} occupancies"'
            )


def gpu_machine_name(found: GpuCharacterization) -> str:
    """`nvidia_h200_measured`, from the device's name."""
    stem = re.sub(r"[^a-z0-9]+", "_", found.name.lower()).strip("_") or "gpu"
    return f"{'' if stem[0].isalpha() else 'gpu_'}{stem}_measured"


def _stated(found: GpuCharacterization) -> Iterator[GpuPeak]:
    """The peaks that the language can state; of additions and multiplications, the faster one."""
    for peak in found.peaks:
        if peak.cls == "add":
            mul = next((p for p in found.peaks if (p.type, p.cls) == (peak.type, "mul")), peak)
            faster = max(peak, mul, key=lambda p: p.rate.per_s)
            yield GpuPeak(peak.type, "add", faster.rate, f"{faster.cls} alone, {faster.how}")
        elif peak.cls in _PEAKS:
            yield peak
