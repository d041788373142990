"""The state of a processor that runs a compiled function: registers, flags and the stack, as far as integers go.

Only control flow and addresses are followed. A value that depends on the data of arrays is unknown (None), and so is
everything computed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from roofdsl.incore.assembly import Immediate, Memory, Operand, Register

STACK, STACK_BYTES = 0x7FFF_0000_0000, 1 << 17
DATA = 0x1000_0000
"""The first address of the text's data symbols, far from any array."""
FUNCTIONS = 0x6000_0000_0000
"""The first address of functions that are not in the text, which lie one after another."""

MASKS = {bits: (1 << bits) - 1 for bits in (8, 16, 32, 64, 128, 256, 512)}

Flags = tuple[str, int, int, int]
"""The last instruction that set the flags: its kind (`sub`, `dec`, `add`, `inc`, `and`, `shift`, `carry`, `product`),
two numbers and their bits. For `carry` and `product`, only the first number counts: the carry, which for a product is
the overflow, too.
"""

Read = Callable[[], "int | None"]
Write = Callable[["int | None"], None]
Effect = Callable[[], None]
"""The effect of an instruction on a state."""


class Numbers(NamedTuple):
    """Integers in memory, starting at address `begin`, each of `size` bytes: an index array, as a numpy array of one
    dimension.
    """

    begin: int
    size: int
    values: Any


class Registers(dict[str, "int | None"]):
    """The values of registers by family; None if unknown.

    parts: of unknown registers of which instructions on 8 or 16 bits have written a part, the mask of that part and its
    value. A new value of the whole register ends it.
    """

    def __init__(self) -> None:
        super().__init__({"": 0})
        self.parts: dict[str, tuple[int, int]] = {}

    def __setitem__(self, family: str, value: int | None) -> None:
        super().__setitem__(family, value)
        self.parts.pop(family, None)

    def masked(self, family: str, mask: int) -> int | None:
        """The bits of a mask; None if some of them are unknown."""
        value = self.get(family)
        if value is not None:
            return value & mask
        known, part = self.parts.get(family, (0, 0))
        return part & mask if known & mask == mask else None

    def write_part(self, family: str, mask: int, value: int | None) -> None:
        """Writes the bits of a mask, and leaves the others as they are."""
        before = self.get(family)
        known, part = self.parts.get(family, (0, 0)) if before is None else (MASKS[64], before)
        known, part = known & ~mask, part & ~mask
        if value is not None:
            known, part = known | mask, part | value & mask
        if known == MASKS[64]:
            self[family] = part
        else:
            self[family] = None
            self.parts[family] = known, part


