"""Definitions of SOL-ExecBench: axes, shapes, and reference code that is read and never executed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from roofdsl.cli.main import cli
from roofdsl.cli.main import run as main
from roofdsl.codegen.reference import reference
from roofdsl.counts.traffic_at import footprint_at
from roofdsl.counts.work_at import work_at
from roofdsl.frontends.tensors.definition import evaluated, read_definition
from roofdsl.frontends.tensors.graph import Graph
from roofdsl.frontends.tensors.program import tensor_program
from roofdsl.frontends.tensors.reference import graph_of_reference
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel as lowered
from roofdsl.loops.model import Kernel

ATTENTION = '''
import math
import torch
import torch.nn.functional as F

HEADS = 8

def rotate(x):
    """Halves exchanged."""
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)

@torch.no_grad()
def run(x: torch.Tensor, qkv: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, weight, eps: float):
    batch, seq, hidden = x.shape
    dim = hidden // HEADS
    variance = x.to(torch.float32).pow(2).mean(-1, keepdim=True)
    normed = ((x * torch.rsqrt(variance + eps)) * weight).to(x.dtype)
    q, k, v = F.linear(normed, qkv).view(batch, seq, 3, HEADS, dim).permute(2, 0, 3, 1, 4).unbind(0)
    q, k = [q * cos + rotate(q) * sin, k * cos + rotate(k) * sin]
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(dim)
    mask = torch.triu(torch.ones(seq, seq, dtype=torch.bool, device=x.device), diagonal=1)
    scores = scores.masked_fill(mask[None, None], float("-inf"))
    out = torch.softmax(scores.float(), dim=-1).to(v.dtype) @ v
    return out.transpose(1, 2).reshape(batch, seq, hidden)
'''


def definition(reference: str, axes: dict[str, Any], inputs: dict[str, Any], outputs: dict[str, Any]) -> dict[str, Any]:
    def specs(of: dict[str, Any]) -> dict[str, Any]:
        return {name: {"shape": shape, "dtype": dtype} for name, (shape, dtype) in of.items()}

    return {"name": "problem", "axes": axes, "inputs": specs(inputs), "outputs": specs(outputs), "reference": reference}


def const(value: int) -> dict[str, Any]:
    return {"type": "const", "value": value}


VAR = {"type": "var"}
GEMM = definition(
    "import torch\n\ndef run(A, B):\n    C = torch.matmul(A, B.T)\n    return C",
    {"M": VAR, "N": const(512), "K": const(256)},
    {"A": (["M", "K"], "float16"), "B": (["N", "K"], "float16")}, {"C": (["M", "N"], "float16")},
)  # fmt: skip
GQA = definition(
    ATTENTION,
    {"batch": VAR, "seq": VAR, "hidden": const(256), "dim": {"type": "expr", "expression": "hidden // 8"},
     "three": {"type": "expr", "expression": "hidden * 3"}},
    {"x": (["batch", "seq", "hidden"], "bfloat16"), "qkv": (["three", "hidden"], "bfloat16"),
     "cos": (["seq", "dim"], "bfloat16"), "sin": (["seq", "dim"], "bfloat16"), "weight": (["hidden"], "bfloat16"),
     "eps": (None, "float32")},
    {"out": (["batch", "seq", "hidden"], "bfloat16")},
)  # fmt: skip


def graph(found: dict[str, Any], folder: Path, **settings: int) -> Graph:
    path = folder / "definition.json"
    path.write_text(json.dumps(found))
    return graph_of_reference(read_definition(str(path), settings))


def products(found: Graph) -> int:
    """FLOP of all products and convolutions."""
    program = tensor_program(found)
    launches = zip(found.nodes, program.launches, strict=True)
    return sum(
        work_at(lowered(program.checked, launch), {}).total for node, launch in launches
        if node.op in ("matmul", "convolution")
    )  # fmt: skip


def test_a_product(tmp_path: Path) -> None:
    found = graph(GEMM, tmp_path, M=64)
    assert [node.op for node in found.nodes] == ["matmul"] and products(found) == 2 * 64 * 512 * 256
    assert found.moved_once == (2 * (64 * 256 + 512 * 256), 2 * 64 * 512)


def of_vector(body: str, folder: Path, *, more: str = "", result: str = "n") -> Kernel:
    """The kernel of a reference of one operator on a vector of 1024 numbers, and one more vector if it is named."""
    names = ["x", *([more] if more else [])]
    found = definition(
        f"import torch\n\ndef run({', '.join(names)}):\n    return {body}",
        {"n": const(1024), "half": const(512)},
        {name: (["n"], "float32") for name in names}, {"y": ([result], "float32")},
    )  # fmt: skip
    program = tensor_program(graph(found, folder))
    (launch,) = program.launches
    return lowered(program.checked, launch)


@pytest.mark.parametrize(
    ("body", "loaded"),
    [
        ("x[:512] * x[512:]", 1024),
        ("x.chunk(2)[0] * x.chunk(2)[1]", 1024),
        ("x.view(2, 512).unbind(0)[0] * x.view(2, 512)[1]", 1024),
        ("x.split([512, 512])[1] * x[512:]", 512),  # the same elements
    ],
)
def test_other_parts_of_a_tensor_are_other_elements(body: str, loaded: int, tmp_path: Path) -> None:
    found = of_vector(body, tmp_path, result="half")
    assert footprint_at(found, {}) == 4 * (loaded + 512) and work_at(found, {}).total == 512


def test_the_factor_of_a_reversed_difference(tmp_path: Path) -> None:
    """`torch.rsub(x, y, alpha=2)` is y - 2 x, as torch's documentation says."""
    found = of_vector("torch.rsub(x, y, alpha=2)", tmp_path, more="y")
    x, y = np.arange(1024.0), np.ones(1024)
    values = reference(found, {}, {"X1": x, "X2": y, "Y": np.zeros(1024)}).values["Y"]
    assert np.array_equal(np.asarray(values, float), y - 2 * x)
    assert work_at(found, {}).total == 2 * 1024
    assert work_at(of_vector("torch.rsub(x, y)", tmp_path, more="y"), {}).total == 1024


