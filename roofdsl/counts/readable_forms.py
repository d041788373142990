"""Closed forms prepared for printing: the case for large sizes comes first, and conditions read naturally."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from roofdsl.counts.derived import Derivation, Quantity, Ratio
from roofdsl.counts.growth import classes_of, far_sizes, large_case, leading_anywhere, remainders_decide
from roofdsl.formulas.quotients import Alternatives, Quotient, RatioCase, Shorthand, quotient, shortened
from roofdsl.formulas.writing import LATEX_RELATIONS, Remainder, latex, neat_latex, neat_text, remainder, sides, text
from roofdsl.lang.record import Record
from roofdsl.loops.accesses import statements
from roofdsl.loops.integers import Const, FloorDiv, IntExpr, Product, Sum, Sym
from roofdsl.loops.model import Kernel
from roofdsl.sets.cases import Case, Cases, Constraint
from roofdsl.sets.facts import Fact
from roofdsl.sets.plateaus import Growth
from roofdsl.sets.quasi import Floor, Quasi, floor
from roofdsl.sets.residues import resolved

Names = Mapping[Floor, Shorthand]


class Branch(Record):
    """`expr` if `where` holds; without alternatives, it holds everywhere."""

    expr: Quotient
    where: Alternatives


class Form(Record):
    """A closed form: the case to show (the one at the given sizes, otherwise for large ones), and the others.

    The value is 0 (undefined for a ratio) if no case holds.
    """

    main: Branch
    others: tuple[Branch, ...]

    @property
    def branches(self) -> tuple[Branch, ...]:
        return (self.main, *self.others)


def of_cases(form: Cases, order: Growth, names: Names | None = None, at: Mapping[str, int] | None = None) -> Form:
    """A closed form, with named floors written by their names; the case for the sizes `at` comes first."""
    main = _held(form, at) or large_case(form, order)
    others = tuple(
        Branch(Quotient(shortened(c.value, names or {})), c.alternatives) for c in form.cases if c is not main
    )
    return Form(Branch(Quotient(shortened(main.value, names or {})), main.alternatives), others)


def _held(form: Cases, at: Mapping[str, int] | None) -> Case | None:
    """The case that holds at these sizes; None if none does, or if the sizes do not decide it."""
    try:
        return next((c for c in form.cases if c.holds(at)), None) if at else None
    except KeyError:
        return None


def of_quantity(
    q: Quantity, order: Growth, names: Names | None = None, at: Mapping[str, int] | None = None
) -> Form | None:
    """The form of a quantity; None if it has none."""
    return None if q.form is None else of_cases(q.form, order, names, at)


def of_ratio(r: Ratio, order: Growth, names: Names | None = None, at: Mapping[str, int] | None = None) -> Form | None:
    """The form of a ratio, case by case; None if it has none."""
    rows = r.cases()
    if not rows:
        return None
    main = _main_row(rows, order, at)
    branches = [
        Branch(row.value if not names else row.value.replaced(lambda v: shortened(v, names)), row.where) for row in rows
    ]
    return Form(branches[main], tuple(b for k, b in enumerate(branches) if k != main))


def _main_row(rows: Sequence[RatioCase], order: Growth, at: Mapping[str, int] | None) -> int:
    """The case to show: the one for the sizes `at`, otherwise the one for large sizes."""
    form = Cases(tuple(Case(row.where, row.bottom) for row in rows))
    main = _held(form, at) or large_case(form, order)
    return next((k for k, row in enumerate(rows) if row.where == main.alternatives), 0)


def gives(q: Quantity | Ratio, at: Mapping[str, int]) -> bool:
    """Whether the closed form has the given value at the sizes `at`, so that the two may be shown as equal.

    True if there is no form, or if sizes are missing. A form that holds under a condition (rows aligned, n >= 4, one
    case of several) may differ at the given sizes. If the condition does not hold there, an equal value is chance.
    """
    if any(_fails(fact, at) for fact in q.assumes):
        return False
    try:
        if isinstance(q, Quantity):
            case = None if q.form is None else next((c for c in q.form.cases if c.holds(at)), None)
            none = q.form is None or not q.form.cases
            return none or (case is not None and case.value.evaluate(at) == q.value)
        row = next((r for r in q.cases() if Case(r.where, r.bottom).holds(at)), None)
        return row is not None and row.top.evaluate(at) == (q.value or 0) * row.bottom.evaluate(at)
    except KeyError:
        return True


def _fails(fact: Fact, at: Mapping[str, int]) -> bool:
    """Whether an assumption is known not to hold at these sizes."""
    try:
        return fact.holds(at) is False
    except KeyError:  # a size, or that of the cache, is a symbol
        return False


def limit_of(r: Ratio, order: Growth, at: Mapping[str, int] | None = None) -> Quotient | None:
    """The ratio of the leading terms for large sizes, for the case that `of_ratio` shows.

    at: sizes whose remainders count. None if there is no form, if the case does not hold for large sizes, or if unknown
    remainders decide it.
    """
    rows = r.cases()
    if not rows:
        return None
    shown = rows[_main_row(rows, order, at)]
    bottoms = Cases(tuple(Case(row.where, row.bottom) for row in rows))
    every = Cases((*bottoms.cases, *(Case(row.where, row.top) for row in rows)))
    found: set[Quotient | None] = set()
    classes = classes_of(every, at or {})
    if classes is None:
        return _limit_anywhere(shown, bottoms, order)
    for rests in classes:
        if large_case(bottoms, order, rests).alternatives == shown.where:
            sizes = far_sizes(every, order, rests)
            top, bottom = (order.leading(resolved(v, sizes)) for v in (shown.top, shown.bottom))
            found.add(quotient(top, bottom) if top and bottom else None)
    return found.pop() if len(found) == 1 else None


def _limit_anywhere(shown: RatioCase, bottoms: Cases, order: Growth) -> Quotient | None:
    """The limit of a case whatever the remainders of the sizes; None if these may decide it."""
    if remainders_decide(bottoms) or large_case(bottoms, order).alternatives != shown.where:
        return None
    top, bottom = (leading_anywhere(v, order) for v in (shown.top, shown.bottom))
    return quotient(top, bottom) if top and bottom else None


# ---- floors ----


def names_of_derivation(d: Derivation) -> Names:
    """Names for the floors in W and in the bytes of the arrays."""
    found = (d.work.total, d.compulsory.bytes, *d.by_array.values())
    values = [c.value for q in found if q.form is not None for c in q.form.cases]
    return names_of(d.kernel, values)


def names_of(kernel: Kernel, found: Iterable[Quasi]) -> Names:
    """A name for each extent with `//` that the kernel writes and `found` contains: p = (h - r)//2 + 1."""
    atoms = {a for value in found for a in value.atoms() if isinstance(a, Floor)}
    if not atoms:
        return {}
    taken = {p.name for p in kernel.parameters} | {a.name for a in kernel.arrays}
    fresh = (n for n in ("p", "q", "u", "v", "w", *(f"p{k}" for k in range(1, 1000))) if n not in taken)
    names: dict[Floor, Shorthand] = {}
    for extent in _extents(kernel):
        try:
            value = quasi_of(extent)
        except ValueError:
            continue
        floors = [(m, c) for m, c in value if any(isinstance(a, Floor) for a, _ in m)]
        if len(floors) != 1 or floors[0][1] != 1 or len(floors[0][0]) != 1:
            continue
        ((atom, power),) = floors[0][0]
        if power == 1 and isinstance(atom, Floor) and atom in atoms and atom not in names:
            rest = value - Quasi.symbol(atom)
            names[atom] = Shorthand(next(fresh), str(extent), atom, rest)
    return names


