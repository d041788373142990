"""`plot roofline --by-kernel`: a program's kernels as points of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from roofdsl.cli.main import run
from roofdsl.loops.load import load_file
from roofdsl.machine.find import load_machine, shipped
from roofdsl.plot.kinds import roofline
from roofdsl.plot.kinds.roofline import draw_roofline
from roofdsl.plot.roofline_points import Point
from roofdsl.plot.roofs import Roofs
from roofdsl.predict.options import Options
from roofdsl.predict.program import predict_launches
from tests.cli.conftest import Run

ADD = "kernel add(n):\n    in x: f32[n]\n    inout y: f32[n]\n    for i in range(n):\n        y[i] += x[i]\n"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Point]:
    """The points that the command hands to the figure."""
    points: list[Point] = []

    def keep(roofs: list[Roofs], shown: list[Point], *more: Any, **style: Any) -> Any:
        points.extend(shown)
        return draw_roofline(roofs, shown, *more, **style)

    monkeypatch.setattr(roofline, "draw_roofline", keep)
    return points


@pytest.mark.thorough
def test_points_are_the_kernels_totals(drawn: list[Point], tmp_path: Path) -> None:
    line = f"layer_decode --machine h100_sxm --unit tensor --set batch=64 --by-kernel -o {tmp_path}/out.svg"
    assert run(["plot", "roofline", *line.split()]) == 0
    found = predict_launches(
        load_file(shipped("kernels")["transformer"]), "layer_decode", {"batch": 64}, load_machine("h100_sxm"),
        Options(unit="tensor"),
    )  # fmt: skip
    assert drawn[0].label == "layer_decode"
    assert len(drawn) == 9
    for point, row in zip(drawn[1:], found.by_kernel, strict=True):
        name, _, share = point.label.removesuffix(" %").partition(", ")
        assert name == row.total.kernel
        assert float(share) == pytest.approx(100 * float(row.share), rel=0.05)
        assert point.rate_per_s == float(row.total.rate_per_s)
    assert drawn[1].label == "attention_products, 54 %"


def test_collectives_are_no_points(drawn: list[Point], tmp_path: Path) -> None:
    file = tmp_path / "two.roof"
    file.write_text(f"{ADD}program two(n):\n    run add(n)\n    collective all_reduce y: f32[n] among 4\n")
    line = f"{file} --machine h100_sxm --set n=1000 --by-kernel -o {tmp_path}/out.svg"
    assert run(["plot", "roofline", *line.split()]) == 0
    assert [point.text.partition(",")[0] for point in drawn] == ["two (NVLink)", "add"]


def test_without_it_programs_are_one_point_with_their_sizes(drawn: list[Point], tmp_path: Path) -> None:
    line = f"attention_flash --machine h100_sxm --unit tensor -o {tmp_path}/out.svg"
    assert run(["plot", "roofline", *line.split()]) == 0
    assert [p.label.split(" ")[0] for p in drawn] == ["attention_flash"]
    assert "new=2,048" in drawn[0].label


@pytest.mark.parametrize(
    ("more", "title"),
    [
        ("--machine v100", "NVIDIA V100, 16 GB\nn=64"),
        ("--machine v100 --machine h100_sxm", "n=64"),
        ("--machine v100 --by-kernel", "NVIDIA V100, 16 GB\nn=64"),
    ],
)
def test_the_title_has_the_sizes_that_labels_leave_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, more: str, title: str
) -> None:
    titles: list[str] = []

    def keep(roofs: list[Roofs], shown: list[Point], title: str, **style: Any) -> Any:
        titles.append(title)
        return draw_roofline(roofs, shown, title, **style)

    monkeypatch.setattr(roofline, "draw_roofline", keep)
    file = tmp_path / "two.roof"
    file.write_text(f"{ADD}program once(n):\n    run add(n)\nprogram twice(n):\n    run add(n)\n    run add(n)\n")
    line = f"{file}:once {file}:twice --set n=64 {more} -o {tmp_path}/out.svg"
    assert run(["plot", "roofline", *line.split()]) == 0
    assert titles == [title]


@pytest.mark.thorough
def test_it_draws(roofdsl: Run, tmp_path: Path) -> None:
    out = tmp_path / "layer.svg"
    line = f"plot roofline layer_naive --machine h100_sxm --unit tensor --by-kernel -o {out}"
    assert roofdsl(*line.split()).returncode == 0
    assert out.stat().st_size > 10_000
