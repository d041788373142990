"""A kernel of several nests on a GPU: the sum of its launches, as many as the generated CUDA makes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from roofdsl import budget
from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.checks.private_copies import private_loops
from roofdsl.codegen.cuda_kernels import launched
from roofdsl.codegen.generate import generate, with_declared
from roofdsl.codegen.launch_grids import launches_of
from roofdsl.codegen.targets.cuda import Cuda
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply
from roofdsl.machine.find import load_machine, models_folder, shipped_models
from roofdsl.page.content import _is_launched
from roofdsl.predict.access_orders import orders_of
from roofdsl.predict.kernel import predict
from roofdsl.predict.kernel_launches import is_spread, launches_by_function, launches_of_kernel
from roofdsl.predict.occupancy import Block
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from roofdsl.predict.told_apart import told_apart
from roofdsl.sol.floor import floor
from roofdsl.sol.schedule import best
from tests.predict.machines import kernel_of, machine

SMALL = machine(
    "peak f64 fma 1 TFLOP/s",
    "cache L1 4 KiB, 9 TB/s, line 64 B, sector 32 B, copies 4",
    "cache L2 16 KiB, 2 TB/s, line 64 B",
    "units 4",
    "launch 2 us",
    "multiprocessor warp 8, warps 16, block_threads 128",
)
SCALE = "    for i in range(n):\n        T[i] = A[i] * 2\n"
GEMV = "    for i in range(n):\n        C[i] = 0\n        for j in range(n):\n            C[i] += B[i, j] * T[j]\n"
SQUARES = "    for i in range(n):\n        s += C[i] * C[i]\n"
ALL = kernel_of(
    "kernel k(n):\n    in A: f64[n], B: f64[n, n]\n    temp T: f64[n]\n    out C: f64[n], s: f64\n"
    f"{SCALE}{GEMV}    s = 0\n{SQUARES}"
)
ALONE = (
    kernel_of(f"kernel k(n):\n    in A: f64[n]\n    out T: f64[n]\n{SCALE}"),
    kernel_of(f"kernel k(n):\n    in B: f64[n, n], T: f64[n]\n    out C: f64[n]\n{GEMV}"),
    kernel_of(f"kernel k(n):\n    in C: f64[n]\n    inout s: f64\n{SQUARES}"),
)
SWEEPS = kernel_of(
    "kernel k(n, t):\n    assume n >= 4\n    inout A, B: f64[n]\n    for k in range(t):\n"
    "        for i in range(1, n - 1):\n            B[i] = A[i - 1] + A[i + 1]\n"
    "        for i in range(1, n - 1):\n            A[i] = B[i - 1] + B[i + 1]\n"
)


def shipped(file: str, name: str) -> Kernel:
    return kernel(load_file(models_folder() / "kernels" / f"{file}.roof"), name)


def made(of: Kernel, sizes: Mapping[str, int]) -> int:
    """Launches of the generated code."""
    text = generate(of, "cuda", "naive", free=parallel_loops(of), private=private_loops(of))
    return sum(1 for _ in launches_of(text.steps, dict(sizes)))


def bytes_of(p: Prediction) -> dict[str, int]:
    return {level.name: level.bytes for level in p.levels}


def test_a_kernel_is_the_sum_of_its_nests() -> None:
    """Each nest written as a kernel of its own; s is set in the block that joins the parts of the sum."""
    n = {"n": 96}
    whole, parts = predict(ALL, n, SMALL), [predict(of, n, SMALL) for of in ALONE]
    scalars = 8  # s of the third kernel comes in, which the first does not load
    for level, total in bytes_of(whole).items():
        assert total == sum(bytes_of(p)[level] for p in parts) - scalars
    assert whole.launches == sum(p.launches for p in parts) == made(ALL, n) == 4
    assert float(whole.launch_s) == pytest.approx(8e-6)
    assert any("4 launches of the generated code" in note for note in whole.assumptions)
    assert any("blocks of" in note for note in whole.assumptions)
    compulsory = 8 * (2 * 96 + 96 * 96 + 2 * 96 + 96 + 1)  # each launch finds nothing that another has left
    assert whole.memory.bytes >= compulsory


DECLARED = """\
kernel declared(n):
    in B: f64[n, n, n]
    out A: f64[n, n, n]
    parallel for {}:
        A[i, j, k] = 2 * B[i, j, k]
