"""Shared contractions: the classification against numpy, the times against the textbook's formulas."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine, shipped_names
from roofdsl.predict.collectives import Network, network_of
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.sharded import Result, Sharding, predict_sharded, shard
from tests.predict.machines import kernel_of

TPU = load_machine("tpu_v5e")
TENSOR = Options(unit="tensor")
SIZES = {"B": 256, "D": 4096, "F": 1024}


def matmul() -> Kernel:
    return kernel(load_file(shipped_names("kernels")["matmul_bdf"]), "matmul_bdf", {})


def executed(s: Sharding, p: int) -> list[np.ndarray]:
    """What each of p devices has of Z = X Y in the end, following the sharding word by word."""
    sizes = {"B": 4, "D": 8, "F": 12}
    rng = np.random.default_rng(1)
    full = {"X": rng.integers(0, 9, (4, 8)), "Y": rng.integers(0, 9, (8, 12))}
    dims = {"X": "BD", "Y": "DF", "Z": "BF"}

    def part(name: str, device: int) -> np.ndarray:
        axis = dims[name].find(s.parameter)
        if name in s.whole:
            assert axis < 0
            return full[name]
        length = sizes[s.parameter] // p
        return np.take(full[name], range(device * length, (device + 1) * length), axis)

    local = [part("X", k) @ part("Y", k) for k in range(p)]
    for t in s.transfers:
        if t.array.name != "Z":
            continue
        if t.kind == "all-gather":
            local = [np.concatenate(local, axis=dims["Z"].find(s.parameter))] * p
        else:
            total = np.sum(local, axis=0)
            local = [total] * p if t.kind == "all-reduce" else list(np.split(total, p))
    wanted = full["X"] @ full["Y"]
    if any(t.array.name == "Z" and t.kind in ("all-gather", "all-reduce") for t in s.transfers):
        assert all((each == wanted).all() for each in local)
    else:
        axis = max(dims["Z"].find(s.parameter), 0)
        assert (np.concatenate(local, axis=axis) == wanted).all()
    return local


@pytest.mark.parametrize("result", ["whole", "parts"])
@pytest.mark.parametrize("parameter", ["B", "D", "F"])
def test_devices_have_what_they_need(parameter: str, result: Result) -> None:
    s = shard(matmul(), parameter, result=result)
    executed(s, 4)
    kinds = {("D", "whole"): "all-reduce", ("D", "parts"): "reduce-scatter"}
    expected = [kinds[parameter, result]] if parameter == "D" else ["all-gather"] if result == "whole" else []
    assert [t.kind for t in s.transfers] == expected


@pytest.mark.spread(9)
@pytest.mark.parametrize("p", [2, 4, 16])
@pytest.mark.parametrize(
    ("parameter", "gather", "result", "moved"),
    [
        ("D", (), "whole", lambda p, b, d, f: 2 * Fraction(p - 1, p) * 2 * b * f),
        ("D", (), "parts", lambda p, b, d, f: Fraction(p - 1, p) * 2 * b * f),
        ("B", (), "whole", lambda p, b, d, f: Fraction(p - 1, p) * 2 * b * f),
        ("B", (), "parts", lambda p, b, d, f: 0),
        ("B", ("Y",), "parts", lambda p, b, d, f: Fraction(p - 1, p) * 2 * d * f),
        ("F", ("X",), "parts", lambda p, b, d, f: Fraction(p - 1, p) * 2 * b * d),
        ("F", ("X",), "whole", lambda p, b, d, f: Fraction(p - 1, p) * 2 * (b * d + b * f)),
    ],
)
def test_times_are_the_textbooks(
    parameter: str, gather: tuple[str, ...], result: Result, moved: object, p: int
) -> None:
    s = shard(matmul(), parameter, gather=gather, result=result)
    found = predict_sharded(s, SIZES, TPU, network_of(TPU, p), TENSOR)
    b, d, f = SIZES.values()
    assert found.compute_s == Fraction(2 * b * d * f, p * 197 * 10**12)
    assert callable(moved)
    assert found.communication_s == moved(p, b, d, f) / Fraction(45 * 10**9)
    local = {"B": b, "D": d, "F": f}
    local[parameter] //= p
    held = 2 * (local["B"] * local["D"] + local["D"] * local["F"] + local["B"] * local["F"])
    assert found.device.memory.bytes == held
    assert found.bound_s == max(found.compute_s, found.communication_s, Fraction(held, 810 * 10**9))
    assert found.no_overlap_s == found.compute_s + found.communication_s + Fraction(held, 810 * 10**9)
    assert found.work == 2 * b * d * f


@pytest.mark.spread(1)
@pytest.mark.parametrize(("parameter", "over"), [("D", "D"), ("B", "D"), ("F", "B"), ("B", "B")])
def test_break_even_is_where_the_terms_cross(parameter: str, over: str) -> None:
    """The first size that the form gives is compute-bound by prediction, the size before it is not."""
    s, p = shard(matmul(), parameter, gather=("X",) if parameter == "F" else ()), 4
    network = network_of(TPU, p, latency_s=Fraction(1, 10**6))
    found = predict_sharded(s, SIZES, TPU, network, TENSOR, over=over)
    assert [b.term for b in found.break_evens] == ["HBM", "ICI"]
    for b in found.break_evens:
        if b.first is None:
            sizes = [p, 64 * p, 10**6 * p]
        else:
            near = (b.first - p, b.first, b.first + p, 100 * b.first)
            sizes = [n // p * p for n in near if n >= p]
        for size in sizes:
            at = predict_sharded(s, {**SIZES, over: size}, TPU, network, TENSOR)
            other = at.device.memory.time_s if b.term == "HBM" else at.communication_s
            assert (at.compute_s >= other) == (b.first is not None and size >= b.first), (b.term, size)


def test_the_time_falls_with_devices_until_the_links_bind() -> None:
    s = shard(matmul(), "D", result="parts")
    times = [predict_sharded(s, SIZES, TPU, network_of(TPU, p), TENSOR).bound_s for p in (2, 4, 8, 64, 1024)]
    alone = predict(matmul(), SIZES, TPU, TENSOR).bound_s
    assert times[-1] > times[0] / 2
    assert all(t >= alone / p for t, p in zip(times, (2, 4, 8, 64, 1024), strict=True))


def test_two_ways_round_halve_the_communication() -> None:
    s = shard(matmul(), "D")
    one, two = (
        predict_sharded(s, SIZES, TPU, network_of(TPU, 8, topology=t), TENSOR) for t in ("ring", "two-way-ring")
    )
    assert one.communication_s == 2 * two.communication_s


BAD = {
    "kernel square(n):\n    in A, B: f64[n, n]\n    inout C: f64[n, n]\n"
    "    for i in range(n), j in range(n), k in range(n):\n        C[i, j] += A[i, k] * B[k, j]\n": "for two of",
    "kernel ends(n, m):\n    in A: f64[n + 1], B: f64[m]\n    inout C: f64[m]\n"
    "    for i in range(n), j in range(m):\n        C[j] += A[i + 1] * B[j]\n": "dimension that is an expression in it",
    "kernel skips(n, m):\n    in A: f64[n], B: f64[m]\n    inout C: f64[m]\n"
    "    for i in range(1, n), j in range(m):\n        C[j] += A[i] * B[j]\n": "does not run from 0 to n",
    "kernel shifts(n, m):\n    in A: f64[n], B: f64[m]\n    inout C: f64[m]\n"
    "    for i in range(n), j in range(m):\n        C[j] += A[n - 1 - i] * B[j]\n": "because of its subscript",
    "kernel tiles(n, m):\n    assume n % 4 == 0\n    in A: f64[n], B: f64[m]\n    inout C: f64[m]\n"
    "    for i in range(n), j in range(m):\n        C[j] += A[i] * B[j]\n": "an assumption restricts it",
    "kernel overwrites(n):\n    in A, B: f64[n]\n    out C: f64[1]\n    inout D: f64[n]\n"
    "    for i in range(n):\n        C[0] = A[i] * B[i]\n        D[i] += A[i] * B[i]\n": "its loop overwrites C",
    "kernel triangle(n, m):\n    in A: f64[n, m], B: f64[m]\n    inout C: f64[n]\n"
    "    for i in range(n), j in range(min(m, i + 1)):\n        C[i] += A[i, j] * B[j]\n": "bounds that change",
    "kernel asks(n, m):\n    in A: f64[n, m], B: f64[m]\n    inout C: f64[n]\n    for i in range(n), j in range(m):\n"
    "        if i >= 2:\n            C[i] += A[i, j] * B[j]\n": "an `if` depends on its iteration",
    "kernel lets(n, m):\n    in A: f64[n, m], B: f64[m]\n    inout C, D: f64[m]\n"
    "    for i in range(n), j in range(m):\n        C[j] += A[i, j] * B[j]\n"
    "    for j in range(m):\n        let c = C[j]\n        D[j] += c * B[j]\n": "is used before",
    "kernel adds(n):\n    in A: f64[n]\n    inout C: f64[n]\n"
    "    for i in range(n):\n        C[i] += A[i]\n": "not a contraction",
}


@pytest.mark.parametrize("text", BAD, ids=[t.split("(", 1)[0].split()[-1] for t in BAD])
def test_what_cannot_be_shared(text: str) -> None:
    with pytest.raises(CommandError, match=BAD[text]):
        shard(kernel_of(text), "n")


def test_scalars_are_summed_too() -> None:
    dot = kernel(load_file(shipped_names("kernels")["dot"]), "dot", {})
    s = shard(dot, "n")
    assert (s.parts, s.sums, [t.kind for t in s.transfers]) == (("a", "b"), ("s",), ["all-reduce"])


def test_temporaries() -> None:
    """Each device has its own where every turn starts them anew; a sum over the devices may not be used before."""
    attention = kernel(load_file(shipped_names("kernels")["attention_products"]), "attention_products", {})
    for parameter in ("batch", "kv", "group"):
        s = shard(attention, parameter, result="parts")
        assert "O" in s.parts and s.sums == () and s.transfers == ()
    assert shard(attention, "kv").whole == ()
    assert shard(attention, "group").whole == ("K", "V")
    with pytest.raises(CommandError, match="the sum over it in S is used before"):
        shard(attention, "dh")


def test_a_result_that_is_used_is_no_sum_to_come() -> None:
    text = (
        "kernel two(n, m):\n    in A, B: f64[n, m]\n    inout C, D: f64[m]\n"
        "    for i in range(n), j in range(m):\n        C[j] += A[i, j] * B[i, j]\n"
        "    for j in range(m):\n        D[j] += C[j] * C[j]\n"
    )
    with pytest.raises(CommandError, match="the sum over it in C is used before"):
        shard(kernel_of(text), "n")
    assert shard(kernel_of(text), "m").sums == ()


def test_names_that_do_not_fit() -> None:
    with pytest.raises(CommandError, match="no parameter `d`"):
        shard(matmul(), "d")
    with pytest.raises(CommandError, match="each device needs only its part along D"):
        shard(matmul(), "D", gather=("X",))
    with pytest.raises(CommandError, match="`W` is not an input that every device needs whole"):
        shard(matmul(), "B", gather=("W",))
    three = Network(3, Fraction(10**9))
    with pytest.raises(CommandError, match="3 devices do not share D = 4096 evenly"):
        predict_sharded(shard(matmul(), "D"), SIZES, TPU, three, TENSOR)
    with pytest.raises(CommandError, match="no parameter `N`"):
        predict_sharded(shard(matmul(), "D"), SIZES, TPU, network_of(TPU, 2), TENSOR, over="N")


def test_the_shipped_file_is_where_the_documentation_says() -> None:
    assert Path(shipped_names("kernels")["matmul_bdf"]).name == "matmul_sharded.roof"
