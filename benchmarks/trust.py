"""How often the model was wrong: against brute force, set-associative caches, this processor, and stored GPU results.

Nothing is left out. What was not tried, for want of time or because it is too long, is said with its number.
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from io import StringIO
from pathlib import Path
from random import Random

from benchmarks.associativity import Case, compare_caches, compare_published, draw_errors, error_tables
from benchmarks.kernels import ROOT, shipped
from benchmarks.measure import markdown
from benchmarks.report import REPORTS, machine
from roofdsl.validate.compare import DEFAULTS, distribution

RESULTS = ROOT / "models" / "results"
"""Folders with measurements of other computers, as `benchmarks/gpu/run.sh` writes them."""


# ---- brute force ----


@dataclass(frozen=True)
class BruteForce:
    """Random kernels compared with enumeration and a brute-force LRU. questions: (cache, line) pairs, each in three
    conventions; by_sets: those the integer sets answered, the others were simulated. mismatches: seed and what."""

    kernels: int
    first: int
    questions: int
    by_sets: int
    forms: int
    mismatches: tuple[tuple[int, str], ...]
    seconds: float


def against_brute_force(count: int, first: int, seconds: float) -> BruteForce:
    """Up to `count` random kernels from seed `first` on, until `seconds` are over."""
    from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
    from tests.counts.exact import CONVENTIONS, OPERATIONS, cache_choices, check_form, check_numbers, check_work
    from tests.oracle import lru
    from tests.oracle.loading import kernel_of
    from tests.oracle.random_kernels import random_kernel

    begun = time.monotonic()
    done = questions = by_sets = forms = 0
    wrong: list[tuple[int, str]] = []
    for seed in range(first, first + count):
        if time.monotonic() - begun > seconds:
            break
        case = random_kernel(seed)
        kernel = kernel_of(case.text)
        rng = Random(seed)
        size = rng.choice(case.sizes)
        done += 1
        try:
            check_work(kernel, size)
            for cache, line in cache_choices(kernel, size, rng):
                questions += 1
                by_sets += check_numbers(kernel, size, cache, line)
            closed = ClosedForms(kernel, {}, operations=OPERATIONS)
            for convention in CONVENTIONS:
                form = closed.compulsory(convention)
                for at in case.sizes:
                    check_form(form, kernel, at, lru.residencies(kernel, at, None, None), convention)
                    forms += 1
        except NoClosedForm:
            continue
        except AssertionError as error:
            wrong.append((seed, str(error).split("\n")[0]))
    return BruteForce(done, first, questions, by_sets, forms, tuple(wrong), time.monotonic() - begun)


def brute_force_section(found: BruteForce) -> str:
    last = found.first + found.kernels - 1
    lines = [
        "## Against brute force",
        f"{found.kernels:,} random kernels (seeds {found.first:,} to {last:,}) at random sizes, in {found.seconds:.0f} "
        "s: W by executing every operation; footprint, loads and stores by a brute-force LRU over every access, in "
        "elements and in lines, from the smallest cache to one that holds all.",
        markdown(
            ("compared", "how many"),
            [
                ("kernels", f"{found.kernels:,}"),
                ("caches, each in three conventions", f"{found.questions:,}"),
                ("of these by integer sets too, the others by simulation alone", f"{found.by_sets:,}"),
                ("closed forms of compulsory traffic at a size", f"{found.forms:,}"),
                ("**mismatches**", f"**{len(found.mismatches)}**"),
            ],
            numeric=(1,),
        ),
    ]
    if found.mismatches:
        lines.append(markdown(("seed", "what"), [(str(s), w) for s, w in found.mismatches]))
    return "\n\n".join(lines)


# ---- measurement ----


@dataclass(frozen=True)
class StoredRun:
    """One row of the table of runs in a validation report; `ratio` is measured performance over the bound's."""

    kernel: str
    size: str
    data_in: str
    bound: str
    ratio: float


_BOUNDS = ("bound by", "bound/measured")
_OLDER = ("bound", "ratio")
"""The same columns in reports before 2026-11-23."""


def stored_runs(report: Path) -> tuple[StoredRun, ...]:
    """The runs in a report of `python -m benchmarks validation` or `benchmarks/gpu/run.sh`, predictions as made then.

    Raises ValueError where it has no such table.
    """
    head: list[str] = []
    found = []
    for line in report.read_text(encoding="utf-8").splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")] if line.startswith("|") else []
        if {"kernel", "size", "in", *_BOUNDS} <= set(cells):
            head = cells
        elif {"kernel", "size", "in", *_OLDER} <= set(cells):
            head = [dict(zip(_OLDER, _BOUNDS, strict=True)).get(cell, cell) for cell in cells]
        elif not cells:
            head = []
        elif head and not set(line) <= set("|-: "):
            row = dict(zip(head, cells, strict=True))
            found.append(
                StoredRun(row["kernel"], row["size"], row["in"], row["bound by"], float(row["bound/measured"]))
            )
    if not found:
        raise ValueError(f"{report} has no table of runs")
    return tuple(found)


