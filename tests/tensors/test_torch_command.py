"""`convert --torch`, `api.from_torch`, fusion, unknown operators and errors."""

from __future__ import annotations

import builtins
import re
from pathlib import Path
from typing import Any

import pytest

from roofdsl.api import from_torch, predict
from roofdsl.cli.main import run
from roofdsl.counts.traffic_at import footprint_at
from roofdsl.counts.work_at import work_at
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.load import kernel as lowered
from roofdsl.loops.load import load_file

MODEL = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x):
        y = torch.relu(self.linear(x).view(-1, 8))
        return y * 0.5 + 1

def get_inputs():
    return [torch.rand(32, 100000)]

def get_init_inputs():
    return [100000, 16]
"""


def test_without_torch(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A clear error, and nothing of the file is run."""
    original = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name.split(".", maxsplit=1)[0] in ("torch", "jax"):
            raise ImportError(name)
        return original(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    path = tmp_path / "model.py"
    path.write_text("raise SystemExit('run')")
    assert run(["convert", str(path), "--torch"]) == 2
    assert "pip install torch" in capsys.readouterr().err
    with pytest.raises(CommandError, match="PyTorch is not installed"):
        from_torch(None)


def test_options_that_do_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    for more, said in (
        (["--verify"], "`--verify` compares a function with its kernel, and a tensor program has no function"),
        (["--einsum", "i,i->"], "give a FILE or --einsum TEXT, not both"),
        (["--type", "f32"], "--type is for --einsum"),
    ):
        assert run(["convert", "model.py", "--torch", *more]) == 2
        assert said in capsys.readouterr().err


@pytest.fixture
def model(tmp_path: Path) -> Path:
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install roofdsl[torch]")
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


def test_convert(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", str(model), "--torch"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith(f"running {model} to build its model\n")
    assert "4 operators in 4 launches, 2 views, which cost nothing" in err
    assert "program model():\n    run matmul()\n    run relu()\n    run mul()\n    run add()\n" in out
    assert "in X: f32[32, 100000], W: f32[100000, 16], B: f32[16]" in out
    assert run(["convert", str(model), "--torch", "--fused", "-o", str(model.with_suffix(".roof"))]) == 0
    text = model.with_suffix(".roof").read_text()
    assert "# Fused: relu, mul, add.\nkernel relu_mul_add():" in text
    capsys.readouterr()
    assert run(["predict", str(model.with_suffix(".roof")), "--machine", "v100"]) == 0
    assert "relu_mul_add" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "has no `Model`"),
        ("import nowhere", "does not run: ModuleNotFoundError"),
        (MODEL.replace("torch.rand(32, 100000)", "torch.rand(32, 5)"), "torch.export cannot read the module"),
        (MODEL.replace("return [100000, 16]", "return [100000]"), "fails: TypeError"),
        (MODEL.replace("y * 0.5 + 1", "x"), "computes nothing"),
    ],
)
def test_errors(text: str, said: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model.write_text(text)
    assert run(["convert", str(model), "--torch"]) == 2
    assert said in capsys.readouterr().err


def test_from_torch_and_predict() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install roofdsl[torch]")
    module = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
    program = from_torch(module, torch.rand(16, 64))
    assert program.launches == ("matmul", "relu", "matmul_2") and program.unknown == ()
    assert predict(program, "v100").work == 2 * 16 * (64 * 32 + 32 * 8) + 16 * 32
    again = load_file(program.checked.source)
    assert again.programs.keys() == program.checked.programs.keys()


def test_unknown_operators_are_counted_by_their_bytes() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install roofdsl[torch]")

    class Sorted(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return torch.sort(torch.relu(x), dim=1)[0]

    program = from_torch(Sorted(), torch.rand(16, 64))
    assert program.unknown == ("aten.sort.default",)
    assert "NOT READ" in program.text and "NOT READ" in program.summary
    kernel = lowered(program.checked, "unknown")
    assert work_at(kernel, {}).total == 0
    assert footprint_at(kernel, {}) == 16 * 64 * (4 + 4 + 8)  # values read and written, and places


def test_fusion_keeps_the_order() -> None:
    """A sum between two elementwise operators keeps them apart; one result that is read twice is stored."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install roofdsl[torch]")

    class Between(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            a = torch.exp(x)
            return a / a.sum(), torch.tanh(a)

    program = from_torch(Between(), torch.rand(16, 64), fused=True)
    assert (len(program.launches) == 3 and program.launches[1] == "sum") or program.launches[2] == "div"
    assert program.operators == 4
    names = dict(zip(program.launches, range(3), strict=True))
    assert names["sum"] < names["div"]


def test_the_example_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install roofdsl[torch]")
    page = (Path(__file__).parents[2] / "docs/tensors.md").read_text(encoding="utf-8")
    found = re.search(
        r"\$ cat mlp\.py\n(.*?)\n\$ roofdsl convert mlp\.py --torch --fused\n(.*?)\n\$ roofdsl", page, re.S
    )
    assert found is not None
    monkeypatch.chdir(tmp_path)
    Path("mlp.py").write_text(found[1])
    assert run(["convert", "mlp.py", "--torch", "--fused"]) == 0
    assert capsys.readouterr().out.rstrip() == found[2]


def test_parts_of_complex_tensors_are_real_and_differ() -> None:
    """Views of torch: the real and the imaginary parts, and halves, of the same tensor."""
    from types import SimpleNamespace

    from roofdsl.frontends.tensors.graph import Tensor
    from roofdsl.frontends.tensors.torch_graph import _Reader

    reader, x = _Reader(None), Tensor(1, (8,), "c64", (8,))
    real, imag = (reader._view(name, [x], SimpleNamespace(shape=(8,))) for name in ("real", "imag"))
    assert (real.type, imag.type, real.id, imag.id) == ("f32", "f32", 1, 1) and real != imag
    first, second = reader._view("split", [x, 4], [SimpleNamespace(shape=(4,))] * 2)
    assert first != second and first == reader._view("split", [x, 4], [SimpleNamespace(shape=(4,))] * 2)[0]
    assert reader._view("slice", [x, 0, 0, 8], SimpleNamespace(shape=(8,))).part == ""
