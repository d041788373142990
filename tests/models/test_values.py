"""The application models compute what they are named after: results against numpy at small sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.models.execute import Arrays, execute, inputs
from tests.models.shipped import small

Array = npt.NDArray[Any]


def ran(name: str, given: Arrays | None = None, **sizes: int) -> tuple[Arrays, Arrays]:
    """The arrays of a shipped kernel before and after it ran."""
    kernel, values = small(name, **sizes)
    before = inputs(kernel, values) | (given or {})
    return before, execute(kernel, values, before).arrays


def convolve(x: Array, g: Array, s: int, d: int = 1, pad: int = 0) -> Array:
    """A 2D convolution over channels-last images, by slices of the padded image."""
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    r = g.shape[0]
    oh, ow = ((n - d * (r - 1) - 1) // s + 1 for n in x.shape[1:3])
    out = np.zeros((x.shape[0], oh, ow, g.shape[3]))
    for p in range(r):
        for q in range(r):
            part = x[:, d * p : d * p + s * (oh - 1) + 1 : s, d * q : d * q + s * (ow - 1) + 1 : s]
            out += np.tensordot(part, g[p, q], 1)
    return out


@pytest.mark.thorough
def test_forward() -> None:
    before, after = ran("conv2d_forward")
    expected = convolve(before["X"], before["G"], 2, 2) + before["B"]
    np.testing.assert_allclose(after["Y"], expected)
    given = {"B": np.array([-60.0, -5.0, 1.0])}
    before, after = ran("conv2d_bias_relu", given)
    np.testing.assert_allclose(
        after["Y"], np.maximum(convolve(before["X"], before["G"], 2, 2) + given["B"], 0), atol=1e-12
    )
    before, after = ran("conv2d_f32")  # a stride larger than the filter
    np.testing.assert_allclose(after["Y"], convolve(before["X"], before["G"], 3))


@pytest.mark.thorough
@pytest.mark.spread(1)
@pytest.mark.parametrize(("r", "s", "d", "pad"), [(3, 1, 1, 1), (3, 2, 1, 1), (1, 1, 1, 1), (2, 3, 2, 3), (3, 1, 2, 2)])
def test_padding(r: int, s: int, d: int, pad: int) -> None:
    before, after = ran("conv2d_padded", r=r, s=s, d=d, pad=pad)
    np.testing.assert_allclose(after["Y"], convolve(before["X"], before["G"], s, d, pad))


@pytest.mark.spread(1)
@pytest.mark.parametrize(("name", "r", "s", "d", "pad"), [
    ("", 3, 2, 1, 0), ("", 1, 1, 1, 0), ("", 1, 3, 1, 0), ("", 2, 1, 3, 0),
    ("_padded", 3, 1, 1, 1), ("_padded", 3, 2, 1, 2), ("_padded", 1, 2, 1, 1),
])  # fmt: skip
def test_backward(name: str, r: int, s: int, d: int, pad: int) -> None:
    """Gradients are the adjoint of the forward pass, which is linear in X and in G: <Y', conv> does not change."""
    sizes = {"r": r, "s": s, "d": d} | ({"pad": pad} if pad else {})
    data, dx = ran(f"conv2d_backward_data{name}", **sizes)
    filters, dg = ran(f"conv2d_backward_filter{name}", **sizes)
    random = np.random.default_rng(3)
    x, g = random.normal(size=dx["dX"].shape), random.normal(size=dg["dG"].shape)
    assert np.sum(dx["dX"] * x) == pytest.approx(np.sum(data["dY"] * convolve(x, data["G"], s, d, pad)))
    assert np.sum(dg["dG"] * g) == pytest.approx(np.sum(filters["dY"] * convolve(filters["X"], g, s, d, pad)))


@pytest.mark.thorough
def test_im2col_and_the_product_are_the_convolution() -> None:
    before, columns = ran("im2col")
    g = np.random.default_rng(4).normal(size=(3, 3, 2, 4))
    rows = columns["A"].reshape(-1, 18)
    _, product = ran("conv_gemm", {"A": rows, "G": g.reshape(18, 4)}, rows=len(rows), f=4, sums=18)
    expected = convolve(before["X"], g, 2)
    np.testing.assert_allclose(product["Y"].reshape(expected.shape), expected)
    _, implicit = ran("conv2d_implicit_gemm", {"X": before["X"], "G": g})
    np.testing.assert_allclose(implicit["Y"].reshape(expected.shape), expected)


