"""Blocks of results for each thread of a GPU: the gain is that of the applied text, which computes the same."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from click.testing import CliRunner

from roofdsl.advise import loop_changes
from roofdsl.advise.advise import Advised, advise
from roofdsl.advise.register_blocks import Nest, nests_to_block
from roofdsl.advise.thread_register_blocks import keeps_updates, registers, thread_blocks
from roofdsl.checks.deep import require_legal
from roofdsl.cli.main import cli
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.loops.transform import apply
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from tests.advise.test_advise import assert_as_predicted, of_kind
from tests.models.execute import execute, inputs

HEAD = "kernel k({}):\n    in {}\n    inout {}\n    for {}:\n        {}\n"
TEXTS = {
    "matmul": HEAD.format("n", "A, B: f64[n, n]", "C: f64[n, n]", "i in range(n), j in range(n), k in range(n)",
                          "C[i, j] += A[i, k] * B[k, j]"),
    "syrk": HEAD.format("n, m", "a: f64, A: f64[n, m]", "C: f64[n, n]", "k in range(m), i in range(n), j in range(n)",
                        "C[i, j] -= a * A[i, k] * A[j, k]"),
    "contraction": HEAD.format("n, m", "T: f32[n, m, m], U: f32[m, m, n]", "C: f32[n, n]",
                               "a in range(n), b in range(n), k in range(m), l in range(m)",
                               "C[a, b] += T[a, l, k] * U[k, l, b]"),
    "batched": HEAD.format("s, n", "A, B: f32[s, n, n]", "C: f32[s, n, n]",
                           "b in range(s), i in range(n), j in range(n), k in range(n)",
                           "C[b, i, j] += A[b, i, k] * B[b, k, j]"),
    "conv1x1": HEAD.format("b, f, c, n", "x: f32[b, c, n, n], w: f32[f, c]", "y: f32[b, f, n, n]",
                           "s in range(b), o in range(f), p in range(n), q in range(n), r in range(c)",
                           "y[s, o, p, q] += x[s, r, p, q] * w[o, r]"),
    "gemm_f16": HEAD.format("m, n, k", "A: f16[m, k], B: f16[k, n]", "C: f32[m, n]",
                            "i in range(m), j in range(n), p in range(k)", "C[i, j] += A[i, p] * B[p, j]"),
    "gemm_f32": HEAD.format("m, n, k", "A: f32[m, k], B: f32[k, n]", "C: f32[m, n]",
                            "p in range(k), i in range(m), j in range(n)", "C[i, j] += A[i, p] * B[p, j]"),
}  # fmt: skip
EINSUMS = {
    "matmul": ("ik,kj->ij", ("A", "B"), "C"),
    "contraction": ("alk,klb->ab", ("T", "U"), "C"),
    "batched": ("bik,bkj->bij", ("A", "B"), "C"),
    "conv1x1": ("srpq,or->sopq", ("x", "w"), "y"),
    "gemm_f16": ("ip,pj->ij", ("A", "B"), "C"),
    "gemm_f32": ("ip,pj->ij", ("A", "B"), "C"),
}
SIZES = {
    "matmul": {"n": 1024}, "syrk": {"n": 1024, "m": 512}, "contraction": {"n": 512, "m": 16},
    "batched": {"s": 16, "n": 256}, "conv1x1": {"b": 8, "f": 64, "c": 64, "n": 56},
    "gemm_f16": {"m": 1024, "n": 768, "k": 512}, "gemm_f32": {"m": 512, "n": 1020, "k": 512},
}  # fmt: skip
SMALL = {
    "matmul": {"n": 8}, "syrk": {"n": 8, "m": 3}, "contraction": {"n": 8, "m": 3}, "batched": {"s": 2, "n": 8},
    "conv1x1": {"b": 2, "f": 8, "c": 3, "n": 8}, "gemm_f16": {"m": 8, "n": 8, "k": 3},
    "gemm_f32": {"m": 16, "n": 4, "k": 3},
}  # fmt: skip
CASES = [
    ("matmul", "v100"), ("matmul", "h200"), ("syrk", "a100_40"), ("contraction", "v100"), ("batched", "h200"),
    ("conv1x1", "a100_40"), ("gemm_f16", "v100"), ("gemm_f32", "h200"), ("gemm_f32", "v100"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def only_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roofdsl.advise.advise.FINDERS", {"registers": loop_changes.registers})


def advised(text: str, sizes: Mapping[str, int], machine: Machine) -> Advised:
    checked = load_file(Source("k.roof", text))
    return advise(checked.kernels["k"], kernel(checked, "k"), sizes, machine)


def expected(name: str, start: Mapping[str, np.ndarray]) -> tuple[str, np.ndarray]:
    """What numpy computes."""
    if name == "syrk":
        return "C", start["C"] - start["a"] * (start["A"] @ start["A"].T)
    subscripts, factors, result = EINSUMS[name]
    wide = [start[f].astype(np.float64) for f in factors]
    return result, start[result] + np.einsum(subscripts, *wide)


def assert_computes(name: str, changed: Kernel) -> None:
    own = apply(changed)
    start = inputs(own, SMALL[name])
    result, wanted = expected(name, {n: a.copy() for n, a in start.items()})
    left = execute(own, SMALL[name], start).arrays[result]
    np.testing.assert_allclose(left.astype(np.float64), wanted.astype(np.float64), rtol=1e-2 if "16" in name else 1e-4)


@pytest.mark.spread(2, 5)
@pytest.mark.parametrize(("name", "on"), CASES)
def test_the_promised_gain_is_that_of_a_text_that_computes_the_same(name: str, on: str) -> None:
    machine = load_machine(on)
    found = advised(TEXTS[name], SIZES[name], machine)
    (block,) = of_kind(found, "registers")
    assert block.gain > 1.5 and "for each thread" in block.what
    assert_as_predicted(found, machine)
    changed = kernel(load_file(Source("k.roof", block.text)), "k")
    require_legal(changed)
    assert_computes(name, changed)


@pytest.mark.parametrize("name", list(TEXTS))
def test_every_block_computes_the_same(name: str) -> None:
    """Also those that are not the fastest."""
    from roofdsl.advise.register_blocks import blocked
    from roofdsl.lang.write import written

    given = load_file(Source("k.roof", TEXTS[name])).kernels["k"]
    (nest,) = nests_to_block(given.tree)
    arrays = {a.name: a for a in kernel(load_file(Source("k.roof", TEXTS[name])), "k").arrays}
    sizes = {c.var.text: 8 for c in nest.clauses}
    if name == "gemm_f32":
        sizes["j"] = 4
    hows = list(thread_blocks(nest, sizes, arrays))
    assert len(hows) >= 3 and keeps_updates(nest)
    for how in hows:
        text = written(given, blocked(given.tree, nest, how))
        assert_computes(name, kernel(load_file(Source("k.roof", text)), "k"))


def nest_of(text: str) -> tuple[Nest, Kernel]:
    checked = load_file(Source("k.roof", text))
    (nest,) = nests_to_block(checked.kernels["k"].tree)
    return nest, kernel(checked, "k")


def blocks_of(text: str, sizes: Mapping[str, int]) -> list[dict[str, int]]:
    nest, own = nest_of(text)
    return [dict(how.factors) for how in thread_blocks(nest, sizes, {a.name: a for a in own.arrays})]


def test_the_blocks_that_fit() -> None:
    every = [{"i": 4, "j": 4}, {"i": 8, "j": 8}, {"i": 8, "j": 4}, {"i": 4, "j": 8}, {"i": 2, "j": 2}]
    assert blocks_of(TEXTS["matmul"], {"i": 64, "j": 64, "k": 7}) == every
    assert blocks_of(TEXTS["matmul"], {"i": 4002, "j": 64}) == [{"i": 2, "j": 4}, {"i": 2, "j": 8}, {"i": 2, "j": 2}]
    assert blocks_of(TEXTS["matmul"], {"i": 63, "j": 6}) == [{"j": 2}]
    assert blocks_of(TEXTS["matmul"], {"i": 63, "j": 65}) == []
    assert blocks_of(TEXTS["matmul"], {"k": 64}) == []  # of an unknown extent, no part is known
    wide = TEXTS["matmul"].replace("f64", "c128")  # 64 results of 16 bytes need 256 registers
    assert blocks_of(wide, {"i": 64, "j": 64}) == [every[0], *every[2:]]
    nest, own = nest_of(TEXTS["matmul"])
    assert registers(nest, {"i": 8, "j": 8}, {a.name: a for a in own.arrays}) == 2 * (64 + 8 + 8)


def test_a_block_is_of_the_loops_that_share_most() -> None:
    assert blocks_of(TEXTS["conv1x1"], {"s": 8, "o": 8, "p": 8, "q": 8})[0] == {"o": 4, "q": 4}
    assert blocks_of(TEXTS["batched"], {"b": 8, "i": 8, "j": 8})[0] == {"i": 4, "j": 4}


def test_an_element_that_two_loops_update_keeps_its_order_or_is_refused() -> None:
    """y[i + r] gets its updates from pairs of i and r."""
    text = HEAD.format("n, m", "A: f64[n, n, m], x: f64[n, m]", "y: f64[2 * n, n]",
                       "i in range(n), r in range(n), j in range(n), k in range(m)",
                       "y[i + r, j] += A[i, r, k] * x[j, k]")  # fmt: skip
    nest, _ = nest_of(text)
    assert not keeps_updates(nest)
    found = advised(text, {"n": 64, "m": 64}, load_machine("v100"))
    assert not of_kind(found, "registers")
    (refused,) = [r for r in found.refused if r.kind == "registers"]
    assert refused.illegal


def test_large_blocks_are_not_tried_where_smaller_ones_reach_the_operations() -> None:
    found = advised(TEXTS["matmul"], {"n": 1024}, load_machine("v100"))
    said = {r.what: r.why for r in found.refused if r.kind == "registers"}
    small = "C in registers (4 x 4 of i, j for each thread)"
    assert [a.what for a in of_kind(found, "registers")] == [small]
    assert said["C in registers (8 x 8 of i, j for each thread)"] == f"no faster than {small}"


def test_the_command_applies_the_block() -> None:
    flags = ["--machine", "h200", "--set", "n=1024", "--apply", "1"]
    run = CliRunner().invoke(cli, ["advise", "matmul", *flags])
    assert run.exit_code == 0, run.output
    changed = kernel(load_file(Source("k.roof", run.output)), "matmul")
    require_legal(changed)
    start = inputs(apply(changed), {"n": 8})
    wanted = start["C"] + start["A"] @ start["B"]
    np.testing.assert_allclose(execute(apply(changed), {"n": 8}, start).arrays["C"], wanted, rtol=1e-12)
