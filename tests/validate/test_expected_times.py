"""Measurements against expected times: both ratios, verdicts, the largest cause, and strict math on both sides."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from roofdsl.cli.main import run
from roofdsl.codegen.generate import generate
from roofdsl.lang.record import replace as with_fields
from roofdsl.machine.find import load_machine
from roofdsl.machine.kernel_sources import kernel
from roofdsl.measure.measurement import MATH, Measurement
from roofdsl.plot.roofline_points import overlay
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.kernel import predict
from roofdsl.predict.on_cores import on_cores
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from roofdsl.tell.as_text import to_text
from roofdsl.tell.validation import blocks, to_json
from roofdsl.validate.compare import compare
from roofdsl.validate.run import compare_all
from tests.measure.examples import EXAMPLE

MACHINE = load_machine("haswell_e5_2695v3")
STRICT = Options(code=Code("stated", math="strict"), accesses="compiled")


def predicted(n: int = 2000) -> Prediction:
    return predict(kernel("gemv"), {"n": n}, MACHINE, STRICT)


def measured(p: Prediction, time_s: float) -> Measurement:
    times = (0.99 * time_s, time_s, 1.01 * time_s)
    return replace(EXAMPLE, kernel=p.kernel, parameters=p.parameters, work=p.work, times_s=times)


@pytest.mark.parametrize(
    ("part", "verdict"),
    [(1.0, "as predicted"), (1.3, "as predicted"), (1.4, "slower than predicted"), (0.76, "as predicted"),
     (0.7, "faster than predicted"), (0.15, "above the roof")],
)  # fmt: skip
def test_verdicts_are_on_the_expected_time(part: float, verdict: str) -> None:
    p = predicted()
    assert p.expected is not None
    time_s = part * float(p.expected.expected_s)
    found = compare(p, measured(p, time_s), MACHINE)
    assert found.verdict == verdict
    assert found.ratio == pytest.approx(1 / part)
    assert found.bound_ratio == pytest.approx(float(p.bound_s) / time_s)


@pytest.mark.parametrize(("threads", "code"), [(1, "loops"), (20, "parallel")])
def test_code_on_one_core_is_not_expected_to_use_all(threads: int, code: str) -> None:
    skylake = load_machine("skylake_gold_6148")
    gemv = kernel("gemv")
    ran = replace(EXAMPLE, kernel="gemv", parameters=(("n", 2000),), threads=threads, variant=code, details={})
    (found,) = compare_all([gemv], [ran], skylake, warm=False)
    whole = predict(gemv, {"n": 2000}, skylake, Options(accesses="compiled"))
    assert found.prediction.bound_s == whole.bound_s
    if threads > 1:
        assert found.prediction.expected is None  # of several threads, only with --cores
        return
    one = on_cores(gemv, {"n": 2000}, skylake, 1, Options(code=Code("stated"), accesses="compiled")).expected
    assert one is not None and found.expected_s == pytest.approx(float(one.expected_s))


def test_a_gap_without_a_cause_is_said_to_be_one() -> None:
    """Causes below a hundredth of the expected time explain nothing of a run three times as slow."""
    p = predicted()
    e = p.expected
    assert e is not None
    slow = measured(p, 3 * float(e.expected_s))
    cause = e.causes[0].cause
    assert cause in "\n".join(to_text(blocks([compare(p, slow, MACHINE)])))
    small = tuple(with_fields(c, share_s=c.share_s / 1000) for c in e.causes)
    unexplained = with_fields(p, expected=with_fields(e, causes=small))
    told = "\n".join(to_text(blocks([compare(unexplained, slow, MACHINE)])))
    assert "none that the model knows" in told and cause not in told


def test_what_is_told() -> None:
    p = predicted()
    assert p.expected is not None
    found = compare(p, measured(p, 1.5 * float(p.expected.expected_s)), MACHINE)
    (document,) = to_json([found])["comparisons"]
    assert document["expected_s"] == float(p.expected.expected_s)
    assert document["predicted_s"] == float(p.bound_s)
    assert (document["ratio"], document["bound_ratio"]) == (found.ratio, found.bound_ratio)
    assert document["prediction"]["causes"][0]["cause"] == "chain of 3-cycle adds"
    text = "\n".join(to_text(blocks([found])))
    assert "below the roof:" in text and "chain of 3-cycle adds" in text and "`--math relaxed`" in text
    share = float(p.expected.causes[0].share_s / p.expected.expected_s)
    assert f"  {100 * share:.0f} %  " in text
    above = compare(p, measured(p, 0.5 * float(p.bound_s)), MACHINE)
    assert above.verdict == "above the roof" and "below the roof:" not in "\n".join(to_text(blocks([above])))
    bound, mark, hollow = overlay(found)
    assert (bound.origin, mark.origin, hollow.origin) == ("predicted", "expected", "measured")
    assert mark.rate_per_s == pytest.approx(p.work / float(p.expected.expected_s))


def test_results_are_compared_with_the_math_they_were_compiled_with() -> None:
    p = predicted()
    strict = replace(measured(p, 1.0), details={MATH: "strict"}, compiler="numba 0.68.1", variant="loops")
    relaxed = replace(strict, details={})
    both = compare_all([kernel("gemv")], [strict, relaxed], MACHINE, warm=False)
    models = [c.prediction.expected.model for c in both if c.prediction.expected is not None]
    assert models == ["stated: strict compiler", "stated: relaxed compiler"]
    parallel = replace(strict, variant="parallel")
    (other,) = compare_all([kernel("gemv")], [parallel], MACHINE, warm=False)
    assert other.prediction.expected is None and other.ratio == other.bound_ratio


def test_strict_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert "reassoc" in generate(kernel("gemv"), "python", "loops").source
    assert "fastmath" not in generate(kernel("gemv"), "python", "loops", math="strict").source
    quick = ["--repeats", "2", "--budget", "0.1", "--json"]
    assert run(["measure", "gemv", "--set", "n=8", "--math", "strict", *quick]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["details"]["math"] == "strict" and "fastmath" not in document["compiler"]
    assert run(["measure", "gemv", "--backend", "gpu", "--math", "strict", "--set", "n=8"]) == 2
    assert "--math is about the code for CPUs" in capsys.readouterr().err
