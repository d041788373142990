"""Limits of a GPU besides its peaks and bandwidths: the first cache, shared memory, latencies, and how the bandwidth of
the memory rises with the number of waiting threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from roofdsl.measure.gpu_driver import Driver
from roofdsl.measure.multicore_timing import Rate
from roofdsl.measure.timing import median

SHARED_BYTES = 16 << 10
"""The bytes that a block reads again and again, in shared memory and through its first cache."""

THREADS = 512
_LINE = 128
_STEPS = 4096
"""The loads of a chain in the shorter of two launches; the longer one makes three times as many."""

OCCUPANCIES = ((64, 1), (128, 1), (256, 1), (512, 1), (1024, 1), (1024, 2))
"""(threads of a block, blocks of a multiprocessor)"""

ROUND_BYTES = {"load": 16, "copy": 32}
"""The bytes that a thread loads and stores before it waits."""

SOURCE = f"""
__device__ static inline void cached(const double2 *p, double &x, double &y)
{{ asm volatile("ld.global.ca.v2.f64 {{%0, %1}}, [%2];" : "=d"(x), "=d"(y) : "l"(p)); }}
__device__ static inline void streamed(const double2 *p, double &x, double &y)
{{ asm volatile("ld.global.cg.v2.f64 {{%0, %1}}, [%2];" : "=d"(x), "=d"(y) : "l"(p)); }}
extern "C" __global__ void probe_l1(const double2 *a, long long passes, double *out)
{{
    const double2 *mine = a + blockIdx.x * {SHARED_BYTES // 16};
    double s = 0, x, y;
    for (int r = 0; r < (int)passes; r++)
#pragma unroll
        for (int i = 0; i < {SHARED_BYTES // 16}; i += {THREADS}) {{
            cached(mine + i + threadIdx.x, x, y);
            s += x + y;
        }}
    if (s == 12345.678) out[0] = s;
}}
extern "C" __global__ void probe_shared(const double2 *a, long long passes, double *out)
{{
    __shared__ double2 kept[{SHARED_BYTES // 16}];
    for (int i = threadIdx.x; i < {SHARED_BYTES // 16}; i += {THREADS}) kept[i] = a[i];
    __syncthreads();
    double s = 0;
    for (int r = 0; r < (int)passes; r++)
#pragma unroll
        for (int i = 0; i < {SHARED_BYTES // 16}; i += {THREADS}) {{
            double x, y;
            asm volatile("ld.shared.v2.f64 {{%0, %1}}, [%2];" : "=d"(x), "=d"(y)
                : "r"((unsigned)__cvta_generic_to_shared((const void *)(kept + i + threadIdx.x))) : "memory");
            s += x + y;
        }}
    if (s == 12345.678) out[0] = s;
}}
extern "C" __global__ void probe_chain_ca(const long long *next, long long steps, long long *out)
{{
    long long at = 0;
    for (int r = 0; r < (int)steps; r++)
        asm volatile("ld.global.ca.s64 %0, [%1];" : "=l"(at) : "l"(next + at));
    out[0] = at;
}}
extern "C" __global__ void probe_chain_cg(const long long *next, long long steps, long long *out)
{{
    long long at = 0;
    for (int r = 0; r < (int)steps; r++)
        asm volatile("ld.global.cg.s64 %0, [%1];" : "=l"(at) : "l"(next + at));
    out[0] = at;
}}
extern "C" __global__ void probe_load(double2 *a, const double2 *b, long long n, double *out)
{{
    const long long stride = (long long)gridDim.x * blockDim.x;
    double s = 0, x, y;
#pragma unroll 1
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {{
        streamed(b + i, x, y);
        s += x + y;  // the next load waits for this one, since s decides whether the loop goes on
        if (s == 12345.678) break;
    }}
    if (s == 12345.678) out[0] = s;
}}
extern "C" __global__ void probe_copy(double2 *a, const double2 *b, long long n, double *out)
{{
    const long long stride = (long long)gridDim.x * blockDim.x;
    double x, y;
#pragma unroll 1
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {{
        streamed(b + i, x, y);
        a[i] = make_double2(x, y);
        if (x == 12345.678) break;
    }}
}}
"""


@dataclass(frozen=True)
class OccupancyPoint:
    """One stream at one occupancy: the resident threads of the whole device, the bytes of one round of a thread, and
    bytes/s.
    """

    stream: str
    threads: int
    round_bytes: int
    per_s: float


@dataclass(frozen=True)
class Law:
    """rate = (flow^-exponent + bandwidth^-exponent)^(-1/exponent) with flow = bytes in flight / latency.

    error: the largest relative error on the points it was fitted to.
    """

    bandwidth_bytes_per_s: float
    latency_s: float
    exponent: float
    error: float


@dataclass(frozen=True)
class Probes:
    """l1, shared: bytes per second of all multiprocessors together. latencies_s: of dependent loads, by level."""

    l1: Rate
    shared: Rate
    latencies_s: tuple[tuple[str, float], ...]
    occupancies: tuple[OccupancyPoint, ...]
    laws: tuple[tuple[str, Law], ...]


RateOf = Callable[[Driver, Callable[[int], None], float, int], Rate]


def probe(device: Driver, about: dict[str, Any], samples: int, rate_of: RateOf, memory: str) -> Probes:
    """Measures all numbers of `Probes`, in about 10 seconds. `rate_of` is that of characterize_gpu."""
    import numpy as np

    functions = device.compile(SOURCE)
    units, l2 = int(about["multiprocessors"]), int(about["l2_bytes"])
    out = device.put(np.zeros(1))
    held = device.filled((units * 4 * SHARED_BYTES // 8,), "C", np.linspace(0.5, 1, 8191))

    def again(name: str, blocks: int) -> Rate:
        function = functions(name)

        def start(count: int) -> None:
            device.launch(function, (blocks, 1, 1), (THREADS, 1, 1), 0, [held, np.int64(8 * count), out])

        return rate_of(device, start, 8.0 * blocks * SHARED_BYTES, samples)

    l1, shared = again("probe_l1", units * 4), again("probe_shared", units * 4)
    latencies = []
    for name, size, function in (
        ("L1", SHARED_BYTES, "probe_chain_ca"),
        ("L2", l2 // 8, "probe_chain_cg"),
        (memory, min(8 * l2, int(about["memory_bytes"]) // 8), "probe_chain_cg"),
    ):
        latencies.append((name, _latency(device, functions(function), size, samples)))
    size = min(16 * l2, int(about["memory_bytes"]) // 8)
    to, source = (device.filled((size // 8,), "C", np.linspace(0.5, 1, 8191)) for _ in range(2))
    occupancies = tuple(
        _occupancy(device, functions(f"probe_{stream}"), stream, [to, source, np.int64(size // 16), out], at, samples)
        for stream in ROUND_BYTES
        for at in [(threads, blocks * units) for threads, blocks in OCCUPANCIES]
    )
    laws = [(stream, fitted([o for o in occupancies if o.stream == stream])) for stream in ROUND_BYTES]
    return Probes(l1, shared, tuple(latencies), occupancies, tuple(laws))


def _latency(device: Driver, function: Any, size: int, samples: int) -> float:
    """Seconds of one of many dependent loads, each from a different line of `size` bytes, in random order."""
    import numpy as np

    lines = max(2, size // _LINE)
    order = np.random.default_rng(7).permutation(lines)
    order = np.roll(order, -int(np.argmax(order == 0)))  # the chain begins at 0
    chain = np.zeros(lines * (_LINE // 8), np.int64)
    chain[order * (_LINE // 8)] = np.roll(order, -1) * (_LINE // 8)
    there, out = device.put(chain), device.put(np.zeros(1, np.int64))

    def walk(steps: int) -> float:
        return device.elapsed([lambda: device.launch(function, (1, 1, 1), (1, 1, 1), 0, [there, np.int64(steps), out])])

    walk(min(lines, 1 << 20))  # loads what stays in a cache
    # the difference of two lengths: neither the launch nor the first loads count
    return median([(walk(3 * _STEPS) - walk(_STEPS)) / (2 * _STEPS) for _ in range(samples)])


def _occupancy(  # noqa: PLR0917
    device: Driver, function: Any, stream: str, values: list[Any], at: tuple[int, int], samples: int
) -> OccupancyPoint:
    threads, blocks = at

    def run() -> None:
        device.launch(function, (blocks, 1, 1), (threads, 1, 1), 0, values)

    device.elapsed([run])
    moved = ROUND_BYTES[stream] * int(values[2])
    per_s = median([moved / device.elapsed([run]) for _ in range(samples)])
    return OccupancyPoint(stream, threads * blocks, ROUND_BYTES[stream], per_s)


def fitted(points: Sequence[OccupancyPoint]) -> Law:
    """The law of operators/bandwidth.py that fits best.

    For every exponent p, latency^p and bandwidth^-p are linear in rate^-p, and a least-squares fit of relative errors
    gives both.
    """
    import numpy as np

    held = np.array([float(o.threads * o.round_bytes) for o in points])
    rate = np.array([o.per_s for o in points])
    best: Law | None = None
    for p in np.arange(1.0, 10.01, 0.1):
        scaled = rate / rate.max()  # powers of it stay in range
        rows = np.stack([(held / held.max()) ** -p * scaled**p, scaled**p], axis=1)
        (x, y), *_ = np.linalg.lstsq(rows, np.ones(len(points)), rcond=None)
        if x <= 0 or y <= 0:
            continue
        latency = x ** (1 / p) * held.max() / rate.max()
        width = y ** (-1 / p) * rate.max()
        law = ((held / latency) ** -p + width**-p) ** (-1 / p)
        error = float(np.abs(law / rate - 1).max())
        if best is None or error < best.error:
            best = Law(float(width), float(latency), float(p), error)
    if best is None:  # no bend: the memory is never the limit, or always
        return Law(float(rate.max()), float((held / rate).min()), 10.0, float("inf"))
    return best
