"""Baselines: the rank test against enumeration, its false alarms, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.machine.find import load_machine
from roofdsl.machine.kernel_sources import kernel as shipped_kernel
from roofdsl.measure.measurement import CORES, OTHERS, Measurement, save
from roofdsl.tell.validation import to_json
from roofdsl.validate.baseline import LEVEL, Baseline, Regressions, against, described, load_baseline
from roofdsl.validate.compare import compare
from roofdsl.validate.rank_test import larger_p, least_p
from roofdsl.validate.run import compare_all
from tests.validate.test_compare import MACHINE, measured, predicted

P = predicted("gemv", 4096)
MEDIAN = 3 * float(P.bound_s)


def run(times: list[float] | np.ndarray, **changes: object) -> Measurement:
    return replace(measured(P, 1), times_s=tuple(float(t) for t in times), **changes)  # type: ignore[arg-type]


def judged(before: Measurement, now: Measurement, allowed: float = 0.05) -> Regressions:
    return against(Baseline("b.json", (before,)), [compare(P, now, MACHINE)], allowed)


def noise(seed: int, spread: float = 0.02, count: int = 20) -> np.ndarray:
    """Made-up times: lognormal, as run times are, with a long tail."""
    return MEDIAN * np.exp(spread * np.random.default_rng(seed).standard_normal(count))


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (4, 4), (5, 3)])
def test_probabilities_are_those_of_all_orders(sizes: tuple[int, int]) -> None:
    m, n = sizes
    ranks = range(m + n)
    every = [sum(ranks[k] for k in chosen) for chosen in combinations(ranks, n)]
    for chosen in combinations(ranks, n):
        after = [float(k) for k in chosen]
        before = [float(k) for k in ranks if k not in chosen]
        expected = sum(total >= sum(chosen) for total in every) / len(every)
        assert larger_p(before, after) == pytest.approx(expected, rel=1e-12)
    assert least_p(m, n) == pytest.approx(1 / len(every))


@pytest.mark.parametrize("seed", range(6))
def test_with_ties_the_approximation_is_close_to_shuffling(seed: int) -> None:
    random = np.random.default_rng(seed)
    before, after = random.integers(0, 8, 15).astype(float), random.integers(1, 9, 12).astype(float)
    both = np.concatenate([before, after])

    def pairs(late: np.ndarray, early: np.ndarray) -> float:
        return float((late[:, None] > early).sum() + (late[:, None] == early).sum() / 2)

    least, above = pairs(after, before), 0
    for _ in range(4000):
        random.shuffle(both)
        above += pairs(both[15:], both[:15]) >= least
    assert larger_p(list(before), list(after)) == pytest.approx(above / 4000, abs=0.025)


def test_equal_times_are_no_change_and_none_are_an_error() -> None:
    assert larger_p([1.0] * 5, [1.0] * 5) == 1.0
    with pytest.raises(ValueError, match="no times"):
        larger_p([], [1.0])


@pytest.mark.parametrize(
    ("factor", "allowed", "verdict"),
    [(1.3, 0.05, "slower than its baseline"), (1.08, 0.05, "slower than its baseline"), (1.0, 0.05, "not slower"),
     (1.08, 0.2, "not slower"), (0.7, 0.0, "not slower"), (1.04, 0.0, "slower than its baseline")],
)  # fmt: skip
def test_slower_same_and_faster(factor: float, allowed: float, verdict: str) -> None:
    found = judged(run(noise(1, 0.01)), run(factor * noise(2, 0.01)), allowed)
    assert found.changes[0].verdict == verdict
    assert found.changes[0].slower_by == pytest.approx(factor - 1, abs=0.02)


def test_less_than_a_percent_is_not_said_to_be_none() -> None:
    """0.4 % slower, of times without noise, was `0 % slower`."""
    times = 1e-3 + 1e-9 * np.arange(20)
    (change,) = judged(run(times), run(1.004 * times), allowed=0.0).changes
    assert change.verdict == "slower than its baseline" and described(change).startswith("0.4 % slower than")


def test_noise_is_no_regression() -> None:
    """A median 10 % longer among times that spread by half proves nothing."""
    assert judged(run(noise(3, 0.5)), run(1.1 * noise(4, 0.5))).changes[0].verdict == "not slower"


@pytest.mark.thorough
@pytest.mark.spread(1)
@pytest.mark.parametrize("spread", [0.01, 0.1, 0.5])
def test_false_alarms_are_rarer_than_the_level(spread: float) -> None:
    """Also of runs that are slower by all that is allowed; 3,000 tries at a level of 5 %."""
    alarms = 0
    for seed in range(3000):
        both = noise(seed, spread, 24)
        now = compare(P, run(1.05 * both[12:]), MACHINE)
        found = against(Baseline("b", (run(both[:12]),)), [now], 0.05, level=0.05)
        alarms += found.changes[0].verdict == "slower than its baseline"
    assert alarms / 3000 < 0.05


def test_the_level_is_that_of_all_runs_together() -> None:
    befores, nows = [], []
    for k in range(10):
        p = predicted("gemv", 1000 + k)
        befores.append(replace(measured(p, 0.5), times_s=tuple(range(100, 105))))
        nows.append(compare(p, replace(measured(p, 0.5), times_s=tuple(range(110, 115))), MACHINE))
    alone = against(Baseline("b", tuple(befores[:1])), nows[:1], 0.0)
    assert alone.changes[0].verdict == "slower than its baseline"
    assert alone.changes[0].p == pytest.approx(1 / 252) and LEVEL > 1 / 252
    found = against(Baseline("b", tuple(befores)), nows, 0.0)
    assert {c.verdict for c in found.changes} == {"inconclusive"}
    assert "5 and 5 repeats are too few" in found.changes[0].why


def test_other_programs_make_it_inconclusive() -> None:
    found = judged(run(noise(1)), run(2 * noise(2), details={OTHERS: 0.9}))
    assert found.changes[0].verdict == "inconclusive" and "other programs" in found.changes[0].why


def test_what_differs_is_named() -> None:
    before = run(noise(1), compiler="old 1", source_sha256="0" * 64, software={"numba": "0.1"})
    now = run(2 * noise(2), compiler="new 2", software={"numba": "0.2"})
    why = judged(before, now).changes[0].why
    assert why == "its text has changed; the compiler is new 2 instead of old 1; numba is 0.2 instead of 0.1"


def test_missing_and_new_runs_are_told() -> None:
    found = judged(run(noise(1), kernel="gone"), run(noise(2)))
    assert [m.kernel for m in found.missing] == ["gone"]
    assert found.changes[0].verdict == "not in the baseline"


def test_both_kinds_of_files_are_read(tmp_path: Path) -> None:
    before = run(noise(1))
    save(tmp_path / "a.json", [before])
    (tmp_path / "b.json").write_text(json.dumps(to_json([compare(P, before, MACHINE)])))
    for name in ("a.json", "b.json"):
        assert load_baseline(tmp_path / name).measurements == (before,)
    assert load_baseline(tmp_path / "b.json").predictions[0]["machine"] == MACHINE.name


def test_another_processor_and_another_machine_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="was measured on Z80, but this computer has"):
        judged(run(noise(1), device={"name": "Z80"}), run(noise(2)))
    document = to_json([compare(P, run(noise(1)), MACHINE)])
    now = [compare(P, run(noise(2)), MACHINE)]
    path = tmp_path / "b.json"

    def refusal() -> str:
        path.write_text(json.dumps(document))
        with pytest.raises(CommandError) as refused:
            against(load_baseline(path), now, 0.05)
        return refused.value.message

    document["comparisons"][0]["prediction"]["levels"][0]["bandwidth_bytes_per_s"] *= 2
    assert f"another file of machine {MACHINE.name}" in refusal()
    document["comparisons"][0]["prediction"]["machine"] = "other"
    assert "was compared with machine other" in refusal()


def test_each_run_has_rates_of_its_own(tmp_path: Path) -> None:
    """On one core, a kernel sees other rates of the same machine than on two."""
    kernel, machine = shipped_kernel("gemv"), load_machine("skylake_gold_6148")
    runs = [run(noise(k), parameters=(("n", 4096),), threads=k, details={CORES: k}) for k in (1, 2)]
    both = compare_all([kernel], runs, machine)
    assert both[0].prediction.machine_peak_per_s != both[1].prediction.machine_peak_per_s
    document = to_json(both)
    path = tmp_path / "b.json"
    path.write_text(json.dumps(document))
    for now in (both, both[::-1], both[:1], both[1:]):
        assert {c.verdict for c in against(load_baseline(path), now, 0.05).changes} == {"not slower"}
    for row in (0, 1):
        changed = json.loads(json.dumps(document))
        changed["comparisons"][row]["prediction"]["machine_peak_flops"] *= 2
        path.write_text(json.dumps(changed))
        with pytest.raises(CommandError, match=f"another file of machine {machine.name}: its peak is"):
            against(load_baseline(path), both, 0.05)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "null", '{"schema": "roofdsl.validate/1"}', "\x00",
             '{"schema": "roofdsl.validate/1", "comparisons": []}',
             '{"schema": "roofdsl.validate/1", "comparisons": [3]}',
             '{"schema": "roofdsl.validate/1", "comparisons": [{}]}',
             '{"schema": "roofdsl.measurement/1", "kernels": []}', '{"schema": "roofdsl.predict/1"}'],
)  # fmt: skip
def test_bad_files_are_errors_for_people(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.json").write_text(text)
    with pytest.raises((CommandError, InputError), match=r"b\.json"):
        load_baseline(tmp_path / "b.json")
