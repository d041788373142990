"""The report of a validation says what its figures say; its runs are made up."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import median

import pytest

from benchmarks.kernel_class import class_of
from benchmarks.kernels import fresh, shipped
from benchmarks.validation import with_memory
from benchmarks.validation_figure import draw
from benchmarks.validation_report import in_words, section
from benchmarks.validation_runs import CALM, HALVES, SHARED, Ran, Refusal, Report, groups, half_of
from roofdsl.lang.record import replace
from roofdsl.machine.model import Machine
from roofdsl.measure.machine_file import to_machine
from roofdsl.measure.measurement import MATH
from roofdsl.predict.expected import Cause, Expected
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction
from roofdsl.validate.compare import compare
from tests.measure.examples import EXAMPLE
from tests.measure.made_up import characterized

pytestmark = pytest.mark.thorough

MACHINE = to_machine(characterized(cores=1))


@cache
def predicted(name: str, n: int, machine: Machine) -> Prediction:
    return predict(fresh(shipped()[name], name), {"n": n}, machine, Options(accesses="compiled"))


def with_expected(p: Prediction, expected_s: float, cause: str = "a cause") -> Prediction:
    """The prediction with a made-up expected time, and one cause for its distance from the bound."""
    causes = (Cause(cause, Fraction(expected_s) - p.bound_s),)
    nothing = Fraction(0)
    made_up = Expected(Fraction(expected_s), "made up", causes, nothing, nothing, (), nothing, nothing)
    return replace(p, expected=made_up)


def ran(
    name: str,
    n: int,
    of_bound: float,
    of_expected: float | None = None,
    *,
    cause: str = "a cause",
    math: str = "relaxed",
) -> Ran:
    """A made-up run at so much of the bound's performance, and of the expected one's."""
    p = predicted(name, n, MACHINE)
    measured_s = float(p.bound_s) / of_bound
    measured = replace(
        EXAMPLE, kernel=name, parameters=p.parameters, work=p.work, footprint_bytes=p.footprint_bytes,
        times_s=(measured_s,) * 5, details={MATH: math},
    )  # fmt: skip
    p = (
        replace(p, no_expected="nobody knows")
        if of_expected is None
        else with_expected(p, of_expected * measured_s, cause)
    )
    return Ran(compare(p, measured, MACHINE), class_of(fresh(shipped()[name], name)))


@pytest.fixture(scope="module")
def report() -> Report:
    """A triad in L2 as expected, one that is twice as slow as expected, a dot product without an expected time, and two
    streams in memory: gemv while the memory was slower, a copy above the bound.
    """
    slower = ran("gemv", 3968, 0.5)
    beside = compare(
        with_expected(predicted("gemv", 3968, with_memory(MACHINE, 15e9)), 0.9 * slower.measured_s),
        slower.compared.measurement,
        MACHINE,
    )
    refusals = (
        Refusal("lu", "n=1408", "too long"),
        Refusal("lu", "n=4096", "too long"),
        Refusal("fft_rows", "", "the time limit was reached before"),
        Refusal("gpp", "", "the time limit was reached before"),
    )
    runs = (
        dataclasses.replace(ran("triad", 20_000, 0.9, 1.1), others=0.0),
        dataclasses.replace(ran("triad", 20_000, 0.4, 0.45, cause="chain of adds", math="strict"), others=0.0),
        ran("dot_f64", 20_000, 0.9),
        dataclasses.replace(ran("copy", 8_000_000, 1.2, 1.6), others=0.02),
        dataclasses.replace(slower, compared=beside, memory_per_s=(15e9, 14e9), others=0.5),
    )
    return Report(MACHINE, runs, refusals, 12.0)


def test_what_the_words_say(report: Report) -> None:
    text = " ".join(in_words(report))
    assert text.startswith("Of 5 runs 4 have an expected time.")
    # errors: 0.1, 0.55, 0.6, 0.1
    assert "is 32.5% in the median; 2 (50%) are within 25%, and 3 (75%) within a factor of two." in text
    assert "1 run of 5 is above the bound by more than 5 %." in text
    assert "at 14 GB/s to 15 GB/s" in text
    assert "1% of a core busy" in text and "more than 10% in 1 run (of `gemv`)" in text
    assert "take turns with those behind them, as characterized: L2 (70 GB/s) and L3 (160 GB/s)." in text


def test_a_run_faster_than_expected_is_not_above_the_bound(report: Report) -> None:
    faster = ran("triad", 20_000, 0.95, 1.5)
    assert not faster.is_above and not faster.is_close
    text = section(Report(MACHINE, (faster,), ()))
    assert "### Above the bound" not in text and "0 runs of 1 are above the bound" in text
    assert len(table(text, "Expected times off by more than 25%")) == 1


def table(text: str, title: str) -> list[str]:
    """The rows under a title of the report."""
    own = text.partition(f"### {title}\n\n")[2].partition("\n### ")[0]
    return [line for line in own.split("\n") if line.startswith("|")][2:]


def test_the_tables_have_every_run(report: Report) -> None:
    text = section(report)
    above = table(text, "Above the bound")
    assert len(above) == 1 and above[0].startswith("| copy | relaxed | n=8000000 | DRAM | the run | 1.20 |")
    assert "\n- `copy` n=8000000. Likely causes: " in text, "it was not made again"
    assert len(table(text, "Every run")) == 5
    far = table(text, "Expected times off by more than 25%")
    assert [row.split(" | ")[0] for row in far] == ["| triad", "| copy"], "the furthest off first: 1/0.45, 1.6"
    assert "| 0.45 | 0.40 |" in far[0] and "chain of adds (+" in far[0] and "| strict |" in far[0]
    by_name = {row.split(" | ")[0][2:]: row for row in table(text, "Measured rate over the bound's")}
    assert by_name["all runs"].startswith("| all runs | 5 | 0.40 |")
    assert by_name["data in L2"].startswith("| data in L2 | 3 | 0.40 | 0.65 | 0.90 |")
    assert "data in L1" not in by_name
    assert table(text, "Without an expected time") == ["| nobody knows | 1 | 0.90 | dot_f64 |"]
    refused = ["| lu | n=1408; n=4096 | too long |", "| fft_rows, gpp |  | the time limit was reached before |"]
    assert table(text, "Not run") == refused


def test_errors_by_group(report: Report) -> None:
    by_name = {row.split(" | ")[0][2:]: row for row in table(section(report), "Error of the expected times")}
    assert by_name["all runs"] == "| all runs | 4 | 32.5% | 50% | 75% | 0.45 | 1.00 | 1.60 |"
    assert by_name["math strict"] == "| math strict | 1 | 55.0% | 0% | 0% | 0.45 | 0.45 | 0.45 |"
    assert by_name["data in DRAM"] == "| data in DRAM | 2 | 35.0% | 50% | 100% | 0.90 | 1.25 | 1.60 |"
    assert by_name["reductions"] == "| reductions | 1 | 10.0% | 100% | 100% | 0.90 | 0.90 | 0.90 |"
    cells = {row.split(" | ")[0][2:]: row for row in table(section(report), "Error by class and by where the data lie")}
    assert cells["streams"] == "| streams |  | 33% (2) |  | 60% (1) |"


def test_without_expected_times_the_bound_is_reported() -> None:
    runs = (ran("gemv", 3968, 0.7), ran("copy", 8_000_000, 0.8))
    text = section(Report(MACHINE, runs, ()), "GPU")
    assert "None of the 2 runs has an expected time." in text and "### Error of the expected times" not in text
    assert len(table(text, "Every run")) == 2


def test_runs_are_grouped_by_the_first_of_several_bounds() -> None:
    gemv, copy = ran("gemv", 3968, 0.7), ran("copy", 8_000_000, 0.8)
    assert gemv.compared.prediction.bounds == ("DRAM", "L2")
    ratios = table(section(Report(MACHINE, (gemv, copy), ())), "Measured rate over the bound's")
    assert [row.split(" | ")[:2] for row in ratios if "bound" in row] == [["| bound by DRAM", "2"]]


@pytest.mark.spread(1)
@pytest.mark.parametrize(("again", "stay"), [((1.2, 0.7, 1.1, 1.3), 1), ((0.7, 0.72, 1.3, 0.8), 0)])
def test_a_run_above_the_bound_is_shown_with_all_its_repeats(again: tuple[float, ...], stay: int) -> None:
    repeats = tuple(
        dataclasses.replace(ran("copy", 8_000_000, ratio), memory_per_s=(30e9, 31e9 + k * 1e9))
        for k, ratio in enumerate((1.2, *again))
    )
    first = dataclasses.replace(repeats[0], repeats=repeats[1:])
    text = section(Report(MACHINE, (first, ran("triad", 20_000, 0.9)), (), 1.0))
    assert "1 run of 2 is above the bound by more than 5 %. It was made again" in text
    assert f"at once, 4 times; by the median of the repeats, above it again: {stay}, no longer: {1 - stay}." in text
    rows = table(text, "Above the bound")
    assert rows[0] == "| copy | relaxed | n=8000000 | DRAM | the run | 1.20 | 30 GB/s | 31 GB/s |"
    for k, (row, ratio) in enumerate(zip(rows[1:], again, strict=True), 1):
        assert row == f"|  |  |  |  | repeat {k} | {ratio:.2f} | 30 GB/s | {31 + k} GB/s |"
    what = "stays above the bound" if stay else "does not stay above the bound"
    assert f"- `copy` n=8000000 {what}: {median(again):.2f} in the median of 4 repeats. Likely causes: " in text
    assert len(table(text, "Every run")) == 2, "repeats are no runs of their own"
    assert table(text, "Measured rate over the bound's")[0].startswith("| all runs | 2 | 0.90 |")


def test_without_a_run_above_the_bound_none_is_listed(report: Report) -> None:
    calm = dataclasses.replace(report, runs=report.runs[:1], refusals=())
    assert "### Above the bound" not in section(calm) and "### Not run" not in section(calm)
    assert "0 runs of 1 are above the bound by more than 5 %." in section(calm)


@pytest.mark.parametrize("parts", [slice(None), slice(2, 3)], ids=["expected and bound", "bound alone"])
def test_the_figure_is_drawn(report: Report, parts: slice, tmp_path: Path) -> None:
    draw(dataclasses.replace(report, runs=report.runs[parts]), tmp_path / "ratios.svg")
    assert "<svg" in (tmp_path / "ratios.svg").read_text(encoding="utf-8")


def with_samples(run: Ran, times: tuple[float, ...], aside: tuple[float, ...]) -> Ran:
    """The run with these samples, some of which were set aside since somebody shared the core."""
    measured = run.compared.measurement
    measured = replace(measured, times_s=times, details={**measured.details, "disturbed_s": list(aside)})
    return dataclasses.replace(run, compared=dataclasses.replace(run.compared, measurement=measured))


def test_runs_on_a_shared_core_are_counted_apart() -> None:
    """Three samples alone and four shared; ten that spread; ten alike; and seven shared ones among ten."""
    run = ran("triad", 4096, 0.5, 0.9)
    t = run.measured_s
    few = with_samples(run, (t, 1.1 * t, 1.2 * t), (2 * t, 2.1 * t, 2.2 * t, 2.3 * t))
    spread = with_samples(run, tuple(t * (1 + k / 20) for k in range(10)), ())
    calm = with_samples(run, tuple(t * (1 + k / 200) for k in range(10)), (2 * t,))
    beside = tuple(t * (2 + k / 100) for k in range(7))
    mostly = with_samples(run, (t, 1.01 * t, 1.02 * t, *beside), beside)
    assert few.shared == "the core was shared during 4 of 7 samples" and calm.shared == ""
    assert spread.shared.startswith("the samples spread by") and mostly.shared.endswith("7 of 10 samples")
    counted = {name: len(runs) for name, runs in groups(Report(MACHINE, (few, spread, calm, mostly), ()))}
    assert (counted[CALM], counted[SHARED]) == (1, 3)


def test_kernels_fall_into_two_halves_by_their_names_alone() -> None:
    names = list(shipped())
    halves = [half_of(name) for name in names]
    assert set(halves) == set(HALVES) and 0.35 < halves.count("A") / len(names) < 0.65
    assert half_of("triad") == "A" and half_of("copy") == "B"
