"""The cost of lines that a loop takes one by one: lines that come into the first cache, strided walks, other pages.

A walk goes through a part of a buffer at a stride, with one load or store per line, and starts again at its end. All of
its lines are then in one level: too many to stay in the nearer level, whose sets get more of them than they have ways,
and few enough for this one. Hardware does not prefetch them, or not all of them, as it does streams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from roofdsl.lang.record import Record
from roofdsl.measure.assembled import Stopwatch, is_known, loops

LINE, PAGE = 64, 4096

STRIDE = 8 * LINE
"""Bytes from line to line of a walk: an eighth of the sets, so an eighth of a cache holds them."""

KNOWN_PAGES = 4 << 20
"""Bytes that walks inside a cache span at most: beyond, the addresses of pages would take time."""

MEMORY = 512 << 20
"""Bytes of memory that are walked through, or twice the last cache if that is more."""

FARTHEST = 1 << 31
"""Distances from there on do not fit into an instruction."""

PAGES = (256, 512, 1024, 1536, 2048, 3072, 4096, 8192)
"""Pages that are walked over, one line of each."""

LOADS_A_LINE = 8
"""Loads of 256 bits, more than a line from the second cache takes by itself."""

HIT_BYTES = 32 * LOADS_A_LINE - LINE
"""Of these loads, what a line's first two did not bring in."""

BESIDE = 1.05
"""Lines that come in slow the loads if they take so many times as long as without."""

_UNROLLED = 8
_LEAST_LINES = 20_000
_RUNS = {False: 5, True: 3}


ADDITIONS = 48
"""Independent additions beside each line of a stream: more than a line from memory takes by itself."""

PAGE_LINES = PAGE // LINE


class Walked(Record):
    """The bytes per second of lines that loads take one by one, and the time that stores add, as a rate, or None.

    restart_s: the time that each page of a stream adds to the longer of the stream and a computation beside it; None if
    nothing.
    """

    loads_per_s: float
    stores_per_s: float | None
    restart_s: float | None = None


class WalkRates(Record):
    """fill_per_s: bytes that come into the first cache while it serves nothing, None if it serves its loads meanwhile.
    hits_per_s: the rate at which loads from the first cache add to the time of a stream from the second one, None if
    they run beside it.

    levels: by name, without the first cache. pages, walk_cycles: the number of 4 KiB pages in the TLB, and the time of
    another one; None if the times do not show it.
    """

    fill_per_s: float | None
    levels: Mapping[str, Walked]
    pages: int | None
    walk_cycles: Fraction | None
    hits_per_s: float | None = None


class Span(Record):
    """A part of the buffer, in bytes, that is walked at STRIDE; its lines are then in a known level.

    passes: the number of walks before the lines of the first one come again, each at the lines after those of the
    previous one.
    """

    level: str
    bytes: int
    passes: int = 1

    @property
    def lines(self) -> int:
        return self.bytes // STRIDE * self.passes


