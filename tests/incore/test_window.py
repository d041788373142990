"""The clock against schedules worked out by hand for the made-up core: 4 a cycle, fma 4 cycles, add 3, load 5."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roofdsl.incore.assembly import read
from roofdsl.incore.rates import Rates
from roofdsl.incore.state import STACK, State
from roofdsl.incore.walk import walk
from roofdsl.lang.record import replace
from roofdsl.machine.instruction import Instruction
from tests.incore.machines import CORE, INSTRUCTIONS, rates


def cycles(body: str, trips: int = 1000, with_rates: Rates | None = None) -> float:
    """Cycles of one iteration of a loop; %rdi holds the address of an array."""
    lines = "".join(f"\t{line.strip()}\n" for line in body.strip().splitlines())
    code = read(f"f:\n\tmovl ${trips}, %ecx\n\t.p2align 4\n.L1:\n{lines}\tdecq %rcx\n\tjne .L1\n\tretq\n")
    state = State({})
    state.registers |= {"rsp": STACK + 4096, "rdi": 1 << 32, "rax": 0}
    return walk(code, "f", state, with_rates or rates()).cycles / trips


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("vaddsd %xmm1, %xmm0, %xmm0", 3),  # a chain of additions
        ("vfmadd231sd %xmm1, %xmm2, %xmm0", 4),
        ("vfmadd231sd %xmm1, %xmm2, %xmm0\nvfmadd231sd %xmm1, %xmm2, %xmm3", 4),  # two chains side by side
        ("vaddsd %xmm1, %xmm0, %xmm0\nvmulsd %xmm0, %xmm1, %xmm0", 7),
        ("\n".join(f"vmulpd %ymm1, %ymm2, %ymm{3 + k}" for k in range(6)), 3),  # two units
        ("\n".join(f"vaddpd %ymm1, %ymm2, %ymm{3 + k}" for k in range(6)), 6),  # one unit
        # Six multiplications on two units beside three additions on one of them: nine on two.
        ("\n".join(f"v{'add' if k % 3 == 2 else 'mul'}pd %ymm1, %ymm2, %ymm{3 + k}" for k in range(9)), 4.5),
        ("\n".join(f"vmovupd {32 * k}(%rdi), %ymm{k}" for k in range(8)), 4),  # two loads a cycle
        ("\n".join(f"vmovupd {64 * k + 48}(%rdi), %ymm{k}" for k in range(8)), 8),  # each across two lines
        ("\n".join(f"vmovupd %ymm{k}, {32 * k}(%rdi)" for k in range(4)), 4),  # one store a cycle
        ("vaddsd (%rdi), %xmm1, %xmm0\nvmovsd %xmm0, (%rdi)", 8),  # an addition and a store handed to the next load
        ("vxorpd %xmm0, %xmm0, %xmm0\nvaddsd %xmm1, %xmm0, %xmm0", 1),  # zeroing breaks the chain
        ("vdivsd %xmm1, %xmm2, %xmm0", 4),
        ("vdivsd %xmm1, %xmm0, %xmm0", 14),
        ("\n".join("leaq 8(%rdi), %rdx" for _ in range(7)), 2),  # seven and the loop's two, which are one: 8 by 4
    ],
)
def test_an_iteration(body: str, expected: float) -> None:
    assert cycles(body) == pytest.approx(expected, rel=0.03)


def changed(cls: str, **values: object) -> Rates:
    """The rates of the made-up machine with other values for one class."""
    others = [replace(i, **values) if i.cls == cls else i for i in INSTRUCTIONS]
    return Rates("made_up", CORE, others)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("vaddsd %xmm1, %xmm0, %xmm0", 3),
        ("vaddsd %xmm1, %xmm0, %xmm0\nvmulsd %xmm0, %xmm1, %xmm0", 8),  # the product waits a cycle longer
        ("vmulsd %xmm0, %xmm1, %xmm0\nvaddsd %xmm1, %xmm0, %xmm0\nvaddsd %xmm1, %xmm0, %xmm0", 11),
    ],
)
def test_other_classes_get_a_result_later(body: str, expected: float) -> None:
    assert cycles(body, with_rates=changed("add", bypass=Fraction(1))) == pytest.approx(expected, rel=0.03)


def test_a_load_waits_for_a_masked_store() -> None:
    """A masked store hands nothing over: the load waits for 14 cycles after it, until the bytes are in the cache."""
    masked = Instruction("masked_store", "", 256, throughput=Fraction(1), forward=Fraction(14))
    known = Rates("made_up", CORE, [*INSTRUCTIONS, masked])
    body = "vmovupd %ymm1, (%rdi) {{mask}}\nvmovsd (%rdi), %xmm0"
    assert cycles(body.replace("{{mask}}", ""), with_rates=known) == pytest.approx(1, rel=0.1)
    assert cycles(body.replace("{{mask}}", "{%k1}"), with_rates=known) == pytest.approx(14, rel=0.05)
    assert cycles(body.replace("{{mask}}", "{%k1}")) == pytest.approx(1, rel=0.1)  # unless the machine says so


@pytest.mark.parametrize(("size", "least", "most"), [(8, 16, 24), (64, 4, 8)])
def test_a_load_waits_for_a_block_that_is_shorter_than_a_line(size: int, least: float, most: float) -> None:
    memset = Instruction("memset", "", 512, Fraction(4), Fraction(1), forward=Fraction(16))
    known = Rates("made_up", replace(CORE, window=512), [*INSTRUCTIONS, memset])
    body = f"pushq %rdi\npushq %rcx\nmovl ${size}, %edx\ncallq memset\npopq %rcx\npopq %rdi\nvmovsd (%rdi), %xmm0"
    assert least <= cycles(body, with_rates=known) <= most


def test_few_units_for_general_registers_can_shift() -> None:
    """Two shifts a cycle among four additions; each occupies one of the four units of additions, too."""
    shift = Instruction("shift", "i64", 64, Fraction(1), Fraction(1, 2))
    known = Rates("made_up", replace(CORE, dispatch=8), [*INSTRUCTIONS, shift])
    shifts = [f"shlq $1, %{r}" for r in ("rax", "rdx", "r8", "r9")]
    adds = [f"leaq 8(%rdi), %{r}" for r in ("r10", "r11", "rbx", "rsi")]
    assert cycles("\n".join(shifts), with_rates=known) == pytest.approx(2, rel=0.05)
    assert cycles("\n".join([*shifts, *adds]), with_rates=known) == pytest.approx(2.25, rel=0.05)


GENERAL = (
    Instruction("load", "i64", 64, Fraction(4), Fraction(1, 4)),
    Instruction("store", "i64", 64, throughput=Fraction(1), mixed=Fraction(1, 4), forward=Fraction(1, 10)),
)
"""Four accesses a cycle in all, of which two may be loads of vectors and one a store, as on the made-up core."""


@pytest.mark.parametrize(
    ("body", "plain", "with_general"),
    [
        ("\n".join(f"movq {8 * k}(%rdi), %r{8 + k % 4}" for k in range(8)), 4, 2),  # four a cycle
        (
            "\n".join(f"movq {8 * k}(%rdi), %r8\nvmovsd {64 + 8 * k}(%rdi), %xmm{k}" for k in range(8)),
            8,
            4,
        ),  # two of each
        ("\n".join(f"vmovsd {64 + 8 * k}(%rdi), %xmm{k}" for k in range(8)), 4, 4),  # two of vectors, as before
        ("movq %r9, 256(%rdi)\n" + "movq (%rdi), %r8\n" * 7, 3.5, 2),  # a store is one of the four
        ("addq 8(%rsp), %rax\nmovq %rax, 8(%rsp)", 6, 1.1),  # handed on at once
        ("addq (%rdi), %rax\nmovq %rax, (%rdi)", 6, 6),  # not on the stack
        ("vaddsd (%rdi), %xmm1, %xmm0\nvmovsd %xmm0, (%rdi)", 8, 8),  # a vector waits
    ],
)
def test_general_registers_are_loaded_faster_if_the_machine_says_so(
    body: str, plain: float, with_general: float
) -> None:
    stated = Rates("here", replace(CORE, dispatch=16), (*INSTRUCTIONS, *GENERAL))
    assert cycles(body, with_rates=rates(dispatch=16)) == pytest.approx(plain, rel=0.03)
    assert cycles(body, with_rates=stated) == pytest.approx(with_general, rel=0.03)


def test_the_window_limits_how_far_chains_overlap() -> None:
    """Chains of ten additions (30 cycles), each from a constant, and 30 instructions that fill the window."""
    body = "vmovapd %xmm1, %xmm0\n" + "vaddsd %xmm1, %xmm0, %xmm0\n" * 10 + "leaq 8(%rdi), %rdx\n" * 30
    # 42 instructions take 10.5 cycles to dispatch. A window of 420 holds ten rounds: dispatch decides. One of 21 does
    # not reach from one chain to the next: the second begins when the first is done, 30 cycles after that began, and
    # when the instructions between, 30 / 4 cycles, are dispatched.
    assert cycles(body, 300, rates(window=420, waiting=400)) == pytest.approx(10.5, rel=0.05)
    assert 30 <= cycles(body, 300, rates(window=21, waiting=400)) <= 38


def test_a_short_loop_within_another_begins_before_the_last_one_ends() -> None:
    """A strict sum of 8 numbers is a chain of 24 cycles; sums of different rows do not wait for each other."""
    text = """f:
\tmovl $400, %edx
.L1:
\tvxorpd %xmm0, %xmm0, %xmm0
\tmovl $8, %ecx
.L2:
\tvaddsd (%rdi), %xmm0, %xmm0
\tdecq %rcx
\tjne .L2
\tvmovsd %xmm0, 4096(%rdi)
\tdecq %rdx
\tjne .L1
\tretq
"""

    def row(window: int) -> float:
        state = State({})
        state.registers |= {"rsp": STACK + 4096, "rdi": 1 << 32}
        return walk(read(text), "f", state, rates(window=window, waiting=window)).cycles / 400

    assert row(400) == pytest.approx(8, rel=0.15)  # eight additions on one unit, and as many taken jumps
    assert row(10) > 20  # hardly more than one row at a time


MIXED = ("load", "store", "mul")


def with_shares(share: str) -> Rates:
    """The made-up core, where each load, store and product takes `share` of what all of them share."""
    changed = [replace(i, mixed=Fraction(share)) if i.cls in MIXED else i for i in INSTRUCTIONS]
    return Rates("made_up", CORE, changed)


def test_arithmetic_takes_a_share_of_what_loads_and_stores_share() -> None:
    """Two loads, a product and a store take a cycle on their own units; four shares of 0.4 cycles take 1.6."""
    body = "\n".join(
        f"vmovupd {64 * k}(%rdi), %ymm0\nvmulpd {64 * k + 32}(%rdi), %ymm0, %ymm1\nvmovupd %ymm1, {4096 + 32 * k}(%rdi)"
        for k in range(8)
    )
    assert cycles(body) == pytest.approx(8, rel=0.03)
    assert cycles(body, with_rates=with_shares("0.4")) == pytest.approx(8 * 1.6, rel=0.03)
    only = "\n".join(f"vmulpd %ymm1, %ymm2, %ymm{3 + k}" for k in range(6))
    assert cycles(only, with_rates=with_shares("0.4")) == pytest.approx(3, rel=0.03), "by its units alone"


ROW = "vmovapd %xmm1, %xmm0\n" + "vaddsd %xmm1, %xmm0, %xmm0\n" * 10
"""A chain of 30 cycles that waits for nothing before it."""


def test_loads_stores_and_registers_under_way_limit_how_far_chains_overlap() -> None:
    """Chains of ten additions (30 cycles), with 20 instructions of a kind between them. With room for all, the units
    decide; with room for those of one chain only, two chains at most run side by side.
    """
    for filler, limit in (
        ("movq (%rdi), %rdx", {"loading": 20}),
        ("movq %rdx, 64(%rdi)", {"storing": 10}),
        ("vandpd %xmm3, %xmm4, %xmm2", {"registers": 31}),
    ):
        body = ROW + f"{filler}\n" * 20
        free = cycles(body, 300, rates(window=400, waiting=400))
        tight = cycles(body, 300, rates(window=400, waiting=400, **limit))
        assert free <= 21 and 15 <= tight <= 42 and tight > 1.4 * free, (filler, free, tight)


def test_a_place_is_refilled_some_cycles_after_it_is_left() -> None:
    body = ROW + "leaq 8(%rdi), %rdx\n" * 30
    without, with_refill = (cycles(body, 300, rates(window=21, waiting=400, refill=Fraction(k))) for k in (0, 8))
    assert without + 8 <= with_refill <= without + 3 * 8


def test_an_operation_with_an_indexed_address_takes_two_places() -> None:
    """A chain of 30 cycles and twelve of them, in a window of 40: two chains side by side, or not."""
    body = ROW + "\n".join("vmulpd (%rdi,%rax,8), %ymm3, %ymm2" for _ in range(12))
    one, two = (cycles(body, 300, rates(window=40, waiting=400, indexed=k)) for k in (1, 2))
    assert two > 1.2 * one


def test_a_gather_is_dispatched_as_several_instructions() -> None:
    """A gather takes 4 cycles, in which 16 instructions are dispatched. It is one of 12 in the loop; if it counts as 13
    itself, they are 24 and take 6 cycles. And in a window of 48, two gathers of 20 cycles run side by side.
    """
    body = "kxnorw %k1, %k1, %k1\nvgatherqpd (%rdi,%ymm13,8), %ymm2 {%k1}\n" + "leaq 8(%rdi), %rdx\n" * 9
    several = [replace(i, slots=13) if i.cls == "gather" else i for i in INSTRUCTIONS]
    for slots, known in ((4, INSTRUCTIONS), (6, several)):
        with_rates = Rates("made_up", replace(CORE, window=400), known)
        assert cycles(body, with_rates=with_rates) == pytest.approx(slots, rel=0.02)
    small = Rates("made_up", replace(CORE, window=48), several)
    assert cycles(body, with_rates=small) == pytest.approx(10, rel=0.15)


def test_lines_of_their_own_take_longer() -> None:
    """Two loads a cycle, one with a line of its own; stores to one line follow each other at one a cycle."""
    changed = [
        replace(i, apart=Fraction({"load": 1, "store": 3}[i.cls])) if i.cls in ("load", "store") else i
        for i in INSTRUCTIONS
    ]
    with_lines = Rates("made_up", CORE, changed)

    def spread(step: int, text: str) -> float:
        return cycles("\n".join(text.format(step * (k % 8)) for k in range(16)), with_rates=with_lines)

    assert spread(8, "vmovsd {}(%rdi), %xmm1") == pytest.approx(8, rel=0.03)
    assert spread(8, "vmovsd %xmm1, {}(%rdi)") == pytest.approx(16, rel=0.03)
    assert spread(64, "vmovsd %xmm1, {}(%rdi)") == pytest.approx(48, rel=0.03)
    far = "\n".join(f"vmovsd {64 * k}(%rdi), %xmm1" for k in range(16))
    assert cycles(far, with_rates=with_lines) == pytest.approx(16, rel=0.03)


def test_the_pace_of_short_outer_iterations_is_that_of_a_full_window() -> None:
    """Rows of a chain: the first ones go as fast as they are dispatched, until the window is full."""
    text = """f:
