"""The number of points of sets, and of images of maps, which are counted dimension by dimension where possible.

The library's cost grows steeply with the dimensions and parameters of what it counts, and most of what is counted here
are unions of boxes: each dimension lies between bounds of its own. So a map without floors is cut into disjoint basic
maps, and the dimensions of each into groups that no constraint ties together. The number of its images is the product
of the groups' counts. Each of these is a count in one dimension or two and in few parameters, and the same ones come
again and again. Sets, and maps with floors, are counted as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import islpy as isl

from roofdsl.sets.by_text import ByText, text_of
from roofdsl.sets.library import TooHard, unlimited
from roofdsl.sets.native_calls import counted_as_it_is, counted_in_one_child, is_counted_in_child, most_floors

MOST_TOGETHER = 2
"""The maximum number of dimensions of a group that is counted without a limit: that takes hardly any time."""

MOST_KNOWN = 4096
"""The maximum number of counts that are kept, of sets and of groups each."""

_IN, _OUT, _DIV = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.div


MAX_PARTS, MAX_PARTS_OF_MAP, MAX_FLOORS = 600, 40, 5
"""The maximum number of basic sets of a counted set, of basic maps of a counted map, and of floors in one of these."""


def cardinality(counted: Any, share: float = 1) -> Any:
    """isl.PwQPolynomial: the number of points of an isl.Set, or of the images of an isl.Map.

    share: of the limit, for this count alone. Raises TooHard.
    """
    if isinstance(counted, isl.Map):  # seldom the same
        return _counted(counted, share)
    return _sets.of(counted, lambda: _counted(counted, share))


def cardinalities(maps: Sequence[Any]) -> list[Any]:
    """`cardinality` of each of some isl.Maps: those that child processes count come from one child. Raises TooHard."""
    hard = {k: m for k, m in enumerate(maps) if _floors(m) and is_counted_in_child(m) and not _has_too_many_parts(m)}
    known = dict(zip(hard, counted_in_one_child(list(hard.values())), strict=True)) if hard else {}
    return [known[k] if k in known else cardinality(m) for k, m in enumerate(maps)]


_sets = ByText[Any](MOST_KNOWN)
"""The counts of sets: W, the compulsory traffic of several conventions and the plateaus ask for many of them again."""


def count_ahead(sets: Iterable[Any]) -> None:
    """Counts isl.Sets that `cardinality` would count in child processes, one after another: it then knows them.

    One process counts all of them, since most counts take less time than a process takes to start. Raises TooHard.
    """
    asked = {text_of(each): each for each in sets if is_counted_in_child(each) and not _has_too_many_parts(each)}
    unknown = {text: each for text, each in asked.items() if text not in _sets}
    if unknown:
        for text, count in zip(unknown, counted_in_one_child(list(unknown.values())), strict=True):
            _sets.keep(text, count)


def _counted(counted: Any, share: float) -> Any:
    if _has_too_many_parts(counted):
        raise TooHard("a set of accesses")
    is_map = isinstance(counted, isl.Map)
    if not is_map or _floors(counted):  # symbolic counts have fewer cases if they are not cut
        return counted_as_it_is(counted, share)
    simple, others = list[Any](), list[Any]()
    for basic in _basics(counted.make_disjoint()):
        apart = not basic.dim(_DIV) and all(len(group) <= MOST_TOGETHER for group in _groups(basic))
        (simple if apart else others).append(basic)
    with unlimited():
        counts = [_points(basic) for basic in simple]
    if others or not simple:
        rest = reduce(type(counted).union, map(_general, others)) if others else counted
        counts.append(counted_as_it_is(rest, share))
    return added(counts)


def require_few_floors(relation: Any) -> None:
    """Raises TooHard for an isl.Map with too many floors in a basic map; a set made from it would have them, too."""
    if _floors(relation) > MAX_FLOORS:
        raise TooHard("a set of accesses")


def _has_too_many_parts(counted: Any) -> bool:
    most = MAX_PARTS_OF_MAP if isinstance(counted, isl.Map) else MAX_PARTS
    return len(_basics(counted)) > most or _floors(counted) > MAX_FLOORS


def _floors(of: Any) -> int:
    """The most floors in a basic set or map."""
    return max((part.dim(_DIV) for part in _basics(of)), default=0)


def added(counts: Sequence[Any]) -> Any:
    """The sum of isl.PwQPolynomials, in pairs: sums of few pieces are merged before they are added to others.

    Counts with floors come last and are not merged. Merged, they would have floors of loop variables, for which fewer
    closed forms exist.
    """
    bent = [count for count in counts if most_floors(count)]
    straight = [count for count in counts if not most_floors(count)] if bent else list(counts)
    sums = [(count, None) for count in straight]
    while len(sums) > 1:
        pairs = zip(sums[::2], sums[1::2], strict=False)
        odd = sums[-1:] if len(sums) % 2 else []
        sums = [*(_sum_of(a, b) for a, b in pairs), *odd]
    return reduce(_bent_sum, [*sums, *((count, None) for count in bent)])[0]


def disjoint_sum(counts: Sequence[Any]) -> Any:
    """The sum of isl.PwQPolynomials, at least one, of which no two have a value at the same point."""
    pieces = [piece for count in counts for piece in count.get_pieces()]
    return _of_pieces(pieces) if pieces else counts[0]


def _of_pieces(pieces: Iterable[tuple[Any, Any]]) -> Any:
    # The library's `add_disjoint` writes into the count that it is given if there is room, whoever else has it. So it
    # is given new ones only.
    return reduce(isl.PwQPolynomial.add_disjoint, (isl.PwQPolynomial.alloc(domain, value) for domain, value in pieces))


FEW_PIECES = 6
"""Sums of counts with at most this many pairs of pieces are left to the library."""

FEW_BENT = 400
"""The same for counts with floors: it takes long to see that the domains of their pieces are one set."""

_Sum = tuple[Any, Any]
"""A count and its domain in few basic sets; None in place of a domain that is not known yet."""


def _sum_of(a: _Sum, b: _Sum) -> _Sum:
    """The sum of two counts, merged.

    The library subtracts every piece of each count from every piece of the other, to find where only one of them has a
    value. That takes nearly all of its time. But the domain of most counts is simple as a whole, however many pieces it
    is cut into, and most pairs of counts have the same domain. So the pieces are only intersected here, and what lies
    outside is found from the whole sets.
    """
    if a[0].n_piece() * b[0].n_piece() <= FEW_PIECES:
        return a[0].add(b[0]).coalesce(), None
    (first, here), (second, there) = _with_domain(a), _with_domain(b)
    pieces = _common(first, second)
    for count, own, outside in ((first, here, there), (second, there, here)):
        if not own.is_subset(outside):
            pieces += count.subtract_domain(outside).get_pieces()
    total = _with_equalities(_of_pieces(pieces))
    return total.coalesce(), here.union(there).coalesce()


def _bent_sum(a: _Sum, b: _Sum) -> _Sum:
    """The sum of two counts, not merged: the pieces that the library's `add` returns.

    On the same domain, these are the intersections. The library finds that nothing is left of each piece by subtracting
    all of the other count's from it. On different domains, it also decides into which pieces the rest is cut.
    """
    if a[0].n_piece() * b[0].n_piece() <= FEW_BENT:
        return a[0].add(b[0]), None
    (first, here), (second, there) = _with_domain(a), _with_domain(b)
    if not here.is_equal(there):
        return first.add(second), here.union(there).coalesce()
    return _with_equalities(_of_pieces(_common(first, second))), here


def _common(first: Any, second: Any) -> list[tuple[Any, Any]]:
    """The sums on the intersections of the pieces of two counts."""
    others = second.get_pieces()
    return [
        (common, value.add(more))
        for domain, value in first.get_pieces()
        for other, more in others
        if not (common := domain.intersect(other)).plain_is_empty()
    ]


def _with_equalities(count: Any) -> Any:
    """`count`, with what equalities of its pieces say inserted into their values.

    Only then are equal values seen to be equal, and their pieces merged.
    """
    return count.intersect_domain(isl.Set.universe(count.get_domain_space()))  # any intersection does that


def _with_domain(a: _Sum) -> _Sum:
    count, domain = a
    return (count, count.domain().coalesce()) if domain is None else a


Counted = Sequence[tuple[str, Any, Any]]
"""The pieces of a count: the text of a domain, the domain, and an isl.QPolynomial."""


def by_domain(count: Any) -> Counted:
    """An isl.PwQPolynomial in the form that `total_of` takes."""
    return [(str(domain), domain, value) for domain, value in count.get_pieces()]


MOST_PIECES = 200
"""The most pieces of a sum of counts: one more addition to 330 pieces took over 20 s, in which nothing stops the
library. The sums of the shipped kernels have a few.
"""


def total_of(counts: Iterable[Counted]) -> Any:
    """The sum of many counts, most of which have a domain in common with others; None if there are none.

    Counts on the same domain are added first, which costs nothing. Sums on different domains are cut along all of them.
    Raises TooHard for more than MOST_PIECES pieces.
    """
    together: dict[str, tuple[Any, Any]] = {}
    for text, domain, value in (piece for count in counts for piece in count):
        known = together.get(text)
        together[text] = domain, value if known is None else known[1].add(value)
    total: Any = None
    for domain, value in together.values():
        part = isl.PwQPolynomial.alloc(domain, value)
        total = part if total is None else total.add(part)
        if total.n_piece() > MOST_PIECES:
            raise TooHard("a sum of counts")
    return total


def _points(basic: Any) -> Any:
    """The number of points of an isl.BasicSet, or of images of an isl.BasicMap, without floors."""
    basic = basic.remove_redundancies()
    dims = basic.dim(_OUT)
    known = basic.drop_constraints_involving_dims(_OUT, 0, dims)
    domain = _general(known).domain() if isinstance(basic, isl.BasicMap) else _general(known).params()
    space = domain.get_space()
    one = isl.QPolynomial.one_on_domain(space)
    total = isl.PwQPolynomial.from_qpolynomial(one).intersect_domain(domain)
    for group in _groups(basic):
        if (factor := _factor(basic, group)) is not None:
            total = total.mul(_known(factor).reset_domain_space(space))
    return total


def _groups(basic: Any) -> Iterable[list[int]]:
    """The counted dimensions, in groups that constraints connect."""
    group = {k: [k] for k in range(basic.dim(_OUT))}
    for constraint in basic.get_constraints():
        used = [k for k in group if constraint.involves_dims(_OUT, k, 1)]
        for k in used[1:]:
            if group[k] is not group[used[0]]:
                group[used[0]] += group[k]
                group.update(dict.fromkeys(group[k], group[used[0]]))
    return {id(g): sorted(g) for g in group.values()}.values()


def _factor(basic: Any, group: list[int]) -> Any | None:
    """`basic` in the dimensions of one group, without other constraints; None for one dimension with a single value."""
    for k in reversed(range(basic.dim(_OUT))):
        if k not in group:
            basic = basic.drop_constraints_involving_dims(_OUT, k, 1).project_out(_OUT, k, 1)
    basic = basic.drop_constraints_not_involving_dims(_OUT, 0, len(group)).remove_redundancies()
    constraints = basic.get_constraints()
    if len(group) == len(constraints) == 1 and constraints[0].is_equality():
        coefficient = constraints[0].get_coefficient_val(_OUT, 0)
        return None if coefficient.is_one() or coefficient.is_negone() else basic
    return basic


_counts: dict[str, Any] = {}


def _known(factor: Any) -> Any:
    """The count of one group, with all inputs of `factor`."""
    inputs = range(factor.dim(_IN)) if isinstance(factor, isl.BasicMap) else range(0)
    unused = [i for i in inputs if not factor.involves_dims(_IN, i, 1)]
    for i in reversed(unused):
        factor = factor.project_out(_IN, i, 1)
    key = str(factor)
    if key not in _counts:
        if len(_counts) >= MOST_KNOWN:
            _counts.clear()
        _counts[key] = _general(factor).card()
    found = _counts[key]
    for i in unused:
        found = found.insert_dims(_IN, i, 1)
    return found


def _general(basic: Any) -> Any:
    return isl.Map.from_basic_map(basic) if isinstance(basic, isl.BasicMap) else isl.Set.from_basic_set(basic)


def _basics(of: Any) -> list[Any]:
    return list(of.get_basic_maps() if isinstance(of, isl.Map) else of.get_basic_sets())
