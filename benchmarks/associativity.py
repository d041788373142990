"""What a set-associative LRU cache moves beside the model's fully associative one: kernels, sizes, caches.

Two classes: PolyBench at its own sizes, for which others have published the error of a fully associative model, and
all shipped kernels around the size of each cache, at odd sizes, multiples of 16 and powers of two.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import Any

from benchmarks.kernels import MODELS, ROOT
from benchmarks.measure import markdown
from benchmarks.sizes import FIXED, STEP, accesses_at, is_legal, sizes_for
from roofdsl.counts.set_conflicts import Geometry, conflicts, is_flagged
from roofdsl.counts.traffic_at import traffic_at
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.loops.accesses import statements
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply
from roofdsl.machine.find import standard_sizes
from roofdsl.simulate.cache_levels import CacheLevel
from roofdsl.simulate.hierarchy import simulate

LINE = 64
CACHES = (
    CacheLevel("32 KiB, 8 ways", 32 << 10, LINE, 8),
    CacheLevel("48 KiB, 12 ways", 48 << 10, LINE, 12),
    CacheLevel("1 MiB, 16 ways", 1 << 20, LINE, 16),
)
"""First caches of recent processors, and a second cache."""

SHARES = (0.5, 2.0, 8.0)
"""Data of a kernel over the size of the cache."""

KINDS = ("odd", "multiples of 16", "powers of 2")
OWN_SIZES = ("mini", "small", "medium", "large")
"""PolyBench's: few are powers of two (deriche's 64 and 128 are)."""

GOAL = 0.004
"""On average, for a first cache of 8 ways or more: misses too many or too few, in parts of the accesses."""

NEEDLESS = 0.001
"""A case is flagged for nothing where its error is no more than this."""

MOST_ACCESSES = 200_000_000
MOST_ODD_ACCESSES = 5_000_000
"""Accesses up to which a case is simulated: at PolyBench's sizes, and around the size of a cache."""


@dataclass(frozen=True)
class Case:
    """One kernel at one size through one cache: bytes both ways and lines loaded, of model and simulation."""

    kernel: str
    sizes: tuple[tuple[str, int], ...]
    kind: str
    cache: str
    accesses: int
    model: int
    simulated: int
    model_misses: int
    simulated_misses: int
    flagged: bool = False

    @property
    def is_published(self) -> bool:
        """Whether it is of PolyBench at one of its own sizes."""
        return self.kind in OWN_SIZES

    @property
    def miss_error(self) -> float:
        """The same of misses, in parts of the accesses."""
        return (self.simulated_misses - self.model_misses) / self.accesses if self.accesses else 0.0

    @property
    def error(self) -> float:
        """What the model says too little, in parts of the truth; negative where it says too much."""
        return (self.simulated - self.model) / self.simulated if self.simulated else 0.0


def polybench(only: Sequence[str] = ()) -> list[tuple[str, Kernel, dict[str, int]]]:
    """(size, kernel, its numbers) of PolyBench at OWN_SIZES, the smallest size first."""
    sizes = {n: s for n, s in standard_sizes("polybench").items() if not only or n in only}
    found = {n: kernel(load_file(ROOT / "models" / "polybench" / f"{n}.roof"), n) for n in sizes}
    return [(size, found[n], sizes[n][size]) for size in OWN_SIZES for n in sorted(sizes)]


def kernels() -> list[Kernel]:
    """The shipped ones, those with the fewest and shallowest loops first, PolyBench's after them."""
    found: dict[str, Kernel] = {}
    for folder in (MODELS, ROOT / "models" / "polybench"):
        for path in sorted(folder.glob("*.roof")):
            checked = load_file(path)
            found |= {name: kernel(checked, name) for name in checked.own_kernels if name not in found}
    return sorted(found.values(), key=lambda k: (max(len(s.loops) for s in statements(k.body)), len(k.arrays), k.name))


