"""Calls of the integer-set library that no limit of operations ends: in child processes unless they are short.

Its counting code crashes at the operation limit, and may run for hours without one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import islpy as isl

from roofdsl import budget, reproducibility
from roofdsl.sets.child_process import Raised, Stopped, in_child, in_children
from roofdsl.sets.library import LEAST_SECONDS, TooHard, in_force, is_aborted, unlimited

SIMPLE = 3
"""A set with at most this many basic sets and floors together is counted in this process; a polynomial with at most
this many dimensions and floors together is bounded in it.
"""

MANY_DIMENSIONS = 6
"""A single set without parameters is counted in a child from so many dimensions on if it has floors: with eight, one
has taken 15 s.
"""

ONE_OF_MANY = 0.125
"""The share of the limit for one of the many sets of a quantity: if one takes that long, the rest of the limit does not
suffice for the others. In the shipped kernels, none takes a hundredth.
"""

LONG = 5_000
"""The characters of a result that may take long to read: one of 20,000 with nested sums of floors took over 20 s."""


def counted_as_it_is(counted: Any, share: float = 1) -> Any:
    """isl.PwQPolynomial: the number of points of an isl.Set, or of the images of an isl.Map, counted directly by the
    library.

    Simple sets are counted in this process, all others in a child. share: of the limit, for this set. Raises TooHard.
    """
    if is_counted_in_child(counted):
        return _in_limited_child("a set of accesses", lambda: [counted.card()], isl.PwQPolynomial, share)[0]
    parts = _parts(counted)
    if _most_floors(parts) and len(parts) > 1:
        # Two basic sets with a floor have taken 20 s, so a child process shows first that the count ends. It is made
        # again here: read from text, its pieces are merged into ones with floors of loop variables, for which fewer
        # closed forms exist.
        _in_limited_child("a set of accesses", lambda: [counted.card()], isl.PwQPolynomial, share / 2)
    with unlimited():
        return counted.card()


def is_counted_in_child(counted: Any) -> bool:
    """Whether the count of an isl.Set or isl.Map comes from a child process."""
    parts = _parts(counted)
    floors = _most_floors(parts)
    if len(parts) + floors > SIMPLE:
        return True
    return floors > 0 and not counted.dim(isl.dim_type.param) and _dimensions(counted) >= MANY_DIMENSIONS


def counted_in_one_child(sets: Sequence[Any]) -> list[Any]:
    """The counts of isl.Sets or isl.Maps with `is_counted_in_child`, from one child process. Raises TooHard."""
    return _in_limited_child("a set of accesses", lambda: [each.card() for each in sets], isl.PwQPolynomial)


def _parts(counted: Any) -> Sequence[Any]:
    parts: Sequence[Any] = counted.get_basic_maps() if isinstance(counted, isl.Map) else counted.get_basic_sets()
    return parts


def _dimensions(counted: Any) -> int:
    own: int = counted.dim(isl.dim_type.out if isinstance(counted, isl.Map) else isl.dim_type.set)
    return own + (counted.dim(isl.dim_type.in_) if isinstance(counted, isl.Map) else 0)


def bound(polynomial: Any, *kinds: Any) -> list[Any]:
    """An isl.PwQPolynomialFold for each of `kinds` (isl.fold): bounds of an isl.PwQPolynomial over its domain, in the
    parameters.

    Raises TooHard.
    """
    return bounds([polynomial], *kinds)[0]


def bounds(polynomials: Sequence[Any], *kinds: Any) -> list[list[Any]]:
    """`bound` of each of the isl.PwQPolynomials.

    The library triangulates the domain, with a dimension for every floor, and multiplies polynomials out, which no
    limit of operations ends. So bounds over many dimensions are found in a child process: one for all, since most are
    found in less time than a process takes to start. Raises TooHard.
    """

    def found(polynomial: Any) -> list[Any]:
        return [polynomial.bound(kind)[0] for kind in kinds]

    hard = [p for p in polynomials if p.domain().dim(isl.dim_type.set) + most_floors(p) > SIMPLE]
    folds = iter(
        _in_limited_child("a bound", lambda: [f for p in hard for f in found(p)], isl.PwQPolynomialFold) if hard else ()
    )
    of_hard = {id(p): [next(folds) for _ in kinds] for p in hard}
    with unlimited():
        return [of_hard[id(p)] if id(p) in of_hard else found(p) for p in polynomials]


def first_images(relation: Any) -> Any:
    """isl.Map: the lexicographically first of the images of each point, as `lexmin`. Raises TooHard.

    With many floors, the library branches over their values in long steps, few of which count as operations. This is
    done in a child process.
    """
    parts = relation.get_basic_maps()
    if _most_floors(parts) * len(parts) <= MANY_FLOORS:
        return relation.lexmin()
    return _in_limited_child("the first accesses", lambda: [relation.lexmin()], isl.Map)[0]


def last_images(relation: Any) -> Any:
    """isl.Map: the lexicographically last of the images of each point, as `lexmax`. Raises TooHard.

    The same holds as for `first_images`, but a map from accesses to earlier ones has the floors of both. With many of
    them, an answer that takes long usually has even more floors, which are too many to be counted. So the child gets
    only a part of the limit then.
    """
    floors = _most_floors(relation.get_basic_maps())
    if floors <= FLOORS_AT_ONCE:
        return relation.lexmax()
    share = 1 if floors <= FLOORS_THAT_COUNT else ONE_OF_MANY
    return _in_limited_child("the previous accesses", lambda: [relation.lexmax()], isl.Map, share)[0]


def _in_limited_child(
    what: str, compute: Callable[[], list[Any]], read: Callable[[str], Any], share: float = 1
) -> list[Any]:
    """The results of `compute` in a child process, within a time that stands for the operation limit.

    `read` turns the text of each into the library's value. Raises TooHard, naming `what`.
    """

    def texts_of() -> str:
        texts = list(map(str, compute()))
        for text in texts:
            if len(text) > LONG:
                read(text)  # to show here that it ends, since nothing would stop it in the parent
        return "\n".join(texts)

    in_force.require_time(what)
    with unlimited():
        try:
            seconds = min(in_force.seconds(), max(LEAST_SECONDS, share * in_force.whole_s))
            texts = in_child(texts_of, seconds)
        except Stopped as error:
            raise in_force.error(what) from error
        except Raised:
            return compute()
        return [read(text) for text in texts.split("\n")]


def most_floors(polynomial: Any) -> int:
    """The most floors in a piece of an isl.PwQPolynomial: in its value, or in a basic set of its domain."""
    pieces: list[tuple[Any, Any]] = []
    polynomial.foreach_piece(lambda where, value: pieces.append((where, value)))
    return _most_floors([part for where, value in pieces for part in (value, *where.get_basic_sets())])


def _most_floors(parts: Sequence[Any]) -> int:
    return max((part.dim(isl.dim_type.div) for part in parts), default=0)


MANY_FLOORS = 12
"""First images of a map are found in this process if its basic maps, times the most floors in one, are at most this."""

FLOORS_AT_ONCE, FLOORS_THAT_COUNT = 3, 5
"""Last images of maps with at most FLOORS_AT_ONCE floors in any basic map are found in this process: with five, a call
of a million operations has taken 13 s. With at most FLOORS_THAT_COUNT, they are worth the whole limit.
"""

MANY = 12
"""With at least this many counts, several processes are worth their start-up time."""


def on_all_cores(tasks: Sequence[Callable[[], Any]]) -> list[Any]:
    """The results of the tasks (isl.PwQPolynomials or None): in this process if there are few, otherwise on all cores.

    Each process is bound by the rest of the current limit; the first task that is too hard ends all of them. Raises
    TooHard.
    """
    if len(tasks) < MANY:
        return [task() for task in tasks]
    in_force.require_time("sets of accesses")
    try:
        together_s = max(LEAST_SECONDS, budget.left_s())
        texts = in_children([partial(_text, task) for task in tasks], in_force.seconds(), together_s, _BEYOND)
    except Stopped as error:
        raise in_force.error("sets of accesses") from error
    except Raised:
        return [task() for task in tasks]
    if _BEYOND in texts:  # what a process has left for a task depends on the tasks that it happened to do before
        reproducibility.decided_by_clock()
        raise in_force.error("sets of accesses")
    with unlimited():
        return [isl.PwQPolynomial(text) if text else None for text in texts]


_BEYOND = "beyond the limit"


def _text(task: Callable[[], Any]) -> str:
    """The result of the task, as text; "" for None, and _BEYOND if it reaches the limit of operations."""
    try:
        found = task()
        return "" if found is None else str(found)
    except TooHard:
        return _BEYOND
    except isl.Error:
        if is_aborted():
            return _BEYOND
        raise
