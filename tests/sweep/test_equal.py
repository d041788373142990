"""A sweep's rows are those of `predict`, number for number: random points of all shipped kernels."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine, shipped_names
from roofdsl.machine.model import Machine
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.sweep.point_block import Variant
from roofdsl.sweep.run import Sweep, sweep
from roofdsl.sweep.single_points import Outcome, Task, row_of
from roofdsl.sweep.table import Table
from tests.models.shipped import kernel_names
from tests.sweep.machines import machine

CEILINGS = Options(ceilings=("slow", "slow memory"))
"""Of the machine `both_ways`."""

SLOW = ("gsrb_branch", "gsrb_stride2")
"""Derived in seconds; they are left to a run with more points."""


def written(name: str) -> Kernel:
    """A shipped kernel as it is written."""
    return kernel(load_file(shipped_names("kernels")[name]), name)


def not_counted(tasks: Sequence[Task]) -> Iterator[Outcome]:
    """A runner that leaves out what has no closed form."""
    return (Outcome(task.index, None, "left out") for task in tasks)


def ranges_of(k: Kernel, rng: random.Random, largest: int) -> dict[str, tuple[int, ...]]:
    """A few values of every parameter: any, multiples of 8, powers of 2."""
    count = {1: 12, 2: 8, 3: 6}.get(len(k.parameters), 4)

    def value() -> int:
        any_, eights, power = rng.randint(1, largest), 8 * rng.randint(1, largest // 8), 2 ** rng.randint(0, 9)
        return rng.choice((any_, eights, power))

    return {p.name: tuple(sorted({value() for _ in range(count)})) for p in k.parameters}


def known_places(table: Table) -> list[int]:
    return [int(k) for k in np.flatnonzero(table.columns["how"] == 0)]


def assert_equal(k: Kernel, table: Table, place: int, on: Machine, options: Options = Options()) -> None:  # noqa: B008
    values: Mapping[str, int] = {p.name: int(table.columns[p.name][place]) for p in k.parameters}
    exact = row_of(predict(k, values, on, options), moves_only="bytes_per_s" in table.names)
    keys = ("machine", "cache_bytes", "how", *values)
    row: dict[str, Any] = {n: v for n, v in table.row(place).items() if n not in keys and v is not None}
    assert row == exact, values


def swept(k: Kernel, on: Machine, ranges: Mapping[str, tuple[int, ...]], options: Options = Options()) -> Sweep:  # noqa: B008
    return sweep([Variant(k, {})], ranges, [on], options, runner=not_counted, most_counted=10**8)


@pytest.mark.spread(2, 40)
@pytest.mark.parametrize("name", sorted(kernel_names()))
def test_without_caches(name: str, request: pytest.FixtureRequest) -> None:
    """Every shipped kernel has closed forms of W and compulsory traffic, at every legal point."""
    count = request.config.getoption("--sweep-points")
    if name in SLOW and count == 1:
        pytest.skip("with --sweep-points 2")
    k = written(name)
    rng = random.Random(name)
    try:
        found = swept(k, machine("bare"), ranges_of(k, rng, 3000))
    except CommandError as error:
        assert "no point of the sweep meets the assumptions" in str(
            error
        )  # of a dozen sizes none is a multiple of another
        return
    places = known_places(found.table)
    assert len(places) == len(found.table)
    for place in rng.sample(places, min(len(places), count)):
        assert_equal(k, found.table, place, machine("bare"))


CACHED = ("gemv", "lstm_add_bias", "triad", "transpose", "trsv", "rms_norm", "dot_bf16", "matmul_blocked")


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("name", "on"), [("gemv", "three"), ("trsv", "three"), *zip(CACHED, cycle(("both_ways", "two_pipes", "three")))]
)
def test_behind_caches(name: str, on: str) -> None:
    """Points whose data fit, and those beyond for which Q(Z) has a closed form."""
    k = written(name)
    rng = random.Random(f"{name} {on}")
    options = CEILINGS if on == "both_ways" else Options()
    ranges = {p.name: tuple(range(8, 8 * 41, 8)) for p in k.parameters}
    if name == "matmul_blocked":
        ranges = {"n": (16, 32, 48, 64), "b": (2, 4, 8, 16)}
    found = swept(k, machine(on), ranges, options)
    places = known_places(found.table)
    assert len(places) >= 4
    for place in rng.sample(places, 2):
        assert_equal(k, found.table, place, machine(on), options)


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("name", "on", "ranges"),
    [
        ("minplus_blocked", "bare", {"n": tuple(range(1, 60)), "b": (1, 2, 3, 4, 6)}),
        ("gemv", "two_pipes", {"n": tuple(range(2000, 4100, 20))}),
        ("jacobi2d", "by_unit", {"n": tuple(range(2000, 4100, 20))}),
        ("matmul", "bare", {"n": (3, 5, 2**18, 7, 2**19, 9, 11)}),
    ],
)
def test_parts_make_no_difference(
    name: str, on: str, ranges: Mapping[str, tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same table however many points are evaluated at a time, those of one tile size together or not."""
    k = written(name)
    whole = swept(k, machine(on), ranges).table
    assert len(known_places(whole)) >= 5
    monkeypatch.setattr("roofdsl.sweep.point_block.CHUNK", 3)
    assert list(swept(k, machine(on), ranges).table.rows()) == list(whole.rows())
    for place in known_places(whole)[1::40]:
        assert_equal(k, whole, place, machine(on))


