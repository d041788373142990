"""Misses of PolyBench at LARGE, 64-byte lines, 32 KiB and 1 MiB, beside what Haystack's authors and others published.

Published: tests/reference/polybench_large_misses.json (Haystack's model, exact simulation, hardware counters). Where
ours differ, the kernel is counted again as the others may have seen it, and the report says which way gives their
number (VARIANTS).
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from dataclasses import replace as with_fields
from datetime import date
from math import inf
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.kernels import ROOT
from benchmarks.measure import markdown, show_seconds
from benchmarks.polybench_variants import HAYSTACK, LINE, VARIANTS, variant
from roofdsl.counts.histogram_at import NoAnswer
from roofdsl.counts.traffic_at import access_count
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import Sized
from roofdsl.loops.transform import apply
from roofdsl.machine.find import shipped, standard_sizes
from roofdsl.sets.library import TooHard

LOADED = 1.5  # load average for each core from which a machine counts as busy
CACHES = (32 << 10, 1 << 20)
PUBLISHED = ROOT / "tests" / "reference" / "polybench_large_misses.json"

WAYS = {"simulation": 900.0, "integer sets": 300.0}
"""The ways to the numbers in the order in which they are tried, and the seconds that a kernel gets for each."""

VARIANT_S = 900.0

SETS_OPERATIONS = 200_000_000

NAMES = {"mm2": "2mm", "mm3": "3mm"}


@dataclass(frozen=True)
class Found:
    """What one kernel gave: misses in each of CACHES, by which method; or why there is nothing.

    accesses: of one execution. misses are None where no way came to an end. seconds: of the processor. simulated: the
    share of the accesses that the simulation went through one by one, of the cache where it is larger. variants: misses
    of the kernel as others may have seen it, by the name of the way in VARIANTS.
    """

    name: str
    accesses: int
    misses: tuple[int, ...] | None
    method: str
    seconds: float
    why: str = ""
    simulated: float | None = None
    variants: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def published(name: str) -> str:
    """PolyBench's own name of a shipped kernel."""
    return NAMES.get(name, name.replace("_", "-"))


def load_published() -> dict[str, dict[str, Any]]:
    """The rows of the published table, by PolyBench's names."""
    rows: dict[str, dict[str, Any]] = json.loads(PUBLISHED.read_text(encoding="utf-8"))["rows"]
    return rows


def load_kernel(name: str) -> Kernel:
    """A shipped PolyBench kernel, its directives applied."""
    return apply(kernel(load_file(shipped("polybench")[name]), name))


def by_sets(
    found: Kernel, sizes: Mapping[str, int], caches: Sequence[int] = CACHES, operations: int = SETS_OPERATIONS
) -> tuple[int, ...]:
    """Misses in each cache by integer sets; the reuse of the arrays is found once for all of them.

    Raises NoAnswer and TooHard.
    """
    from roofdsl.sets.access_sets import build
    from roofdsl.sets.count import count_number
    from roofdsl.sets.library import LibraryFailure, limited
    from roofdsl.sets.misses import CannotCount, Fresh, exceeding, residencies
    from roofdsl.sets.previous import NotCertified
    from roofdsl.sets.quasi import Quasi
    from roofdsl.sets.reuse import reuse
    from roofdsl.sets.sizes import NotAffine

    try:
        with limited(f"kernel {found.name}", operations):
            reuses = reuse(build(found, sizes, LINE))
            rules = [exceeding(Quasi.constant(cache), Fresh()) for cache in caches]
            return tuple(
                sum(count_number([residencies(r, rule, stores=False).begun]) for r in reuses) for rule in rules
            )
    except (CannotCount, LibraryFailure, NotCertified, NotAffine) as error:
        raise NoAnswer(str(error)) from error


def by_simulation(found: Kernel, sizes: Mapping[str, int], caches: Sequence[int] = CACHES) -> tuple[int, ...]:
    """Misses in each cache by simulation."""
    return tuple(_simulated(found, sizes, cache)[0] for cache in caches)


