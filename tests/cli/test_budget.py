"""Every command ends: within its budget of processor time, with what it found until then and a line about the rest."""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import subprocess
import sys
from math import inf
from pathlib import Path

import click
import pytest

from roofdsl import budget
from roofdsl.cli import main as command_line
from roofdsl.cli.budget import parse_budget, take_budget
from roofdsl.cli.failure import Failure, for_people
from roofdsl.overtime import Watcher
from roofdsl.plot.traffic_content import BY_FORM, BY_SIMULATION

HARD = {
    "hang": (
        """kernel h(n):
    assume n >= 4
    in A: f64[n + 1, 3*n + 2]
    out C: f64[n]
    for i in range(1, n - 1):
        for j in range(1, n, 3):
            C[j] = A[0, j] + A[n - 2 - i, i + 3] + A[j // 4, j + 2*i]
""",
        "n=40",
    ),
    "tiles": (
        """kernel g(n):
    assume n >= 4
    in A: f64[3*n + 3, 3*n + 3] col
    inout B: f64[2*n + 3, 3*n + 3]
    inout D: f32[n + 4]
    for ii in range(2, n, 4):
        for i in range(ii, min(ii + 4, n)):
            B[i, ii // 3] = max(A[3*ii, i], A[ii - i + n - 1, i], A[ii // 4, i + 2*ii]) - A[i, n - 1 - ii]
    for ii in range(1, n, 4):
        for i in range(ii, min(ii + 4, n)):
            for j in range(2):
                for k in range(j, j + 2):
                    D[k // 3] += select((n * B[2*i, ii + 2*i]) <= B[j, (ii + 1) // 2], A[k, i], D[ii + 3])
""",
        "n=40",
    ),
    "branches": (
        """kernel g(n, b):
    assume n >= 4
    inout A: f32[2*n + 4, 2*n + 4]
    inout B: f64[2*n + 1, n + 1]
    inout C: f64[n + 1, n + 1]
    for i in range(2, n, 2):
        for j in range(min(n, 2*i + 1)):
            if i % 4 < 2:
                for kk in range(2, n, 2):
                    for k in range(kk, min(kk + 2, n)):
                        for l in range(4):
                            let t1 = -(min(0.5, A[l, l], A[2*kk, i - k + n - 1]))
                            A[k + 1, 2] = tanh(A[(j // 2) % 3, kk] * t1)
            else:
                B[j + i, i] = n + B[j, j]
                C[i, j] = A[i, 2]
""",
        "n=20,b=2",
    ),
    "nest": (
        "kernel k(n):\n    in A: f64[n]\n    inout x: f64[n]\n"
        + "".join(f"{'    ' * (k + 1)}for i{k} in range(n):\n" for k in range(16))
        + f"{'    ' * 17}x[0] += A[i0]\n",
        "n=2",
    ),
    "stencil": (
        """kernel heat(tsteps, n):
    assume n >= 3
    inout A, B: f64[n, n, n]
    for t in range(1, tsteps + 1):
        for i in range(1, n - 1), j in range(1, n - 1), k in range(1, n - 1):
            B[i, j, k] = A[i + 1, j, k] + A[i - 1, j, k] + A[i, j + 1, k] + A[i, j - 1, k] + A[i, j, k + 1] + A[i, j, k]
        for i in range(7, n - 1), j in range(1, n - 1), k in range(1, n - 1):
            A[i, j, k] = B[i + 1, j, k] + B[i - 1, j, k] + B[i, j + 1, k] + B[i, j - 1, k] + B[i, j, k + 1] + B[i, j, k]
""",
        "tsteps=3,n=20",
    ),
}

COMMANDS = {
    "check": "check K",
    "fmt": "fmt --check K",
    "derive": "derive K",
    "derive at": "derive K --set S --cache 4KiB --line 64B --json",
    "derive steps": "derive K --cache Z --steps --latex",
    "predict": "predict K --set S --machine v100",
    "bound": "bound K --set S",
    "advise": "advise K --set S --machine v100",
    "simulate": "simulate K --set S --cache 4KiB",
    "emit": "emit K --to c",
    "plot traffic": "plot traffic K --set S -o out.png",
    "plot roofline": "plot roofline K --set S --machine v100 -o out.png",
    "explore": "explore K --machine v100 -o out.html",
    "sweep": "sweep K --set S --machine v100",
    "suite": "suite K --set S --machine v100",
    "threshold": "threshold K --over n --machine v100",
    "measure": "measure K --set S",
}
FEW = [("hang", "derive at"), ("tiles", "derive"), ("branches", "derive steps"), ("nest", "check"), ("tiles", "advise")]
OWN_WORK_S, TELLING_S = 20.0, 12.0
"""Processor time that compiling and measuring take at most; and starting, and telling what was found."""