def test_attention_with_rotary_positions(tmp_path: Path) -> None:
    """Helpers, `math`, unpacking, views, masks, casts; FLOP and bytes counted by hand."""
    batch, seq, hidden, heads = 2, 32, 256, 8
    found = graph(GQA, tmp_path, batch=batch, seq=seq)
    dim = hidden // heads
    assert products(found) == 2 * batch * seq * hidden * 3 * hidden + 2 * 2 * batch * heads * seq * seq * dim
    loaded = 2 * (batch * seq * hidden + 3 * hidden * hidden + 2 * seq * dim + hidden)
    assert found.moved_once == (loaded, 2 * batch * seq * hidden)
    assert not tensor_program(found).unknown


FUNCTIONS = [
    ("F.conv2d(x, w, None, stride=2, padding=1)", (2, 5, 4, 4), "convolution"),
    ("F.group_norm(x, 1, eps=1e-5)", (2, 3, 8, 8), "group_norm"),
    ("F.layer_norm(x, (8,))", (2, 3, 8, 8), "layer_norm"),
    ("x.amax(dim=(2, 3))", (2, 3), "extreme"),
    ("x.max(dim=-1, keepdim=True).values", (2, 3, 8, 1), "extreme"),
    ("torch.stack([x, x], 1).flatten(0, 1)", (4, 3, 8, 8), "cat"),
    ("x.float().sum(-1)", (2, 3, 8), "sum"),
    ("torch.where(x > 0, x, 0.1 * x)", (2, 3, 8, 8), "where"),
    ("F.silu(x[:, 1:, ::2, None])", (2, 2, 4, 1, 8), "silu"),
    ("F.scaled_dot_product_attention(x, x, x)", (2, 3, 8, 8), "matmul"),
    ("x.repeat_interleave(2, dim=1) * 2", (2, 6, 8, 8), "mul"),
]


@pytest.mark.parametrize(("code", "shape", "last"), FUNCTIONS)
def test_functions_have_the_shapes_that_torch_gives(
    code: str, shape: tuple[int, ...], last: str, tmp_path: Path
) -> None:
    text = f"import torch\nimport torch.nn.functional as F\ndef run(x, w):\n    return {code}\n"
    inputs = {"x": (["2", "3", "8", "8"], "float32"), "w": (["5", "3", "3", "3"], "float32")}
    found = graph(definition(text, {}, inputs, {"y": ([str(n) for n in shape], "float32")}), tmp_path)
    assert found.nodes[-1].op == last
    assert tensor_program(found).launches


