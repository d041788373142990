"""The validation's report says what its figures say; nothing is timed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from statistics import median

import pytest

from benchmarks import validation, validation_kept
from benchmarks.kernels import fresh, shipped
from benchmarks.validation import REPEATS, ceilings_beside, memory_counts, run_all, targets, with_memory
from benchmarks.validation_report import Beside, Refusal, Report, draw, in_words, section
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import replace
from roofdsl.machine.model import Machine
from roofdsl.measure.bandwidth_curve import Counts
from roofdsl.measure.device import describe_cpu, software
from roofdsl.measure.machine_file import to_machine
from roofdsl.measure.measurement import Measurement, load
from roofdsl.predict.kernel import Options, predict
from roofdsl.predict.time import Prediction
from roofdsl.validate.compare import Comparison, compare
from roofdsl.validate.run import How, Run
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
        times_s=(float(p.bound_s) / ratio,) * 5,
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


@pytest.mark.thorough
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
    assert "take turns with those behind them, as characterized: L2 (70 GB/s) and L3 (160 GB/s)." in text


@pytest.mark.thorough
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


def table(text: str, title: str) -> list[str]:
    """The rows under a title of the report."""
    own = text.partition(f"### {title}\n\n")[2].partition("\n### ")[0]
    return [line for line in own.split("\n") if line.startswith("|")][2:]


def test_the_tables_have_every_run(report: Report) -> None:
    text = section(report)
    assert [row.split(" | ")[0] for row in table(text, "Streams out of cache")] == ["| copy", "| gemv"]
    above = table(text, "Above the roof")
    assert len(above) == 1 and above[0].startswith("| copy | n=8000000 | DRAM | the run | 1.20 | 1.20 |")
    assert "\n- `copy`. Likely causes: " in text, "it was not made again"
    assert len(table(text, "Every run")) == 3
    by_name = {row.split(" | ")[0][2:]: row for row in table(text, "Ratios")}
    assert by_name["all runs"].startswith("| all runs | 3 | 0.8"), "gemv, by the memory beside it"
    assert by_name["data in L2"].startswith("| data in L2 | 1 | 0.90 |")
    assert "data in L1" not in by_name
    refused = ["| lu | n=1408; n=4096 | too long |", "| fft_rows, gpp |  | the time given was over |"]
    assert table(text, "Not run") == refused


def test_runs_are_grouped_by_the_first_of_several_bounds() -> None:
    gemv, copy = run("gemv", 3968, 0.7), run("copy", 8_000_000, 0.8)
    assert gemv.prediction.bounds == ("DRAM", "L2")
    ratios = table(section(Report(MACHINE, (gemv, copy), (), 0.0)), "Ratios")
    assert [row.split(" | ")[:2] for row in ratios if "bound" in row] == [["| bound by DRAM", "2"]]


@pytest.mark.parametrize(("again", "stay"), [((1.2, 0.7, 1.1, 1.3), 1), ((0.7, 0.72, 1.3, 0.8), 0)])
def test_a_run_above_the_roof_is_shown_with_all_its_repeats(again: tuple[float, ...], stay: int) -> None:
    first, triad = run("copy", 8_000_000, 1.2), run("triad", 20_000, 0.9)
    repeats = tuple(run("copy", 8_000_000, ratio) for ratio in again)
    pairs = tuple((c, Beside(c, None, (30e9, 31e9 + k * 1e9))) for k, c in enumerate((first, *repeats)))
    busy = tuple((c, 0.0) for c in (first, triad, *repeats))
    found = Report(MACHINE, (first, triad), (), 1.0, pairs, busy, ((first, repeats),))
    text = section(found)
    assert "Of 2 runs 1 are as predicted" in text and "1 above the roof. The run above the roof was made again" in text
    assert f"at once, 4 times; by the median of the repeats, above it again: {stay}, no longer: {1 - stay}." in text
    rows = table(text, "Above the roof")
    assert rows[0] == "| copy | n=8000000 | DRAM | the run | 1.20 | 1.20 | 30 GB/s | 31 GB/s |"
    for k, (row, ratio) in enumerate(zip(rows[1:], again, strict=True), 1):
        assert row == f"|  |  |  | repeat {k} | {ratio:.2f} | {ratio:.2f} | 30 GB/s | {31 + k} GB/s |"
    what = "stays above the roof" if stay else "does not stay above the roof"
    assert f"- `copy` {what}: {median(again):.2f} in the median of 4 repeats. Likely causes: " in text
    assert len(table(text, "Every run")) == 2, "repeats are no runs of their own"
    assert table(text, "Ratios")[0].startswith("| all runs | 2 | 0.90 |")


def test_without_a_run_above_the_roof_none_is_listed(report: Report) -> None:
    calm = replace(report, comparisons=report.comparisons[:1], beside=(), others=(), refusals=())
    assert "### Above the roof" not in section(calm) and "### Not run" not in section(calm)
    assert "1 are as predicted (ratios from 0.75 to 1.05), 0 slower, 0 above the roof." in section(calm)


def test_the_figure_is_drawn(report: Report, tmp_path: Path) -> None:
    draw(report, tmp_path / "ratios.svg")
    assert "<svg" in (tmp_path / "ratios.svg").read_text(encoding="utf-8")


def test_sizes_reach_from_the_first_cache_to_memory() -> None:
    assert targets(MACHINE) == [16 << 10, 512 << 10, 16 << 20, 256 << 20]


# ---- a whole session, with made-up times ----


class Session:
    """What `run_all` measures with: every run of a kernel takes as long as `seconds` says, one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds: list[float] = []
        self.measured: list[str] = []
        self.commit = "commit 1234567"
        monkeypatch.setattr(validation, "characterize_cpu", lambda quick, cores, tell: characterized(cores=1))
        monkeypatch.setattr(validation, "targets", lambda machine: [512 << 10])
        monkeypatch.setattr(validation, "measure_runs", self.measure)
        monkeypatch.setattr(validation, "MemoryStreams", lambda machine: None)
        monkeypatch.setattr(validation.Others, "cores", lambda self: 0.0)
        monkeypatch.setattr(validation_kept, "engine", lambda: self.commit)

    def measure(self, runs: list[Run], how: How) -> list[Measurement]:
        kernel, sizes = runs[0].kernel, runs[0].sizes
        self.measured.append(kernel.name)
        if not self.seconds:
            raise KeyboardInterrupt
        made_up = replace(
            EXAMPLE, kernel=kernel.name, parameters=tuple(sizes.items()), device=describe_cpu().to_json(),
            software=software(), times_s=(self.seconds.pop(0),) * 5, details={},
        )  # fmt: skip
        return [made_up]


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    return Session(monkeypatch)


