"""The cost of lines that a loop accesses one by one: lines that come into the first cache, strided walks, new pages.

A walk goes through a part of a buffer at a stride, with one load or store per line, and starts again at its end. All of
its lines are then in one level: they are too many for the nearer level, whose sets get more of them than they have
ways, and few enough for this one. Hardware does not prefetch them, or not all of them, as it does streams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from roofdsl.lang.record import Record
from roofdsl.machine.kept import capacity_of
from roofdsl.measure.assembled import Stopwatch, is_known, loops

LINE, PAGE = 64, 4096

STRIDE = 8 * LINE
"""Bytes from line to line of a walk: an eighth of the sets, so an eighth of a cache holds them."""

KNOWN_PAGES = 4 << 20
"""The most bytes that walks inside a cache span: beyond that, finding the addresses of pages would take time."""

MEMORY = 512 << 20
"""The bytes of memory that are walked through, or twice the last cache if that is more."""

FARTHEST = 1 << 31
"""Distances from this one on do not fit into an instruction."""

PAGES = (256, 512, 1024, 1536, 2048, 3072, 4096, 8192)
"""The numbers of pages that are walked over, with one line of each."""

ODD = 3 * LINE
"""Bytes from line to line of a walk through all sets: a small odd number of lines, so that few pages are walked over.
"""

MANY, SOME = 4, 3
"""If all lines of a walk fall into one set, there are this many times the set's ways: for stores, and for loads."""

UPDATED_BYTES = 2 * 2 * LINE
"""The bytes of updates in the first cache for each line of a stream: two lines that are loaded and stored."""

LOADS_A_LINE = 8
"""Loads of 256 bits for each line of a stream: they take longer than the line takes from the second cache."""

HIT_BYTES = 32 * LOADS_A_LINE - LINE
"""The bytes of these loads beyond the stream's own line."""

BESIDE = 1.05
"""Incoming lines count as slowing the loads if these take at least this many times as long as without them."""

_UNROLLED = 8
_LEAST_LINES = 20_000
_RUNS = {False: 5, True: 3}


ADDITIONS = 48
"""Independent additions for each line of a stream: they take longer than the line takes from memory."""

PAGE_LINES = PAGE // LINE


class Walked(Record):
    """The bytes per second of lines that are loaded one by one, and the rate at which stores add to the time, or None.

    restart_s: the time that each page of a stream adds to the longer of the stream and a computation beside it; None if
    nothing. odd_loads_per_s, odd_stores_per_s: the same rates if the lines are an odd number of lines apart.
    """

    loads_per_s: float
    stores_per_s: float | None
    restart_s: float | None = None
    odd_loads_per_s: float | None = None
    odd_stores_per_s: float | None = None


class WalkRates(Record):
    """fill_per_s: the rate at which bytes come into the first cache while it serves nothing, None if it serves loads at
    the same time. hits_per_s: the rate at which loads from the first cache add to the time of a stream from the second
    one, None if the two overlap; updates_per_s: the same for bytes that are loaded and stored again. crowded_per_s: the
    rate at which stores to lines of the second cache add to their loads if all fall into one set of the first one;
    buffers: the lines of one set that loads find in addition to those in its ways.

    past_per_s: the bytes per second of stores that bypass the caches, None if no walk is in memory. levels: by name,
    without the first cache. pages, walk_cycles: the number of 4 KiB pages in the TLB, and the time of a walk to a page
    outside it; None if the times do not show it.
    """

    fill_per_s: float | None
    levels: Mapping[str, Walked]
    pages: int | None
    walk_cycles: Fraction | None
    hits_per_s: float | None = None
    updates_per_s: float | None = None
    crowded_per_s: float | None = None
    buffers: int | None = None
    past_per_s: float | None = None