def measured_section(report: Path, title: str) -> str:
    """Ratios by the kernel's file, the bound and where the data are; everything above the roof."""
    every = shipped()
    runs = stored_runs(report)
    groups: dict[str, list[float]] = {}
    for run in runs:
        source = every.get(run.kernel)
        own = f"{Path(source.source.name).stem}.roof" if source is not None else "no longer shipped"
        for name in ("all", f"bound by {run.bound}", f"data in {run.data_in}", own):
            groups.setdefault(name, []).append(run.ratio)
    rows = []
    for name in sorted(groups, key=lambda n: (n != "all", n.endswith(".roof"), n)):
        d = distribution(groups[name])
        above = sum(r > 1 + DEFAULTS.margin for r in groups[name])
        numbers = (d.least, d.quarter, d.median, d.three_quarters, d.greatest)
        rows.append((name, str(d.count), *(f"{x:.2f}" for x in numbers), str(above)))
    lines = [
        f"## {title}",
        f"{len(runs)} runs, from `{report.relative_to(ROOT)}`, which says on what, when and how. Measured over "
        "predicted performance: 1 reaches the model, which is an upper bound; above 1.05 contradicts it.",
        markdown(("", "runs", "least", "1/4", "median", "3/4", "greatest", "above 1.05"), rows, numeric=range(1, 8)),
    ]
    above_roof = sorted((r for r in runs if r.ratio > 1 + DEFAULTS.margin), key=lambda r: -r.ratio)
    if above_roof:
        shown = [(r.kernel, r.size, r.data_in, r.bound, f"{r.ratio:.2f}") for r in above_roof]
        lines += ["Above the roof:", markdown(("kernel", "size", "data in", "bound", "ratio"), shown, numeric=(4,))]
    return "\n\n".join(lines)


def latest_validation() -> Path | None:
    """The report of the last validation run."""
    return max(REPORTS.glob("validation-*/README.md"), default=None)


def gpu_sections() -> list[str]:
    """One section for each folder of stored results, or one that says there are none."""
    reports = sorted(RESULTS.glob("*/README.md"))
    if not reports:
        return [
            "## Against GPUs",
            "No measurements of a GPU are stored under `models/results/`, so nothing is said of GPUs. "
            "`benchmarks/gpu/run.sh` makes them where there is one.",
        ]
    return [measured_section(r, f"Against measurements: {r.parent.name}") for r in reports]


# ---- all of it ----


def write(count: int, first: int, seconds: float, load: float, folder: Path = REPORTS) -> Path:
    """Runs all parts and writes `folder`/trust-YYYY-MM-DD/: report, figure and data.

    seconds: of brute force, of caches at PolyBench's sizes, and of caches around their size, each, after which no more
    kernels are begun; what is left out is counted. load: the load average before.
    """
    brute = against_brute_force(count, first, seconds)
    published, left = compare_published(seconds)
    around, left_around = compare_caches(seconds)
    return write_found(brute, [*published, *around], left | left_around, (load, os.getloadavg()[0]), folder)


def write_found(
    brute: BruteForce, cases: Sequence[Case], left: Mapping[str, int], load: tuple[float, float], folder: Path = REPORTS
) -> Path:
    """The report of what was found, beside what is stored of measurements."""
    today = date.today().isoformat()
    own = folder / f"trust-{today}"
    own.mkdir(parents=True, exist_ok=True)
    (own / "associativity.csv").write_text(cases_csv(cases), encoding="utf-8")
    draw_errors(cases, own / "associativity.svg")
    parts = [
        f"# How far the model can be trusted, {today}",
        machine(load),
        brute_force_section(brute),
        "## Against set-associative caches",
        "![Share of the cases by the size of their error](associativity.svg)",
        error_tables(cases, left),
    ]
    validation = latest_validation()
    if validation is None:
        parts += ["## Against this processor", "No validation run is stored under `benchmarks/reports/`."]
    else:
        parts.append(measured_section(validation, "Against this processor"))
    path = own / "README.md"
    path.write_text("\n\n".join([*parts, *gpu_sections()]) + "\n", encoding="utf-8")
    return path


def cases_csv(cases: Sequence[Case]) -> str:
    """Every case, one line each."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    counts = ("accesses", "model_bytes", "simulated_bytes", "model_misses", "simulated_misses")
    writer.writerow(("kernel", "sizes", "kind", "cache", *counts, "flagged"))
    for c in cases:
        sizes = " ".join(f"{n}={v}" for n, v in c.sizes)
        numbers = (c.accesses, c.model, c.simulated, c.model_misses, c.simulated_misses)
        writer.writerow((c.kernel, sizes, c.kind, c.cache, *numbers, int(c.flagged)))
    return out.getvalue()
