"""What a set-associative LRU cache moves beside the model's fully associative one: kernels, sizes, caches."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

from benchmarks.kernels import MODELS, ROOT
from benchmarks.measure import markdown
from benchmarks.sizes import FIXED, STEP, accesses_at, is_legal, sizes_for
from roofdsl.analysis.at import traffic_at
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply
from roofdsl.simulate.hierarchy import simulate
from roofdsl.simulate.levels import CacheLevel

LINE = 64
CACHES = (
    CacheLevel("32 KiB, 8 ways", 32 << 10, LINE, 8),
    CacheLevel("48 KiB, 12 ways", 48 << 10, LINE, 12),
    CacheLevel("1 MiB, 16 ways", 1 << 20, LINE, 16),
)
"""First caches of recent processors, and a second cache."""

SHARES = (0.5, 2.0, 8.0)
"""Data of a kernel over the size of the cache."""

KINDS = ("multiples of 16", "odd", "powers of 2")
GOAL = 0.004
"""On average, for a first cache of 8 ways or more."""

MOST_ACCESSES = 5_000_000


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

    @property
    def miss_error(self) -> float:
        """The same of misses, in parts of the accesses."""
        return (self.simulated_misses - self.model_misses) / self.accesses if self.accesses else 0.0

    @property
    def error(self) -> float:
        """What the model says too little, in parts of the truth; negative where it says too much."""
        return (self.simulated - self.model) / self.simulated if self.simulated else 0.0


def kernels() -> Iterator[Kernel]:
    """PolyBench's and the shipped ones, one of each name, shuffled: a run that ends early has some of all sorts."""
    found = {}
    for folder in (ROOT / "models" / "polybench", MODELS):
        for path in sorted(folder.glob("*.roof")):
            checked = load_file(path)
            found |= {name: checked for name in checked.own_kernels if name not in found}
    names = sorted(found)
    Random(1).shuffle(names)
    return (kernel(found[name], name) for name in names)


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


def compare_caches(seconds: float, only: Sequence[str] = ()) -> tuple[list[Case], dict[str, int]]:
    """(all cases, how many were left out and why); no more of them are begun once `seconds` are over."""
    begun = time.monotonic()
    cases: list[Case] = []
    left: dict[str, int] = {}
    done: set[tuple[object, ...]] = set()
    for k in kernels():
        if only and k.name not in only:
            continue
        if time.monotonic() - begun > seconds:
            left["the time was over (kernels)"] = left.get("the time was over (kernels)", 0) + 1
            continue
        for cache in CACHES:
            try:
                for kind, sizes in variants(k, cache.size_bytes):
                    key = (k.name, cache.name, tuple(sizes.items()))
                    if key in done:
                        continue
                    done.add(key)
                    if time.monotonic() - begun > seconds:
                        left["the time was over"] = left.get("the time was over", 0) + 1
                    else:
                        _one(k, sizes, kind, cache, cases, left)
            except (CommandError, InputError) as error:
                why = str(error).split("\n")[0][:60]
                left[why] = left.get(why, 0) + 1
    return cases, left


def _one(  # noqa: PLR0917
    k: Kernel, sizes: Mapping[str, int], kind: str, cache: CacheLevel, cases: list[Case], left: dict[str, int]
) -> None:
    accesses = accesses_at(k, sizes)
    if accesses > MOST_ACCESSES:
        why = f"more than {MOST_ACCESSES // 10**6} million accesses"
        left[why] = left.get(why, 0) + 1
        return
    model = traffic_at(k, sizes, cache.size_bytes, LINE, "write_allocate")
    real = simulate(apply(k), sizes, [cache])
    misses = ((model.loads_bytes or 0) - real.scalar_load_bytes) // LINE
    numbers = (accesses, model.bytes, real.bytes(0), misses, real.levels[0].loads)
    cases.append(Case(k.name, tuple(sizes.items()), kind, cache.name, *numbers))


# ---- what came out ----


def error_tables(cases: Sequence[Case], left: Mapping[str, int]) -> str:
    """Errors by cache, by kind of size and by kernel, in percent of what was simulated."""
    kernels_seen = len({c.kernel for c in cases})
    lines = [
        f"{len(cases):,} cases: {kernels_seen} kernels, data of {', '.join(f'{s:g}' for s in SHARES)} times the cache, "
        f"{len(CACHES)} caches, lines of {LINE} B, write-back and write-allocate. The model is a fully associative LRU "
        "cache; the simulation has sets chosen by the address, LRU in each. Errors are simulated less model: above 0 "
        "the sets cost traffic that the model does not have. They are given in two ways: bytes over bytes simulated, "
        "and misses over accesses (how far off the miss ratio is).",
        _verdict([c for c in cases if c.cache == CACHES[0].name]),
        "Errors of bytes, in percent:",
        _table([(c.name, [x for x in cases if x.cache == c.name]) for c in CACHES], "cache"),
        _table(
            [(f"{c.name}, {k}", [x for x in cases if (x.cache, x.kind) == (c.name, k)]) for c in CACHES for k in KINDS],
            "cache, sizes",
        ),
        "Worst of each kernel:",
        _worst(cases),
    ]
    if left:
        counts = sorted(left.items(), key=lambda t: -t[1])
        lines += ["Left out: " + "; ".join(f"{n} x {why}" for why, n in counts) + "."]
    return "\n\n".join(lines)


