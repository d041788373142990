"""Points of a profiler beside predictions: the numbers of tests/profiler/data, which are round by design."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine, shipped_names
from roofdsl.plot.roofline_points import overlay_point
from roofdsl.profiler.cited import holds_points, points_named
from roofdsl.profiler.measured_points import LevelBytes, Points, save_points
from roofdsl.profiler.metrics import points_of
from roofdsl.profiler.tables import read
from roofdsl.validate.compare_points import PointCheck, compare_points

DATA = Path(__file__).parents[1] / "profiler" / "data"
V100 = load_machine("v100")
N = 10**6


def daxpy() -> Kernel:
    return kernel(load_file(shipped_names("kernels")["daxpy"]), "daxpy")


def profiled() -> Points:
    """Two launches of axpy, 80 us and 48 MB at every level together: y += a * x over a million elements is 24 MB."""
    return points_of(read(DATA / "wide.csv"), "wide.csv")


def check(document: Points) -> PointCheck:
    (found,) = compare_points([(daxpy(), {"n": N})], [document], {"daxpy": "axpy"}, V100)
    return found


def test_one_execution_is_half_of_two_launches() -> None:
    found = check(profiled())
    assert (found.executions, found.origin) == (2, "ncu")
    assert found.measured_s == pytest.approx(40e-6)
    assert found.bound_s == pytest.approx(24e6 / 900e9)
    assert found.ratio == pytest.approx(24e6 / 900e9 / 40e-6)
    assert found.verdict == "slower than predicted" and not found.agrees
    same = (24 * N, 24e6, "as predicted")
    seen = {x.level: (x.predicted_bytes, x.measured_bytes, x.verdict) for x in found.levels}
    assert seen == {"L1": same, "L2": same, "HBM": same}
    assert (found.prediction.work, found.measured_work) == (2 * N, 2.5e6)


@pytest.mark.parametrize(
    ("factor", "verdict"), [(0.5, "less than predicted"), (1.2, "as predicted"), (2, "more than predicted")]
)
def test_bytes_that_differ(factor: float, verdict: str) -> None:
    document = profiled()
    point = document.points[0]
    levels = (LevelBytes("L1", 48e6), LevelBytes("HBM", 48e6 * factor), LevelBytes("system", 5.0))
    found = check(replace(document, points=(replace(point, time_s=None, levels=levels),)))
    assert [x.verdict for x in found.levels] == ["as predicted", verdict]
    assert (found.not_measured, found.not_predicted) == (("L2",), ("system",))
    assert found.ratio is None and found.agrees == (verdict == "as predicted")


def test_the_plot_has_the_point_at_its_own_intensity() -> None:
    predicted, measured = overlay_point(check(profiled()))
    assert predicted.intensity == pytest.approx(2 / 24)
    assert measured.intensity == pytest.approx(2.5 / 24)
    assert measured.rate_per_s == pytest.approx(2.5e6 / 40e-6)
    assert measured.beside == "67 %"


def test_what_cannot_be_compared() -> None:
    document, asked = profiled(), [(daxpy(), {"n": N})]
    assert compare_points(asked, [document], {}, V100) == []
    with pytest.raises(CommandError, match="no point `axp`"):
        compare_points(asked, [document], {"daxpy": "axp"}, V100)
    with pytest.raises(CommandError, match="no kernel `gemv`"):
        compare_points(asked, [document], {"gemv": "axpy"}, V100)
    with pytest.raises(CommandError, match="states no sizes"):
        compare_points([*asked, (daxpy(), {"n": 5})], [document], {"daxpy": "axpy"}, V100)
    empty = replace(document, points=(replace(document.points[0], time_s=None, levels=()),))
    with pytest.raises(CommandError, match="neither a time nor bytes"):
        compare_points(asked, [empty], {"daxpy": "axpy"}, V100)


HEAT = """
kernel heat(n, t):
    inout u: f64[t + 1, n]
    for s in range(t):
        for i in range(1, n - 1):
            u[s + 1, i] = u[s, i - 1] + u[s, i] + u[s, i + 1]

kernel two(n):
    in a: f64[n]
    inout b, c: f64[n]
    for i in range(n):
        b[i] += a[i]
    for i in range(n):
        c[i] += b[n - 1 - i]
"""


def launched(name: str, launches: int, each_s: float) -> Points:
    point = replace(
        profiled().points[0], kernel=name, label=name, launches=launches, time_s=launches * each_s, levels=()
    )
    return replace(profiled(), points=(point,))


@pytest.mark.parametrize("label", ["heat", "mine"])
def test_an_execution_is_all_launches_of_a_loop_of_the_host(label: str) -> None:
    """The generated code launches the function `heat` in each of 10 steps; so 20 launches are 2 executions.

    A step loads one row of a million f64 and stores the next: 16 MB of HBM, 17.8 us at 900 GB/s.
    """
    heat = kernel(load_file(Source("heat.roof", HEAT)), "heat")
    names = {} if label == "heat" else {"heat": label}
    at = [(heat, {"n": N, "t": 10})]
    (found,) = compare_points(at, [launched(label, 20, 19e-6)], names, V100)
    assert found.executions == 2 and found.measured_s == pytest.approx(10 * 19e-6)
    assert found.prediction.levels[-1].bytes == 10 * 2 * 8 * N
    assert found.prediction.launches == 10 and found.verdict == "as predicted"
    with pytest.raises(CommandError, match=f"{label} has 12 launches, but one execution of heat makes 10"):
        compare_points(at, [launched(label, 12, 19e-6)], names, V100)
    with pytest.raises(CommandError, match=f"{label} has 1 launch, but one execution of heat makes 10"):
        compare_points(at, [launched(label, 1, 19e-6)], names, V100)


def test_one_of_several_functions_is_no_execution() -> None:
    """The generated code is `two_1` and `two_2`; code of one's own may launch a single function."""
    two = kernel(load_file(Source("two.roof", HEAT)), "two")
    with pytest.raises(CommandError, match="two_1 is one of the 2 functions that two launches"):
        compare_points([(two, {"n": N})], [launched("two_1", 3, 1e-4)], {"two": "two_1"}, V100)
    (found,) = compare_points([(two, {"n": N})], [launched("mine", 3, 1e-4)], {"two": "mine"}, V100)
    assert found.executions == 3 and found.prediction.launches == 2


def test_which_files_hold_points(tmp_path: Path) -> None:
    save_points(tmp_path / "p.json", profiled())
    (tmp_path / "other.json").write_text('{"schema": "roofdsl.measurement/1"}')
    assert holds_points(str(tmp_path / "p.json")) and points_named(str(tmp_path / "p.json")) == profiled()
    assert holds_points("gpp_deck")
    assert not holds_points(str(tmp_path / "other.json"))
    assert not holds_points(str(tmp_path / "absent.json"))