def _simulated(found: Kernel, sizes: Mapping[str, int], cache: int) -> tuple[int, float]:
    """(misses in one cache, the share of the accesses that were gone through)."""
    from roofdsl.simulate.lru_traffic import simulate_lru

    traffic = simulate_lru(found, sizes, cache, LINE)
    return sum(a.residencies for a in traffic.arrays), traffic.simulated / max(1, traffic.accesses)


@dataclass(frozen=True)
class _Answer:
    misses: tuple[int, ...]
    simulated: float | None
    seconds: float


def _answer(  # noqa: PLR0917
    way: str, name: str, size: str, seen_as: str, caches: tuple[int, ...], writing: Connection
) -> None:
    os.setpgid(0, 0)  # so that the library's own children can be stopped with it
    sizes = standard_sizes()[name][size]
    found = variant(load_kernel(name), sizes, seen_as)
    begun = sum(os.times()[:4])
    try:
        if way == "integer sets":
            misses, simulated = by_sets(found, sizes, caches), None
        else:
            own = [_simulated(found, sizes, cache) for cache in caches]
            misses, simulated = tuple(m for m, _ in own), max(share for _, share in own)
        writing.send(_Answer(misses, simulated, sum(os.times()[:4]) - begun))
    except (NoAnswer, TooHard) as error:
        writing.send(str(error).split("\n", maxsplit=1)[0])


def _within(way: str, name: str, size: str, seconds: float, seen_as: str = "") -> _Answer | str:
    """What processes of their own answer within `seconds`, one for each simulated cache; else why nothing."""
    context = multiprocessing.get_context("fork")
    running = []
    for caches in [CACHES] if way == "integer sets" else [(cache,) for cache in CACHES]:
        reading, writing = context.Pipe(duplex=False)
        child = context.Process(target=_answer, args=(way, name, size, seen_as, caches, writing))
        child.start()
        writing.close()
        running.append((child, reading))
    answers: list[_Answer] = []
    until = time.monotonic() + seconds
    try:
        for _, reading in running:
            if not reading.poll(max(0.0, until - time.monotonic())):
                return f"more than {seconds:.0f} s"
            answer: _Answer | str = reading.recv()
            if isinstance(answer, str):
                return answer
            answers.append(answer)
    except EOFError:
        return "the process ended without an answer"
    finally:
        for child, _ in running:
            if child.is_alive() and child.pid is not None:
                os.killpg(child.pid, signal.SIGKILL)
            child.join()
    shares = [a.simulated for a in answers if a.simulated is not None]
    misses = tuple(m for a in answers for m in a.misses)
    return _Answer(misses, max(shares, default=None), sum(a.seconds for a in answers))


def measure(name: str, size: str = "large", ways: Mapping[str, float] = WAYS) -> Found:
    """One kernel, by the first of the ways that comes to an end."""
    accesses = access_count(Sized(load_kernel(name), standard_sizes()[name][size]))
    why: list[str] = []
    for way, seconds in ways.items():
        answer = _within(way, name, size, seconds)
        if not isinstance(answer, str):
            return Found(name, accesses, answer.misses, way, answer.seconds, "; ".join(why), answer.simulated)
        why.append(f"{way}: {answer}")
    return Found(name, accesses, None, "none", 0.0, "; ".join(why))


def explain(found: Found, size: str = "large") -> Found:
    """With the variants that are needed to tell where the published numbers come from, and HAYSTACK in any case."""
    if found.misses is None:
        return found
    kernel, sizes = load_kernel(found.name), standard_sizes()[found.name][size]
    wanted = {tuple(row) for row in _published_misses(load_published()[published(found.name)])} - {found.misses}
    variants = dict(found.variants)
    counted = {_tables(variant(kernel, sizes, way), sizes): own for way, own in variants.items()}
    counted[_tables(kernel, sizes)] = found.misses
    for way in VARIANTS:
        met = all(any(_agrees(w, m) for m in (found.misses, *variants.values())) for w in wanted)
        if way in variants or (met and way != HAYSTACK):
            continue
        tables = _tables(variant(kernel, sizes, way), sizes)
        if tables not in counted:
            answer = _within(found.method, found.name, size, VARIANT_S, way)
            if isinstance(answer, str):
                continue
            counted[tables] = answer.misses
        variants[way] = counted[tables]
    return with_fields(found, variants=variants)