def spans(capacities: Sequence[tuple[str, int]], room: int) -> list[Span]:
    """The span to walk for each level behind the first, given (name, bytes), nearest first, the memory last.

    room: bytes of the buffer. A level is left out if no walk's lines are in it alone.
    """
    found = []
    for k, (name, size) in enumerate(capacities[1:], 1):
        nearer = capacities[k - 1][1]
        if k == len(capacities) - 1:
            span = _whole(min(room, max(MEMORY, 2 * nearer + 2 * _UNROLLED * STRIDE)) - STRIDE, STRIDE)
            if 2 * nearer <= span < FARTHEST:
                found.append(Span(name, span, STRIDE // LINE))
            continue
        span = _whole(min(max(2 * nearer, min(int((nearer * size) ** 0.5), KNOWN_PAGES)), room), STRIDE)
        if 2 * nearer - STRIDE * _UNROLLED <= span <= size // 2:
            found.append(Span(name, span))
    return found


def _whole(span: int, stride: int) -> int:
    return span // (_UNROLLED * stride) * _UNROLLED * stride


def sweep(line: Sequence[str], stride: int, span: int, shift: int = 0) -> list[str]:
    """A round of a loop over `span` bytes: `line` at 8 places, whose address it writes as `{at}(%rdi,%rax)`.

    At the end of the span, the loop starts again, `shift` bytes further than before.
    """
    text = [one.format(at=k * stride) for k in range(_UNROLLED) for one in line]
    step = (f"addq ${_UNROLLED * stride}, %rax", f"leaq {shift - span}(%rax), %rcx")
    return [*text, *step, f"cmpq ${span}, %rax", "cmovaeq %rcx, %rax"]


_BEGIN = ("xorl %eax, %eax", "xorl %edx, %edx", "vpxor %ymm14, %ymm14, %ymm14", "vpxor %ymm15, %ymm15, %ymm15")
_LOAD, _STORE = ("movq {at}(%rdi,%rax), %rdx",), ("movq %rdx, {at}(%rdi,%rax)",)
_COMPUTED = (
    "vmovups {at}(%rdi,%rax), %ymm0",
    "vmovups 32+{at}(%rdi,%rax), %ymm1",
    *(f"vaddps %ymm14, %ymm15, %ymm{2 + k % 8}" for k in range(ADDITIONS)),
)
_MANY = tuple(f"vmovups {32 * (k % 2)}+{{at}}(%rdi,%rax), %ymm{k}" for k in range(LOADS_A_LINE))


def walk_rates(
    capacities: Sequence[tuple[str, int]],
    address: int,
    room: int,
    quick: bool,
    tell: Callable[[float, str], None] = lambda part, what: None,
) -> WalkRates | None:
    """Measures on the core that the caller is pinned to, in a buffer of `room` bytes at `address`, which it overwrites.

    capacities: (name, bytes) of the caches and the memory, nearest first. None if this processor's instructions are
    unknown.
    """
    if not is_known() or len(capacities) < 2:
        return None
    begin = -(-address // PAGE) * PAGE
    room -= begin - address
    walks = spans(capacities, room)
    near = _whole(capacities[0][1] // 4, LINE)
    behind = _whole(min(4 * capacities[0][1], (near + capacities[1][1]) // 2), LINE)
    pages = [n for n in PAGES if n * (PAGE + LINE) <= room]
    texts = _texts(walks, near, behind, pages)
    watch = Stopwatch(loops(texts, dict.fromkeys(texts, _BEGIN)), begin, _RUNS[quick])

    def cycles(name: str, lines: int) -> float:
        """The cycles of a line; a run goes over all lines a whole number of times, and takes at least some
        microseconds.
        """
        tell(list(texts).index(name) / len(texts), name.replace("_", " "))
        times = -(-_LEAST_LINES // lines)  # once for a walk of several passes, which would run beyond the buffer
        return watch.cycles_in_one(name, times * lines // _UNROLLED) / _UNROLLED

    filled, served = cycles("filled_behind", behind // LINE), cycles("filled_near", near // LINE)
    fill, hits = filled - served, filled - cycles("filled_alone", behind // LINE)
    loads = [cycles(f"load_{k}", w.lines) for k, w in enumerate(walks)]
    stores = [cycles(f"store_{k}", w.lines) for k, w in enumerate(walks)]
    alone = cycles("computed_near", near // LINE)
    longer = [max(alone, cycles(f"streamed_{k}", w.bytes // LINE)) for k, w in enumerate(walks)]
    computed = [cycles(f"computed_{k}", w.bytes // LINE) for k, w in enumerate(walks)]
    by_pages = {n: cycles(f"pages_{n}", n) for n in pages}
    hertz = watch.hertz()
    levels = {
        w.level: Walked(
            LINE * hertz / load,
            LINE * hertz / (store - load) if store > 1.1 * load else None,
            (both - apart) * PAGE_LINES / hertz if both > 1.02 * apart else None,
        )
        for w, load, store, both, apart in zip(walks, loads, stores, computed, longer, strict=True)
    }
    known, walk = knee(by_pages)
    of_hits = HIT_BYTES * hertz / hits if filled > BESIDE * served else None
    return WalkRates(LINE * hertz / fill if fill > 0.1 else None, levels, known, walk, of_hits)


def _texts(walks: Sequence[Span], near: int, behind: int, pages: Sequence[int]) -> dict[str, list[str]]:
    """The loops to be timed, by name: over lines of the nearest cache and behind it, along strides, and over pages."""
    return {
        "filled_near": sweep(_MANY, LINE, near),
        "filled_behind": sweep(_MANY, LINE, behind),
        "filled_alone": sweep(_COMPUTED[:2], LINE, behind),
        **{
            f"{kind}_{k}": sweep(line, STRIDE, w.bytes, LINE if w.passes > 1 else 0)
            for kind, line in (("load", _LOAD), ("store", _STORE))
            for k, w in enumerate(walks)
        },
        **{f"streamed_{k}": sweep(_COMPUTED[:2], LINE, w.bytes) for k, w in enumerate(walks)},
        "computed_near": sweep(_COMPUTED, LINE, near),
        **{f"computed_{k}": sweep(_COMPUTED, LINE, w.bytes) for k, w in enumerate(walks)},
        **{f"pages_{n}": sweep(_LOAD, PAGE + LINE, n * (PAGE + LINE)) for n in pages},
    }


def knee(by_pages: Mapping[int, float]) -> tuple[int | None, Fraction | None]:
    """(pages in the TLB, cycles for another page) from the cycles of a walk by its pages; (None, None) if there is no
    knee.

    The pages are the most whose walk takes less than half way from the shortest to the longest.
    """
    if not by_pages:
        return None, None
    least, most = min(by_pages.values()), by_pages[max(by_pages)]
    if most < 3 * least:
        return None, None
    known = max(n for n, each in by_pages.items() if each <= (least + most) / 2)
    return known, Fraction(round(most * 10), 10)