def test_some_points_beyond_the_cache_are_known() -> None:
    k = written("gemv")
    found = swept(k, machine("three"), {"n": tuple(range(8, 4001, 8))})
    assert found.counted == 0
    assert_equal(k, found.table, 499, machine("three"))


@pytest.mark.parametrize("options", [Options(levels="memory"), Options(levels="memory", warm=True)])
def test_every_launch_of_the_generated_code_counts(options: Options) -> None:
    """On a GPU, a second launch of `dot` adds up the blocks' sums. The forms of a kernel have one launch."""
    dot, v100 = written("dot"), load_machine("v100")
    found = sweep([Variant(dot, {})], {"n": (64, 1000, 10**5)}, [v100], options).table
    for place, n in enumerate((64, 1000, 10**5)):
        assert predict(dot, {"n": n}, v100, options).launches == 2
        assert_equal(dot, found, place, v100, options)


def test_beyond_the_integers_of_floats() -> None:
    """Counts above 2**53, and above 2**63."""
    k = written("matmul")
    found = swept(k, machine("bare"), {"n": (1000, 2**18 + 1, 2**21, 3 * 2**20 + 1, 2**31)})
    assert found.counted == 0
    for place in range(5):
        assert_equal(k, found.table, place, machine("bare"))
    assert found.table.cell("work_flops", 4) == 2**94
    assert found.warnings == ("at 4 points, the data exceed bare's HBM (16 GiB); the times assume that they fit",)


def test_a_level_that_predict_leaves_out_is_told() -> None:
    """Its cell is empty, and what failed altogether has an empty row and a reason."""

    def runner(tasks: Sequence[Task]) -> Iterator[Outcome]:
        rows = [row_of(predict(t.kernel, dict(t.values), t.machine, t.options), moves_only=False) for t in tasks]
        del rows[0]["L2_bytes"]
        yield from (Outcome(t.index, row) for t, row in zip(tasks[:2], rows, strict=False))
        yield Outcome(tasks[2].index, None, "too hard")

    gemv = Variant(written("gemv"), {})
    found = sweep([gemv], {"n": (9, 11, 13)}, [machine("three")], Options(), runner=runner)
    assert found.warnings == ("L2 is left out at 1 point, where its exact traffic takes too long to compute",)
    assert found.table.cells("L2_bytes")[0] is None and found.table.cells("L2_bytes")[1] > 0
    assert found.failures == (({"machine": "three", "n": 13}, "too hard"),)
    assert [found.table.cell(n, 2) for n in ("n", "time_s", "bound", "work_flops")] == [13, None, None, None]
