"""Bytes across every boundary for each inner iteration of streams and stencils, beside kerncraft's layer conditions.

Layer conditions speak of the steady state. Ours is the difference of two runs that differ in the number of rows (or
planes) alone, over the difference of their inner iterations, so that the first touch of what stays in a cache, the
borders' rows and the final flush drop out.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.measure import markdown
from benchmarks.peers import HERE, HOME, TIMEOUT_S, TOOLS, install, kerncraft_machine, python_of, versions
from benchmarks.simulation import LEVELS
from roofdsl.counts.traffic_at import traffic_at
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel as load
from roofdsl.loops.load import load_file
from roofdsl.loops.model import Kernel

KERNELS: Mapping[str, str] = {
    "triad": """kernel triad(m, n):
    in q: f64, b, c: f64[m, n]
    out a: f64[m, n]
    for i in range(m), j in range(n):
        a[i, j] = b[i, j] + q * c[i, j]
""",
    "jacobi2d": """kernel jacobi2d(m, n):
    in s: f64, A: f64[m, n]
    out B: f64[m, n]
    for i in range(1, m - 1), j in range(1, n - 1):
        B[i, j] = s * (A[i, j] + A[i, j - 1] + A[i, j + 1] + A[i + 1, j] + A[i - 1, j])
""",
    "jacobi3d": """kernel jacobi3d(m, n):
    in c0, c1: f64, A: f64[m, n, n]
    out B: f64[m, n, n]
    for i in range(1, m - 1), j in range(1, n - 1), k in range(1, n - 1):
        let i_faces = A[i - 1, j, k] + A[i + 1, j, k]
        let j_faces = A[i, j - 1, k] + A[i, j + 1, k]
        let k_faces = A[i, j, k - 1] + A[i, j, k + 1]
        B[i, j, k] = c0 * A[i, j, k] + c1 * (i_faces + j_faces + k_faces)
""",
}
"""The shipped kernels with the number of rows or planes, m, apart from the extent n of the other dimensions."""

INNER: Mapping[str, Callable[[int], int]] = {
    "triad": lambda n: n,
    "jacobi2d": lambda n: n - 2,
    "jacobi3d": lambda n: (n - 2) ** 2,
}
"""Inner iterations of one more row or plane."""

CASES = (
    ("triad", 100_000),
    ("jacobi2d", 1000),
    ("jacobi2d", 4000),
    ("jacobi2d", 10_000),
    ("jacobi3d", 120),
    ("jacobi3d", 320),
    ("jacobi3d", 900),
)
MANY_ROWS = 1_000_000
"""m for kerncraft: arrays that no cache holds."""

BOUNDARIES = ("L1-L2", "L2-L3", "L3-memory")
Moved = tuple[tuple[float, float], ...]
"""(bytes loaded, bytes stored) for each inner iteration, at each of BOUNDARIES."""


def kernel_of(name: str) -> Kernel:
    """One of KERNELS."""
    return load(load_file(Source(f"<{name}>", KERNELS[name])), name)


def rows_of(name: str, n: int) -> tuple[int, int]:
    """Two numbers of rows or planes, which differ by 300,000 inner iterations or more."""
    return 5, 5 + max(3, -(-300_000 // INNER[name](n)))


def simulated(name: str, n: int) -> Moved:
    """By `simulate` through LEVELS, sets and all."""
    from roofdsl.simulate.hierarchy import simulate

    kernel, rows = kernel_of(name), rows_of(name, n)
    less, more = (simulate(kernel, {"m": m, "n": n}, LEVELS).levels for m in rows)
    inner = INNER[name](n) * (rows[1] - rows[0])
    return tuple(
        ((b.load_bytes - a.load_bytes) / inner, (b.store_bytes - a.store_bytes) / inner)
        for a, b in zip(less, more, strict=True)
    )


def exact(name: str, n: int) -> Moved:
    """By Q(Z) of a fully associative cache of each level's size, which predictions take."""
    kernel, rows = kernel_of(name), rows_of(name, n)
    inner = INNER[name](n) * (rows[1] - rows[0])
    found = []
    for level in LEVELS:
        less, more = (
            traffic_at(kernel, {"m": m, "n": n}, level.size_bytes, level.line_bytes, "write_allocate") for m in rows
        )
        assert less.loads_bytes is not None and more.loads_bytes is not None
        assert less.stores_bytes is not None and more.stores_bytes is not None
        loads, stores = more.loads_bytes - less.loads_bytes, more.stores_bytes - less.stores_bytes
        found.append((loads / inner, stores / inner))
    return tuple(found)


@dataclass(frozen=True)
class Printed:
    """What kerncraft printed for one kernel at one n, or why it did not."""

    moved: Moved = ()
    failure: str = ""


def kerncraft(name: str, n: int) -> Printed:
    """`kerncraft -p ECMData` by layer conditions: its data transfers, each over the 8 iterations of a line."""
    with tempfile.TemporaryDirectory() as folder:
        source = shutil.copy(HERE / "peer_kernels" / "rows" / f"{name}.c", folder)
        command = [str(python_of(TOOLS[0]).parent / "kerncraft"), "-p", "ECMData", "-vv", "--cache-predictor", "LC"]
        command += ["-m", str(kerncraft_machine()), "-D", "m", str(MANY_ROWS), "-D", "n", str(n), str(source)]
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return Printed(failure=str(error))
    return printed(done.stdout, done.stderr)


def printed(output: str, errors: str) -> Printed:
    """The table of data transfers in kerncraft's output, whose last memory level it calls MEM."""
    rows = re.findall(r"^ *\w+-\w+ *\| *(\d+) B/CL *\| *(\d+) B/CL", output, flags=re.MULTILINE)
    if len(rows) != len(BOUNDARIES):
        return Printed(failure=(errors.strip() or "no table of data transfers").split("\n")[-1])
    return Printed(tuple((int(loads) / 8, int(stores) / 8) for loads, stores in rows))


def section() -> str:
    """The part of a report."""
    HOME.mkdir(parents=True, exist_ok=True)
    failure = install(TOOLS[0])
    known = "" if failure else f"kerncraft {versions(TOOLS[0])['kerncraft']}"
    head = ("kernel", "n", "by", *BOUNDARIES)
    rows: list[tuple[str, ...]] = []
    notes = []
    for name, n in CASES:
        first = (name, f"{n:,}")
        rows.append((*first, "simulate", *map(_show, simulated(name, n))))
        rows.append((*first, "Q(Z)", *map(_show, exact(name, n))))
        theirs = Printed(failure=failure) if failure else kerncraft(name, n)
        if theirs.failure:
            notes.append(f"- {name}, n = {n:,}: {theirs.failure}")
        else:
            rows.append((*first, "kerncraft", *map(_show, theirs.moved)))
    return "\n\n".join(
        [
            "## Layer conditions, bytes an iteration",
            "Bytes loaded + stored across each boundary for an inner iteration, with write-allocate, through 32 KiB, "
            "1 MiB and 27.5 MiB: by `simulate` (8, 16 and 11 ways), by Q(Z) of fully associative caches (what "
            f"`predict` takes), both as the difference of two runs of different length, and as {known or 'kerncraft'} "
            "prints it (`-p ECMData`, layer conditions).",
            markdown(head, rows, numeric=(1, 3, 4, 5)),
            *(["kerncraft refuses:\n\n" + "\n".join(notes)] if notes else []),
        ]
    )


def _show(moved: tuple[float, float]) -> str:
    return f"{moved[0]:.2f} + {moved[1]:.2f}"
