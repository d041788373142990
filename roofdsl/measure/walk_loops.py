"""Loops that access lines one by one, in assembly: strided walks, streams with work beside them, walks over pages.

A walk goes through a part of a buffer at a stride, with one load or store per line, and starts again at its end. All of
its lines are then in one level: they are too many for the nearer level, whose sets get more of them than they have
ways, and few enough for this one. Unlike streams, they are not prefetched by hardware, or not all of them are.
"""

from __future__ import annotations

from collections.abc import Sequence

from roofdsl.lang.record import Record

LINE, PAGE = 64, 4096

STRIDE = 8 * LINE
"""Bytes from line to line of a walk: an eighth of the sets, so an eighth of a cache holds them."""

KNOWN_PAGES = 4 << 20
"""The most bytes that walks inside a cache span, unless twice the nearer cache is more: beyond that, finding the
addresses of pages would take time.
"""

MEMORY = 512 << 20
"""The bytes of memory that are walked through, or twice the last cache if that is more."""

FARTHEST = 1 << 31
"""Distances of at least this many bytes do not fit into an instruction."""

PAGES = (256, 512, 1024, 1536, 2048, 3072, 4096, 8192)
"""The numbers of pages that are walked over, with one line of each."""

ODD = 3 * LINE
"""Bytes from line to line of a walk through all sets: a small odd number of lines, so that few pages are walked over.
"""

MANY, SOME = 4, 3
"""If all lines of a walk fall into one set, there are this many times the set's ways: for stores, and for loads. Behind
the second cache, there are SOME times the lines that the nearer level has room for.
"""

UPDATED_BYTES = 2 * 2 * LINE
"""The bytes of updates in the first cache for each line of a stream: two lines that are loaded and stored."""

LOADS_A_LINE = 8
"""Loads of 256 bits for each line of a stream: they take longer than the line takes from the second cache."""

HIT_BYTES = 32 * LOADS_A_LINE - LINE
"""The bytes of these loads beyond the stream's own line."""

UNROLLED = 8
"""Lines in one round of a loop."""