def variants(k: Kernel, cache_bytes: int) -> Iterator[tuple[str, dict[str, int]]]:
    """(kind, sizes) whose data take about SHARES of the cache; those the kernel does not allow are left out."""
    for share in SHARES:
        base = sizes_for(k, int(share * cache_bytes))
        if base is None:
            continue
        for kind in KINDS:
            sizes = {n: _resized(n, v, kind) for n, v in base.items()}
            if is_legal(k, sizes):
                yield kind, sizes


def _resized(name: str, value: int, kind: str) -> int:
    if name in FIXED or value < STEP:
        return value
    if kind == "odd":
        return value - 3
    return 1 << (value.bit_length() - 1) if kind == "powers of 2" else value


class _Left:
    """What was left out: how many cases, and kernels, by reason."""

    def __init__(self) -> None:
        self.why: dict[str, int] = {}

    def add(self, why: str, count: int = 1) -> None:
        self.why[why] = self.why.get(why, 0) + count


def compare_published(seconds: float, only: Sequence[str] = ()) -> tuple[list[Case], dict[str, int]]:
    """(cases of PolyBench at its own sizes, how many were left out and why)."""
    begun, cases, left = time.monotonic(), [], _Left()
    for size, k, sizes in polybench(only):
        for cache in CACHES:
            if time.monotonic() - begun > seconds:
                left.add(f"PolyBench, {size}: the time was over")
            else:
                cases += _tried(k, sizes, size, cache, MOST_ACCESSES, left)
    return cases, left.why


def compare_caches(seconds: float, only: Sequence[str] = ()) -> tuple[list[Case], dict[str, int]]:
    """(cases around the size of each cache, how many were left out and why); none is begun after `seconds`."""
    begun, cases, left = time.monotonic(), [], _Left()
    for k in kernels():
        if only and k.name not in only:
            continue
        if time.monotonic() - begun > seconds:
            left.add("the time was over (kernels)")
            continue
        done: set[tuple[object, ...]] = set()
        for cache in CACHES:
            try:
                found = list(variants(k, cache.size_bytes))
            except (CommandError, InputError) as error:
                left.add(str(error).split("\n")[0][:60])
                continue
            for kind, sizes in found:
                key = (cache.name, *sizes.items())
                if key not in done:
                    done.add(key)
                    cases += _tried(k, sizes, kind, cache, MOST_ODD_ACCESSES, left)
    return cases, left.why


def _tried(  # noqa: PLR0917
    k: Kernel, sizes: Mapping[str, int], kind: str, cache: CacheLevel, most: int, left: _Left
) -> list[Case]:
    """The case, or none where it is left out."""
    try:
        accesses = accesses_at(k, sizes)
        if accesses > most:
            left.add(f"{'PolyBench, ' if kind in OWN_SIZES else ''}more than {most // 10**6} million accesses")
            return []
        return [_one(k, sizes, kind, cache, accesses)]
    except (CommandError, InputError) as error:
        left.add(str(error).split("\n")[0][:60])
        return []


def _one(k: Kernel, sizes: Mapping[str, int], kind: str, cache: CacheLevel, accesses: int) -> Case:
    model = traffic_at(k, sizes, cache.size_bytes, LINE, "write_allocate")
    real = simulate(apply(k), sizes, [cache])
    misses = ((model.loads_bytes or 0) - real.scalar_load_bytes) // LINE
    assert cache.ways is not None
    flagged = is_flagged(conflicts(k, sizes, Geometry(cache.size_bytes, LINE, cache.ways)), accesses)
    numbers = (accesses, model.bytes, real.bytes(0), misses, real.levels[0].loads)
    return Case(k.name, tuple(sizes.items()), kind, cache.name, *numbers, flagged)


# ---- what came out ----


