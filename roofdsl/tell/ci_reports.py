"""The result of `validate` for what shows the results of tests: JUnit's XML, and Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from roofdsl.lang.record import Record
from roofdsl.machine.quantities import show_time
from roofdsl.tell.regressions import run_name, told
from roofdsl.tell.titles import short_sizes
from roofdsl.validate.baseline import Compared, Regressions
from roofdsl.validate.compare import Comparison
from roofdsl.validate.compare_points import PointCheck

Outcome = Literal["passed", "failed", "skipped"]


class Case(Record):
    """A run as a test, which is skipped if it proves nothing or was not measured.

    seconds: the median of one call. kind: what is wrong, or why it is skipped, in a few words; why: the reason.
    """

    name: str
    machine: str
    seconds: float | None
    outcome: Outcome
    kind: str = ""
    why: str = ""


CONTRADICTIONS = ("slower than predicted", "faster than predicted", "above the roof")


def cases_of(
    comparisons: Sequence[Comparison], checks: Sequence[PointCheck], regressions: Regressions | None
) -> list[Case]:
    """Every run and point, and the runs of the baseline that are missing.

    With a baseline, a run has failed only if it is slower than that, above the bound, or not verified.
    """
    changes = {} if regressions is None else {id(x.comparison): x for x in regressions.changes}
    found = []
    for c in comparisons:
        outcome = _outcome(c, changes.get(id(c)))
        found.append(Case(run_name(c.measurement), c.prediction.machine, c.measured_s, *outcome))
    found += map(_of_point, checks)
    for m in () if regressions is None else regressions.missing:
        why = "it is in the baseline, but was not measured now"
        found.append(Case(run_name(m), "", None, "skipped", "not measured", why))
    return found


def _outcome(c: Comparison, change: Compared | None) -> tuple[Outcome, str, str]:
    """(outcome, kind, why) of a run; change: the run beside its baseline, if there is one."""
    if not c.measurement.verified.holds:
        return "failed", "cannot be verified", "; ".join(c.measurement.verified.unverifiable)
    # A run above the bound is an error of the model or of the measurement, whatever the baseline says.
    if c.verdict == "above the roof" or (change is None and c.verdict in CONTRADICTIONS):
        return "failed", c.verdict, _contradiction(c)
    if change is None:
        return ("skipped", c.verdict, c.disturbed) if c.verdict == "inconclusive" else ("passed", "", "")
    if change.verdict == "not slower":
        return "passed", "", ""
    return "failed" if change.verdict == "slower than its baseline" else "skipped", change.verdict, told(change)


def _of_point(check: PointCheck) -> Case:
    """A point of a profiler or document, which has failed if its time or the bytes of a level are not as predicted."""
    p = check.prediction
    name = f"{p.kernel} {short_sizes(p.parameters)} {check.point.label}"
    if check.agrees:
        return Case(name, p.machine, check.measured_s, "passed")
    wrong = [] if check.verdict in (None, "as predicted") else [str(check.verdict)]
    wrong += [f"{x.level}: {x.verdict}" for x in check.levels if x.verdict != "as predicted"]
    return Case(name, p.machine, check.measured_s, "failed", "not as predicted", "; ".join(wrong))


def _contradiction(c: Comparison) -> str:
    """Why a run contradicts the model: the times, and the first cause that is known."""
    if c.verdict == "above the roof" or c.expected_s is None:
        times = f"it took {show_time(c.measured_s)}, and the bound is {show_time(c.bound_s)}"
    else:
        times = f"it took {show_time(c.measured_s)} instead of the expected {show_time(c.expected_s)}"
    cause = next(iter(c.causes), "")
    if not cause and c.largest_cause is not None:
        cause = f"the largest cause in the expected time is {c.largest_cause.cause}"
    return f"{times}; {cause}" if cause else times


_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(cases: Sequence[Case]) -> str:
    """JUnit's XML: a test case for each run, its time the median of one call. Characters that XML does not allow are
    written as `\\u001b`.
    """
    from xml.etree import ElementTree

    counts = {"tests": len(cases)} | {
        name: sum(case.outcome == outcome for case in cases)
        for name, outcome in (("failures", "failed"), ("skipped", "skipped"))
    }
    numbers = {name: str(count) for name, count in counts.items()} | {"errors": "0"}
    root = ElementTree.Element("testsuites", {"name": "roofdsl", **numbers})
    suite = ElementTree.SubElement(root, "testsuite", {"name": "roofdsl validate", **numbers})
    for case in cases:
        about = {"classname": _xml(case.machine or "baseline"), "name": _xml(case.name)}
        about["time"] = f"{case.seconds or 0:.9f}"
        element = ElementTree.SubElement(suite, "testcase", about)
        if case.outcome == "failed":
            what = {"type": case.kind, "message": _xml(case.why or case.kind)}
            failure = ElementTree.SubElement(element, "failure", what)
            failure.text = _xml(case.why or case.kind)
        elif case.outcome == "skipped":
            ElementTree.SubElement(element, "skipped", {"message": _xml(case.why or case.kind)})
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _xml(text: str) -> str:
    return _NOT_IN_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def markdown(cases: Sequence[Case]) -> str:
    """A table of all runs, those that failed first."""
    order = {"failed": 0, "skipped": 1, "passed": 2}
    count = {outcome: sum(case.outcome == outcome for case in cases) for outcome in order}
    told_of = [f"{n} {outcome}" for outcome, n in count.items() if n]
    lines = [f"roofdsl validate: {', '.join(told_of) or 'no runs'}", ""]
    lines += ["| run | machine | time | result | |", "| --- | --- | ---: | --- | --- |"]
    for case in sorted(cases, key=lambda case: order[case.outcome]):
        time = "" if case.seconds is None else show_time(case.seconds)
        result = "passed" if case.outcome == "passed" else f"{case.outcome}: {case.kind}"
        cells = (case.name, case.machine, time, result, case.why)
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """Text that Markdown, and HTML inside it, shows unchanged, on one line."""
    shown = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in " ".join(text.split()))
    return re.sub(r"([\\`*_{}\[\]<>()#!|~&@$])", lambda found: f"&#{ord(found[0])};", shown)
