"""Every shipped exercise: the engine's answer in many spellings is right, usual mistakes are told from each other."""

from __future__ import annotations

import pytest

from roofdsl.classroom.exercise_file import COURSE, course
from roofdsl.classroom.judge_answers import judge
from roofdsl.classroom.student_version import StudentVersion, drawn, student_version
from tests.classroom.spellings import one, right_answers, versions, wrong_answers

EXERCISES = course()
DEAR = ("tile-traffic", "loop-order", "interchange", "fuse", "write-maxplus", "transpose-lines")
"""Exercises of which one version is enough here: counting theirs takes a second."""


def test_the_course() -> None:
    assert len(EXERCISES) >= 40
    assert {e.unit for e in EXERCISES.values()} == set(COURSE)
    kinds = {p.kind for e in EXERCISES.values() for p in e.parts}
    assert kinds == {"expression", "number", "choice", "kernel", "prediction", "measurement"}
    assert all(p.hints for e in EXERCISES.values() for p in e.parts if p.kind != "choice")


@pytest.mark.spread(2)
@pytest.mark.parametrize("name", EXERCISES)
def test_right_and_wrong_answers(name: str) -> None:
    exercise = EXERCISES[name]
    for k, version in enumerate(versions(exercise)):
        if k and name in DEAR:
            break
        assert "{" not in version.text
        wrongs = 0
        for part in version.parts:
            assert part.part.kind not in ("expression", "number") or part.answer is not None
            spellings = right_answers(part, version)
            if spellings:
                assert len(spellings) >= 3, (part.part.id, spellings)
            for text in sorted(spellings) if k == 0 else sorted(spellings)[:1]:
                found = one(version, part, text)
                assert found.correct, (version.values, part.part.id, text, found.message)
            for text, told in wrong_answers(part, version):
                wrongs += 1
                if k and part.part.kind == "kernel":
                    continue
                found = one(version, part, text)
                assert not found.correct and found.score == 0, (version.values, part.part.id, text)
                assert any(t in found.message for t in told), (version.values, part.part.id, text, found.message)
                assert found.message != "Not right. The hints lead to the answer step by step."
        assert wrongs >= 3 or name == "measure-triad", name  # that one has a test of its own below


def test_versions_are_the_same_everywhere() -> None:
    """Values drawn for a student are fixed by the text of exercise and student alone."""
    names = [f"student{k}@example.org" for k in range(40)]
    triad = [drawn(EXERCISES["stream-triad"], n)["type"] for n in names]
    assert triad[:8] == ["f64", "f64", "f64", "f32", "f32", "f64", "f32", "f32"]
    assert {"f64", "f32"} == set(triad)
    orders = {tuple(o.text for o in student_version(EXERCISES["summit-streams"], n).parts[0].options) for n in names}
    assert len(orders) > 5


PUBLISHED = [
    ("friend-gemv", "expected", {"n": 16384}, 225e9),  # Model Driven Code Optimization I: 225 GF/sec
    ("three-kernels", "add", {}, 37.5e9),  # the same, 900/24
    ("three-kernels", "matmul", {}, 7e12),
    ("semiring-product", "rate", {}, 3.5e12),  # the same, the ceiling without FMA
    ("summit-streams", "three", {}, 150e9),  # the same, Exploiting Total Available Bandwidth
    ("summit-streams", "other", {}, 64e9),
    ("summit-streams", "six", {}, 170e9),
    ("opteron-balance", "peak", {}, 73.6e9),  # Williams, Waterman, Patterson
    ("opteron-balance", "add", {}, 36.8e9),
    ("crossing", "n", {"type": "bf16"}, 1773 / 2),  # An Interactive Guide to Rooflines: 1773 under the sparse peak
    ("dot-breakdown", "math", {"n": 1048576}, 1.06e-9),  # the same, dot (1M)
    ("dot-breakdown", "comms", {"n": 1048576}, 1.25e-6),
    ("dot-breakdown", "lead", {"n": 1048576}, 1.18e3),
    ("channels", "beta", {}, 128e9),  # 6 channels x 2666 MT/s x 8 B
    ("peak-by-hand", "f64", {}, 1536e9),  # 20 cores x 2.4 GHz x 32 a cycle
    ("lstm-launches", "fused", {}, 16 * 4.2e-6),  # Time-Based Roofline, section III.B
    ("convolution", "W", {"h": 112, "f": 64, "s": 2}, 3_568_435_200),  # the same, section IV: its default
    ("convolution", "side", {"h": 112, "f": 64, "s": 2}, 55),
    ("largest-tile", "b", {"Z": "32 KiB", "type": "f64"}, 36),  # floor(sqrt(32768/24))
]


