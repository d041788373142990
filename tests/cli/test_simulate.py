"""`simulate` and `plot traffic` as commands: documents, errors, files, and stopping them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from roofdsl.cli.main import run
from tests.cli.conftest import ROOT, Run


@pytest.mark.thorough
def test_json_of_one_cache_is_derive_s(roofdsl: Run) -> None:
    for options in (["--traffic", "load_store"], ["--traffic", "write_allocate", "--line", "64B"]):
        size = ["gemv", "--set", "n=40", "--cache", "512B", *options]
        simulated = json.loads(roofdsl("simulate", *size, "--json").stdout)
        derived = json.loads(roofdsl("derive", *size, "--json").stdout)
        assert simulated["schema"] == "roofdsl.simulate/1"
        assert simulated["accesses"] == 4 * 40**2
        (level,) = simulated["levels"]
        assert {"name", "loads", "stores", "hits", "misses", "bytes"} <= set(level)
        assert level["load_bytes"] == derived["loads"]["value"]
        assert level["store_bytes"] == derived["stores"]["value"]
        assert level["bytes"] == level["unit_bytes"] * (level["loads"] + level["stores"]) == derived["bytes"]["value"]
        assert level["hits"] + level["misses"] == simulated["accesses"]


def test_a_machine_s_levels_and_several_kernels(roofdsl: Run) -> None:
    result = roofdsl(
        "simulate",
        "models/kernels/stream.roof",
        "--machine",
        "zen2_epyc_7452",
        "--set",
        "n=9000",
        "--json",
        fresh=True,
    )
    assert result.returncode == 0
    kernels = {k["kernel"]: k for k in json.loads(result.stdout)["kernels"]}
    for name, streams in (("copy", 1), ("scale", 1), ("triad", 2)):
        kernel = kernels[name]
        assert [level["name"] for level in kernel["levels"]] == ["L1", "L2", "L3"]
        lines = 9000 // 8
        for level in kernel["levels"]:  # every line is loaded, that of the target too, and stored once
            assert (level["loads"], level["stores"]) == ((streams + 1) * lines, lines)


@pytest.mark.thorough
def test_lines_of_elements_of_several_sizes(roofdsl: Run) -> None:
    size = ["gemm_f16", "--set", "m=9,n=8,k=7", "--cache", "200B", "--traffic", "load_store", "--json"]
    (level,) = json.loads(roofdsl("simulate", *size).stdout)["levels"]
    derived = json.loads(roofdsl("derive", *size).stdout)
    assert (level["load_bytes"], level["store_bytes"]) == (derived["loads"]["value"], derived["stores"]["value"])


@pytest.mark.thorough
def test_the_curve_of_the_histogram(roofdsl: Run) -> None:
    size = ["matmul", "--set", "n=12", "--traffic", "load_store", "--json"]
    curve = json.loads(roofdsl("simulate", *size, "--histogram").stdout)["curve"]
    assert curve["cache_bytes"][0] == 8
    assert curve["bytes"][-1] == 32 * 12**2
    for cache in (8, 64, 1000):
        at = max(i for i, z in enumerate(curve["cache_bytes"]) if z <= cache)
        derived = json.loads(roofdsl("derive", *size, "--cache", f"{cache}B").stdout)
        assert curve["bytes"][at] == derived["bytes"]["value"]


@pytest.mark.parametrize(("ways", "shown"), [(1, "1 way, 64 sets"), (2, "2 ways, 32 sets"), (64, "64 ways, 1 set,")])
def test_one_way_and_one_set(ways: int, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "gemv", "--set", "n=9", "--cache", "4KiB", "--line", "64B", "--ways", str(ways)]) == 0
    assert shown in capsys.readouterr().out


@pytest.mark.thorough
def test_the_histogram_of_sets(roofdsl: Run) -> None:
    size = ["matmul", "--set", "n=40", "--line", "64B", "--json"]
    curve = json.loads(roofdsl("simulate", *size, "--histogram", "--sets", "8").stdout)["curve"]
    assert curve["sets"] == 8
    for ways in (1, 2, 8, 9):
        cache = ways * 8 * 64
        at = max(i for i, z in enumerate(curve["cache_bytes"]) if z <= cache)
        simulated = json.loads(roofdsl("simulate", *size, "--cache", f"{cache}B", "--ways", str(ways)).stdout)
        assert curve["misses"][at] == simulated["levels"][0]["misses"]
        assert curve["bytes"][at] == simulated["levels"][0]["bytes"]
    shown = roofdsl("simulate", *size[:-1], "--histogram", "--sets", "8").stdout
    assert "of 8 sets" in shown and "ways" in shown


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("gemv", "give the caches"),
        ("gemv --sets 8 --set n=9 --cache 4KiB", "--histogram is missing"),
        ("gemv --sets 8 --set n=9 --histogram --curve a.png", "fully associative"),
        ("gemv --sets 0 --set n=9 --histogram", "cannot have 0 sets"),
        ("gemv --cache 4KiB --machine v100", "choose one"),
        ("gemv --cache 32B --line 64B --set n=9", "cannot hold a line of 64 B"),
        ("gemv --cache 4KiB --line 60B --set n=9", "power of two, at most 16 MiB\nhelp: use 32 B or 64 B"),
        (
            "gemv --histogram --policy fifo --set n=9",
            "with --sets N: for each number of ways); leave out `--policy fifo`",
        ),
        ("gemv --histogram --sets 4 --ways 4 --set n=9", "leave out `--ways 4`"),
        (
            "gemv --histogram --line 64B --sector 32B --write through --around --set n=9",
            "`--sector 32B`, `--write through` and `--around`",
        ),
        (
            "gemv --curve a.svg --last-level inclusive --set n=9",
            "--curve draws fully associative LRU caches; leave out",
        ),
        ("matmul --cache 32KiB --policy opt --set n=5000", "it looks ahead\nhelp: use smaller sizes\n"),
        ("matmul --cache 32KiB --policy opt --set n=1000 --long --budget none", "makes 4,000,000,000 accesses"),
        ("gemv --cache 4KiB --line 64B --ways 7 --set n=9", "does not divide into sets of 7 ways"),
        ("gemv --cache 4KiB --line 64B --ways 0 --set n=9", "has 0 ways"),
        ("gemv --cache 4000 --set n=9", "unit"),
        ("minplus --cache 4KiB", "needs a number for n"),
        ("gemv --cache 4KiB --set n=10000000", "400,000,000,000,000 accesses"),
        ("gemm_f16 --cache 4KiB --ways 4 --set m=9,n=9,k=9", "give a --line"),
        ("gemv --cache 4KiB --last-level inclusive --set n=9", "is the first level"),
        ("gemv --machine v100_time_paper --set n=9", "no cache to simulate"),
        ("gemv --cache 4KiB --around --traffic load_store --set n=9", "--around"),
        ("gemv --cache 4KiB --curve gemv.gif --set n=9", "not an svg, png or pdf"),
    ],
)
def test_what_cannot_be_simulated(args: str, message: str, roofdsl: Run) -> None:
    result = roofdsl("simulate", *args.split())
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(("args", "message"), [
    ("matmul --cache 32KiB --line 64B --every-access", "108,000,000,000 accesses at these sizes, and simulating them "
     "takes at least 27 s; the budget is 20 s of processor time"),
    ("matmul --machine haswell_e5_2695v3", "`--budget 2min`, or `derive --cache`"),
    ("matmul --line 64B --histogram", "use smaller sizes"),
])  # fmt: skip
def test_what_cannot_end_within_the_budget_is_refused_at_once(args: str, message: str, roofdsl: Run) -> None:
    begun = time.monotonic()
    result = roofdsl("simulate", *args.split(), "--set", "n=3000")
    assert (result.returncode, result.stdout) == (2, "") and message in result.stderr
    assert time.monotonic() - begun < 15  # it takes a fraction of a second


def test_iterations_that_repeat_are_no_reason_to_refuse(roofdsl: Run) -> None:
    """Four billion accesses in 0.3 s, with a budget in which a billion could be simulated one by one."""
    result = roofdsl("simulate", "matmul", "--set", "n=1000", "--cache", "32KiB", "--line", "64B", "--budget", "2s")
    assert result.returncode == 0 and "4,000,000,000 accesses" in result.stdout, result.stderr


def test_a_simulation_that_the_budget_ends_says_how_far_it_came(roofdsl: Run) -> None:
    result = roofdsl("simulate", "gemv", "--set", "n=65536", "--cache", "32KiB", "--line", "64B", "--budget", "1s")
    assert result.returncode == 2
    assert "17,179,869,184 accesses at these sizes, and " in result.stderr and "of them were simulated" in result.stderr
    assert "the budget is 1 s of processor time" in result.stderr and "`--budget 20s`" in result.stderr


@pytest.mark.thorough
def test_figures_are_the_same_every_time(roofdsl: Run, tmp_path: Path) -> None:
    first, second, beside = tmp_path / "a.svg", tmp_path / "b.svg", tmp_path / "c.svg"
    for path in (first, second):
        result = roofdsl("plot", "traffic", "matmul", "--set", "n=24", "-o", str(path))
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert first.read_bytes() == second.read_bytes()
    assert roofdsl("simulate", "gemv", "--set", "n=24", "--curve", str(beside)).returncode == 0
    assert beside.read_bytes().startswith(b"<?xml")
    assert {p.name for p in tmp_path.iterdir()} == {"a.svg", "b.svg", "c.svg"}
    missing = roofdsl("plot", "traffic", "matmul", "--set", "n=24", "-o", str(tmp_path / "no" / "a.svg"))
    assert missing.returncode == 2
    assert "there is no folder" in missing.stderr


@pytest.mark.usefixtures("interruptible")
@pytest.mark.thorough
def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    """A run of many minutes ends soon after the signal, with status 130 and no file."""
    path = tmp_path / "half.svg"
    command = ["simulate", "matmul", "--set", "n=3000", "--machine", "skylake_gold_6148", "--curve", str(path)]
    command = ["--budget", "none", *command]  # within 20 s it is refused at once
    process = subprocess.Popen(
        [sys.executable, "-m", "roofdsl", *command],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    time.sleep(3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.strip().endswith("interrupted")
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []
