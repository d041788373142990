"""Products and quotients of integers, and the flags that they set."""

from __future__ import annotations

from roofdsl.incore.assembly import Operand
from roofdsl.incore.state import MASKS, Effect, State, signed


def product(name: str, bits: int, ops: tuple[Operand, ...], state: State) -> Effect | None:
    """Products; carry and overflow say whether a product is longer than its destination."""
    if len(ops) == 1:
        return _long_product(name, bits, ops[0], state) if bits >= 32 else None
    first, second, write = state.reader(ops[0], bits), state.reader(ops[1], bits), state.writer(ops[-1], bits)

    def run() -> None:
        a, b = first(), second()
        if a is None or b is None:
            write(0 if 0 in (a, b) else None)
            state.flags = None
            return
        whole = signed(a, bits) * signed(b, bits)
        write(whole & MASKS[bits])
        state.flags = ("product", int(whole != signed(whole & MASKS[bits], bits)), 0, bits)

    return run


def _long_product(name: str, bits: int, operand: Operand, state: State) -> Effect:
    """A product with rax in full length, with the upper half in rdx."""
    read, registers = state.reader(operand, bits), state.registers

    def run() -> None:
        a, b = read(), registers.get("rax")
        state.flags = None
        registers["rax"] = registers["rdx"] = None
        if a is None or b is None:
            return
        b &= MASKS[bits]
        whole = signed(a, bits) * signed(b, bits) if name == "imul" else a * b
        low, high = whole & MASKS[bits], whole >> bits & MASKS[bits]
        registers["rax"], registers["rdx"] = low, high
        fits = whole == (signed(low, bits) if name == "imul" else low)
        state.flags = ("product", int(not fits), 0, bits)

    return run


def wide_product(bits: int, ops: tuple[Operand, ...], state: State) -> Effect:
    """`mulx`: a product with rdx in two registers, the lower half first; flags stay."""
    read, low, high = state.reader(ops[0], bits), state.writer(ops[1], bits), state.writer(ops[2], bits)

    def run() -> None:
        a, b = read(), state.registers.get("rdx")
        whole = None if a is None or b is None else a * (b & MASKS[bits])
        low(None if whole is None else whole & MASKS[bits])
        high(None if whole is None else whole >> bits)

    return run


def quotient(name: str, bits: int, operand: Operand, state: State) -> Effect:
    read, registers = state.reader(operand, bits), state.registers

    def run() -> None:
        divisor, low, high = read(), registers.get("rax"), registers.get("rdx")
        state.flags = None
        registers["rax"] = registers["rdx"] = None
        if not divisor or low is None or high is None or bits < 32:
            return
        whole = (high & MASKS[bits]) << bits | low & MASKS[bits]
        if name == "idiv":
            whole, divisor = signed(whole, 2 * bits), signed(divisor, bits)
        quotient = abs(whole) // abs(divisor) * (1 if (whole < 0) == (divisor < 0) else -1)  # rounded toward zero
        registers["rax"] = quotient & MASKS[bits]
        registers["rdx"] = (whole - quotient * divisor) & MASKS[bits]

    return run
