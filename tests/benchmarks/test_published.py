"""`python -m benchmarks published`: rows of published files, their errors in tables and JSON, and unusable files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import published
from benchmarks.published import OperatorPoint, answer, machine_of, operator_errors, rows_of, stream_points
from roofdsl.lang.diagnostics import CommandError

OPERATORS = """op,device,batch,m,n,k,width,time_ms,kernel,grid,block
linear,Tesla V100-PCIE-32GB,1,32768,4096,1024,,20.19744,volta_sgemm_128x128_tn,8x256x1,256x1x1
ln,Tesla V100-PCIE-32GB,131072,,,,2560,4.9413,,,
ln,Tesla V100-PCIE-32GB,65536,,,,8192,7.9063,,,
"""
STREAMS = """device,loop,threads_per_multiprocessor,threads,occupancy_percent,gb_per_s
v100,read,32,2560,3,72
v100,read,1024,81920,100,866
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Rows of the published data (NeuSight, ASPLOS 2025; gpu-benches)."""
    operators, streams = tmp_path / "operators.csv", tmp_path / "streams.csv"
    operators.write_text(OPERATORS)
    streams.write_text(STREAMS)
    return operators, streams


def test_headings_may_have_spaces(tmp_path: Path) -> None:
    path = tmp_path / "o.csv"
    path.write_text("op, device, time_ms\nadd, v100, 0.5\n")
    assert rows_of(path, ("op", "device", "time_ms")) == [{"op": "add", "device": "v100", "time_ms": "0.5"}]


def test_the_document_has_the_errors_of_each_device(files: tuple[Path, Path]) -> None:
    document = json.loads(answer(*files, None, json=True))
    linear, norm = document["operators"]
    assert list(linear) == [
        "device", "op", "rows", "median_error", "p90_error", "median_ratio", "above_bound"
    ]  # fmt: skip
    assert (linear["device"], linear["op"], linear["rows"]) == ("Tesla V100-PCIE-32GB", "linear", 1)
    assert norm["rows"] == 2 and norm["above_bound"] == 0
    assert linear["median_error"] < 0.08 and norm["median_error"] < 0.1
    (read,) = document["streams"]
    assert (read["device"], read["loop"], read["rows"]) == ("v100", "read", 2) and read["mean_error"] < 0.04


def test_early_tables_call_their_stencils_by_too_few_points(tmp_path: Path) -> None:
    """The program that printed `1pt` and `3pt` (gpu-benches, cuda-stream/main.cu) ran stencils of 3 and 5 points."""
    path = tmp_path / "s.csv"
    heading = "device,loop,threads_per_multiprocessor,gb_per_s\n"
    path.write_text(heading + "mi210,1pt,64,244\nmi210,3pt,64,230\nv100,3pt,64,230\nv100,5pt,64,224\n")
    points = stream_points(path)
    assert [f"{p.device} {p.loop}" for p in points] == ["mi210 3pt", "mi210 5pt", "v100 3pt", "v100 5pt"]
    assert points[1].expected_per_s < points[0].expected_per_s


def test_errors_are_medians_and_the_ninetieth_percentile() -> None:
    points = [OperatorPoint("d", "add", 1.0, 1 + k / 100, 0.9) for k in range(10)]
    points.append(OperatorPoint("d", "add", 1.0, 1.5, 1.04))
    (found,) = operator_errors(points)
    assert (found.rows, found.above_bound) == (11, 1)
    assert found.median_error == pytest.approx(0.05) and found.p90_error == pytest.approx(0.09)


def test_every_device_of_the_table_is_a_shipped_machine() -> None:
    for device in published.MACHINES:
        assert machine_of(device).units


def test_tables_and_figure(files: tuple[Path, Path], tmp_path: Path) -> None:
    text = answer(*files, tmp_path / "figure.png", json=False)
    assert "| ln | Tesla V100-PCIE-32GB | 2 |" in text and "| read | v100 | 2 |" in text
    assert (tmp_path / "figure.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "has no column `op`"), ("op,device\nadd,x\n", "has no column `batch`")],
)
def test_unusable_files_say_what_is_missing(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(CommandError, match=message):
        answer(path, None, None, json=True)


def test_without_a_file_it_says_what_to_give() -> None:
    with pytest.raises(CommandError, match="nothing to compare"):
        answer(None, None, None, json=True)
    with pytest.raises(CommandError, match="cannot be read"):
        answer(Path("no/such.csv"), None, None, json=True)