"""


@pytest.mark.parametrize(
    ("loops", "outermost_first"),
    [
        ("i in range(n), j in range(n), k in range(n)", ["i", "j", "k"]),
        ("k in range(n), j in range(n), i in range(n)", ["k", "j", "i"]),
        ("j in range(n), k in range(j + 1), i in range(k, n)", ["j", "k", "i"]),
    ],
)
def test_declared_loops_are_the_threads_that_are_predicted(loops: str, outermost_first: list[str]) -> None:
    """All loops of the line run in threads, the last one along x, in the generated code as in the prediction."""
    of = kernel_of(DECLARED.format(loops))
    made = launched(Cuda(), apply(of), with_declared({}, apply(of).body))
    (call,) = made.calls()
    assert list(call.parallel) == outermost_first[::-1], "x first"
    (launch,) = launches_of(made.steps, {"n": 64})
    assert launch.block == (32, 4, 2) and launch.grid == (2, 16, 32)
    predicted = orders_of(of, {"n": 64}, load_machine("v100")).launch
    assert predicted is not None
    assert [loop.var for loop in predicted.threads] == outermost_first
    assert predicted.grid == launch.grid[::-1]


def test_loops_inside_declared_ones_stay_in_their_thread() -> None:
    of = kernel_of(
        "kernel rows(n):\n    in B: f64[n, n]\n    out A: f64[n, n]\n    parallel for i in range(n):\n"
        "        for j in range(n):\n            A[i, j] = 2 * B[i, j]\n"
    )
    (call,) = launched(Cuda(), apply(of), with_declared(parallel_loops(of), apply(of).body)).calls()
    assert call.parallel == ("i",)


def test_threads_keep_to_a_band() -> None:
    """Threads run `j`, outside `i`. Both of its bounds become conditions, as if the text had them as conditions."""
    head = "kernel band(n):\n    in A: f64[n]\n    inout B: f64[n]\n    for i in range(n):\n"
    tail = "            B[j] += A[i] * A[j]\n"
    bounds = kernel_of(f"{head}        for j in range(max(0, i - 1), min(n, i + 2)):\n{tail}")
    guard = f"            if i - 1 <= j and j < i + 2:\n    {tail}"
    conditions = kernel_of(f"{head}        for j in range(n):\n{guard}")
    one, other = (predict(k, {"n": 300}, SMALL) for k in (bounds, conditions))
    assert one.work == other.work == 2 * (3 * 300 - 2)
    assert [level.bytes for level in one.levels] == [level.bytes for level in other.levels]


def test_time_steps_are_launches_of_the_host() -> None:
    one, ten = (predict(SWEEPS, {"n": 3000, "t": t}, SMALL) for t in (1, 10))
    assert one.launches == made(SWEEPS, {"n": 3000, "t": 1}) == 2
    assert ten.launches == made(SWEEPS, {"n": 3000, "t": 10}) == 20
    assert bytes_of(ten) == {name: 10 * moved for name, moved in bytes_of(one).items()}


ROWS = (
    "kernel rows(m, n):\n    in A: f64[m, n]\n    out B: f64[m, n]\n    temp S: f64[{row}]\n"
    "    for i in range(m):\n        for j in range(n):\n            S[{at}] = 2 * A[i, j]\n"
    "        for j in range(n):\n            B[i, j] = S[{at}]\n"
)


def test_many_launches_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that all iterations share, without memory for copies, leaves only the innermost loops to the threads."""
    monkeypatch.setattr("roofdsl.codegen.private_copies.MOST_BYTES", 0)
    shared, own = (kernel_of(ROWS.format(row=row, at=at)) for row, at in (("n", "j"), ("m, n", "i, j")))
    of_rows, in_one = (predict(of, {"m": 100, "n": 8}, SMALL) for of in (shared, own))
    assert of_rows.launches == made(shared, {"m": 100, "n": 8}) == 200 and of_rows.bound == "launch"
    (warning,) = of_rows.warnings
    assert "launches rows 200 times" in warning and "share `S`: a copy for each thread would take more than" in warning
    assert in_one.launches == made(own, {"m": 100, "n": 8}) < 3 and not in_one.warnings
    few = predict(SWEEPS, {"n": 8, "t": 10}, SMALL)
    assert few.bound == "launch" and not few.warnings


