"""The ranking: gains are those of `predict` for the changed kernel, and what is illegal is never advised."""

from __future__ import annotations

import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest

from roofdsl import budget
from roofdsl.advise.advise import Advice, Advised, advise
from roofdsl.advise.kernel_text import lowered
from roofdsl.advise.program import advise_program
from roofdsl.advise.workers import Task, Tell, run_all
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import load_machine, shipped_model
from roofdsl.machine.model import Machine
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.program import predict_launches
from roofdsl.tell.advice import blocks, to_json, where_time_goes
from roofdsl.tell.as_text import to_text
from tests.predict.machines import machine as machine_of_lines


def advised(text: str, sizes: Mapping[str, int], machine: Machine, **how: Any) -> Advised:
    target = shipped_model(text)
    assert target is not None and target.name is not None
    checked = load_file(target.path)
    return advise(checked.kernels[target.name], kernel(checked, target.name), sizes, machine, **how)


def of_kind(found: Advised, kind: str) -> list[Advice]:
    return [a for a in found.advice if a.kind == kind]


def assert_as_predicted(found: Advised, machine: Machine, options: Options | None = None) -> None:
    """Every gain is the quotient of two predictions, or at least not above it where it is a bound."""
    values = dict(found.now.prediction.parameters)
    for one in found.advice:
        if not one.text or one.kind == "chain":  # what is printed for a chain is tested on the command line
            continue
        own = options or Options()
        then = predict(lowered(one.text, found.kernel, values), values, machine, own)
        if one.estimate.exact:
            assert one.gain == found.now.time_s / then.bound_s, one.what
            assert one.estimate.at_most or then.bound == one.estimate.prediction.bound
        else:
            assert one.gain <= found.now.time_s / then.bound_s, one.what


@pytest.mark.thorough
def test_matmul_on_a_cpu() -> None:
    machine = load_machine("skylake_gold_6148")
    found = advised("matmul_ijk", {"n": 48}, machine, effort_s=1.0)
    assert found.now.prediction.bound == "L1"
    assert_as_predicted(found, machine)
    single = [a for a in found.advice if a.kind != "chain"]
    gains = [a.gain for a in single]
    assert single == sorted(single, key=lambda a: (a.kind == "type", -a.gain))  # what keeps the precision comes first
    assert all(g >= Fraction(101, 100) for g in gains)
    (block,) = of_kind(found, "registers")
    assert block.gain > Fraction(6, 5)
    (narrow,) = of_kind(found, "type")
    assert narrow.gain == 2 and narrow.rounding
    assert any(r.kind == "tile" and "stays" not in r.why for r in found.refused)


@pytest.mark.thorough
def test_tiles_and_the_interchange() -> None:
    """Bound by what L1 misses: a tile, i k j, and B by columns, all but equal by this model, lead to the L1's bound."""
    machine = load_machine("skylake_gold_6148")
    found = advised("matmul_ijk", {"n": 512}, machine, effort_s=1.0)
    assert found.now.prediction.bound == "L2"
    (order,), (tile,) = of_kind(found, "order"), of_kind(found, "tile")
    assert order.what == "order i, k, j"
    assert tile.what.startswith("tile ")
    for one in (order, tile):
        assert one.estimate.exact and one.estimate.prediction.bound == "L1"
        assert one.lifts[0].name == "L2" and one.lifts[0].after_s < one.lifts[0].before_s
        assert one.gain > 4
    chain = found.advice[-1]
    assert chain.kind == "chain" and chain.gain > found.advice[0].gain


@pytest.mark.thorough
def test_matmul_on_a_gpu() -> None:
    machine = load_machine("v100")
    found = advised("matmul", {"n": 256}, machine, effort_s=1.0)
    assert {"type", "tensor", "registers"} <= {a.kind for a in found.advice}
    half = of_kind(found, "tensor")[0]
    assert half.rounding and half.estimate.prediction.unit == "tensor"
    threads = next(r for r in found.refused if r.what.startswith("threads: parallel for i, j"))
    assert "no gain" in threads.why  # the generated code is launched so already, and predicted so


