"""Walks through compiled kernels: what they execute against the kernels' own counts, skipping against going on."""

from __future__ import annotations

import platform
from collections.abc import Callable

import pytest

from roofdsl.incore import walk as walking
from roofdsl.incore.assembly import read
from roofdsl.incore.ceilings import executed, operations, ports_cycles
from roofdsl.incore.classes import work_of
from roofdsl.incore.compiled import in_core, launch_seconds, native_code, walked_through
from roofdsl.incore.flow import flow_of
from roofdsl.incore.liveness import live_registers
from roofdsl.incore.native import by_numba
from roofdsl.incore.result import NoInCore
from roofdsl.incore.state import STACK, State
from roofdsl.incore.walk import walk
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from tests.codegen.shipped import shipped
from tests.incore.machines import MACHINE, rates

pytestmark = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="the assembly of x86-64 is read"
)

KERNELS = """
kernel triad(n):
    in s: f64, b, c: f64[n]
    out a: f64[n]
    for i in range(n):
        a[i] = b[i] + s * c[i]

kernel product(n):
    in A, B: f64[n, n]
    inout C: f64[n, n]
    for i in range(n), j in range(n), k in range(n):
        C[i, j] += A[i, k] * B[k, j]

kernel solve(n):
    in L: f64[n, n]
    inout x: f64[n]
    for i in range(n):
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] /= L[i, i]

kernel stencil(n):
    assume n >= 3
    in A: f64[n, n]
    out B: f64[n, n]
    for i in range(1, n - 1), j in range(1, n - 1):
        B[i, j] = 0.25 * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])

kernel exponential(n):
    in x: f64[n]
    out y: f64[n]
    for i in range(n):
        y[i] = exp(x[i])

kernel clipped(n):
    in x: f64[n]
    out y: f64[n]
    for i in range(n):
        y[i] = tanh(x[i])
"""


def _kernel(name: str) -> Kernel:
    return kernel(load_file(Source("kernels.roof", KERNELS)), name)


Count = Callable[[int], float]
"""Operations at a size, worked out by hand."""

TOTALS: list[tuple[str, tuple[int, ...], Count]] = [
    ("triad", (1, 3, 7, 64, 1000, 4099), lambda n: 2 * n),
    ("product", (1, 5, 16, 23, 40), lambda n: 2 * n**3),
    ("solve", (1, 2, 9, 40, 700), lambda n: n * (n - 1)),
    ("stencil", (3, 8, 33, 100), lambda n: 4 * (n - 2) ** 2),
]


@pytest.mark.spread(2)
@pytest.mark.parametrize(("name", "sizes", "count"), TOTALS, ids=[t[0] for t in TOTALS])
def test_it_executes_what_the_kernel_counts(name: str, sizes: tuple[int, ...], count: Count) -> None:
    """Every addition and multiplication, in whichever vectors and remainders, with skipped iterations."""
    given = _kernel(name)
    native = by_numba(given)
    for n in sizes:
        found = operations(executed(walked_through(native, given, {"n": n}, rates())))
        # Sums in several accumulators are added up at their ends: of these kernels only the fused pairs are counted.
        summed = name in ("product", "solve")
        weights = {"fma": 2} if summed else {"fma": 2, "add": 1, "mul": 1}
        total = sum(times * weights.get(cls, 0) for (cls, _), times in found.items())
        # Where rows differ, some are walked and stand for the others.
        assert total == pytest.approx(count(n), rel=0.03 if name == "solve" else 0.0, abs=1e-6), n


@pytest.mark.thorough
def test_skipping_changes_little(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"triad": 10_000, "product": 32, "stencil": 80, "solve": 200}
    skipped = {}
    for name, n in sizes.items():
        given = _kernel(name)
        skipped[name] = walked_through(by_numba(given), given, {"n": n}, rates())
    monkeypatch.setattr(walking, "WINDOWS", 10**9)
    monkeypatch.setattr(walking, "LEAST_WARM", 10**9)
    monkeypatch.setattr(walking, "MOST_INSTRUCTIONS", 10**9)
    for name, n in sizes.items():
        given = _kernel(name)
        whole = walked_through(by_numba(given), given, {"n": n}, rates())
        assert whole.walked > skipped[name].walked
        assert skipped[name].cycles == pytest.approx(whole.cycles, rel=0.04), name