class Span(Record):
    """A part of the buffer, in bytes, that is walked at STRIDE; its lines are then in a known level.

    passes: the number of walks before the lines of the first one come again; each goes over the lines next to those of
    the previous one.
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


def odd_spans(capacities: Sequence[tuple[str, int]], room: int) -> list[Span]:
    """The same for walks whose lines are ODD bytes apart: these lie in all sets, and are twice as many as the nearer
    level has lines. Only caches are walked, since farther away most of the time goes to finding addresses.
    """
    found = []
    for k, (name, size) in enumerate(capacities[1:-1], 1):
        lines = 2 * capacities[k - 1][1] // LINE
        if 2 * lines * LINE <= size and lines * ODD <= room:
            found.append(Span(name, _whole(lines * ODD, ODD)))
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
_UPDATE = (
    "vmovups {at}(%rdi,%rax), %ymm0",
    "vmovups 32+{at}(%rdi,%rax), %ymm1",
    *(f"vaddps {32 * k}+{{beside}}(%rdi), %ymm15, %ymm{2 + k}" for k in range(4)),
    *(f"vmovups %ymm{2 + k}, {32 * k}+{{beside}}(%rdi)" for k in range(4)),
)
_PAST = ("vmovntps %ymm15, {at}(%rdi,%rax)", "vmovntps %ymm15, 32+{at}(%rdi,%rax)")
_MANY = tuple(f"vmovups {32 * (k % 2)}+{{at}}(%rdi,%rax), %ymm{k}" for k in range(LOADS_A_LINE))


def _updated(behind: int) -> list[str]:
    """A stream of `behind` bytes, and with each of its lines an update of two lines after the stream's end, which stay
    in the first cache; each round updates all of them.
    """
    at = -(-behind // PAGE) * PAGE + 5 * LINE
    text = [one.format(at=k * LINE, beside=at + 2 * LINE * k) for k in range(_UNROLLED) for one in _UPDATE]
    return [*text, *sweep((), LINE, behind)]


def walk_rates(
    capacities: Sequence[tuple[str, int]],
    address: int,
    room: int,
    quick: bool,
    tell: Callable[[float, str], None] = lambda part, what: None,
    *,
    way_bytes: int | None = None,
) -> WalkRates | None:
    """Measures on the core that the caller is pinned to, in a buffer of `room` bytes at `address`, which it overwrites.

    capacities: (name, bytes) of the caches and the memory, nearest first. way_bytes: the first cache's over its ways,
    if the ways are known. None if this processor's instructions are unknown.
    """
    if not is_known() or len(capacities) < 2:
        return None
    begin = -(-address // PAGE) * PAGE
    room -= begin - address
    walks = spans(capacities, room)
    near = _whole(capacities[0][1] // 4, LINE)
    behind = _whole(min(4 * capacities[0][1], (near + capacities[1][1]) // 2), LINE)
    pages = [n for n in PAGES if n * (PAGE + LINE) <= room]
    odd = odd_spans(capacities, room)
    ways = capacities[0][1] // way_bytes if way_bytes else 0
    stored, loaded = (-(-times * ways // _UNROLLED) * _UNROLLED for times in (MANY, SOME))
    if ways < _UNROLLED or stored * (way_bytes or 0) > room:
        stored = loaded = 0
    texts = _texts(walks, near, behind, pages) | _more_texts(odd, behind, stored, loaded, way_bytes or 0)
    if _in_memory(walks, capacities):
        texts["past_caches"] = sweep(_PAST, LINE, walks[-1].bytes)
    watch = Stopwatch(loops(texts, dict.fromkeys(texts, _BEGIN)), begin, _RUNS[quick])

    def cycles(name: str, lines: int) -> float:
        """The cycles per line; a run goes over all lines a whole number of times, in at least some microseconds."""
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
    odd_loads = {w.level: cycles(f"odd_load_{k}", w.bytes // ODD) for k, w in enumerate(odd)}
    odd_stores = {w.level: cycles(f"odd_store_{k}", w.bytes // ODD) for k, w in enumerate(odd)}
    updates = cycles("filled_updated", behind // LINE) - cycles("filled_alone", behind // LINE)
    crowded = cycles("crowded", stored) if stored else 0.0
    crowded_loads = cycles("crowded_loads", loaded) if stored else 0.0
    hit = cycles("crowded_hits", _UNROLLED) if stored else 0.0
    by_pages = {n: cycles(f"pages_{n}", n) for n in pages}
    past = cycles("past_caches", walks[-1].bytes // LINE) if _in_memory(walks, capacities) else None
    hertz = watch.hertz()
    levels = {
        w.level: Walked(
            LINE * hertz / load,
            LINE * hertz / (store - load) if store > 1.1 * load else None,
            (both - apart) * PAGE_LINES / hertz if both > 1.02 * apart else None,
            *_odd_rates(load, odd_loads.get(w.level), odd_stores.get(w.level), LINE * hertz),
        )
        for w, load, store, both, apart in zip(walks, loads, stores, computed, longer, strict=True)
    }
    known, walk = knee(by_pages)
    of_hits = HIT_BYTES * hertz / hits if filled > BESIDE * served else None
    of_updates = UPDATED_BYTES * hertz / updates if of_hits is not None and updates > 0.1 else None
    more = crowded - loads[0] if walks and walks[0].level == capacities[1][0] else 0.0
    return WalkRates(
        LINE * hertz / fill if fill > 0.1 else None, levels, known, walk, of_hits,
        None if of_hits is None or of_updates is None else max(of_hits, of_updates),
        LINE * hertz / more if more > 1.1 * (stores[0] - loads[0]) else None,
        _buffers(crowded_loads, hit, loads[0], loaded, ways) if more else None,
        None if past is None else LINE * hertz / past,
    )  # fmt: skip


def _buffers(each: float, hit: float, load: float, lines: int, ways: int) -> int | None:
    """The lines that loads find in addition to those in the ways of a set. A walk over `lines` lines takes `each`
    cycles per line, one whose lines are all found takes `hit`, and one from the second cache takes `load`. None if
    `each` is not between the other two.
    """
    if not hit < each < load:
        return None
    found = (load - each) / (load - hit)
    return max(0, round(capacity_of(lines, found)) - ways)


def _odd_rates(even: float, load: float | None, store: float | None, per_cycle: float) -> tuple[float | None, ...]:
    """(loads, stores) of walks in all sets, in bytes per second, given the cycles per line; (None, None) if such a load
    is not faster than that of an even walk.
    """
    if load is None or store is None or load > even / 1.1:
        return None, None
    return per_cycle / load, per_cycle / (store - load) if store > 1.1 * load else None


def _in_memory(walks: Sequence[Span], capacities: Sequence[tuple[str, int]]) -> bool:
    return bool(walks) and walks[-1].level == capacities[-1][0]


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


def _more_texts(odd: Sequence[Span], behind: int, stored: int, loaded: int, apart: int) -> dict[str, list[str]]:
    """Walks through all sets, a stream with updates, and walks over `stored` and `loaded` lines of one set, `apart`
    bytes apart.
    """
    of_set = {"crowded": (_STORE, stored), "crowded_loads": (_LOAD, loaded), "crowded_hits": (_LOAD, _UNROLLED)}
    return {
        **{
            f"odd_{kind}_{k}": sweep(line, ODD, w.bytes)
            for kind, line in (("load", _LOAD), ("store", _STORE))
            for k, w in enumerate(odd)
        },
        "filled_updated": _updated(behind),
        **{name: sweep(line, apart, lines * apart) for name, (line, lines) in of_set.items() if stored},
    }


def knee(by_pages: Mapping[int, float]) -> tuple[int | None, Fraction | None]:
    """(pages in the TLB, cycles for a page outside it) from the cycles of walks by their pages; (None, None) without a
    knee.

    The pages in the TLB are the most whose walk takes at most the mean of the shortest and the longest.
    """
    if not by_pages:
        return None, None
    least, most = min(by_pages.values()), by_pages[max(by_pages)]
    if most < 3 * least:
        return None, None
    known = max(n for n, each in by_pages.items() if each <= (least + most) / 2)
    return known, Fraction(round(most * 10), 10)