def _tables(kernel: Kernel, sizes: Mapping[str, int]) -> Hashable:
    """What the simulation goes through: equal for two kernels, so are their misses."""
    from roofdsl.simulate.compiled_kernel import compile_kernel

    program = compile_kernel(kernel, sizes, LINE)
    places = tuple((a.first, a.per_line, a.elements) for a in program.layouts)
    return program.code, program.terms, program.spans, program.groups, program.references, places


def _published_misses(row: Mapping[str, Any]) -> tuple[tuple[int | None, ...], ...]:
    """(32 KiB, 1 MiB) of Haystack's model and of the simulation, which has the first only."""
    return (row["L1_miss_haystack"], row["L2_miss_haystack"]), (row["L1_miss_FA_LRU_simulated"], None)


def _agrees(theirs: Sequence[int | None], ours: Sequence[int]) -> bool:
    return all(t is None or t == o for t, o in zip(theirs, ours, strict=True))


def _compile() -> None:
    """Have all ways to simulate compiled, and on disk for other processes, before the clock runs."""
    from roofdsl.simulate.compiled_kernel import compile_kernel
    from roofdsl.simulate.lru_engines import ByLines, BySegments

    program = compile_kernel(load_kernel("lu"), standard_sizes()["lu"]["mini"], LINE)
    for until_growth in (None, 0):
        segments = BySegments(program, CACHES[0])
        segments.until_growth = until_growth
        for way in (ByLines(program, CACHES[0], skip=True), segments):
            while not way.done:
                way.continue_for(1 << 20)


def measure_all(
    names: Sequence[str] | None, keep: Path | None = None, seconds: float = inf, tell: bool = False
) -> list[Found]:
    """All kernels, or those named; none is begun after `seconds`, those left are found without an answer.

    keep: a file to which each result is added at once, and read back from.
    """
    known: dict[str, Found] = {}
    if keep is not None and keep.exists():
        for line in keep.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            variants = {way: tuple(m) for way, m in row.get("variants", {}).items()}
            misses = row["misses"] and tuple(row["misses"])
            known[row["name"]] = Found(**{**row, "misses": misses, "variants": variants})
    _compile()
    begun = time.monotonic()
    rows = []
    for name in names or shipped("polybench"):
        if name not in known:
            if time.monotonic() - begun > seconds:
                accesses = access_count(Sized(load_kernel(name), standard_sizes()[name]["large"]))
                rows.append(Found(name, accesses, None, "none", 0.0, "not begun in the time given"))
                continue
            known[name] = explain(measure(name))
            if keep is not None:
                with keep.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(known[name])) + "\n")
        rows.append(known[name])
        if tell:
            print(f"{name:16s} {known[name].method:12s} {known[name].seconds:8.2f} s  {known[name].why}", flush=True)
    return rows


def _whence(theirs: Sequence[int | None], found: Found) -> str:
    """Which way of seeing the kernel gives a published pair; else how far ours is from it."""
    if found.misses is None:
        return ""
    if _agrees(theirs, found.misses):
        return "the same"
    for way in VARIANTS:
        if way in found.variants and _agrees(theirs, found.variants[way]):
            return way
    pairs = zip(found.misses, theirs, strict=True)
    return ", ".join(f"{o - t:+,}" for o, t in pairs if t is not None)