def test_alias_checks_and_remainders_are_those_of_the_arguments() -> None:
    """A loop that runs four at a time where two pointers are 32 bytes apart, one at a time where they are nearer."""
    text = (
        "f:\n\tmovq %rdx, %rax\n\tsubq %rsi, %rax\n\tcmpq $32, %rax\n\tjb .L3\n"
        ".L1:\n\tvmovupd (%rsi), %ymm0\n\tvmovupd %ymm0, (%rdx)\n\taddq $32, %rsi\n\taddq $32, %rdx\n\tsubq $4, %rdi\n"
        "\tjne .L1\n\tretq\n"
        ".L3:\n\tvmovsd (%rsi), %xmm0\n\tvmovsd %xmm0, (%rdx)\n\taddq $8, %rsi\n\taddq $8, %rdx\n\tdecq %rdi\n"
        "\tjne .L3\n\tretq\n"
    )
    for apart, iterations in ((32, 25), (8, 100)):
        state = State({})
        state.registers |= {"rsp": STACK + 4096, "rdi": 100, "rsi": 1 << 32, "rdx": (1 << 32) + apart}
        found = walking.walk(read(text), "f", state, rates())
        assert sum(found.totals.iterations.values()) == iterations


SIXTEEN = dict.fromkeys(("batch", "new", "context", "kv", "group", "dh"), 16)


@pytest.mark.thorough
@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("name", "sizes", "pairs"),
    [("attention_scores", SIXTEEN, 16**4 * 8 * 17), ("lu", {"n": 352}, sum(m * m for m in range(352)))],
)
def test_deep_nests_and_large_triangles_are_sampled(name: str, sizes: dict[str, int], pairs: int) -> None:
    """Six loops of 16, and a nest whose every iteration differs, on a core that looks far ahead."""
    given = shipped()[name]
    found = walked_through(by_numba(given), given, sizes, rates(window=520, waiting=92))
    counted = sum(times for (cls, _), times in operations(executed(found)).items() if cls == "fma")
    assert counted == pytest.approx(pairs, rel=0.02)


def test_registers_matter_that_are_read_before_they_are_written() -> None:
    text = (
        "f:\n\txorl %eax, %eax\n"
        ".L1:\n\tmovq %rdi, %rcx\n\taddq %rax, %rcx\n\tmovb $1, %sil\n\ttestq %rdx, %rdx\n\tje .L2\n\tmovq %r8, %r9\n"
        ".L2:\n\tincq %rax\n\tcmpq $9, %rax\n\tjne .L1\n\tleaq (%rcx,%rsi), %rax\n\tretq\n"
    )
    code = read(text)
    flow = flow_of(code, "f")
    works = {k: work_of(instruction) for k, instruction in enumerate(code.instructions)}
    live = live_registers(flow, code, works)
    assert live[flow.entry] - {"flags"} == {"rdi", "rsi", "rdx", "r8"}
    (loop,) = flow.loops
    assert live[loop.header] - {"flags"} == {"rax", "rdi", "rsi", "rdx", "r8"}


@pytest.mark.parametrize(("length", "wrong"), [(16, 0), (32, 0), (33, 1), (100, 1)])
def test_short_loops_end_as_predicted_on_a_machine_that_states_no_limit(length: int, wrong: int) -> None:
    """As `stated` in-core times take it: 32 iterations, unless the machine says otherwise."""
    text = (
        f"f:\n\tmovq $5, %rcx\n.L1:\n\tmovq ${length}, %rax\n.L2:\n\tdecq %rax\n\tjne .L2\n"
        "\tdecq %rcx\n\tjne .L1\n\tretq\n"
    )
    found = walk(read(text), "f", State({}), rates(predicted=0, varied=0))
    inner = max(found.totals.mispredicted, key=lambda loop: found.totals.entries[loop])
    assert found.totals.entries[inner] == 5
    assert found.totals.mispredicted[inner] == 5 * wrong


def test_a_byte_of_an_unknown_register_outlives_the_loops_that_leave_it() -> None:
    text = (
        "f:\n\tmovb $1, %bpl\n\tmovq $1000, %rcx\n.L1:\n\tdecq %rcx\n\tjne .L1\n"
        "\ttestb %bpl, %bpl\n\tje .L2\n\tincq %rdx\n.L2:\n\tretq\n"
    )
    state = State({})
    state.registers |= {"rbp": None, "rdx": 0}
    found = walk(read(text), "f", state, rates())
    assert found.walked < 1000  # most iterations are skipped
    assert (state.registers["rdx"], state.registers["rbp"]) == (1, None)