@pytest.mark.thorough
def test_winograd_is_the_convolution() -> None:
    n, th, tw, c, f = 2, 2, 3, 2, 3
    random = np.random.default_rng(5)
    x, g = random.normal(size=(n, 2 * th + 2, 2 * tw + 2, c)), random.normal(size=(3, 3, c, f))
    _, filters = ran("winograd_filters", {"g": g}, c=c, f=f)
    _, images = ran("winograd_images", {"X": x}, batch=n, th=th, tw=tw, c=c)
    v = images["V"].reshape(4, 4, -1, c)
    _, products = ran("winograd_products", {"V": v, "U": filters["U"]}, tiles=v.shape[2], c=c, f=f)
    m = products["M"].reshape(4, 4, n, th, tw, f)
    _, outputs = ran("winograd_outputs", {"M": m}, batch=n, th=th, tw=tw, f=f)
    np.testing.assert_allclose(outputs["Y"], convolve(x, g, 1), atol=1e-12)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def equation_5(x: Array, h: Array, c: Array, *weights: Array) -> tuple[Array, Array]:
    """One step of an LSTM: gates forget, input, candidate, output. Weights of x and h, and biases."""
    w, u, b = weights
    z = np.tensordot(x, w, 1) + np.tensordot(h, u, 1) + b
    c = sigmoid(z[:, 0]) * c + sigmoid(z[:, 1]) * np.tanh(z[:, 2])
    return sigmoid(z[:, 3]) * np.tanh(c), c


def test_lstm() -> None:
    before, after = ran("lstm_cell")
    h, c = equation_5(*(before[n] for n in ("X", "H", "C", "W", "U", "b")))
    np.testing.assert_allclose(after["H2"], h)
    np.testing.assert_allclose(after["C"], c)
    before, after = ran("lstm_sequence")
    h, c = before["H"][0], before["C"]
    for t, x in enumerate(before["X"]):
        h, c = equation_5(x, h, c, *(before[n] for n in ("W", "U", "b")))
        np.testing.assert_allclose(after["H"][t + 1], h)
    before, after = ran("lstm_elementwise")
    nothing = np.zeros((1, 1))
    gates = before["R"] + before["Z"]
    h, c = equation_5(
        np.ones((len(gates), 1)), nothing, before["C"], nothing.reshape(1, 1, 1), nothing, gates + before["b"]
    )
    np.testing.assert_allclose(after["H"], h)


def test_lstm_backward_is_the_gradient() -> None:
    """Central differences of one elementwise step."""
    forward, state = ran("lstm_elementwise")
    given = {"gates": state["gates"], "tanh_c": state["tanh_c"], "C": forward["C"]}
    before, after = ran("lstm_elementwise_backward", given)

    def loss(name: str, at: tuple[int, ...], change: float) -> float:
        moved = {n: v.copy() for n, v in forward.items()}
        moved[name][at] += change
        _, result = ran("lstm_elementwise", moved)
        return float(np.sum(result["H"] * (before["dH"] + before["dY"])) + np.sum(result["C"] * before["dC"]))

    for name, at, got in (
        *((("R", (1, gate, 2), after["dgates"][1, gate, 2])) for gate in range(4)),
        ("C", (0, 1), after["dC"][0, 1]),
    ):
        assert got == pytest.approx((loss(name, at, 1e-5) - loss(name, at, -1e-5)) / 2e-5, rel=1e-6)


def softmax(s: Array) -> Array:
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    result: Array = e / e.sum(axis=-1, keepdims=True)
    return result


def test_attention() -> None:
    before, after = ran("flash_attention", n=6, dh=3, bq=2, bk=3)
    p = softmax(before["scale"] * before["Q"] @ before["K"].T)
    np.testing.assert_allclose(after["O"], p @ before["V"])


def test_causal_attention_in_tiles() -> None:
    for n, bq, bk in ((6, 2, 3), (6, 3, 2), (8, 4, 2)):
        before, after = ran("flash_attention_causal", n=n, dh=3, bq=bq, bk=bk)
        scores = np.where(np.tri(n, dtype=bool), before["scale"] * before["Q"] @ before["K"].T, -np.inf)
        np.testing.assert_allclose(after["O"], softmax(scores) @ before["V"])


def test_the_products_of_fused_attention() -> None:
    """Without its exponentials: the scores themselves weight the values."""
    b, new, context = 2, 3, 5
    for name in ("attention_products", "attention_products_f8"):
        before, after = ran(name, batch=b, new=new, context=context, kv=2, group=2, dh=3)
        for t in range(new):
            seen = context - new + t + 1
            s = np.einsum("bhgk,buhk->bhgu", before["Q"][:, t], before["K"][:, :seen])
            np.testing.assert_allclose(after["O"][:, t], np.einsum("bhgu,buhk->bhgk", s, before["V"][:, :seen]))


