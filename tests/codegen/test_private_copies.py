"""CUDA in which each thread has its own copy of a temp: the results are those of the kernel, at ragged sizes."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path

import pytest

from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.checks.private_copies import private_loops
from roofdsl.cli.emit import document
from roofdsl.codegen import private_copies
from roofdsl.codegen.generate import generate
from roofdsl.codegen.generated import Generated
from roofdsl.codegen.launch_grids import Call, HostIf, HostLoop, Step
from roofdsl.lang.record import replace
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import models_folder
from tests.checks.test_private_copies import events, random_temps
from tests.codegen.running import Case, CudaLibrary
from tests.oracle.loading import kernel_of

ROWS = """kernel rows(m, n):
    in A: f64[m, n]
    out B: f64[m, n]
    temp T: f64[n]
    for i in range(m):
        for j in range(n):
            T[j] = 2 * A[i, j]
        for j in range(n):
            B[i, j] = T[n - 1 - j]
"""
SMALL = {
    "rows": (ROWS, {"m": 37, "n": 5}),
    "sums": (
        """kernel sums(m, n):
    in A: f64[m, n]
    out x: f64[m]
    temp s, top: f64
    for i in range(m):
        s = 0
        top = 0
        for j in range(n):
            s += A[i, j]
            top max= A[i, j]
        x[i] = s * top
""",
        {"m": 300, "n": 7},
    ),
    "once": (
        """kernel once(m, n):
    in A: f64[m, n]
    out B: f64[m, n]
    temp T: f64[1]
    for h in range(min(n, 1)):
        for i in range(m):
            T[0] = A[i, h]
            for j in range(n):
                B[i, j] = A[i, j] - T[0]
""",
        {"m": 37, "n": 5},
    ),
    "tiled": (
        """kernel tiled(m, n, b):
    tile i, h by b
    in A: f64[m, m, n]
    out x: f64[m, m]
    temp s: f64, T: f64[1]
    for i in range(m), h in range(m):
        s = 0
        T[0] = 1
        for j in range(n):
            s += A[i, h, j] * T[0]
            T[0] += A[h, i, j]
        x[i, h] = s
""",
        {"m": 13, "n": 4, "b": 5},
    ),
    "fixed": (
        """kernel fixed(m):
    in A: f32[m, 3]
    inout B: f32[m, 3]
    temp T: f32[3, 3], unused: f64
    unused = 3
    for i in range(m):
        for p in range(3), q in range(3):
            T[p, q] = A[i, p] * B[i, q]
        for p in range(3):
            B[i, p] = T[0, p] + T[p, 1]
""",
        {"m": 45},
    ),
    "large": (
        """kernel large(m):
    in A: f64[m, 80]
    out B: f64[m, 80]
    temp T: f64[80]
    for i in range(m):
        for p in range(80):
            T[p] = A[i, p]
        for p in range(80):
            B[i, p] = T[79 - p]
""",
        {"m": 9},
    ),
    "in_steps": (
        """kernel in_steps(n, t):
    inout A: f64[n + 2, n + 2]
    temp T: f64[n]
    for k in range(t):
        for i in range(k + 1, n, 3), h in range(i, i + 2):
            for j in range(i):
                T[j] = A[h, j] + k
            for j in range(i):
                A[h, j + 1] = T[j] * T[i - 1]
""",
        {"n": 23, "t": 3},
    ),
    "column_first": (
        """kernel column_first(m, n):
    in A: f64[n, m]
    out B: f64[n, m]
    temp T: f64[2, n + 1] col
    for s in range(2), i in range(1, m):
        T[s, 0] = s
        for j in range(n):
            T[s, j + 1] = T[s, j] + A[j, i]
        for j in range(n):
            B[j, i] = T[s, n - j]
