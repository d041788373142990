"""Operators that compute every element on its own: each as an expression of its operands' elements.

Comparisons give 0 or 1. The language has no erf: `tanh` stands for it, since both are one special function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from roofdsl.frontends.tensors.graph import Node, Tensor
from roofdsl.frontends.tensors.types import is_whole
from roofdsl.frontends.tensors.writing import KernelText, Writer, number

Make = Callable[..., str]
"""From the texts of the operands (each a name, an element or a number) and the node's options to an expression."""


def _compare(op: str) -> Make:
    return lambda a, b: f"select({a} {op} {b}, 1, 0)"


def _gelu(x: str, approximate: str = "none") -> str:
    if approximate == "tanh":
        return f"0.5 * {x} * (1 + tanh(0.7978845608 * ({x} + 0.044715 * {x}**3)))"
    return f"0.5 * {x} * (1 + tanh(0.7071067812 * {x}))"


def _power(x: str, exponent: str) -> str:
    try:
        value = float(exponent.strip("()"))  # a negative number is written `(-0.5)`, so that `x - (-0.5)` can be read
    except ValueError:
        return f"exp({exponent} * log({x}))"
    special = {0.5: f"sqrt({x})", -0.5: f"rsqrt({x})", -1.0: f"rcp({x})", 0.0: "1", 1.0: x}
    if value in special:
        return special[value]
    if value.is_integer() and abs(value) <= 64:
        return f"{x}**{int(value)}" if value > 0 else f"rcp({x}**{int(-value)})"
    return f"exp({exponent} * log({x}))"


def _clamp(x: str, low: str | None = None, high: str | None = None) -> str:
    lower = x if low is None else f"max({x}, {low})"
    return lower if high is None else f"min({lower}, {high})"


def _hardtanh(x: str, low: str = "-1", high: str = "1") -> str:
    return _clamp(x, low, high)


def _scaled(op: str) -> Make:
    return lambda a, b, alpha=1: f"{a} {op} {b}" if alpha == 1 else f"{a} {op} {number(alpha)} * {b}"


def _softplus(x: str, beta: float = 1, threshold: float = 20) -> str:
    scaled = x if beta == 1 else f"({number(beta)} * {x})"
    soft = f"log(1 + exp({scaled}))" if beta == 1 else f"log(1 + exp({scaled})) / {number(beta)}"
    return f"select({scaled} > {number(threshold)}, {x}, {soft})"


