"""Reference codes of definitions: types, axes and changes in place as in torch, and what must not be guessed."""

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
from roofdsl.frontends.tensors.graph import Graph
from roofdsl.frontends.tensors.program import tensor_program
from roofdsl.frontends.tensors.reference import graph_of_reference
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel as lowered

SQUARE = (4, 4)


def graph(body: str, folder: Path, shape: tuple[int, ...] = SQUARE, *, head: str = "", **types: str) -> Graph:
    """x and y are 4 x 4, k is a number, c an image and w a filter; the result z has the given shape."""
    shapes = {"x": SQUARE, "y": SQUARE, "c": (2, 3, 8, 8), "w": (5, 3, 1, 1), "z": shape, "k": None}

    def spec(name: str) -> dict[str, object]:
        dims = shapes[name]
        return {"shape": None if dims is None else list(map(str, dims)), "dtype": types.get(name, "float32")}

    lines = "".join(f"    {line}\n" for line in body.splitlines())
    text = f"import torch\nimport torch.nn.functional as F\n{head}\ndef run(x, y, k, c, w):\n{lines}"
    inputs = {name: spec(name) for name in ("x", "y", "k", "c", "w")}
    found = {"name": "problem", "axes": {}, "inputs": inputs, "outputs": {"z": spec("z")}, "reference": text}
    (folder / "definition.json").write_text(json.dumps(found))
    return graph_of_reference(read_definition(str(folder / "definition.json"), {}))


@pytest.mark.parametrize(
    ("body", "types", "want"),
    [
        ("return x & 15", {"x": "int32"}, "i32"),
        ("return ~x", {"x": "int64"}, "i64"),
        ("return (x > 0) & (y > 0)", {}, "i8"),
        ("return torch.logical_or(x, y)", {"x": "float16"}, "i8"),
        ("return x.cumsum(0)", {"x": "int32"}, "i64"),
        ("return (x > 0).cumsum(0)", {}, "i64"),
        ("return x.cumsum(0, dtype=torch.float32)", {"x": "float16"}, "f32"),
        ("return torch.cat([x, y])[2:6]", {"x": "float16"}, "f32"),
        ("x += y\nreturn x", {"x": "float16"}, "f16"),
        ("x.add_(y)\nreturn x", {"x": "float16"}, "f16"),
        ("z = torch.empty_like(x)\nz.copy_(y)\nreturn z", {"x": "float16"}, "f16"),
        ("return torch.full((4, 4), 3)", {}, "i64"),
        ("return torch.full((4, 4), 3.0)", {}, "f32"),
    ],
)
def test_types_are_those_of_torch(body: str, types: dict[str, str], want: str, tmp_path: Path) -> None:
    """Each `want` is what torch 2.13 gives."""
    assert graph(body, tmp_path, **types).returned[0].type == want


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ("return x.sum(axis=1)", (4,)),
        ("return x.sum(-1, True)", (4, 1)),
        ("return torch.amax(x, axis=0, keepdims=True)", (1, 4)),
        ("return x / x.sum(axis=-1, keepdims=True)", SQUARE),
    ],
)
def test_numpys_names_of_arguments_mean_what_they_mean_in_torch(
    body: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    found = graph(body, tmp_path, shape)
    assert found.returned[0].shape == shape and len(found.nodes[0].outputs[0].shape) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("if k > 0:\n    return x\nreturn x @ x", "a condition on a number that is given"),
        ("y = x @ x if 2 * k else x\nreturn y", "a condition on a number that is given"),
        ("return x @ x if not k else x + x", "a condition on a number that is given"),
        ("for _ in range(int(k)):\n    x = x @ x\nreturn x", "a loop whose length is given"),
        ("return x[:, :k] @ y[:k]", "an index that is given"),
        ("return x.sum(k) + y", "`sum` of a number that is given"),
        ("return torch.zeros(k, 4) + y", "`zeros` of a number that is given"),
        ("return x ** k", "a power whose exponent is given"),
        ("return torch.add(x, y, alpha=k)", "`add` of a number that is given"),
        ("x[:, 0].zero_()\nreturn x + y", "zero_"),
        ("x[:2].mul_(y[:2])\nreturn x + y", "a change of a part"),
        ("z = x[:2]\nz.mul_(2)\nreturn x + y", "a change of a part"),
        ("z = x.view(16)\nz.mul_(2)\nreturn x + y", "a change in place of what `x` contains"),
        ("z = (x, y)\nx.mul_(2)\nreturn z[0] + y", "a change in place of what `z` contains"),
        ("return F.relu(x, True)", "relu of 2 operands"),
        ("return F.leaky_relu(x, 0.1)", "leaky_relu of 2 operands"),
        ("return torch.where(x > 0)", "where of 1 operands"),
        ("return x.sum(1, out=y)", "sum called in this way"),
        ("return F.scaled_dot_product_attention(x, y, y, dropout_p=0.5)", "this form of attention"),
    ],
)
def test_nothing_is_guessed(body: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError) as error:
        graph(body, tmp_path, **({"k": "int32"} if "range" in body or "k]" in body or "(k" in body else {}))
    assert said in error.value.message


def test_a_given_number_may_be_combined_with_tensors(tmp_path: Path) -> None:
    body = "s = -1.0 / k\nx = torch.rsqrt(x * s + max(k, 2))\nreturn F.scaled_dot_product_attention(x, y, y, scale=s)"
    assert [n.op for n in graph(body, tmp_path).nodes] == ["mul", "add", "rsqrt", "matmul", "mul", "softmax", "matmul"]