def error_tables(cases: Sequence[Case], left: Mapping[str, int]) -> str:
    """Errors by class, by what the model flags, by cache and kind of size, and by kernel."""
    published = [c for c in cases if c.is_published]
    others = [c for c in cases if not c.is_published]
    lines = [
        f"{len(cases):,} cases of {len({c.kernel for c in cases})} kernels through {len(CACHES)} caches, lines of "
        f"{LINE} B, write-back and write-allocate. The model is a fully associative LRU cache; the simulation has sets "
        "chosen by the address, LRU in each. Errors are simulated less model: of misses in parts of the accesses (how "
        "far off the miss ratio is, as it is published of such models), and of bytes in parts of the bytes simulated.",
        "### PolyBench at its own sizes",
        _verdict(published, "Goal"),
        _table([(f"{c.name}, {s}", _of(published, c.name, s)) for c in CACHES for s in OWN_SIZES], "cache, size"),
        f"### Around the size of the cache: data of {', '.join(f'{s:g}' for s in SHARES)} times the cache",
        _verdict(others, "The same"),
        _table([(f"{c.name}, {k}", _of(others, c.name, k)) for c in CACHES for k in KINDS], "cache, sizes"),
        "### Where the model says that sets matter",
        _flags(cases),
        "### Worst of each kernel, PolyBench at its own sizes",
        _worst(published),
        "### Worst of each kernel, around the size of the cache",
        _worst(others),
    ]
    if left:
        counts = sorted(left.items(), key=lambda t: -t[1])
        lines += ["Left out: " + "; ".join(f"{n} x {why}" for why, n in counts) + "."]
    return "\n\n".join(lines)


def _of(cases: Sequence[Case], cache: str, kind: str) -> list[Case]:
    return [c for c in cases if (c.cache, c.kind) == (cache, kind)]


def _verdict(cases: Sequence[Case], goal: str) -> str:
    """Whether the goal is reached, of first caches, in both ways."""
    first = [c for c in cases if c.cache != CACHES[2].name]
    if not first:
        return "No case of a first cache."
    errors = [abs(c.error) for c in first]
    misses, mean = fmean(abs(c.miss_error) for c in first), fmean(errors)
    within = sum(abs(c.miss_error) <= GOAL for c in first) / len(first)
    word = "reached" if misses <= GOAL else "not reached"
    return (
        f"{goal}: {GOAL:.1%} of the accesses on average, for first caches ({CACHES[0].name}; {CACHES[1].name}). It is "
        f"**{word}**: the mean of {len(first)} cases is {misses:.2%}, {within:.0%} of them are within {GOAL:.1%}. Of "
        f"the bytes the mean error is {mean:.2%}, the median {median(errors):.2%}."
    )


def _flags(cases: Sequence[Case]) -> str:
    """Errors of what the model flags and of what it does not; how often it flags needlessly, and misses one."""
    flagged, others = [c for c in cases if c.flagged], [c for c in cases if not c.flagged]
    needless = [c for c in flagged if abs(c.miss_error) <= NEEDLESS]
    off = [c for c in cases if abs(c.miss_error) > GOAL]
    missed = [c for c in off if not c.flagged]
    groups = []
    for what, own in (("PolyBench at its own sizes", lambda c: c.is_published), ("around the cache", _is_around)):
        groups += [(f"{what}, not flagged", [c for c in others if own(c)])]
        groups += [(f"{what}, flagged", [c for c in flagged if own(c)])]
    mean = fmean(abs(c.miss_error) for c in others) if others else 0.0
    text = (
        "`predict` warns where the lines that a loop comes back to fit a fully associative cache and not its sets, or "
        f"the other way. Of the {len(others)} cases that it does not flag the mean error is **{mean:.3%}** of the "
        f"accesses (goal {GOAL:.1%}). It flags {len(flagged)}, {len(needless)} of them needlessly (error of "
        f"{NEEDLESS:.1%} or less), so that {_share(len(flagged) - len(needless), len(flagged))} of its warnings are "
        f"right; of the {len(off)} cases that are off by more than {GOAL:.1%} it misses {len(missed)} and flags "
        f"{_share(len(off) - len(missed), len(off))}."
    )
    parts = [text, _table([("not flagged", others), ("flagged", flagged), *groups], "")]
    if missed:
        parts += ["Missed:", _listed(sorted(missed, key=lambda c: -abs(c.miss_error))[:25])]
    return "\n\n".join(parts)


def _is_around(case: Case) -> bool:
    return not case.is_published


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "none"