def test_what_dependences_forbid() -> None:
    machine = load_machine("skylake_gold_6148")
    found = advised("seidel_2d", {"n": 100, "tsteps": 4}, machine, keep_rounding=True)
    assert not {a.kind for a in found.advice} & {"order", "tile", "type", "reciprocal"}
    illegal = [r for r in found.refused if r.illegal]
    assert {r.what for r in illegal} >= {"order t, j, i", "order i, t, j"}
    assert all("dependence on `A`" in r.why and "line" not in r.why for r in illegal)
    assert {r.kind for r in found.refused if r.why == "it changes rounding"} == {"type", "reciprocal"}


@pytest.mark.thorough
def test_sums_are_not_regrouped() -> None:
    """The same loops in another order would add up in another order, which rounds differently."""
    text = """kernel sums(n):
    in A: f64[n, n]
    inout s: f64[1]
    for i in range(n), j in range(n):
        s[0] += A[j, i]
"""
    checked = load_file(Source("sums.roof", text))
    machine = load_machine("skylake_gold_6148")
    found = advise(checked.kernels["sums"], kernel(checked, "sums"), {"n": 64}, machine)
    assert not of_kind(found, "order")
    assert any("changes the order in which `s[0]` is updated" in r.why for r in found.refused if r.illegal)


def test_stores_past_the_caches() -> None:
    """Three arrays cross the memory's boundary instead of four: 4/3."""
    machine = load_machine("skylake_gold_6148")
    found = advised("triad", {"n": 10_000_000}, machine, keep_rounding=True)
    (stores,) = of_kind(found, "stores")
    assert stores.gain == Fraction(4, 3)
    assert_as_predicted(found, machine)
    asked = advised("triad", {"n": 10_000_000}, machine, options=Options(traffic="write_allocate"))
    assert not of_kind(asked, "stores")


def test_stores_past_the_caches_count_each_time() -> None:
    """A cache of 20 KiB holds 800 elements of `B` while they are stored 50 times, so that their lines move twice; past
    the caches, they move 50 times. With 1024 elements, they move 100 times, or 50 times.
    """
    checked = load_file(
        Source(
            "t.roof",
            """
kernel again(n, m):
    in A: f64[m, n], c: f64[n]
    out B: f64[n]
    for i in range(m), j in range(n):
        B[j] = A[i, j] * c[j]
""",
        )
    )
    given = machine_of_lines("peak f64 1 TFLOP/s", "cache L2 20 KiB, 400 GB/s, line 64 B, write_allocate")
    few, many = (
        advise(checked.kernels["again"], kernel(checked, "again"), {"n": n, "m": 50}, given) for n in (800, 1024)
    )
    assert not of_kind(few, "stores")
    (stores,) = of_kind(many, "stores")
    assert "stream B[j] = A[i, j] * c[j]" in stores.text
    assert stores.gain == Fraction(4 * 50 * 1024, (2 * 50 + 1) * 1024)
    assert_as_predicted(many, given)


APART = """
kernel strided(n):
    in A: f64[n]
    out t: f64[8 * n]
    for i in range(n):
        t[8 * i] = A[i]

kernel again(n):
    in A: f64[n]
    out t: f64[n]
    for i in range(n):
        t[i] = A[i]
    for i in range(n):
        t[i] = t[i] * 2
"""


@pytest.mark.parametrize(("name", "why"), [("strided", "fill no lines"), ("again", "`t` is also accessed elsewhere")])
def test_no_stores_past_the_caches_where_the_language_has_none(name: str, why: str) -> None:
    """`stream` is refused there, so that counting by `load_store` would promise a gain that no code has."""
    checked = load_file(Source("t.roof", APART))
    machine = load_machine("skylake_gold_6148")
    found = advise(checked.kernels[name], kernel(checked, name), {"n": 1_000_000}, machine)
    assert not of_kind(found, "stores")
    assert any(r.kind == "stores" and why in r.why for r in found.refused)


