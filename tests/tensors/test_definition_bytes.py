"""Definitions of SOL-ExecBench: the bytes that any code moves, where tensors are repeated, cut apart or read twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roofdsl.codegen.reference import reference
from roofdsl.counts.traffic_at import footprint_at
from roofdsl.counts.work_at import work_at
from roofdsl.frontends.tensors.definition import read_definition
from roofdsl.frontends.tensors.graph import Graph, Tensor
from roofdsl.frontends.tensors.program import tensor_program
from roofdsl.frontends.tensors.reference import graph_of_reference
from roofdsl.loops.load import kernel as lowered
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine
from roofdsl.sol.definition import definition_light
from roofdsl.sol.floor import Floor

Shapes = dict[str, tuple[int, ...]]


def written(folder: Path, body: str, inputs: Shapes, outputs: Shapes, kind: str = "float32") -> str:
    """A definition whose integer inputs, if any, have names that begin with `i`."""

    def specs(of: Shapes) -> dict[str, Any]:
        return {
            name: {"shape": [str(n) for n in shape], "dtype": "int64" if name.startswith("i") else kind}
            for name, shape in of.items()
        }

    lines = "".join(f"    {line}\n" for line in body.splitlines())
    text = f"import torch\nimport torch.nn.functional as F\n\ndef run({', '.join(inputs)}):\n{lines}"
    found = {"name": "problem", "axes": {}, "inputs": specs(inputs), "outputs": specs(outputs), "reference": text}
    path = folder / "definition.json"
    path.write_text(json.dumps(found))
    return str(path)


def graph(path: str) -> Graph:
    return graph_of_reference(read_definition(path, {}))


def floor(path: str) -> Floor:
    return definition_light(path, {}, load_machine("zen2_epyc_7452")).fused.floor


def kernels(found: Graph, op: str) -> list[Kernel]:
    program = tensor_program(found)
    launches = zip(found.nodes, program.launches, strict=True)
    return [lowered(program.checked, launch) for node, launch in launches if node.op == op]


HEADS: Shapes = {"q": (1, 8, 2, 16), "k": (1, 2, 32, 16), "v": (1, 2, 32, 16)}
SHARED = [
    "return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)",
    "k, v = k.repeat_interleave(4, 1), v.repeat_interleave(4, 1)\nreturn F.scaled_dot_product_attention(q, k, v)",
    "k = k[:, :, None].expand(1, 2, 4, 32, 16).reshape(1, 8, 32, 16)\n"
    "v = v[:, :, None].expand(1, 2, 4, 32, 16).reshape(1, 8, 32, 16)\n"
    "return F.scaled_dot_product_attention(q, k, v)",
]


@pytest.mark.spread(2)
@pytest.mark.parametrize("body", SHARED)
def test_keys_and_values_that_heads_share_are_loaded_once(body: str, tmp_path: Path) -> None:
    path = written(tmp_path, body, HEADS, {"y": HEADS["q"]})
    found = graph(path)
    assert found.moved_once == (4 * (256 + 2 * 1024), 4 * 256)
    assert sum(work_at(k, {}).total for k in kernels(found, "matmul")) == 2 * 2 * 8 * 2 * 32 * 16
    assert {t.amount for t in floor(path).terms if t.name == "DRAM"} == {4 * (256 + 2 * 1024 + 256)}


def test_attention_whose_heads_share_keys_reads_them_once_in_each_launch(tmp_path: Path) -> None:
    first, _ = kernels(graph(written(tmp_path, SHARED[0], HEADS, {"y": HEADS["q"]})), "matmul")
    assert footprint_at(first, {}) == 4 * (8 * 2 * 16 + 2 * 32 * 16 + 8 * 2 * 32)


@pytest.mark.parametrize(
    ("product", "left", "right"),
    [
        ("torch.matmul(a, b)", (3, 4), (5, 4, 2)),
        ("torch.matmul(a, b)", (5, 3, 4), (1, 4, 2)),
        ("torch.bmm(a.expand(5, -1, -1), b)", (1, 3, 4), (5, 4, 2)),
        ("a @ b", (6, 1, 3, 4), (5, 4, 2)),
    ],
)
def test_a_factor_of_a_batch_is_read_once(
    product: str, left: tuple[int, ...], right: tuple[int, ...], tmp_path: Path
) -> None:
    """Values against numpy, and bytes: each factor and the result, once."""
    a, b = np.random.default_rng(1).random(left), np.random.default_rng(2).random(right)
    want = a @ b
    found = graph(written(tmp_path, f"return {product}", {"a": left, "b": right}, {"y": want.shape}))
    (own,) = kernels(found, "matmul")
    dims = {array.name: tuple(d.evaluate({}) for d in array.dims) for array in own.arrays}
    values = {"X": a.reshape(dims["X"]), "W": b.reshape(dims["W"]), "Y": np.zeros(want.shape)}
    assert np.allclose(np.asarray(reference(own, {}, values).values["Y"], float), want)
    assert footprint_at(own, {}) == 4 * (a.size + b.size + want.size)
    assert found.moved_once == (4 * (a.size + b.size), 4 * want.size)


@pytest.mark.parametrize(
    ("body", "inputs", "result", "moved"),
    [
        ("h = u[:, None] * v[None, :]\nreturn h + h.T", {"u": (512,), "v": (512,)}, (512, 512), (1024, 512 * 512)),
        ("h = x @ w\na, b = h.chunk(2, -1)\nreturn a * b", {"x": (512, 4), "w": (4, 64)}, (512, 32), (2304, 512 * 32)),
        ("return x + x.T", {"x": (64, 64)}, (64, 64), (4096, 4096)),
        ("return x[1:] + x[:-1]", {"x": (4096,)}, (4095,), (4095, 4095)),
        ("return u[None, :].expand(64, 64)[:32] * x", {"u": (64,), "x": (32, 64)}, (32, 64), (64 + 2048, 2048)),
        ("return torch.relu(x)[:, :1]", {"x": (64, 64)}, (64, 1), (4096, 64)),
        ("a, b = torch.relu(x).chunk(2)\nreturn a", {"x": (64, 64)}, (32, 64), (4096, 2048)),
    ],
)
def test_a_program_as_one_launch_moves_its_inputs_and_what_it_returns(
    body: str, inputs: Shapes, result: tuple[int, ...], moved: tuple[int, int], tmp_path: Path
) -> None:
    path = written(tmp_path, body, inputs, {"y": result})
    assert graph(path).moved_once == (4 * moved[0], 4 * moved[1])
    assert {t.amount for t in floor(path).terms if t.name == "DRAM"} == {4 * sum(moved)}


def test_rows_of_a_small_table_need_not_be_loaded_each_time(tmp_path: Path) -> None:
    path = written(tmp_path, "return F.embedding(i, x)", {"i": (512,), "x": (10, 64)}, {"y": (512, 64)})
    assert {t.amount for t in floor(path).terms if t.name == "DRAM"} == {8 * 512 + 4 * 512 * 64}


@pytest.mark.parametrize(
    ("body", "shape", "noted"),
    [
        ("return torch.relu(x)[:, :1]", (8, 1), True),
        ("return torch.exp(torch.relu(x)[:4])", (4, 8), True),
        ("a, b = torch.relu(x).chunk(2)\nreturn a * b", (4, 8), False),
        ("return torch.relu(x[:4])", (4, 8), False),
        ("h = torch.relu(x)\nreturn h[:4] * h.sum()", (4, 8), False),
    ],
)
def test_results_that_nothing_uses_are_noted(body: str, shape: tuple[int, ...], noted: bool, tmp_path: Path) -> None:
    notes = floor(written(tmp_path, body, {"x": (8, 8)}, {"y": shape})).notes
    said = "not all results of `relu` are sure to be used, but all are counted, so the floor may be too high"
    assert notes == ((said,) if noted else ())


def test_a_reshaped_tensor_stores_what_numpy_stores() -> None:
    """Random shapes: a dimension of stride 0 stays one, or numpy has to copy."""
    draw = np.random.default_rng(5)
    for _ in range(500):
        shape = tuple(int(n) for n in draw.choice([1, 2, 3, 4, 6], int(draw.integers(1, 5))))
        kept = tuple(1 if draw.random() < 0.5 else n for n in shape)
        order = [int(n) for n in draw.permutation(shape)]
        at = int(draw.integers(0, len(shape)))
        new = tuple([*order[:at], int(np.prod(order[at:]))] if draw.random() < 0.5 else order)
        data = np.broadcast_to(np.arange(np.prod(kept)).reshape(kept), shape)
        tensor = Tensor(1, shape, "f32", kept)
        viewed = data.view()
        try:
            viewed.shape = new
        except AttributeError:
            continue  # numpy copies; a tensor may be one copy or several elements
        assert not tensor.is_copied(new) and tensor.viewed(new, in_order=True).size == len(np.unique(viewed))
