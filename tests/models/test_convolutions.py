"""Convolutions: W and compulsory Q of every pass against counting taps, other algorithms, Fourier transforms."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from roofdsl.counts.traffic_at import traffic_at
from roofdsl.counts.work_at import work_at
from roofdsl.loops.load import load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine, shipped
from roofdsl.predict.program import predict_launches, predict_program
from tests.models.shipped import model
from tests.models.test_values import convolve, ran

Array = npt.NDArray[Any]
HALF, SINGLE = 2, 4


class Taps:
    """Every tap of a convolution that falls on the image: output (i, j), filter (p, q), input (y, x)."""

    def __init__(self, h: int, w: int, r: int, s: int, *, d: int = 1, pad: int = 0) -> None:
        self.oh, self.ow = ((n + 2 * pad - d * (r - 1) - 1) // s + 1 for n in (h, w))
        self.outputs, self.filters, self.inputs = set(), set(), set()
        self.count = 0
        for i, j, p, q in product(range(self.oh), range(self.ow), range(r), range(r)):
            y, x = s * i + d * p - pad, s * j + d * q - pad
            if 0 <= y < h and 0 <= x < w:
                self.count += 1
                self.outputs.add((i, j))
                self.filters.add((p, q))
                self.inputs.add((y, x))


# r, s, d, pad: the usual, 1x1, a stride that leaves inputs out (larger than the filter), ragged edges, dilation with
# holes, padding wider than the filter
PLAIN = [(3, 1, 1, 0), (3, 2, 1, 0), (1, 1, 1, 0), (1, 2, 1, 0), (1, 3, 1, 0), (2, 3, 1, 0), (2, 1, 3, 0), (3, 2, 2, 0)]
PADDED = [(3, 1, 1, 1), (3, 2, 1, 1), (1, 1, 1, 1), (1, 3, 1, 2), (2, 3, 2, 3), (3, 1, 2, 2), (3, 3, 1, 2)]
N, H, W, C, F = 2, 7, 6, 2, 3


def compulsory(kernel: Kernel, sizes: dict[str, int]) -> int:
    return traffic_at(kernel, sizes, None, None, "once").bytes


def sized(name: str, r: int, s: int, d: int, pad: int) -> tuple[Kernel, dict[str, int]]:
    """The kernel at these numbers, those that are its `const` parameters built in."""
    numbers = {"batch": N, "h": H, "w": W, "c": C, "f": F, "r": r, "s": s, "d": d, "pad": pad}
    constants = [p.name.text for p in _parameters(name) if p.const]
    kernel = model(name, **{n: numbers[n] for n in constants})
    return kernel, {p.name: numbers[p.name] for p in kernel.parameters}


def _parameters(name: str) -> tuple[Any, ...]:
    from roofdsl.machine.find import shipped_names

    parameters: tuple[Any, ...] = load_file(shipped_names("kernels")[name]).kernels[name].tree.parameters
    return parameters


@pytest.mark.spread(1)
@pytest.mark.parametrize(("r", "s", "d", "pad"), [*PLAIN, *PADDED])
def test_forward(r: int, s: int, d: int, pad: int) -> None:
    taps = Taps(H, W, r, s, d=d, pad=pad)
    outputs = N * taps.oh * taps.ow * F
    moved = HALF * (N * C * len(taps.inputs) + C * F * len(taps.filters) + outputs)
    names = ["conv2d_padded"] if pad else ["conv2d_forward"]
    names += ["conv2d", "conv2d_bias_relu"] if (pad, d, s) == (0, 1, 2) else []
    for name in names:
        kernel, sizes = sized(name, r, s, d, pad)
        bias = any(a.name == "B" for a in kernel.arrays)
        relu = outputs if name == "conv2d_bias_relu" else 0
        assert work_at(kernel, sizes).total == 2 * taps.count * N * C * F + relu
        assert compulsory(kernel, sizes) == moved + bias * HALF * F
    if (pad, d, s) == (0, 1, 3):
        kernel, sizes = sized("conv2d_f32", r, s, d, pad)
        assert (work_at(kernel, sizes).total, compulsory(kernel, sizes)) == (2 * taps.count * N * C * F, 2 * moved)


@pytest.mark.spread(1)
@pytest.mark.parametrize(("r", "s", "d", "pad"), [*PLAIN, *PADDED])
def test_backward(r: int, s: int, d: int, pad: int) -> None:
    """Gradients are written whole; of dY, filters and images only what some tap uses is read."""
    taps = Taps(H, W, r, s, d=d, pad=pad)
    suffix = "_padded" if pad else ""
    kernel, sizes = sized(f"conv2d_backward_data{suffix}", r, s, d, pad)
    assert work_at(kernel, sizes).total == 2 * taps.count * N * C * F
    used = N * F * len(taps.outputs) + C * F * len(taps.filters)
    assert compulsory(kernel, sizes) == HALF * (used + N * H * W * C)
    kernel, sizes = sized(f"conv2d_backward_filter{suffix}", r, s, d, pad)
    assert work_at(kernel, sizes).total == 2 * taps.count * N * C * F
    used = N * F * len(taps.outputs) + N * C * len(taps.inputs)
    assert compulsory(kernel, sizes) == HALF * used + SINGLE * r * r * C * F


def test_bias_relu_and_housekeeping() -> None:
    assert work_at(model("conv2d_backward_bias"), {"pixels": 10, "f": 3}).total == 30
    assert compulsory(model("conv2d_backward_bias"), {"pixels": 10, "f": 3}) == HALF * 30 + SINGLE * 3
    assert work_at(model("relu"), {"n": 10}).total == 10
    for name, each in (("to_half", 6), ("to_single", 6), ("copy_half", 4)):
        assert work_at(model(name), {"n": 10}).total == 0
        assert compulsory(model(name), {"n": 10}) == 10 * each
    images = {"batch": N, "c": C, "h": H, "w": W}
    for name in ("nchw_to_nhwc", "nhwc_to_nchw"):
        assert (work_at(model(name), images).total, compulsory(model(name), images)) == (0, 2 * HALF * N * C * H * W)
    padded = model("pad_images", pad=2)
    assert work_at(padded, images).total == 0
    assert compulsory(padded, images) == HALF * N * C * (H * W + (H + 4) * (W + 4))


# ---- the same W, another Q ----


def test_algorithms_of_the_same_work_and_other_traffic() -> None:
    """At the paper's sizes: direct and implicit GEMM move the same least bytes, im2col its matrix twice as well."""
    m, checked = load_machine("v100_time_paper"), load_file(shipped("kernels")["conv2d_gemm"])
    direct, sizes = model("conv2d_forward"), {"batch": 16, "h": 112, "w": 112, "c": 64, "f": 64, "r": 3}
    rows, sums = 16 * 55 * 55, 9 * 64
    explicit = predict_program(checked, "conv2d_im2col", {}, m)
    assert work_at(direct, sizes).total == explicit.work == 2 * rows * 64 * sums
    least = HALF * (16 * 111 * 111 * 64 + sums * 64 + rows * 64)
    assert compulsory(direct, sizes) == least + HALF * 64  # the bias
    assert compulsory(model("conv2d"), sizes) == least
    assert explicit.memory.bytes == least + 2 * HALF * rows * sums


