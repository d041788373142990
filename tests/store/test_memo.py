"""What is kept under which key, and that a result from the disk is the result."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from roofdsl import reproducibility
from roofdsl.checks.deep import require_legal
from roofdsl.cli.main import cli, run
from roofdsl.counts import derive as module
from roofdsl.counts.derive import derive
from roofdsl.counts.traffic_at import traffic_at
from roofdsl.lang.diagnostics import InputError
from roofdsl.loops.load import load_file
from roofdsl.loops.model import Kernel
from roofdsl.reproducibility import Seen
from roofdsl.sets import child_process as isolated
from roofdsl.store import entries, memo
from tests.oracle.loading import kernel_of

TEXT = """\
kernel smooth(n, m):
    assume n >= 8
    in A: f64[n, m]
    out B: f32[n, m]
    for i in range(1, n - 1):
        for j in range(m):
            B[i, j] = A[i - 1, j] + 2 * A[i + 1, j]
"""

SAME = {
    "comments": TEXT.replace("    assume", "    # all of it\n    assume").replace("m):\n", "m):  # sizes\n"),
    "blank lines": "\n\n" + TEXT.replace("    for i", "\n    for i"),
    "spaces": TEXT.replace("i - 1", "i-1").replace(" * ", "*").replace("[n, m]", "[n,m]"),
    "carriage returns": TEXT.replace("\n", "\r\n"),
}
OTHER = {
    "a bound": ("n - 1)", "n - 2)"),
    "a step": ("range(m)", "range(0, m, 2)"),
    "a subscript": ("i - 1, j", "i, j"),
    "a type": ("f64", "f32"),
    "an intent": ("out B", "inout B"),
    "an operation": ("j] + 2", "j] - 2"),
    "a number": ("2 * A", "3 * A"),
    "an assumption": ("n >= 8", "n >= 9"),
    "the kernel's name": ("smooth", "smoother"),
    "a parameter's default": ("n, m)", "n, m = 5)"),
    "the order of parameters": ("smooth(n, m)", "smooth(m, n)"),
    "a convention": ("    in A", "    traffic once\n    in A"),
}


class Counted:
    """How often derivations were made from the beginning."""

    def __init__(self) -> None:
        self.times = 0


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, which keeps everything."""
    monkeypatch.setenv("ROOFDSL_CACHE", "on")
    monkeypatch.setenv("ROOFDSL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(memo, "LEAST_S", 0.0)
    return tmp_path / "cache"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counted]:
    counted, original = Counted(), module._derive

    def derived(*args: Any) -> Any:
        counted.times += 1
        return original(*args)

    monkeypatch.setattr(module, "_derive", derived)
    yield counted


def test_tests_use_nobodys_cache() -> None:
    assert os.environ["ROOFDSL_CACHE"] == "off"


def test_a_derivation_is_made_once_and_is_the_same_from_the_disk(cache: Path, made: Counted) -> None:
    kernel = kernel_of(TEXT)
    first, second = (derive(kernel, {"n": 100, "m": 50}, cache_bytes=4096, steps=True) for _ in range(2))
    assert made.times == 1
    assert first is not second
    assert first == second
    assert second.kernel is kernel
    assert second.steps is not None and second.steps == first.steps
    again = {row.plateau for row in second.steps.plateaus}
    assert {id(p) for p in again} == {id(p) for p in second.plateaus}  # still the very same plateaus


@pytest.mark.parametrize("what", SAME)
def test_what_means_the_same_is_found(what: str, cache: Path, made: Counted) -> None:
    derive(kernel_of(TEXT), plateaus=False)
    other = kernel_of(SAME[what])
    assert derive(other, plateaus=False).kernel is other
    assert made.times == 1


def test_steps_quote_the_file_in_hand(cache: Path, made: Counted) -> None:
    derive(kernel_of(TEXT), steps=True)
    found = derive(kernel_of(SAME["spaces"]), steps=True)
    assert found.steps is not None and "A[i-1, j]" in found.steps.statements[0].text
    assert made.times == 2
    derive(kernel_of(SAME["comments"]), steps=True)
    assert made.times == 2


