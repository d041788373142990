"""Reports for what shows the results of tests: the XML is read back, and nothing in a name acts on what reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np

from roofdsl.tell.as_text import to_text
from roofdsl.tell.ci_reports import Case, cases_of, junit, markdown
from roofdsl.tell.regressions import blocks, to_json
from roofdsl.validate.baseline import Baseline, Regressions, against
from roofdsl.validate.compare import Comparison, compare
from tests.validate.test_baseline import P, noise, run
from tests.validate.test_compare import MACHINE

HOSTILE = 'a <b> & "c" \x1b[31m \x00 \ud800 | `d` *e* ]]> --> é\n| new row |'


def outcomes(cases: Sequence[Case]) -> list[tuple[str, str]]:
    return [(case.outcome, case.kind) for case in cases]


def beside(factor: float) -> tuple[Regressions, list[Comparison]]:
    now = [compare(P, run(factor * noise(2, 0.01)), MACHINE), compare(P, run(noise(5), variant="new"), MACHINE)]
    gone = replace(run(noise(1)), kernel="gone")
    return against(Baseline("b.json", (run(noise(1, 0.01)), gone)), now, 0.05), now


def test_with_a_baseline_only_what_is_slower_than_it_has_failed() -> None:
    """All of them are three times slower than predicted."""
    for factor, first in ((1.0, ("passed", "")), (1.5, ("failed", "slower than its baseline"))):
        found, now = beside(factor)
        cases = cases_of(now, (), found)
        assert outcomes(cases) == [first, ("skipped", "not in the baseline"), ("skipped", "not measured")]
    assert cases[0].why.startswith("49 % slower than its baseline (670.2 us, was 448.5 us; p = ")
    assert "gone" in cases[2].name


def test_above_the_bound_has_failed_with_and_without_a_baseline() -> None:
    fast = [compare(P, run(noise(1) / 6), MACHINE)]
    found = against(Baseline("b.json", (run(noise(1)),)), fast, 0.05)
    for regressions in (None, found):
        (case,) = cases_of(fast, (), regressions)
        assert (case.outcome, case.kind) == ("failed", "above the roof")
        assert "the bound is" in case.why
    assert found.changes[0].verdict == "not slower"


def test_without_a_baseline_verdicts_count() -> None:
    slow = compare(P, run(noise(1)), MACHINE)
    assert outcomes(cases_of([slow], (), None)) == [("failed", "slower than predicted")]
    same = compare(P, run(noise(1) / 3), MACHINE)
    assert outcomes(cases_of([same], (), None)) == [("passed", "")]


def test_the_xml_is_read_back() -> None:
    cases = [
        Case(HOSTILE, "v100", 1.5e-3, "failed", "slower", HOSTILE), Case("b", "v100", 2.0, "passed"),
        Case("c", "", None, "skipped", "not measured", "gone"),
    ]  # fmt: skip
    text = junit(cases)
    text.encode("utf-8")
    root = ElementTree.fromstring(text)
    (suite,) = root
    for element in (root, suite):
        assert [element.get(k) for k in ("tests", "failures", "skipped", "errors")] == ["3", "1", "1", "0"]
    first, second, third = suite
    shown = HOSTILE.replace("\x1b", "\\u001b").replace("\x00", "\\u0000").replace("\ud800", "\\ud800")
    assert first.get("name") == shown and float(first.get("time", "")) == 1.5e-3
    failure = first.find("failure")
    assert failure is not None and failure.get("message") == shown and failure.text == shown
    assert list(second) == [] and third.find("skipped") is not None


def test_markdown_has_a_row_for_each_run_and_shows_names_as_they_are() -> None:
    import html

    text = markdown([Case("b", "m", 2.0, "passed"), Case(HOSTILE, "m", 1e-3, "failed", "slower", "<script>")])
    lines = text.splitlines()
    assert lines[0] == "roofdsl validate: 1 failed, 1 passed" and len(lines) == 6
    assert all(row.count("|") == 6 for row in lines[2:])
    assert "<" not in text and "`" not in text
    assert html.unescape(lines[4]).startswith('| a <b> & "c" \\u001b[31m \\u0000 \\ud800 | `d` *e*')
    assert lines[5].startswith("| b | m | 2 s | passed |")


def test_text_and_json_tell_the_same() -> None:
    found, _ = beside(1.5)
    text, document = "\n".join(to_text(blocks(found))), to_json(found)
    assert "slower than its baseline" in text and "5 % slower is allowed" in text
    assert "gone" in text and document["missing"][0]["kernel"] == "gone"
    row = document["runs"][0]
    assert row["slower_by"] == row["measured_s"] / row["baseline_s"] - 1
    assert np.isclose(row["baseline_s"], np.median(noise(1, 0.01)))
    assert document["runs"][1]["baseline_s"] is None