class State:
    """Registers by family, the flags, and the bytes of the stack.

    known: which bytes of the stack have a known value. written: (address, size) of the stores to the stack. addresses:
    of data symbols and of outside functions, whose names `outside` gives by address. blocks: the bytes of data symbols
    by address.
    """

    def __init__(self, data: Mapping[str, bytes]) -> None:
        self.registers = Registers()
        self.flags: Flags | None = None
        self.stack = bytearray(STACK_BYTES)
        self.known = bytearray(STACK_BYTES)
        self.written: set[tuple[int, int]] = set()
        self.addresses: dict[str, int] = {}
        self.outside: dict[int, str] = {}
        self.blocks: dict[int, bytes] = {}
        self.numbers: list[Numbers] = []  # arrays of integers whose values are known
        self.looked_up = 0  # how often one of them was read
        at = DATA
        for name, block in data.items():
            self.addresses[name] = at
            self.blocks[at] = block
            at += -(-len(block) // 64) * 64 + 64

    def address_of(self, symbol: str) -> int:
        """A symbol's address; a symbol that the text does not define is an outside function."""
        if symbol not in self.addresses:
            at = FUNCTIONS + 16 * len(self.outside)
            self.addresses[symbol] = at
            self.outside[at] = symbol
        return self.addresses[symbol]

    def forget_called(self) -> None:
        """Makes unknown what a called function may change."""
        for register in ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11"):
            self.registers[register] = None
        for name in list(self.registers):
            if name[:1] in ("v", "k"):
                self.registers[name] = None
        self.flags = None

    # ---- memory ----

    def load(self, at: int | None, size: int) -> int | None:
        """The number in memory; None if it is unknown: never written, or in an array without known values."""
        if at is None:
            return None
        k = at - STACK
        if 0 <= k <= STACK_BYTES - size:
            if self.known.find(0, k, k + size) >= 0:
                return None
            return int.from_bytes(self.stack[k : k + size], "little")
        if DATA <= at < DATA + (1 << 28):
            for begin, block in self.blocks.items():
                if begin <= at and at + size <= begin + len(block):
                    return int.from_bytes(block[at - begin : at - begin + size], "little")
        for numbers in self.numbers:
            if 0 <= at - numbers.begin < numbers.size * len(numbers.values):
                self.looked_up += 1
                k, rest = divmod(at - numbers.begin, numbers.size)
                return int(numbers.values[k]) if size == numbers.size and not rest else None
        return None

    def store(self, at: int | None, size: int, value: int | None) -> None:
        """Writes a number; a number outside the stack belongs to an array and is forgotten."""
        if at is None:
            return
        k = at - STACK
        if not 0 <= k <= STACK_BYTES - size:
            return
        self.written.add((at, size))
        if value is None:
            self.known[k : k + size] = bytes(size)
            return
        self.stack[k : k + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        self.known[k : k + size] = b"\x01" * size

    # ---- operands ----

    def address(self, operand: Memory) -> Read:
        """A function that gives the address."""
        registers, d = self.registers, operand.displacement
        if operand.symbol:
            d += self.address_of(operand.symbol)
            if operand.base in ("", "rip") and not operand.index:
                return lambda: d
        if operand.vector_index:
            return lambda: None
        base, index, scale = operand.base, operand.index, operand.scale
        if not index:

            def plain() -> int | None:
                b = registers.get(base)
                return None if b is None else (b + d) & 0xFFFF_FFFF_FFFF_FFFF

            return plain

        def indexed() -> int | None:
            b, i = registers.get(base), registers.get(index)
            return None if b is None or i is None else (b + i * scale + d) & 0xFFFF_FFFF_FFFF_FFFF

        return indexed

    def reader(self, operand: Operand, bits: int) -> Read:
        """A function that reads `bits` of an operand, without sign."""
        if isinstance(operand, Immediate):
            value = operand.value + (self.address_of(operand.symbol) if operand.symbol else 0) & MASKS[bits]
            return lambda: value
        if isinstance(operand, Memory):
            at, size = self.address(operand), bits // 8
            return lambda: self.load(at(), size)
        registers, family, mask = self.registers, operand.family, MASKS[bits]
        if operand.high:

            def high() -> int | None:
                v = registers.masked(family, 0xFF00)
                return None if v is None else v >> 8

            return high
        if bits == 64 and not operand.is_vector:
            return lambda: registers.get(family)

        def part() -> int | None:
            return registers.masked(family, mask)

        return part

    def writer(self, operand: Operand, bits: int) -> Write:
        """A function that writes `bits` of an operand; parts below 32 bits leave the others as they are."""
        if isinstance(operand, Memory):
            at, size = self.address(operand), bits // 8
            return lambda value: self.store(at(), size, value)
        assert isinstance(operand, Register)
        registers, family, mask = self.registers, operand.family, MASKS[bits]
        if bits >= 32:

            def whole(value: int | None) -> None:
                registers[family] = None if value is None else value & mask

            return whole
        shift = 8 if operand.high else 0

        def part(value: int | None) -> None:
            registers.write_part(family, mask << shift, None if value is None else value << shift)

        return part


# ---- effects ----


def copied(read: Read, write: Write) -> Effect:
    """Writes what is read."""

    def run() -> None:
        write(read())

    return run


def combined(a: Read, b: Read, operation: Callable[[int, int], int]) -> Read:
    """Reads the result of an operation on two numbers; unknown if one of them is."""

    def run() -> int | None:
        x, y = a(), b()
        return None if x is None or y is None else operation(x, y)

    return run


# ---- conditions ----


def signed(value: int, bits: int) -> int:
    """A number in two's complement as a signed one."""
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def _flag_values(flags: Flags) -> tuple[bool | None, bool, bool, bool]:
    """Carry (None if it is unknown), zero, sign and overflow."""
    kind, a, b, bits = flags
    if kind == "carry":  # set by bit tests: only the carry counts
        return bool(a), False, False, False
    if kind == "product":
        return bool(a), False, False, bool(a)
    mask = MASKS[bits]
    if kind in ("sub", "dec"):
        result, carry = (a - b) & mask, a < b
        overflow = bool((a ^ b) & (a ^ result) & (mask ^ mask >> 1))
    elif kind in ("add", "inc"):
        result, carry = (a + b) & mask, a + b > mask
        overflow = bool((a ^ result) & (b ^ result) & (mask ^ mask >> 1))
    else:
        result, carry, overflow = a & b, False, False
    known = None if kind in ("inc", "dec", "shift") else carry  # these keep the carry, or shift it out
    return known, result == 0, bool(result >> (bits - 1) & 1), overflow


_SYNONYMS = {
    "z": "e", "nz": "ne", "c": "b", "nae": "b", "nb": "ae", "nc": "ae", "na": "be", "nbe": "a", "nge": "l", "nl": "ge",
    "ng": "le", "nle": "g",
}  # fmt: skip
_OPPOSITE = {"ne": "e", "ae": "b", "a": "be", "ge": "l", "g": "le", "ns": "s", "no": "o", "np": "p"}


CONDITIONS = frozenset((*_SYNONYMS, *_SYNONYMS.values(), *_OPPOSITE, *_OPPOSITE.values()))
"""Every condition that the name of an instruction may end in."""


def plain_condition(condition: str) -> str:
    """The canonical name of a condition: `z` is `e`."""
    return _SYNONYMS.get(condition, condition)


def holds(condition: str, flags: Flags | None) -> bool | None:
    """Whether a condition (`e`, `b`, `le`, ...) holds for these flags; None if that is unknown."""
    if flags is None:
        return None
    condition = plain_condition(condition)
    if condition in _OPPOSITE:
        found = holds(_OPPOSITE[condition], flags)
        return None if found is None else not found
    carry, zero, sign, overflow = _flag_values(flags)
    # Bit tests define the carry alone, products carry and overflow, shifts zero and sign; the other flags have no known
    # values.
    defined = {"carry": ("b",), "product": ("b", "o"), "shift": ("e", "be", "s")}.get(flags[0])
    if defined is not None and condition not in defined:
        return None
    match condition:
        case "e":
            return zero
        case "b":
            return carry
        case "be":  # known even after `dec`, whose carry is unknown, if the result is 0
            return True if zero else carry
        case "s":
            return sign
        case "o":
            return overflow
        case "l":
            return sign != overflow
        case "le":
            return zero or sign != overflow
    return None