def test_copies_that_give_a_thread_too_much_work_are_named_as_the_reason() -> None:
    """A dimension more would not help: the rows already have copies, which the host does not use at these sizes."""
    shared, sizes = (
        kernel_of(ROWS.format(row="n", at="j").replace("kernel rows", "kernel long")),
        {"m": 60, "n": 16_000},
    )
    p = predict(shared, sizes, SMALL, Options(levels="memory"))
    assert p.launches == made(shared, sizes) == 120 and p.bound == "launch"
    (warning,) = p.warnings
    assert "share `S`: one launch with a copy for each thread would leave a thread too much work" in warning
    assert "a dimension" not in warning


def test_assumptions_say_which_launch_they_are_of() -> None:
    """The launches of one kernel are named by the functions of its code."""
    text = (
        "kernel k(n, m):\n    in x: f64[n], y: f64[m]\n    out a: f64[n], b: f64[m]\n"
        "    for i in range(n):\n        a[i] = 2 * x[i]\n    for i in range(m):\n        b[i] = 2 * y[i]\n"
    )
    found = predict(kernel_of(text), {"n": 64, "m": 640}, SMALL, Options(block=Block(64))).assumptions
    blocks = [note.partition(": ") for note in found if "blocks of" in note]
    assert [name for name, *_ in blocks] == ["k_1", "k_2"], found
    assert "on 1 multiprocessor;" in blocks[0][2] and "on each of 4 multiprocessors" in blocks[1][2]
    assert any(note.startswith("L1: a warp") for note in found)  # of all of them
    assert told_apart([("f", ("a", "b")), ("g", ("b",)), ("g", ("c",))]) == ("f: a", "b", "g: c")
    assert told_apart([("f", ("a",)), ("f", ("b",))]) == ("a", "b")
    many = [(name, ("a",)) for name in "fghij"]
    assert told_apart([*many, ("k", ())]) == ("f, g, h and 2 others: a",)


def test_launches_that_take_too_long_to_count_are_an_error() -> None:
    """Millions of launches of different sizes, in the skewed tiles that `sol` prints for a stencil in time."""
    target = shipped_models()["jacobi2d_time"]
    plain, on, sizes = kernel(load_file(target.path), target.name), load_machine("a100_80"), {"n": 4000, "steps": 100}
    order = best(plain, on, floor(plain, sizes, on), None)
    assert order is not None and order.text
    tiled = kernel_of(order.text)
    assert is_spread(tiled)  # remembers which loops are independent, which may take all of a second to prove
    with budget.beginning(1.0, budget.DEFAULT_BYTES, whole=False), pytest.raises(CommandError) as found:
        launches_of_kernel(tiled, sizes, on)
    assert "counting the launches of kernel jacobi2d_time takes too long (left out to stay" in found.value.message


def test_copies_are_one_launch_of_their_own_traffic() -> None:
    """Rows of a buffer that stays behind, as if the kernel declared it, one beside the other along the threads; sums in
    registers move nothing.
    """
    sizes = {"m": 96, "n": 8}
    shared = kernel_of(ROWS.format(row="n", at="j").replace("kernel rows", "kernel copied"))
    declared = ROWS.format(row="n, m", at="j, i").replace("    temp S", "    out S")
    declared = kernel_of(declared.replace("    for i", "    parallel for i"))
    copied, by_hand = (predict(of, sizes, SMALL) for of in (shared, declared))
    assert copied.launches == by_hand.launches == made(shared, sizes) == 1 and copied.work == by_hand.work
    assert is_spread(shared)
    assert bytes_of(copied) == bytes_of(by_hand)
    in_rows, beside = 2 * 96 * 8 * 32, 2 * 96 * 8 * 8  # A and B, a sector for each thread; S, whole sectors
    assert bytes_of(copied)["L1"] == in_rows + beside
    few = sizes | {"m": 48}  # 14 KB: L2 holds them from one launch to the next
    cold, warm = (predict(shared, few, SMALL, Options(warm=w)) for w in (False, True))
    assert cold.memory.bytes > 0 == warm.memory.bytes and warm.levels[0] == cold.levels[0]

    sums = kernel_of(
        "kernel sums(m, n):\n    in A: f64[n, m]\n    out x: f64[m]\n    temp s: f64[1]\n    for i in range(m):\n"
        "        s[0] = 0\n        for j in range(n):\n            s[0] += A[j, i]\n        x[i] = s[0]\n"
    )
    p = predict(sums, sizes, SMALL)
    assert p.launches == made(sums, sizes) == 1
    assert bytes_of(p) == dict.fromkeys(("L1", "L2", "HBM"), 8 * (96 * 8 + 96))


