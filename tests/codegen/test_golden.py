"""The text of generated code, word for word; `pytest --update-golden` writes it anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.codegen.generate import generate
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from tests.codegen.features import FEATURES, TILED
from tests.codegen.shipped import shipped
from tests.oracle.loading import kernel_of

GOLDEN = Path(__file__).parent / "golden"
SUFFIX: dict[str, str] = {"python": "py.txt", "c": "c.txt", "cuda": "cu.txt"}
SHIPPED = ["gemv", "matmul_tiled", "minplus_blocked", "dot", "jacobi2d_time", "lu", "zaxpy", "floyd_warshall"]
OWN = ["bounds", "functions", "reduced", "scalars", "names", "shapes"]


def kernel(name: str) -> Kernel:
    return shipped()[name] if name in SHIPPED else kernel_of((FEATURES | TILED)[name][0])


@pytest.mark.spread(9)
@pytest.mark.parametrize("target", ["python", "c", "cuda"])
@pytest.mark.parametrize("name", [*SHIPPED, *OWN])
def test_text(name: str, target: str, golden: Callable[[Path, str], None]) -> None:
    parts = []
    variants: list[str] = ["naive"] if target == "cuda" else ["loops", "parallel"]
    for variant in variants:
        try:
            parts.append(generate(kernel(name), target, variant, free=parallel_loops(kernel(name))).source)
        except CommandError as error:
            parts.append(f"{error}\n")
    golden(GOLDEN / f"{name}.{SUFFIX[target]}", "\n".join(parts))


@pytest.mark.parametrize("name", ["matmul_tiled", "minplus_blocked", "halo", "convolved", "half", "large"])
def test_tiled(name: str, golden: Callable[[Path, str], None]) -> None:
    chosen = shipped()[name] if name in SHIPPED else kernel(name)
    sizes = {"b": 64 if name == "large" else 32}
    code = generate(chosen, "cuda", "tiled", free=parallel_loops(chosen), sizes=sizes)
    golden(GOLDEN / f"{name}.tiled.cu.txt", code.source)
