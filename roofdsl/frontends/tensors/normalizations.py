"""Softmax and the normalizations: statistics of a row, and the row computed from them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from roofdsl.frontends.tensors.graph import Node, Tensor
from roofdsl.frontends.tensors.reductions import Split
from roofdsl.frontends.tensors.writing import LOWEST, KernelText, Writer, element, number


def softmax(node: Node) -> KernelText:
    """`softmax` and `log_softmax`: the largest element, the exponentials and their sum, and the quotients."""
    (data,) = node.tensors
    (out,) = node.outputs
    split = Split(data, [node.options["dim"]])
    writer = Writer()
    writer.array("in", "X", data.type, split.stored)
    writer.array("out", "Y", out.type, split.dims)
    writer.array("temp", "top", data.type, ())
    writer.array("temp", "s", data.type, ())
    x, y = element("X", split.stored, split.names), element("Y", split.dims, split.names)
    with writer.loops(split.kept):
        writer.put(f"top = {LOWEST.get(data.type, '-3.4e38')}")
        writer.put("s = 0")
        with writer.loops(split.reduced):
            writer.put(f"top max= {x}")
        with writer.loops(split.reduced):
            if node.op == "softmax":
                writer.put(f"let e = exp({x} - top)")
                writer.put(f"{y} = e")
                writer.put("s += e")
            else:
                writer.put(f"s += exp({x} - top)")
        if node.op == "softmax":
            with writer.loops(split.reduced):
                writer.put(f"{y} = {y} / s")
        else:
            writer.put("let l = log(s)")
            with writer.loops(split.reduced):
                writer.put(f"{y} = {x} - top - l")
    return writer.text(node.op, "")


def normalization(node: Node) -> KernelText:
    """Layer, group, instance and batch normalization, in training or with given statistics.

    options: `rows` and `columns` as (name, iterations) of loops over X's dimensions `dims` with `subscripts`;
    `parameter` and `parameter_dims`: the subscripts and dimensions of W and B; `eps`; `count` elements a row; `given`:
    mean and variance are inputs (the fourth and fifth), otherwise running values that are updated with `momentum`, if
    there are any. `statistics`: mean and 1 / deviation are results.
    """
    o = node.options
    data = node.tensors[0]
    writer = Writer()
    writer.array("in", "X", data.type, o["dims"])
    parameters = [t for t in node.inputs[1:3] if isinstance(t, Tensor)]
    names = [n for n, t in zip(("W", "B"), node.inputs[1:3], strict=True) if isinstance(t, Tensor)]
    for name, tensor in zip(names, parameters, strict=True):
        writer.array("in", name, tensor.type, o["parameter_dims"])
    kept = [n for _, n in o["rows"] if n != 1]
    rows = [v for v, n in o["rows"] if n != 1]
    of_row = f"[{', '.join(rows)}]" if rows else ""
    running = [n for n, t in zip(("M", "V"), node.inputs[3:5], strict=False) if isinstance(t, Tensor)]
    for name in running:
        writer.array("in" if o["given"] else "inout", name, data.type, kept)
    writer.array("out", "Y", node.outputs[0].type, o["dims"])
    x, y = element("X", o["dims"], o["subscripts"]), element("Y", o["dims"], o["subscripts"])
    with writer.loops(o["rows"]):
        if o["given"]:
            writer.put(f"let mean = M{of_row}")
            writer.put(f"let r = rsqrt(V{of_row} + {number(o['eps'])})")
        else:
            _statistics(writer, x, {**o, "type": data.type}, running, of_row)
        with writer.loops(o["columns"]):
            scale = f" * W{o['parameter']}" if "W" in names else ""
            shift = f" + B{o['parameter']}" if "B" in names else ""
            writer.put(f"{y} = ({x} - mean) * r{scale}{shift}")
        if o.get("statistics"):
            for name, value in (("S", "mean"), ("R", "r")):
                writer.array("out", name, data.type, kept)
                writer.put(f"{name}{of_row} = {value}")
    return writer.text(node.op, "")


def _statistics(writer: Writer, x: str, options: Mapping[str, Any], running: list[str], of_row: str) -> None:
    """The mean and the variance of a row, in two passes."""
    type_ = options["type"]
    writer.array("temp", "mean", type_, ())
    writer.array("temp", "v", type_, ())
    count, columns = options["count"], options["columns"]
    writer.put("mean = 0")
    with writer.loops(columns):
        writer.put(f"mean += {x}")
    writer.put(f"mean = mean / {count}")
    writer.put("v = 0")
    with writer.loops(columns):
        writer.put(f"let d = {x} - mean")
        writer.put("v += d * d")
    writer.put(f"let r = rsqrt(v / {count} + {number(options['eps'])})")
    momentum = options.get("momentum") or 0.1
    for name, value in zip(running, ("mean", f"v / {max(count - 1, 1)}"), strict=False):
        rest = number(1 - momentum)
        writer.put(f"{name}{of_row} = {rest} * {name}{of_row} + {number(momentum)} * {value}")


def over_last(shape: tuple[int, ...], count: int) -> dict[str, Any]:
    """Options of a layer normalization over the last `count` dimensions."""
    rows, columns = prod(shape[: len(shape) - count]), prod(shape[len(shape) - count :])
    dims = [n for n in (rows, columns) if n != 1]
    subscripts = [v for v, n in (("i", rows), ("k", columns)) if n != 1]
    return {
        "rows": [("i", rows)], "columns": [("k", columns)], "dims": dims, "subscripts": subscripts, "count": columns,
        "parameter": "[k]" if columns != 1 else "[0]", "parameter_dims": [columns], "given": False,
    }  # fmt: skip


def over_groups(shape: tuple[int, ...], groups: int) -> dict[str, Any]:
    """Options of a group normalization of X[n, c, ...]: rows are a sample's groups of channels."""
    n, channels, space = shape[0], shape[1], prod(shape[2:])
    inner = channels // groups
    parts = [("n", n), ("g", groups), ("c", inner), ("k", space)]
    channel = f"{inner} * g + c" if inner != 1 and groups != 1 else "g" if groups != 1 else "c" if inner != 1 else "0"
    dims, subscripts = [n, channels, space], ["n", channel, "k"]
    return {
        "rows": parts[:2], "columns": parts[2:], "dims": dims, "subscripts": subscripts, "count": inner * space,
        "parameter": f"[{channel}]", "parameter_dims": [channels], "given": False,
    }  # fmt: skip


def over_batch(shape: tuple[int, ...], given: bool) -> dict[str, Any]:
    """Options of a batch normalization of X[n, c, ...]: rows are channels."""
    n, channels, space = shape[0], shape[1], prod(shape[2:])
    return {
        "rows": [("c", channels)], "columns": [("n", n), ("k", space)], "dims": [n, channels, space],
        "subscripts": ["n", "c", "k"], "count": n * space, "parameter": "[c]" if channels != 1 else "[0]",
        "parameter_dims": [channels], "given": given,
    }  # fmt: skip


KERNELS = {
    "softmax": softmax, "log_softmax": softmax, "layer_norm": normalization, "group_norm": normalization,
    "batch_norm": normalization, "instance_norm": normalization,
}  # fmt: skip
