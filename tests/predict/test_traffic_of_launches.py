"""The levels of a GPU against the generated launch, followed thread by thread: what warps and blocks touch."""

from __future__ import annotations

from math import prod

import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import load_machine, models_folder
from roofdsl.predict.access_orders import orders_of
from roofdsl.predict.kernel import predict
from roofdsl.predict.kernel_launches import _steps
from roofdsl.predict.options import Options
from tests.predict.launch_threads import behind_blocks, followed, from_registers, the_call
from tests.predict.machines import kernel_of

V100 = load_machine("v100")

PRODUCT = (
    "kernel k(n, m):\n    in A: f64[n, m], B: f64[m, n]\n    inout C: f64[n, n]\n"
    "    {}for i in range(n), j in range(n){}\n        C[i, j] += A[i, k] * B[k, j]\n"
)
PROVEN = PRODUCT.format("", ", k in range(m):")
DECLARED = PRODUCT.format("parallel ", ":\n        for k in range(m):").replace("  C[", "      C[")
MATCHED = (
    "kernel k(n, m):\n    in A: f64[n, n], B: f64[n, n]\n    inout C: f64[n, n]\n"
    "    for i in range(n), j in range(n):\n        C[j, i] += A[j, i] * B[i, j]\n"
)
TRIANGLE = (
    "kernel k(n, m):\n    assume n >= m\n    in A: f64[n, n]\n    inout C: f64[n, n]\n"
    "    for i in range(n), j in range({}):\n"
    "        for k in range({}):\n            C[i, j] += A[i, k] * A[j, k]\n"
)


def compare(text: str, **sizes: int) -> None:
    """The grid, L1 and L2 of the prediction are those of the launch."""
    of = kernel_of(text)
    _, launch = the_call(of, sizes)
    every = followed(of, sizes)
    assert every
    found = predict(of, sizes, V100, Options())
    at = {level.name: level.bytes for level in found.levels}
    assert at["L1"] == from_registers(every, launch.block)
    assert at["L2"] == behind_blocks(every)
    orders = orders_of(of, sizes, V100)
    assert orders.launch is not None
    assert prod(orders.launch.grid) == prod(launch.grid)
    assert orders.launch.threads_of_block == prod(launch.block)


TILES = [
    "tile i by 8",
    "tile j by 8",
    "tile i by 64",
    "tile j by 48",
    "tile i, j by 32",
    "tile i by 24\n    tile j by 40",
    "tile i by 16\n    tile j by 8",
    "tile i by 1",
    "tile i, j by 12",
    "tile i by 5\n    tile j by 48",
]


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("text", [PROVEN, DECLARED, MATCHED], ids=["proven", "declared", "transposed"])
def test_nests_with_tiles(text: str, tile: str) -> None:
    """Loops without tiles are grids of threads beside those with tiles, whose points may be more than the threads."""
    compare(f"{text}    {tile}\n", n=72, m=5)


