"""Comparison of the engine with the brute-force oracle, shared by the tests of exact traffic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

from roofdsl.counts import traffic_at as at
from roofdsl.counts.closed_forms import Bytes, ClosedForms, NoClosedForm
from roofdsl.counts.histogram_at import NoAnswer
from roofdsl.counts.lines_of_sets import ArrayLines, lines_by_sets
from roofdsl.counts.traffic_at import convention_totals, traffic_at
from roofdsl.counts.work_at import work_at
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import Sized, sized
from roofdsl.loops.transform import apply
from roofdsl.sets.facts import CACHE, CacheMultiple, Compared, Fact
from roofdsl.sets.library import TooHard
from tests.oracle import lru, work
from tests.oracle.enumerate import executions

CONVENTIONS = ("once", "load_store", "write_allocate")
OPERATIONS = 40_000  # of the integer-set library for one count: half a second or so


def cache_choices(kernel: Kernel, size: Mapping[str, int], rng: Random) -> list[tuple[int | None, int | None]]:
    """(Z, line): none, the smallest legal, one of elements, one of lines."""
    largest = max((a.type.bytes for a in kernel.arrays if not a.is_scalar), default=8)
    touched = max(sum(lru.footprint(kernel, size).values()), largest)
    line = largest * rng.choice((1, 2, 4))
    return [
        (None, None),
        (None, line),
        (largest, None),
        (rng.randint(largest, touched + largest), None),
        (rng.randint(line, touched + line), line),
    ]


def check_work(kernel: Kernel, size: Mapping[str, int]) -> None:
    """W by enumeration, and its closed form where there is one, which must then hold at `size`."""
    got = work_at(kernel, size)
    plain = apply(kernel)
    if all(a.type.kind != "complex" for a in plain.arrays):  # the oracle counts real operations
        want = work.executed(plain, size)
        assert got.total == sum(want.operations.values()), kernel.source.text
        assert got.cmp == want.cmp
    forms = ClosedForms(kernel, {}, operations=OPERATIONS)
    try:
        if meets(forms.work.assumes, size):
            assert forms.work.evaluate(size) == got.total, kernel.source.text
    except NoClosedForm:
        assert sum(executions(plain, size).values()) >= 0  # a step without `% == 0`: numbers only


def meets(facts: Iterable[Fact], size: Mapping[str, int]) -> bool:
    """Whether the facts hold at `size`; those of the cache, which tests choose so, are left out."""
    return all(fact.holds(size) for fact in facts if not _of_cache(fact))


def _of_cache(fact: Fact) -> bool:
    return isinstance(fact, CacheMultiple) or (isinstance(fact, Compared) and CACHE in fact.symbols())


@contextmanager
def counted_once() -> Iterator[None]:
    """Within it, `traffic_at` counts the lines of a kernel, size and cache once, and each convention weighs them.

    Counting is nearly all it does, and the same for all conventions; nested uses share what the outermost counted.
    """
    original, known = at._lines, dict[tuple[object, ...], Any]()

    def lines(of: Sized, *rest: Any) -> Any:
        key = of.kernel, tuple(of.values.items()), *rest
        if key not in known:
            known.clear()  # the next one is another kernel or cache
            known[key] = original(of, *rest)
        return known[key]

    with patch.object(at, "_lines", lines):
        yield


def by_sets_alone(
    kernel: Kernel, size: Mapping[str, int], cache: int | None, line: int | None
) -> tuple[ArrayLines, ...] | None:
    """What the integer sets count without simulation; None if they give no answer."""
    try:
        return lines_by_sets(Sized(apply(kernel), size), cache, line, OPERATIONS)
    except (NoAnswer, TooHard):
        return None


def check_numbers(kernel: Kernel, size: Mapping[str, int], cache: int | None, line: int | None) -> bool:
    """The product's numbers, and those of the integer sets alone; returns whether the latter gave any."""
    stays = lru.residencies(kernel, size, cache, line)
    plain = apply(kernel)
    lines = by_sets_alone(kernel, size, cache, line)
    with counted_once():
        for convention in CONVENTIONS:
            want = lru.cost(kernel, stays, convention)
            context = f"{kernel.source.text}{dict(size)} Z={cache} L={line} {convention}"
            got = traffic_at(kernel, size, cache, line, convention)
            assert (got.loads_bytes, got.stores_bytes, got.bytes) == (want.loads, want.stores, want.bytes), context
            if lines is not None:
                sets = convention_totals(sized(plain, size), lines, convention)
                assert sets == (want.loads, want.stores, want.bytes), f"integer sets: {context}"
    return lines is not None


def check_form(
    form: Bytes, kernel: Kernel, size: Mapping[str, int], stays: list[lru.Residency], convention: str
) -> None:
    """A closed form against the oracle's residencies at `size`, where the form is said to hold."""
    if not meets(form.total.assumes, size):
        return
    want = lru.cost(kernel, stays, convention)
    got = tuple(None if c is None else c.evaluate(size) for c in (form.loads, form.stores, form.total))
    assert got == (want.loads, want.stores, want.bytes), f"{kernel.source.text}{dict(size)} {convention}"
