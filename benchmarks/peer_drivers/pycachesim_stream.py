"""The streams of three kernels through pycachesim's Skylake: counts and seconds as JSON. Runs in its environment."""

import json
import sys
import time
from collections.abc import Iterator

from cachesim import Cache, CacheSimulator, MainMemory

LEVELS = (("L1", 64, 8), ("L2", 1024, 16), ("L3", 40960, 11))  # sets, ways of 64 B lines
Accesses = Iterator[tuple[tuple[int, ...], tuple[int, ...]]]


def base(elements: int, before: int = 0) -> int:
    """The first byte after an array of f64 that starts at `before`: the next line."""
    return before + -(-elements * 8 // 64) * 64


def triad(n: int) -> Accesses:
    b, c, a = 0, base(n), base(n, base(n))  # in the order of their declarations
    for i in range(0, 8 * n, 8):
        yield (b + i, c + i), (a + i,)


def gemv(n: int) -> Accesses:
    x = base(n * n)
    y = base(n, x)
    for i in range(n):
        for j in range(n):
            yield (8 * (i * n + j), x + 8 * j, y + 8 * i), (y + 8 * i,)


def jacobi2d(n: int) -> Accesses:
    out = base(n * n)
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            at = 8 * (i * n + j)
            yield (at, at - 8, at + 8, at + 8 * n, at - 8 * n), (out + at,)


def run(stream: Accesses) -> dict[str, object]:
    memory = MainMemory()
    below, caches = None, []
    for name, sets, ways in reversed(LEVELS):
        cache = Cache(name, sets, ways, 64, "LRU", store_to=below, load_from=below)
        caches.insert(0, cache)
        below = cache
    memory.load_to(caches[-1])
    memory.store_from(caches[-1])
    simulator = CacheSimulator(caches[0], memory)
    start = time.perf_counter()
    simulator.loadstore(stream, length=8)
    taken = time.perf_counter() - start
    simulator.force_write_back()
    found = list(simulator.stats())
    return {"seconds": taken, "levels": [[s["MISS_count"], s["EVICT_count"]] for s in found[:3]]}


if __name__ == "__main__":
    streams = {"triad": triad, "gemv": gemv, "jacobi2d": jacobi2d}
    names = [word.partition("=") for word in sys.argv[1:]]
    print(json.dumps({name: run(streams[name](int(n))) for name, _, n in names}))
