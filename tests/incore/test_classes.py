"""The classes of instructions, and what a core is charged for them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from roofdsl.incore.assembly import read
from roofdsl.incore.classes import Kind, Work, work_of
from roofdsl.incore.rates import Rates
from roofdsl.lang.record import replace
from roofdsl.machine.instruction import Instruction
from roofdsl.measure.out_of_order_core import simulated
from tests.incore.machines import CORE, INSTRUCTIONS, rates


def work(line: str) -> Work:
    (instruction,) = read(f"\t{line}\n").instructions
    return work_of(instruction)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("vextractf128 $1, %ymm0, %xmm1", Kind("extract", "f64", 256)),
        ("vextracti64x4 $1, %zmm0, %ymm1", Kind("extract", "f64", 512)),
        ("vinserti128 $1, %xmm0, %ymm1, %ymm2", Kind("insert", "f64", 256)),
        ("vinsertps $1, %xmm0, %xmm1, %xmm2", Kind("shuffle", "f64", 128)),
        ("vperm2f128 $49, %ymm0, %ymm1, %ymm2", Kind("exchange", "f64", 256)),
        ("vpermpd $27, %ymm0, %ymm1", Kind("permute", "f64", 256)),
        ("vpermps %ymm0, %ymm1, %ymm2", Kind("permute", "f32", 256)),
        ("vpermilpd $1, %ymm0, %ymm1", Kind("shuffle", "f64", 256)),
        ("vhaddpd %ymm0, %ymm1, %ymm2", Kind("horizontal", "f64", 256)),
        ("vcvtph2ps (%rdi,%rax,2), %ymm0", Kind("widen", "f16", 256)),
        ("vcvtph2ps %xmm0, %ymm0", Kind("convert", "f16", 256)),
        ("vcvtps2ph $4, %ymm0, (%rdi)", Kind("narrow", "f16", 256)),
        ("vpinsrw $0, (%rdi), %xmm0, %xmm1", Kind("shuffle", "f64", 128)),
        ("vpinsrw $0, %eax, %xmm0, %xmm1", Kind("move", "i64", 64)),
        ("shll $16, %eax", Kind("shift", "i64", 64)),
        ("cmovgeq %rax, %rcx", Kind("blend", "i64", 64)),
        ("cmovbl %eax, %ecx", Kind("add", "i64", 64)),
        ("vcvtsh2ss (%rdi), %xmm0, %xmm1", Kind("convert", "f16", 32)),
        ("vpcmpgtq %ymm0, %ymm1, %ymm2", Kind("compare", "i64", 256)),
        ("vpcmpgtd %ymm0, %ymm1, %ymm2", Kind("add", "i32", 256)),
        ("vpcmpgtq %zmm0, %zmm1, %k1", Kind("compare", "f64", 512)),
        ("vpsllvd %ymm0, %ymm1, %ymm2", Kind("shift_each", "i32", 256)),
        ("vpslld $3, %ymm0, %ymm1", Kind("shift", "i32", 256)),
    ],
)
def test_what_moves_between_elements(line: str, kind: Kind) -> None:
    assert work(line).kind == kind


@pytest.mark.parametrize(
    ("line", "reads", "writes"),
    [
        ("imulq %rcx", {"rcx", "rax"}, "rax"),  # as gcc multiplies to divide a long by a constant
        ("mulq %rcx", {"rcx", "rax"}, "rax"),
        ("divq %rcx", {"rcx", "rax", "rdx"}, "rax"),
        ("imulq (%rdi)", {"rax"}, "rax"),
        ("divq (%rdi)", {"rax", "rdx"}, "rax"),
        ("imulq %rcx, %rbx", {"rcx", "rbx"}, "rbx"),
        ("imulq $3, %rcx, %rbx", {"rcx"}, "rbx"),
        ("cmpl $0, (%rdi,%rax,4)", set(), "flags"),
        ("cmpl %ecx, (%rdi)", {"rcx"}, "flags"),
        ("pushq (%rdi)", set(), ""),
        ("cltq", {"rax"}, "rax"),
        ("cqto", {"rax"}, "rdx"),
        ("vucomisd %xmm1, %xmm0", {"v0", "v1"}, "flags"),
        ("vptest %ymm1, %ymm0", {"v0", "v1"}, "flags"),
        ("kortestw %k1, %k0", {"k0", "k1"}, "flags"),
        ("vaddpd %xmm2, %xmm1, %xmm0", {"v1", "v2"}, "v0"),
        ("addpd %xmm1, %xmm0", {"v0", "v1"}, "v0"),
        ("movsd %xmm1, %xmm0", {"v0", "v1"}, "v0"),
        ("movsd (%rdi), %xmm0", set(), "v0"),
        ("movhpd (%rdi), %xmm0", {"v0"}, "v0"),
        ("movapd %xmm1, %xmm0", {"v1"}, "v0"),
        ("cvtsi2sdl %eax, %xmm0", {"rax", "v0"}, "v0"),
        ("cvtps2pd %xmm1, %xmm0", {"v1"}, "v0"),
        ("pshufd $1, %xmm1, %xmm0", {"v1"}, "v0"),
        ("pshufb %xmm1, %xmm0", {"v0", "v1"}, "v0"),
    ],
)
def test_registers_read_and_written(line: str, reads: set[str], writes: str) -> None:
    found = work(line)
    assert (set(found.reads), found.writes) == (reads, writes)
    assert (found.load is not None) == ("(" in line) and found.store is None


def test_masked_moves_of_avx() -> None:
    stored = work("vmaskmovps %ymm0, %ymm1, (%rdi,%rax,4)")
    assert stored.masked and stored.store is not None and stored.load is None and stored.bytes == 32
    assert stored.kind == Kind("", "f32", 256) and set(stored.reads) == {"v0", "v1"} and not stored.writes
    loaded = work("vmaskmovpd (%rdi), %xmm1, %xmm0")
    assert loaded.masked and loaded.load is not None and loaded.store is None and loaded.bytes == 16
    assert loaded.kind == Kind("", "f64", 128) and loaded.writes == "v0"
    assert not work("vmovupd %ymm0, (%rdi)").masked
    assert work("vpmaskmovq %ymm0, %ymm1, (%rdi)").kind.type == "f64"
    assert work("vpmaskmovd %ymm0, %ymm1, (%rdi)").kind.type == "f32"


def test_masked_moves_cost_what_the_machine_states_for_their_type() -> None:
    """An f32 store has twice as many elements; a machine that states nothing charges the plain store."""
    slow = (
        Instruction("masked_store", "f64", 256, throughput=Fraction(6), mixed=Fraction(4)),
        Instruction("masked_store", "f32", 256, throughput=Fraction(12), mixed=Fraction(10)),
        Instruction("masked_load", "f64", 256, Fraction(5), Fraction(7)),
    )
    stated = Rates("here", CORE, (*INSTRUCTIONS, *slow))
    doubles, singles = (work(f"vmaskmovp{t} %ymm0, %ymm1, (%rdi)") for t in "ds")
    assert (stated.store(doubles).busy, stated.store(singles).busy) == (6, 12)
    assert (stated.store(doubles).mix, stated.store(singles).mix) == (4, 10)
    assert stated.load(work("vmaskmovpd (%rdi), %ymm1, %ymm0")).busy == 7
    assert stated.store(work("vmovupd %ymm0, (%rdi)")).busy == 1 == rates().store(doubles).busy


def test_classes_that_are_not_stated_cost_what_is_alike() -> None:
    """Machine files from before a class was told apart."""
    for cls, alike in (
        ("extract", "permute"),
        ("exchange", "permute"),
        ("insert", "permute"),
        ("horizontal", "shuffle"),
    ):
        assert rates().cost(Kind(cls, "f64", 256)) == rates().cost(Kind(alike, "f64", 256))
    own = Instruction("exchange", "f64", 256, Fraction(3), Fraction(3), p2=True)
    assert Rates("here", CORE, (*INSTRUCTIONS, own)).cost(Kind("exchange", "f64", 256)).busy == 3


def test_fused_pairs_may_keep_adders_busy() -> None:
    """One of each in a cycle where nothing is shared; on this core, each fused pair takes 0.6 cycles of an adder."""
    fma, add = (Instruction(cls, "f64", 256, Fraction(4), Fraction(1)) for cls in ("fma", "add"))
    plain = (replace(fma, p0=True), replace(add, p2=True))
    alone = [i for i in INSTRUCTIONS if i.cls not in ("fma", "add") or i.type != "f64"]
    shared = Rates("here", CORE, (*alone, replace(plain[0], adder=Fraction(3, 5)), plain[1]))
    apart = Rates("here", CORE, (*alone, *plain))
    assert shared.cost(Kind("fma", "f64", 256)).work(10) == [((0,), 10.0), ((2,), 6.0)]
    assert apart.cost(Kind("fma", "f64", 256)).work(10) == [((0,), 10.0)]
    text = [
        line
        for k in range(6)
        for line in (f"vfmadd231pd %ymm14, %ymm15, %ymm{k}", f"vaddpd %ymm14, %ymm15, %ymm{k + 6}")
    ]
    assert simulated(text, apart) / 6 == pytest.approx(1, rel=0.05)
    assert simulated(text, shared) / 6 == pytest.approx(1.6, rel=0.05)