@pytest.mark.parametrize("tile", TILES)
def test_nests_with_tiles_by_working_sets(tile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As launches with too many accesses to be simulated are counted."""
    monkeypatch.setattr("roofdsl.predict.thread_block_traffic.FEW_ACCESSES", 0)
    compare(f"{PROVEN}    {tile}\n", n=72, m=8)


@pytest.mark.parametrize("place", ["i, j", "j, i"])
@pytest.mark.parametrize(("j", "k"), [("i + 1", "m"), ("i, n", "m"), ("n", "i, n"), ("i + 1", "j, n")])
def test_loops_that_begin_or_end_at_the_variable_of_another(j: str, k: str, place: str) -> None:
    compare(TRIANGLE.format(j, k).replace("C[i, j]", f"C[{place}]"), n=40, m=3)


def test_a_loop_that_begins_at_a_maximum_is_counted_in_loop_order() -> None:
    """Only its warps are those of the launch."""
    of, sizes = kernel_of(TRIANGLE.format("max(0, i - 3), i + 1", "m")), {"n": 40, "m": 3}
    _, launch = the_call(of, sizes)
    found = predict(of, sizes, V100, Options())
    assert found.levels[0].bytes == from_registers(followed(of, sizes), launch.block)
    assert any("in loop order" in note for note in found.assumptions)


def test_bounds_that_are_enforced_inside() -> None:
    """i and j are moved outside k, and run from the least bound of all k on."""
    text = (
        "kernel k(n):\n    in A: f64[n, n], B: f64[n, n]\n    inout C: f64[n, n]\n    for k in range(n), "
        "i in range(k + 1, n), j in range(k + 2, n):\n        C[i, j] -= A[i, k] * B[k, j]\n"
    )
    of, sizes = kernel_of(text), {"n": 41}
    _, launch = the_call(of, sizes)
    (level, *_) = predict(of, sizes, V100, Options()).levels
    assert level.bytes == from_registers(followed(of, sizes), launch.block)


ROWS = (
    "kernel k(n, m):\n    in A: f64[n, m], x: f64[m]\n    inout s: f64\n    for i in range(n), j in range(m):\n"
    "        s += A[i, j] * x[j]\n"
)


@pytest.mark.parametrize("few", [0, 3_000_000])
@pytest.mark.parametrize("most", [1, 3, 8, 1024])
@pytest.mark.parametrize(("n", "m"), [(96, 64), (100, 96), (4, 512), (200, 4)])
def test_sums_have_no_more_blocks_than_parts(
    n: int, m: int, most: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block finds again what its threads have read in the turn before."""
    monkeypatch.setattr("roofdsl.codegen.cuda_kernels.MOST_PARTS", most)
    monkeypatch.setattr("roofdsl.predict.kernel_launches._steps", _steps.__wrapped__)
    monkeypatch.setattr("roofdsl.predict.thread_block_traffic.FEW_ACCESSES", few)
    of, sizes = kernel_of(ROWS), {"n": n, "m": m}
    _, launch = the_call(of, sizes)
    assert prod(launch.grid) <= most
    found = {level.name: level.bytes for level in predict(of, sizes, V100, Options()).levels}
    scalar = 2 * 8
    assert found["L2"] == behind_blocks(followed(of, sizes)) + scalar


def test_a_sum_of_many_rows() -> None:
    """1024 blocks of 32 x 8 threads, 16 along j and 64 along i, take 8 turns each. Each loads its part of x once."""
    found = {level.name: level.bytes for level in predict(kernel_of(ROWS), {"n": 4096, "m": 512}, V100).levels}
    assert found["L2"] == 8 * (4096 * 512 + 1024 * 32 + 2)


@pytest.mark.parametrize("few", [0, 3_000_000])
def test_grids_have_limits(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With at most 3 and 2 blocks, threads along y and z have several iterations, and those of the last blocks less."""
    monkeypatch.setattr("roofdsl.loops.block_shape.MOST_BLOCKS", (100, 3, 2))
    monkeypatch.setattr("roofdsl.predict.thread_block_traffic.FEW_ACCESSES", few)
    text = (
        "kernel k(n, m, l):\n    in A: f64[n, l], B: f64[m, l]\n    inout C: f64[n, m, l]\n"
        "    for h in range(n), i in range(m), j in range(l):\n        C[h, i, j] += A[h, j] * B[i, j]\n"
    )
    compare(text, n=14, m=40, l=8)
    compare(text, n=4, m=4, l=40)
    compare(text + "    tile i by 4\n", n=3, m=40, l=8)


def test_a_grid_of_many_rows() -> None:
    """93,750 blocks of 8 x 32 threads would cover the rows, and a grid has at most 65,535 along y. All of C moves."""
    text = "kernel k(n):\n    inout C: f64[n, 8]\n    for i in range(n), j in range(8):\n        C[i, j] += 1\n"
    for level in predict(kernel_of(text), {"n": 3_000_000}, V100).levels:
        assert level.bytes == 2 * 3_000_000 * 64


BESIDE = (
    "kernel k(n, m):\n    in A: f64[n, n]\n    inout B: f64[n, n]\n{}"
    "{indent}    for i in range(n), j in range(n):\n{indent}        B[i, j] += A[j, i]\n{}"
)
SERIAL = "        for i in range(n):\n            B[i, 0] = 0\n"
ALONE = BESIDE.format("", "", indent="")


@pytest.mark.parametrize(
    "text",
    [
        BESIDE.format("    if m > 3:\n", "", indent="    "),
        BESIDE.format(
            "    if m > 3:\n        for i in range(n):\n            B[i, 0] = 0\n    else:\n", "", indent="    "
        ),
        BESIDE.format("", "    for i in range(3 * m, n):\n        B[i, 0] = A[0, i]\n", indent=""),
        BESIDE.format("    parallel for i in range(3 * m, n):\n        B[i, i] = 0\n", "", indent=""),
    ],
    ids=["if", "else", "empty behind", "empty before"],
)
def test_a_single_launch_is_counted_by_its_blocks(text: str) -> None:
    sizes = {"n": 70, "m": 24 if "else" not in text else 2}
    alone, found = predict(kernel_of(ALONE), {**sizes, "m": 1}, V100), predict(kernel_of(text), sizes, V100)
    assert found.launches == alone.launches == 1
    assert [level.bytes for level in found.levels] == [level.bytes for level in alone.levels]
    assert any("blocks of 256 threads" in note for note in found.assumptions)


def test_an_empty_loop_is_no_launch() -> None:
    text = "kernel k(n):\n    inout B: f64[n]\n    parallel for i in range(1, n):\n        B[i] = 2 * B[i]\n"
    empty, other = (predict(kernel_of(text), {"n": n}, V100) for n in (1, 2))
    assert (empty.launches, other.launches) == (0, 1)
    assert not empty.bound_s < 0 and not any(level.bytes for level in empty.levels)
    assert empty.bound_s == 0 and other.bound_s == V100.launch_s


def test_nothing_is_proven_again_for_launches_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the code does with a launch holds at all sizes: a proof for one column may find more."""
    asked = []

    def count(of: object) -> dict[tuple[int, ...], int]:
        asked.append(of)
        return parallel_loops(of)  # type: ignore[arg-type]

    monkeypatch.setattr("roofdsl.predict.kernel_launches.independent_loops", count)
    lu = kernel(load_file(models_folder() / "kernels" / "triangular.roof"), "lu")
    predict(lu, {"n": 12}, V100)
    assert len(asked) <= 1
