"""Matrix products and convolutions, with as many multiplications and additions as libraries and torch's counter count.

Multiplications with the zeros of a padding are executed by libraries and counted; they move no data, so here they go to
a scalar. A sum begins with its bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roofdsl.frontends.tensors.graph import Node, Tensor
from roofdsl.frontends.tensors.writing import KernelText, Writer, element
from roofdsl.lang.record import Record


def matmul(node: Node) -> KernelText:
    """`mm`, `bmm`, `addmm`, `baddbmm` and a matrix by a vector: Y[b, m, o] = sum over k, beginning with the bias.

    options: `bias` whether the first input is added.
    """
    bias = node.inputs[0] if node.options.get("bias") else None
    left, right = node.inputs[1:] if bias is not None else node.inputs
    (out,) = node.outputs
    assert isinstance(left, Tensor) and isinstance(right, Tensor)
    batch = left.shape[:-2] if len(left.shape) > 1 else ()
    vector = len(right.shape) == 1
    m = left.shape[-2] if len(left.shape) > 1 else 1
    k = left.shape[-1]
    o = 1 if vector else right.shape[-1]
    names = [f"b{d}" for d in range(len(batch))]
    writer = Writer()
    stored = (*left.stored[:-1], *[1] * (2 - len(left.shape)), left.stored[-1])
    dims = {"X": stored, "W": (*right.stored, *[1] * vector), "Y": (*batch, m, o)}
    for name, tensor in (("X", left), ("W", right)):
        writer.array("in", name, tensor.type, dims[name])
    start = _bias(writer, bias, [*names, "m", "o"], out) if isinstance(bias, Tensor) else "0"
    writer.array("out", "Y", out.type, dims["Y"])
    outer = names if len(dims["W"]) == len(batch) + 2 else []
    with writer.loops([*zip(names, batch, strict=True), ("m", m), ("o", o)]):
        y = element("Y", dims["Y"], [*names, "m", "o"])
        writer.put(f"{y} = {start}")
        with writer.loops([("k", k)]):
            x = element("X", dims["X"], [*names, "m", "k"])
            writer.put(f"{y} += {x} * {element('W', dims['W'], [*outer, 'k', 'o'])}")
    return writer.text("matmul" if not batch else "batched_matmul", "")


def _bias(writer: Writer, bias: Tensor, names: Sequence[str], out: Tensor) -> str:
    stored = (*[1] * (len(out.shape) - len(bias.stored)), *bias.stored)
    kept = [(v, n) for v, n in zip(names[-len(stored) :], stored, strict=True) if n != 1]
    writer.array("in", "B", bias.type, [n for _, n in kept])
    return f"B[{', '.join(v for v, _ in kept)}]" if kept else "B"


class _Window:
    """The numbers of a convolution or pooling, one for each spatial dimension."""

    def __init__(self, spatial: int, options: Any) -> None:
        def wide(name: str, otherwise: int) -> list[int]:
            given = list(options.get(name) or [otherwise])
            return given * spatial if len(given) == 1 else given

        self.stride, self.padding = wide("stride", 1), wide("padding", 0)
        self.dilation = wide("dilation", 1)


class _Shapes(Record):
    """The shapes of the data, the filters and the result; the number of groups, and whether there is a bias."""

    data: tuple[int, ...]
    weight: tuple[int, ...]
    result: tuple[int, ...]
    groups: int
    bias: bool


def taps(
    out: Sequence[str], tap: Sequence[str], window: Any, sizes: Sequence[int], counts: Sequence[tuple[int, int]]
) -> tuple[list[str], list[str]]:
    """Subscripts `o * stride + k * dilation - padding`, and the conditions under which they lie in 0..size - 1.

    counts: the numbers of iterations of `o` and of `k`, by which conditions that always hold are left out.
    """
    places, conditions = [], []
    for d, (o, k) in enumerate(zip(out, tap, strict=True)):
        stride, dilation, padding = window.stride[d], window.dilation[d], window.padding[d]
        outs, ins = counts[d]
        parts = ([o if stride == 1 else f"{stride} * {o}"] if outs > 1 else []) + (
            [k if dilation == 1 else f"{dilation} * {k}"] if ins > 1 else []
        )
        place = " + ".join(parts) or "0"
        if padding:
            place = f"{place} - {padding}" if padding > 0 else f"{place} + {-padding}"
        last = (outs - 1) * stride + (ins - 1) * dilation - padding
        low = f"{place} >= 0" if padding > 0 else ""
        high = f"{place} < {sizes[d]}" if last >= sizes[d] else ""
        both = f"0 <= {place} < {sizes[d]}" if low and high else low or high
        conditions += [both] if both else []
        places.append(place)
    return places, conditions


def convolution(node: Node) -> KernelText:
    """A convolution of 1 to 3 dimensions with groups, strides, padding and dilation, or a transposed one.

    inputs: X[n, c, ...], W[o, c / groups, ...] (W[c, o / groups, ...] of a transposed one), and a bias or nothing.
    """
    data, weight, *rest = node.inputs
    (out,) = node.outputs
    assert isinstance(data, Tensor) and isinstance(weight, Tensor)
    bias = rest[0] if rest else None
    spatial = len(weight.shape) - 2
    whole = data.shape if len(data.shape) == spatial + 2 else (1, *data.shape)
    order = node.options.get("result") or range(len(out.shape))  # the positions of n, o and the others in the result
    result = tuple(out.shape[d] for d in order)
    result = result if len(result) == spatial + 2 else (1, *result)
    writer = Writer()
    writer.array("in", "X", data.type, whole)
    writer.array("in", "W", weight.type, weight.shape)
    if isinstance(bias, Tensor):
        writer.array("in", "B", bias.type, bias.shape)
    writer.array("out", "Y", out.type, result)
    window = _Window(spatial, node.options)
    shapes = _Shapes(whole, weight.shape, result, node.options.get("groups", 1), isinstance(bias, Tensor))
    make = _scattered if node.options.get("transposed") else _gathered
    make(writer, shapes, window)
    kind = "transposed_convolution" if node.options.get("transposed") else "convolution"
    return writer.text(f"{kind}_{spatial}d", "")


def _gathered(writer: Writer, shapes: _Shapes, window: _Window) -> None:
    data, weight, result, groups, bias = shapes.data, shapes.weight, shapes.result, shapes.groups, shapes.bias
    d = len(weight) - 2
    o, k = [f"o{j}" for j in range(d)], [f"k{j}" for j in range(d)]
    own, inner = weight[0] // groups, weight[1]
    channel = "o" if groups == 1 else "g" if own == 1 else f"{own} * g + o"
    source = "c" if groups == 1 else "g" if inner == 1 else f"{inner} * g + c"
    heads = [("n", data[0]), ("g", groups), ("o", own), *zip(o, result[2:], strict=True)]
    with writer.loops(heads):
        y = element("Y", result, ["n", channel, *o])
        writer.put(f"{y} = {'B[' + (channel if weight[0] > 1 else '0') + ']' if bias else '0'}")
        with writer.loops([("c", inner), *zip(k, weight[2:], strict=True)]):
            places, conditions = taps(o, k, window, data[2:], list(zip(result[2:], weight[2:], strict=True)))
            x = element("X", (*data[:2], *[2] * d), ["n", source, *places])
            w = element("W", weight, [channel, "c", *k])
            _accumulate(writer, f"{y} += {x} * {w}", w, conditions)


def _scattered(writer: Writer, shapes: _Shapes, window: _Window) -> None:
    """Every element of the input is multiplied by the whole filter and added where it belongs."""
    data, weight, result, groups, bias = shapes.data, shapes.weight, shapes.result, shapes.groups, shapes.bias
    d = len(weight) - 2
    i, k = [f"i{j}" for j in range(d)], [f"k{j}" for j in range(d)]
    inner, own = weight[0] // groups, weight[1]
    channel = "o" if groups == 1 else "g" if own == 1 else f"{own} * g + o"
    source = "c" if groups == 1 else "g" if inner == 1 else f"{inner} * g + c"
    with writer.loops([("n", result[0]), ("o", result[1]), *((f"p{j}", s) for j, s in enumerate(result[2:]))]):
        y = element("Y", result, ["n", "o", *(f"p{j}" for j in range(d))])
        writer.put(f"{y} = {('B[o]' if result[1] > 1 else 'B[0]') if bias else '0'}")
    heads = [("n", data[0]), ("g", groups), ("c", inner), *zip(i, data[2:], strict=True), ("o", own)]
    with writer.loops([*heads, *zip(k, weight[2:], strict=True)]):
        places, conditions = taps(i, k, window, result[2:], list(zip(data[2:], weight[2:], strict=True)))
        y = element("Y", (*result[:2], *[2] * d), ["n", channel, *places])
        w = element("W", weight, [source, "o", *k])
        _accumulate(writer, f"{y} += {element('X', data, ['n', source, *i])} * {w}", w, conditions)


def _accumulate(writer: Writer, statement: str, weight: str, conditions: Sequence[str]) -> None:
    if not conditions:
        writer.put(statement)
        return
    writer.array("temp", "s", "f32", ())
    writer.body.insert(0, "    s = 0")
    with writer.block(f"if {' and '.join(conditions)}:"):
        writer.put(statement)
    with writer.block("else:  # the padding"):
        writer.put(f"s += 0 * {weight}")


KERNELS = {"matmul": matmul, "convolution": convolution}
