"""Loops that a compiler can turn into vector instructions are not kept from it by the generated code."""

from __future__ import annotations

import platform
import re
from types import FunctionType

import pytest

from roofdsl.codegen.generate import generate
from roofdsl.incore.assembly import Immediate, read
from roofdsl.incore.flow import flow_of
from roofdsl.incore.native import by_numba
from roofdsl.incore.walk import BLOCKS
from tests.codegen.shipped import shipped
from tests.oracle.loading import kernel_of

STENCIL = """
kernel stencil(n):
    in a: f64[n]
    out b: f64[n]
    for i in range(3, n - 3):
        b[i] = a[i - 3] + a[i - 2] + a[i - 1] + a[i] + a[i + 1] + a[i + 2] + a[i + 3]
"""
BLOCKED = """
kernel blocked(n, b):
    assume n % b == 0
    in A, B: f64[n, n]
    inout C: f64[n, n]
    tile k, i, j by b, b, b
    for k in range(n), i in range(n), j in range(n):
        C[i, j] += A[i, k] * B[k, j]
"""


def assembly(source: str, function: str) -> str:
    """What numba makes of generated code for arrays whose rows lie one after another."""
    import numba

    space: dict[str, FunctionType] = {}
    exec(source, space)
    compiled = space[function]
    arrays = {"stencil": 2, "blocked": 3}[function]
    array = numba.types.Array(numba.float64, 1 if function == "stencil" else 2, "C")
    rest = ["int64"] * (compiled.py_func.__code__.co_argcount - arrays)  # type: ignore[attr-defined]
    signature = (*[array] * arrays, *[getattr(numba, t) for t in rest])
    compiled.compile(signature)  # type: ignore[attr-defined]
    return str(compiled.inspect_asm(signature))  # type: ignore[attr-defined]


@pytest.mark.spread(1)
@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="reads the assembly of x86-64")
@pytest.mark.parametrize(("text", "name"), [(STENCIL, "stencil"), (BLOCKED, "blocked")])
def test_subscripts_leave_vector_loops(text: str, name: str) -> None:
    generated = generate(kernel_of(text), "python")
    assert "[index(" in generated.source
    vectors = packed(assembly(generated.source, generated.function))
    tested = packed(assembly(generated.source.replace("index(", "("), generated.function))
    assert vectors, "no packed addition"
    assert vectors > tested, "numba tests subscripts for negative values no longer: `index` is not needed"


@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="reads the assembly of x86-64")
@pytest.mark.spread(1)
@pytest.mark.parametrize(
    "name", ["conv2d", "flash_attention", "gpp_divides", "matmul_blocked", "matmul_tiled", "minplus_blocked"]
)
def test_nothing_is_called_that_keeps_count_of_references(name: str) -> None:
    assert not called(name) & {"NRT_incref", "NRT_decref", "numba_do_raise"}


@pytest.mark.spread(1, 20)
@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="reads the assembly of x86-64")
@pytest.mark.parametrize("name", list(shipped()))
def test_shipped_kernels_call_functions_of_mathematics_at_most(name: str) -> None:
    assert called(name) <= {f"{f}{s}" for f in ("exp", "log", "tanh", "sin", "cos", "hypot") for s in ("", "f")} | set(
        BLOCKS
    )


def called(name: str) -> set[str]:
    """The outside functions whose addresses the code of a shipped kernel mentions."""
    native = by_numba(shipped()[name])
    code = read(native.text)
    found = set()
    for block in flow_of(code, native.function).blocks.values():
        for instruction in code.instructions[block.start : block.stop]:
            found |= {o.symbol for o in instruction.operands if isinstance(o, Immediate) and o.symbol}
            found |= {instruction.target} if instruction.name.startswith("call") else set()
    return found - set(code.labels) - {""}


def packed(text: str) -> float:
    """Packed additions and fused products, for each load of single elements or gather."""
    wide = len(re.findall(r"\bv?(?:addpd|fmadd\d+pd|mulpd)\b", text))
    narrow = len(re.findall(r"\bv?(?:addsd|fmadd\d+sd|mulsd|gatherqpd)\b", text))
    return wide / (1 + narrow)