@pytest.mark.parametrize("n", [20, 90])
def test_launches_of_different_sizes(n: int) -> None:
    """LU launches two functions for every column: predicted one by one up to 64 columns, counted beyond."""
    lu = shipped("triangular", "lu")
    found = launches_of_kernel(lu, {"n": n}, SMALL)
    assert found.count == made(lu, {"n": n}) == 2 * n
    assert (found.why == "") == (n <= 64)
    if found.why:
        assert "the host launches it 90 times in the loop over i" in found.why
        p = predict(lu, {"n": n}, SMALL, Options(levels="memory"))
        assert any(found.why in note for note in p.assumptions) and p.launches == found.count


def test_a_chain_of_dependences_runs_on_one_thread() -> None:
    for name in ("cholesky", "trsv"):
        of = shipped("triangular", name)
        p = predict(of, {"n": 16}, SMALL, Options(levels="memory"))
        assert p.launches == made(of, {"n": 16}) == 1
        assert any("so one thread runs it" in note for note in p.assumptions)
        assert not any("launches of the generated code" in note for note in p.assumptions)
        assert not is_spread(of)


def test_a_sum_is_made_by_blocks_and_joined_by_one_more() -> None:
    of = shipped("dot", "dot_f64")
    p = predict(of, {"n": 4096}, SMALL, Options(block=Block(64)))
    assert p.launches == made(of, {"n": 4096}) == 2
    assert any("blocks of 64 threads" in note for note in p.assumptions)
    assert p.memory.bytes == 2 * 8 * 4096 + 8 and is_spread(of)


def test_one_launch_elsewhere() -> None:
    """In loop order on a processor, and where without caches no order matters."""
    cpu = machine("peak f64 1 TFLOP/s", "cache L1 4 KiB, 9 TB/s, line 64 B", "launch 2 us")
    for on in (cpu, load_machine("h100_sxm")):
        assert predict(ALL, {"n": 24}, on).launches == 1


def test_a_page_names_the_machines_on_which_predict_counts_otherwise() -> None:
    """An explored page counts in loop order, and says where `predict` does not."""
    assert _is_launched(SWEEPS, {"n": 100, "t": 3}, SMALL) and _is_launched(ALL, {"n": 64}, SMALL)
    assert not _is_launched(ALL, {"n": 64}, load_machine("zen2_epyc_7452"))
    assert not _is_launched(shipped("triangular", "trsv"), {"n": 64}, SMALL)


LEVELS = (
    "kernel k(n, t):\n    inout A, B: f64[n]\n    in W: f64[t, n]\n    for k in range(t):\n"
    "        for i in range(1, n - 1):\n            B[i] = W[{first}, i] * A[i - 1] + W[{second}, i] * A[i + 1]\n"
    "        for i in range(1, n - 1):\n            A[i] = B[i - 1] + B[i + 1]\n"
)


def rows_of_w(first: str, second: str, t: int, n: int = 6400) -> int:
    """Rows of W that cross the memory's boundary, beyond the 4 of A and B in an iteration."""
    p = predict(kernel_of(LEVELS.format(first=first, second=second)), {"n": n, "t": t}, SMALL)
    assert p.launches == 2 * t
    rows = p.memory.bytes / (8 * n) - 4 * t
    assert rows == pytest.approx(round(rows), abs=0.05 * t)
    return round(rows)


