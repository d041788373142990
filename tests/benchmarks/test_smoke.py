"""The benchmarks run and their tables hold together; how long anything takes is not tested."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from benchmarks import block_shapes, compare, derivations, grading, plateaus, report, scaling
from benchmarks.kernels import fresh, shipped, size_of
from benchmarks.measure import markdown, show_seconds, timed
from benchmarks.peers import KERNELS
from benchmarks.sizes import is_legal


def _cells(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.split("\n")]


@pytest.mark.thorough
def test_the_derivations_of_a_small_kernel() -> None:
    rows = derivations.measure_all(["gemv"], repeats=1)
    head, rule, *body = _cells(derivations.table(rows))
    assert head == list(derivations.HEAD)
    assert len(rule) == len(head)
    (cells,) = body
    assert len(cells) == len(head)
    assert cells[0] == "gemv"
    named = dict(zip(head, cells, strict=True))
    assert all(
        float(named[c]) >= 0 for c in ("W and compulsory", "Q(Z) plateaus", "value at a size", "derive", "least")
    )
    assert (named["plateaus"], named["way"], named["runs"]) == ("3", "stack distances", "1")
    assert derivations.refusals(rows) == ""


@pytest.mark.thorough
def test_a_refusal_is_told_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivations, "size_of", lambda kernel: {p.name: 8 for p in kernel.parameters})
    rows = derivations.measure_all(["minplus_blocked"], repeats=1)
    assert not rows[0].complete
    assert "is not known to be a multiple of b" in derivations.refusals(rows)
    assert " refused " in derivations.table(rows)


@pytest.mark.thorough
def test_every_shipped_kernel_has_a_size() -> None:
    for name, checked in shipped().items():
        kernel = fresh(checked, name)
        size = size_of(kernel)
        assert set(size) == {p.name for p in kernel.parameters}
        assert is_legal(kernel, size), (name, size)


@pytest.mark.thorough
def test_the_compared_kernels_are_shipped() -> None:
    assert set(compare.ITERATIONS) == set(KERNELS) <= set(shipped())


@pytest.mark.thorough
def test_warm_up_is_not_counted() -> None:
    calls = count(1)
    timing = timed(lambda: next(calls), 3)
    assert len(timing.seconds) == 3
    assert timing.result == 4
    assert timing.least <= timing.median


def test_polynomials_of_kerncraft() -> None:
    assert compare.polynomial_at("32*n**2 - 16*n", 10) == 3040
    with pytest.raises(ValueError, match="no polynomial"):
        compare.polynomial_at("__import__('os')", 1)


def test_tables_escape_bars() -> None:
    assert markdown(("a", "b"), [("x|y", "1")], numeric=(1,)) == "| a | b |\n| --- | ---: |\n| x\\|y | 1 |"
    assert [show_seconds(s) for s in (0.01234, 0.5, 12.34)] == ["0.0123", "0.500", "12.3"]


def test_a_report_names_machine_and_versions(tmp_path: Path) -> None:
    path = report.write(["## Derivations"], (0.5, 0.6), tmp_path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# Benchmarks, {path.stem}\n")
    assert all(word in text for word in ("processor", "cores", "islpy-barvinok", "commit", "## Derivations"))


def test_a_small_class_is_graded() -> None:
    table = grading.section(3, ["gemv", "summit-streams"]).split("\n\n")[1]
    head, _, cells = _cells(table)
    named = dict(zip(head, cells, strict=True))
    assert named["class"].startswith("3 submissions of 2 exercises")
    assert named["mean of the others"].endswith("of 8")


@pytest.mark.thorough
def test_scaling_is_measured_and_drawn(tmp_path: Path) -> None:
    found = list(scaling.measure_all(1, most=2))
    assert [(g.what, g.number) for g in found] == [
        ("loops", 1), ("loops", 2), ("statements", 1), ("statements", 2), ("references", 1), ("references", 2),
    ]  # fmt: skip
    assert all(g.seconds is not None and g.peak_mib >= g.base_mib > 10 and g.plateaus for g in found)
    text = scaling.section(found)
    assert text.count("\n| ") == 2 + 6 and "| references | 2 |" in text
    scaling.draw(found, tmp_path / "scaling.svg")
    assert (tmp_path / "scaling.svg").stat().st_size > 5000


@pytest.mark.thorough
def test_an_interrupted_search_of_plateaus_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep = tmp_path / "kept.jsonl"
    found = plateaus.search(4, 11000, keep=keep)
    assert sum(r["found"] == plateaus.AGREES for r in found) == 4 and len(keep.read_text().splitlines()) == len(found)
    monkeypatch.setattr(plateaus, "_compare", lambda seed: {"seed": seed, "found": plateaus.DIFFERS, "why": "wrong"})
    again = plateaus.search(5, 11000, keep=keep)
    assert again[:-1] == found
    assert again[-1]["found"] == plateaus.DIFFERS
    monkeypatch.undo()
    assert plateaus.search(5, 11000, keep=keep)[len(found)]["found"] != plateaus.DIFFERS  # tried again


def test_the_report_of_plateaus_counts_what_was_declined_apart() -> None:
    agrees = {"found": "agrees", "depth": 1, "names": 1, "sizes": 2, "rows": 4, "caches": 9, "exact": 8, "brute": 5}
    agrees |= {"periods": 1, "sampled": 0, "seconds": 0.5}
    declined = {"found": "declined", "depth": 1, "names": 1, "seconds": 0.5}
    results = [
        {"seed": 7, **agrees},
        {"seed": 8, **declined, "why": "the plateaus of Q(Z) of kernel residues_8 needs more; values at sizes"},
        {"seed": 20, **declined, "found": "differs", "why": "n = 3"},
    ]
    text = plateaus.text_of(results, (0.5, 0.6))
    assert "seeds 7 to 8, 20 to 20" in text and "| mismatches | 1 |" in text and "- seed 20: n = 3" in text
    assert "| kernels compared | 2 |" in text and "| the plateaus of Q(Z) needs more | 1 |" in text


def test_shapes_of_thread_blocks() -> None:
    for text, sizes in block_shapes.CASES:
        name, rate, one_s = block_shapes.measured(text, sizes, 100)
        assert name in text and rate > 0 and one_s >= 0
