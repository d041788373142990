"""Traffic by a brute-force fully associative LRU: language.md "Traffic, Q(Z)" and rules 8 to 10, word by word.

Decisions where the text is silent:
- `once` with scalars: an `inout` scalar is one datum and counts its size once; `out` once; `in` and `temp` nothing.
- Scalars count by their declaration, whether or not a statement that uses them is executed.
- `once` with `temp` arrays: every residency costs one line, those of `temp` arrays too.
- The largest line, and the multiples that --line must be, are over all declared arrays, used or not.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from operator import mul

from roofdsl.loops.model import Array, Kernel
from tests.oracle.enumerate import run


@dataclass(frozen=True)
class Traffic:
    """Bytes between fast and slow memory; loads and stores are None in `once`, which does not tell them apart."""

    loads: int | None
    stores: int | None
    bytes: int


@dataclass(frozen=True)
class Residency:
    """One stay of a line in fast memory."""

    line_bytes: int
    begins_with_write: bool
    stored: bool


def traffic(
    kernel: Kernel, params: Mapping[str, int], cache_bytes: int | None, line_bytes: int | None, convention: str
) -> Traffic:
    """Loads, stores and bytes in one convention. Raises ValueError for a line or a cache that rule 10 forbids."""
    return cost(kernel, residencies(kernel, params, cache_bytes, line_bytes), convention)


def cost(kernel: Kernel, stays: list[Residency], convention: str) -> Traffic:
    """What these residencies and the kernel's scalars cost in one convention."""
    scalars = [a for a in kernel.arrays if a.is_scalar]
    scalar_loads = sum(a.type.bytes for a in scalars if a.intent == "inout")
    scalar_stores = sum(a.type.bytes for a in scalars if a.intent in ("out", "inout"))
    if convention == "once":
        return Traffic(None, None, sum(r.line_bytes for r in stays) + scalar_stores)
    if convention == "load_store":
        loads = sum(r.line_bytes for r in stays if not r.begins_with_write) + scalar_loads
    elif convention == "write_allocate":
        loads = sum(r.line_bytes for r in stays) + scalar_loads
    else:
        raise ValueError(convention)
    stores = sum(r.line_bytes for r in stays if r.stored) + scalar_stores
    return Traffic(loads, stores, loads + stores)


def residencies(
    kernel: Kernel, params: Mapping[str, int], cache_bytes: int | None, line_bytes: int | None
) -> list[Residency]:
    """Every residency, in the order in which they end. `cache_bytes` None is unbounded."""
    arrays = {a.name: a for a in kernel.arrays if not a.is_scalar}
    for a in arrays.values():
        if line_bytes is not None and (line_bytes < a.type.bytes or line_bytes % a.type.bytes):
            raise ValueError(f"a line of {line_bytes} B is not a multiple of an element of {a.name}")
        if cache_bytes is not None and cache_bytes < (line_bytes or a.type.bytes):
            raise ValueError(f"a cache of {cache_bytes} B holds no line of {a.name}")

    done: list[Residency] = []
    held: OrderedDict[tuple[str, int], list[bool]] = OrderedDict()  # line -> [begins with a write, written]
    held_bytes = 0
    strides = {a.name: byte_strides(a, params) for a in arrays.values()}
    line_of = {a.name: line_bytes or a.type.bytes for a in arrays.values()}
    for execution in run(kernel, params):
        for name, index, is_write in execution.accesses:
            line = (name, sum(map(mul, index, strides[name])) // line_of[name])
            if line not in held:
                held[line] = [is_write, False]
                held_bytes += line_of[name]
            held.move_to_end(line)
            held[line][1] |= is_write
            while cache_bytes is not None and held_bytes > cache_bytes:
                (left, _), (began, written) = held.popitem(last=False)
                held_bytes -= line_of[left]
                done.append(Residency(line_of[left], began, stored=written))
    for (name, _), (began, written) in held.items():
        done.append(Residency(line_of[name], began, stored=written and arrays[name].intent != "temp"))
    return done


def address(array: Array, index: tuple[int, ...], params: Mapping[str, int]) -> int:
    """The byte address of an element, counted from the start of its array."""
    return sum(map(mul, index, byte_strides(array, params)))


def byte_strides(array: Array, params: Mapping[str, int]) -> tuple[int, ...]:
    """How far apart neighbors along each dimension lie, in bytes."""
    dims = [d.evaluate(params) for d in array.dims]
    strides, apart = [], array.type.bytes
    for d in dims if array.column_major else reversed(dims):
        strides.append(apart)
        apart *= d
    return tuple(strides if array.column_major else reversed(strides))


def footprint(kernel: Kernel, params: Mapping[str, int]) -> dict[str, int]:
    """Bytes of the distinct elements touched, by array; 0 for an array that is not touched."""
    touched: dict[str, set[tuple[int, ...]]] = {a.name: set() for a in kernel.arrays if not a.is_scalar}
    for execution in run(kernel, params):
        for access in execution.accesses:
            touched[access.array].add(access.index)
    sizes = {a.name: a.type.bytes for a in kernel.arrays}
    return {name: len(elements) * sizes[name] for name, elements in touched.items()}


def register_bytes(kernel: Kernel, params: Mapping[str, int]) -> int:
    """Bytes between the registers and the nearest cache: every access at its element's size (rule 10)."""
    sizes = {a.name: a.type.bytes for a in kernel.arrays}
    return sum(sizes[a.array] for e in run(kernel, params) for a in e.accesses)
