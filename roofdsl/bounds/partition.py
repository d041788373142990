"""The partition argument: how many executions S elements of fast memory and T arrivals allow.

Cut any run into segments of T arrivals each (an arrival is a load, or an object made on chip). What a segment uses was
in fast memory at its beginning (S elements, and the current operands) or arrives during it: at most X = S + T objects.
These allow at most H(X) = c X^s executions of a statement. If V is the set of all its executions, there are at least
|V| / H(X) - 1 whole segments, and

    loads >= T (|V| / H(S + T) - 1) - made,    T = S / (s - 1) is best,

where `made` is the number of objects made on chip.

Hong and Kung 1981 (the partition); Irony, Toledo, Tiskin 2004 (segments of T loads with Loomis-Whitney); Smith, Lowery,
Langou, van de Geijn 2019 (T = 2S for matrix products: 2 n^3 / sqrt(S)); Christ et al. 2013 (exponents for any
subscripts); Olivry et al., PLDI 2020, and Kwasniewski et al., SPAA 2021 (several statements, constants).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy

from roofdsl.bounds.bound_at_sizes import Power, Segments, Share, rounded_up
from roofdsl.bounds.counting import at_large_sizes, top_terms
from roofdsl.bounds.exponents import averages, exponents
from roofdsl.bounds.flow import Flow
from roofdsl.bounds.intervals import FINISHED, interval_product
from roofdsl.bounds.pieces import Piece, pieces, together
from roofdsl.formulas.sympy_forms import expression, polynomial


@dataclass(frozen=True)
class Allowed:
    """H(X) = constant * X^power for one piece. exponents: the s_j of its slots; power: their sum."""

    piece: Piece
    exponents: tuple[Fraction, ...]
    constant: Any
    power: Fraction


@dataclass(frozen=True)
class Partition:
    """loads >= value (sympy, in the parameters and S), by segments of T = `arrivals`; leading: its main term."""

    parts: tuple[Allowed, ...]
    registers: int
    arrivals: Any
    value: Any
    leading: Any

    def numbers(self) -> Segments:
        """The same in exact arithmetic, for given sizes."""
        power = self.parts[0].power
        shares = tuple(Share((a.piece.size,), (Power(rounded_up(a.constant), power),)) for a in self.parts)
        finished = [a.piece.finished for a in self.parts if a.piece.finished is not None]
        made = [(1, m) for a in self.parts for m in a.piece.made] + [(FINISHED, m) for m in finished]
        ratio = 1 / (power - 1)
        # The argument of an interval product follows a value until it is final; by then, it may be in another memory.
        return Segments(
            shares, ratio, ratio.denominator != 1, self.registers, FINISHED - 1 if finished else 0, tuple(made),
            apart=not finished,
        )  # fmt: skip


def rational(value: Fraction) -> Any:
    """A fraction as a sympy number."""
    return sympy.Rational(value.numerator, value.denominator)


def allowed(piece: Piece) -> Allowed | None:
    """H(X) of a piece with the exponents that give the smallest bound; None if no exponents bound it.

    |E| <= prod_j (f_j x_j)^s_j, and x_j <= x_c for the class c of slot j with sum_c x_c <= X. This is largest at x_c =
    X s_c / s (inequality of weighted means), where s_c is the sum of the exponents of the class and s that of all.
    """
    null_spaces = sorted({s.lost for s in piece.slots})
    found = exponents(null_spaces, len(piece.loops)) if null_spaces else []
    best: Allowed | None = None
    # All points have the same sum of exponents, and so the same power of X. They differ in the constant, for which the
    # mean of several points may be better than each of them.
    for point in averages(found):
        shares = []
        for slot in piece.slots:
            # Slots that lose the same directions share one exponent in equal parts.
            alike = sum(other.lost == slot.lost for other in piece.slots)
            shares.append(point[null_spaces.index(slot.lost)] / alike)
        total = sum(shares, Fraction(0))
        constant = sympy.Rational(1, 2) if piece.halves else sympy.Integer(1)
        for slot, share in zip(piece.slots, shares, strict=True):
            constant *= sympy.Integer(slot.factor) ** rational(share)
        for group in sorted({s.group for s in piece.slots}):
            own = sum((e for s, e in zip(piece.slots, shares, strict=True) if s.group == group), Fraction(0))
            if own:
                constant *= rational(own / total) ** rational(own)
        if best is None or constant.evalf() < best.constant.evalf():
            best = Allowed(piece, tuple(shares), constant, total)
    return best


def partition(flow: Flow, size: Any) -> Partition | None:
    """The best partition bound found; `size` is the symbol of S. None if no piece has one."""
    single = pieces(flow)
    by_name = {s.name: s for s in flow.statements}
    every = [*single, *(q for p in single if (q := interval_product(flow, by_name[p.names[0]], p)) is not None)]
    for k, first in enumerate(single):
        for second in single[k:]:
            every += together(flow, first, second)
    candidates = [a for p in every if (a := allowed(p)) is not None and a.power > 1]
    if not candidates:
        return None
    candidates.sort(key=lambda a: -_weight(flow, a))
    best: Partition | None = None
    for main in candidates[:4]:
        chosen = [main]
        for other in candidates:
            # Pieces that share neither statement nor object compete for the X of a segment and are counted together
            # (`_bound`). With different powers, no single T would be best.
            if other.power == main.power and all(_apart(other.piece, c.piece) for c in chosen):
                chosen.append(other)
        made = _bound(flow, chosen, size)
        if best is None or _far(flow, made.leading) > _far(flow, best.leading):
            best = made
    return best


def _apart(first: Piece, second: Piece) -> bool:
    """Whether the pieces share no statement and no object."""
    if set(first.names) & set(second.names):
        return False
    return all(a.is_disjoint(b) for a in first.objects.values() for b in second.objects.values())


def _weight(flow: Flow, a: Allowed) -> float:
    """The leading number of segments at large sizes, as a key for comparison."""
    value = at_large_sizes(flow, a.piece.size)
    names = dict.fromkeys(value.names(), 1 << 30)
    size = 1 << 20
    return float(float(value.evaluate(names)) / float(a.constant.evalf()) / size ** float(a.power - 1))


def _far(flow: Flow, value: Any) -> float:
    return float(value.subs({s: (1 << 20 if s.name.startswith("S") else 1 << 30) for s in value.free_symbols}))


def _bound(flow: Flow, chosen: Sequence[Allowed], size: Any) -> Partition:
    """Pieces without common objects share the X of a segment: since H is convex, sum_p |E_p| / H_p(X) <= 1."""
    power = rational(chosen[0].power)
    room = size + flow.registers
    arrivals = room / (power - 1)
    if not (1 / (power - 1)).is_integer:
        arrivals = sympy.ceiling(arrivals)
    finished = [a.piece.finished for a in chosen if a.piece.finished is not None]
    held = room + arrivals + (FINISHED - 1 if finished else 0)  # a cut may separate the arrivals of a single value
    segments = sum(expression(a.piece.size) / (a.constant * held**power) for a in chosen)
    made = sum(expression(m) for a in chosen for m in a.piece.made) + FINISHED * sum(map(expression, finished))
    main = sum(polynomial(at_large_sizes(flow, a.piece.size)) / a.constant for a in chosen)
    top = top_terms(main) * (size / (power - 1)) / (size * power / (power - 1)) ** power
    return Partition(tuple(chosen), flow.registers, arrivals, arrivals * (segments - 1) - made, sympy.powsimp(top))