@pytest.mark.spread(8)
@pytest.mark.parametrize(("name", "part", "values", "published"), PUBLISHED)
def test_published_figures(name: str, part: str, values: dict[str, object], published: float) -> None:
    """Answers that documents print, or that follow from theirs by hand."""
    exercise = EXERCISES[name]
    version = StudentVersion(exercise, {n: values.get(n, choices[0]) for n, choices in exercise.vary.items()})
    found = next(p for p in version.parts if p.part.id == part)
    assert float(found.value) == pytest.approx(published, rel=0.005)


FORMULAS = [
    ("stream-triad", "Q", "24*n"),
    ("gemv", "Q", "8*n**2 + 16*n"),
    ("matmul-intensity", "once", "n/12"),
    ("matmul-intensity", "both", "n/16"),
    ("dot", "W", "2*n - 1"),
    ("dot", "Q", "4*n + 2"),
    ("conventions", "overwrite", "32*n"),
    ("complex-axpy", "W", "8*n"),
    ("triangular-solve", "W", "n**2"),
    ("cache-for-balance", "IZ", "sqrt(Z)/(24*sqrt(6))"),
    ("cache-for-balance", "least", "3456*R**2"),
    ("tile-traffic", "I", "b/12"),
    ("no-cache", "three", "16*n**3"),
]


@pytest.mark.spread(6)
@pytest.mark.parametrize(("name", "part", "text"), FORMULAS)
def test_formulas_of_the_documents(name: str, part: str, text: str) -> None:
    """The closed forms that the deck, the guide and the counting rules print, for the first version of each."""
    version = next(versions(EXERCISES[name]))
    found = next(p for p in version.parts if p.part.id == part)
    assert one(version, found, text).correct


HASWELL, SKYLAKE = 2.3, 2.4  # cycles a nanosecond
BELOW_THE_ROOF = [
    # chains: 3 cycles an addition; vectors: one addition of 4 or 8 numbers a cycle
    ("reordered-sum", "strict", {"type": "f64", "n": 4096}, 3),
    ("reordered-sum", "relaxed", {"type": "f64", "n": 4096}, 1 / 4),
    ("reordered-sum", "relaxed", {"type": "f32", "n": 4096}, 1 / 8),
    ("reordered-sum", "gain", {"type": "f64", "n": 4096}, 3 * 4),
    ("reordered-sum", "gain", {"type": "f32", "n": 4096}, 3 * 8),
    ("chain-of-adds", "one", {"type": "f64", "n": 900}, 899 * 3 / HASWELL * 1e-9),
    ("chain-of-adds", "two", {"type": "f64", "n": 900}, 899 * 3 / HASWELL * 1e-9),
    ("chain-of-adds", "chains", {"type": "f32", "n": 700}, 3),
    # a store a cycle, of a number or of 32 bytes
    ("against-the-rows", "columns", {"type": "f64", "n": 24}, 24 * 24),
    ("against-the-rows", "columns", {"type": "f32", "n": 32}, 32 * 32),
    ("against-the-rows", "rows", {"type": "f64", "n": 24}, 24 * 24 / 4),
    ("against-the-rows", "rows", {"type": "f32", "n": 32}, 32 * 32 / 8),
    ("against-the-rows", "gain", {"type": "f32", "n": 32}, 8),
    # 16 cycles for 8 numbers of f64, 10 for 16 of f32; 4969.2 GB/s from L1
    ("division", "each", {"type": "f64", "n": 1536}, 16 / 8),
    ("division", "each", {"type": "f32", "n": 1536}, 10 / 16),
    ("division", "time", {"type": "f64", "n": 1536}, 1536 * 2 / 20 / SKYLAKE * 1e-9),
    ("division", "gain", {"type": "f64", "n": 1536}, 2 / 20 / SKYLAKE / (16 / 4969.2)),
    ("division", "gain", {"type": "f32", "n": 1024}, 10 / 16 / 20 / SKYLAKE / (8 / 4969.2)),
    ("short-loops", "row", {"m": 60, "r": 6}, 1 + 2),
    ("short-loops", "row", {"m": 60, "r": 7}, 1 + 3),
    ("short-loops", "row", {"m": 60, "r": 11}, 2 + 3),
    ("short-loops", "time", {"m": 100, "r": 10}, 100 * (2 + 2) / HASWELL * 1e-9),
    ("short-loops", "padded", {"m": 80, "r": 5}, 2),
    ("taking-turns", "bound", {"type": "f64", "n": 4000000}, 64e6 / 32.35e9),
    ("taking-turns", "loads", {"type": "f64", "n": 4000000}, 64e6 / 64 / HASWELL * 1e-9),
    ("taking-turns", "expected", {"type": "f64", "n": 4000000},
     64e6 * (1 / 32.35e9 + 1 / 73.6e9 + 1 / 147.2e9 + 1 / 147.2e9)),
    ("taking-turns", "expected", {"type": "f32", "n": 6000000},
     48e6 * (1 / 32.35e9 + 1 / 73.6e9 + 1 / 147.2e9 + 1 / 147.2e9)),
]  # fmt: skip