def section(rows: Sequence[Found]) -> str:
    """The part of a report."""
    table = load_published()
    head = (
        "kernel",
        "accesses",
        "misses, 32 KiB",
        "misses, 1 MiB",
        "by",
        "gone through",
        "s",
        "Haystack s",
        "Haystack",
        "simulated",
    )
    cells = []
    for r in rows:
        own = table[published(r.name)]
        model, simulated = _published_misses(own)
        counted = [f"{m:,}" for m in r.misses] if r.misses is not None else ["", ""]
        theirs = [_whence(model, r), _whence(simulated, r)]
        share = "" if r.simulated is None else f"{100 * r.simulated:.2g} %"
        spent = [show_seconds(r.seconds), show_seconds(own["haystack_ms_L1_L2"] / 1000)]
        cells.append((published(r.name), f"{r.accesses:,}", *counted, r.method, share, *spent, *theirs))
    answered = [r for r in rows if r.misses is not None]
    from_simulation = [_whence(_published_misses(table[published(r.name)])[1], r) for r in answered]
    same, first = from_simulation.count("the same"), from_simulation.count("target first")
    from_model = sum(
        HAYSTACK in r.variants and _agrees(_published_misses(table[published(r.name)])[0], r.variants[HAYSTACK])
        for r in answered
    )
    total = sum(r.seconds for r in answered)
    theirs_s = sum(table[published(r.name)]["haystack_ms_L1_L2"] for r in answered) / 1000
    all_theirs = sum(row["haystack_ms_L1_L2"] for row in table.values()) / 1000
    dearest = sorted(answered, key=lambda r: -r.seconds)[:4]
    failed = [f"{published(r.name)} ({r.why})" for r in rows if r.misses is None]
    parts = [
        "## PolyBench at LARGE: misses of 32 KiB and 1 MiB, 64-byte lines",
        f"{len(answered)} of {len(rows)} kernels answered, exactly, in {total:.1f} s of processor time for both "
        f"caches; Haystack's published times for these are {theirs_s:.1f} s, for all 30 {all_theirs:.1f} s, on another "
        f"machine. Most of ours is {', '.join(f'{published(r.name)} ({r.seconds:.1f} s)' for r in dearest)}.",
        "Simulation goes through every access that is not known to repeat an earlier one by another name "
        "(docs/simulate.md); the column says what share of the accesses was gone through, for the cache that needed "
        "more. Integer sets are asked where it does not end.",
        f"The exact simulation published for 32 KiB is met to the miss by {same} kernels as they are, and by "
        f"{first} more once an update reads its target before its right-hand side (`x = x + e` for `x += e`): "
        "the language reads it after (docs/language.md), which matters where a line is about to be evicted. "
        f"Haystack's model is met, for both caches, by {from_model} with `{HAYSTACK}`.",
        "The columns Haystack and simulated say where a published number comes from: `the same` as ours, else the "
        "first of these ways to see the kernel whose count is that number, else ours less theirs. `target first`: as "
        "said. `rows padded`: each row from the start of a line; ours are true addresses. `reads by name`: the reads "
        "of a statement, target first, in the order of their names in Haystack's input as texts, the tenth before the "
        "ninth, which is how its program sorts them. `else always`: the simulation goes through nussinov's else "
        "branch, which is for `j = i + 1`, in every iteration, with the subscripts of that one; its number of "
        "accesses, published as 18,282,245,009, says so too. Scalars are in registers in all of them. The hardware's "
        "counters, in the reference file, include prefetching and associativity, which no model here has.",
        markdown(head, cells, numeric=(1, 2, 3, 5, 6, 7)),
    ]
    if failed:
        parts.append(f"No answer: {'; '.join(failed)}.")
    return "\n\n".join(parts)


def write(
    folder: Path, names: Sequence[str] | None, load: float, keep: Path | None = None, seconds: float = inf
) -> Path:
    """Measures kernels (all where none are named) and writes `folder`/polybench-misses-YYYY-MM-DD.md.

    load: the load average before. keep, seconds: as in `measure_all`.
    """
    from benchmarks.report import machine

    rows = measure_all(names, keep, seconds, tell=True)
    today = date.today().isoformat()
    path = folder / f"polybench-misses-{today}.md"
    after = os.getloadavg()[0]
    parts = [f"# Misses of PolyBench, {today}", machine((load, after))]
    if max(load, after) > LOADED * (os.cpu_count() or 1):
        parts.append(
            "Other programs kept the machine busy meanwhile: the processor's seconds are up to twice a quiet one's."
        )
    parts.append(section(rows))
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path
