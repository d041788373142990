"""A GPU's measured ceilings: arithmetic of each type, matrix units through the library, bandwidth over working sets,
and launch time. Every number is the median of its samples, timed by events on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

from roofdsl.lang.diagnostics import CommandError
from roofdsl.measure.bandwidth_curve import PATTERNS, Bandwidth, Pattern, Point, Sweep, bandwidth
from roofdsl.measure.device import ReportedCache, software
from roofdsl.measure.gpu_blas import Types, gemm_of, types_of
from roofdsl.measure.gpu_driver import Driver, find_driver
from roofdsl.measure.gpu_microkernels import (
    ARITHMETIC,
    ILP,
    THREADS,
    Arithmetic,
    arithmetic_source,
    stream_function,
    stream_source,
)
from roofdsl.measure.gpu_probes import Probes, probe
from roofdsl.measure.levels_of_curve import plateaus
from roofdsl.measure.measurement import now
from roofdsl.measure.multicore_timing import Rate
from roofdsl.measure.peaks import AGAIN, truer
from roofdsl.measure.timing import MOST_SPREAD, median, quantile

Progress = Callable[[float, str], None]

BLOCKS_PER_UNIT = 8
SMALLEST = 1 << 20
"""The bytes of the smallest working set of all multiprocessors together."""

_TENSOR = (
    ("f16", "f16", types_of("f16", "f32", "default")),
    ("bf16", "bf16", types_of("bf16", "f32", "default")),
    ("tf32", "f32", types_of("f32", "f32", "tf32")),
    ("f64", "f64", types_of("f64", "f64", "default")),
    ("i8", "i8", Types(operand=3, target=10, compute=72, factor="int32")),
)
"""Types of operations of matrix units, each with the type that is stored and how cuBLAS is asked for it."""


@dataclass(frozen=True)
class GpuPeak:
    """The operations per second of one class on one type. `how` describes the code that ran."""

    type: str
    cls: str
    rate: Rate
    how: str


@dataclass(frozen=True)
class GpuLevel:
    """The L2 cache or the memory; `seen_bytes` is read off the curve."""

    name: str
    capacity_bytes: int
    seen_bytes: int | None
    bandwidth: Bandwidth


@dataclass(frozen=True)
class GpuCharacterization:
    """All measured data; gpu_machine.py writes it as a machine.

    launch_s: of one launch among many in a graph, as short kernels are timed; stream_launch_s: of one among many that
    the host starts.
    """

    device: dict[str, Any]
    software: dict[str, str]
    when: str
    quick: bool
    peaks: tuple[GpuPeak, ...]
    levels: tuple[GpuLevel, ...]
    sweep: Sweep
    launch_s: float
    stream_launch_s: float
    probes: Probes
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        return str(self.device["name"])


def characterize_gpu(
    quick: bool = False, progress: Progress | None = None, driver: Driver | None = None
) -> GpuCharacterization:
    """Measure the first GPU in under three minutes. Raises CommandError if there is none."""
    device = driver or find_driver()
    about = device.describe()
    tell = progress or (lambda part, what: None)
    samples = 7 if quick else 20
    notes: list[str] = []
    peaks = []
    for k, wanted in enumerate(ARITHMETIC):
        tell(0.4 * k / len(ARITHMETIC), f"{wanted.type} {wanted.cls}")
        found = calmest(partial(_arithmetic, device, wanted, int(about["multiprocessors"]), samples))
        peaks.append(GpuPeak(wanted.type, wanted.cls, found, "independent accumulators in registers"))
    for k, (type_name, stored, types) in enumerate(_TENSOR):
        tell(0.4 + 0.2 * k / len(_TENSOR), f"{type_name} matrix product")
        try:
            n = 4096 if quick else 8192
            peaks.append(_tensor(device, type_name, stored, types, n=n, samples=min(samples, 10)))
        except (CommandError, TypeError, ValueError) as error:
            notes.append(f"no matrix product in {type_name}: {str(error).splitlines()[0]}")
    sweep = _sweep(device, about, quick, samples, lambda p, w: tell(0.6 + 0.3 * p, w))
    levels = find_gpu_levels(about, sweep, notes)
    tell(0.9, "latencies and occupancy")
    probes = probe(device, about, samples, rate_of, levels[-1].name)
    tell(0.99, "launch")
    by_graph, by_stream = _launch_s(device, samples, notes)
    versions = {**software(), **device.software()}
    return GpuCharacterization(
        about, versions, now(), quick, tuple(peaks), levels, sweep, by_graph, by_stream, probes, tuple(notes)
    )


def rate_of(device: Driver, start: Callable[[int], None], amount: float, samples: int) -> Rate:
    """`amount` per second, like multicore_timing.rate; start(count) launches work that does `amount` per count."""

    def seconds(count: int) -> float:
        return device.elapsed([lambda: start(count)])

    count = 1
    seconds(1)
    while (taken := min(seconds(count) for _ in range(2))) < 1e-3 and count < 1 << 40:
        count *= 4
    count = max(1, round(count * 4e-3 / max(taken, 1e-9)))
    per_s = [amount * count / seconds(count) for _ in range(samples)]
    middle = median(per_s)
    return Rate(middle, (quantile(per_s, 0.9) - quantile(per_s, 0.1)) / middle)


def calmest(measure: Callable[[], Rate]) -> Rate:
    """A rate that is measured again if its samples spread: other work on the device only makes it slower."""
    found = measure()
    for _ in range(AGAIN):
        if found.spread <= MOST_SPREAD:
            break
        found = truer(found, measure())
    return found


def _arithmetic(device: Driver, wanted: Arithmetic, units: int, samples: int) -> Rate:
    import numpy as np

    function = device.compile(arithmetic_source(wanted))(wanted.function)
    out = device.put(np.zeros(THREADS * 2))
    blocks = units * BLOCKS_PER_UNIT
    operands = [np.float32(0.75), np.float32(0.3), np.float32(1.0001)]

    def start(count: int) -> None:
        device.launch(function, (blocks, 1, 1), (THREADS, 1, 1), 0, [out, *operands, np.int64(64 * count)])

    return rate_of(device, start, 64.0 * ILP * wanted.operations * blocks * THREADS, samples)


def _tensor(device: Driver, type_name: str, stored: str, types: Types, *, n: int, samples: int) -> GpuPeak:
    """A square matrix product on random numbers. Raises CommandError if the library does not support it."""
    import numpy as np

    from roofdsl.codegen.storage import encode

    # a million random numbers, repeated, with a period that is not a whole number of rows
    real = np.random.default_rng(5).uniform(-1, 1, 1_000_003)
    pattern = np.asarray(real * 127, np.int8) if stored == "i8" else encode(real, stored)
    target = {"i8": "int32", "f64": "float64"}.get(stored, "float32")
    a, b = (device.filled((n, n), "C", np.roll(pattern, k)) for k in (0, 501_001))
    c = device.filled((n, n), "C", np.zeros(1, target))
    product = gemm_of(a, b.T, c)  # both are contiguous along the sum, the only order in which integers are multiplied

    def start(count: int) -> None:
        for _ in range(count):
            device.gemm(product, types, 1, 0)

    with device.library("tf32" if type_name == "tf32" else "default"):
        found = rate_of(device, start, 2.0 * n**3, samples)
    return GpuPeak(type_name, "tensor", found, f"cuBLAS, {n} x {n} x {n}, random numbers, sums in {target}")


def gpu_working_sets(l2_bytes: int, memory_bytes: int, per_octave: int) -> list[int]:
    """Bytes of all multiprocessors together: from 1 MiB to 16 times the L2 cache or 1 GiB, whichever is more, but not
    more than a quarter of the memory.
    """
    most = min(max(16 * l2_bytes, 1 << 30), memory_bytes // 4)
    sizes, k = [], 0
    while (size := round(SMALLEST * 2 ** (k / per_octave))) <= most:
        sizes.append(size // 768 * 768)
        k += 1
    return sizes


def _sweep(device: Driver, about: dict[str, Any], quick: bool, samples: int, tell: Progress) -> Sweep:
    import numpy as np

    functions = device.compile(stream_source())
    sizes = gpu_working_sets(int(about["l2_bytes"]), int(about["memory_bytes"]), 1 if quick else 2)
    pattern_of_numbers = np.random.default_rng(3).uniform(0.5, 1.0, 1 << 17)
    block = device.put(np.resize(pattern_of_numbers, max(sizes) // 8 + 1024))
    out = device.put(np.zeros(1))
    points = []
    for k, size in enumerate(sizes):
        for pattern in PATTERNS:
            tell(k / len(sizes), f"{pattern.name} {size >> 20} MiB")
            units = int(about["multiprocessors"])
            found = calmest(partial(_stream, device, functions, pattern, block, out, size, units, samples))
            points.append(Point(pattern, size, found.per_s, found.spread))
    return Sweep(1, tuple(points))


def _stream(  # noqa: PLR0917
    device: Driver, functions: Callable[[str], Any], pattern: Pattern, block: Any, out: Any, size: int, units: int,
    samples: int,
) -> Rate:  # fmt: skip
    import numpy as np

    length = size // 16 // pattern.arrays  # elements of 16 bytes
    parts = [block[2 * k * length : 2 * (k + 1) * length] for k in range(pattern.arrays)]
    parts += [parts[0]] * (3 - len(parts))
    factor = np.float64(1e-9 if pattern.updated else 0.999)
    function = functions(stream_function(pattern))
    blocks = max(1, min(units * BLOCKS_PER_UNIT, ceil(length / THREADS)))

    def start(passes: int) -> None:
        values = [*parts, np.int64(length), factor, np.int64(passes), out]
        device.launch(function, (blocks, 1, 1), (THREADS, 1, 1), 0, values)

    return rate_of(device, start, 16.0 * length * pattern.elements(), samples)


def find_gpu_levels(about: dict[str, Any], sweep: Sweep, notes: list[str]) -> tuple[GpuLevel, ...]:
    """The L2 cache and the memory: the cache at working sets up to half its size, the memory at those of at least four
    times its size.
    """
    l2 = ReportedCache(2, int(about["l2_bytes"]), None, None, 1)
    seen = plateaus(*sweep.fastest())
    ends = [p for p in seen if p.capacity_bytes]
    near = min(ends, key=lambda p: abs((p.capacity_bytes or 0) - l2.size_bytes), default=None)
    end = near.capacity_bytes if near is not None else None
    if near is None:
        notes.append(f"no step of the curve at the L2 cache ({l2.size_bytes >> 20} MiB reported)")
    elif not near.could_end_at(l2.size_bytes):
        notes.append(f"L2: {l2.size_bytes >> 20} MiB reported, {(end or 0) >> 20} MiB read off the curve")
    inside = _best(sweep, 0, l2.size_bytes / 2)
    beyond = _best(sweep, 4 * l2.size_bytes, float("inf"))
    memory = "HBM" if int(about.get("memory_bus_bits") or 0) >= 1024 else "VRAM"
    return (
        GpuLevel("L2", l2.size_bytes, end, bandwidth(inside, "no_write_allocate")),
        GpuLevel(memory, int(about["memory_bytes"]), None, bandwidth(beyond, "no_write_allocate")),
    )


def _best(sweep: Sweep, low: float, high: float) -> Sequence[Point]:
    return [best for p in PATTERNS if (best := sweep.best(p, low, high)) is not None]


def _launch_s(device: Driver, samples: int, notes: list[str]) -> tuple[float, float]:
    """(seconds of a launch in a graph, and in a stream); without graphs, the stream's for both, and a note."""
    import numpy as np

    function = device.compile(stream_source())("nothing")
    out = device.put(np.zeros(1))

    def launch() -> None:
        device.launch(function, (1, 1, 1), (32, 1, 1), 0, [out])

    device.elapsed([launch] * 100)
    by_stream = median([device.elapsed([launch] * 500) / 500 for _ in range(samples)])
    replay = device.captured([launch] * 500)
    if replay is None:
        notes.append("launches could not be captured into a graph")
        return by_stream, by_stream
    device.elapsed([replay])
    return median([device.elapsed([replay]) / 500 for _ in range(samples)]), by_stream
