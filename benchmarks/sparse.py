"""Sparse kernels: the expected time of launches with data in the caches, and their measured time, on one core.

The table is that of docs/sparse.md. The machine is a characterization of this computer, made now or read from a file;
no number of it is fitted to these launches. Others that use the computer are told, since they lengthen what is
measured: the shortest of several launches counts, in the calmest of a few series.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import inf
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.kernels import MODELS
from benchmarks.measure import markdown
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.machine.processor import processor_name
from roofdsl.matrices.attach import with_data
from roofdsl.measure.characterize_cpu import characterize_cpu
from roofdsl.measure.cpu import CpuOptions, measure_cpu
from roofdsl.measure.machine_file import to_machine
from roofdsl.measure.other_load import Others
from roofdsl.measure.timing import Plan
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.validate.run import clock_here

MATRICES = (
    ("spmv_csr", "rowptr,col", "banded:n=2000,w=10"),
    ("spmv_csr", "rowptr,col", "banded:n=100000,w=4"),
    ("spmv_csr", "rowptr,col", "random:n=2000,row=8,seed=1"),
    ("spmv_csr", "rowptr,col", "random:n=20000,row=16,seed=1"),
    ("spmv_csr", "rowptr,col", "random:n=100000,row=8,seed=1"),
    ("spmv_csr", "rowptr,col", "random:n=1000000,row=8,seed=1"),
    ("spmv_csr", "rowptr,col", "powerlaw:n=20000,row=8,exponent=1.2,seed=1"),
    ("spmv_csr", "rowptr,col", "powerlaw:n=1000000,row=8,exponent=1,seed=1"),
    ("spmv_ell", "col", "random:n=100000,row=8,seed=1"),
    ("spmv_sell", "chunk,col", "random:n=100000,row=8,seed=1+sigma=128"),
    ("spmv_coo", "row,col", "random:n=100000,row=8,seed=1"),
    ("spmv_coo", "row,col", "random:n=1000000,row=8,seed=1"),
)
LISTS = (
    ("histogram", "bin", "random:n=256,count=1000000,seed=1"),
    ("histogram", "bin", "powerlaw:n=256,count=1000000,exponent=2,seed=1"),
    ("histogram", "bin", "random:n=1000000,count=1000000,seed=1"),
    ("embedding_lookup", "token", "powerlaw:n=32000,count=4096,exponent=1.1,seed=1"),
)
SERIES, CALM = 3, 0.1
"""Series of launches at most, and the cores that others may use in a calm one."""

PLAN = Plan(repeats=9, budget_s=2.0)


class Row(NamedTuple):
    """Seconds of one launch: the shortest measured, expected and of the bound. others: the cores that others used."""

    kernel: str
    data: str
    measured: float
    expected: float
    bound: float
    cause: str
    others: float

    @property
    def ratio(self) -> float:
        return self.measured / self.expected

    @property
    def distance(self) -> float:
        """From the expected time, as a share of it."""
        return abs(self.ratio - 1)


def run(machine: Path | None = None, names: Sequence[str] = (), seconds: float = inf) -> str:
    """All launches, or those of the kernels `names`, as Markdown; after `seconds` no more are begun.

    machine: a characterization of this computer; None makes one. Raises CommandError for one of another processor.
    """
    begun, here = time.monotonic(), _machine(machine)
    rows: list[Row] = []
    left_out = []
    for name, arrays, source in (*MATRICES, *LISTS):
        if names and name not in names:
            continue
        if time.monotonic() - begun > seconds:
            left_out.append(f"`{name}` with `{source}`: the time limit was reached before")
            continue
        rows.append(compare(here, name, arrays, source))
        print(f"{name} {source}: measured/expected {rows[-1].ratio:.2f}", flush=True)
    return section(here, rows, left_out)


def _machine(path: Path | None) -> Machine:
    if path is None:
        return to_machine(characterize_cpu(False, 1))
    found = load_machine(str(path))
    if found.processor != processor_name():
        whose = found.processor or "an unnamed processor"
        raise CommandError(f"`{path}` was measured on {whose}, but this computer has {processor_name()}")
    return found


def compare(machine: Machine, name: str, arrays: str, source: str) -> Row:
    """One launch. Raises CommandError if it has no expected time."""
    own = next(c for c in map(load_file, sorted(MODELS.glob("*.roof"))) if name in c.own_kernels)
    filled, sizes = with_data(kernel(own, name), [f"{arrays}={source}"], {})
    found = predict(filled, sizes, machine, Options(warm=True, code=Code()))
    if found.expected is None:
        raise CommandError(f"{name} with `{source}` has no expected time: {found.no_expected}")
    tries = []
    while len(tries) < SERIES and not any(busy <= CALM for busy, _ in tries):
        others = Others()
        measured = measure_cpu(filled, sizes, CpuOptions(plan=PLAN, clock_hz=clock_here([machine])))
        tries.append((others.cores() or 0.0, min(measured.times_s)))
    shortest = min(time_s for _, time_s in tries)
    causes = [c for c in found.expected.causes if c.share_s > 0]
    return Row(
        name, source, shortest, float(found.expected.expected_s), float(found.bound_s),
        causes[0].cause if causes else "", min(busy for busy, _ in tries),
    )  # fmt: skip


def section(machine: Machine, rows: Sequence[Row], left_out: Sequence[str] = ()) -> str:
    """The comparison as Markdown: a row a launch, then the medians."""
    head = ("kernel", "`--data`", "measured", "expected", "measured / expected", "largest cause above the bound")
    cells = [
        (f"`{r.kernel}`", f"`{r.data}`", _shown(r.measured), _shown(r.expected), f"{r.ratio:.2f}", r.cause)
        for r in rows
    ]  # fmt: skip
    told = [f"## Expected times of sparse kernels on {machine.title or machine.name}"]
    if rows:
        told.append(markdown(head, cells, (2, 3, 4)))
        matrices = [r for r in rows if r.kernel.startswith("spmv")]
        for what, some in (("all launches", rows), ("matrices", matrices)):
            if some:
                middle = median(r.distance for r in some)
                told.append(f"Median distance from the expected time, {len(some)} {what}: {middle:.0%}")
        busy = [r for r in rows if r.others > CALM]
        if busy:
            most = max(r.others for r in busy)
            told.append(f"Others used up to {most:.1f} cores in {len(busy)} launches: measured times may be too long.")
    return "\n\n".join([*told, *left_out])


def _shown(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"
