"""Every shipped kernel: W and the elements touched equal a count by execution at small sizes."""

from pathlib import Path

import pytest

from roofdsl.checks.deep import require_legal
from roofdsl.counts.traffic_at import footprint_at
from roofdsl.counts.work_at import work_at
from roofdsl.loops.load import load_file
from roofdsl.loops.program_model import program
from roofdsl.machine.find import shipped
from tests.models.execute import execute, inputs
from tests.models.shipped import kernel_names, small

PROGRAMS = [(path, name) for path in shipped("kernels").values() for name in load_file(path).own_programs]


@pytest.mark.spread(2, 60)
@pytest.mark.parametrize("name", kernel_names())
def test_work_and_elements(name: str) -> None:
    kernel, sizes = small(name)
    require_legal(kernel)
    done = execute(kernel, sizes, inputs(kernel, sizes))
    assert work_at(kernel, sizes).total == done.work
    elements = {a.name: a for a in kernel.arrays if not a.is_scalar}
    moved = {a.name: len(done.touched.get(a.name, ())) * a.type.bytes for a in elements.values()}
    scalars = sum(a.type.bytes for a in kernel.arrays if a.is_scalar and a.intent in ("out", "inout"))
    assert footprint_at(kernel, sizes) == sum(moved.values()) + scalars


@pytest.mark.spread(5)
@pytest.mark.parametrize(("path", "name"), PROGRAMS, ids=[name for _, name in PROGRAMS])
def test_programs_run_with_their_defaults(path: Path, name: str) -> None:
    lowered = program(load_file(path), name, {})
    sizes = {p.name: p.default for p in lowered.parameters}
    assert all(v is not None for v in sizes.values())
    for launch in lowered.launches:
        values = {n: e.evaluate({n: v for n, v in sizes.items() if v}) for n, e in launch.arguments}
        assert all(v >= 1 for v in values.values())
        assert all(c.holds(values) for c in launch.kernel.assumptions)
