"""Commands on kernels with index arrays: what they print with data, and refusals by those that need affine loops."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from roofdsl.cli.main import run
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import shipped_names
from tests.cli.conftest import Run

DATA = ("--data", "rowptr,col=banded:n=50,w=1")
SIZES = ("--set", "n=10,m=10,nnz=20")
REFUSED = (
    ("bound", "spmv_csr"),
    ("advise", "spmv_csr", "--machine", "v100", *SIZES),
    ("sol", "spmv_csr", "--machine", "v100", *SIZES),
    ("threshold", "spmv_csr", "--machine", "v100", "--over", "n", "--set", "m=3,nnz=9"),
    ("sweep", "spmv_csr", "--machine", "v100", "--set", "n=1..4,m=10,nnz=20"),
    ("explore", "spmv_csr", "--machine", "v100", *SIZES, "-o", "x.html"),
    ("plot", "roofline", "spmv_csr", "--machine", "v100", *SIZES, "-o", "x.svg"),
    ("plot", "traffic", "spmv_csr", *SIZES, "-o", "x.svg"),
    ("validate", "spmv_csr", "--machine", "v100", *SIZES),
    ("emit", "spmv_csr", "--to", "cuda", "--variant", "tiled"),
    ("emit", "spmv_csr", "--to", "c", "--variant", "grouped"),
    ("derive", "spmv_csr", "--steps"),
    ("predict", "spmv_csr", "--machine", "haswell_e5_2695v3", "--sets", *DATA),
)


@pytest.mark.parametrize("command", REFUSED, ids=lambda c: " ".join(c[:2]))
def test_refused(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(list(command)) == 2
    told = capsys.readouterr().err
    assert "the accesses of kernel spmv_csr depend on data" in told and "is not available for it" in told
    instead = "use the variant `" if command[0] == "emit" else "simulate --data"
    assert instead in told and "Traceback" not in told


INDEXED = (
    "spmv_csr", "spmv_ell", "spmv_sell", "spmv_coo", "histogram", "embedding_lookup", "moe_by_token", "moe_by_expert",
    "bfs_pull", "bfs_push",
)  # fmt: skip


@pytest.mark.parametrize("name", INDEXED)
def test_every_shipped_kernel_with_index_arrays_is_refused_in_one_error(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = (
        ("bound", name), ("validate", name, "--machine", "v100"), ("measure", name, "--backend", "gpu"),
        ("measure", name), ("emit", name, "--to", "cuda", "--variant", "tiled"),
        ("emit", name, "--to", "python", "--variant", "grouped"),
    )  # fmt: skip
    for command in commands:
        assert run(list(command)) == 2
        told = capsys.readouterr()
        assert told.out == "" and re.fullmatch(rf"error: .*\b{name}\b.*\nhelp: .*\n", told.err), command


def test_these_are_all_shipped_kernels_with_index_arrays() -> None:
    checked = {str(path): load_file(path) for path in shipped_names("kernels").values()}
    kernels = [kernel(file, name) for file in checked.values() for name in file.kernels]
    assert {k.name for k in kernels if is_indirect(k)} == set(INDEXED)


@pytest.mark.parametrize(
    "command", [("simulate", "spmv_csr", "--cache", "1KiB"), ("predict", "spmv_csr", "--machine", "v100"),
                ("measure", "spmv_csr")],
)  # fmt: skip
def test_data_are_asked_for(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, *SIZES]) == 2
    assert "--data rowptr,col=A.mtx" in capsys.readouterr().err


def test_a_gpu_measures_no_such_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    for given in (DATA, SIZES):
        assert run(["measure", "spmv_csr", "--backend", "gpu", *given]) == 2
        told = capsys.readouterr().err
        assert "kernel spmv_csr has index arrays, and such kernels are measured only on the CPU" in told
        assert "help: write `--backend cpu` and give their values with `--data`" in told


def test_data_are_for_a_kernel_and_not_for_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "twice.roof"
    path.write_text(
        "kernel gather(n, m):\n    in at: i32[n] index(m), x: f64[m]\n    out y: f64[n]\n    for i in range(n):\n"
        "        y[i] = x[at[i]]\n\nprogram twice(n):\n    repeat 2:\n        run gather(n, n)\n"
    )
    for command in (["measure"], ["predict", "--machine", "v100"], ["validate", "--machine", "v100"]):
        assert run([*command, f"{path}:twice", "--set", "n=9"]) == 2
        told = capsys.readouterr().err
        assert "kernel gather of program twice has index arrays" in told and "FILE:gather" in told
    assert run(["measure", f"{path}:twice", "--set", "n=9", "--data", "at=random:n=9,count=9,seed=1"]) == 2
    assert "--data is for one kernel\nhelp: name it as FILE:KERNEL" in capsys.readouterr().err


def test_data_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    said = "rowptr, col: banded:n=50,w=1 (50 x 50, 148 entries)"
    assert run(["simulate", "spmv_csr", "--cache", "1KiB", "--line", "64", *DATA, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"] == [said]
    assert run(["predict", "spmv_csr", "--machine", "haswell_e5_2695v3", *DATA, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert f"values of {said}" in document["assumptions"]
    assert document["expected_s"] is None and "modeled only from compiled code" in document["expected_missing"]
    assert run(["derive", "spmv_csr", *DATA]) == 0
    assert f"note: values of {said}" in capsys.readouterr().out
    assert run(["derive", "gemv", *DATA]) == 2
    assert "affine" in capsys.readouterr().err


def test_a_matrix_that_does_not_fit_into_memory(roofdsl: Run) -> None:
    """60 million entries of 48 B, in 1 GiB: refused before they are drawn.

    In a new process: the budget counts what the process already holds, and one that has run other tests holds much.
    """
    data = ("--data", "rowptr,col=random:n=7500000,row=8,seed=1")
    told = roofdsl("--budget", "20s,1GiB", "predict", "spmv_csr", "--machine", "haswell_e5_2695v3", *data, fresh=True)
    assert told.returncode == 2
    assert "the 60,000,000 entries of `random:n=7500000,row=8,seed=1` need 2.68 GiB of memory" in told.stderr
    assert "help: use fewer entries, or" in told.stderr and "`--budget 10min,32GiB`" in told.stderr
