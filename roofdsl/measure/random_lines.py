"""The rate of randomly accessed lines: independent loads and stores, each from or to a different line, as gathers and
scatters make them.

A walk visits every slot of a window once, in an order that looks random, and then goes on to the next window. The
addresses are computed, not loaded, so that no other data come through the caches. No load waits for another one: the
rate is that of as many requests at a time as a core can have under way.

A window in a cache is up to four times as large as the nearer cache: it fits, and the TLB holds its pages. Memory is
walked through in windows, in passes each of which visits another line of every slot, as in `walk_rates`: hardware
fetches pairs of lines, and the second line of a pair must not be found in a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from roofdsl.lang.record import Record
from roofdsl.measure.assembled import is_known, loops, page_from
from roofdsl.measure.shared_core import pooled_watch
from roofdsl.measure.stopwatch import Stopwatch
from roofdsl.measure.walk_loops import KNOWN_PAGES, LINE, PAGE, STRIDE, spans

MOST_PAGES = 2048
"""The most pages of a window in a cache: as many as the TLBs of server processors hold."""

_UNROLLED = 8
_FIRST, _SECOND = 0x9E3779B1, 0x85EBCA6B
"""Odd factors without a pattern in their bits (those of the hash functions xxHash and MurmurHash3)."""

_LEAST_LINES = 20_000
_RUNS = {False: 5, True: 3}


class RandomRates(Record):
    """Bytes per second of one level's randomly accessed lines; stores_per_s: the rate at which updating them adds to
    the time, None if it adds nothing.
    """

    loads_per_s: float
    stores_per_s: float | None


class Window(Record):
    """What a walk goes through: `windows` windows of 2**bits slots, each of `slot` bytes. Lines come again after
    `passes` passes.
    """

    slot: int
    bits: int
    windows: int = 1
    passes: int = 1

    @property
    def bytes(self) -> int:
        """The bytes of one window."""
        return self.slot << self.bits

    @property
    def lines(self) -> int:
        return self.windows * self.passes << self.bits


def windows_of(capacities: Sequence[tuple[str, int]], room: int) -> dict[str, Window]:
    """The windows to walk for each level behind the first, given (name, bytes), nearest first, the memory last.

    room: bytes of the buffer. A level is left out if no walk's lines are in it alone.
    """
    found = {}
    for k, (name, size) in enumerate(capacities[1:-1], 1):
        nearer = capacities[k - 1][1]
        largest = min(4 * nearer, size // 2, MOST_PAGES * PAGE, room)
        bits = (largest // LINE).bit_length() - 1
        if LINE << bits >= 2 * nearer:
            found[name] = Window(LINE, bits)
    memory = [span for span in spans(capacities, room) if span.level == capacities[-1][0]]
    for span in memory:
        bits = (KNOWN_PAGES // STRIDE).bit_length() - 1
        if span.bytes >= KNOWN_PAGES:
            found[span.level] = Window(STRIDE, bits, span.bytes // KNOWN_PAGES, span.passes)
    return found


def place(k: int, bits: int) -> int:
    """The slot that access k takes: every slot once in any 2**bits accesses in a row, in an order that looks random.

    Both products and the shift by half the bits can be undone, so no two k lead to the same slot.
    """
    mask = (1 << bits) - 1
    mixed = k * _FIRST & mask
    return (mixed ^ mixed >> (bits + 1) // 2) * _SECOND & mask


def text_of(window: Window, access: str) -> tuple[list[str], tuple[str, ...]]:
    """(a round of 8 accesses, what comes before the loop); `access` writes the address of its slot as `{at}`.

    The slot of each access is computed as in `place`. Registers: the number of accesses in %rax, its first product in
    %r8, the window's address in %r9, the end of all windows in %r10.
    """
    mask, span = (1 << window.bits) - 1, window.bytes * window.windows
    lines = []
    for k in range(_UNROLLED):
        lines += [
            f"leal {_signed(k * _FIRST)}(%r8), %ecx",
            f"andl ${mask}, %ecx",
            "movl %ecx, %edx",
            f"shrl ${(window.bits + 1) // 2}, %edx",
            "xorl %edx, %ecx",
            f"imull ${_signed(_SECOND)}, %ecx, %ecx",
            f"andl ${mask}, %ecx",
            f"shlq ${window.slot.bit_length() - 1}, %rcx",
            access.format(at="(%r9,%rcx)"),
        ]
    lines += [f"addl ${_signed(_UNROLLED * _FIRST)}, %r8d", f"addq ${_UNROLLED}, %rax"]
    if window.windows > 1:  # the next window, and after the last one the first again, at the next line of each slot
        lines += [f"leaq {window.bytes}(%r9), %rcx", f"testl ${mask}, %eax", "cmoveq %rcx, %r9"]
        lines += [f"leaq {LINE - span}(%r9), %rcx", "cmpq %r10, %r9", "cmovaeq %rcx, %r9"]
    before = ("xorl %eax, %eax", "xorl %r8d, %r8d", "movq %rdi, %r9", f"leaq {span}(%rdi), %r10", "xorl %r11d, %r11d")
    return lines, before


LOAD, UPDATE = "movq {at}, %r11", "incl {at}"
KINDS = {"load": LOAD, "update": UPDATE}


def random_rates(
    capacities: Sequence[tuple[str, int]],
    address: int,
    room: int,
    quick: bool,
    tell: Callable[[float, str], None] = lambda part, what: None,
) -> Mapping[str, RandomRates]:
    """The rates by level, without the first cache, on the core that the caller is pinned to.

    capacities: (name, bytes) of the caches and the memory, nearest first; the buffer of `room` bytes at `address` is
    overwritten. Empty if this processor's instructions are unknown.
    """
    if not is_known() or len(capacities) < 2:
        return {}
    begin = page_from(address)
    windows = windows_of(capacities, room - (begin - address))
    texts, before = {}, {}
    for k, window in enumerate(windows.values()):
        for kind, access in KINDS.items():
            texts[f"random_{kind}_{k}"], before[f"random_{kind}_{k}"] = text_of(window, access)
    if not texts:
        return {}
    watch = Stopwatch(loops(texts, before), begin, _RUNS[quick])
    cycles = {}
    for done, (k, window, kind) in enumerate((k, w, kind) for k, w in enumerate(windows.values()) for kind in KINDS):
        tell(done / len(texts), f"random {kind}s")
        times = -(-_LEAST_LINES // window.lines)  # once for several passes, which would run beyond the buffer
        rounds = times * window.lines // _UNROLLED
        cycles[k, kind] = watch.cycles_in_one(f"random_{kind}_{k}", rounds, pooled_watch(), of_core=False) / _UNROLLED
    hertz = watch.hertz()
    found = {}
    for k, level in enumerate(windows):
        load, update = cycles[k, "load"], cycles[k, "update"]
        added = LINE * hertz / (update - load) if update > 1.1 * load else None
        found[level] = RandomRates(LINE * hertz / load, added)
    return found


def _signed(value: int) -> int:
    """The same 32 bits as a signed number."""
    value &= 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value
