"""Integer instructions against the processor itself, which runs the same text, and the flow of control by hand."""

from __future__ import annotations

import platform
import random

import numpy as np
import pytest

from roofdsl.incore.assembly import Memory, Register, read
from roofdsl.incore.flow import flow_of
from roofdsl.incore.integers import effect
from roofdsl.incore.state import STACK, State, holds

NATIVE = platform.machine().lower() in ("x86_64", "amd64")
NAMES = ("rax", "rcx", "rdx", "r8", "r9", "r10")
LOW = {"rax": "eax ax al", "rcx": "ecx cx cl", "rdx": "edx dx dl", "r8": "r8d r8w r8b", "r9": "r9d r9w r9b"}
LOW |= {"r10": "r10d r10w r10b"}


def _named(name: str, suffix: str) -> str:
    return f"%{name}" if suffix == "q" else f"%{LOW[name].split()['lwb'.index(suffix)]}"


def _random_line(rng: random.Random) -> str:
    suffix = rng.choice("qqqlwb")
    a, b = (_named(rng.choice(NAMES), suffix) for _ in range(2))
    number = rng.choice((0, 1, 7, 31, -1, -8, 100))
    wide = "q" if suffix in "wb" else suffix
    x, y = (_named(rng.choice(NAMES), wide) for _ in range(2))
    shift = rng.randrange(1, 31)
    return rng.choice((
        f"mov{suffix} {a}, {b}", f"add{suffix} {a}, {b}", f"sub{suffix} {a}, {b}", f"and{suffix} ${number}, {b}",
        f"or{suffix} {a}, {b}", f"xor{suffix} {a}, {b}", f"cmp{suffix} {a}, {b}", f"test{suffix} {a}, {b}",
        f"inc{suffix} {b}", f"dec{suffix} {b}", f"neg{suffix} {b}", f"not{suffix} {b}", f"imul{wide} {x}, {y}",
        f"imul{wide} ${number}, {x}, {y}", f"shl{suffix} ${shift % 8}, {b}", f"sar{wide} ${shift}, {y}",
        f"shr{wide} ${shift}, {y}", f"add{suffix} ${number}, {b}", f"sub{suffix} ${number}, {b}",
        f"leaq {number}(%{rng.choice(NAMES)},%{rng.choice(NAMES)},{rng.choice((1, 2, 4, 8))}), %{rng.choice(NAMES)}",
        f"movzbl {_named(rng.choice(NAMES), 'b')}, {_named(rng.choice(NAMES), 'l')}",
        f"movslq {_named(rng.choice(NAMES), 'l')}, %{rng.choice(NAMES)}",
        f"movsbq {_named(rng.choice(NAMES), 'b')}, %{rng.choice(NAMES)}", f"mul{wide} {x}", f"imul{wide} {x}",
        f"xchg{suffix} {a}, {b}", f"rol{suffix} ${shift % 8}, {b}", f"ror{suffix} ${shift % 8}, {b}",
    ))  # fmt: skip


CONDITIONS = ("e", "ne", "b", "ae", "be", "a", "l", "ge", "le", "g", "s", "ns", "o", "no")


@pytest.mark.skipif(not NATIVE, reason="the text is for x86-64")
@pytest.mark.parametrize("seed", range(30))
def test_random_instructions(seed: int) -> None:
    """Twelve instructions, then a comparison and all conditions: registers and flags as the processor has them."""
    from roofdsl.measure.assembled import loops

    rng = random.Random(seed)
    given = {name: rng.choice((rng.getrandbits(64), rng.getrandbits(8), 0, 2**63, 2**64 - 1)) for name in NAMES}
    a, b = rng.sample(NAMES, 2)
    body = [_random_line(rng) for _ in range(12)]
    compared = rng.choice((f"cmpq %{a}, %{b}", f"testl {_named(a, 'l')}, {_named(b, 'l')}", f"subq %{a}, %{b}"))
    load = [f"movabsq ${value}, %{name}" for name, value in given.items()]
    stored = [f"movq %{name}, {8 * k}(%rdi)" for k, name in enumerate(NAMES)]
    flags = [f"set{c} {64 + k}(%rdi)" for k, c in enumerate(CONDITIONS)]
    buffer = np.zeros(64, np.uint64)
    loops({"f": [*load, *body, compared, *flags, *stored]}, {})["f"](buffer.ctypes.data, 1)

    state = State({})
    state.registers |= given
    for instruction in read("".join(f"\t{line}\n" for line in (*body, compared))).instructions:
        effect(instruction, state)()
    assert [state.registers[n] for n in NAMES] == [int(v) for v in buffer[: len(NAMES)]], body
    expected = buffer.view(np.uint8)[64 : 64 + len(CONDITIONS)]
    assert [holds(c, state.flags) for c in CONDITIONS] == [bool(v) for v in expected], (body, compared)


