"""`measure` and `characterize` as people run them; what is timed takes milliseconds."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from roofdsl.measure.measurement import load
from tests.cli.conftest import Run, Said

BRIEF = ("--repeats", "3", "--budget", "0.05")


def test_a_result_file_and_a_table(roofdsl: Run, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    variants = ("--variant", "loops", "--variant", "library")
    sizes = ("--at", "n=20", "--at", "n=31")
    done = roofdsl("measure", "gemv", *sizes, *variants, *BRIEF, "-o", str(path))
    assert done.returncode == 0, done.stderr
    head, *rows, caches, last = done.stdout.splitlines()
    assert "which `predict --warm` assumes" in caches
    assert head.split()[:3] == ["kernel", "variant", "median"] and last == f"written to {path}"
    assert [row.split()[:3] for row in rows] == [
        ["gemv", f"n={n}", variant] for n in (20, 31) for variant in ("loops", "library")
    ]
    found = load(path)
    assert [(m.kernel, dict(m.parameters)["n"], m.variant, m.work) for m in found] == [
        ("gemv", n, variant, 2 * n * n) for n in (20, 31) for variant in ("loops", "library")
    ]


def test_the_state_of_the_caches_is_that_of_the_prediction_named(roofdsl: Run) -> None:
    """SpMV was measured warm and predicted cold without a word."""
    data = ("--data", "rowptr,col=random:n=300,row=4,seed=1")
    for more, says, other in (
        (("--cold",), "as `predict` assumes", "--warm"),
        ((), "`predict --warm`", "emptied before"),
    ):
        done = roofdsl("measure", "spmv_csr", *data, *more, *BRIEF)
        assert done.returncode == 0, done.stderr
        (line,) = (row for row in done.stdout.splitlines() if row.startswith("caches: "))
        assert says in line and other not in line


@pytest.mark.thorough
def test_json_is_the_document(roofdsl: Run) -> None:
    done = roofdsl("measure", "models/kernels/stream.roof:copy", "--set", "n=1000", *BRIEF, "--json")
    document = json.loads(done.stdout)
    assert document["schema"] == "roofdsl.measurement/1" and document["work_flops"] == 0
    assert document["parameters"] == {"n": 1000} and document["repeats"] == len(document["times_s"])


FAILS = {
    "measure_variant": "measure gemv --variant tiled",
    "measure_library": "measure minplus --variant library --set n=8",
    "measure_parameter": "measure minplus",
    "measure_output": "measure gemv -o no/such/folder/r.json",
    "characterize_output": "characterize -o no/such/folder/m.roof",
    "characterize_suffix": "characterize -o m.txt",
    "characterize_one_core": "characterize -o m.roof --one-core one.txt",
    "characterize_plot": "characterize -o m.roof --plot m.gif",
    "characterize_name": "characterize -o m.roof --name 3x",
    "characterize_cores": "characterize -o m.roof --cores 0",
    "no_gpu": "measure gemv --backend gpu --set n=8",
    "cores_of_gpu": "characterize --backend gpu --cores 2 -o m.roof",
}


@pytest.mark.spread(1)
@pytest.mark.parametrize("name", FAILS)
def test_what_goes_wrong(name: str, fails: Said) -> None:
    if name == "no_gpu" and find_spec("cupy") is not None:
        pytest.skip("cupy is installed")
    fails(name, FAILS[name])
