"""Sums, extremes and running sums along some dimensions."""

from __future__ import annotations

from math import prod

from roofdsl.frontends.tensors.graph import Node, Tensor
from roofdsl.frontends.tensors.writing import LOWEST, KernelText, Writer, element


class Split:
    """A tensor's dimensions divided into those that stay (`i0`, `i1`, ...) and those that are reduced (`r0`, ...);
    neighbors of the same kind are joined.
    """

    def __init__(self, tensor: Tensor, dims: object) -> None:
        rank = len(tensor.shape)
        wanted = {d % rank for d in dims} if isinstance(dims, list | tuple) and dims else set(range(rank))
        self.ranges: list[tuple[str, int]] = []
        self.kinds: list[bool] = []
        self.repeated: list[bool] = []  # dimensions along which one element is read again and again
        for k, (n, own) in enumerate(zip(tensor.shape, tensor.stored, strict=True)):
            reduced, repeated = k in wanted, own != n
            if n == 1:
                continue
            if self.kinds and (self.kinds[-1], self.repeated[-1]) == (reduced, repeated):
                name, old = self.ranges[-1]
                self.ranges[-1] = (name, old * n)
            else:
                prefix = "r" if reduced else "i"
                self.ranges.append((f"{prefix}{self.kinds.count(reduced)}", n))
                self.kinds.append(reduced)
                self.repeated.append(repeated)
        self.count = prod(tensor.shape[d] for d in wanted) if rank else 1

    @property
    def dims(self) -> list[int]:
        return [n for _, n in self.ranges]

    @property
    def stored(self) -> list[int]:
        """The dimensions in memory."""
        return [1 if repeated else n for (_, n), repeated in zip(self.ranges, self.repeated, strict=True)]

    @property
    def names(self) -> list[str]:
        return [v for v, _ in self.ranges]

    @property
    def kept(self) -> list[tuple[str, int]]:
        return [r for r, reduced in zip(self.ranges, self.kinds, strict=True) if not reduced]

    @property
    def reduced(self) -> list[tuple[str, int]]:
        return [r for r, reduced in zip(self.ranges, self.kinds, strict=True) if reduced]

    def of_kept(self, name: str) -> str:
        """An element of an array that has the dimensions that stay."""
        return element(name, [n for _, n in self.kept], [v for v, _ in self.kept])


def _single(node: Node) -> tuple[Tensor, Tensor, Split, Writer, str, str]:
    (data,) = node.tensors
    out = node.outputs[0]
    split = Split(data, node.options.get("dims"))
    writer = Writer()
    writer.array("in", "X", data.type, split.stored)
    return data, out, split, writer, element("X", split.stored, split.names), split.of_kept("Y")


def total(node: Node) -> KernelText:
    """`sum`, `mean`, `prod`, `any` and `all`."""
    _, out, split, writer, x, y = _single(node)
    writer.array("out", "Y", out.type, [n for _, n in split.kept])
    start, op = {"prod": ("1", "*="), "any": ("0", "max="), "all": ("1", "min=")}.get(node.op, ("0", "+="))
    with writer.loops(split.kept):
        writer.put(f"{y} = {start}")
        with writer.loops(split.reduced):
            writer.put(f"{y} {op} {x}")
        if node.op == "mean":
            writer.put(f"{y} = {y} / {split.count}")
    return writer.text(node.op, "")


def extreme(node: Node) -> KernelText:
    """`amax`, `amin`, and `max`, `min`, `argmax`, `argmin` along a dimension; unused results are left out.

    options: `sign` is 1 for a maximum, -1 for a minimum; `values` and `places` say which results there are.
    """
    data, _, split, writer, x, _ = _single(node)
    values, places = node.options["values"], node.options["places"]
    kept = [n for _, n in split.kept]
    if values is not None:
        writer.array("out", "Y", node.outputs[values].type, kept)
    else:
        writer.array("temp", "best", data.type, ())
    y = split.of_kept("Y") if values is not None else "best"
    if places is not None:
        writer.array("out", "P", node.outputs[places].type, kept)
    up = node.options["sign"] > 0
    low = LOWEST.get(data.type, "-100")
    with writer.loops(split.kept):
        writer.put(f"{y} = {low if up else low.removeprefix('-')}")
        with writer.loops(split.reduced):
            if places is not None:
                p = split.of_kept("P")
                at = split.reduced[0][0] if split.reduced else "0"
                writer.put(f"let x = {x}")
                writer.put(f"{p} = select(x {'>' if up else '<'} {y}, {at}, {p})")
                x = "x"
            writer.put(f"{y} {'max' if up else 'min'}= {x}")
    return writer.text("argmax" if values is None else "maximum" if up else "minimum", "")


def scan(node: Node) -> KernelText:
    """`cumsum` and `cumprod`: each element from the previous one."""
    (data,) = node.tensors
    (out,) = node.outputs
    axis = node.options["dim"] % len(data.shape)
    op = "+" if node.op == "cumsum" else "*"
    parts = [("i", prod(data.shape[:axis])), ("k", data.shape[axis]), ("j", prod(data.shape[axis + 1 :]))]
    parts = [(v, n) for v, n in parts if n != 1 or v == "k"]
    dims = [n for _, n in parts]
    writer = Writer()
    writer.array("in", "X", data.type, dims)
    writer.array("out", "Y", out.type, dims)

    def at(name: str, k: str) -> str:
        return f"{name}[{', '.join(k if v == 'k' else v for v, _ in parts)}]"

    with writer.loops([p for p in parts if p[0] != "k"]):
        writer.put(f"{at('Y', '0')} = {at('X', '0')}")
        with writer.block(f"for k in range(1, {data.shape[axis]}):"):
            writer.put(f"{at('Y', 'k')} = {at('Y', 'k - 1')} {op} {at('X', 'k')}")
    return writer.text(node.op, "")


def variance(node: Node) -> KernelText:
    """`var` and `std` in two passes; options: `correction` is subtracted from the number of elements."""
    data, out, split, writer, x, y = _single(node)
    writer.array("out", "Y", out.type, [n for _, n in split.kept])
    writer.array("temp", "mean", data.type, ())
    below = split.count - int(node.options.get("correction", 1))
    with writer.loops(split.kept):
        writer.put("mean = 0")
        with writer.loops(split.reduced):
            writer.put(f"mean += {x}")
        writer.put(f"mean = mean / {split.count}")
        writer.put(f"{y} = 0")
        with writer.loops(split.reduced):
            writer.put(f"let d = {x} - mean")
            writer.put(f"{y} += d * d")
        writer.put(f"{y} = {y} / {below}" if node.op == "var" else f"{y} = sqrt({y} / {below})")
    return writer.text(node.op, "")


KERNELS = {
    "sum": total, "mean": total, "prod": total, "any": total, "all": total, "extreme": extreme, "cumsum": scan,
    "cumprod": scan, "var": variance, "std": variance,
}  # fmt: skip