""",
        {"m": 35, "n": 6},
    ),
}  # fmt: skip

ONE_THREAD = ("tiled", "attention_exponentials", "attention_softmax", "lstm_cell", "rms_norm")
"""What is no more than one launch without copies either."""


def code_of(of: Kernel) -> Generated:
    return generate(of, "cuda", free=parallel_loops(of), private=private_loops(of))


def case(name: str) -> Case:
    text, sizes = SMALL[name]
    return Case(kernel_of(text), sizes)


def calls(steps: tuple[Step, ...]) -> list[Call]:
    found: list[Call] = []
    for step in steps:
        match step:
            case Call():
                found.append(step)
            case HostLoop(body=body):
                found += calls(body)
            case HostIf(_, then, orelse):
                found += calls(then) + calls(orelse)
    return found


def launches(code: Generated, sizes: Mapping[str, int]) -> int:
    return sum(1 for _ in code.launches(sizes))


SHIPPED = {
    "attention_products": ("transformer", {"batch": 2, "new": 3, "context": 5, "kv": 2, "group": 3, "dh": 4}),
    "attention_exponentials": ("transformer", {"batch": 2, "new": 3, "context": 5, "kv": 2, "group": 3}),
    "attention_softmax": ("transformer", {"batch": 2, "new": 3, "context": 5, "kv": 2, "group": 3}),
    "lstm_cell": ("lstm", {"batch": 7, "features": 3, "hidden": 9}),
    "fft_rows": ("fft", {"rows": 5, "half": 4, "stages": 3}),
    "fft_columns": ("fft", {"images": 3, "half": 4, "stages": 3, "width": 7}),
    "rms_norm": ("transformer", {"rows": 41, "d": 7}),
}


def check(cases: Mapping[str, Case], folder: Path, *, copies: bool) -> None:
    codes = {name: code_of(c.kernel) for name, c in cases.items()}
    run = CudaLibrary(list(codes.values()), folder)
    for name, c in cases.items():
        assert any(call.copied for call in calls(codes[name].steps or ())), name
        nests, one_thread = (2 if name == "fixed" else 1), name in ONE_THREAD
        assert (launches(codes[name], c.params) == nests) == (copies or one_thread), name
        c.check(run, codes[name], told=name != "attention_exponentials")  # that one has no result


def without_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host finds no memory for buffers, and the iterations of a thread too many."""
    monkeypatch.setattr(private_copies, "LAUNCH_ITERATIONS", 0)
    monkeypatch.setattr(private_copies, "MOST_BYTES", 0)
    monkeypatch.setattr("roofdsl.codegen.targets.cuda.MOST_BYTES", 0)


@pytest.mark.parametrize("copies", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_results_are_those_of_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copies: bool) -> None:
    if not copies:
        without_copies(monkeypatch)
    check({name: case(name) for name in SMALL}, tmp_path, copies=copies)


def test_memory_for_copies_is_an_argument() -> None:
    """As large as the copies of all threads, or one element if the launches do without; `emit` says so."""
    code = code_of(case("rows").kernel)
    (work,) = [a for a in code.arguments if a.work_bytes is not None]
    assert (work.name, work.type and work.type.name) == ("T_each", "f64")
    assert work.shape({"m": 37, "n": 5}) == (5, 37)
    assert work.shape({"m": 2**14, "n": 2**13}) == (2**13, 2**14)  # 1 GiB
    assert work.shape({"m": 2**14, "n": 2**13 + 1}) == (1, 1)
    told = {a["name"]: a for a in document(code, {})["arguments"]}
    assert told["T_each"]["work_bytes"] == 2**30 and told["T_each"]["shape"] == ["n", "m"]
    assert "work_bytes" not in told["T"]


def test_a_loop_of_one_iteration_is_not_the_loop_of_the_threads() -> None:
    """Its iterations are independent without copies, but it would leave everything to one thread."""
    code = code_of(case("once").kernel)
    (launch,) = code.launches({"m": 37, "n": 5})
    assert prod(launch.grid) * prod(launch.block) >= 37


def test_few_long_iterations_are_launches_of_many_threads() -> None:
    """A thread executes two statements for each of n; without copies, there are two launches for each of m."""
    code = code_of(case("rows").kernel)
    assert launches(code, {"m": 3, "n": 3 * 256}) == 1
    assert launches(code, {"m": 3, "n": 3 * 256 + 1}) == 6


@pytest.mark.thorough
def test_shipped_kernels_without_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `test_shipped` does not run, since sizes there are small."""
    without_copies(monkeypatch)
    found = {}
    for name, (file, sizes) in SHIPPED.items():
        found[name] = Case(kernel(load_file(models_folder() / "kernels" / f"{file}.roof"), name), sizes)
    check(found, tmp_path, copies=False)


@pytest.mark.thorough
def test_random_temps(tmp_path: Path) -> None:
    sizes = {"n": 7, "m": 5}
    cases, codes = [], []
    for seed in range(120):
        of = random_temps(seed)
        if private_loops(of) and _is_defined(of, sizes):
            cases.append(Case(of, sizes, seed))
            codes.append(code_of(replace(of, name=f"k{seed}")))
    assert len(cases) > 12
    run = CudaLibrary(codes, tmp_path)
    for c, code in zip(cases, codes, strict=True):
        c.check(run, code, told=False)


def _is_defined(of: Kernel, sizes: Mapping[str, int]) -> bool:
    """Whether every temp is written before it is read."""
    temps = {a.name for a in of.arrays if a.intent == "temp"}
    written = set()
    for here, reads, writes in events(of, sizes):
        if any(e[0] in temps and e not in written for e in reads):
            return False
        if writes:
            written.add(here.element)
    return True
