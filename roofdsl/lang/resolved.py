"""Machines with their units resolved: what `check` gives and `roofdsl.machine` reads.

Every number is exact and plain: bytes, bytes/s, operations/s, seconds, hertz. `source` is the line's own note.
"""

from __future__ import annotations

from fractions import Fraction

from roofdsl.lang.record import Record, field
from roofdsl.lang.source import Source, Span

_NOWHERE = Span(1, 1, 1, 1)


class Peak(Record):
    """`peak TYPE [CLASS] RATE`: `rate` in operations/s.

    `cls` is fma, min, div, special, a special function such as exp, tensor, tensor_sparse, ''.
    """

    type: str
    cls: str
    rate: Fraction
    source: str = ""
    span: Span = field(compare=False, repr=False, default=_NOWHERE)


class Pipes(Record):
    """`pipes separate add mul`: the adder and the multiplier are two; with `div` the divider is a third.

    `kinds` is ('add', 'mul') or ('add', 'div', 'mul').
    """

    kinds: tuple[str, ...]
    source: str = ""
    span: Span = field(compare=False, repr=False, default=_NOWHERE)


class Cache(Record):
    """`cache`: `size` in bytes of one copy; `bandwidth` in bytes/s of all copies together; `line`, `sector` in bytes.

    What the file does not say is None; `copies` is then 1. `duplex`: loads and stores have `bandwidth` each. `beside`
    in bytes/s too.
    """

    name: str
    size: int
    bandwidth: Fraction
    line: int | None = None
    sector: int | None = None
    ways: int | None = None
    copies: int = 1
    write_allocate: bool | None = None
    duplex: bool = False
    beside: Fraction | None = None
    source: str = ""
    span: Span = field(compare=False, repr=False, default=_NOWHERE)


class Memory(Record):
    """`memory`: `size` in bytes, `bandwidth` in bytes/s, `line` in bytes. The first one is the last level."""

    name: str
    size: int
    bandwidth: Fraction
    line: int | None = None
    duplex: bool = False
    source: str = ""
    span: Span = field(compare=False, repr=False, default=_NOWHERE)


class Ceiling(Record):
    """`ceiling "label" TARGET RATE`: `target` is an element type (`rate` in operations/s) or a level (bytes/s).

    `is_level` tells which; `cls` is the class of operations, '' unless the file names one.
    """

    label: str
    target: str
    cls: str
    is_level: bool
    rate: Fraction
    source: str = ""
    span: Span = field(compare=False, repr=False, default=_NOWHERE)


class Link(Record):
    """`link NAME: A -> B BANDWIDTH` in bytes/s; `both_ways` for `<->`. A, B name memories or machines."""

    name: str
    a: str
    b: str
    both_ways: bool
    bandwidth: Fraction
    source: str = ""
    span: Span = field(compare=False, repr=False, default=_NOWHERE)


class Launch(Record):
    """`launch TIME` in seconds."""

    time: Fraction
    source: str = ""
    span: Span = field(compare=False, repr=False, default=_NOWHERE)


class Clock(Record):
    """`clock FREQUENCY` in hertz."""

    frequency: Fraction
    source: str = ""
    span: Span = field(compare=False, repr=False, default=_NOWHERE)


class Units(Record):
    """`units N`: processors, cores or multiprocessors."""

    count: int
    source: str = ""
    span: Span = field(compare=False, repr=False, default=_NOWHERE)


class Multiprocessor(Record):
    """`multiprocessor`: what one of the machine's units holds at a time; None where the file does not say.

    warp: threads that execute together. warps, blocks: most of them resident. block_threads: most threads of a block.
    registers: of 32 bits. shared: bytes of shared memory. schedulers: parts that registers and warps are dealt to.
    """

    warp: int
    warps: int | None = None
    blocks: int | None = None
    block_threads: int | None = None
    registers: int | None = None
    shared: int | None = None
    schedulers: int = 1
    source: str = ""
    span: Span = field(compare=False, repr=False, default=_NOWHERE)


class Latency(Record):
    """`latency LEVEL TIME`: seconds from asking a cache or memory to having the answer."""

    level: str
    time: Fraction
    source: str = ""
    span: Span = field(compare=False, repr=False, default=_NOWHERE)


class Cost(Record):
    """`cost CLASS N`: one operation of the class takes the time of `value` unfused ones."""

    cls: str
    value: Fraction
    source: str = ""
    span: Span = field(compare=False, repr=False, default=_NOWHERE)


Entry = Peak | Pipes | Cache | Memory | Ceiling | Link | Launch | Clock | Units | Multiprocessor | Latency | Cost


class Machine(Record):
    """A resolved machine: `entries` in the order of the file; `sources` are its own `source "..."` lines."""

    name: str
    title: str
    entries: tuple[Entry, ...]
    sources: tuple[str, ...]
    source: Source = field(compare=False, repr=False)
    span: Span = field(compare=False, repr=False, default=_NOWHERE)
