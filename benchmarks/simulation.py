"""Accesses a second of the simulator through three levels, beside pycachesim (PyPI) on the same streams."""

from __future__ import annotations

import json
import resource
import subprocess
from dataclasses import dataclass

from benchmarks.kernels import fresh, shipped
from benchmarks.measure import Timing, markdown, show_seconds, timed
from benchmarks.peers import DRIVERS, HOME, TIMEOUT_S, Tool, install, python_of, versions
from roofdsl.simulate.cache_levels import CacheLevel
from roofdsl.simulate.hierarchy import Simulated, simulate

LEVELS = (
    CacheLevel("L1", 32 << 10, 64, 8),
    CacheLevel("L2", 1 << 20, 64, 16),
    CacheLevel("L3", 55 << 19, 64, 11),
)
"""A core of a Skylake server: LRU, write-back, write-allocate."""

STREAMS = (("triad", 20_000_000), ("gemv", 8_000), ("jacobi2d", 4_000), ("matmul", 400))
"""What is timed; pycachesim gets PEER_SIZES, which take it seconds."""

PEER_SIZES = (("triad", 300_000), ("gemv", 500), ("jacobi2d", 500))
GOAL_PER_S = 100e6
LONG = ("gemv", 20_000)
"""400 million iterations, whose memory is to stay that of the caches."""

PYCACHESIM = Tool("pycachesim", ("pycachesim",), ("pycachesim",))


@dataclass(frozen=True)
class Peer:
    """What pycachesim counted for one stream: (loads, stores) below each level, and its seconds; or why nothing."""

    counts: tuple[tuple[int, int], ...] = ()
    seconds: float = 0.0


def run(name: str, n: int) -> Simulated:
    """A shipped kernel through LEVELS."""
    return simulate(fresh(shipped()[name], name), {"n": n}, LEVELS)


def measure(repeats: int, streams: tuple[tuple[str, int], ...] = STREAMS) -> list[tuple[str, int, Timing[Simulated]]]:
    """Every stream, timed."""
    rows = []
    for name, n in streams:
        kernel = fresh(shipped()[name], name)
        run(name, 16)  # compiled or loaded
        rows.append((name, n, timed(lambda k=kernel, size=n: simulate(k, {"n": size}, LEVELS), repeats)))  # type: ignore[misc]
    return rows


def ask() -> tuple[dict[str, Peer], str]:
    """(pycachesim's counts by kernel, its version or why it does not answer)."""
    HOME.mkdir(parents=True, exist_ok=True)
    failure = install(PYCACHESIM)
    if failure:
        return {}, f"pycachesim cannot be installed: {failure}"
    words = [f"{name}={n}" for name, n in PEER_SIZES]
    command = [str(python_of(PYCACHESIM)), str(DRIVERS / "pycachesim_stream.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        return {}, done.stderr.strip().split("\n")[-1]
    found = json.loads(done.stdout)
    peers = {k: Peer(tuple((a, b) for a, b in v["levels"]), v["seconds"]) for k, v in found.items()}
    return peers, f"pycachesim {versions(PYCACHESIM)['pycachesim']}"


def table(rows: list[tuple[str, int, Timing[Simulated]]]) -> str:
    """Rates of our own simulator."""
    head = ("kernel", "n", "accesses", "median (s)", "Maccesses/s", "on the processor", "100 M/s")
    cells = []
    for name, n, t in rows:
        rate, own = t.result.accesses / t.median, t.result.accesses / t.processor_median
        reached = "reached" if max(rate, own) >= GOAL_PER_S else "missed"
        shown = [f"{x / 1e6:.0f}" for x in (rate, own)]
        cells.append((name, f"{n:,}", f"{t.result.accesses:,}", show_seconds(t.median), *shown, reached))
    return markdown(head, cells, numeric=(1, 2, 3, 4, 5))


def compared(peers: dict[str, Peer]) -> str:
    """pycachesim's counts and rates beside ours, on the same streams."""
    head = ("kernel", "n", "accesses", "ours Maccesses/s", "pycachesim Maccesses/s", "loads, stores below L1, L2, L3")
    cells = []
    for name, n in PEER_SIZES:
        kernel = fresh(shipped()[name], name)
        t = timed(lambda k=kernel, n=n: simulate(k, {"n": n}, LEVELS), 3)  # type: ignore[misc]
        ours = tuple((level.loads, level.stores) for level in t.result.levels)
        same = "the same" if ours == peers[name].counts else f"ours {ours}, theirs {peers[name].counts}"
        rates = [f"{t.result.accesses / s / 1e6:.1f}" for s in (t.median, peers[name].seconds)]
        cells.append((name, f"{n:,}", f"{t.result.accesses:,}", *rates, same))
    return markdown(head, cells, numeric=(1, 2, 3, 4))


def section(repeats: int) -> str:
    """The part of a report."""
    rows = measure(repeats)
    peers, said = ask()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    name, n = LONG
    long = timed(lambda: run(name, n), 1)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    parts = [
        "## Simulation",
        "32 KiB, 1 MiB and 27.5 MiB of 8, 16 and 11 ways, LRU, write-back, write-allocate, on one core. Rates are by "
        "the clock and by the processor's time, which differ where other programs run.",
        table(rows),
        f"{name} at n = {n:,}: {long.result.accesses:,} accesses in {show_seconds(long.median)} s "
        f"({long.result.accesses / long.median / 1e6:.0f} M/s), the process's peak memory grown by "
        f"{grown / 1024:.1f} MiB.",
        f"Beside {said}; it is handed each iteration by a Python generator, whose time is in its seconds.",
        *([compared(peers)] if peers else []),
    ]
    return "\n\n".join(parts)
