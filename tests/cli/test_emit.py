"""`roofdsl emit`: what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def test_prints_the_code(roofdsl: Run) -> None:
    result = roofdsl("emit", "gemv", "--to", "c", fresh=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert "y_sum += A[i * n + j] * x[j];" in result.stdout
    both = roofdsl("emit", "models/kernels/stream.roof", "--to", "python", "--variant", "parallel").stdout
    assert both.count("in prange(n)") == 3


def test_json_has_arguments_and_launches(roofdsl: Run) -> None:
    result = roofdsl("emit", "jacobi2d_time", "--to", "cuda", "--json", "--set", "steps=2,n=100")
    document = json.loads(result.stdout)
    assert document["schema"] == "roofdsl.emit/1"
    assert [a["name"] for a in document["arguments"]] == ["A", "B", "steps", "n"]
    assert document["arguments"][0] == {
        "name": "A", "role": "array", "type": "f64", "shape": ["n", "n"], "order": "row-major", "written": True,
    }  # fmt: skip
    assert [launch["values"] for launch in document["launches"]] == [[0], [0], [1], [1]]
    assert document["launches"][0]["grid"] == [4, 13, 1]
    assert document["launches"][0]["block"] == [32, 8, 1]


def test_writes_a_file(roofdsl: Run, tmp_path: Path) -> None:
    out = tmp_path / "tiled.cu"
    words = ["emit", "matmul_tiled", "--to", "cuda", "--variant", "tiled", "--set", "b=16", "-o", str(out)]
    assert roofdsl(*words).returncode == 0
    assert "__shared__ double tile_A[16][16];" in out.read_text()


ILLEGAL = """kernel k(n):
    order j, i
    inout A: f64[n, n]
    for i in range(1, n), j in range(n - 1):
        A[i, j] = A[i - 1, j + 1]
"""

REFUSED = {
    "emit gemv": (2, "Missing option '--to'"),
    "emit gemv --to fortran": (2, "'fortran' is not one of"),
    "emit gemv --to c --variant tiled": (2, "there is no variant `tiled` of c"),
    "emit gemv --to cuda --variant tiled": (
        2,
        "it has no loops over tiles\nhelp: tile its loops, as in `tile i, j by 16`",
    ),
    "emit matmul_tiled --to cuda --variant tiled": (2, "shared memory needs a number for `b`"),
    "emit matmul_tiled --to cuda --variant tiled --set b=1024": (2, "use smaller tiles"),
    "emit trsv --to c --variant parallel": (2, "has no loop whose iterations are known to be independent"),
    "emit models/kernels/stream.roof --to c -o x.c": (2, "pick one of copy, scale, triad"),
    "emit gemv --to c -o /nowhere/x.c": (2, "cannot be written"),
    "emit - --to c": (1, "reverses a flow dependence"),
}


@pytest.mark.spread(1)
@pytest.mark.parametrize("line", REFUSED)
def test_refuses(line: str, roofdsl: Run) -> None:
    status, message = REFUSED[line]
    result = roofdsl(*line.split(), stdin=ILLEGAL)
    assert result.returncode == status, result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
