"""Memory in bytes, as C lays it out on x86-64 Linux, with a record of the accesses of arrays."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Scalar:
    """A number: its format in `struct`."""

    code: str
    size: int

    @property
    def align(self) -> int:
        return self.size

    @property
    def is_float(self) -> bool:
        return self.code in "df"


@dataclass(frozen=True)
class Pointer:
    to: Any
    size: int = 8
    align: int = 8


@dataclass(frozen=True)
class Array:
    of: Any
    count: int

    @property
    def size(self) -> int:
        return int(self.of.size) * self.count

    @property
    def align(self) -> int:
        return int(self.of.align)


@dataclass
class Structure:
    fields: dict[str, tuple[int, Any]] = field(default_factory=dict)
    size: int = 0
    align: int = 1


@dataclass
class Value:
    """A number, an address, or the bytes of a structure. data: whether it depends on floating-point data."""

    number: Any
    type: Any
    data: bool = False


@dataclass
class Block:
    """A piece of memory. name: under which its accesses are recorded; empty for scalars, which live in registers."""

    name: str
    base: int
    bytes: bytearray


@dataclass(frozen=True)
class Access:
    """A load or store of `size` bytes at byte `at` of an array."""

    array: str
    at: int
    size: int
    is_write: bool


class Memory:
    """Pieces of memory. `accesses`: of arrays, in order."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.accesses: list[Access] = []
        self.is_data: dict[int, bool] = {}  # whether what a variable holds depends on floating-point data
        self.parts: list[tuple[int, int, str]] = []  # arrays inside other memory: address, bytes, name
        self.next = 4096

    def allocate(self, size: int, name: str = "", content: bytes | None = None) -> int:
        """A new piece of memory; its address."""
        block = Block(name, self.next, bytearray(content if content is not None else size))
        self.blocks.append(block)
        self.next += (size + 4095) // 4096 * 4096 + 4096
        return block.base

    def block(self, address: int) -> Block:
        """The piece of memory that an address lies in."""
        return next(b for b in self.blocks if b.base <= address < b.base + max(1, len(b.bytes)))

    def load(self, address: int, type_: Any) -> Value:
        """What is stored at an address."""
        if isinstance(type_, Array):
            return Value(address, Pointer(type_.of))
        block = self.block(address)
        at = address - block.base
        assert at + type_.size <= len(block.bytes), f"a load outside {block.name}"
        if isinstance(type_, Structure):
            self._record(block, at, type_, False)
            return Value(bytes(block.bytes[at : at + type_.size]), type_)
        code = type_.code if isinstance(type_, Scalar) else "Q"
        number = struct.unpack_from(f"<{code}", block.bytes, at)[0]
        self._record(block, at, type_, False)
        known = bool(block.name) or self.is_data.get(address, True)
        return Value(number, type_, code in "df" and known)

    def store(self, address: int, type_: Any, value: Value) -> None:
        """Stores a value, converted to the type."""
        block = self.block(address)
        at = address - block.base
        assert at + type_.size <= len(block.bytes), f"a store outside {block.name}"
        if isinstance(type_, Structure):
            block.bytes[at : at + type_.size] = value.number
        else:
            code = type_.code if isinstance(type_, Scalar) else "Q"
            number = float(value.number) if code in "df" else int(value.number)
            if code in "BIQ":
                number %= 1 << 8 * type_.size
            struct.pack_into(f"<{code}", block.bytes, at, number)
        self.is_data[address] = value.data or isinstance(type_, Structure)
        self._record(block, at, type_, True)

    def _record(self, block: Block, at: int, type_: Any, is_write: bool) -> None:
        """An access of an array; that of a structure is one of each of its members."""
        address = block.base + at
        name, base = block.name, block.base
        for start, size, inner in self.parts:
            if start <= address < start + size:
                name, base = inner, start
        if isinstance(type_, Structure):
            for offset, own in type_.fields.values():
                self._record(block, at + offset, own, is_write)
        elif isinstance(type_, Array):
            for k in range(type_.count):
                self._record(block, at + k * type_.of.size, type_.of, is_write)
        elif name:
            self.accesses.append(Access(name, address - base, type_.size, is_write))
