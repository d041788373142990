"""A validation, with made-up times: what is measured, kept, taken up and compared again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import validation, validation_kept
from benchmarks.validation import REPEATS, compare_again, memory_counts, run_all, targets
from benchmarks.validation_cases import Case, blind_cases, polybench_cases
from benchmarks.validation_report import section
from benchmarks.validation_runs import Refusal
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.measure.bandwidth_curve import COPY, LOAD, UPDATE, UPDATES, Counts, Point, Sweep
from roofdsl.measure.device import describe_cpu, software
from roofdsl.measure.machine_file import to_machine
from roofdsl.measure.measurement import MATH, Measurement, load, save, source_hash
from roofdsl.validate.run import How, Run
from tests.benchmarks.test_validation_report import table
from tests.measure.examples import EXAMPLE
from tests.measure.made_up import characterized

MACHINE = to_machine(characterized(cores=1))


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
        subject, sizes = runs[0].kernel, runs[0].sizes
        assert isinstance(subject, Kernel)
        self.measured.append(subject.name)
        if not self.seconds:
            raise KeyboardInterrupt
        made_up = replace(
            EXAMPLE, kernel=subject.name, parameters=tuple(sizes.items()), device=describe_cpu().to_json(),
            software=software(), times_s=(self.seconds.pop(0),) * 5, details={MATH: how.math},
            source_sha256=source_hash(subject),
        )  # fmt: skip
        return [made_up]


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    return Session(monkeypatch)


NAMES = ("triad", "copy", "scale")


def interrupted(session: Session, folder: Path) -> None:
    """A run in which the triad is above the bound at first, and which ends while `scale` is measured."""
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
    assert [run.kernel for run in found.runs] == ["triad", "copy", "scale"] and found.taken_up == 2
    (above,) = found.above
    assert len(above.repeats) == REPEATS and above.measured_s == 1e-9
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


@pytest.mark.thorough
def test_kept_measurements_are_compared_by_the_code_of_today(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(session, tmp_path)
    session.commit = "commit 7654321, with changes not committed in roofdsl/x.py"
    before = (tmp_path / "results.json").read_bytes()
    found = compare_again(tmp_path)
    assert session.measured == [] and (tmp_path / "results.json").read_bytes() == before
    assert [run.kernel for run in found.runs] == ["triad", "copy"]
    (above,) = found.above
    assert len(above.repeats) == REPEATS
    text = section(found)
    assert "with the code of commit 1234567; bounds and expected times are those of the code of commit 7654321" in text
    assert "Which runs were refused in that session is not kept." in text
    assert "The machine file has changed" not in text

    validation_kept.save_refusals(tmp_path, [Refusal("lu", "n=9", "too long")])
    text = (tmp_path / "machine.roof").read_text(encoding="utf-8")
    (tmp_path / "machine.roof").write_text(text + "# another\n", encoding="utf-8")
    monkeypatch.setitem(validation.SETS, "shipped", lambda: {"triad": Case(lambda: made_up("triad"))})
    found = compare_again(tmp_path)
    why = [(r.kernel, r.reason) for r in found.refusals]
    assert ("lu", "too long") in why and ("triad", "its text has changed since it was measured") in why
    assert ("copy", "no kernel has this name now") in why
    assert "The machine file has changed since the measurements." in section(found)
    assert "Which runs were refused" not in section(found)
    with pytest.raises(CommandError, match="holds no results"):
        compare_again(tmp_path / "nothing")


def made_up(name: str) -> Kernel:
    text = f"kernel {name}(n):\n    out x: f64[n]\n    for i in range(n):\n        x[i] = 1\n"
    return kernel(load_file(Source("x.roof", text)), name)


@pytest.mark.thorough
def test_every_run_is_made_with_each_math_mode(session: Session, tmp_path: Path) -> None:
    session.seconds = [1e-3, 2e-3]
    found = run_all(tmp_path, ("triad",), maths=("relaxed", "strict"))
    assert [(run.math, run.measured_s) for run in found.runs] == [("relaxed", 1e-3), ("strict", 2e-3)]
    assert [row for row in table(section(found), "Measured rate over the bound's") if "math" in row]
    session.seconds = [3e-3]
    kept = load(tmp_path / "results.json")
    (tmp_path / "results.json").unlink()
    save(tmp_path / "results.json", kept[:1])
    found = run_all(tmp_path, ("triad",), maths=("relaxed", "strict"), resume=True)
    assert [(run.math, run.measured_s) for run in found.runs] == [("relaxed", 1e-3), ("strict", 3e-3)]
    assert found.taken_up == 1


# ---- sets of kernels ----

TWO = """\
kernel first(n):
    in x: f64[n]
    out y: f64[n]
    for i in range(n):
        y[i] = 2 * x[i]