\tmovl $400, %ecx
.L1:
\tmovl $4, %edx
\tvmovapd %xmm1, %xmm0
.L2:
\tvaddsd %xmm1, %xmm0, %xmm0
\tvaddsd %xmm1, %xmm0, %xmm0
\tvaddsd %xmm1, %xmm0, %xmm0
\tdecq %rdx
\tjne .L2
\tdecq %rcx
\tjne .L1
\tretq
"""

    def walked(rows: int) -> float:
        state = State({})
        state.registers |= {"rsp": STACK + 4096}
        with_rates = rates(window=48, waiting=400, predicted=1000, varied=1000)
        return walk(read(text.replace("$400", f"${rows}")), "f", state, with_rates).cycles

    slope = (walked(4000) - walked(2000)) / 2000
    assert walked(400) / 400 == pytest.approx(slope, rel=0.08)


@pytest.mark.parametrize(
    ("body", "window", "each"),
    [
        ("vmovsd (%rsp), %xmm0\ncallq exp", 64, 16.5),  # calls that do not wait for each other: their throughput
        ("vmulsd %xmm0, %xmm0, %xmm0\ncallq exp", 64, 44),  # each is of the result before: both latencies
        # Pairs: when the second call of a pair is done, the first one of the pair after the next begins.
        ("vmovsd (%rsp), %xmm0\ncallq exp\ncallq exp", 64, 40),
        ("vmovsd (%rsp), %xmm0\ncallq exp\ncallq exp", 512, 32.5),
    ],
)
def test_calls_wait_for_their_arguments_in_the_window(body: str, window: int, each: float) -> None:
    lines = "".join(f"\t{line}\n" for line in body.splitlines())
    code = read(f"f:\n\tmovl $1000, %ebx\n\t.p2align 4\n.L1:\n{lines}\tdecq %rbx\n\tjne .L1\n\tretq\n")
    state = State({})
    state.registers |= {"rsp": STACK + 4096}
    assert walk(code, "f", state, rates(window=window)).cycles / 1000 == pytest.approx(each, rel=0.07)


@pytest.mark.parametrize(("slots", "each"), [(None, 40), (12, 32.5)])
def test_calls_of_stated_lengths_overlap_as_far_as_the_window_holds_them(slots: int | None, each: float) -> None:
    """The pairs of calls above: four of them fit into the window if each has at most 12 instructions."""
    body = "vmovsd (%rsp), %xmm0\n\tcallq exp\n\tcallq exp"
    code = read(f"f:\n\tmovl $1000, %ebx\n\t.p2align 4\n.L1:\n\t{body}\n\tdecq %rbx\n\tjne .L1\n\tretq\n")
    state = State({})
    state.registers |= {"rsp": STACK + 4096}
    known = [replace(i, slots=slots) if i.cls == "exp" else i for i in INSTRUCTIONS]
    with_rates = Rates("made_up", replace(CORE, window=64), known)
    assert walk(code, "f", state, with_rates).cycles / 1000 == pytest.approx(each, rel=0.07)


def test_a_half_is_loaded_without_a_vector_unit() -> None:
    """Four loads of 16 bits beside four shuffles, which have one unit for themselves."""
    body = "\n".join(f"vmovsh {2 * k}(%rdi), %xmm{k}\nvpermilpd $1, %xmm14, %xmm{8 + k}" for k in range(4))
    assert cycles(body) == pytest.approx(4, rel=0.03)