def _extents(kernel: Kernel) -> Iterator[IntExpr]:
    for array in kernel.arrays:
        yield from array.dims
    for placed in statements(kernel.body):
        for loop in placed.loops:
            yield loop.stop


def quasi_of(e: IntExpr) -> Quasi:
    """An expression of parameters as a quasi-polynomial. Raises ValueError for anything else, such as minima, maxima,
    `%` and symbolic divisors.
    """
    match e:
        case Const(value):
            return Quasi.constant(value)
        case Sym(name):
            return Quasi.symbol(name)
        case Sum(terms):
            return sum((quasi_of(t) for t in terms), Quasi.constant(0))
        case Product(terms):
            product = Quasi.constant(1)
            for t in terms:
                product = product * quasi_of(t)
            return product
        case FloorDiv(numerator, Const(divisor)) if divisor > 0:
            return floor(quasi_of(numerator) * Quasi.constant(divisor) ** -1)
    raise ValueError(str(e))


# ---- conditions ----


def covers(form: Form) -> bool:
    """Whether the cases visibly hold for all sizes: one has no condition, or together they bound one parameter without
    gaps.
    """
    if any(not b.where for b in form.branches):
        return True
    values = [value for b in form.branches for constraints in b.where for value, _ in constraints]
    names = frozenset[str]().union(*(value.names() for value in values))
    # Between two bounds, the same cases hold everywhere. So a gap shows at a bound or right beside one.
    edges = {1}
    for value in values:
        bound = _bound(value)
        if bound is None:
            return False
        edges |= {bound[2] - 1, bound[2], bound[2] + 1}
    cases = Cases(tuple(Case(b.where, Quasi.constant(1)) for b in form.branches))
    return len(names) == 1 and all(cases.evaluate(dict.fromkeys(names, e)) for e in edges if e > 0)


