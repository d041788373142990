"""The trust report: its parts on a few cases, and what it says where something is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import associativity, sweeping, trust
from benchmarks.associativity import CACHES, Case
from benchmarks.kernels import ROOT, fresh, shipped
from roofdsl.predict.options import Options
from roofdsl.sweep.ranges import parse_ranges


@pytest.mark.thorough
def test_brute_force_counts_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    found = trust.against_brute_force(3, 7, 1000)
    assert (found.kernels, found.mismatches) == (3, ()) and found.questions >= 9 and found.by_sets > 0
    assert "**0**" in trust.brute_force_section(found)

    def wrong(*_: object) -> bool:
        raise AssertionError("off by one")

    monkeypatch.setattr("tests.counts.exact.check_numbers", wrong)
    found = trust.against_brute_force(2, 7, 1000)
    assert found.mismatches == ((7, "off by one"), (8, "off by one"))
    assert "| 7 | off by one |" in trust.brute_force_section(found)


def test_errors_of_sets() -> None:
    """The tables hold the means of the cases, by class and by what is flagged."""
    first, second = CACHES[0].name, CACHES[1].name
    cases = [
        Case("k", (("n", 4),), "odd", first, 1000, 900, 1000, 90, 100, flagged=True),
        Case("k", (("n", 8),), "powers of 2", first, 1000, 1000, 1000, 100, 110, flagged=False),
        Case("p", (("n", 9),), "mini", first, 1000, 1000, 1000, 100, 104, flagged=False),
        Case("p", (("n", 9),), "mini", second, 1000, 1000, 1000, 100, 100, flagged=True),
    ]
    assert [c.error for c in cases] == [0.1, 0.0, 0.0, 0.0]
    assert [c.miss_error for c in cases] == [0.01, 0.01, 0.004, 0.0]
    text = associativity.error_tables(cases, {"too long": 2})
    assert "**reached**: the mean of 2 cases is 0.20%" in text  # PolyBench at its own sizes
    assert "**not reached**: the mean of 2 cases is 1.00%" in text and "the mean error is 5.00%" in text
    assert "does not flag the mean error is **0.700%**" in text
    assert "It flags 2, 1 of them needlessly" in text and "50% of its warnings are right" in text
    assert "of the 2 cases that are off by more than 0.4% it misses 1 and flags 50%" in text
    assert "Left out: 2 x too long." in text
    assert trust.cases_csv(cases).splitlines()[1] == 'k,n=4,odd,"32 KiB, 8 ways",1000,900,1000,90,100,1'


@pytest.mark.thorough
def test_few_cases_of_both_classes() -> None:
    found, left = associativity.compare_caches(1000, only=("triad",))
    assert {c.cache for c in found} == {c.name for c in CACHES} and all(c.error == 0 for c in found) and not left
    assert not any(c.flagged for c in found)
    found, left = associativity.compare_published(0, only=("gemm", "atax"))
    assert not found and left == {f"PolyBench, {s}: the time was over": 6 for s in associativity.OWN_SIZES}
    sizes = [s for s, _, _ in associativity.polybench(("gemm",))]
    assert sizes == ["mini", "small", "medium", "large"]


def test_rows_of_a_stored_report(tmp_path: Path) -> None:
    report = tmp_path / "README.md"
    report.write_text(
        "# Validation\n\n|  | runs |\n| --- | --- |\n| all | 2 |\n\n"
        "| kernel | size | in | bound | ratio | beside |\n| --- | --- | --- | --- | --- | --- |\n"
        "| gemv | n=8 | L1 | L1 | 0.50 |  |\n| triad | n=9 | DRAM | DRAM | 1.25 | 0.9 |\n\nNot run:\n\n"
        "| kernel | size | why |\n| --- | --- | --- |\n| lu | n=3 | long |\n",
        encoding="utf-8",
    )
    runs = trust.stored_runs(report)
    assert [(r.kernel, r.data_in, r.ratio) for r in runs] == [("gemv", "L1", 0.5), ("triad", "DRAM", 1.25)]
    report.write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no table of runs"):
        trust.stored_runs(report)


@pytest.mark.thorough
def test_the_stored_validation_is_read() -> None:
    latest = trust.latest_validation()
    assert latest is not None
    text = trust.measured_section(latest, "Here")
    assert text.startswith("## Here") and f"{len(trust.stored_runs(latest))} runs" in text
    assert str(latest.relative_to(ROOT)) in text


@pytest.mark.thorough
def test_a_sweep_is_timed() -> None:
    rate, found = sweeping.measure("lstm_add_bias", "v100", "batch=1..4,hidden=32..64:+16", Options(levels="memory"), 1)
    assert len(found.table) == rate.points == 12 and found.counted == 0
    assert rate.kernel in sweeping.table([rate])


@pytest.mark.thorough
def test_every_kernel_of_two_parameters_has_ranges() -> None:
    kernels = [fresh(checked, name) for name, checked in shipped().items()]
    two = [k for k in kernels if len(k.parameters) == 2]
    assert len(two) > 20
    for k in two:
        assert set(parse_ranges(sweeping.ranges_of(k))) == {p.name for p in k.parameters}