@pytest.mark.thorough
def test_causal_attention_with_grouped_queries() -> None:
    b, new, old, kv, dh, group = 2, 3, 2, 2, 3, 2
    sizes = {"batch": b, "new": new, "context": old + new, "kv": kv, "group": group}
    first, scores = ran("attention_scores", **sizes, dh=dh)
    second, weights = ran("attention_softmax", {"S": scores["S"]}, **sizes)
    third, values = ran("attention_values", {"P": weights["P"]}, **sizes, dh=dh)
    for t in range(new):
        seen = old + t + 1
        s = np.einsum("bhgk,buhk->bhgu", first["Q"][:, t], first["K"][:, :seen])
        p = softmax(second["scale"] * s)
        np.testing.assert_allclose(values["O"][:, t], np.einsum("bhgu,buhk->bhgk", p, third["V"][:, :seen]))


def test_layers_small_parts() -> None:
    before, after = ran("rms_norm")
    size = np.sqrt(np.mean(before["X"] ** 2, axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(after["Y"], before["X"] / size * before["scale"])
    before, after = ran("swiglu")
    np.testing.assert_allclose(after["C"], before["A"] * sigmoid(before["A"]) * before["B"])
    before, after = ran("rotary")
    x = before["X"][..., 0, :] + 1j * before["X"][..., 1, :]
    angle = (before["cosines"] + 1j * before["sines"])[None, :, None]
    np.testing.assert_allclose(after["X"][..., 0, :] + 1j * after["X"][..., 1, :], x * angle)


@pytest.mark.thorough
def test_the_three_smoothers_agree() -> None:
    results = []
    kernel, sizes = small("gsrb_fp")
    given = inputs(kernel, sizes)
    cells = np.indices(given["mask"].shape)
    given["mask"] = ((cells.sum(axis=0)) % 2 == 0).astype(float)  # plane (k + colour) % 2: even k + j + i + colour
    for name in ("gsrb_fp", "gsrb_branch", "gsrb_stride2"):
        _, after = ran(name, {n: v for n, v in given.items() if n != "mask" or name == "gsrb_fp"})
        results.append(after["y"][:, 2:-2, 2:-2, 2:-2])
    np.testing.assert_allclose(results[1], results[0])
    np.testing.assert_allclose(results[2], results[0])


def test_the_smoother_of_a_constant_is_that_constant() -> None:
    """The operator is a difference of fluxes: of a constant x it is 0, so with rhs = 0 nothing changes."""
    shape = (2, 8, 8, 8)
    _, after = ran("gsrb_branch", {"x": np.full(shape, 2.5), "rhs": np.zeros(shape)})
    np.testing.assert_allclose(after["y"][:, 2:-2, 2:-2, 2:-2], 2.5)


@pytest.mark.thorough
@pytest.mark.spread(1)
@pytest.mark.parametrize("axis", [1, 2, 3])
def test_the_smoothers_operator_is_the_laplacian_of_a_quadratic(axis: int) -> None:
    """With coefficients of one and h = 1, -Laplace of the square of a coordinate is -2, without error at 4th order."""
    shape = (2, 8, 8, 8)
    x = np.indices(shape)[axis].astype(float) ** 2
    ones = dict.fromkeys(("beta_i", "beta_j", "beta_k", "dinv"), np.ones(shape))
    _, after = ran("gsrb_fp", {"x": x, **ones, "rhs": np.zeros(shape), "c": np.array(-1.0), "mask": np.ones((2, 8, 8))})
    inner = (slice(None), *(slice(2, -2),) * 3)
    np.testing.assert_allclose(after["y"][inner], x[inner] + 2)


def test_gpp() -> None:
    kernel, sizes = small("gpp", nw=3, s=1)
    before = inputs(kernel, sizes)
    after = execute(kernel, sizes, before).arrays
    for iw in range(3):
        wdiff = before[f"w{iw + 1}"] - before["wtilde"]
        delw = before["wtilde"] / wdiff
        left = np.einsum("bp,bg,p->pg", before["aqsm"].conj(), before["aqsn"], 0.5 * before["vcoul"])
        np.testing.assert_allclose(after[f"a{iw + 1}"], before[f"a{iw + 1}"] + np.sum(left * delw * before["eps"]))


def test_the_decks_versions_agree() -> None:
    kernel, sizes = small("gpp_divides")
    given = inputs(kernel, sizes) | {"cutoff": np.array(1e9)}
    sums = [ran(f"gpp_{v}", given)[1] for v in ("divides", "reciprocals", "squares", "blocks")]
    for name in ("ssx_sum", "sch_sum"):
        np.testing.assert_allclose([s[name] for s in sums[1:]], [sums[0][name]] * 3)