kernel second(n, m):
    in A: f64[n, m]
    out s: f64[n]
    for i in range(n):
        s[i] = 0
        for j in range(m):
            s[i] += A[i, j]
"""


def blind_folder(folder: Path, sizes: object) -> Path:
    (folder / "two.roof").write_text(TWO, encoding="utf-8")
    (folder / "sizes.json").write_text(sizes if isinstance(sizes, str) else json.dumps(sizes), encoding="utf-8")
    return folder


@pytest.mark.thorough
def test_a_blind_set_is_measured_at_its_sizes(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = blind_folder(tmp_path, {"first": [{"n": 100}, {"n": 20_000}], "second": [{"n": 30, "m": 50}]})
    monkeypatch.setitem(validation.SETS, "blind", lambda: blind_cases(folder))
    session.seconds = [1e-3, 2e-3, 3e-3]
    found = run_all(tmp_path / "kept", of="blind")
    assert [(run.kernel, run.sizes) for run in found.runs] == [
        ("first", "n=100"), ("first", "n=20000"), ("second", "n=30, m=50"),
    ]  # fmt: skip
    assert [run.kind for run in found.runs] == ["streams", "streams", "reductions"]
    again = compare_again(tmp_path / "kept")
    assert [run.measured_s for run in again.runs] == [1e-3, 2e-3, 3e-3]


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"first": [{"n": 100}]}, "has no sizes of `second`"),
        ({"first": [], "second": [], "third": [{"n": 1}]}, "has sizes of `third`"),
        ({"first": {"n": 100}, "second": []}, "does not list sizes"),
        ({"first": [{"n": "large"}], "second": []}, "does not list sizes"),
        ("[", "cannot be read"),
    ],
)
def test_damaged_sizes_of_a_blind_set(sizes: object, words: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=words):
        blind_cases(blind_folder(tmp_path, sizes))


def test_polybench_is_measured_at_its_medium_size() -> None:
    cases = polybench_cases()
    assert len(cases) == 30
    assert cases["gemm"].sizes == ({"ni": 200, "nj": 220, "nk": 240},), "polybench.h 4.2: MEDIUM_DATASET of gemm"
    assert cases["jacobi_2d"].kernel().name == "jacobi_2d"


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


def test_memory_is_measured_again_with_the_streams_of_the_characterization(monkeypatch: pytest.MonkeyPatch) -> None:
    """Updates of several arrays in place may be the fastest of them, as in the machine's file."""
    points = tuple(
        Point(p, 1 << 30, rate, 0.0) for p, rate in ((LOAD, 19e9), (COPY, 10e9), (UPDATE, 22e9), (UPDATES, 25e9))
    )
    monkeypatch.setattr(validation, "Buffers", lambda size, cores: None)
    monkeypatch.setattr(
        validation, "run_sweep", lambda *_, patterns: Sweep(1, tuple(p for p in points if p.pattern in patterns))
    )
    last = replace(MACHINE.caches[-1], write_allocate=True)
    streams = validation.MemoryStreams(replace(MACHINE, caches=(last,)))
    assert streams.counts == "write_allocate" and streams.bytes_per_s() == 25e9
