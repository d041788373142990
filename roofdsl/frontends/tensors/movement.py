"""Operators that move data without computing: copies, fills, joins, rows by index; and those that are not known."""

from __future__ import annotations

from math import prod

from roofdsl.frontends.tensors.graph import Node, Tensor
from roofdsl.frontends.tensors.writing import KernelText, Writer, element, number


def fill(node: Node) -> KernelText:
    """A tensor of one number, or of consecutive ones."""
    (out,) = node.outputs
    writer = Writer()
    writer.array("out", "Y", out.type, [out.size])
    with writer.loops([("i", out.size)]):
        value = "i" if node.op == "arange" and out.size != 1 else number(node.options.get("value", 0))
        writer.put(f"{element('Y', [out.size], ['i'])} = {value}")
    return writer.text(node.op, "")


def join(node: Node) -> KernelText:
    """`cat`: each input after the one before, along a dimension."""
    (out,) = node.outputs
    axis = node.options["dim"] % len(out.shape)
    before, after = prod(out.shape[:axis]), prod(out.shape[axis + 1 :])
    writer = Writer()
    offset = 0
    for k, tensor in enumerate(node.tensors):
        own = tensor.shape[axis]
        if not prod(tensor.shape):
            continue
        stored = _joined(tensor, axis)
        name = writer.array("in", f"X{k + 1}", tensor.type, stored)
        with writer.loops([("i", before), ("k", own), ("j", after)]):
            x = element(name, stored, ["i", "k", "j"])
            place = (f"k + {offset}" if offset else "k") if own > 1 else str(offset)
            i, j = "i" if before > 1 else "0", "j" if after > 1 else "0"
            writer.put(f"Y[{i}, {place}, {j}] = {x}")
        offset += own
    writer.array("out", "Y", out.type, (before, out.shape[axis], after))
    return writer.text("cat", "")


def _joined(tensor: Tensor, axis: int) -> tuple[int, int, int]:
    """The dimensions before an axis, the axis, and those after it, as they are in memory: 1 if all of their elements
    are one.
    """
    parts = slice(None, axis), slice(axis, axis + 1), slice(axis + 1, None)
    first, own, last = (1 if prod(tensor.stored[p]) == 1 else prod(tensor.shape[p]) for p in parts)
    return first, own, last


def pad(node: Node) -> KernelText:
    """`constant_pad`: the data, with a number around them. options: `low`, elements before each dimension."""
    (data,) = node.tensors
    (out,) = node.outputs
    low = node.options["low"]
    names = [f"i{k}" for k in range(len(out.shape))]
    writer = Writer()
    writer.array("in", "X", data.type, data.shape)
    writer.array("out", "Y", out.type, out.shape)
    parts = list(zip(names, data.shape, low, out.shape, strict=True))
    tests = [f"{b} <= {v} < {b + n}" for v, n, b, whole in parts if b or n != whole]
    with writer.loops(list(zip(names, out.shape, strict=True))):
        places = [f"{v} - {b}" if b else v for v, _, b, _ in parts]
        x = element("X", data.shape, places)
        with writer.block(f"if {' and '.join(tests)}:") if tests else writer.loops([]):
            writer.put(f"{element('Y', out.shape, names)} = {x}")
        if tests:
            with writer.block("else:"):
                writer.put(f"{element('Y', out.shape, names)} = {number(node.options.get('value', 0))}")
    return writer.text("pad", "")


def triangle(node: Node) -> KernelText:
    """`tril` and `triu` of matrices. options: `diagonal`; `sign` is 1 for the elements on and below it, -1 for those on
    and above.
    """
    (data,) = node.tensors
    (out,) = node.outputs
    batch, rows, columns = prod(data.shape[:-2]), *data.shape[-2:]
    dims = (batch, rows, columns)
    own = (1 if prod(data.stored[:-2]) == 1 else batch, *data.stored[-2:])
    writer = Writer()
    writer.array("in", "X", data.type, own)
    writer.array("out", "Y", out.type, dims)
    y = element("Y", dims, ["b", "i", "j"])
    places = ["0" if n == 1 else v for v, n in (("i", rows), ("j", columns))]
    side = "<=" if node.options["sign"] > 0 else ">="
    with writer.loops([("b", batch), ("i", rows), ("j", columns)]):
        with writer.block(f"if {places[1]} {side} {places[0]} + {node.options['diagonal']}:"):
            writer.put(f"{y} = {element('X', own, ['b', 'i', 'j'])}")
        with writer.block("else:"):
            writer.put(f"{y} = 0")
    return writer.text(node.called, "")


def rows(node: Node) -> KernelText:
    """`embedding`, `index_select` and `gather`: elements in the order of their use, and the indices by which they are
    read.
    """
    (out,) = node.outputs
    data, places = node.tensors[0], node.tensors[-1]
    writer = Writer()
    writer.array("in", "X", data.type, [out.size])
    writer.array("in", "I", places.type, [places.size])
    writer.array("out", "Y", out.type, [out.size])
    writer.array("temp", "place", places.type, ())
    with writer.loops([("i", places.size)]):
        writer.put(f"place = {element('I', [places.size], ['i'])}")
    with writer.loops([("i", out.size)]):
        writer.put(f"{element('Y', [out.size], ['i'])} = {element('X', [out.size], ['i'])}")
    return writer.text(node.op, "X has the elements in the order of their use.")


def unknown(node: Node) -> KernelText:
    """An unknown operator: every argument is read once and every result written once, without any work."""
    writer = Writer()
    lines: list[tuple[int, str]] = []
    for k, tensor in enumerate(dict.fromkeys(t for t in node.inputs if isinstance(t, Tensor))):
        size = tensor.size
        name = writer.array("in", f"X{k + 1}", tensor.type, [size])
        lines.append((size, f"let x{k + 1} = {element(name, [size], ['i'])}"))
    for k, tensor in enumerate(node.outputs):
        size = prod(tensor.shape)
        name = writer.array("out", f"Y{k + 1}", tensor.type, [size])
        lines.append((size, f"{element(name, [size], ['i'])} = 0"))
    for size, line in lines:
        with writer.loops([("i", size)]):
            writer.put(line)
    comment = f"NOT READ: {node.called} is not known; the bytes of its arguments and results are counted, and no work."
    return writer.text("unknown", comment)


KERNELS = {
    "fill": fill, "arange": fill, "cat": join, "pad": pad, "triangle": triangle,
    "embedding": rows, "index_select": rows, "gather": rows, "unknown": unknown,
}  # fmt: skip
