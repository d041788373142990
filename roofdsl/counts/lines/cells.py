"""Parts of an iteration space in which every comparison has one result. The comparisons themselves decide the cuts.

A computation runs on the loop variables of a whole part. They are forms: numbers plus multiples of coordinates that lie
in ranges. If a comparison has different results in different places of the part, it raises Split. The part is then cut
along it, and the computation runs again on both pieces. Its final result on a part holds for every point of the part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from roofdsl.counts.lines.symbolic import Growing, Monomial, Sizes, Undecided, divided, same, substituted

Bounds = Mapping[int, tuple[Any, Any]]
"""Coordinate -> (the least value, the largest one); both grow with the sizes where these are symbols."""

MOST_COMPARISONS = 60_000
"""Comparisons that are made for one kernel, at most: a second or two of work."""


class Split(Exception):
    """The part does not decide a comparison: `form` is negative in some of it, and not elsewhere."""

    def __init__(self, form: Growing) -> None:
        super().__init__(form)
        self.form = form


class NeedsBlocks(Exception):
    """The remainder of a coordinate modulo the elements of a line matters, so the coordinate is rewritten as a block
    and a remainder.
    """

    def __init__(self, coordinate: int) -> None:
        super().__init__(coordinate)
        self.coordinate = coordinate


class Cell:
    """A part: the coordinates within `bounds` for which all `constraints` (forms) are at least 0.

    forms: values that are rewritten whenever the coordinates change, the loop variables first. Coordinates are the
    symbols from `sizes.count` on. Each loop has three: its variable, the block of its variable by `step`, and the
    remainder.
    """

    __slots__ = ("_known", "bounds", "constraints", "forms", "sizes", "step")

    def __init__(
        self, sizes: Sizes, step: int, bounds: Bounds, forms: tuple[Any, ...], constraints: tuple[Growing, ...] = ()
    ) -> None:
        self.sizes, self.step, self.bounds, self.forms, self.constraints = sizes, step, bounds, forms, constraints
        self._known: dict[object, bool | None] = {}

    @staticmethod
    def of_box(sizes: Sizes, step: int, box: tuple[tuple[Any, Any], ...]) -> Cell:
        """The whole box; it gives (first, last) for each loop."""
        bounds = {sizes.count + 3 * d: ends for d, ends in enumerate(box)}
        cell: Cell | None = Cell(sizes, step, bounds, tuple(sizes.symbol(u) for u in bounds))
        for u, (low, high) in bounds.items():
            if cell is not None and same(low, high):
                cell = cell.substituted(u, low)
        if cell is None:
            raise ArithmeticError("a box without points")
        return cell

    def with_forms(self, forms: tuple[Any, ...]) -> Cell:
        other = Cell(self.sizes, self.step, self.bounds, forms, self.constraints)
        other._known = self._known  # facts about the part, which is the same one
        return other

    # ---- what is decided ----

    def negative(self, form: Any) -> bool:
        """Whether a form is negative on the whole part. Raises Split if that is not known."""
        known = self.known_negative(form)
        if known is None:
            raise Split(form)
        return known

    def known_negative(self, form: Any) -> bool | None:
        """Whether a form is negative on the whole part; None if that differs within the part, or is not shown."""
        if isinstance(form, int):
            return form < 0
        key = form.constant, *form.terms.items()
        if key not in self._known:
            self._known[key] = self._known_negative(form)
        return self._known[key]

    def _known_negative(self, form: Growing) -> bool | None:
        sizes = self.sizes
        sizes.comparisons += 1
        if sizes.comparisons > MOST_COMPARISONS:
            raise Undecided("too many parts of the iterations differ")
        low, high = self.range(form)
        if high < 0:
            return True
        if low >= 0:
            return False
        if self.constraints:
            if self._implied(form):
                return False
            if self._implied(-form - 1):
                return True
        return None

    def zero(self, form: Any) -> bool:
        """Whether a form is 0 on the whole part. Raises Split if that is not known."""
        if isinstance(form, int):
            return form == 0
        return not self.negative(form) and not self.negative(-form)

    def range(self, form: Any) -> tuple[Any, Any]:
        """The least and the largest value of a form, as bounds over the ranges of the coordinates."""
        if isinstance(form, int):
            return form, form
        count, bounds = self.sizes.count, self.bounds
        low = high = form.constant
        lows: dict[Monomial, int] = {}
        highs: dict[Monomial, int] = {}
        for monomial, factor in form.terms.items():
            u = monomial[-1]
            if u < count:
                lows[monomial] = lows.get(monomial, 0) + factor
                highs[monomial] = highs.get(monomial, 0) + factor
                continue
            if len(monomial) > 1:
                return self._range_of_products(form)
            first, last = bounds[u] if factor > 0 else bounds[u][::-1]
            if first.__class__ is int:
                low += factor * first
            else:
                low += factor * first.constant
                for m, c in first.terms.items():
                    lows[m] = lows.get(m, 0) + factor * c
            if last.__class__ is int:
                high += factor * last
            else:
                high += factor * last.constant
                for m, c in last.terms.items():
                    highs[m] = highs.get(m, 0) + factor * c
        return self._sum(lows, low), self._sum(highs, high)

    def _sum(self, terms: dict[Monomial, int], constant: int) -> Any:
        left = {m: c for m, c in terms.items() if c}
        return Growing(self.sizes, left, constant) if left else constant

    def _range_of_products(self, form: Growing) -> tuple[Any, Any]:
        """`range` for a form with products of sizes and coordinates."""
        count, bounds = self.sizes.count, self.bounds
        base: Any = form.constant
        linear: dict[int, Any] = {}
        for monomial, factor in form.terms.items():
            u = monomial[-1]
            if u < count:
                base = base + Growing(self.sizes, {monomial: factor}, 0)
            elif len(monomial) == 1:
                linear[u] = linear.get(u, 0) + factor
            elif monomial[-2] >= count:
                return self._corners(form, u)
            else:
                linear[u] = linear.get(u, 0) + Growing(self.sizes, {monomial[:-1]: factor}, 0)
        low = high = base
        for u, factor in linear.items():
            first, last = bounds[u]
            if factor > 0:
                low, high = low + factor * first, high + factor * last
            else:
                low, high = low + factor * last, high + factor * first
        return low, high

    def _corners(self, form: Growing, u: int) -> tuple[Any, Any]:
        """`range` for a form with products of coordinates, one of which is `u`."""
        if any(monomial.count(u) > 1 for monomial in form.terms):
            raise Undecided("a square of a loop variable")
        ends = [self.range(substituted(form, u, end)) for end in self.bounds[u]]
        return min(e[0] for e in ends), max(e[1] for e in ends)

    def _implied(self, form: Growing) -> bool:
        """Whether a constraint, or a multiple of it, shows together with the ranges that a form is at least 0."""
        for constraint in self.constraints:
            of = next((m for m in constraint.terms if len(m) == 1 and m[0] >= self.sizes.count), None)
            have, want = (0, 0) if of is None else (constraint.terms[of], form.terms.get(of, 0))
            if want * have > 0:
                # Coordinate `of` cancels. As constraint >= 0, the bound shows that scale * form > -scale: form > -1.
                scale = abs(have)
                low, _ = self.range(scale * form - abs(want) * constraint)
                if low > -scale:
                    return True
        return False

    # ---- arithmetic that depends on the part ----

    def blocks(self, form: Any, size: int) -> Any:
        """A form divided by `size`, rounded down. Raises Split, and NeedsBlocks if a remainder matters."""
        if isinstance(form, int) or size == 1:
            return form if size == 1 else form // size
        count = self.sizes.count
        whole: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        for monomial, factor in form.terms.items():
            if factor % size:
                if monomial[-1] < count:
                    raise Undecided(f"the remainder of {form} by {size}")
                if (monomial[-1] - count) % 3 == 0:
                    raise NeedsBlocks(monomial[-1])
                rest[monomial] = factor
            else:
                whole[monomial] = factor // size
        constant = form.constant
        if rest:
            left = Growing(self.sizes, rest, constant)
            low, high = self.range(left)
            at, end = low // size, high // size
            while at < end:
                if self.negative(left - (at + 1) * size):
                    break
                at += 1
        else:
            at = constant // size
        return Growing(self.sizes, whole, at) if whole else at

    # ---- cutting ----

    def parts(self, split: Split | NeedsBlocks) -> list[Cell]:
        """The part cut into pieces in which the comparison that raised `split` is decided, or closer to decided."""
        if isinstance(split, NeedsBlocks):
            return self._blocked(split.coordinate)
        return self._cut(split.form)

    def _cut(self, form: Growing) -> list[Cell]:
        if any(len(m) > 1 and m[-1] >= self.sizes.count for m in form.terms):
            form = self._leading(form)
            if self.known_negative(form) is None and any(len(m) > 1 and m[-1] >= self.sizes.count for m in form.terms):
                return self._cut(form)
        base, linear = self._linear(form)
        # coordinates of a loop, modulo 3: 0 its variable, 1 its block, 2 its remainder
        roles = {(u - self.sizes.count) % 3 > 0: u for u in linear}
        if len(roles) == 2:  # a loop variable and blocks of others: written in blocks, the two can be compared
            return self._blocked(roles[False])
        most = max(map(abs, linear.values()))
        small: dict[Monomial, int] = {(u,): c for u, c in linear.items() if abs(c) < most}
        if small:
            # form = base + most * big + rest: up to `below`, `big` makes it negative whatever the rest is, and from
            # `above` on it makes it nonnegative. Only between these two does the rest decide.
            big = Growing(self.sizes, {(u,): c // most for u, c in linear.items() if abs(c) == most}, 0)
            rest = Growing(self.sizes, small, 0)
            low, high = self.range(rest)
            below, above = (-1 - high - base) // most, -((low + base) // most)
            for other in (big - below - 1, big - above):
                if self.known_negative(other) is None:
                    return self._cut(other)
            if same(above - below, 2):
                return self._cut(rest + (base + most * (below + 1)))
        if len(linear) == 1:
            ((u, factor),) = linear.items()
            first, last = self.bounds[u]
            at = (-1 - base) // factor if factor > 0 else base // -factor
            return [c for c in (self.within(u, first, at), self.within(u, at + 1, last)) if c is not None]
        return [c for c in (self.constrained(-form - 1), self.constrained(form)) if c is not None]

    def _leading(self, form: Growing) -> Any:
        """A simpler form to decide first, for a form with products of a size and coordinates.

        Let form = size * lead + rest, where the rest is at most a few sizes. The result is `lead` minus a small number
        or, if that is decided, the form with this number instead of `lead`. It has no such products, or fewer. Raises
        Undecided.
        """
        count = self.sizes.count
        sizes = {m[0] for m in form.terms if len(m) > 1 and m[-1] >= count}
        size = min(sizes)
        if len(sizes) > 1 or size >= count:
            raise Undecided("a comparison of products of loop variables")
        lead: Any = 0
        for monomial, factor in form.terms.items():
            if monomial[0] == size:
                rest = monomial[1:]
                lead = lead + (Growing(self.sizes, {rest: factor}, 0) if rest else factor)
        symbol = self.sizes.symbol(size)
        other = form - lead * symbol
        low, high = self.range(other)
        below = next((t for t in range(3, -7, -1) if symbol * t + high < 0), None)
        above = next((t for t in range(-3, 7) if symbol * t + low >= 0), None)
        if below is None or above is None:
            raise Undecided("a comparison of products of loop variables")
        for edge in (below + 1, above):
            if self.known_negative(lead - edge) is None:
                return lead - edge
        if above - below == 2:
            return symbol * (below + 1) + other
        raise Undecided("a comparison of products of loop variables")

    def _linear(self, form: Growing) -> tuple[Any, dict[int, int]]:
        """A form as a number and the coefficients of the coordinates. Raises Undecided for products."""
        base: Any = form.constant
        linear: dict[int, int] = {}
        for monomial, factor in form.terms.items():
            if monomial[-1] < self.sizes.count:
                base = base + Growing(self.sizes, {monomial: factor}, 0)
            elif len(monomial) == 1:
                linear[monomial[0]] = factor
            else:
                raise Undecided("a comparison of products of loop variables")
        return base, linear

    def within(self, u: int, low: Any, high: Any) -> Cell | None:
        """The piece in which coordinate u is from low to high; None if it is empty."""
        if low > high:
            return None
        if same(low, high):
            return self.substituted(u, low)
        return Cell(self.sizes, self.step, {**self.bounds, u: (low, high)}, self.forms, self.constraints)

    def constrained(self, form: Any) -> Cell | None:
        """The piece in which a form is at least 0; None if it is certainly empty."""
        if not isinstance(form, int):
            form = divided(form)
        low, high = self.range(form)
        if high < 0:
            return None
        if low >= 0:
            return self
        if same(high, 0):
            return self._equal(form)
        base, linear = self._linear(form)
        if len(linear) == 1:
            ((u, factor),) = linear.items()
            first, last = self.bounds[u]
            if factor > 0:
                return self.within(u, max(first, -(base // factor)), last)
            return self.within(u, first, min(last, base // -factor))
        if self.constraints:
            if self._implied(form):
                return self
            if self._implied(-form - 1):
                return None
            if self._implied(-form):
                return self._equal(form)
        return Cell(self.sizes, self.step, self.bounds, self.forms, (*self.constraints, form))

    def _equal(self, form: Growing) -> Cell | None:
        """The piece in which a form that is at most 0 is 0."""
        for monomial, factor in form.terms.items():
            (*_, u) = monomial
            if u >= self.sizes.count and len(monomial) == 1 and abs(factor) == 1:
                value = substituted(form, u, 0) * -factor
                first, last = self.bounds[u]
                plain = Cell(self.sizes, self.step, self.bounds, (*self.forms, value), self.constraints)
                cell = plain.substituted(u, value)
                if cell is None:
                    return None
                now = cell.forms[-1]
                return cell.with_forms(cell.forms[:-1])._all([now - first, last - now])
        return Cell(self.sizes, self.step, self.bounds, self.forms, (*self.constraints, form))

    def substituted(self, u: int, value: Any) -> Cell | None:
        """The part with a form in place of coordinate u."""
        bounds = {v: ends for v, ends in self.bounds.items() if v != u}
        forms = tuple(substituted(f, u, value) for f in self.forms)
        return Cell(self.sizes, self.step, bounds, forms)._all(
            [substituted(constraint, u, value) for constraint in self.constraints]
        )

    def _all(self, constraints: Sequence[Any]) -> Cell | None:
        """The piece in which all these forms are at least 0; they are rewritten with the others during the cuts."""
        cell: Cell | None = self.with_forms((*self.forms, *constraints))
        while cell is not None and len(cell.forms) > len(self.forms):
            cell = cell.with_forms(cell.forms[:-1]).constrained(cell.forms[-1])
        return cell

    def _blocked(self, u: int) -> list[Cell]:
        """The pieces for a loop variable written as its block times `step` plus a remainder: the first block, whole
        blocks, the last block.
        """
        step, (low, high) = self.step, self.bounds[u]
        first, last = low // step, high // step
        value = self.sizes.symbol(u + 1) * step + self.sizes.symbol(u + 2)
        if same(first, last):
            choices = [((first, last), (low - first * step, high - first * step))]
        else:
            head, tail = low - first * step, high - last * step
            inner = first + (head > 0), last - (tail < step - 1)
            choices = [((first, first), (head, step - 1))] if head > 0 else []
            if not inner[0] > inner[1]:
                choices.append((inner, (0, step - 1)))
            if tail < step - 1:
                choices.append(((last, last), (0, tail)))
        found = []
        for block, within in choices:
            bounds = {**self.bounds, u + 1: block, u + 2: within}
            cell: Cell | None = Cell(self.sizes, self.step, bounds, self.forms, self.constraints)
            cell = cell.substituted(u, value) if cell else None
            for coordinate, ends in ((u + 1, block), (u + 2, within)):
                if cell is not None and coordinate in cell.bounds and same(*ends):
                    cell = cell.substituted(coordinate, ends[0])
            if cell is not None:
                found.append(cell)
        return found