@pytest.mark.skipif(not NATIVE, reason="the text is for x86-64")
@pytest.mark.parametrize(
    "product", ["mulq %rcx", "mull %ecx", "imulq %rcx", "imull %ecx", "imulq %rcx, %rax", "mulxq %rcx, %rax, %rdx"]
)
def test_a_product_says_whether_it_fits(product: str) -> None:
    from roofdsl.measure.assembled import loops

    stored = ["setb 16(%rdi)", "setae 17(%rdi)", "seto 18(%rdi)", "setno 19(%rdi)"]
    for a, b in ((3, 5), (2**32, 2**31), (2**32, 2**32), (2**64 - 1, 3), (2**63, 2), (2**31, 1), (0, 2**64 - 1)):
        buffer = np.zeros(8, np.uint64)
        load = [f"movabsq ${a}, %rax", f"movabsq ${b}, %rcx", "movabsq $77, %rdx"]
        kept = ["movq %rax, (%rdi)", "movq %rdx, 8(%rdi)"]
        loops({"f": [*load, product, *stored, *kept]}, {})["f"](buffer.ctypes.data, 1)
        state = State({})
        state.registers |= {"rax": a, "rcx": b, "rdx": 77}
        effect(read(f"\t{product}\n").instructions[0], state)()
        assert [state.registers["rax"], state.registers["rdx"]] == [int(v) for v in buffer[:2]]
        expected = [bool(v) for v in buffer.view(np.uint8)[16:20]]
        if product.startswith("mulx"):
            continue  # it leaves the flags as they were
        assert [holds(c, state.flags) for c in ("b", "ae", "o", "no")] == expected, (a, b)
        assert holds("e", state.flags) is None


@pytest.mark.skipif(not NATIVE, reason="the text is for x86-64")
@pytest.mark.parametrize(
    "line",
    [
        "andnq %rcx, %rax, %rdx", "andnl %eax, %ecx, %edx", "rolq $6, %rax", "rorl $4, %ecx", "shrq %rax", "shlb %cl",
        "sarl %ecx", "shlq $9, %rcx", "xaddq %rax, %rcx", "xchgw %ax, %cx", "btq $3, %rax", "decl %ecx", "negq %rax",
        "movq %rax, %xmm1", "adcq %rax, %rcx", "popcntq %rax, %rcx",
    ],
)  # fmt: skip
def test_what_is_known_after_an_instruction_is_true(line: str) -> None:
    """Every register and condition that has a value has that of the processor, whatever the flags were before."""
    from roofdsl.measure.assembled import loops

    stored = [f"set{c} {24 + k}(%rdi)" for k, c in enumerate(CONDITIONS)]
    stored += [f"movq %{name}, {8 * k}(%rdi)" for k, name in enumerate(NAMES[:3])]
    for a, b in ((3, 5), (2**63, 1), (2**64 - 1, 2**31), (0, 0), (2**32 + 255, 2**64 - 2), (5, 5)):
        given = {"rax": a, "rcx": b, "rdx": 77}
        load = [f"movabsq ${value}, %{name}" for name, value in given.items()]
        before = "cmpq %rcx, %rax"
        buffer = np.zeros(8, np.uint64)
        loops({"f": [*load, before, line, *stored]}, {})["f"](buffer.ctypes.data, 1)
        state = State({})
        state.registers |= given
        for instruction in read(f"\t{before}\n\t{line}\n").instructions:
            effect(instruction, state)()
        for name, value in zip(given, buffer, strict=False):
            assert state.registers[name] in (None, int(value)), (line, given)
        for k, condition in enumerate(CONDITIONS):
            assert holds(condition, state.flags) in (None, bool(buffer.view(np.uint8)[24 + k])), (
                line,
                condition,
                given,
            )


def test_unknown_values_spread_and_zeroing_ends_them() -> None:
    state = State({})
    state.registers |= {"rax": None, "rcx": 5}
    text = "\taddq %rax, %rcx\n\tcmpq $3, %rcx\n"
    for instruction in read(text).instructions:
        effect(instruction, state)()
    assert state.registers["rcx"] is None and holds("e", state.flags) is None
    effect(read("\txorl %ecx, %ecx\n").instructions[0], state)()
    assert state.registers["rcx"] == 0 and holds("e", state.flags)


def test_a_part_of_an_unknown_register_is_known_after_it_is_written() -> None:
    state = State({})
    state.registers |= {"rax": None, "rcx": 0x1122334455667788}

    def run(text: str) -> dict[str, int | None]:
        for instruction in read(text).instructions:
            effect(instruction, state)()
        return state.registers

    found = run("\tmovb $5, %al\n\tmovzbl %al, %edx\n\tmovzwl %ax, %esi\n\tmovl %eax, %edi\n")
    assert (found["rax"], found["rdx"], found["rsi"], found["rdi"]) == (None, 5, None, None)
    run("\ttestq %rax, %rax\n")
    assert holds("e", state.flags) is None
    run("\tcmpb $5, %al\n")
    assert holds("e", state.flags) is True
    found = run("\tmovb $3, %ah\n\tmovzwl %ax, %esi\n\tmovb %dil, %al\n\tmovzbl %ah, %edx\n\tmovzbl %al, %r8d\n")
    assert (found["rax"], found["rdx"], found["rsi"], found["r8"]) == (None, 3, 0x305, None)  # edi is unknown
    found = run("\tmovb %dil, %cl\n\tmovb $1, %cl\n")
    assert found["rcx"] == 0x1122334455667701
    found = run("\tmovb $5, %al\n\tmovq %rdi, %rax\n\tmovzbl %al, %edx\n\tmovzbl %ah, %esi\n")
    assert (found["rdx"], found["rsi"]) == (None, None)  # the parts of the value before