NAMES = ("triad", "copy", "scale")


def interrupted(session: Session, folder: Path) -> None:
    """A run in which the triad is above the roof at first, and which ends while `scale` is measured."""
    session.seconds = [1e-9, *[1e-3] * REPEATS, 1e-3]
    with pytest.raises(KeyboardInterrupt):
        run_all(folder, NAMES, resume=True)
    assert session.measured == ["triad"] * (1 + REPEATS) + ["copy", "scale"]
    session.measured.clear()


@pytest.mark.thorough
def test_an_interrupted_run_goes_on(session: Session, tmp_path: Path) -> None:
    interrupted(session, tmp_path)
    kept = load(tmp_path / "results.json")
    assert [m.kernel for m in kept] == ["triad"] * (1 + REPEATS) + ["copy"], "repeats are kept as well"
    assert [validation_kept.noted(m).repeat for m in kept] == [*range(1 + REPEATS), 0]
    session.seconds = [1e-3]
    found = run_all(tmp_path, ("scale",), resume=True)
    assert session.measured == ["scale"]
    assert [c.prediction.kernel for c in found.comparisons] == ["triad", "copy", "scale"] and found.taken_up == 2
    (above,) = found.above
    assert len(found.repeats_of(above)) == REPEATS and above.measured_s == 1e-9
    assert "above it again: 0, no longer: 1." in section(found) and "2 of the runs taken up" in section(found)
    assert load(tmp_path / "results.json")[:-1] == kept


@pytest.mark.thorough
def test_without_keeping_a_run_begins_anew(session: Session, tmp_path: Path) -> None:
    interrupted(session, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run_all(tmp_path, NAMES)
    assert session.measured == ["triad"]
    assert not (tmp_path / "results.json").exists(), "the results of another run do not stay beside a new machine"


@pytest.mark.thorough
def test_an_interrupted_run_goes_on_only_where_it_began(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(session, tmp_path)
    machine, results = tmp_path / "machine.roof", tmp_path / "results.json"
    text, document = machine.read_text(encoding="utf-8"), results.read_text(encoding="utf-8")

    def refused(kind: type[Exception], words: str) -> None:
        with pytest.raises(kind, match=words):
            run_all(tmp_path, NAMES, resume=True)
        assert session.measured == []

    machine.write_text(text + "# another\n", encoding="utf-8")
    refused(CommandError, "is of another machine file")
    machine.unlink()
    refused(CommandError, "machine.roof` cannot be read")
    machine.write_text(text[: len(text) // 2], encoding="utf-8")
    refused(InputError, "machine.roof")
    machine.write_text(text, encoding="utf-8")
    results.write_text(document[: len(document) // 2], encoding="utf-8")
    refused(InputError, "this is not a complete result file")
    results.write_text(document.replace('"others_cores": 0.0', '"others_cores": "few"'), encoding="utf-8")
    refused(CommandError, "`triad` has no notes of a validation, or they are damaged")
    results.write_text(document, encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(validation_kept, "describe_cpu", lambda: replace(describe_cpu(), cores=977))
        refused(CommandError, r"`triad` in .* is of another processor: cores was \d+, and is 977")
    with monkeypatch.context() as patch:
        patch.setattr(validation_kept, "software", lambda: {**software(), "numba": "0.1"})
        refused(CommandError, "is of other software: numba was .*, and is 0.1")
    session.commit = "commit 7654321"
    refused(CommandError, "is of other code: commit 1234567, and here is commit 7654321")
    session.commit = "commit 1234567, with changes not committed in roofdsl/x.py"
    refused(CommandError, "cannot go on")


@pytest.mark.parametrize("notes", [None, (30e9, 31e9)])
def test_notes_are_read_as_they_were_written(notes: tuple[float, float] | None) -> None:
    origin = validation_kept.Origin("commit 1", "2" * 64)
    written = validation_kept.with_notes(EXAMPLE, origin, 0.25, notes, 3)
    assert validation_kept.noted(written) == (origin, 0.25, notes, 3)
    assert written.details["block"] == [1, 2], "what the back end told stays"


@pytest.mark.parametrize(
    ("memory", "cache", "counts"),
    [
        ("duplex", "", "duplex"),
        ("", "write_allocate", "write_allocate"),
        ("", "no_write_allocate", "no_write_allocate"),
    ],
)
def test_memory_counts_as_its_file_says(memory: str, cache: str, counts: Counts) -> None:
    last = replace(MACHINE.caches[-1], write_allocate=cache == "write_allocate")
    main = replace(MACHINE.main_memory, duplex=memory == "duplex")
    assert memory_counts(replace(MACHINE, caches=(last,), memories=(main,))) == counts


def test_the_characterization_and_its_file_count_alike() -> None:
    assert memory_counts(MACHINE) == characterized(cores=1).levels[-1].one_core.counts