def _verdict(first: Sequence[Case]) -> str:
    """Whether the goal is reached, in both ways."""
    if not first:
        return f"No case for {CACHES[0].name}."
    errors = [abs(c.error) for c in first]
    misses, mean = fmean(abs(c.miss_error) for c in first), fmean(errors)
    within = sum(e <= GOAL for e in errors) / len(errors)

    def word(error: float) -> str:
        return "reached" if error <= GOAL else "not reached"

    return (
        f"Goal: {GOAL:.1%} on average for {CACHES[0].name}. Of misses over accesses it is **{word(misses)}**: the mean "
        f"is {misses:.2%}. Of bytes it is **{word(mean)}**: the mean is {mean:.2%}, the median {median(errors):.2%}, "
        f"and {within:.0%} of the cases are within {GOAL:.1%}. Few cases make the mean: data about as large as the "
        "cache, where a fully associative LRU cache misses at every access or at none and sets in part, and strides of "
        "a power of two, which fill few sets."
    )


def _table(groups: Sequence[tuple[str, Sequence[Case]]], what: str) -> str:
    rows = []
    for name, own in groups:
        if not own:
            continue
        sizes = sorted(abs(c.error) for c in own)
        within = sum(s <= GOAL for s in sizes) / len(sizes)
        ninth = sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))]
        numbers = [f"{100 * x:.2f}" for x in (fmean(sizes), median(sizes), ninth, sizes[-1])]
        signed = f"{100 * fmean(c.error for c in own):+.2f}"
        misses = f"{100 * fmean(abs(c.miss_error) for c in own):.3f}"
        rows.append((name, str(len(own)), *numbers, signed, f"{within:.0%}", misses))
    head = (what, "cases", "mean of sizes", "median", "9 of 10 below", "greatest", "mean with sign", "within 0.4")
    return markdown((*head, "misses over accesses, mean"), rows, numeric=range(1, 9))


def _worst(cases: Sequence[Case]) -> str:
    worst: dict[str, Case] = {}
    for c in cases:
        if c.kernel not in worst or abs(c.error) > abs(worst[c.kernel].error):
            worst[c.kernel] = c
    rows = []
    for c in sorted(worst.values(), key=lambda c: -abs(c.error))[:25]:
        sizes = ", ".join(f"{n}={v}" for n, v in c.sizes)
        mean = fmean(abs(x.error) for x in cases if x.kernel == c.kernel)
        rows.append((c.kernel, sizes, c.kind, c.cache, f"{100 * c.error:+.2f}", f"{100 * mean:.2f}"))
    head = ("kernel", "sizes", "kind", "cache", "error", "mean of the kernel")
    return markdown(head, rows, numeric=(4, 5))


def draw_errors(cases: Sequence[Case], path: Path) -> None:
    """The share of cases whose error is at most what the axis says: a curve for each cache, powers of 2 apart."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from roofdsl.plot.board import INK, OKABE_ITO

    with mpl.rc_context({"svg.hashsalt": "roofdsl", "font.family": "DejaVu Sans", "svg.fonttype": "path"}):
        figure = Figure(figsize=(8.0, 4.8), dpi=100)
        axes = figure.add_axes((0.11, 0.12, 0.86, 0.78))
        for k, cache in enumerate(CACHES):
            own = [c for c in cases if c.cache == cache.name]
            for powers, style in ((False, "-"), (True, (0, (4, 2)))):
                part = [c for c in own if (c.kind == "powers of 2") == powers]
                _curve(axes, part, OKABE_ITO[k % 6], style, cache.name)
        axes.axvline(100 * GOAL, color=INK, linewidth=1)
        axes.text(100 * GOAL * 1.08, 0.03, "0.4 %", fontsize=9, color=INK)
        axes.set_xscale("symlog", linthresh=0.1, linscale=0.4)
        axes.set_xlim(0, 300)
        axes.set_ylim(0, 1.02)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter(lambda v, _: f"{100 * v:.0f} %")
        axes.set_xlabel("Error of the model at most, % of the traffic simulated")
        axes.set_ylabel("Share of the cases")
        axes.set_title("Set-associative caches against the fully associative model", loc="left", color=INK)
        axes.grid(True, color="#E4E4E4", linewidth=0.7)
        axes.legend(frameon=False, fontsize=8.5, loc="lower right")
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _curve(axes: Any, cases: Sequence[Case], color: str, style: Any, label: str) -> None:
    sizes = sorted(100 * abs(c.error) for c in cases)
    if sizes:
        shares = [(k + 1) / len(sizes) for k in range(len(sizes))]
        name = f"{label}, {'powers of 2' if style != '-' else 'other sizes'}"
        axes.step([0, *sizes, 1000], [0, *shares, 1], where="post", color=color, linestyle=style, label=name)