def test_the_stack_keeps_numbers_and_forgets_what_data_overwrite() -> None:
    state = State({})
    state.registers |= {"rsp": STACK + 512, "rax": 0x1122334455667788}
    text = "\tpushq %rax\n\tmovl (%rsp), %ecx\n\tmovzbl 3(%rsp), %edx\n\tvmovups %ymm0, -16(%rsp)\n\tmovq (%rsp), %r8\n"
    for instruction in read(text).instructions:
        effect(instruction, state)()
    found = state.registers
    assert (found["rcx"], found["rdx"], found["r8"]) == (0x55667788, 0x55, None)


def test_a_number_beside_a_spilled_one_stays() -> None:
    state = State({})
    state.registers |= {"rsp": STACK + 512, "rax": 7}
    text = "\tmovq %rax, 40(%rsp)\n\tvmovss %xmm0, 36(%rsp)\n\tvmovsd %xmm0, 48(%rsp)\n\tmovq 40(%rsp), %r8\n"
    for instruction in read(text).instructions:
        effect(instruction, state)()
    assert state.registers["r8"] == 7


def test_operands() -> None:
    lines = (
        "vfmadd231pd\t-96(%r11,%r14,8), %ymm4, %ymm0 {%k1} # comment", "movq .LC0+8(%rip), %rax",
        "vaddpd (%rdi){1to4}, %ymm1, %ymm2",
    )  # fmt: skip
    one, two, three = read("".join(f"\t{line}\n" for line in lines)).instructions
    assert one.operands[0] == Memory(-96, "r11", "r14", 8)
    assert one.operands[2] == Register("v0", 256, "k1", merging=True)
    assert two.operands[0] == Memory(8, "", "", 1, ".LC0")
    assert isinstance(three.operands[0], Memory) and three.operands[0].broadcast


def test_the_address_of_a_symbol_may_have_an_offset() -> None:
    """`$table+8` is eight bytes into the data, not a function of that name."""
    text = (
        "f:\n\tmovabsq $table+8, %rax\n\tmovq (%rax), %rcx\n\tmovabsq $table, %rax\n\tmovl 4(%rax), %edx\n"
        '\tmovq $-8, %r9\n\tmovabsq $"a b"+16, %r8\n\tmovq -8(%r8), %r8\n'
        "\tmovabsq $tanh@PLT, %r10\n\tmovabsq $tanh, %r11\n"
        'table:\n\t.quad 5\n\t.quad 7\n"a b":\n\t.quad 1\n\t.quad 2\n'
    )
    code = read(text)
    state = State(code.data)
    for instruction in code.instructions:
        effect(instruction, state)()
    found = state.registers
    assert (found["rcx"], found["rdx"], found["r8"], found["r9"]) == (7, 0, 2, 2**64 - 8)
    assert found["r10"] == found["r11"] and list(state.outside.values()) == ["tanh"]


def test_loops_are_found_whatever_the_layout() -> None:
    """The inner loop's block stands behind the end of the outer one, as compilers lay out rarely taken ways."""
    code = read(
        "f:\n\tmovl $3, %ecx\n.L1:\n\tmovl $4, %edx\n\tjmp .L9\n.L2:\n\tdecl %ecx\n\tjne .L1\n\tretq\n"
        ".L9:\n\tdecl %edx\n\tjne .L9\n\tjmp .L2\n"
    )
    flow = flow_of(code, "f")
    assert [(loop.parent, loop.innermost, len(loop.blocks)) for loop in flow.loops] == [(None, False, 4), (0, True, 1)]


@pytest.mark.parametrize("condition", [*CONDITIONS, "nl", "ng", "z", "c"])
def test_a_conditional_move_is_read_with_and_without_its_width(condition: str) -> None:
    """gcc writes `cmovg %rcx, %rax` where LLVM writes `cmovgq`: the letters may also be those of a condition."""
    moved = {}
    for ending in ("", "q"):
        state = State({})
        text = f"f:\n cmpq $3, %rdx\n cmov{condition}{ending} %rcx, %rax\n ret\n"
        for value in (2, 3, 4, 2**64 - 1):
            state.registers.update({"rax": 5, "rcx": 7, "rdx": value})
            for instruction in read(text).instructions[:2]:
                effect(instruction, state)()
            moved.setdefault(ending, []).append(state.registers["rax"])
    assert moved[""] == moved["q"]
    assert None not in moved[""]
    if condition in ("g", "ng", "l", "nl"):
        signed = [value > 3 if "g" in condition else value < 3 for value in (2, 3, 4, -1)]
        assert [v == 7 for v in moved[""]] == [is_true != condition.startswith("n") for is_true in signed]