def test_a_product_in_blocks_needs_less_cache_than_direct_loops() -> None:
    sizes = {"batch": 1, "h": 10, "w": 10, "c": 4, "f": 8, "r": 3}
    direct = model("conv2d", s=1)
    blocked = model("conv2d_implicit_gemm", h=10, w=10, r=3, s=1, bm=8, bo=8)
    blocks = {"batch": 1, "c": 4, "f": 8}
    assert work_at(direct, sizes).total == work_at(blocked, blocks).total
    assert compulsory(direct, sizes) == compulsory(blocked, blocks)
    small = 512  # bytes: neither the filters nor a row of the image fit
    moved = [traffic_at(k, at, small, None, "load_store").bytes for k, at in ((direct, sizes), (blocked, blocks))]
    assert moved[1] < moved[0] / 2


# ---- algorithms with other W ----


def test_winograds_transforms_cost_what_its_authors_say() -> None:
    """Lavin and Gray 2015, section 4.1: 32 additions for a tile of the image, 24 for one of the outputs.

    For a filter they count 28 instructions, seven transforms of four where halves fuse; unfused these are five each.
    """
    tile = {"batch": 1, "th": 1, "tw": 1, "c": 1}
    assert work_at(model("winograd_images"), tile).total == 32
    assert work_at(model("winograd_outputs"), {"batch": 1, "th": 1, "tw": 1, "f": 1}).total == 24
    filters = work_at(model("winograd_filters"), {"c": 1, "f": 1})
    assert filters.total == 7 * 5


def reversed_bits(bits: int) -> list[int]:
    return [int(f"{k:0{bits}b}"[::-1], 2) for k in range(2**bits)]


