"""KernelBench's modules: read as programs, with as many FLOP in products and convolutions as torch counts."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from roofdsl.counts.work_at import work_at
from roofdsl.frontends.tensors.program import tensor_program
from roofdsl.loops.load import kernel as lowered
from tests.frontends import external

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install roofdsl[torch]")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from roofdsl.frontends.tensors.user_file import graph_of_file  # noqa: E402

FOLDER = external.suite("kernelbench")
FILES = sorted(FOLDER.glob("level*/*.py")) if FOLDER is not None else []
UNKNOWN = {"66_Matmul_Dropout_Softmax": ("aten.native_dropout.default",)}
"""What is not read, and is counted as the bytes of its arguments: random numbers have no W of their own."""


def test_enough_are_read() -> None:
    external.required("kernelbench")
    assert len(FILES) >= 100
    assert len(FILES) - len(UNKNOWN) >= 95


@pytest.mark.spread(12)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_work_is_torchs_own(path: Path) -> None:
    graph = graph_of_file(str(path))
    program = tensor_program(graph)
    assert program.unknown == UNKNOWN.get(path.stem, ())
    ours = 0
    for node, launch in zip(graph.nodes, program.launches, strict=True):
        if node.op in ("matmul", "convolution"):
            ours += work_at(lowered(program.checked, launch), {}).total
    assert ours == _counted(path)
    fused = tensor_program(graph, fused=True)
    assert len(fused.launches) <= len(program.launches)
    assert fused.unknown == program.unknown


def _counted(path: Path) -> int:
    """torch's own count of the user's module, which is executed on shapes alone."""
    spec = importlib.util.spec_from_file_location("module", path)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        model, inputs = module.Model(*module.get_init_inputs()), module.get_inputs()
        with FlopCounterMode(display=False) as counter:
            model(*inputs)
    return int(counter.get_total_flops())
