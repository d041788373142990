"""The validation's report says what its figures say; nothing is timed."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.kernels import fresh, shipped
from benchmarks.validation import Others, ceilings_beside, targets, with_memory
from benchmarks.validation_report import Beside, Refusal, Report, draw, in_words, section
from roofdsl.machine.model import Machine
from roofdsl.measure.machine_file import to_machine
from roofdsl.predict.kernel import Options, predict
from roofdsl.predict.time import Prediction
from roofdsl.validate.compare import Comparison, compare
from tests.measure.examples import EXAMPLE
from tests.measure.made_up import characterized

MACHINE = to_machine(characterized(cores=1))


@cache
def predicted(name: str, n: int, machine: Machine, ceilings: tuple[str, ...] = ()) -> Prediction:
    options = Options(accesses="compiled", ceilings=ceilings)
    return predict(fresh(shipped()[name], name), {"n": n}, machine, options)


def run(name: str, n: int, ratio: float) -> Comparison:
    """A made-up run at so much of the predicted performance."""
    p = predicted(name, n, MACHINE)
    measured = replace(
        EXAMPLE, kernel=name, parameters=p.parameters, work=p.work, footprint_bytes=p.footprint_bytes,
        times_s=(float(p.expected_s) / ratio,) * 5,
    )  # fmt: skip
    return compare(p, measured, MACHINE)


def beside(found: Comparison, machine: Machine, ceilings: tuple[str, ...] = ()) -> Comparison:
    """The same measurement by another prediction."""
    p = found.prediction
    return compare(predicted(p.kernel, dict(p.parameters)["n"], machine, ceilings), found.measurement, machine)


@pytest.fixture(scope="module")
def report() -> Report:
    """A triad in L2 and two streams in memory: gemv while the memory was slower, a copy above the roof."""
    triad, copy, gemv = run("triad", 20_000, 0.9), run("copy", 8_000_000, 1.2), run("gemv", 3968, 0.7)
    pairs = ((copy, Beside(copy)), (gemv, Beside(beside(gemv, with_memory(MACHINE, 24e9)))))
    refusals = (
        Refusal("lu", "n=1408", "too long"),
        Refusal("lu", "n=4096", "too long"),
        Refusal("fft_rows", "", "the time given was over"),
        Refusal("gpp", "", "the time given was over"),
    )
    return Report(MACHINE, (triad, copy, gemv), refusals, 12.0, pairs, ((triad, 0.0), (copy, 0.02), (gemv, 0.5)))


def test_what_the_words_say(report: Report) -> None:
    assert ceilings_beside(MACHINE) == ("L2 beside DRAM, measured",)
    text = " ".join(in_words(report))
    ratio = report.fair_ratio(report.comparisons[2])
    assert 0.8 < ratio < 1, "0.7 of a faster memory"
    assert text.startswith("Of 3 runs 2 are as predicted")
    assert "0 slower, 1 above the roof." in text
    assert "Of 2 streams out of cache 1 lie between 0.75 and 1.05" in text
    assert "Not so `copy` with 1.20, bound by DRAM." in text
    assert "2% of a core busy" in text and "more than 10% in 1 runs (of `gemv`)" in text
    assert "take turns with those behind them, as characterized: L2 (100 GB/s) and L3 (160 GB/s)." in text


def test_a_stream_below_is_set_beside_the_ceilings(report: Report) -> None:
    gemv = run("gemv", 3968, 0.7)
    capped = beside(gemv, MACHINE, ceilings_beside(MACHINE))
    found = replace(report, comparisons=(gemv,), beside=((gemv, Beside(gemv, capped)),), others=())
    assert capped.ratio > 0.75
    text = " ".join(in_words(found))
    assert (
        "Not so `gemv` with 0.70, bound by DRAM and L2; under the measured ceilings of the caches beside farther "
        in text
    )
    assert f"it reaches {capped.ratio:.2f}." in text


def test_the_tables_have_every_run(report: Report) -> None:
    text = section(report)
    streams, above, ratios, every, refused = (
        text.split(f"### {title}\n\n")[1].split("\n\n")[0].split("\n")[2:]
        for title in ("Streams out of cache", "Above the roof", "Ratios", "Every run", "Not run")
    )
    assert [row.split(" | ")[0] for row in streams] == ["| copy", "| gemv"]
    assert len(above) == 1 and "| copy | n=8000000 | DRAM | 1.20 | " in above[0]
    assert len(every) == 3
    by_name = {row.split(" | ")[0][2:]: row for row in ratios}
    assert by_name["all runs"].startswith("| all runs | 3 | 0.70 |")
    assert by_name["data in L2"].startswith("| data in L2 | 1 | 0.90 |")
    assert "data in L1" not in by_name
    assert refused == ["| lu | n=1408; n=4096 | too long |", "| fft_rows, gpp |  | the time given was over |"]


def test_without_a_run_above_the_roof_none_is_listed(report: Report) -> None:
    calm = replace(report, comparisons=report.comparisons[:1], beside=(), others=(), refusals=())
    assert "### Above the roof" not in section(calm) and "### Not run" not in section(calm)
    assert "1 are as predicted (ratios from 0.75 to 1.05), 0 slower, 0 above the roof." in section(calm)


def test_the_figure_is_drawn(report: Report, tmp_path: Path) -> None:
    draw(report, tmp_path / "ratios.svg")
    assert "<svg" in (tmp_path / "ratios.svg").read_text(encoding="utf-8")


def test_sizes_reach_from_the_first_cache_to_memory() -> None:
    assert targets(MACHINE) == [16 << 10, 512 << 10, 16 << 20, 256 << 20]


@pytest.mark.parametrize(
    ("busy_s", "cores"), [((10.0, 12.5), 0.625), ((10.0, 9.0), 0.0), ((10.0, 1e6), float(os.cpu_count() or 1))]
)
def test_other_programs_are_seen(monkeypatch: pytest.MonkeyPatch, busy_s: tuple[float, float], cores: float) -> None:
    readings, clock = iter(busy_s), iter((100.0, 104.0))
    monkeypatch.setattr(Others, "_seconds", staticmethod(lambda: next(readings)))
    monkeypatch.setattr("benchmarks.validation.time", SimpleNamespace(monotonic=lambda: next(clock)))
    assert Others().cores() == cores