def twiddles(stages: int) -> Array:
    """Those of stage t: exp(-2 pi i k / n) with the lowest t bits of k cleared."""
    half = 2 ** (stages - 1)
    rows = [[np.exp(-2j * np.pi * (j >> t << t) / (2 * half)) for j in range(half)] for t in range(stages)]
    return np.array(rows)


def test_the_transform_is_a_fourier_transform() -> None:
    stages, half = 3, 4
    before, after = ran("fft_rows", {"w": twiddles(stages)}, rows=3, half=half, stages=stages)
    np.testing.assert_allclose(after["B"], np.fft.fft(before["A"])[:, reversed_bits(stages)])
    _, back = ran("ifft_rows", {"A": after["B"], "w": twiddles(stages)}, rows=3, half=half, stages=stages)
    np.testing.assert_allclose(back["B"] / (2 * half), before["A"])
    before, after = ran("fft_columns", {"w": twiddles(stages)}, images=2, half=half, stages=stages, width=3)
    np.testing.assert_allclose(after["B"], np.fft.fft(before["A"], axis=1)[:, reversed_bits(stages)])


@pytest.mark.parametrize("stages", [2, 3, 7])
def test_the_transforms_work_is_5_n_log_n(stages: int) -> None:
    n = 2**stages
    for name in ("fft_rows", "ifft_rows"):
        assert work_at(model(name), {"rows": 3, "half": n // 2, "stages": stages}).total == 3 * 5 * n * stages


@pytest.mark.thorough
def test_convolution_by_transforms_is_the_convolution() -> None:
    batch, c, f, h, w, r, s, stages = 2, 2, 3, 7, 6, 3, 2, 3
    n, half, scale = 8, 4, 1 / 64
    random = np.random.default_rng(7)
    x, g = random.normal(size=(batch * c, h, w)), random.normal(size=(f * c, r, r))
    roots = {"w": twiddles(stages)}

    def transformed(images: Array, factor: float) -> Array:
        count, height, width = images.shape
        given = {"X": images, "scale": np.array(factor)}
        _, padded = ran("fft_pad", given, images=count, h=height, w=width, n=n)
        rows = {"A": padded["A"].reshape(-1, n), **roots}
        _, first = ran("fft_rows", rows, rows=count * n, half=half, stages=stages)
        columns = {"A": first["B"].reshape(count, n, n), **roots}
        return ran("fft_columns", columns, images=count, half=half, stages=stages, width=n)[1]["B"]

    spectra = {"X": transformed(x, 1).reshape(batch, c, -1), "G": transformed(g, scale).reshape(f, c, -1)}
    _, products = ran("fft_products", spectra, batch=batch, c=c, f=f, points=n * n)
    columns = {"A": products["Y"].reshape(-1, n, n), **roots}
    _, first = ran("ifft_columns", columns, images=batch * f, half=half, stages=stages, width=n)
    rows = {"A": first["B"].reshape(-1, n), **roots}
    _, second = ran("ifft_rows", rows, rows=batch * f * n, half=half, stages=stages)
    oh, ow = (h - r) // s + 1, (w - r) // s + 1
    cropped = {"A": second["B"].reshape(-1, n, n)}
    _, after = ran("fft_crop", cropped, images=batch * f, n=n, oh=oh, ow=ow, s=s)
    last = x.reshape(batch, c, h, w).transpose(0, 2, 3, 1), g.reshape(f, c, r, r).transpose(2, 3, 1, 0)
    expected = convolve(*last, s).transpose(0, 3, 1, 2)
    np.testing.assert_allclose(after["Y"].reshape(expected.shape), expected, atol=1e-12)


@pytest.mark.thorough
def test_the_work_of_a_convolution_by_transforms() -> None:
    """It does not depend on the filter: less than the direct loops' from filters of 4 x 4 on, at stride 1."""
    m, checked = load_machine("v100_time_paper"), load_file(shipped("kernels")["fft"])
    found = predict_launches(checked, "conv2d_fft", {"s": 1}, m)
    points, per_image = 128 * 128, 5 * 128 * 128 * 14
    images, filters, outputs = 16 * 64, 64 * 64, 16 * 64
    transforms = (images + filters + outputs) * per_image
    products = 16 * 64 * 64 * points * 8
    scaled = images * 112 * 112 + filters * 9
    assert found.total.work == transforms + products + scaled
    fewer = [r for r in range(1, 12) if 2 * 16 * (113 - r) ** 2 * 64 * 64 * r * r > found.total.work]
    assert min(fewer) == 4
    assert found.total.launches == 10
