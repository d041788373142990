"""NVIDIA's compiler unrolls innermost loops of the generated CUDA as `counts.compiled_warps` says."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.codegen.generate import generate
from roofdsl.counts.compiled_warps import UNROLLED, FirstCache, warp_accesses_at
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine
from roofdsl.predict.kernel_launches import launches_of_kernel
from roofdsl.predict.loops_as_launched import AsLaunched
from tests.codegen.nvrtc import nvrtc
from tests.codegen.shipped import free, private, shipped
from tests.predict.machines import kernel_of

COMPILE = nvrtc()

pytestmark = pytest.mark.skipif(COMPILE is None, reason="NVRTC (pip install nvidia-cuda-nvrtc) is not here")


def ptx(name: str) -> str:
    """The PTX of a shipped kernel."""
    assert COMPILE is not None
    return COMPILE(generate(shipped()[name], "cuda", free=free(name), private=private(name)).source).ptx


def accesses_of_bodies(text: str) -> list[str]:
    """L for each load and S for each store between each label and the branch that leads back to it."""
    lines, found = text.splitlines(), []
    at = {line.rstrip(":"): k for k, line in enumerate(lines) if re.fullmatch(r"\$L\w+:", line)}
    for k, line in enumerate(lines):
        back = re.search(r"bra\S*\s+(\$L\w+);", line)
        if back and at.get(back[1], k) < k:
            inside = lines[at[back[1]] : k]
            found.append("".join("L" if "ld.global" in i else "S" if "st.global" in i else "" for i in inside))
    return found


def bodies_of(kernel: Kernel) -> list[str]:
    """`accesses_of_bodies` of a kernel's naive code."""
    assert COMPILE is not None
    return accesses_of_bodies(COMPILE(generate(kernel, "cuda", free=parallel_loops(kernel)).source).ptx)


@pytest.mark.parametrize("name", ["gemv", "matmul", "minplus"])
def test_a_round_of_an_innermost_loop(name: str) -> None:
    """Both operands of so many iterations are loaded before the loop goes back."""
    assert min(body.count("L") for body in accesses_of_bodies(ptx(name))) == 2 * UNROLLED


@pytest.mark.parametrize(("name", "loads"), [("triad", 2), ("jacobi2d", 5)])
def test_a_thread_with_a_single_iteration(name: str, loads: int) -> None:
    """The loop over threads is not unrolled."""
    assert accesses_of_bodies(ptx(name))[0].count("L") == loads


@pytest.mark.parametrize("name", ["cholesky", "lu"])
def test_a_factorization_in_place(name: str) -> None:
    """A[i, j] -= A[i, k] * A[k, j]: A[i, j] is loaded before the loop, but stored in each iteration, before those of
    the next one are loaded, as `registers.seen_at` says.
    """
    assert "LLS" * UNROLLED in accesses_of_bodies(ptx(name))


ROWS, COLUMNS = "{0}[j, i{1}]", "{0}[i{1}, j]"


@pytest.mark.parametrize(
    ("element", "statements", "loads"),
    [  # in four iterations
        (ROWS, [("x", " + 1", [("x", ""), ("a", "")])], 1 + 4),
        (COLUMNS, [("x", " + 1", [("x", ""), ("a", "")])], 1 + 4),
        (COLUMNS, [("x", " + 2", [("x", " + 1"), ("x", ""), ("a", "")])], 1 + 4 + 4),
        (COLUMNS, [("x", " + 1", [("x", ""), ("x", " + 1"), ("x", " + 2")])], 1 + 4 + 4),
        (COLUMNS, [("x", " + 3", [("x", ""), ("a", "")])], 4 + 4),
        (ROWS, [("x", " + 1", [("x", "")]), ("y", " + 1", [("y", ""), ("a", "")])], 4 + 4 + 4),
        (COLUMNS, [("x", " + 1", [("x", "")]), ("y", " + 1", [("y", ""), ("a", "")])], 1 + 1 + 4),
        (ROWS, [("x", " + 1", [("a", "")]), ("y", "", [("x", "")])], 4 + 4),
        (COLUMNS, [("x", " + 1", [("a", "")]), ("y", "", [("x", "")])], 4 + 4),
    ],
)
def test_values_of_the_iteration_before(
    element: str, statements: list[tuple[str, str, list[tuple[str, str]]]], loads: int
) -> None:
    """What the iteration before stored last is loaded once in four iterations, and counted like this."""
    shape = "m, n + 3" if element == ROWS else "n + 3, m"
    text = f"kernel k(m, n):\n    in a: f64[{shape}]\n    inout x, y: f64[{shape}]\n"
    text += "    parallel for j in range(m):\n        for i in range(n):\n"
    for array, at, loaded in statements:
        terms = " + ".join(element.format(*load) for load in loaded)
        text += f"            {element.format(array, at)} = {terms}\n"
    kernel, sizes = kernel_of(text), {"m": 2, "n": 400}
    assert bodies_of(kernel)[0].count("L") == loads
    (launch,) = launches_of_kernel(kernel, sizes, load_machine("v100")).each
    assert isinstance(launch.how, AsLaunched) and launch.how.kernel is not None
    cache = FirstCache(128, Fraction(128), Fraction(32))
    found = warp_accesses_at(launch.how.kernel, sizes, 32, cache, launch.how.threads())
    assert found.loads == 2 * 100 * loads


def test_a_chain_of_one_thread() -> None:
    """A single loop keeps the value all the time; a load in four iterations, as counted, is no more than a little."""
    kernel = kernel_of(
        "kernel k(n):\n    in a: f64[n]\n    inout x: f64[n + 1]\n    for i in range(n):\n"
        "        x[i + 1] = 0.5 * x[i] + a[i]\n"
    )
    assert "LS" * UNROLLED in bodies_of(kernel)


def test_an_element_under_a_condition() -> None:
    """It is loaded and stored in each iteration in which the condition holds."""
    kernel = kernel_of(
        "kernel k(n):\n    in A: f64[n, n]\n    inout s: f64[n]\n    for i in range(n), j in range(n):\n"
        "        if j < i + 3:\n            s[i] += A[i, j]\n"
    )
    assert "LLS" * UNROLLED in bodies_of(kernel)
