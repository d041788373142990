"""The figure of advice: bars of the times that are advised, in the colours of what bounds them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from roofdsl.advise.memory_lower_bound import least_memory_s
from roofdsl.cli.advise import command
from roofdsl.machine.find import load_machine
from roofdsl.plot.advised import Change, Floor, draw_advice
from tests.oracle.loading import kernel_of

CHANGES = (
    Change("as it is", 4e-3, "L2"),
    Change("1  C in registers (4 x 4 of i, j); tile i, j, k by 128, 32, 32", 2e-4, "compute"),
    Change("2  order i, k, j", 1e-3, "L2", at_most=True),
)
COPY = """kernel shift(n):
    in x: f64[n]
    out y: f64[n]
    for i in range(n):
        y[i] = x[i] + 1.0
"""

GEMM = """kernel gemm(n):
    in A, B: f64[n, n]
    inout C: f64[n, n]
    for i in range(n), j in range(n), k in range(n):
        C[i, j] += A[i, k] * B[k, j]
"""


def ends(figure: Figure) -> list[float]:
    bars: list[Any] = list(figure.axes[0].patches)
    return [bar.get_x() + bar.get_width() for bar in bars]


def test_bars_and_lines() -> None:
    figure = draw_advice(CHANGES, [Floor("peak", 1e-4)], "title")
    axes = figure.axes[0]
    assert ends(figure) == pytest.approx([c.time_s for c in CHANGES])
    colors = [to_hex(bar.get_facecolor()) for bar in axes.patches]
    hatches = [bar.get_hatch() for bar in axes.patches]
    assert colors[0] == colors[2] != colors[1]
    assert hatches[0] == hatches[2] != hatches[1]
    assert axes.get_xscale() == "log"
    assert axes.lines[0].get_xdata()[0] == 1e-4
    written = [t.get_text() for t in axes.texts]
    assert written == ["4 ms", "200 us   20x", "<= 1 ms   >= 4x"]
    legends = [t.get_text() for legend in figure.legends for t in legend.get_texts()]
    assert legends == ["bound by L2", "bound by compute", "peak"]


def test_times_of_one_size_start_at_nought() -> None:
    figure = draw_advice([CHANGES[0], CHANGES[2]], [], "title")
    assert figure.axes[0].get_xscale() == "linear"
    assert figure.axes[0].get_xlim()[0] == 0
    assert ends(figure) == pytest.approx([4e-3, 1e-3])


def test_nothing_is_written_outside() -> None:
    figure = draw_advice([*CHANGES, *(Change(f"{k}  type", 1e-3 * k, "HBM and L2") for k in range(3, 12))], [], "title")
    figure.canvas.draw()
    width, height = figure.bbox.width, figure.bbox.height
    for text in [*figure.axes[0].texts, *figure.axes[0].get_yticklabels(), *figure.texts]:
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, text.get_text()


def test_least_memory_time() -> None:
    machine = load_machine("skylake_gold_6148")
    kernel = kernel_of(COPY)
    assert least_memory_s(kernel, {"n": 10**6}, machine) == 8 * 10**6 / Fraction(
        machine.main_memory.bandwidth_bytes_per_s
    )


def test_the_least_loads_are_those_into_all_caches_together() -> None:
    """Cores load lines from each other's caches: 24 L1, 24 L2 and 8 L3 hold enough to load each matrix once.

    A single L3 of 8 MiB would have to load at least 2 n^3/sqrt(2^20) - 2^20 elements, more than twice the matrices.
    """
    machine, n = load_machine("zen1_epyc_7451"), 4000
    least = least_memory_s(kernel_of(GEMM), {"n": n}, machine)
    assert least == Fraction(3 * 8 * n**2) / Fraction(machine.main_memory.bandwidth_bytes_per_s)
    assert 2 * n**3 / 2**10 - 2**20 > 2 * 3 * n**2


def test_command(tmp_path: Path) -> None:
    file = tmp_path / "shift.roof"
    file.write_text(COPY)
    asked = [str(file), "--machine", "skylake_gold_6148", "--set", "n=5000000"]
    picture = tmp_path / "advice.svg"
    done = CliRunner().invoke(command, [*asked, "--plot", str(picture)])
    assert done.exit_code == 0, done.output
    first = picture.read_bytes()
    assert first.startswith(b"<?xml")
    CliRunner().invoke(command, [*asked, "--plot", str(picture)])
    assert picture.read_bytes() == first
    wrong = CliRunner().invoke(command, [*asked, "--plot", str(tmp_path / "advice.gif")])
    assert wrong.exception is not None and "svg" in str(wrong.exception)
    file.write_text(COPY + "\n" + COPY.replace("shift", "again"))
    several = CliRunner().invoke(command, [*asked, "--plot", str(picture)])
    assert several.exception is not None and "--plot needs one kernel" in str(several.exception)
