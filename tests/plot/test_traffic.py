"""Figures of Q(Z)."""

from __future__ import annotations

from bisect import bisect_right

import pytest

from roofdsl.counts.derive import derive
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import find_model
from roofdsl.plot.kinds.traffic import draw_traffic
from roofdsl.plot.traffic_content import BY_FORM, PlateauLine, TrafficContent, traffic_content
from roofdsl.plot.traffic_form import form_curve, sampled
from roofdsl.simulate.best_curve import best_curve
from roofdsl.simulate.distances import miss_curve
from tests.oracle.loading import kernel_of


def test_nothing_is_drawn_of_what_touches_nothing() -> None:
    text = "kernel late(n):\n    in x: f64[n]\n    out y: f64[n]\n    for i in range(5, n):\n        y[i] = x[i - 5]\n"
    with pytest.raises(CommandError, match="touches nothing"):
        traffic_content(kernel_of(text), {"n": 3}, "load_store", None)


def shipped(name: str) -> Kernel:
    target = find_model(name)
    return kernel(load_file(target.path), target.name)


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("name", "values"), [("lu", {"n": 23}), ("gramschmidt", {"m": 9, "n": 14}), ("matmul", {"n": 12})]
)
def test_the_curve_of_a_closed_form_is_simulated_lru(name: str, values: dict[str, int]) -> None:
    """At drawn sizes of the cache equal, and between them no more and no less than next to them."""
    of = shipped(name)
    ends = (8, 8 * max(values.values()) ** 2 * 3)
    curve = form_curve(of, values, "load_store", None, ends)
    assert curve is not None
    sizes, moved = miss_curve(of, values, None).steps("load_store")
    drawn = dict(zip(*curve, strict=True))
    for size, q in drawn.items():
        assert q == moved[bisect_right(sizes, size) - 1], size
    caches = list(drawn)
    for z in range(ends[0], ends[1], 8):
        k = bisect_right(caches, z) - 1
        true = moved[bisect_right(sizes, z) - 1]
        assert drawn[caches[k]] >= true >= drawn[caches[min(k + 1, len(caches) - 1)]]


def test_the_band_reaches_from_lru_to_the_best_replacement() -> None:
    """At every size, and not in figures of elements of several sizes without lines."""
    content = traffic_content(shipped("matmul"), {"n": 14}, "write_allocate", None)
    assert content.best is not None and content.curve is not None
    best = best_curve(shipped("matmul"), {"n": 14}, None)
    for size, q in zip(*content.best, strict=True):
        assert q == best.bytes(size, "write_allocate")
        assert q <= content.curve[1][bisect_right(content.curve[0], size) - 1]
    axes = draw_traffic(content).axes[0]
    assert "Q(Z), best replacement" in axes.get_legend_handles_labels()[1]
    (band,) = axes.collections
    (path,) = band.get_paths()
    drawn = {(round(x, 6), round(y, 6)) for x, y in path.vertices.tolist()}
    for steps in (content.curve, content.best):
        assert {(float(z), float(q)) for z, q in zip(*steps, strict=True)} <= drawn
    assert traffic_content(shipped("gemm_f16"), {"m": 9, "n": 8, "k": 7}, "load_store", None).best is None


@pytest.mark.thorough
def test_large_sizes_are_drawn_by_the_closed_form() -> None:
    of, values = shipped("cholesky"), {"n": 3000}
    content = traffic_content(of, values, "load_store", None)
    assert (content.curve_label, content.points, content.curve_note) == (BY_FORM, (), "")
    assert content.curve is not None
    sizes, moved = content.curve
    found = derive(of, any_cache=True, plateaus=False).any_cache
    assert found is not None and found.bytes.terms is not None
    for k in (0, len(sizes) // 2, len(sizes) - 1):
        assert moved[k] == found.bytes.terms.evaluate({**values, "Z": sizes[k]})
    assert moved[-1] == 8 * 3000**2 + 8 * 3000  # compulsory
    assert all(a - b <= 1 or p <= 1.01 * q for a, b, p, q in zip(sizes[1:], sizes, moved, moved[1:], strict=False))


@pytest.mark.thorough
@pytest.mark.spread(1)
@pytest.mark.parametrize("n", [20, 24])
def test_a_form_in_lines_of_rows_that_are_whole_lines_or_not(n: int) -> None:
    """Where they are not, with the number in the place of the symbol."""
    of = shipped("gemv")
    curve = form_curve(of, {"n": n}, "load_store", 64, (64, 6400))
    assert curve is not None
    sizes, moved = miss_curve(of, {"n": n}, 64).steps("load_store")
    assert [moved[bisect_right(sizes, z) - 1] for z in curve[0]] == list(curve[1])


def test_sizes_are_dense_where_traffic_falls() -> None:
    def moved(caches: list[int]) -> list[int]:
        return [10**6 if z < 777 else 10**5 - z for z in caches]

    found = sampled(moved, 8, 50_000)
    assert found is not None
    assert (found[776], found[777]) == (10**6, 10**5 - 777)
    assert sampled(lambda caches: None, 8, 50_000) is None


def test_names_of_plateaus_do_not_lie_on_one_another() -> None:
    rows = [(8.0, 2000.0, "$192 n^{2} tsteps$"), (16.0, 1990.0, "$176 n^{2} tsteps$"), (64.0, 1900.0, "$128 n^{2}$")]
    plateaus = tuple(PlateauLine(s, 8 * s, q, label) for s, q, label in rows)
    figure = draw_traffic(TrafficContent("", "", None, plateaus, (), (("L2", 2**30),)))
    figure.canvas.draw()
    boxes = [t.get_window_extent() for t in figure.axes[0].texts if t.get_text().startswith("$")]
    assert 1 <= len(boxes) < 3
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


@pytest.mark.thorough
def test_plateaus_are_drawn_where_the_exact_curve_is_level() -> None:
    """A triangular kernel's reuse distances have long ranges, in which Q(Z) is on no plateau."""
    content = traffic_content(shipped("cholesky"), {"n": 60}, "load_store", None)
    assert content.curve is not None
    sizes, moved = content.curve
    for plateau in content.plateaus[:-1]:
        assert plateau.end_bytes is not None and plateau.start_bytes <= plateau.end_bytes
        on_it = [q for z, q in zip(sizes, moved, strict=True) if plateau.start_bytes <= z < plateau.end_bytes]
        assert all(q > 0.9 * plateau.traffic_bytes for q in on_it)
    ends = [p.end_bytes or 0 for p in content.plateaus[:-1]]
    starts = [p.start_bytes for p in content.plateaus[1:]]
    assert any(end < start / 10 for end, start in zip(ends, starts, strict=True))


def test_the_legend_is_where_no_curve_and_no_name_is() -> None:
    """A lower bound in one corner and a cache's name in the other: neither is under the legend."""
    curve = ((64.0, 600.0, 30_000.0), (1e7, 8e5, 6e4))
    bound = (tuple(64.0 * 2**k for k in range(12)), tuple(max(6e4, 3e5 / 2**k) for k in range(12)))
    figure = draw_traffic(TrafficContent("k", "", curve, (), (), (("L3", 1 << 24),), bound=bound))
    axes = figure.axes[0]
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    renderer = FigureCanvasAgg(figure).get_renderer()
    box = axes.get_legend().get_window_extent(renderer)
    assert not any(box.overlaps(t.get_window_extent(renderer)) for t in axes.texts)
    assert not any(box.contains(*axes.transData.transform(at)) for at in zip(*bound, strict=True))