Chain = tuple[tuple[Quasi, ...], tuple[str, ...]]
"""Values with a relation between each and the next: 9 <= n <= 56."""


def condition_text(where: Alternatives) -> str:
    """A condition in the usual notation: `n >= 3`, `9 <= n <= 56 and m >= 2`, alternatives joined by `or`."""

    def one(constraints: tuple[Constraint, ...]) -> str:
        parts = [
            " ".join(_interleaved([neat_text(value) for value in values], ops))
            for values, ops in _chains(_plain(constraints))
        ]
        parts += [
            f"{_bracketed(text(r.of), r.of)} % {r.modulus} {r.relation} {r.number}" for r in _remainders(constraints)
        ]
        return " and ".join(parts)

    return " or ".join(map(one, where))


def _remainders(constraints: tuple[Constraint, ...]) -> list[Remainder]:
    found = [remainder(value, zero) for value, zero in constraints]
    return [each for each in found if each is not None]


def _remainder_latex(found: Remainder) -> str:
    relation = LATEX_RELATIONS[found.relation]
    return f"{_bracketed(latex(found.of), found.of)} \\bmod {found.modulus} {relation} {found.number}"


def _plain(constraints: tuple[Constraint, ...]) -> tuple[Constraint, ...]:
    """The constraints on no remainders, without those that a stronger one implies: h >= r beside h >= r + 2."""
    kept = [(value, zero) for value, zero in constraints if remainder(value, zero) is None]
    known = dict(found for value, zero in kept if zero and (found := _fixed(value)) is not None)
    least: dict[Quasi, Fraction] = {}
    for value, zero in kept:
        if not zero:
            rest = value - value.constant_value()
            least[rest] = min(least.get(rest, value.constant_value()), value.constant_value())

    def implied(value: Quasi) -> bool:
        now = value.substitute(known)
        stronger = least[value - value.constant_value()] < value.constant_value()
        return stronger or (now.is_constant() and now.constant_value() >= 0)

    return tuple(dict.fromkeys((value, zero) for value, zero in kept if zero or not implied(value)))


def _fixed(value: Quasi) -> tuple[str, Quasi] | None:
    """(n, number) if value = 0 says that n is this number: 3 for 2*n - 6; None for another form."""
    moving = [(m, c) for m, c in value if m]
    if len(moving) != 1:
        return None
    ((monomial, c),) = moving
    ((atom, power), *others) = monomial
    if others or power != 1 or not isinstance(atom, str):
        return None
    return atom, Quasi.constant(-value.constant_value() / c)