def _elu(x: str, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> str:
    inner = x if input_scale == 1 else f"{number(input_scale)} * {x}"
    low = f"exp({inner}) - 1" if alpha * scale == 1 else f"{number(alpha * scale)} * (exp({inner}) - 1)"
    high = x if scale == 1 else f"{number(scale)} * {x}"
    return f"select({x} > 0, {high}, {low})"


OPERATORS: Mapping[str, Make] = {
    "add": _scaled("+"), "sub": _scaled("-"), "rsub": lambda a, b, alpha=1: _scaled("-")(b, a, alpha),
    "mul": lambda a, b: f"{a} * {b}", "div": lambda a, b: f"{a} / {b}",
    "neg": lambda a: f"-{a}", "abs": lambda a: f"abs({a})", "copy": lambda a: a, "cast": lambda a: a,
    "reciprocal": lambda a: f"rcp({a})", "square": lambda a: f"{a} * {a}", "pow": _power,
    "exp": lambda a: f"exp({a})", "exp2": lambda a: f"exp(0.6931471806 * {a})", "expm1": lambda a: f"exp({a}) - 1",
    "log": lambda a: f"log({a})", "log1p": lambda a: f"log(1 + {a})", "log2": lambda a: f"1.442695041 * log({a})",
    "log10": lambda a: f"0.4342944819 * log({a})",
    "sqrt": lambda a: f"sqrt({a})", "rsqrt": lambda a: f"rsqrt({a})", "cbrt": lambda a: f"exp(log({a}) / 3)",
    "sin": lambda a: f"sin({a})", "cos": lambda a: f"cos({a})", "tan": lambda a: f"sin({a}) / cos({a})",
    "tanh": lambda a: f"tanh({a})", "sigmoid": lambda a: f"sigmoid({a})",
    "sinh": lambda a: f"0.5 * (exp({a}) - exp(-{a}))", "cosh": lambda a: f"0.5 * (exp({a}) + exp(-{a}))",
    "erf": lambda a: f"tanh({a})", "erfc": lambda a: f"1 - tanh({a})",
    "relu": lambda a: f"max({a}, 0)", "relu6": lambda a: f"min(max({a}, 0), 6)",
    "leaky_relu": lambda a, slope=0.01: f"select({a} > 0, {a}, {number(slope)} * {a})",
    "prelu": lambda a, w: f"select({a} > 0, {a}, {w} * {a})",
    "silu": lambda a: f"{a} * sigmoid({a})", "mish": lambda a: f"{a} * tanh(log(1 + exp({a})))",
    "gelu": _gelu, "elu": _elu, "softplus": _softplus, "clamp": _clamp, "hardtanh": _hardtanh,
    "hardsigmoid": lambda a: f"min(max({a} + 3, 0), 6) / 6",
    "hardswish": lambda a: f"{a} * min(max({a} + 3, 0), 6) / 6",
    "softsign": lambda a: f"{a} / (1 + abs({a}))",
    "maximum": lambda a, b: f"max({a}, {b})", "minimum": lambda a, b: f"min({a}, {b})",
    "where": lambda c, a, b: f"select({c} != 0, {a}, {b})",
    "eq": _compare("=="), "ne": _compare("!="), "lt": _compare("<"), "le": _compare("<="), "gt": _compare(">"),
    "ge": _compare(">="), "isnan": lambda a: f"select({a} != {a}, 1, 0)",
    "isinf": lambda a: f"select(abs({a}) > 3.4e38, 1, 0)",
    "sign": lambda a: f"select({a} > 0, 1, select({a} < 0, -1, 0))",
    "logical_not": lambda a: f"select({a} == 0, 1, 0)", "bitwise_and": lambda a, b: f"min({a}, {b})",
    "bitwise_or": lambda a, b: f"max({a}, {b})",  # of truth values, 0 and 1
    "logical_and": lambda a, b: f"select({a} != 0, select({b} != 0, 1, 0), 0)",
    "logical_or": lambda a, b: f"select({a} != 0, 1, select({b} != 0, 1, 0))",
    "addcmul": lambda a, b, c, value=1: f"{a} + {number(value)} * {b} * {c}",
    "lerp": lambda a, b, w: f"{a} + {w} * ({b} - {a})",
}  # fmt: skip


def is_elementwise(node: Node) -> bool:
    """Whether an operator computes every element of its one result on its own."""
    return node.op in OPERATORS and len(node.outputs) == 1


def kernel_of_group(nodes: Sequence[Node], kept: frozenset[int]) -> KernelText:
    """One kernel for operators on elements of the same shape. kept: ids of results that other operators read."""
    inside = {n.outputs[0].id for n in nodes}
    read = list(dict.fromkeys(t for n in nodes for t in n.tensors if t.id not in inside))
    written = [n.outputs[0] for n in nodes if n.outputs[0].id in kept]
    shape = nodes[-1].outputs[0].shape
    ranges, masks = _collapsed(shape, [_aligned(t.stored, len(shape)) for t in read])
    writer = Writer()
    names = [f"i{k}" if len(ranges) > 4 else "ijkl"[k] for k in range(len(ranges))]
    uses = [t for n in nodes for t in n.tensors]
    texts: dict[object, str] = {}
    lets: list[str] = []
    for k, (tensor, mask) in enumerate(zip(read, masks, strict=True)):
        name = "X" if len(read) == 1 else f"X{k + 1}"
        dims = [n for n, own in zip(ranges, mask, strict=True) if own]
        subscripts = [v for v, own in zip(names, mask, strict=True) if own]
        writer.array("in", name, tensor.type, dims or [1])
        shown = f"{name}[{', '.join(subscripts) or '0'}]"
        # Each datum is loaded once, into a `let` if expressions contain it several times.
        if uses.count(tensor) > 1 or _repeats(nodes, tensor):
            lets.append(f"let x{k + 1} = {shown}")
            shown = f"x{k + 1}"
        texts[tensor] = shown
    targets = _targets(writer, written, ranges, names)
    with writer.loops(list(zip(names, ranges, strict=True))):
        for line in lets:
            writer.put(line)
        _statements(writer, nodes, texts, targets)
    wish = "_".join(dict.fromkeys(n.op for n in nodes)) if len(nodes) < 4 else f"{nodes[0].op}_to_{nodes[-1].op}"
    comment = "" if len(nodes) == 1 else f"Fused: {', '.join(n.op for n in nodes)}."
    return writer.text(wish, comment)


def _targets(writer: Writer, written: Sequence[Tensor], ranges: Sequence[int], names: Sequence[str]) -> dict[int, str]:
    """The elements to which results are stored, by their ids, after declaring their arrays."""
    found: dict[int, str] = {}
    for k, tensor in enumerate(written):
        name = writer.array("out", "Y" if len(written) == 1 else f"Y{k + 1}", tensor.type, ranges)
        found[tensor.id] = f"{name}[{', '.join(names)}]" if ranges else name
    return found


def _statements(writer: Writer, nodes: Sequence[Node], texts: dict[object, str], targets: Mapping[int, str]) -> None:
    """For each operator a `let`, a store if its result is kept, or both if a later one of these operators reads it as
    well.
    """
    results: dict[int, str] = {}

    def text(operand: Any) -> str:
        if isinstance(operand, Tensor):
            return results[operand.id] if operand.id in results else texts[operand]
        shown = number(operand)
        return f"({shown})" if shown.startswith("-") else shown

    for k, node in enumerate(nodes):
        operands = [text(o) for o in node.inputs]
        if _is_converted(node):
            operands = [_converted(writer, o, node, shown) for o, shown in zip(node.inputs, operands, strict=True)]
        made = OPERATORS[node.op](*operands, **node.options)
        own = node.outputs[0].id
        later = any(t.id == own for n in nodes[k + 1 :] for t in n.tensors)
        if own not in targets or later:
            name = f"t{k + 1}"
            writer.put(f"let {name} = {made}")
            made = results[own] = name
        if own in targets:
            writer.put(f"{targets[own]} = {made}")


def _is_converted(node: Node) -> bool:
    """Whether whole numbers are converted before a floating-point operation on them. The language would divide whole
    numbers without a fraction, and compute everything else in f64.
    """
    result = node.outputs[0].type
    only_whole = bool(node.tensors) and all(is_whole(t.type) for t in node.tensors)
    return only_whole and not is_whole(result) and node.op not in ("cast", "copy", "where")


def _converted(writer: Writer, operand: Any, node: Node, shown: str) -> str:
    if not isinstance(operand, Tensor):
        return shown
    name = f"f{len(writer.declared['temp']) + 1}"
    writer.array("temp", name, node.outputs[0].type, ())
    writer.put(f"{name} = {shown}")
    return name


def _repeats(nodes: Sequence[Node], tensor: Tensor) -> bool:
    """Whether an operator's expression contains this operand more than once."""
    for node in nodes:
        if tensor in node.tensors:
            probe = ["@" if o == tensor else "0" for o in node.inputs]
            if OPERATORS[node.op](*probe, **node.options).count("@") > 1:
                return True
    return False


def _aligned(stored: Sequence[int], rank: int) -> tuple[int, ...]:
    return (*[1] * (rank - len(stored)), *stored)


def _collapsed(shape: Sequence[int], operands: Sequence[tuple[int, ...]]) -> tuple[list[int], list[list[bool]]]:
    """Neighboring dimensions that the same operands have, joined into one; and which of them each operand has."""
    ranges: list[int] = []
    columns: list[tuple[bool, ...]] = []
    for k, n in enumerate(shape):
        if n == 1:
            continue
        column = tuple(o[k] != 1 for o in operands)
        if columns and columns[-1] == column:
            ranges[-1] *= n
        else:
            ranges.append(n)
            columns.append(column)
    return ranges, [[column[j] for column in columns] for j in range(len(operands))]