def test_vectors_across_lines_are_counted() -> None:
    """Rows of 34 elements: a row's 32 inner stores begin 8 bytes into a line, or 24, or ...: half of them cross one."""
    given = _kernel("stencil")
    found = walked_through(by_numba(given), given, {"n": 34}, rates())
    stores = [e for e in executed(found) if e.work.store is not None and e.work.bytes == 32]
    if stores:  # the compiler chose vectors of 256 bits
        size, times = 32, sum(e.times for e in stores)
        begins = [8 * (34 * i + 1 + 4 * v) for i in range(1, 33) for v in range(8)]
        # B is the second array, five lines into its page
        expected = sum((b + 5 * 64) % 64 + size > 64 for b in begins)
        assert times == len(begins) and sum(e.splits for e in stores) == expected


def test_units_divide_work_as_well_as_they_can() -> None:
    assert ports_cycles([((0, 1), 6.0), ((1,), 2.0)]) == 4.0
    assert ports_cycles([((0, 1), 6.0), ((1,), 5.0)]) == 5.5
    assert ports_cycles([((0,), 1.0), ((1,), 7.0), ((0, 1, 2), 3.0)]) == 7.0


def test_an_outer_loop_that_counts_on_the_stack_is_skipped() -> None:
    """A counter in memory that only the loop's own iterations write, with an inner loop of eight."""
    text = (
        "f:\n\tmovq %rdi, -8(%rsp)\n\tmovq $0, -16(%rsp)\n"
        ".L1:\n\txorl %ecx, %ecx\n"
        ".L2:\n\tvaddsd %xmm1, %xmm0, %xmm0\n\tincq %rcx\n\tcmpq $8, %rcx\n\tjne .L2\n"
        "\tincq -16(%rsp)\n\tmovq -16(%rsp), %rdx\n\tcmpq -8(%rsp), %rdx\n\tjne .L1\n\tretq\n"
    )
    state = State({})
    state.registers |= {"rsp": STACK + 4096, "rdi": 5000}
    found = walking.walk(read(text), "f", state, rates())
    assert sum(found.totals.iterations.values()) == 5000 * 9
    assert found.walked < 5000 * 30


# ---- in_core ----


@pytest.mark.thorough
def test_steps_never_get_faster_and_end_at_the_walk() -> None:
    for name, n in (("triad", 500), ("product", 20), ("solve", 50), ("stencil", 40), ("exponential", 64)):
        given = _kernel(name)
        found = in_core(given, {"n": n}, MACHINE)
        whole = walked_through(by_numba(given), given, {"n": n}, rates())
        times = [max(s.overlapping_s, s.loads_s) for s in found.steps]
        assert times == sorted(times) and found.steps[0].cause == ""
        assert times[-1] == pytest.approx(whole.cycles / 1e9)
        assert "numba" in found.model
    assert any(s.cause == "call of exp" for s in found.steps)


def test_a_launch_by_its_arguments() -> None:
    """Three arrays and a size are what is stated; the triad has three arrays, a scalar and a size."""
    native = by_numba(_kernel("triad"))
    assert launch_seconds(native, MACHINE) == pytest.approx(3e-7)
    assert launch_seconds(native, replace(MACHINE, launch_array_s=None)) is None
    assert launch_seconds(by_numba(_kernel("exponential")), MACHINE) == pytest.approx(2.5e-7)


@pytest.mark.parametrize(
    ("changes", "name", "message"),
    [
        ({"instructions": ()}, "triad", "states no instruction latencies"),
        ({"core": None}, "triad", "states no instruction latencies"),
        ({"clock_hz": None}, "triad", "states no clock"),
        ({}, "clipped", "calls `tanh`"),
    ],
)
def test_why_there_is_no_in_core_time(changes: dict[str, object], name: str, message: str) -> None:
    with pytest.raises(NoInCore, match=message):
        in_core(_kernel(name), {"n": 100}, replace(MACHINE, **changes))


def test_a_loop_that_branches_on_data_is_refused() -> None:
    text = "f:\n.L1:\n\tvmovsd (%rdi), %xmm0\n\taddq $8, %rdi\n\tvucomisd %xmm1, %xmm0\n\tja .L1\n\tretq\n"
    state = State({})
    state.registers |= {"rsp": STACK + 4096, "rdi": 1 << 32}
    with pytest.raises(NoInCore, match="innermost loop branches on computed data"):
        walking.walk(read(text), "f", state, rates())


def test_stores_that_bypass_the_caches_are_walked_in_c() -> None:
    text = "kernel k(n):\n    in b: f64[n]\n    out a: f64[n]\n    for i in range(n):\n        stream a[i] = 2 * b[i]\n"
    given = kernel(load_file(Source("k.roof", text)), None)
    native = native_code(given, "numba")
    assert native.convention == "c"
    assert "movnt" in native.text
    short, long = (walked_through(native, given, {"n": n}, rates()).cycles for n in (1024, 4096))
    assert 0 < short < long < 4.5 * short