def test_a_change_in_place_changes_every_name(tmp_path: Path) -> None:
    found = graph("z = x\nz += y\nF.relu(x, inplace=True)\nreturn x + z", tmp_path)
    assert [n.op for n in found.nodes] == ["add", "relu", "add"]
    assert len({t.id for t in found.nodes[-1].tensors}) == 1


def test_bounds_that_are_tensors_are_read(tmp_path: Path) -> None:
    assert graph("return torch.clamp(x, min=y)", tmp_path).moved_once[0] == 128
    assert graph("return x.clamp(y, 2)", tmp_path).moved_once[0] == 128


@pytest.mark.parametrize(
    ("body", "shape", "elements"),
    [
        ("return F.conv2d(c, w, stride=2)", (2, 5, 4, 4), 2 * 3 * 4 * 4 + 15),
        ("return F.conv2d(c, w, stride=(1, 3))", (2, 5, 8, 3), 2 * 3 * 8 * 3 + 15),
        ("return F.conv2d(c, w)", (2, 5, 8, 8), 2 * 3 * 64 + 15),
        ("return torch.tril(x)", SQUARE, 10),
        ("return x.triu(1)", SQUARE, 6),
        ("return torch.tril(x, -5)", SQUARE, 0),
    ],
)
def test_the_fused_floor_loads_only_what_is_read(
    body: str, shape: tuple[int, ...], elements: int, tmp_path: Path
) -> None:
    """The kernel's own distinct elements are the same, counted by another part of the program."""
    found = graph(body, tmp_path, shape)
    assert found.moved_once[0] == 4 * elements
    program = tensor_program(found)
    stored = 4 * found.returned[0].size
    assert footprint_at(lowered(program.checked, program.launches[0]), {}) == 4 * elements + stored


@pytest.mark.parametrize("name", ["factorial", "comb", "nothing_of_this_name"])
def test_functions_of_math_that_are_not_read(name: str, tmp_path: Path) -> None:
    """`factorial` of a large number would take for ever, and a name that does not exist ended in a traceback."""
    with pytest.raises(CommandError, match=name):
        graph(f"return x * {name}(1000000000)", tmp_path, head=f"from math import {name}\n")
    assert graph("return x * sqrt(4)", tmp_path, head="from math import sqrt\n").nodes[0].inputs[1] == 2.0


def test_a_causal_attention_is_noted(tmp_path: Path) -> None:
    causal = graph("return F.scaled_dot_product_attention(x, y, y, is_causal=True)", tmp_path)
    assert causal.partly_used == ("attention scores",)
    assert graph("return F.scaled_dot_product_attention(x, y, y)", tmp_path).partly_used == ()


@pytest.mark.parametrize("body", ["return x / 2", "return x * 0.5", "return torch.sqrt(x)"])
def test_whole_numbers_are_computed_in_floating_point(body: str, tmp_path: Path) -> None:
    program = tensor_program(graph(body, tmp_path, x="int32"))
    work = work_at(lowered(program.checked, program.launches[0]), {})
    assert {type_ for type_, _ in work.operations} == {"f32"} and work.total == 16


@pytest.mark.parametrize(
    ("body", "want", "work"),
    [
        ("return x ** -2", lambda x: x**-2.0, 2),
        ("return x ** -1", lambda x: 1 / x, 1),
        ("return x.abs() ** -0.5", lambda x: abs(x) ** -0.5, 1),
        ("return F.hardtanh(x)", lambda x: np.clip(x, -1, 1), 2),
    ],
)
def test_negative_powers_and_bounds_that_are_left_out(body: str, want: Any, work: int, tmp_path: Path) -> None:
    """`x ** -2` was `exp(-2 * log(x))`: three operations, and no number for a negative x. work: of an element."""
    program = tensor_program(graph(body, tmp_path))
    data = np.array([-2.0, -0.5, 0.25, 3.0] * 4).reshape(16)
    values = data
    for name in program.launches:
        own = lowered(program.checked, name)
        values = np.asarray(reference(own, {}, {"X": values, "Y": np.zeros(16)}).values["Y"], float)
    assert np.allclose(values, want(data))
    assert work_at(own, {}).total == 16 * work


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("return torch.logical_and(x, y)", np.logical_and),
        ("return torch.logical_or(x, y)", np.logical_or),
        ("return (x != 0) & (y != 0)", np.logical_and),
        ("return (x != 0) | (y != 0)", np.logical_or),
    ],
)
def test_logical_operators_give_zero_or_one(body: str, want: Any, tmp_path: Path) -> None:
    """They were the lesser and the greater of the operands: -2 and 3 gave -2."""
    program = tensor_program(graph(body, tmp_path), fused=True)
    (name,) = program.launches
    own = lowered(program.checked, name)
    x, y = (np.array(values * 4, dtype=float) for values in ([-2.0, 0.0, 0.5, 3.0], [3.0, -1.0, 0.0, 0.25]))
    x[4:8], y[8:12] = 0.0, 0.0
    found = reference(own, {}, {"X1": x, "X2": y, "Y": np.zeros(16)}).values["Y"]
    assert np.array_equal(np.asarray(found, float), want(x, y))
