"""Pooling of 1 to 3 dimensions: the largest element or the mean of a window."""

from __future__ import annotations

from contextlib import nullcontext
from math import prod

from roofdsl.frontends.tensors.contractions import taps
from roofdsl.frontends.tensors.graph import Node
from roofdsl.frontends.tensors.writing import LOWEST, KernelText, Writer, element, number


class _Window:
    def __init__(self, stride: list[int], padding: list[int], dilation: list[int]) -> None:
        self.stride, self.padding, self.dilation = stride, padding, dilation


def pool(node: Node) -> KernelText:
    """`max_pool` (with places, if they are used) and `avg_pool`. options: `window`, `stride`, `padding`, `dilation` as
    lists, one number for each of the last dimensions; `places`: the result that holds them, or None; `divisor` of a
    sum, by default the number of elements in the window.
    """
    (data,) = node.tensors
    o = node.options
    d = len(o["window"])
    out = node.outputs[0]
    outer = prod(data.shape[:-d])
    dims, result = (outer, *data.shape[-d:]), (outer, *out.shape[-d:])
    writer = Writer()
    writer.array("in", "X", data.type, dims)
    writer.array("out", "Y", out.type, result)
    places = o.get("places")
    if places is not None:
        writer.array("out", "P", node.outputs[places].type, result)
    window = _Window(o["stride"], o["padding"], o["dilation"])
    names, taps_of = [f"o{j}" for j in range(d)], [f"k{j}" for j in range(d)]
    at, conditions = taps(names, taps_of, window, data.shape[-d:], list(zip(result[1:], o["window"], strict=True)))
    largest = node.op == "max_pool"
    with writer.loops([("n", outer), *zip(names, result[1:], strict=True)]):
        y = element("Y", result, ["n", *names])
        writer.put(f"{y} = {LOWEST.get(data.type, '-100') if largest else 0}")
        with writer.loops(list(zip(taps_of, o["window"], strict=True))):
            x = element("X", (outer, *[2] * d), ["n", *at])  # 2: also a dimension of 1 has places in its padding
            lines = [f"{y} max= {x}" if largest else f"{y} += {x}"]
            if places is not None:
                p = element("P", result, ["n", *names])
                # The place is taken before the maximum: afterwards, no element is larger than it.
                lines = [f"let x = {x}", f"{p} = select(x > {y}, {_flat(at, data.shape[-d:])}, {p})", f"{y} max= x"]
            inside = writer.block(f"if {' and '.join(conditions)}:") if conditions else nullcontext()
            with inside:  # places in the padding are no elements
                for line in lines:
                    writer.put(line)
        divisor = o.get("divisor") or prod(o["window"])
        if not largest and divisor != 1:
            writer.put(f"{y} = {y} / {number(divisor)}")
    wish = "sum_pool" if not largest and divisor == 1 else node.op
    return writer.text(f"{wish}_{d}d", "")


def _flat(at: list[str], sizes: tuple[int, ...]) -> str:
    """The number of an element in its image, row by row: `(i) * 8 + j`."""
    found = at[0]
    for size, place in zip(sizes[1:], at[1:], strict=True):
        found = f"({found}) * {size} + {place}"
    return found


KERNELS = {"max_pool": pool, "avg_pool": pool}
