"""Products in a reference code: linear layers, convolutions and attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from roofdsl.frontends.tensors.graph import Tensor
from roofdsl.frontends.tensors.reference_values import Builder, NotRead
from roofdsl.frontends.tensors.types import promoted

Call = Callable[..., Any]
_MOST_TAPS = 1_000_000


def linear(b: Builder, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return b.matmul(x, b.permuted(weight, range(len(weight.shape))[::-1]), "linear", bias)


def convolution(spatial: int) -> Call:
    def read(b: Builder, x: Tensor, weight: Tensor, *rest: Any, **more: Any) -> Tensor:
        names = ("bias", "stride", "padding", "dilation", "groups")
        given = dict(zip(names, rest, strict=False)) | dict(more)
        bias, stride, padding = given.get("bias"), given.get("stride", 1), given.get("padding", 0)
        if set(given) - set(names) or isinstance(padding, str) or len(x.shape) != spatial + 2:
            raise NotRead("this form of a convolution")
        dilation, groups = given.get("dilation", 1), given.get("groups", 1)

        def wide(value: Any) -> list[int]:
            return [value] * spatial if isinstance(value, int) else list(value)

        steps, pads, gaps = wide(stride), wide(padding), wide(dilation)
        places = [
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(x.shape[2:], weight.shape[2:], steps, pads, gaps, strict=True)
        ]
        if any(n < 1 for n in places) or weight.shape[1] * groups != x.shape[1]:
            raise NotRead("a convolution whose shapes do not fit")
        inputs = [x, weight, *([bias] if bias is not None else [])]
        reads = math.prod(x.shape[:2])
        for n, o, k, step, gap, pad in zip(x.shape[2:], places, weight.shape[2:], steps, gaps, pads, strict=True):
            reads *= _touched(n, o, k, step=step, gap=gap, pad=pad)
        return b.add(
            "convolution", f"conv{spatial}d", inputs, (x.shape[0], weight.shape[0], *places),
            promoted(x.type, weight.type), stride=steps, padding=pads, dilation=gaps, transposed=False, groups=groups,
            reads=reads if x.stored == x.shape else x.size,
        )  # fmt: skip

    return read


def _touched(size: int, outs: int, taps: int, *, step: int, gap: int, pad: int) -> int:
    """How many of `size` places along a dimension a convolution reads."""
    last = (outs - 1) * step + (taps - 1) * gap - pad
    if gap == 1 and step <= taps:  # nothing is left out between the first place and the last one
        return min(size - 1, last) + 1
    if outs * taps > _MOST_TAPS:  # those of the first tap alone
        return max(0, min(outs - 1, (size - 1 + pad) // step) + pad // -step + 1)
    return len({p for o in range(outs) for k in range(taps) if 0 <= (p := o * step + k * gap - pad) < size})


def _grouped_product(b: Builder, left: Tensor, right: Tensor, called: str) -> Tensor:
    """A product in which several heads of the left factor share one of the right factor."""
    shared = right.shape[-3]
    heads = b.reshape(left, (*left.shape[:-3], shared, left.shape[-3] // shared, *left.shape[-2:]))
    made = b.matmul(heads, b.indexed(right, [..., None, slice(None), slice(None)]), called)
    return b.view(made, (*left.shape[:-1], right.shape[-1]), in_order=True)


def attention(b: Builder, q: Tensor, k: Tensor, v: Tensor, *rest: Any, **more: Any) -> Tensor:
    """`scaled_dot_product_attention`: scores, a mask, the softmax, and the values. All keys count, as torch counts;
    of a causal attention, a note says that not all are needed.
    """
    names = ("attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
    more = dict(zip(names, rest, strict=False)) | more
    if len(rest) > 3 or set(more) - set(names) or more.get("dropout_p"):
        raise NotRead("this form of attention")
    mask = more.get("attn_mask")
    product = partial(_grouped_product, b) if more.get("enable_gqa") else b.matmul
    order = [*range(len(k.shape) - 2), -1, -2]
    scores = product(q, b.permuted(k, order), "attention scores")
    factor = float(more.get("scale") or q.shape[-1] ** -0.5)
    scores = b.add("mul", "attention scores", [scores, factor], scores.shape, scores.type)
    if isinstance(mask, Tensor):
        scores = b.elementwise("add", [scores, mask], scores.type)
    reads = scores.size
    if more.get("is_causal"):  # a query needs the keys up to its own place
        queries, keys = scores.shape[-2:]
        whole = min(queries, keys)
        reads = reads // (queries * keys) * (whole * (whole + 1) // 2 + (queries - whole) * keys)
    weights = b.add("softmax", "softmax", [scores], scores.shape, scores.type, dim=-1, reads=reads)
    return product(weights, v, "attention values")
