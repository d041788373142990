"""Each operator's kernel computes what PyTorch computes, moves the bytes of its tensors, and counts W as written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from roofdsl.codegen.reference import reference
from roofdsl.counts.traffic_at import footprint_at
from roofdsl.frontends.tensors.fusion import groups
from roofdsl.frontends.tensors.graph import Graph
from roofdsl.frontends.tensors.program import tensor_program
from roofdsl.loops.load import kernel as lowered

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install roofdsl[torch]")
F = torch.nn.functional
aten = torch.ops.aten

from roofdsl.frontends.tensors.torch_graph import torch_graph  # noqa: E402


class Wrapped(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def _rand(*shape: int) -> Any:
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape))) * 2 - 0.7


def _positive(*shape: int) -> Any:
    return _rand(*shape).abs() + 0.25


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "add": (lambda a, b: a + b, (_rand(3, 5), _rand(3, 5))),
    "add broadcast": (lambda a, b: a + b, (_rand(2, 3, 5), _rand(3, 1))),
    "add row": (lambda a, b: a * b, (_rand(4, 3, 5), _rand(5))),
    "add scalar tensor": (lambda a, b: a - b, (_rand(4, 3), _rand(1))),
    "add alpha": (lambda a, b: torch.add(a, b, alpha=3), (_rand(3, 5), _rand(3, 5))),
    "rsub": (lambda a: 1 - a, (_rand(4, 4),)),
    "div": (lambda a, b: a / b, (_rand(3, 5), _positive(3, 5))),
    "relu": (torch.relu, (_rand(3, 7),)),
    "leaky": (lambda a: F.leaky_relu(a, 0.2), (_rand(3, 7),)),
    "elu": (lambda a: F.elu(a, 0.7), (_rand(3, 7),)),
    "selu": (F.selu, (_rand(3, 7),)),
    "gelu tanh": (lambda a: F.gelu(a, approximate="tanh"), (_rand(3, 7),)),
    "silu": (F.silu, (_rand(3, 7),)),
    "mish": (F.mish, (_rand(3, 7),)),
    "softplus": (lambda a: F.softplus(a, 2.0, 1.0), (_rand(3, 7),)),
    "hardswish": (lambda a: F.hardswish(a * 5), (_rand(3, 7),)),
    "hardsigmoid": (lambda a: F.hardsigmoid(a * 5), (_rand(3, 7),)),
    "hardtanh": (lambda a: F.hardtanh(a, -0.5, 0.25), (_rand(3, 7),)),
    "clamp low": (lambda a: torch.clamp(a, min=0.1), (_rand(3, 7),)),
    "clamp high": (lambda a: torch.clamp(a, max=0.1), (_rand(3, 7),)),
    "clamp by a tensor": (lambda a, b: torch.clamp(a, min=b), (_rand(3, 7), _rand(7) * 0.5)),
    "clamp below a tensor": (lambda a, b: torch.clamp(a, max=b), (_rand(3, 7), _rand(3, 7) * 0.5)),
    "clamp between tensors": (torch.clamp, (_rand(3, 7), _rand(7) - 0.5, _positive(7))),
    "whole numbers divided": (lambda a: a / 4, (torch.arange(12).reshape(3, 4),)),
    "root of whole numbers": (lambda a: torch.sqrt(a) * 0.5, (torch.arange(1, 5).reshape(2, 2) ** 2,)),
    "softsign": (F.softsign, (_rand(3, 7),)),
    "sigmoid": (torch.sigmoid, (_rand(3, 7),)),
    "tanh": (torch.tanh, (_rand(3, 7),)),
    "exp": (torch.exp, (_rand(3, 7),)),
    "expm1": (torch.expm1, (_rand(3, 7),)),
    "log": (torch.log, (_positive(3, 7),)),
    "log1p": (torch.log1p, (_positive(3, 7),)),
    "log2": (torch.log2, (_positive(3, 7),)),
    "sqrt": (torch.sqrt, (_positive(3, 7),)),
    "rsqrt": (torch.rsqrt, (_positive(3, 7),)),
    "abs": (torch.abs, (_rand(3, 7),)),
    "neg": (torch.neg, (_rand(3, 7),)),
    "sign": (torch.sign, (_rand(3, 7),)),
    "pow 3": (lambda a: a**3, (_rand(3, 7),)),
    "pow half": (lambda a: a**0.5, (_positive(3, 7),)),
    "pow -2": (lambda a: a**-2, (_positive(3, 7),)),
    "pow 1.7": (lambda a: a**1.7, (_positive(3, 7),)),
    "maximum": (torch.maximum, (_rand(3, 7), _rand(3, 7).flip(0).contiguous())),
    "where": (lambda a, b: torch.where(a > 0.2, a, b), (_rand(3, 7), _rand(3, 7) * 2)),
    "compare": (lambda a: (a >= 0.1).double() + (a != 0).double(), (_rand(3, 7),)),
    "logic": (lambda a: ((a > 0) & (a < 0.5)).double(), (_rand(3, 7),)),
    "sum": (lambda a: a.sum(), (_rand(3, 7),)),
    "sum of a dimension": (lambda a: a.sum(1), (_rand(3, 7, 2),)),
    "sum of two": (lambda a: a.sum((0, 2)), (_rand(3, 7, 2),)),
    "mean": (lambda a: a.mean(-1, keepdim=True), (_rand(3, 7, 2),)),
    "prod": (lambda a: a.prod(1), (_rand(3, 7, 2),)),
    "amax": (lambda a: a.amax(1), (_rand(3, 7, 2),)),
    "amin": (lambda a: a.amin((1, 2)), (_rand(3, 7, 2),)),
    "max and place": (lambda a: torch.max(a, 1), (_rand(3, 7, 2),)),
    "max alone": (lambda a: torch.max(a, 1)[0], (_rand(3, 7, 2),)),
    "argmin": (lambda a: torch.argmin(a, 1), (_rand(3, 7, 2),)),
    "var": (lambda a: a.var(1), (_rand(3, 7, 2),)),
    "std": (lambda a: a.std((0, 2), correction=0), (_rand(3, 7, 2),)),
    "cumsum": (lambda a: torch.cumsum(a, 1), (_rand(3, 7, 2),)),
    "cumprod": (lambda a: torch.cumprod(a, -1), (_rand(3, 7),)),
    "softmax": (lambda a: torch.softmax(a, 1), (_rand(3, 7, 2),)),
    "sum of expanded": (lambda a: a.expand(4, 3, 5).sum(2), (_rand(3, 5),)),
    "sum of copies": (lambda a: a.expand(4, 3, 5).sum(0), (_rand(3, 5),)),
    "softmax of expanded": (lambda a: torch.softmax(a.expand(4, 3, 5), -1), (_rand(3, 5),)),
    "softmax of the last": (lambda a: torch.softmax(a, -1), (_rand(3, 7),)),
    "log softmax": (lambda a: torch.log_softmax(a, -1), (_rand(3, 7),)),
    "layer norm": (lambda a, w, b: F.layer_norm(a, (4, 5), w, b), (_rand(3, 4, 5), _rand(4, 5), _rand(4, 5))),
    "layer norm plain": (lambda a: F.layer_norm(a, (5,)), (_rand(3, 4, 5),)),
    "group norm": (lambda a, w, b: F.group_norm(a, 2, w, b), (_rand(3, 6, 5), _rand(6), _rand(6))),
    "instance norm": (F.instance_norm, (_rand(3, 4, 5, 2),)),
    "batch norm": (F.batch_norm, (_rand(3, 4, 5), _rand(4), _positive(4))),
    "mm": (torch.mm, (_rand(3, 4), _rand(4, 5))),
    "bmm of one matrix": (lambda a, b: torch.bmm(a.expand(5, -1, -1), b), (_rand(3, 4), _rand(5, 4, 2))),
    "matmul broadcast": (torch.matmul, (_rand(3, 4), _rand(5, 4, 2))),
    "matmul of four dimensions": (torch.matmul, (_rand(3, 4), _rand(5, 2, 4, 2))),
    "part of expanded": (lambda a, b: a.expand(6, 4)[1:3] * b, (_rand(4), _rand(2, 4))),
    "place of expanded": (lambda a, b: a.expand(6, 4)[1] * b, (_rand(4), _rand(4))),
    "bmm": (torch.bmm, (_rand(2, 3, 4), _rand(2, 4, 5))),
    "addmm": (torch.addmm, (_rand(5), _rand(3, 4), _rand(4, 5))),
    "addmm column": (torch.addmm, (_rand(3, 1), _rand(3, 4), _rand(4, 5))),
    "mv": (torch.mv, (_rand(3, 4), _rand(4))),
    "conv1d": (lambda a, w, b: F.conv1d(a, w, b, 2, 1, 2), (_rand(2, 4, 11), _rand(6, 4, 3), _rand(6))),
    "conv2d": (lambda a, w: F.conv2d(a, w, None, 1, (1, 0)), (_rand(2, 4, 5, 6), _rand(3, 4, 3, 2))),
    "conv2d groups": (lambda a, w: F.conv2d(a, w, None, 2, 1, 1, 2), (_rand(2, 4, 5, 6), _rand(6, 2, 3, 3))),
    "depthwise": (lambda a, w: F.conv2d(a, w, None, 1, 1, 1, 4), (_rand(2, 4, 5, 6), _rand(4, 1, 3, 3))),
    "pointwise": (F.conv2d, (_rand(2, 4, 5, 6), _rand(3, 4, 1, 1))),
    "conv3d": (lambda a, w: F.conv3d(a, w, None, 1, 1), (_rand(1, 2, 4, 3, 5), _rand(3, 2, 2, 3, 2))),
    "transposed": (
        lambda a, w, b: F.conv_transpose2d(a, w, b, 2, 1, 1), (_rand(2, 4, 3, 5), _rand(4, 3, 3, 3), _rand(3)),
    ),
    "transposed groups": (
        lambda a, w: F.conv_transpose1d(a, w, None, 3, 2, 1, 2, 2), (_rand(2, 4, 5), _rand(4, 3, 3)),
    ),
    "max pool": (lambda a: F.max_pool2d(a, 3, 2, 1), (_rand(2, 3, 7, 8),)),
    "max pool dilated": (lambda a: F.max_pool1d(a, 3, 1, 0, 2), (_rand(2, 3, 9),)),
    "max pool places": (lambda a: F.max_pool2d(a, (2, 3), return_indices=True), (_rand(2, 3, 6, 9),)),
    "avg pool": (lambda a: F.avg_pool3d(a, 2), (_rand(2, 3, 4, 6, 4),)),
    "avg pool padded": (lambda a: F.avg_pool1d(a, 3, 2, 1), (_rand(2, 3, 9),)),
    "cat": (lambda a, b: torch.cat((a, b), 1), (_rand(2, 3, 4), _rand(2, 5, 4))),
    "cat of expanded": (lambda a, b: torch.cat((a.expand(2, 1, 4), b), 1), (_rand(1, 1, 4), _rand(2, 5, 4))),
    "copy into another": (lambda a, b: torch.empty_like(a).copy_(b), (_rand(2, 3), _rand(3))),
    "pad": (lambda a: F.pad(a, (1, 2, 0, 3), value=0.5), (_rand(2, 3, 4),)),
    "full": (lambda a: torch.full_like(a, 2.5), (_rand(2, 3),)),
    "copy": (lambda a: a.clone(), (_rand(2, 3),)),
}  # fmt: skip


def only_node(function: Callable[..., Any], inputs: tuple[Any, ...]) -> Graph:
    return torch_graph(Wrapped(function), inputs, "case")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("fused", [False, True])
def test_computes_what_torch_computes(name: str, fused: bool) -> None:
    """The launches, executed one after the other on the data that the graph connects them by."""
    function, inputs = CASES[name]
    graph = only_node(function, inputs)
    program = tensor_program(graph, fused=fused)
    assert program.unknown == ()
    want = function(*(i.clone() for i in inputs))
    wanted = list(want) if isinstance(want, tuple | list) else [want]
    values = execute(graph, program, inputs, fused)
    results = [values[i] for i in sorted(graph.results) if i in values]
    shown = [w.double().numpy().reshape(-1) for w in wanted]
    assert len(results) >= len(shown)
    for own in shown:
        assert any(r.size == own.size and np.allclose(r.reshape(-1), own, 1e-9, 1e-9) for r in results), program.text


def execute(graph: Graph, program: Any, inputs: tuple[Any, ...], fused: bool) -> dict[int, np.ndarray[Any, Any]]:
    """Values by the ids of tensors. Views in these cases keep the order of elements, so that data are reshaped."""
    values = {k + 1: i.numpy().astype(float) for k, i in enumerate(inputs)}
    for nodes, name in zip(groups(graph, fused), program.launches, strict=True):
        kernel = lowered(program.checked, name)
        inside = {t.id for n in nodes for t in n.outputs}
        read = list(dict.fromkeys(t for n in nodes for t in n.tensors if t.id not in inside))
        arrays = {}
        wanted = [a for a in kernel.arrays if a.intent in ("in", "inout")]
        assert len(wanted) == len(read), program.text
        for array, tensor in zip(wanted, sorted_as(wanted, nodes, read), strict=True):
            dims = tuple(d.evaluate({}) for d in array.dims) or (1,)
            arrays[array.name] = values[tensor.id].reshape(dims)
        for array in kernel.arrays:
            dims = tuple(d.evaluate({}) for d in array.dims) or (1,)
            arrays.setdefault(array.name, np.full(dims, 3))
        outcome = reference(kernel, {}, arrays)
        outs = [a.name for a in kernel.arrays if a.intent == "out"]
        kept = [t for n in nodes for t in n.outputs if t.id in graph.results or used_outside(graph, nodes, t.id)]
        places = nodes[0].options.get("values", 0) is None
        for array_name, tensor in zip(outs, kept if not places else kept[-1:], strict=False):
            values[tensor.id] = np.asarray(outcome.values[array_name], float)
    return values


def sorted_as(wanted: list[Any], nodes: Any, read: list[Any]) -> list[Any]:
    """The tensors in the order of the kernel's arrays: X, W and B; a product's bias comes first in its inputs."""
    if nodes[0].op == "matmul" and nodes[0].options.get("bias"):
        return [*read[1:], read[0]]
    return read


def used_outside(graph: Graph, nodes: Any, own: int) -> bool:
    return any(t.id == own for n in graph.nodes if n not in nodes for t in n.tensors)


@pytest.mark.parametrize("name", CASES)
def test_bytes_are_those_of_the_tensors(name: str) -> None:
    """Q of each launch, with every datum moved once, is what its tensors hold, where every element is read."""
    function, inputs = CASES[name]
    graph = only_node(function, inputs)
    program = tensor_program(graph)
    sizes = {"f64": 8, "f32": 4, "i64": 8, "i8": 1}
    for node, launch in zip(graph.nodes, program.launches, strict=True):
        kernel = lowered(program.checked, launch)
        read = sum(t.size * sizes[t.type] for t in dict.fromkeys(node.tensors))
        written = sum(
            int(np.prod(t.shape)) * sizes[t.type]
            for t in node.outputs
            if t.id in graph.results or used_outside(graph, (node,), t.id)
        )
        if node.op in ("max_pool", "convolution") or "norm" in node.op:
            continue  # windows may leave elements out; statistics that nobody reads are not stored
        assert footprint_at(kernel, {}) == read + written, launch


def test_windows_that_overlap_are_not_read_as_so_many_elements() -> None:
    program = tensor_program(only_node(lambda a: a.unfold(1, 3, 1).sum(-1), (_rand(2, 9),)))
    assert program.unknown == ("aten.unfold.default",)
    kernel = lowered(program.checked, program.launches[0])
    assert footprint_at(kernel, {}) == 8 * (2 * 9 + 2 * 7 * 3)


def test_an_embedding_with_padding_reads_its_indices() -> None:
    """`padding_idx` is an argument after the indices."""
    graph = torch_graph(torch.nn.Embedding(100, 8, padding_idx=0), (torch.zeros(3, 5, dtype=torch.int64),))
    program = tensor_program(graph)
    assert footprint_at(lowered(program.checked, program.launches[0]), {}) == 2 * 15 * 8 * 4 + 15 * 8


@pytest.mark.parametrize(
    ("function", "inputs", "numbers"),
    [
        (lambda a, x: a @ x, (_rand(30, 40), _rand(40)), 30 * 40 + 40 + 30),
        (torch.dot, (_rand(40), _rand(40)), 81),
    ],
)
def test_products_by_vectors_are_one_launch(
    function: Callable[..., Any], inputs: tuple[Any, ...], numbers: int
) -> None:
    program = tensor_program(only_node(function, inputs))
    (launch,) = program.launches
    assert footprint_at(lowered(program.checked, launch), {}) == 8 * numbers


def test_a_complex_number_is_no_missing_operand() -> None:
    program = tensor_program(only_node(lambda a: torch.view_as_complex(a) * 2j, (_rand(3, 2),)))
    assert program.unknown == ("aten.mul.Tensor",)
