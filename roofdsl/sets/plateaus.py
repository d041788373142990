"""Plateaus of Q(Z): where the leading terms of the reuse distances lie.

See docs/rules.md, step S7. Over its accesses, each piece of a reuse distance ranges from a least to a greatest leading
term. Overlapping ranges form one step of Q(Z), which ends at the greatest term. Between steps, Q(Z) is flat to leading
order. Parameters are ordered by size: tile sizes are far below all others, and the others are of about one size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import islpy as isl

from roofdsl.lang.record import replace
from roofdsl.sets.access_sets import AccessSets
from roofdsl.sets.dimensions import where
from roofdsl.sets.isl_text import sign_text
from roofdsl.sets.library import set_of
from roofdsl.sets.misses import CannotCount
from roofdsl.sets.polynomial_bounds import Candidates, by_residues, candidate_bounds
from roofdsl.sets.quasi import Floor, Monomial, Quasi
from roofdsl.sets.residues import Class, Substitution, joined, periods, periods_of_sets
from roofdsl.sets.reuse import ArrayReuse
from roofdsl.sets.sizes import Sizes, quotient

Weight = tuple[int, int]
"""(degree in extents, degree in tile sizes): the order of growth of a monomial."""


@dataclass(frozen=True)
class Growth:
    """How the parameters grow: `tiles` are far below the others."""

    tiles: frozenset[str]

    def weight(self, monomial: Monomial) -> Weight:
        extents = small = 0
        for atom, power in monomial:
            if not isinstance(atom, str):  # floor(E) grows as E does
                of_extents, of_small = self.leading_weight(atom.of)
                extents += of_extents * power
                small += of_small * power
            elif atom in self.tiles:
                small += power
            else:
                extents += power
        return extents, small

    def leading_weight(self, value: Quasi) -> Weight:
        return max((self.weight(m) for m, _ in value), default=(0, 0))

    def leading(self, value: Quasi) -> Quasi:
        """The terms of greatest order, with floors replaced by their arguments."""
        top = self._top(value)
        if any(not isinstance(a, str) for a in top.atoms()):
            opened = self._top(self.open(top))  # the others matter only if these cancel
            top = opened if self.leading_weight(opened) == self.leading_weight(top) else self._top(self.open(value))
        return top

    def _top(self, value: Quasi) -> Quasi:
        weights = [self.weight(m) for m, _ in value]
        top = max(weights, default=(0, 0))
        return Quasi(tuple(term for term, weight in zip(value, weights, strict=True) if weight == top))

    def open(self, value: Quasi, rest: Callable[[Floor], Quasi] = lambda floor: Quasi.constant(0)) -> Quasi:
        """`value` with floors replaced by their arguments, each less its `rest`; without rests, the leading terms stay.

        Raises ValueError if `value` divides by a floor with a rest.
        """
        total = Quasi.constant(0)
        for m, c in value:
            part = Quasi.constant(c)
            for atom, power in m:
                base = Quasi.symbol(atom) if isinstance(atom, str) else self.open(atom.of, rest) - rest(atom)
                part = part * base**power
            total = total + part
        return total

    def key(self, value: Quasi) -> tuple[Weight, Fraction]:
        """Orders leading terms: by growth, then by coefficient with all sizes of one class equal."""
        if value not in self._keys:
            lead = self.leading(value)
            self._keys[value] = self.leading_weight(lead), sum((c for _, c in lead), Fraction(0))
        return self._keys[value]

    @cached_property
    def _keys(self) -> dict[Quasi, tuple[Weight, Fraction]]:
        return {}


def growth(sizes: Sizes, steps: Iterable[str]) -> Growth:
    """The tile sizes are the parameters that others are multiples of, and those used as loop steps."""
    return Growth(frozenset(b for _, b in sizes.tiled) | (frozenset(steps) & frozenset(sizes.symbols)))


def far_sizes(sizes: Sizes, order: Growth, residues: Class = (), *, falling: bool = False) -> dict[str, int]:
    """Large values of all isl parameters, with tile sizes far below the others.

    Each is somewhat larger than the one before it, or (`falling`) than the one after it. residues: the class of the
    values.
    """
    found: dict[str, int] = {}
    # 2**40 for extents, 2**16 for tile sizes and 2**24 for the number of tiles, so that a tile times this number is
    # about an extent. 720720 is the least common multiple of 1 to 16: sizes differ, and their remainders by small
    # periods do not.
    for k, name in enumerate(reversed(sizes.symbols) if falling else sizes.symbols):
        large = (1 << 16) + 16 * k if name in order.tiles else (1 << 40) + BETWEEN_SIZES * k
        found[sizes.symbol_text(name)] = large
    found |= {quotient(n, b): (1 << 24) + 16 * k for k, (n, b) in enumerate(sorted(sizes.tiled))}
    return found | {r.name: r.nearest(found[r.name]) for r in residues}


def far_point(sizes: Sizes, order: Growth, residues: Class = (), *, falling: bool = False) -> Any:
    """`far_sizes` as an isl parameter set of one point."""
    return point(far_sizes(sizes, order, residues, falling=falling))


def point(sizes: Mapping[str, int]) -> Any:
    """An isl parameter set of one point."""
    text = " and ".join(f"{name} = {value}" for name, value in sizes.items())
    return set_of(f"[{', '.join(sizes)}] -> {{ : {text or 'true'} }}" if sizes else "{ : }")


def check_large(access_sets: AccessSets, order: Growth) -> None:
    """Raises CannotCount if `access_sets` has no large sizes, or if some statement is not executed for them.

    This is checked for all remainders at once before anything is counted; `check_executed` checks one class of
    remainders.
    """
    large = (far_sizes(access_sets.sizes, order, falling=falling) for falling in (False, True))
    near = [_near(sizes).intersect(access_sets.context) for sizes in large]
    if near[0].is_empty():
        raise CannotCount(NO_LARGE_SIZES)
    if any(not at.is_empty() and _left_out(access_sets, at) for at in near):
        raise CannotCount(WHICH_IS_LARGER)


def check_executed(access_sets: AccessSets, order: Growth, residues: Class = ()) -> None:
    """Raises CannotCount if a statement is not executed at large sizes of the class, in one order of the sizes or the
    other.

    An example is a filter that may be as large as its image: if it is larger, some loops do not run.
    """
    for falling in (False, True):
        at = far_point(access_sets.sizes, order, residues, falling=falling).intersect(access_sets.context)
        if not at.is_empty() and _left_out(access_sets, at):
            raise CannotCount(WHICH_IS_LARGER)


NO_LARGE_SIZES = "its assumptions do not allow large sizes"
WHICH_IS_LARGER = "whether a statement is executed depends on which of its sizes is larger"

BETWEEN_SIZES = 720720
"""The distance between large sizes: a multiple of most periods, and larger than any."""


def _near(sizes: Mapping[str, int]) -> Any:
    """A box of sizes from `sizes` up, as an isl parameter set: it has sizes of every residue class of interest."""
    text = " and ".join(f"{value} <= {name} < {value + BETWEEN_SIZES}" for name, value in sizes.items())
    return isl.Set(f"[{', '.join(sizes)}] -> {{ : {text or 'true'} }}" if sizes else "{ : }")


def _left_out(access_sets: AccessSets, at: Any) -> bool:
    """Whether a statement is executed at none of the sizes `at`."""
    return any(d.executions.intersect_params(at).is_empty() for d in access_sets.domains)


def exact_domains(reuses: tuple[ArrayReuse, ...]) -> tuple[ArrayReuse, ...]:
    """The reuses, with pieces whose distance may be 0 reduced to the accesses whose distance is not.

    A count over parametric sets returns such pieces as hulls, with a distance of 0 where nothing is counted (a floor,
    or 24*d2 on d2 >= 0): at accesses without a previous one on their line, or whose distance is in another piece. The
    result is checked to contain each access with a previous one exactly once. Raises CannotCount otherwise.
    """

    def exact(reuse: ArrayReuse) -> ArrayReuse:
        if not any(_may_be_hull(domain, value, reuse.cold) for domain, value in reuse.distances):
            return reuse
        pieces = tuple(map(_cut, reuse.distances))
        together = isl.Set.empty(reuse.all.get_space())
        for domain, _ in pieces:
            if not domain.is_disjoint(together):
                raise CannotCount("the pieces of a reuse distance cannot be distinguished")
            together = together.union(domain)
        if not together.is_equal(reuse.previous.domain()):
            raise CannotCount("the pieces of a reuse distance cannot be distinguished")
        return replace(reuse, distances=pieces)

    return tuple(map(exact, reuses))


def _may_be_hull(domain: Any, value: Quasi, cold: Any) -> bool:
    """Whether a distance may be 0 on a part of its piece. No access with a previous one is at distance 0."""
    if value.is_constant():
        return False
    # It is not a single affine condition that a floor is 0; `_cut` decides whether it matters, remainder by remainder.
    if any(not isinstance(a, str) for a in value.atoms()):
        return True
    zero = _zero(domain, value)
    return not domain.is_disjoint(cold) if zero is None else not domain.is_disjoint(zero)


def _cut(piece: tuple[Any, Quasi]) -> tuple[Any, Quasi]:
    domain, value = piece
    for part, whole in by_residues(domain, value, {}):
        zero = _zero(part, whole)
        if not whole:
            domain = domain.subtract(part)
        elif zero is not None:
            domain = domain.subtract(part.intersect(zero))
    return domain.coalesce(), value


def _zero(domain: Any, value: Quasi) -> Any:
    """The points of `domain` at which an affine value is 0; None for another value."""
    text = sign_text(value)
    return None if text is None else where(domain, f"{text} = 0")


@dataclass(frozen=True)
class Range:
    """The leading terms, in bytes, between which the accesses of one piece begin to hit, for large sizes of a class.

    piece: id() of the domain of the piece. domain: the domain as in the reuse. period: that of the parameters by whose
    remainders the bounds still differ within the class; empty if there are none.
    """

    low: Quasi
    high: Quasi
    piece: int
    domain: Any
    period: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """A step of Q(Z): accesses begin to hit between the leading terms `low` and `high`, in bytes.

    pieces: ids of those whose last accesses begin to hit in this step. across: pieces that begin to hit before the
    plateau after this step and end beyond it, with so few accesses that the plateau is the same to leading order.
    """

    low: Quasi
    high: Quasi
    pieces: frozenset[int]
    across: frozenset[int] = frozenset()


def piece_range(piece: tuple[Any, Quasi], sizes: Sizes, order: Growth, residues: Class = ()) -> Range | None:
    """Where a piece (domain, distance) of a reuse distance lies, on one residue class of sizes.

    None if the piece is empty for large sizes. Raises CannotCount if the distance has no bound.
    """
    return piece_ranges([(piece, residues)], sizes, order)[0]


def piece_ranges(asked: Sequence[tuple[tuple[Any, Quasi], Class]], sizes: Sizes, order: Growth) -> list[Range | None]:
    """`piece_range` of pieces, each on its residue class. Their bounds are found together."""
    placed: list[tuple[Any, Quasi, Any] | None] = []
    for (domain, value), residues in asked:
        on = Substitution(residues)
        at = on.set(far_point(sizes, order, residues))
        here = on.set(domain)
        placed.append(None if here.params().is_disjoint(at) else (here, on.value(value), at))
    bounds = iter(candidate_bounds([each for each in placed if each is not None]))
    return [
        None if there is None else _range(piece, residues, next(bounds), sizes, order)
        for (piece, residues), there in zip(asked, placed, strict=True)
    ]


def _range(piece: tuple[Any, Quasi], residues: Class, bounds: Candidates, sizes: Sizes, order: Growth) -> Range:
    domain, (low, high, parts) = piece[0], bounds
    if not low or not high:
        raise CannotCount("a reuse distance has no closed-form bound")
    rest = {r.name: r.period for r in residues}
    differ = joined(periods([*low, *high]), periods_of_sets(parts))  # the bounds depend on which parts exist
    open_ = {n: p * rest.get(n, 1) for n, p in differ.items()}
    meaning = Substitution(residues).meaning(sizes.meaning())
    least = min((v.substitute(meaning) for v in dict.fromkeys(low)), key=order.key)
    most = max((v.substitute(meaning) for v in dict.fromkeys(high)), key=order.key)
    return Range(order.leading(least), order.leading(most), id(domain), domain, open_)


def steps(found: Iterable[Range], order: Growth, few: Few | None = None) -> list[Step]:
    """The steps of Q(Z), the one of the smallest cache first. Overlapping ranges form one step.

    Ranges that lie across a plateau are left out if `few` says that they are too few to matter there.
    """
    found = list(found)
    # Ends are compared very often, so they are replaced by their ranks.
    ends = {end: order.key(end) for r in found for end in (r.low, r.high)}
    rank = {key: k for k, key in enumerate(sorted(set(ends.values())))}
    at = {end: rank[key] for end, key in ends.items()}
    rows = sorted(((at[r.low], at[r.high], r) for r in found), key=lambda row: row[:2])
    # Q(Z) can begin to fall only at the low end of a range, and stop falling only at a high end.
    edges = range(len(rank))
    made: list[Step] = []
    start: int | None = None
    for edge in edges:
        # A step is collected beginning at the edge `start`. It ends at the first edge that no range crosses: beyond it,
        # all accesses hit that began to hit before. Ranges that cross are skipped if they are `few`.
        start = edge if start is None else start
        across = [r for low, high, r in rows if low <= edge < high]
        if across and (few is None or not few(across, [r for low, _, r in rows if low > edge])):
            continue
        inside = [(low, r) for low, high, r in rows if start <= high <= edge]
        ids = frozenset(r.piece for r in across)
        if inside:
            # Ranges across an earlier plateau end in this step, but did not begin in it.
            least = min((r.low for low, r in inside if low >= start), key=at.__getitem__, default=inside[0][1].high)
            high = max((r.high for _, r in inside), key=at.__getitem__)
            made.append(Step(least, high, frozenset(r.piece for _, r in inside), ids))
        elif made:  # these ranges begin on the plateau
            made[-1] = Step(made[-1].low, made[-1].high, made[-1].pieces, made[-1].across | ids)
        else:
            # A few ranges cross the very first edge, and none has ended: a step without pieces carries them.
            none = Quasi.constant(0)
            made.append(Step(none, none, frozenset(), ids))
        start = None
    return made


Few = Callable[[list[Range], list[Range]], bool]
"""(pieces that begin to hit before a cache size and end beyond it, those that all miss there) -> whether the first are
of lower order than what misses there."""
