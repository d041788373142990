"""The figure of a shared product: its data are the predictions'."""

from __future__ import annotations

from itertools import pairwise

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel, load_file
from roofdsl.machine.find import load_machine, shipped_names
from roofdsl.plot.sharded import draw_sharded, lines_of
from roofdsl.predict.collectives import network_of
from roofdsl.predict.options import Options
from roofdsl.predict.sharded import Result, ShardedPrediction, predict_sharded, shard

DEVICES = (8, 2, 4)  # in no order


def predictions(result: Result = "whole") -> list[ShardedPrediction]:
    tpu = load_machine("tpu_v5e")
    own = kernel(load_file(shipped_names("kernels")["matmul_bdf"]), "matmul_bdf", {})
    s = shard(own, "B", result=result)
    return [predict_sharded(s, {}, tpu, network_of(tpu, p), Options(unit="tensor")) for p in DEVICES]


def test_lines_are_the_terms_from_few_devices_to_many() -> None:
    found = predictions()
    (axes,) = draw_sharded(found).axes
    by_devices = sorted(found, key=lambda f: f.network.devices)
    drawn = [list(line.get_ydata()) for line in axes.lines]
    assert drawn[0] == [float(f.bound_s) for f in by_devices]
    assert drawn[1:] == list(lines_of(by_devices).values())
    assert all(list(line.get_xdata()) == [2, 4, 8] for line in axes.lines)
    assert {t.get_text() for t in axes.texts} == {"compute", "HBM", "ICI"}
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert max(heights) == pytest.approx(max(float(f.no_overlap_s) for f in found))
    assert "B = 1,024, D = 8,192, F = 8,192" in axes.get_title(loc="left")


def test_names_at_the_ends_do_not_overlap() -> None:
    (axes,) = draw_sharded(predictions()).axes
    heights = sorted(t.xy[1] for t in axes.texts)
    assert all(b >= 1.15 * a for a, b in pairwise(heights))


def test_links_that_carry_nothing_have_no_line() -> None:
    (axes,) = draw_sharded(predictions("parts")).axes
    assert {t.get_text() for t in axes.texts} == {"compute", "HBM"}


def test_what_cannot_be_drawn() -> None:
    with pytest.raises(CommandError, match="at least two numbers of devices"):
        draw_sharded(predictions()[:1])