def run(arguments: list[str], folder: Path, **environment: str) -> tuple[subprocess.CompletedProcess[str], float]:
    """What a command in a process of its own says, and the processor time of it and its children."""
    script = (
        "import os, resource, subprocess, sys\n"
        "code = subprocess.call([sys.executable, '-m', 'roofdsl', *sys.argv[1:]])\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(used.ru_utime + used.ru_stime, file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=folder, capture_output=True, text=True, timeout=550,
        env=os.environ | {"ROOFDSL_CACHE": "off"} | environment, check=False,
    )  # fmt: skip
    told, _, seconds = done.stderr.rstrip("\n").rpartition("\n")
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout, told), float(seconds)


def cases(config: pytest.Config) -> list[tuple[str, str]]:
    every = [(kernel, command) for kernel in HARD for command in COMMANDS]
    return every if config.getoption("--all-budgets") else FEW


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if {"hard", "command"} <= set(metafunc.fixturenames):
        metafunc.parametrize(("hard", "command"), cases(metafunc.config))


@pytest.mark.thorough
def test_every_command_ends(hard: str, command: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    text, sizes = HARD[hard]
    (tmp_path / "k.roof").write_text(text)
    seconds = 20.0 if request.config.getoption("--all-budgets") else 1.5
    words = [{"K": "k.roof", "S": sizes}.get(w, w) for w in COMMANDS[command].split()]
    done, spent = run([*words, "--budget", f"{seconds:g}s"], tmp_path)
    assert "Traceback" not in done.stderr
    assert "this is a bug in roofdsl" not in done.stderr
    # Native code that takes no signal is killed from outside, after the message.
    killed = done.returncode == -signal.SIGKILL & 255 and "error: nothing was found within" in done.stderr
    assert done.returncode in {0, 1, 2} or killed
    assert spent < seconds + TELLING_S + (OWN_WORK_S if command in {"measure", "simulate", "sweep"} else 0)
    if done.returncode == 2:
        assert "error: " in done.stderr


@pytest.mark.thorough
def test_numbers_come_first_and_the_rest_is_named(tmp_path: Path) -> None:
    text, sizes = HARD["hang"]
    (tmp_path / "k.roof").write_text(text)
    done, _ = run(["derive", "k.roof", "--set", sizes, "--json", "--budget", "1s"], tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    found = json.dumps(document)
    assert "left out to stay within 1 s of processor time" in found
    assert "left out to stay within 1 s of processor time; `--budget 20s` searches longer" in done.stderr
    plain, _ = run(["simulate", "k.roof", "--set", sizes, "--cache", "1GiB", "--json"], tmp_path)
    simulated = json.loads(plain.stdout)
    assert document["work"]["total"]["value"] == 2 * 38 * 13  # i from 1 to 38, j = 1, 4, ..., 37; two additions
    total = document["compulsory"]["bytes"]
    assert total["value"] is not None
    assert str(total["value"]) in json.dumps(simulated)


@pytest.mark.thorough
def test_a_figure_of_traffic_has_the_simulated_curve_where_the_forms_take_too_long(tmp_path: Path) -> None:
    text, sizes = HARD["stencil"]
    (tmp_path / "k.roof").write_text(text)
    done, _ = run(["plot", "traffic", "k.roof", "--set", sizes, "-o", "out.svg", "--budget", "2s"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "left out to stay within 2 s of processor time" in done.stderr
    drawn = (tmp_path / "out.svg").read_text()
    assert BY_SIMULATION in drawn
    assert BY_FORM not in drawn


MIRRORED = """
kernel mirrored(t, n):
    inout x: f64[n]
    inout s: f64
    for r in range(t):
        for i in range(n):
            s += x[i]
        for i in range(n):
            s += x[n - 1 - i]
"""


@pytest.mark.thorough
def test_a_figure_of_traffic_does_without_a_long_search_for_the_best_replacement(tmp_path: Path) -> None:
    """Under the best replacement, each access of a sweep there and back moves as many lines as it is far from the end,
    in compiled code, which nothing interrupts.
    """
    (tmp_path / "k.roof").write_text(MIRRORED)
    words = ["plot", "traffic", "k.roof", "--set", "t=10,n=30000", "-o", "out.svg", "--budget", "3s"]
    done, _ = run(words, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the best replacement of kernel mirrored: left out to stay within 3 s" in done.stderr
    assert (tmp_path / "out.svg").exists()


@pytest.mark.thorough
def test_simulated_numbers_come_before_their_figure(tmp_path: Path) -> None:
    text, sizes = HARD["stencil"]
    (tmp_path / "k.roof").write_text(text)
    (tmp_path / "out.svg").mkdir()  # which cannot be replaced by a file
    words = ["simulate", "k.roof", "--set", sizes, "--cache", "4KiB", "--curve", "out.svg", "--budget", "2s"]
    done, _ = run(words, tmp_path)
    assert done.returncode == 2
    assert "misses" in done.stdout


@pytest.mark.thorough
def test_a_suite_has_a_limit_for_each_kernel_and_none_for_all(tmp_path: Path) -> None:
    body = "    in A: f64[n]\n    out B: f64[n]\n    for i in range(n):\n        B[i] = A[i] * 2\n"
    (tmp_path / "many.roof").write_text("".join(f"kernel k{k}(n):\n{body}" for k in range(8)))
    done, _ = run(["suite", "many.roof", "--set", "n=100", "--machine", "v100", "--budget", "3s"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "not found" not in done.stdout
    assert "left out" not in done.stderr


@pytest.mark.thorough
def test_a_page_leaves_time_for_each_of_its_kernels(tmp_path: Path) -> None:
    """The plateaus in lines of the first kernels would take all of it."""
    words = ["explore", "gemv", "matmul", "jacobi2d", "--machine", "v100", "--set", "n=1000", "-o", "page.html"]
    done, _ = run([*words, "--budget", "3s"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "3 kernels, 1 machine" in done.stderr + done.stdout


@pytest.mark.thorough
def test_what_a_budget_cut_is_not_kept_on_disk(tmp_path: Path) -> None:
    (tmp_path / "k.roof").write_text(HARD["hang"][0])
    kept = tmp_path / "kept"
    for _ in range(2):  # a second run must not find the first one's
        done, _ = run(["derive", "k.roof", "--budget", "1s"], tmp_path, ROOFDSL_CACHE=str(kept))
        assert "left out to stay within 1 s" in done.stderr
    texts = [path.read_bytes() for path in kept.rglob("*") if path.is_file()]
    assert not any(b"left out" in text for text in texts)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("20s", (20.0, budget.DEFAULT_BYTES)),
        ("500ms", (0.5, budget.DEFAULT_BYTES)),
        ("2min", (120.0, budget.DEFAULT_BYTES)),
        ("1.5h, 16GiB", (5400.0, 16 << 30)),
        ("", (budget.DEFAULT_S, budget.DEFAULT_BYTES)),
        ("none", (inf, 1 << 62)),
    ],
)
def test_how_budgets_are_written(text: str, found: tuple[float, int]) -> None:
    assert parse_budget(text) == found


@pytest.mark.parametrize("text", ["20", "-1s", "0s", "abc", "1e9s", "20s,", "20s,4", "2 minutes", "9" * 400 + "s"])
def test_what_is_no_budget(text: str) -> None:
    with pytest.raises(click.UsageError, match="budget"):
        parse_budget(text)


def test_the_option_may_stand_anywhere() -> None:
    assert take_budget(["derive", "--budget", "2s", "x", "--budget=3s"])[:2] == (["derive", "x"], 3.0)
    assert take_budget(["check", "--", "--budget"])[0] == ["check", "--", "--budget"]
    with pytest.raises(click.UsageError, match="takes a time"):
        take_budget(["derive", "--budget"])


def test_seconds_of_a_measurement_stay_with_the_command() -> None:
    """`measure` and `validate` have a `--budget SECONDS` of their own; a unit makes it the command's."""
    assert take_budget(["measure", "x", "--budget", "0.05"]) == (
        ["measure", "x", "--budget", "0.05"],
        *parse_budget(""),
    )
    assert take_budget(["validate", "x", "--budget=5"])[0] == ["validate", "x", "--budget", "5"]
    rest, seconds, _ = take_budget(["--budget", "2min", "measure", "x", "--budget", "5"])
    assert (rest, seconds) == (["measure", "x", "--budget", "5"], 120.0)
    for other in ("schema", "predict"):  # what is named like these commands is none of them
        with pytest.raises(click.UsageError, match="is not a time"):
            take_budget([other, "measure", "--budget", "5"])
    with pytest.raises(click.UsageError, match="is not a time"):
        take_budget(["--budget", "5", "measure", "x"])
    with pytest.raises(click.UsageError, match="is not a time"):
        take_budget(["derive", "x", "--budget", "5"])


def busy() -> None:
    while True:
        sum(range(100))


def test_a_region_is_interrupted_and_what_follows_is_not() -> None:
    with budget.beginning(0.3, 1 << 40, whole=True):
        with pytest.raises(budget.Spent), budget.region("the busy loop"):
            busy()
        sum(range(1_000_000))  # may still be told
        with pytest.raises(budget.Spent), budget.region("another"):
            raise AssertionError("nothing is left for it")


def test_no_import_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a module that was interrupted, submodules stay without the package that has them."""
    (tmp_path / "slowly_imported.py").write_text(
        "import time\nend = time.process_time() + 0.5\nwhile time.process_time() < end:\n    pass\nwhole = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with budget.beginning(0.2, 1 << 40, whole=True):
        with pytest.raises(budget.Spent), budget.region("an import"):
            slowly = importlib.import_module("slowly_imported")
            assert slowly.whole
            busy()
        assert "slowly_imported" in sys.modules


def test_a_whole_command_is_stopped_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "LEAST_GRACE_S", 0.1)
    with pytest.raises(budget.Spent), budget.beginning(0.2, 1 << 40, whole=True):
        busy()


def test_telling_that_a_command_was_stopped_is_not_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(failure: Failure) -> str:
        sum(range(10_000_000))  # more than a tick
        return for_people(failure)

    def invoke(context: click.Context) -> None:
        while True:
            pass

    monkeypatch.setattr(budget, "LEAST_GRACE_S", 0.1)
    monkeypatch.setattr(command_line.cli, "invoke", invoke)
    assert command_line.run(["--budget", "0.5s", "models"], spoken=told) == 2


def test_parts_share_what_is_left() -> None:
    with budget.beginning(10, 1 << 40, whole=True):
        with budget.part(2):
            assert 4.5 < budget.left_s() <= 5
            with budget.part(5):
                assert 0.8 < budget.left_s() <= 1
        assert 9.5 < budget.left_s() <= 10
    assert budget.left_s() == inf


def test_own_work_counts_only_in_regions() -> None:
    with budget.beginning(10, 1 << 40, whole=False) as own:
        begun = budget.processor_s()
        while budget.processor_s() < begun + 0.3:
            pass
        assert own.spent() < 0.1
        with budget.region("an analysis"):
            begun = budget.processor_s()
            while budget.processor_s() < begun + 0.3:
                pass
        assert 0.2 < own.spent() < 0.5


def test_without_a_limit_parts_have_none() -> None:
    with budget.beginning(inf, 1 << 62, whole=True), budget.part(4), budget.region("a part"):
        assert budget.left_s() == inf


def test_what_is_done_once_does_not_count() -> None:
    with budget.beginning(0.2, 1 << 40, whole=True) as own, budget.region("a simulation"):
        with budget.uncounted("compiling"):
            assert own.once == "compiling"
            begun = budget.processor_s()
            while budget.processor_s() < begun + 0.5:
                pass
        assert own.spent() < 0.2 and not own.once


def test_memory_is_part_of_the_budget() -> None:
    kept = []
    with (
        budget.beginning(60, budget.resident_bytes() + (200 << 20), whole=True),
        pytest.raises(budget.Spent),
        budget.region("a large table"),
    ):
        while len(kept) < 4000:
            kept.append(bytearray(b"x" * (1 << 20)))
    assert len(kept) < 4000


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_roofdsl_is_imported_ends_without_a_traceback() -> None:
    script = """
import os, signal, sys
import roofdsl.__main__ as entry
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "roofdsl.cli.main":
            os.kill(os.getpid(), signal.SIGINT)
            sum(range(10**6))
sys.meta_path.insert(0, Finder())
entry.main()
"""
    done = subprocess.run([sys.executable, "-c", script, "models"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_parameters_that_say_nothing_cost_nothing(tmp_path: Path) -> None:
    names = ", ".join(f"p{k}" for k in range(3000))
    loops = "    in A: f64[p0]\n    out B: f64[p0]\n    for i in range(p0):\n        B[i] = A[i] * 2\n"
    (tmp_path / "many.roof").write_text(f"kernel k({names}):\n{loops}")
    (tmp_path / "one.roof").write_text(f"kernel k(p0):\n{loops}")
    many, spent = run(["derive", "many.roof", "--json"], tmp_path)
    one, _ = run(["derive", "one.roof", "--json"], tmp_path)
    assert json.loads(many.stdout)["compulsory"] == json.loads(one.stdout)["compulsory"]
    assert spent < 5


NO_LOOP = {
    "store": ("kernel k(n):\n    inout x: f64[n]\n    x[0] = 1\n", 0, 8),
    "scalar": ("kernel k(n):\n    in a: f64, x: f64[n]\n    out y: f64\n    y = a * x[0]\n", 8, 8),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", NO_LOOP)
def test_a_kernel_without_a_loop(name: str, tmp_path: Path) -> None:
    text, loads, stores = NO_LOOP[name]
    (tmp_path / "k.roof").write_text(text)
    for cache in ([], ["--cache", "1KiB"]):
        done, _ = run(["derive", "k.roof", "--set", "n=5", "--json", *cache], tmp_path)
        assert done.returncode == 0, done.stderr
        traffic = json.loads(done.stdout)["compulsory"]
        assert (traffic["loads"]["value"], traffic["stores"]["value"]) == (loads, stores)
    for command in ("plot traffic k.roof --set n=5 -o out.png", "explore k.roof --machine v100 -o out.html"):
        done, _ = run(command.split(), tmp_path)
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not Watcher.is_possible(), reason="the system does not tell the processor time of a process")
def test_native_code_without_an_end_is_ended() -> None:
    """What holds the interpreter for minutes gets no signal: the process is killed from outside, and says why."""
    program = (
        "from roofdsl import budget\n"
        "budget.LEAST_GRACE_S = budget.GRACE = 0.1\n"
        "budget.WATCHED_FROM_S, budget.OVERTIME_S = 0.2, 0.3\n"
        "with budget.beginning(0.6, 1 << 40, whole=True) as own:\n"
        "    own.last_words = 'error: the end\\n'\n"
        "    while own._watcher is None:\n"
        "        pass\n"
        "    print('on', flush=True)\n"
        "    sum(range(10**12))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGKILL, "on\n", "error: the end\n")


@pytest.mark.skipif(not Watcher.is_possible(), reason="the system does not tell the processor time of a process")
def test_nothing_watches_a_command_that_has_ended() -> None:
    program = (
        "import os\n"
        "from roofdsl import budget\n"
        "budget.WATCHED_FROM_S = 0.1\n"
        "with budget.beginning(60, 1 << 40, whole=True) as own:\n"
        "    while own._watcher is None:\n"
        "        pass\n"
        "try:\n"
        "    os.waitpid(-1, os.WNOHANG)\n"
        "except ChildProcessError:\n"
        "    print('alone')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "alone\n", "")


@pytest.mark.skipif(not Watcher.is_possible(), reason="the system does not tell the processor time of a process")
def test_the_watcher_holds_no_pipe_open() -> None:
    """The end of a pipe is seen although the process was copied while the pipe was open."""
    reading, writing = os.pipe()
    watcher = Watcher("")
    try:
        os.close(writing)
        ended, _, _ = select.select([reading], [], [], 30)
        assert ended and os.read(reading, 1) == b""
    finally:
        watcher.stop()
        os.close(reading)


FORKED = """
import os, threading, time
from roofdsl import budget
from roofdsl.sets.child_process import in_child

held = threading.Lock()  # as that of concurrent.futures, which a thread cannot take twice

def after() -> None:
    end = time.process_time() + 0.3
    while time.process_time() < end:
        pass
    held.release()

os.register_at_fork(before=held.acquire, after_in_parent=after, after_in_child=held.release)
budget.WATCHED_FROM_S = 0
with budget.beginning(30, 1 << 40, whole=True):
    print(in_child(lambda: "done", 5))
"""


def test_the_clock_forks_nothing_in_the_middle_of_a_fork() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