def test_launches_that_access_other_places_are_not_alike() -> None:
    """Row 0 and row k: one row in the first iteration, two in all others. Rows k % 2 and 0 by turns: one or two."""
    assert rows_of_w("0", "k", 5) == 9
    assert rows_of_w("k", "k", 5) == 5
    assert rows_of_w("0", "k % 2", 6) == 6 + 3
    assert rows_of_w("0", "t - 1 - k", 5) == 9


def test_some_launches_stand_for_many_that_access_other_places() -> None:
    of, sizes = kernel_of(LEVELS.format(first="0", second="k")), {"n": 640, "t": 100}
    p = predict(of, sizes, SMALL)
    assert any("8 of 100 iterations of the loop over k are counted" in note for note in p.assumptions)
    launches = launches_of_kernel(of, sizes, SMALL)
    assert launches.count == made(of, sizes) == sum(launch.times for launch in launches.each) == 200
    same = predict(kernel_of(LEVELS.format(first="k", second="k")), sizes, SMALL)
    assert not any("stand for the others" in note for note in same.assumptions)
    assert p.memory.bytes - same.memory.bytes == 99 * 8 * 640


@pytest.mark.parametrize("n", [1, 2, 9, 80])
def test_launches_without_iterations_are_not_made(n: int) -> None:
    of = kernel_of(
        "kernel k(n):\n    inout A, B: f64[n]\n    for k in range(n):\n"
        "        for i in range(k + 1, n):\n            A[i] += B[k]\n"
        "        for i in range(k + 1, n):\n            B[i] += A[k]\n"
    )
    p = predict(of, {"n": n}, SMALL, Options(levels="memory"))
    assert p.launches == made(of, {"n": n}) == 2 * (n - 1)
    assert sum(launches_by_function(of, {"n": n}).values()) == 2 * (n - 1)


@pytest.fixture()
def nothing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each launch finds its caches empty, also at sizes at which the last one holds the data of all launches."""
    monkeypatch.setattr("roofdsl.predict.crossings._held_throughout", lambda *_, **__: None)


@pytest.mark.usefixtures("nothing_stays")
def test_a_temp_of_one_launch_is_dropped_after_it() -> None:
    two = kernel_of(
        "kernel k(n):\n    in A: f64[n]\n    out B, C: f64[n]\n    temp T: f64[n]\n"
        "    for i in range(n):\n        T[i] = A[i]\n        B[i] = T[i]\n"
        "    for i in range(n):\n        C[i] = B[i]\n"
    )
    p = predict(two, {"n": 128}, SMALL)
    assert p.launches == 2 and p.memory.stores_bytes == 2 * 8 * 128
    kept = kernel_of(
        "kernel k(n):\n    in A: f64[n]\n    out B, C: f64[n]\n    temp T: f64[n]\n"
        "    for i in range(n):\n        T[i] = A[i]\n        B[i] = T[i]\n"
        "    for i in range(n):\n        C[i] = B[i] + T[i]\n"
    )
    assert predict(kept, {"n": 128}, SMALL).memory.stores_bytes == 3 * 8 * 128


HOSTED = (
    "kernel k(t, n):\n    in A: f64[n]\n    inout x, B: f64[n]\n    temp T: f64[n]\n    for k in range(t):\n"
    "        for i in range(n):\n{body}        for i in range(1, n):\n            x[i] = B[i - 1]\n"
)


@pytest.mark.usefixtures("nothing_stays")
def test_a_temp_of_one_launch_in_a_loop_of_the_host_is_dropped_if_no_iteration_needs_that_of_another() -> None:
    own = kernel_of(HOSTED.format(body="            T[i] = A[i] + x[i]\n            B[i] = T[i] * T[i]\n"))
    p = predict(own, {"t": 5, "n": 128}, SMALL)
    assert p.launches == 10 and p.memory.stores_bytes == 5 * 8 * (128 + 128)  # the lines of B and x
    needed = kernel_of(
        HOSTED.format(body="            if k > 0:\n                B[i] = T[i]\n            T[i] = A[i] + x[i]\n")
    )
    p = predict(needed, {"t": 5, "n": 128}, SMALL)
    assert p.launches == 10 and p.memory.stores_bytes == 8 * 128 * (5 + 4 + 5)  # of T, B and x