ADDITIONS = 48
"""Independent additions for each line of a stream: they take longer than the line takes from memory."""


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
            span = _whole(min(room, max(MEMORY, 2 * nearer + 2 * UNROLLED * STRIDE)) - STRIDE, STRIDE)
            if 2 * nearer <= span < FARTHEST:
                found.append(Span(name, span, STRIDE // LINE))
            continue
        span = _whole(min(max(2 * nearer, min(int((nearer * size) ** 0.5), KNOWN_PAGES)), room), STRIDE)
        if 2 * nearer - STRIDE * UNROLLED <= span <= size // 2:
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


def crowded_spans(capacities: Sequence[tuple[str, int]], room: int, apart: int) -> list[tuple[str, int]]:
    """(level, lines) of walks whose lines are `apart` bytes apart, all in one set of the first cache, for the levels
    behind the second cache: SOME times as many lines as the nearer level has room for in its sets, which are at most
    half of those that a cache itself has room for. In memory, twice as many are enough if the buffer is small.

    More lines would take longer: a Zen 5's L3 seems to lose half of 2048 lines, although its sets have room for 8192.
    """
    found = []
    for k, (name, size) in enumerate(capacities[2:], 2):
        nearer, last = capacities[k - 1][1], k == len(capacities) - 1
        span = min(SOME * nearer, room) if last else SOME * nearer
        lines = _whole(span, apart) // apart
        if lines * apart <= min(room, FARTHEST - 1) and (span >= 2 * nearer if last else 2 * span <= size):
            found.append((name, lines))
    return found


def _whole(span: int, stride: int) -> int:
    return span // (UNROLLED * stride) * UNROLLED * stride


def sweep(line: Sequence[str], stride: int, span: int, shift: int = 0) -> list[str]:
    """A round of a loop over `span` bytes: `line` at 8 places, whose address it writes as `{at}(%rdi,%rax)`.

    At the end of the span, the loop starts again, `shift` bytes further than before.
    """
    text = [one.format(at=k * stride) for k in range(UNROLLED) for one in line]
    step = (f"addq ${UNROLLED * stride}, %rax", f"leaq {shift - span}(%rax), %rcx")
    return [*text, *step, f"cmpq ${span}, %rax", "cmovaeq %rcx, %rax"]


BEGIN = (
    "xorl %eax, %eax", "xorl %edx, %edx", "vpxor %ymm14, %ymm14, %ymm14", "vpxor %ymm15, %ymm15, %ymm15",
    "movl $0x03020100, %ecx", "vmovd %ecx, %xmm13", "vpmovzxbq %xmm13, %ymm13",  # the indices of a gather: 0, 1, 2, 3
)  # fmt: skip
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
_GATHER = (
    "vpcmpeqd %ymm12, %ymm12, %ymm12", "vpxor %ymm{k}, %ymm{k}, %ymm{k}",
    "vgatherqpd %ymm12, 32*{k}(%rdx,%ymm13,8), %ymm{k}",
)  # fmt: skip
_GATHERED = ("leaq {at}(%rdi,%rax), %rdx", *(line.format(k=k) for k in (0, 1) for line in _GATHER))
_PAST = ("vmovntps %ymm15, {at}(%rdi,%rax)", "vmovntps %ymm15, 32+{at}(%rdi,%rax)")
_MANY = tuple(f"vmovups {32 * (k % 2)}+{{at}}(%rdi,%rax), %ymm{k}" for k in range(LOADS_A_LINE))


def _updated(behind: int) -> list[str]:
    """A stream of `behind` bytes, and with each of its lines an update of two lines after the stream's end, which stay
    in the first cache; each round updates all of them.
    """
    at = -(-behind // PAGE) * PAGE + 5 * LINE
    text = [one.format(at=k * LINE, beside=at + 2 * LINE * k) for k in range(UNROLLED) for one in _UPDATE]
    return [*text, *sweep((), LINE, behind)]


class Loop(Record):
    """A loop in assembly that goes over `lines` lines and begins again."""

    text: Sequence[str]
    lines: int


def _loop(line: Sequence[str], stride: int, span: int) -> Loop:
    return Loop(sweep(line, stride, span), span // stride)


def _texts(walks: Sequence[Span], near: int, behind: int, pages: Sequence[int]) -> dict[str, Loop]:
    """The loops to be timed, by name: over lines of the nearest cache and behind it, along strides, and over pages."""
    return {
        "filled_near": _loop(_MANY, LINE, near),
        "filled_behind": _loop(_MANY, LINE, behind),
        "filled_alone": _loop(_COMPUTED[:2], LINE, behind),
        **{
            f"{kind}_{k}": Loop(sweep(line, STRIDE, w.bytes, LINE if w.passes > 1 else 0), w.lines)
            for kind, line in (("load", _LOAD), ("store", _STORE))
            for k, w in enumerate(walks)
        },
        **{f"streamed_{k}": _loop(_COMPUTED[:2], LINE, w.bytes) for k, w in enumerate(walks)},
        "gathered_near": _loop(_GATHERED, LINE, near),
        **{f"gathered_{k}": _loop(_GATHERED, LINE, w.bytes) for k, w in enumerate(walks)},
        "computed_near": _loop(_COMPUTED, LINE, near),
        **{f"computed_{k}": _loop(_COMPUTED, LINE, w.bytes) for k, w in enumerate(walks)},
        **{f"pages_{n}": _loop(_LOAD, PAGE + LINE, n * (PAGE + LINE)) for n in pages},
    }


def _more_texts(plan: Plan) -> dict[str, Loop]:
    """Walks through all sets, a stream with updates, and walks over lines of one set."""
    odd, behind = plan.odd, plan.behind
    return {
        **{
            f"odd_{kind}_{k}": _loop(line, ODD, w.bytes)
            for kind, line in (("load", _LOAD), ("store", _STORE))
            for k, w in enumerate(odd)
        },
        "filled_updated": Loop(_updated(behind), behind // LINE),
        **{name: _loop(line, plan.apart, lines * plan.apart) for name, (line, lines) in plan.of_one_set.items()},
    }


class Plan(Record):
    """What is walked: `walks` at a stride, streams of `near` and `behind` bytes, one line in each of `pages`, `odd`
    walks through all sets, and `stored` and `loaded` lines of one set, `apart` bytes apart; no such lines if the first
    cache's `ways` are unknown (0) or few. `crowded`: (level, lines) of such walks behind the second cache. `past` is
    the walk in memory, whose lines are stored past the caches too.
    """

    walks: Sequence[Span]
    near: int
    behind: int
    pages: Sequence[int]
    odd: Sequence[Span]
    ways: int
    apart: int
    stored: int
    loaded: int
    crowded: Sequence[tuple[str, int]]
    past: Span | None

    @property
    def few(self) -> int:
        """The lines of another walk of stores: the first whole number of rounds that exceeds the ways of a set. Loops
        with many streams store to about so many lines of one set.
        """
        return (self.ways // UNROLLED + 1) * UNROLLED

    @property
    def of_one_set(self) -> dict[str, tuple[Sequence[str], int]]:
        """The walks over lines of one set, by name: what is done with a line, and the number of lines."""
        if not self.stored:
            return {}
        return {
            "crowded": (_STORE, self.stored),
            "crowded_few": (_STORE, self.few),
            "crowded_stored": (_STORE, UNROLLED),
            "crowded_loads": (_LOAD, self.loaded),
            "crowded_hits": (_LOAD, UNROLLED),
            **{f"crowded_load_{k}": (_LOAD, lines) for k, (_, lines) in enumerate(self.crowded)},
        }

    def compared(self) -> dict[str, str]:
        """The loops of which only the difference from another loop counts, by name, and that other loop.

        Both take about as long, so that what disturbs the core a little would be a large part of the difference.
        """
        levels, odd = range(len(self.walks)), range(len(self.odd))
        found = {f"computed_{k}": "computed_near" for k in levels} | {f"store_{k}": f"load_{k}" for k in levels}
        found |= {f"odd_store_{k}": f"odd_load_{k}" for k in odd}
        found |= dict.fromkeys(("filled_behind", "filled_alone", "filled_updated"), "filled_near")
        if self.walks:
            found |= dict.fromkeys(self.of_one_set, "load_0")
        return found

    def of_core(self, second: str) -> frozenset[str]:
        """The loops that wait for the core: for additions, or for lines of the first two caches, of which the `second`
        has this name.
        """
        found = {"filled_near", "computed_near", "gathered_near"}
        for kind, walks in (("", self.walks), ("odd_", self.odd)):
            found |= {f"{kind}load_{k}" for k, w in enumerate(walks) if w.level == second}
        return frozenset(found)

    def loops(self) -> dict[str, Loop]:
        """The loops to be timed, by name."""
        found = _texts(self.walks, self.near, self.behind, self.pages)
        found |= _more_texts(self)
        if self.past is not None:
            found["past_caches"] = _loop(_PAST, LINE, self.past.bytes)
        return found


def plan_walks(capacities: Sequence[tuple[str, int]], room: int, way_bytes: int) -> Plan:
    """The plan for these caches and memory, in a buffer of `room` bytes; way_bytes is 0 if it is unknown."""
    first, second = capacities[0][1], capacities[1][1]
    walks, near = spans(capacities, room), _whole(first // 4, LINE)
    ways = first // way_bytes if way_bytes else 0
    stored, loaded = (-(-times * ways // UNROLLED) * UNROLLED for times in (MANY, SOME))
    if ways < UNROLLED or stored * way_bytes > room:
        stored = loaded = 0
    return Plan(
        walks,
        near,
        behind=_whole(min(4 * first, (near + second) // 2), LINE),
        pages=[n for n in PAGES if n * (PAGE + LINE) <= room],
        odd=odd_spans(capacities, room),
        ways=ways,
        apart=way_bytes,
        stored=stored,
        loaded=loaded,
        crowded=crowded_spans(capacities, room, way_bytes) if stored else (),
        past=walks[-1] if walks and walks[-1].level == capacities[-1][0] else None,
    )