@pytest.mark.spread(6)
@pytest.mark.parametrize("what", OTHER)
def test_what_means_something_else_is_not_found(what: str, cache: Path, made: Counted) -> None:
    before, after = OTHER[what]
    assert before in TEXT
    texts = TEXT, TEXT.replace(before, after, 1)
    for text in texts:
        derive(kernel_of(text), plateaus=False)
    assert made.times == 2


def test_every_option_is_part_of_the_key(cache: Path, made: Counted) -> None:
    kernel = kernel_of(TEXT)
    asked: list[dict[str, Any]] = [
        {}, {"values": {"n": 9}}, {"values": {"n": 10}}, {"traffic": "once"}, {"traffic": "write_allocate"},
        {"cache_bytes": 4096}, {"cache_bytes": 8192}, {"line_bytes": 64}, {"steps": True}, {"any_cache": True},
    ]  # fmt: skip
    for options in asked:
        derive(kernel, **{"plateaus": False, **options})
    derive(kernel, plateaus=True)
    assert made.times == len(asked) + 1
    derive(kernel, plateaus=False, traffic="load_store")  # what the kernel has anyhow
    assert made.times == len(asked) + 1


@pytest.mark.parametrize("change", ["__version__", "LIBRARIES", "python", "source"])
def test_other_versions_are_not_read(
    change: str, cache: Path, made: Counted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    derive(kernel_of(TEXT), plateaus=False)
    memo.environment.cache_clear()
    if change == "python":
        monkeypatch.setattr("sys.version", "3.99")
    elif change == "source":
        copy = tmp_path / "roofdsl"
        for stage in memo.STAGES:
            (copy / stage).mkdir(parents=True)
            (copy / stage / "a.py").write_text(f"{stage} = 1")
        monkeypatch.setattr(memo, "__file__", str(copy / "store" / "memo.py"))
        before = memo.environment()
        (copy / "counts" / "lines").mkdir()
        (copy / "counts" / "lines" / "a.py").write_text("counts = 2")
        memo.environment.cache_clear()
        assert memo.environment() != before
    else:
        monkeypatch.setattr(memo, change, {"__version__": "9.9", "LIBRARIES": ("nothing",)}[change])
    derive(kernel_of(TEXT), plateaus=False)
    memo.environment.cache_clear()
    assert made.times == 2


def test_the_libraries_are_found() -> None:
    found = memo.environment()
    assert found is not None
    assert "islpy_barvinok-" in found and "sympy-" in found


def test_no_stage_outside_the_fingerprint_decides_a_result() -> None:
    package = Path(memo.__file__).parents[1]
    every = {*memo.STAGES, *memo.FOR_MACHINES}
    for stage in every:
        known = set(memo.STAGES) if stage in memo.STAGES else every
        for path in (package / stage).rglob("*.py"):
            imported = set(re.findall(r"^\s*(?:from|import) roofdsl\.(\w+)", path.read_text("utf-8"), re.MULTILINE))
            # `overtime` can only end a command, and frontends read a kernel before anything is asked about it: neither
            # decides a result.
            reads = {"frontends"} if path.name == "definition.py" else set()
            assert imported - {"overtime"} - reads <= known, path


def test_without_source_nothing_is_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memo.environment.cache_clear()
    monkeypatch.setattr(memo, "__file__", "/nowhere/roofdsl.zip/roofdsl/store/memo.py")
    derive(kernel_of(TEXT), plateaus=False)
    memo.environment.cache_clear()
    assert not cache.exists()


def entries_of(cache: Path) -> list[Path]:
    return [p for p in cache.rglob("*") if p.is_file()]


def clear_but(cache: Path, kernel: Kernel) -> Path:
    """The one entry of a derivation of `kernel`."""
    entries.clear(cache)
    derive(kernel, {"n": 20, "m": 10}, plateaus=False)
    found = [p for p in entries_of(cache) if b"\\nderive\\n" in p.read_bytes()]
    assert len(found) == 1
    return found[0]


def test_a_foreign_entry_with_a_good_checksum_is_not_believed(cache: Path, made: Counted) -> None:
    kernel = kernel_of(TEXT)
    path = clear_but(cache, kernel)
    expected = derive(kernel, {"n": 20, "m": 10}, plateaus=False)
    other = kernel_of(TEXT.replace("n - 1)", "n - 2)"))
    foreign = clear_but(cache, other)
    path.parent.mkdir(exist_ok=True)
    os.replace(foreign, path)
    made.times = 0
    assert derive(kernel, {"n": 20, "m": 10}, plateaus=False) == expected
    assert made.times == 1
    assert derive(kernel, {"n": 20, "m": 10}, plateaus=False) == expected  # and was put right
    assert made.times == 1


@pytest.mark.parametrize("result", [7, None, {}, {"classes": [], "nodes": [["nothing"]], "root": 1}])
def test_a_result_that_is_none_is_not_believed(result: object, cache: Path) -> None:
    kernel = kernel_of(TEXT)
    expected = derive(kernel, {"n": 20, "m": 10}, plateaus=False)
    path = clear_but(cache, kernel)
    entries.put(cache, path.name, {**entries.get(cache, path.name), "result": result})
    assert derive(kernel, {"n": 20, "m": 10}, plateaus=False) == expected


def test_what_a_limit_of_time_decided_is_kept_for_a_day(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, calls = kernel_of(TEXT), []

    def compute() -> int:
        calls.append(1)
        reproducibility.decided_by_clock()
        return 7

    now = 1_000_000.0
    monkeypatch.setattr(memo.time, "time", lambda: now)
    assert [memo.recall("test", kernel, (), compute) for _ in range(2)] == [7, 7]
    assert len(calls) == 1
    now += memo.CLOCK_S + 1
    assert memo.recall("test", kernel, (), compute) == 7
    assert len(calls) == 2
    now -= 10 * memo.CLOCK_S  # a clock that was set back
    assert memo.recall("test", kernel, (), compute) == 7
    assert len(calls) == 3


def test_what_rests_on_a_result_kept_for_a_day_is_kept_for_a_day(cache: Path) -> None:
    kernel = kernel_of(TEXT)

    def inner() -> int:
        reproducibility.decided_by_clock()
        return 7

    memo.recall("inner", kernel, (), inner)
    memo.recall("outer", kernel, (), lambda: memo.recall("inner", kernel, (), inner))
    kept = [entries.get(cache, path.name) for path in entries_of(cache)]
    assert len(kept) == 2 and all(content["until"] for content in kept)


def test_an_entry_of_a_senseless_time_is_not_believed(cache: Path) -> None:
    kernel = kernel_of(TEXT)
    expected = derive(kernel, plateaus=False)
    for path in entries_of(cache):
        entries.put(cache, path.name, {**entries.get(cache, path.name), "until": "tomorrow"})
    assert derive(kernel, plateaus=False) == expected


def test_what_nests_too_deep_is_found_without_the_cache(cache: Path) -> None:
    deep: tuple[object, ...] = ()
    for _ in range(5000):
        deep = (deep,)
    assert memo.recall("test", kernel_of(TEXT), deep, lambda: 7) == 7
    assert memo.recall("test", kernel_of(TEXT), (), lambda: deep) is deep


def test_what_chance_decided_is_not_kept(cache: Path) -> None:
    kernel, calls = kernel_of(TEXT), []

    def compute() -> int:
        calls.append(1)
        reproducibility.decided_by_chance()
        return 7

    assert [memo.recall("test", kernel, (), compute) for _ in range(2)] == [7, 7]
    assert len(calls) == 2


def test_what_took_no_time_is_not_kept(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "LEAST_S", 1e9)
    derive(kernel_of(TEXT), plateaus=False)
    assert entries_of(cache) == []


@pytest.mark.skipif(not isolated.CAN_FORK, reason="no child processes here")
@pytest.mark.parametrize(("signal", "clock", "chance"), [("SIGVTALRM", 1, 0), ("SIGKILL", 0, 1)])
def test_children_that_were_stopped_are_told(signal: str, clock: int, chance: int) -> None:
    import signal as signals

    before = reproducibility.seen()
    with pytest.raises(isolated.Stopped):
        isolated.in_child(lambda: str(os.kill(os.getpid(), getattr(signals, signal))), 10.0)
    assert reproducibility.since(before) == Seen(clock, chance)


@pytest.mark.skipif(not isolated.CAN_FORK, reason="no child processes here")
def test_what_a_child_was_told_its_parent_knows() -> None:
    def told(tell: Any) -> str:
        tell()
        return "done"

    both = {reproducibility.decided_by_clock: Seen(1, 0), reproducibility.decided_by_chance: Seen(0, 1)}
    for tell, expected in both.items():
        before = reproducibility.seen()
        assert isolated.in_child(lambda tell=tell: told(tell), 10.0) == "done"
        assert reproducibility.since(before) == expected


def test_counts_and_legality_are_kept_too(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = kernel_of(TEXT.replace("kernel ", "kernel not_in_this_process_", 1))
    first = traffic_at(kernel, {"n": 20, "m": 10}, 512, None, "load_store")
    require_legal(kernel)
    kept = len(entries_of(cache))
    monkeypatch.setattr("roofdsl.counts.traffic_at._traffic_at", None)
    monkeypatch.setattr("roofdsl.checks.deep._require_legal", None)
    assert traffic_at(kernel, {"n": 20, "m": 10}, 512, None, "load_store") == first
    require_legal(kernel)
    assert len(entries_of(cache)) == kept == 2


def test_errors_are_found_anew_where_they_stand(cache: Path) -> None:
    wrong = TEXT.replace("range(1, n - 1)", "range(1, n)")
    for text, line in ((wrong, ":7:"), ("# one line more\n" + wrong, ":8:")):
        with pytest.raises(InputError, match=line):
            derive(kernel_of(text))


# ---- as people use it ----


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "smooth.roof"
    path.write_text(TEXT)
    return str(path)


def output(*args: str) -> str:
    result = CliRunner().invoke(cli, list(args))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("options", [(), ("--json",), ("--latex",), ("--steps",), ("--cache", "Z")])
def test_what_is_shown_is_the_same(options: tuple[str, ...], cache: Path, file: str, made: Counted) -> None:
    first = output("derive", file, *options)
    assert made.times == 1
    assert output("derive", file, *options) == first
    assert made.times == 1


def test_predictions_are_the_same(cache: Path, file: str) -> None:
    args = "predict", file, "--machine", "skylake_gold_6148", "--set", "n=64,m=64", "--json"
    first = output(*args)
    assert entries_of(cache)
    assert output(*args) == first


def test_a_damaged_cache_changes_nothing(cache: Path, file: str) -> None:
    first = output("derive", file)
    for path in entries_of(cache):
        path.write_bytes(path.read_bytes()[:-7])
    assert output("derive", file) == first


def test_the_option_does_without(
    cache: Path, file: str, made: Counted, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for args in (["--no-cache", "derive", file], ["derive", file, "--no-cache"]):
        monkeypatch.setenv("ROOFDSL_CACHE", "on")
        assert run(args) == 0
        assert os.environ["ROOFDSL_CACHE"] == "off"  # for child processes too
    assert made.times == 2
    assert not cache.exists()
    assert "smooth(n, m)" in capfd.readouterr().out


def test_the_command_tells_and_clears(cache: Path, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    output("derive", file)
    count = len(entries_of(cache))
    told = json.loads(output("cache", "info", "--json"))
    assert told["schema"] == "roofdsl.cache/1"
    assert (told["on"], told["folder"], told["entries"]) == (True, str(cache), count)
    assert told["bytes"] == sum(p.stat().st_size for p in entries_of(cache))
    assert f"entries  {count}\n" in output("cache", "info")
    monkeypatch.setenv("ROOFDSL_CACHE", "off")
    assert output("cache", "info").startswith("disabled")
    assert f"removed {count} entr" in output("cache", "clear")
    assert entries_of(cache) == []


def test_without_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roofdsl.cli.cache.folder", lambda: None)
    assert "ROOFDSL_CACHE_DIR" in output("cache", "info")
    assert CliRunner().invoke(cli, ["cache", "clear"]).exit_code != 0


def test_shipped_kernels_of_the_cache_are_read_without_the_integer_sets(cache: Path) -> None:
    """What a hit costs: no set is made."""
    from roofdsl.loops.load import kernel
    from roofdsl.machine.find import find_model

    found = kernel(load_file(find_model("gemv").path), "gemv")
    first = derive(found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roofdsl.counts.kernel_sets.build", None)
        patch.setattr("roofdsl.sets.native_calls.counted_as_it_is", None)
        assert derive(found) == first
