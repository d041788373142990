"""How deriving grows with a kernel's loops, statements and references: processor time and memory of a whole process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks.kernels import ROOT
from benchmarks.measure import markdown

RUNS = 3
LIMIT_S = 60.0
"""Of the clock, for one derivation; what takes longer is told, and ends its series."""

LONG_S = 5.0
"""Of the processor: a derivation that takes longer is not repeated."""

_CHILD = """\
import json, resource, sys
from roofdsl.counts.derive import derive
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file

def spent():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used), max(u.ru_maxrss for u in used)

before = spent()
found = derive(kernel(load_file(Source("scaling.roof", sys.stdin.read())), None))
after = spent()
print(json.dumps([after[0] - before[0], after[1] / 1024, before[1] / 1024, len(found.plateaus)]))
"""


@dataclass(frozen=True)
class Grown:
    """One derivation in a process of its own. seconds: of the processor; None where it took too long.

    peak_mib: the most memory of the process, or of a child; base_mib: before the derivation.
    """

    what: str
    number: int
    seconds: float | None
    peak_mib: float = 0.0
    base_mib: float = 0.0
    plateaus: int = 0


def loops(number: int) -> str:
    """A nest of so many loops around one update, each array with all loops but one in its subscripts."""
    names = [f"i{k}" for k in range(number)]
    ranges = ", ".join(f"{name} in range(n)" for name in names)
    first, second = names[:-1] or names, names[1:] or names
    return (
        f"kernel nest(n):\n    in A: f64[{', '.join('n' for _ in first)}]\n"
        f"    inout B: f64[{', '.join('n' for _ in second)}]\n    for {ranges}:\n"
        f"        B[{', '.join(second)}] += A[{', '.join(first)}] * A[{', '.join(first)}]\n"
    )


def statements(number: int) -> str:
    """So many products of a matrix and the vector before, one statement each in one nest."""
    names = [f"y{k}" for k in range(number + 1)]
    declared = "".join(f"    inout {name}: f64[n]\n" for name in names)
    body = "".join(f"        {b}[i] += A[i, j] * {a}[j]\n" for a, b in pairwise(names))
    return f"kernel chain(n):\n    in A: f64[n, n]\n{declared}    for i in range(n), j in range(n):\n{body}"


def references(number: int) -> str:
    """A sum of so many neighbours along the rows of a plane."""
    terms = " + ".join(f"x[i, j + {k}]" if k else "x[i, j]" for k in range(number))
    return (
        f"kernel neighbours(n):\n    in x: f64[n, n + {number}]\n    out y: f64[n, n]\n"
        f"    for i in range(n), j in range(n):\n        y[i, j] = {terms}\n"
    )


SERIES: dict[str, tuple[Callable[[int], str], tuple[int, ...]]] = {
    "loops": (loops, (1, 2, 3, 4, 5, 6)),
    "statements": (statements, (1, 2, 4, 8, 16)),
    "references": (references, (1, 2, 4, 8, 16, 32)),
}


def derived(what: str, number: int) -> Grown:
    """One derivation in a process of its own, without the cache of derivations."""
    text = SERIES[what][0](number)
    try:
        done = subprocess.run(
            [sys.executable, "-c", _CHILD],
            input=text,
            cwd=ROOT,
            env={**os.environ, "ROOFDSL_CACHE": "off"},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return Grown(what, number, None)
    seconds, peak, base, plateaus = json.loads(done.stdout)
    return Grown(what, number, seconds, peak, base, plateaus)


def measure_all(runs: int = RUNS, most: int | None = None) -> Iterator[Grown]:
    """The median of up to `runs` derivations of every kernel of each series, up to `most` of what grows."""
    for what, (_, numbers) in SERIES.items():
        for number in numbers:
            if most is not None and number > most:
                break
            found = [derived(what, number)]
            while len(found) < runs and found[0].seconds is not None and found[0].seconds < LONG_S:
                found.append(derived(what, number))
            times = [g.seconds for g in found if g.seconds is not None]
            if not times:
                yield found[0]
                break
            peak = max(g.peak_mib for g in found)
            yield Grown(what, number, median(times), peak, found[0].base_mib, found[0].plateaus)


def section(found: Sequence[Grown]) -> str:
    """The part of a report."""
    rows = [
        (
            g.what,
            str(g.number),
            f"over {LIMIT_S:g} s of the clock" if g.seconds is None else f"{g.seconds:.3f}",
            "" if g.seconds is None else f"{g.peak_mib:.0f}",
            "" if g.seconds is None else f"{g.peak_mib - g.base_mib:.0f}",
            "" if g.seconds is None else str(g.plateaus) if g.plateaus else "not found",
        )
        for g in found
    ]
    head = ("of what", "number", "derive (s)", "peak memory (MiB)", "more than before (MiB)", "plateaus")
    return "\n\n".join(
        [
            "## Scaling",
            "`derive` as a whole in a process of its own, as a kernel grows: a nest with all loops but one in each "
            "subscript, statements of one nest that read what the one before writes, neighbours that one statement "
            "sums. Processor time, children included, medians; the most memory that the process or a child held.",
            markdown(head, rows, numeric=(1, 2, 3, 4, 5)),
        ]
    )


def draw(found: Sequence[Grown], path: Path) -> None:
    """Seconds against the number of what grows, one line a series, both axes logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for what, marker in zip(SERIES, "os^", strict=True):
        points = [(g.number, g.seconds) for g in found if g.what == what and g.seconds is not None]
        if points:
            axes.loglog(*zip(*points, strict=True), marker=marker, label=what, base=2)
    axes.set_yscale("log", base=10)
    axes.set_xlabel("loops, statements or references of the kernel")
    axes.set_ylabel("derive, s of the processor")
    axes.grid(visible=True, color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path)
