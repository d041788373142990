"""In-core time: the innermost loops of the shipped kernels in the nearest cache, measured and predicted.

Each kernel's data fill at most a third of the first cache. Its native function is called again and again without Python
between (`native_calls`), and compared with our in-core time, llvm-mca's and OSACA's, whichever are installed. Measured
and predicted are in cycles, so that the clock's frequency does not count. No number here is fitted to these kernels:
the core is characterized by microkernels in the same run.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from benchmarks.kernels import fresh, shipped
from benchmarks.measure import markdown
from benchmarks.native_calls import NativeCall
from benchmarks.sizes import is_legal, sizes_at, sizes_for
from roofdsl.counts.traffic_at import footprint_at
from roofdsl.incore.compiled import native_code, walked_through
from roofdsl.incore.rates import Rates
from roofdsl.incore.result import NoInCore
from roofdsl.incore.steps_from_peak import steps_of
from roofdsl.incore.tools import TOOLS, loops_cycles
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import numbers
from roofdsl.measure.core_facts import core_facts
from roofdsl.measure.instruction_lines import core_lines
from roofdsl.measure.timing import pinned, usable_cores

DATA_BYTES = 16 << 10
LONGEST_CYCLES = 50_000_000
SERIES = 3
RUNS = 20


class Row(NamedTuple):
    """Cycles of one launch; `tools` by name, None where a tool fails."""

    kernel: str
    sizes: str
    measured: float
    ours: float
    tools: dict[str, float | None]
    cause: str


class Refused(NamedTuple):
    kernel: str
    why: str


def sizes_of(kernel: Kernel) -> dict[str, int]:
    """Sizes whose data fit into DATA_BYTES: of kernels on many dimensions, extents below the usual 16.

    Raises CommandError where there are none.
    """
    try:
        found = sizes_for(kernel, DATA_BYTES)
    except CommandError:
        found = None
    own = {p.name for p in kernel.parameters if sizes_at(kernel, 1)[p.name] != sizes_at(kernel, 2)[p.name]}
    for extent in (8, 4, 2):
        if found is None:
            tried = sizes_at(kernel, 1) | dict.fromkeys(own, extent)
            if is_legal(kernel, tried) and footprint_at(kernel, tried) <= 2 * DATA_BYTES:
                found = tried
    if found is None:
        raise CommandError("no sizes whose data fit into the first cache")
    return found


def compare(kernel: Kernel, rates: Rates, paths: dict[str, str]) -> Row:
    """One kernel. Raises NoInCore where its code is not understood, CommandError for unusable sizes."""
    values = numbers(kernel, sizes_of(kernel))
    native = native_code(kernel, "numba")
    walked = walked_through(native, kernel, values, rates)
    if walked.cycles > LONGEST_CYCLES:
        raise NoInCore("a launch takes too long")
    tools: dict[str, float | None] = {}
    for tool, path in paths.items():
        try:
            tools[tool] = loops_cycles(tool, path, walked, native.text)
        except NoInCore:
            tools[tool] = None
    call = NativeCall(kernel, values)
    measured = min(call.cycles(RUNS, walked.cycles) for _ in range(SERIES))
    causes = steps_of(walked, rates, 1.0)
    sizes = ", ".join(f"{name} = {value}" for name, value in values.items())
    return Row(kernel.name, sizes, measured, walked.cycles, tools, causes[-1].cause)


def run(names: Sequence[str] = (), seconds: float = float("inf"), machine: Path | None = None) -> str:
    """All shipped kernels, or those named, as Markdown; the facts of the core go to the file `machine`."""
    begun = time.monotonic()
    rows: list[Row] = []
    refused: list[Refused] = []
    paths = {tool: path for tool in TOOLS if (path := shutil.which(tool)) is not None}
    with pinned(usable_cores()[:1]):
        facts = core_facts(False)
        if facts is None:
            return "In-core time needs x86-64 with AVX2."
        if machine is not None:
            machine.write_text("\n".join(core_lines(facts)) + "\n", encoding="utf-8")
        rates = Rates("this core", facts.core, facts.instructions)
        for name, checked in shipped().items():
            if (names and name not in names) or time.monotonic() - begun > seconds:
                continue
            try:
                rows.append(compare(fresh(checked, name), rates, paths))
            except (NoInCore, CommandError) as error:
                refused.append(Refused(name, str(error)))
    return section(rows, refused, tuple(paths))


def section(rows: Sequence[Row], refused: Sequence[Refused], tools: Sequence[str]) -> str:
    """The comparison as Markdown: a row a kernel, then the errors."""
    heads = ("kernel", "sizes", "measured", "ours", "error", *(h for t in tools for h in (t, "error")), "last cause")
    lines = []
    for row in rows:
        others = [text for tool in tools for text in _beside(row.tools.get(tool), row.measured)]
        error = f"{row.ours / row.measured - 1:+.0%}"
        lines.append((row.kernel, row.sizes, f"{row.measured:,.0f}", f"{row.ours:,.0f}", error, *others, row.cause))
    told = [f"## In-core time\n\n{markdown(heads, lines)}" if lines else "## In-core time"]
    errors = {"ours": [abs(r.ours / r.measured - 1) for r in rows]}
    for tool in tools:
        errors[tool] = [abs(v / r.measured - 1) for r in rows if (v := r.tools.get(tool)) is not None]
    for name, found in errors.items():
        if found:
            within = f"{sum(e <= 0.25 for e in found)} of {len(found)} within 25 %"
            told.append(f"{name}: mean error {mean(found):.1%}, median {median(found):.1%}, {within}")
    told += [f"{r.kernel}: no in-core time, because {r.why}" for r in refused]
    return "\n\n".join(told)


def _beside(cycles: float | None, measured: float) -> tuple[str, str]:
    return ("", "") if cycles is None else (f"{cycles:,.0f}", f"{cycles / measured - 1:+.0%}")