def _bracketed(shown: str, value: Quasi) -> str:
    return f"({shown})" if len(value.terms) > 1 else shown


def range_text(where: Alternatives, name: str) -> str:
    """A condition as bounds of one parameter: `24 <= Z <= min(16*n - 8, 8*m)`, then the conditions on others."""
    return " or ".join(_range(constraints, name) or condition_text((constraints,)) for constraints in where)


def _range(constraints: Sequence[Constraint], name: str) -> str:
    """Empty if the parameter is not bounded, or not by itself."""
    low: list[str] = []
    high: list[str] = []
    equal: list[str] = []
    others: list[Constraint] = []
    for value, zero in constraints:
        if name not in value.names():
            others.append((value, zero))
            continue
        c = dict(value.terms).get(((name, 1),))
        bound = value if c is None else Quasi.symbol(name) - value * (1 / c)
        if c is None or name in bound.names():
            return ""
        if zero:
            equal.append(text(bound))
        else:
            (low if c > 0 else high).append(text(bound))
    if len(equal) > 1:
        return ""
    parts = [f"{name} = {at}" for at in equal]
    least, most = _one_of("max", low), _one_of("min", high)
    if least and most:
        parts.append(f"{least} <= {name} <= {most}")
    elif low or high:
        parts.append(f"{name} >= {least}" if low else f"{name} <= {most}")
    rest = condition_text((tuple(others),)) if others and parts else ""
    return " and ".join([*parts, rest] if rest else parts)


def _one_of(which: str, bounds: Sequence[str]) -> str:
    """The greatest or the least of several bounds."""
    return f"{which}({', '.join(sorted(bounds))})" if len(bounds) > 1 else "".join(bounds)


def condition_latex(where: Alternatives) -> str:
    """A condition for math mode."""

    def one(constraints: tuple[Constraint, ...]) -> str:
        parts = [
            " ".join(_interleaved([neat_latex(value) for value in values], [LATEX_RELATIONS[op] for op in ops]))
            for values, ops in _chains(_plain(constraints))
        ]
        return ",\\ ".join([*parts, *map(_remainder_latex, _remainders(constraints))])

    return r"\ \text{or}\ ".join(map(one, where))


def _interleaved(values: Sequence[str], relations: Sequence[str]) -> Iterator[str]:
    for k, value in enumerate(values):
        yield value
        if k < len(relations):
            yield relations[k]


def _chains(constraints: tuple[Constraint, ...]) -> list[Chain]:
    """A conjunction, bounds of one parameter first and joined, then the rest."""
    low: dict[str, int] = {}
    high: dict[str, int] = {}
    rest: list[Chain] = []
    for value, zero in constraints:
        bound = None if zero else _bound(value)
        if bound is None:
            rest.append((sides(value), ("=" if zero else ">=",)))
        elif bound[1]:
            low[bound[0]] = max(low.get(bound[0], bound[2]), bound[2])
        else:
            high[bound[0]] = min(high.get(bound[0], bound[2]), bound[2])
    out: list[Chain] = []
    for name in sorted({*low, *high}):
        middle = Quasi.symbol(name)
        below, above = Quasi.constant(low.get(name, 0)), Quasi.constant(high.get(name, 0))
        if name not in high:
            out.append(((middle, below), (">=",)))
        elif name not in low:
            out.append(((middle, above), ("<=",)))
        elif below == above:
            out.append(((middle, below), ("=",)))
        else:
            out.append(((below, middle, above), ("<=", "<=")))
    return out + sorted(rest, key=lambda chain: [text(v) for v in chain[0]])


def _bound(value: Quasi) -> tuple[str, bool, int] | None:
    """(name, whether from below, bound) of `value >= 0` in one parameter to the first power."""
    linear = [(m, c) for m, c in value if m]
    if len(linear) != 1:
        return None
    ((monomial, c),) = linear
    if len(monomial) != 1 or monomial[0][1] != 1 or not isinstance(monomial[0][0], str):
        return None
    edge = -value.constant_value() / c
    return monomial[0][0], c > 0, -(-edge // 1) if c > 0 else edge // 1
