"""The effects of instructions on vectors that hold integers: compilers keep addresses in them, and copy pieces of the
stack.
"""

from __future__ import annotations

from roofdsl.incore.assembly import Immediate, Memory, Operand, Register
from roofdsl.incore.state import MASKS, Effect, State, combined, copied

_MOVES = frozenset((
    "movups", "movaps", "movupd", "movapd", "movdqu", "movdqa", "lddqu", "movdqu64", "movdqa64", "movdqu32", "movdqa32",
    "movdqu8", "movdqu16",
))  # fmt: skip


def vector_effect(name: str, ops: tuple[Operand, ...], state: State) -> Effect | None:
    """Instructions on vector registers that hold integers: compilers keep addresses in them, and copy pieces of the
    stack.
    """
    plain = name.removeprefix("v")
    if any(isinstance(o, Register | Memory) and o.mask for o in ops):
        return None
    if plain in _MOVES and len(ops) == 2:
        bits = max((o.bits for o in ops if isinstance(o, Register)), default=0)
        return copied(state.reader(ops[0], bits), state.writer(ops[1], bits)) if bits >= 128 else None
    if plain in ("movq", "movd") and len(ops) == 2:
        bits = 64 if plain == "movq" else 32
        return copied(state.reader(ops[0], bits), state.writer(ops[1], bits))
    if plain == "pextrq" and len(ops) == 3 and isinstance(ops[0], Immediate):
        lane, read = ops[0].value & 1, state.reader(ops[1], 128)
        return copied(combined(read, lambda: 64 * lane, lambda v, n: v >> n), state.writer(ops[2], 64))
    if plain in ("punpcklqdq", "pinsrq", "paddq", "pbroadcastq"):
        return _lanes(plain, ops, state)
    if plain in ("pxor", "pxorq", "pxord", "xorps", "xorpd") and len(ops) == 3 and ops[0] == ops[1]:
        return copied(lambda: 0, state.writer(ops[2], 512))
    return None


def _lanes(plain: str, ops: tuple[Operand, ...], state: State) -> Effect | None:
    """Instructions on the 64-bit elements of a vector."""
    last = ops[-1]
    assert isinstance(last, Register)
    bits, write = last.bits, state.writer(last, last.bits)
    if plain == "pbroadcastq":
        count = bits // 64
        factor = sum(1 << 64 * k for k in range(count))
        return copied(combined(state.reader(ops[0], 64), lambda: factor, lambda v, f: (v & MASKS[64]) * f), write)
    if len(ops) == 3 and plain == "punpcklqdq" and bits == 128:
        high, low = state.reader(ops[0], 64), state.reader(ops[1], 64)
        return copied(combined(high, low, lambda h, v: (h & MASKS[64]) << 64 | v & MASKS[64]), write)
    if len(ops) == 4 and plain == "pinsrq" and isinstance(ops[0], Immediate):
        lane = 64 * (ops[0].value & 1)
        source, whole = state.reader(ops[1], 64), state.reader(ops[2], 128)
        keep = MASKS[128] ^ (MASKS[64] << lane)
        return copied(combined(source, whole, lambda s, v: v & keep | s << lane), write)
    if len(ops) == 3 and plain == "paddq":
        a, b = state.reader(ops[0], bits), state.reader(ops[1], bits)

        def add(x: int, y: int) -> int:
            return sum((((x >> k) + (y >> k)) & MASKS[64]) << k for k in range(0, bits, 64))

        return copied(combined(a, b, add), write)
    return None