@pytest.mark.spread(9)
@pytest.mark.parametrize(("name", "part", "values", "by_hand"), BELOW_THE_ROOF)
def test_why_a_loop_is_below_the_roof(name: str, part: str, values: dict[str, object], by_hand: float) -> None:
    """What a student finds on paper from the text of the exercise is accepted, and so is the engine's own value."""
    version = StudentVersion(EXERCISES[name], values)
    found = next(p for p in version.parts if p.part.id == part)
    unit = f" {found.part.unit}" if found.part.unit else ""
    in_unit = by_hand / {"": 1, "ns": 1e-9, "ms": 1e-3}[found.part.unit]
    assert one(version, found, f"{in_unit:.9g}{unit}").correct, float(found.value)
    assert not one(version, found, f"{in_unit * 1.25:.9g}{unit}").correct


def test_an_expected_time_needs_a_machine_that_states_instructions() -> None:
    from roofdsl.classroom.engine import answer
    from roofdsl.classroom.query import Query
    from roofdsl.lang.diagnostics import CommandError

    def ask(machine: str, which: str, **more: object) -> object:
        return answer(Query("predict", "shipped gemv", machine, (("n", 100),), which=which, more=tuple(more.items())))

    for machine, more, says in [
        ("v100_deck", {"math": "strict"}, "no `expected`: expected times need the `instruction` lines"),
        ("haswell_e5_2695v3", {}, "it needs `math`"),
        ("haswell_e5_2695v3", {"math": "fast"}, "`math` is `strict` or `relaxed`"),
    ]:
        with pytest.raises(CommandError, match=says):
            ask(machine, "expected", **more)
    with pytest.raises(CommandError, match="states no latency of `div f64 256`"):
        answer(Query("latency", machine="haswell_e5_2695v3", which="div f64 256"))
    with pytest.raises(CommandError, match="states no clock"):
        answer(Query("clock", machine="v100"))


def test_predict_measure_explain() -> None:
    """A measurement of the exercise's kernel is accepted, and judges the explanation; a different kernel's is not."""
    import json

    from roofdsl.classroom.query import kernel_of
    from roofdsl.measure.measurement import Measurement, Verified, source_hash

    version = student_version(EXERCISES["measure-triad"], "ada")
    n = version.values["n"]
    kernel = kernel_of(version.kernels["triad"])

    def result(name: str, sha: str, size: int, seconds: float) -> str:
        verified = Verified("numpy", 0.0, 0.0, 0.0, (("n", 100),))
        m = Measurement(
            name, (("n", size),), "cpu", "loops", {}, {}, "2026-11-21T12:00:00+00:00", (seconds,) * 5, 1, "cold", 1,
            True, "numba", 2 * size, "FLOP", 24 * size, verified, "triad", sha, "0" * 64,
        )  # fmt: skip
        return json.dumps(m.to_json())

    sha = source_hash(kernel)
    seconds = 24 * n / 10e9
    letters = {o.text: o.letter for o in version.parts[2].options}
    within = next(letter for text, letter in letters.items() if "within" in text)
    lower = next(letter for text, letter in letters.items() if "lower" in text)
    good = {"prediction": "0.85 GFLOP/s", "result": result("triad", sha, n, seconds)}
    found = judge(version, {**good, "why": within})
    assert [p.correct for p in found.parts] == [True, True, True]
    assert "833.3 MFLOP/s, predicted 850 MFLOP/s: 0.98 of the prediction" in found.parts[1].message
    assert not judge(version, {**good, "why": lower}).parts[2].correct
    assert judge(version, {**good, "prediction": "5 GFLOP/s", "why": lower}).parts[2].correct
    for wrong, says in [
        (result("triad", "1" * 64, n, seconds), "a kernel that differs"),
        (result("scale", sha, n, seconds), "a kernel that differs"),
        (result("triad", sha, n // 2, seconds), "shorter than asked"),
        (good["result"].replace("9e", "8e").replace(f"{seconds}", "1.0", 1), ""),
        ("{}", "schema"),
    ]:
        _, part, choice = judge(version, {**good, "result": wrong, "why": within}).parts
        assert not part.correct and says in part.message, part.message
        assert not choice.correct and "measurement" in choice.message
    alone = judge(version, {"why": within})
    assert not alone.parts[2].correct and "measurement" in alone.parts[2].message