NOT_READ = [
    ("import os\nos.system('touch ran')\ndef run(x):\n    return x + 1", None),
    ("def run(x):\n    open('ran', 'w')\n    return x", "line 2: `open`"),
    ("def run(x):\n    return __import__('os').system('touch ran')", "line 2: `__import__`"),
    ("def run(x):\n    return x.__class__()", "line 2: `__class__`"),
    ("def run(x):\n    while True:\n        pass", "line 2: `while`"),
    ("def run(x):\n    if x.sum() > 0:\n        return x\n    return x", "line 2: a condition on data"),
    ("def run(x):\n    x[0] = 1\n    return x", "line 2: an assignment to a part of a tensor"),
    ("def run(x):\n    for i in range(10**9):\n        x = x + i\n    return x", "line 2: a loop over this"),
    ("def run(x):\n    return run(x)", "line 2: a call of `run`"),
    ("def run(x):\n    return x + 9**9**9", "line 2: so large a power"),
    ("def run(x):\n    return torch.sort(x)", "line 2: `torch`"),
    ("import torch\ndef run(x):\n    y, i = torch.sort(x)\n    return y", "line 3: `sort`"),
    ("import torch\ndef run(x):\n    return x @ x", "line 3: a product of [4, 5] and [4, 5]"),
    ("def run(x):\n    return [x for _ in range(3)]", "line 2: `ListComp`"),
    ("def run(x, y):\n    return x", "line 0: a call of `run` without y"),
    ("def go(x):\n    return x", "no function `run`"),
    ("def run(x:\n", "is no Python"),
    ("def run(x):\n    return x.sum()", "returns [], and an output has [4, 5]"),
]


@pytest.mark.parametrize(("code", "said"), NOT_READ)
def test_code_is_read_and_never_executed(
    code: str, said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the module does on its own is not even looked at; what `run` does besides torch is refused with its line."""
    monkeypatch.chdir(tmp_path)
    found = definition(code, {}, {"x": (["4", "5"], "float32")}, {"y": (["4", "5"], "float32")})
    if said is None:
        assert [n.op for n in graph(found, tmp_path).nodes] == ["add"]
    else:
        with pytest.raises(CommandError) as error:
            graph(found, tmp_path)
        assert said in error.value.message
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"axes": {"M": VAR, "N": const(512), "K": const(-1)}}, "no positive whole number"),
        ({"axes": {"M": VAR, "N": {"type": "expr", "expression": "K +"}, "K": const(2)}}, "no expression of axes"),
        ({"axes": {"M": VAR, "N": {"type": "expr", "expression": "__import__('os')"}, "K": const(2)}}, "no expression"),
        ({"axes": {"M": VAR, "N": {"type": "expr", "expression": "2 ** 2 ** 99"}, "K": const(2)}}, "no expression"),
        ({"axes": {"N": const(512), "K": const(2)}}, "no `var` axis `M`"),
        ({"axes": {"M": VAR, "N": {"type": "odd"}, "K": const(2)}}, "of no known type"),
        ({"inputs": {"A": {"shape": ["Q"], "dtype": "float16"}}}, "names no axis `Q`"),
        ({"inputs": {"A": {"shape": ["M"], "dtype": "float4_e2m1"}}}, "no known dtype"),
        ({"reference": None}, "has no `reference`"),
        ({"outputs": 3}, "is no definition"),
    ],
)
def test_wrong_definitions_are_refused(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError) as error:
        graph(GEMM | change, tmp_path, M=64)
    assert said in error.value.message


def test_a_missing_number_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(CommandError) as error:
        graph(GEMM, tmp_path)
    assert error.value.help == "give it with --set M=..."


def test_expressions_of_axes_are_pythons_own() -> None:
    """Random ones, beside Python's eval of the same text, which is made here."""
    draw = random.Random(3)

    def text(depth: int) -> str:
        if not depth:
            return draw.choice(["a", "b", str(draw.randint(1, 9))])
        op = draw.choice(["+", "-", "*", "//", "%", "/"])
        return f"({text(depth - 1)} {op} {text(depth - 1)})"

    axes = {"a": 12, "b": 5}
    for _ in range(200):
        made = text(draw.randint(1, 4))
        try:
            expected = eval(made, {}, dict(axes))
        except ZeroDivisionError:
            continue
        assert evaluated(made, axes) == expected


def test_the_command_takes_definitions(tmp_path: Path) -> None:
    """Fused, the inputs are loaded once; as launched, each operator reads and writes its own tensors."""
    path = tmp_path / "definition.json"
    path.write_text(json.dumps(GQA))
    run = CliRunner().invoke(cli, ["sol", str(path), "--machine", "h100_sxm", "--set", "batch=1,seq=32", "--json"])
    assert run.exit_code == 0, run.output
    found = json.loads(run.output)
    memory = next(t for t in found["terms"] if t["name"] == "HBM")
    assert memory["amount"] == 2 * (32 * 256 + 3 * 256 * 256 + 2 * 32 * 32 + 256) + 2 * 32 * 256
    assert found["program"]["launched_floor_s"] > found["floor_s"]
    assert main(["sol", str(path), "--machine", "h100_sxm"]) == 2
