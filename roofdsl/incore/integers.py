"""The effects of instructions on integers: one function for each instruction of a text, made once and called each time
the instruction runs.

Instructions on data write an unknown value. Semantics are those of Intel's manual (volume 2), as far as compilers use
the instructions for loops, addresses and spills.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from roofdsl.incore.assembly import REGISTERS, Immediate, Instruction, Memory, Operand, Register
from roofdsl.incore.operand_bytes import SUFFIXES, WORDS, bytes_moved, split_name
from roofdsl.incore.products import product, quotient, wide_product
from roofdsl.incore.state import (
    CONDITIONS,
    MASKS,
    Effect,
    Flags,
    Read,
    State,
    Write,
    combined,
    copied,
    holds,
    plain_condition,
    signed,
)
from roofdsl.incore.vector_integers import vector_effect

_BINARY: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "add": ("add", lambda a, b: a + b),
    "sub": ("sub", lambda a, b: a - b),
    "and": ("and", lambda a, b: a & b),
    "or": ("or", lambda a, b: a | b),
    "xor": ("xor", lambda a, b: a ^ b),
}
_SHIFTS: dict[str, Callable[[int, int, int], int]] = {
    "shl": lambda v, n, bits: v << n,
    "sal": lambda v, n, bits: v << n,
    "shr": lambda v, n, bits: v >> n,
    "sar": lambda v, n, bits: signed(v, bits) >> n,
    "rol": lambda v, n, bits: v << n % bits | v >> (bits - n % bits),
    "ror": lambda v, n, bits: v >> n % bits | v << (bits - n % bits),
}
_NOTHING = frozenset(("nop", "nopw", "nopl", "endbr64", "vzeroupper", "vzeroall", "ud2", "pause", "leave", "emms"))
_COMPARES = ("vucomis", "vcomis", "ucomis", "comis", "vptest", "ptest", "vtestp", "kortest", "ktest")


def effect(instruction: Instruction, state: State) -> Effect:
    """The effect of the instruction on a state, as a function. Jumps and calls have no effect here."""
    name, bits = split_name(instruction.name)
    ops = instruction.operands
    if instruction.name in _NOTHING or instruction.name.startswith(("j", "call", "ret", "prefetch")):
        return _nothing
    if bits == 0 and ops and isinstance(ops[-1], Register) and not ops[-1].is_vector and name in WORDS:
        bits = ops[-1].bits
    whole = instruction.name  # `movq %rax, %xmm0` is no `mov` of general registers
    made = _integer(name, bits, ops, state) or _wider(whole, ops, state) or vector_effect(whole, ops, state)
    return made or _unknown(instruction, state)


def _nothing() -> None:
    pass


def _unknown(instruction: Instruction, state: State) -> Effect:
    """An instruction on data: its destination becomes unknown, and so do the flags that it may change."""
    name, ops = instruction.name, instruction.operands
    registers = state.registers
    if name.startswith(_COMPARES):

        def compare() -> None:
            state.flags = None

        return compare
    if not ops or isinstance(ops[-1], Immediate):
        return _nothing
    last = ops[-1]
    if isinstance(last, Register):
        # `xadd` leaves its old destination in its source
        families = {last.family} | {o.family for o in ops if isinstance(o, Register) and name.startswith("xadd")}
        changes_flags = not name.startswith(("v", "k", "mov", "set"))

        def forget() -> None:
            for family in families:
                registers[family] = None
            if changes_flags:
                state.flags = None

        return forget
    at = state.address(last)
    size = bytes_moved(instruction, last)

    def forget_stored() -> None:
        state.store(at(), size, None)

    return forget_stored


def _integer(name: str, bits: int, ops: tuple[Operand, ...], state: State) -> Effect | None:
    """Instructions on general registers, with operands of a known size; None for others."""
    if name not in WORDS or bits == 0 or any(isinstance(o, Register) and o.is_vector for o in ops):
        return None
    if name in ("mov", "movabs") and len(ops) == 2:
        return copied(state.reader(ops[0], bits), state.writer(ops[1], bits))
    if name == "lea" and isinstance(ops[0], Memory):
        return copied(state.address(ops[0]), state.writer(ops[1], bits))
    if name in _BINARY and len(ops) == 2:
        return _binary(name, bits, ops, state)
    if name in ("cmp", "test"):
        return _compare("sub" if name == "cmp" else "and", bits, ops, state)
    if name in ("inc", "dec", "neg", "not"):
        return _single(name, bits, ops[0], state)
    if name in _SHIFTS:
        return _shift(name, bits, ops, state)
    if name in ("shlx", "shrx", "sarx") and len(ops) == 3:
        count, value, write = state.reader(ops[0], bits), state.reader(ops[1], bits), state.writer(ops[2], bits)
        kind = _SHIFTS[name[:3]]
        return copied(combined(value, count, lambda v, n: kind(v, n % bits, bits)), write)
    if name == "andn":
        return _and_not(bits, ops, state)
    if name == "xchg":
        return _exchange(bits, ops, state)
    if name in ("imul", "mul"):
        return product(name, bits, ops, state)
    if name == "mulx" and len(ops) == 3:
        return wide_product(bits, ops, state)
    if name in ("push", "pop"):
        return _push(ops[0], state) if name == "push" else _pop(ops[0], state)
    if name in ("div", "idiv"):
        return quotient(name, bits, ops[0], state)
    if name == "bt":
        return _bit_test(bits, ops, state)
    return None


def _binary(name: str, bits: int, ops: tuple[Operand, ...], state: State) -> Effect:
    kind, operation = _BINARY[name]
    write, mask = state.writer(ops[1], bits), MASKS[bits]
    if name in ("xor", "sub") and ops[0] == ops[1]:
        zero: Flags = ("and", 0, 0, bits)

        def clear() -> None:
            write(0)
            state.flags = zero

        return clear
    source, target = state.reader(ops[0], bits), state.reader(ops[1], bits)

    def run() -> None:
        b, a = source(), target()
        if a is None or b is None:
            # x & 0 is 0 whatever x is: masks that clear a value make it known again.
            write(0 if name == "and" and 0 in (a, b) else None)
            state.flags = None
            return
        result = operation(a, b) & mask
        write(result)
        state.flags = (kind, a, b, bits) if kind != "and" and name in ("add", "sub") else ("and", result, result, bits)

    return run


def _and_not(bits: int, ops: tuple[Operand, ...], state: State) -> Effect:
    kept, cleared, write = state.reader(ops[0], bits), state.reader(ops[1], bits), state.writer(ops[2], bits)

    def run() -> None:
        a, b = kept(), cleared()
        result = None if a is None or b is None else a & ~b
        write(result)
        state.flags = None if result is None else ("and", result, result, bits)

    return run


def _exchange(bits: int, ops: tuple[Operand, ...], state: State) -> Effect:
    first, second = state.reader(ops[0], bits), state.reader(ops[1], bits)
    to_first, to_second = state.writer(ops[0], bits), state.writer(ops[1], bits)

    def run() -> None:
        a, b = first(), second()
        to_first(b)
        to_second(a)

    return run


def _compare(kind: str, bits: int, ops: tuple[Operand, ...], state: State) -> Effect:
    source, target = state.reader(ops[0], bits), state.reader(ops[1], bits)

    def run() -> None:
        b, a = source(), target()
        state.flags = None if a is None or b is None else (kind, a, b, bits)

    return run


def _single(name: str, bits: int, operand: Operand, state: State) -> Effect:
    read, write, mask = state.reader(operand, bits), state.writer(operand, bits), MASKS[bits]

    def run() -> None:
        a = read()
        if a is None:
            write(None)
            if name != "not":
                state.flags = None
        elif name == "not":
            write(a ^ mask)
        elif name == "neg":
            write(-a & mask)
            state.flags = ("sub", 0, a, bits)
        else:
            write((a + 1 if name == "inc" else a - 1) & mask)
            state.flags = (name, a, 1, bits)

    return run


def _shift(name: str, bits: int, ops: tuple[Operand, ...], state: State) -> Effect:
    count = state.reader(ops[0], 8) if len(ops) == 2 else lambda: 1
    read, write, kind, mask = state.reader(ops[-1], bits), state.writer(ops[-1], bits), _SHIFTS[name], MASKS[bits]

    def run() -> None:
        v, n = read(), count()
        if v is None or n is None:
            write(None)
            state.flags = None
            return
        n &= 63 if bits == 64 else 31  # the manual: even for 8 and 16 bits, so that a shift by 16 of these leaves 0
        result = kind(v, n, bits) & mask
        write(result)
        # A shift by 0 leaves the flags of the instruction before it. Rotations set the carry and the overflow alone.
        if n:
            state.flags = None if name in ("rol", "ror") else ("shift", result, result, bits)

    return run


def _push(operand: Operand, state: State) -> Effect:
    read, registers = state.reader(operand, 64), state.registers

    def run() -> None:
        value, at = read(), registers["rsp"]
        assert at is not None
        registers["rsp"] = at - 8
        state.store(at - 8, 8, value)

    return run


def _pop(operand: Operand, state: State) -> Effect:
    write, registers = state.writer(operand, 64), state.registers

    def run() -> None:
        at = registers["rsp"]
        assert at is not None
        registers["rsp"] = at + 8
        write(state.load(at, 8))

    return run


def _bit_test(bits: int, ops: tuple[Operand, ...], state: State) -> Effect:
    place, value = state.reader(ops[0], 8), state.reader(ops[1], bits)

    def run() -> None:
        n, v = place(), value()
        state.flags = None if n is None or v is None else ("carry", v >> n % bits & 1, 0, bits)

    return run


_EXTENDING_MOVE = re.compile(r"mov(?P<how>[zs])(?P<source>[bwl])(?P<target>[wlq])")
_EXTENSIONS = {
    "cltq": ("rax", 32, 64), "cwtl": ("rax", 16, 32), "cbtw": ("rax", 8, 16),
}  # fmt: skip


def _wider(name: str, ops: tuple[Operand, ...], state: State) -> Effect | None:
    """Conversions between widths, and instructions that depend on the flags."""
    registers = state.registers
    widths = _EXTENDING_MOVE.fullmatch(name)
    if widths is not None and len(ops) == 2 and isinstance(ops[1], Register):
        small, large = SUFFIXES[widths["source"]], SUFFIXES[widths["target"]]
        read, write = state.reader(ops[0], small), state.writer(ops[1], large)
        return copied(read, write) if widths["how"] == "z" else _signed_copy(read, small, write)
    if name in _EXTENSIONS:
        family, small, large = _EXTENSIONS[name]
        return _signed_copy(state.reader(REGISTERS["rax"], small), small, state.writer(Register(family, large), large))
    if name in ("cqto", "cltd"):
        bits = 64 if name == "cqto" else 32

        def sign() -> None:
            # Before a signed division of rdx:rax, rdx repeats the sign of rax in all its bits.
            v = registers.get("rax")
            negative = v is not None and signed(v & MASKS[bits], bits) < 0
            filled = MASKS[bits] if negative else 0
            registers["rdx"] = None if v is None else filled

        return sign
    if name.startswith("set") and len(ops) == 1:
        condition, write = plain_condition(name[3:]), state.writer(ops[0], 8)

        def set_byte() -> None:
            found = holds(condition, state.flags)
            write(None if found is None else int(found))

        return set_byte
    if name.startswith("cmov") and len(ops) == 2:
        condition, bits = _conditional_move(name[4:], ops[1])
        read, keep, write = state.reader(ops[0], bits), state.reader(ops[1], bits), state.writer(ops[1], bits)

        def move() -> None:
            found = holds(condition, state.flags)
            moved, kept = read(), keep()
            # What is written is known without the condition if both values are the same. A 32-bit move that does not
            # take place still clears the upper half of its register, so it writes, too.
            if found is None:
                write(moved if moved == kept else None)
            else:
                write(moved if found else kept)

        return move
    return None


def _signed_copy(read: Read, bits: int, write: Write) -> Effect:
    """Writes a number of `bits` bits with its sign to a wider place."""

    def run() -> None:
        v = read()
        write(None if v is None else signed(v, bits))

    return run


def _conditional_move(ending: str, target: Operand) -> tuple[str, int]:
    """(condition, bits): LLVM writes the width at the end (`cmovgq`), gcc leaves it to the registers (`cmovg`)."""
    if ending in CONDITIONS:
        return plain_condition(ending), target.bits if isinstance(target, Register) else 64
    return plain_condition(ending[:-1]), SUFFIXES.get(ending[-1:], 64)