def test_ceilings_are_lifted() -> None:
    machine = load_machine("opteron_2356")
    names = ("mul/add imbalance", "no SIMD")
    found = advised("matmul", {"n": 400}, machine, options=Options(ceilings=names))
    (simd,) = of_kind(found, "ceiling")
    assert simd.what == 'past the ceiling "no SIMD"' and simd.gain == 2 and simd.text == ""
    assert any(r.what == 'past the ceiling "mul/add imbalance"' for r in found.refused)


def test_program() -> None:
    """36 launches bound the LSTM; one launch takes a 36th of their time."""
    target = shipped_model("lstm_forward")
    assert target is not None
    found, whole = advise_program(load_file(target.path), "lstm_forward", {}, load_machine("v100"))
    assert whole.total.launches == 36
    assert found.advice[0].kind == "launches"
    assert found.advice[0].gain == 36


def test_workers_end_what_takes_too_long() -> None:
    def slow(tell: Tell) -> None:
        tell("at most")
        while time.process_time() < 60:
            pass
        tell("exact")

    def quick(tell: Tell) -> None:
        tell("at most")
        tell("exact")

    def silent(tell: Tell) -> None:
        time.sleep(60)

    tasks: list[Task] = [slow, quick, silent, quick]
    done: list[int] = []
    assert run_all(tasks, 0.1, done.append) == ["at most", "exact", None, "exact"]
    assert done == [1, 2, 3, 4]


def test_without_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roofdsl.advise.workers.CAN_FORK", False)
    assert run_all([lambda tell: tell(1), lambda tell: tell(2)], 1.0, lambda done: None) == [1, 2]


def of_shipped(name: str, machine: str, sizes: Mapping[str, int]) -> Advised:
    target = shipped_model(name)
    assert target is not None
    given = load_file(target.path)
    return advise(given.kernels[name], kernel(given, name, sizes), sizes, load_machine(machine))


def test_what_changes_the_precision_comes_last() -> None:
    found = of_shipped("triad", "skylake_gold_6148", {"n": 10_000_000})
    marks = [one.precision for one in found.advice]
    assert marks == sorted(marks)
    assert True in marks and False in marks
    assert not found.compulsory
    kinds = {step.kind for one in found.advice if not one.precision for step in one.steps}
    assert "type" not in kinds


@pytest.mark.thorough
def test_why_nothing_helps_at_this_precision() -> None:
    found = of_shipped("gemv", "v100", {"n": 4096})
    assert found.advice
    assert all(one.precision for one in found.advice)
    assert found.compulsory
    text = "\n".join(to_text(blocks(found, load_machine("v100"), show_all=False)))
    assert "at this precision, nothing helps: all traffic of HBM is compulsory: 134.3 MB" in text
    assert text.index("at this precision") < text.index("with results of lower precision") < text.index("f32 in place")
    assert [one["changes_precision"] for one in to_json(found)["advice"]] == [True] * len(found.advice)


@pytest.mark.thorough
def test_no_more_processes_are_begun_than_the_budget_of_the_command_has_time_for() -> None:
    def task(tell: Tell) -> None:
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass
        tell("done")

    with budget.beginning(0.8, 1 << 40, whole=False) as own, budget.region("all"):
        found = run_all([task] * 40, 2.0, lambda done: None, "some of them")
    assert "done" in found
    assert None in found
    assert list(own.left_out) == ["some of them"]


def test_the_command_that_tells_more_of_a_collective() -> None:
    """By the collective's kind, which the prediction carries; its label is text for people."""
    text = (
        "kernel add(n):\n    in x: f32[n]\n    inout y: f32[n]\n    for i in range(n):\n        y[i] += x[i]\n"
        "program two(n):\n    run add(n)\n    collective reduce_scatter y: f32[n] among 4\n"
    )
    machine = load_machine("h100_sxm")
    found = predict_launches(load_file(Source("two.roof", text)), "two", {"n": 1000}, machine)
    told = "\n".join(to_text(where_time_goes(found, machine, "two.roof")))
    assert "roofdsl collective reduce-scatter --bytes 4000B --devices 4 --machine h100_sxm --link NVLink" in told
    assert [part.collective for part in found.parts] == [None, "reduce-scatter"]
    assert (found.parts[0] + found.parts[1]).collective is None and (found.parts[1] * 3).collective == "reduce-scatter"