def _listed(cases: Sequence[Case]) -> str:
    rows = []
    for c in cases:
        sizes = ", ".join(f"{n}={v}" for n, v in c.sizes)
        rows.append((c.kernel, sizes, c.kind, c.cache, f"{100 * c.miss_error:+.2f}", f"{100 * c.error:+.2f}"))
    head = ("kernel", "sizes", "kind", "cache", "misses over accesses (%)", "bytes (%)")
    return markdown(head, rows, numeric=(4, 5))


def _table(groups: Sequence[tuple[str, Sequence[Case]]], what: str) -> str:
    rows = []
    for name, own in groups:
        if not own:
            continue
        misses, sizes = ([abs(getattr(c, n)) for c in own] for n in ("miss_error", "error"))
        within = sum(m <= GOAL for m in misses) / len(own)
        of_misses = [f"{100 * x:.3f}" for x in (fmean(misses), _ninth(misses), max(misses))]
        of_bytes = [f"{100 * x:.2f}" for x in (fmean(sizes), median(sizes), _ninth(sizes), max(sizes))]
        rows.append((name, str(len(own)), *of_misses, f"{within:.0%}", *of_bytes))
    head = (what, "cases", "misses: mean", "9 of 10 below", "greatest", "within 0.4", "bytes: mean", "median")
    return markdown((*head, "9 of 10 below", "greatest"), rows, numeric=range(1, 10))


def _ninth(sizes: Sequence[float]) -> float:
    """What nine of ten are not above."""
    return sorted(sizes)[min(len(sizes) - 1, int(0.9 * len(sizes)))]


def _worst(cases: Sequence[Case]) -> str:
    worst: dict[str, Case] = {}
    for c in cases:
        if c.kernel not in worst or abs(c.miss_error) > abs(worst[c.kernel].miss_error):
            worst[c.kernel] = c
    return _listed(sorted(worst.values(), key=lambda c: -abs(c.miss_error))[:20])


def draw_errors(cases: Sequence[Case], path: Path) -> None:
    """The share of cases whose error is at most what the axis says: what is flagged, and PolyBench, apart."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from roofdsl.plot.look import INK, OKABE_ITO

    with mpl.rc_context({"svg.hashsalt": "roofdsl", "font.family": "DejaVu Sans", "svg.fonttype": "path"}):
        figure = Figure(figsize=(8.0, 4.8), dpi=100)
        axes = figure.add_axes((0.11, 0.12, 0.86, 0.78))
        for k, (published, flagged) in enumerate(product((True, False), repeat=2)):
            part = [c for c in cases if c.is_published == published and c.flagged == flagged]
            where = "PolyBench's sizes" if published else "around the cache"
            name = f"{where}, {'flagged' if flagged else 'not flagged'} ({len(part)})"
            _curve(axes, part, OKABE_ITO[k // 2], (0, (4, 2)) if flagged else "-", name)
        axes.axvline(100 * GOAL, color=INK, linewidth=1)
        axes.text(100 * GOAL * 1.08, 0.86, "goal: 0.4 % on average", fontsize=9, color=INK)
        axes.set_xscale("symlog", linthresh=0.01, linscale=0.4)
        axes.set_xlim(0, 100)
        axes.set_ylim(0, 1.02)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter(lambda v, _: f"{100 * v:.0f} %")
        axes.set_xlabel("Error of the misses at most, % of the accesses")
        axes.set_ylabel("Share of the cases")
        axes.set_title("Set-associative caches against the fully associative model", loc="left", color=INK)
        axes.grid(True, color="#E4E4E4", linewidth=0.7)
        axes.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(0.02, 0.62))
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _curve(axes: Any, cases: Sequence[Case], color: str, style: Any, label: str) -> None:
    sizes = sorted(100 * abs(c.miss_error) for c in cases)
    if sizes:
        shares = [(k + 1) / len(sizes) for k in range(len(sizes))]
        axes.step([0, *sizes, 1000], [0, *shares, 1], where="post", color=color, linestyle=style, label=label)
