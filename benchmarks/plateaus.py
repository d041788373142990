"""Plateaus of random kernels whose Q depends on remainders of sizes, against a simulation of every access.

Each kernel's result is one line of JSON: its seed, what was found, and the figures of `Compared` where it agrees.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from math import inf
from pathlib import Path
from typing import Any

from benchmarks.measure import markdown
from benchmarks.report import REPORTS, machine

Result = Mapping[str, Any]
"""seed, found (AGREES, DECLINED or DIFFERS), seconds of processor time, this process's; depth, sizes (their names);
declined, differs: why; or the fields of `Compared`.
"""

AGREES, DECLINED, DIFFERS = "agrees", "declined", "differs"

FIGURES = {
    "sizes": "sizes simulated",
    "rows": "plateaus there",
    "caches": "caches compared in leading terms",
    "exact": "caches compared to the byte",
    "brute": "caches at which the simulation was compared with an LRU stack kept access by access",
}


def search(count: int, first: int, seconds: float = inf, keep: Path | None = None) -> list[Result]:
    """Random kernels from seed `first` on, until `count` are compared, or until `seconds` are over; those that are
    declined do not count.

    keep: each result is added to this file at once; what agrees or is declined in it is not tried again.
    """
    begun = time.monotonic()
    kept = {r["seed"]: r for r in _read(keep) if r["found"] != DIFFERS}
    found: list[Result] = []
    compared, seed = 0, first
    while compared < count and time.monotonic() - begun <= seconds:
        result = kept.get(seed) or _compare(seed)
        if keep is not None and seed not in kept:
            with keep.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
        if result["found"] == DIFFERS:
            print(f"seed {seed}: {result['why']}", flush=True)
        found.append(result)
        compared += result["found"] != DECLINED
        seed += 1
    return found


def _read(keep: Path | None) -> list[Result]:
    if keep is None or not keep.exists():
        return []
    return [json.loads(line) for line in keep.read_text(encoding="utf-8").splitlines()]


def _compare(seed: int) -> Result:
    from roofdsl.counts.closed_forms import NoClosedForm
    from tests.oracle.residue_kernels import check_plateaus, residue_kernel

    case, begun = residue_kernel(seed), time.process_time()
    what: dict[str, Any]
    try:
        what = {"found": AGREES, **asdict(check_plateaus(case))}
    except NoClosedForm as error:
        what = {"found": DECLINED, "why": str(error)}
    except Exception as error:  # whatever it raises, no plateaus are told
        what = {"found": DIFFERS, "why": f"{type(error).__name__}: {error}".split("\n", maxsplit=1)[0]}
    return {
        "seed": seed, "depth": case.depth, "names": len(case.sizes), **what,
        "seconds": round(time.process_time() - begun, 3),
    }  # fmt: skip


def text_of(results: Sequence[Result], load: tuple[float, float]) -> str:
    """The report. load: the load average before and after."""
    agree = [r for r in results if r["found"] == AGREES]
    declined = [r for r in results if r["found"] == DECLINED]
    wrong = [r for r in results if r["found"] == DIFFERS]
    rows = [
        ("kernels compared", len(agree) + len(wrong)),
        ("of these, with one loop around the statements", _count(agree, "depth", 1)),
        ("of these, with two", _count(agree, "depth", 2)),
        ("of these, with two sizes, n and m", _count(agree, "names", 2)),
        ("of these, with plateaus that depend on remainders of sizes", sum(r["periods"] for r in agree)),
        ("of these, with more residue classes than were simulated", sum(r["sampled"] for r in agree)),
        *((name, sum(r[field] for r in agree)) for field, name in FIGURES.items()),
        ("mismatches", len(wrong)),
        ("kernels declined, not counted above", len(declined)),
    ]
    reasons = Counter(_reason(r["why"]) for r in declined).most_common()
    seconds = sum(r["seconds"] for r in results)
    lines = [
        "# Plateaus by residue class against simulation",
        f"Random kernels with stepped, mirrored, divided and modulo subscripts, seeds {_ranges(results)}. Each is "
        "simulated access by access at sizes in the hundreds, one of every residue class of every period that occurs "
        f"(24 at most). Processor time: {seconds:,.0f} s, child processes left out.",
        markdown(("what", "how many"), [(name, f"{value:,}") for name, value in rows]),
        "Kernels are declined where no plateaus in closed form are found within 200,000 integer-set operations for "
        "each quantity, a small part of what `derive` takes:",
        markdown(("why declined", "kernels"), [(why, f"{many:,}") for why, many in reasons]),
        *(f"- seed {r['seed']}: {r['why']}" for r in wrong),
        machine(load),
    ]
    return "\n\n".join(lines) + "\n"


def _ranges(results: Sequence[Result]) -> str:
    """The seeds that were tried, declined ones too, as ranges."""
    seeds = sorted({r["seed"] for r in results})
    starts = [s for k, s in enumerate(seeds) if k == 0 or seeds[k - 1] != s - 1]
    ends = [s for k, s in enumerate(seeds) if k == len(seeds) - 1 or seeds[k + 1] != s + 1]
    return ", ".join(f"{a:,} to {b:,}" for a, b in zip(starts, ends, strict=True))


def _count(results: Sequence[Result], field: str, value: int) -> int:
    return sum(r[field] == value for r in results)


def _reason(why: str) -> str:
    """Without the name of the kernel, and what to do instead."""
    return re.sub(r" of kernel residues_\d+", "", why).split(";")[0]


def write(results: Sequence[Result], before: float) -> Path:
    """The report, in the folder of reports. before: the load average before the search. Returns its path."""
    path = REPORTS / f"plateaus-{date.today().isoformat()}.md"
    path.write_text(text_of(results, (before, os.getloadavg()[0])), encoding="utf-8")
    return path
