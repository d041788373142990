"""The result of a derivation: quantities with closed forms and values, which notebooks show as formulas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from roofdsl.formulas.quotients import RatioCase, ratio_cases
from roofdsl.formulas.writing import form_text, ratio_text
from roofdsl.lang.display_writers import Shown
from roofdsl.lang.record import Record
from roofdsl.loops.integers import Condition, IntExpr
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.sets.cases import Case, Cases
from roofdsl.sets.facts import Fact
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.terms import Terms

AS_TERMS = "a sum of conditional terms"
"""The note of a quantity whose closed form is not a partition into cases."""


class Quantity(Shown):
    """A derived quantity: its closed form and its exact value.

    form: None if no closed form is found. value: None if sizes are missing, or if it takes too long. note: why the form
    or the value is missing. terms: the closed form if it is a sum of conditional terms; `form` is then None.
    """

    form: Cases | None
    value: Fraction | None = None
    note: str = ""
    terms: Terms | None = None

    @property
    def assumes(self) -> tuple[Fact, ...]:
        """The assumptions of the form beyond the kernel's own."""
        found = self.form or self.terms
        return found.assumes if found is not None else ()

    @property
    def expr(self) -> str | None:
        """The closed form as text that sympy reads; None if there is none, or if it is a sum of terms."""
        return None if self.form is None else form_text(self.form)

    def sympy(self) -> Any:
        """The closed form as a sympy expression; None as for `expr`."""
        from roofdsl.formulas.sympy_forms import expression

        return None if self.form is None else expression(self.form)


class Ratio(Shown):
    """numerator / denominator, both derived.

    The value is None if the value of either is None, or if there is no ratio: the denominator is 0, or a numerator W
    is.
    """

    numerator: Quantity
    denominator: Quantity
    of_work: bool = False
    """Whether the numerator is W, so that there is no ratio where it is 0 (rule 16)."""

    @property
    def value(self) -> Fraction | None:
        top, bottom = self.numerator.value, self.denominator.value
        return top / bottom if top is not None and bottom and (top or not self.of_work) else None

    @property
    def note(self) -> str:
        if self.denominator.terms is not None and not self.numerator.note:
            return "its denominator is a sum of conditional terms"
        return self.numerator.note or self.denominator.note

    @property
    def assumes(self) -> tuple[Fact, ...]:
        return tuple(dict.fromkeys((*self.numerator.assumes, *self.denominator.assumes)))

    def cases(self) -> list[RatioCase]:
        """The ratio case by case, in the order in which to try them; empty if there is no form."""
        if self.numerator.form is None or self.denominator.form is None:
            return []
        return ratio_cases(self.numerator.form, self.denominator.form, of_work=self.of_work)

    @property
    def expr(self) -> str | None:
        """The ratio in lowest terms, as text that sympy reads; None if a form is missing or there is no ratio."""
        rows = self.cases()
        return ratio_text(rows, otherwise="nan") if rows else None

    def sympy(self) -> Any:
        """The ratio as a sympy expression in lowest terms; None if a form is missing or there is no ratio."""
        from roofdsl.formulas.sympy_forms import ratio

        rows = self.cases()
        return ratio(rows) if rows else None


class Work(Record):
    """W and its parts (docs/rules.md, rules 1 to 7): quantities in operations.

    by_function: the operations of the class "special", by function.
    """

    total: Quantity
    by_class: Mapping[str, Quantity]
    by_function: Mapping[str, Quantity]
    by_type: Mapping[str, Quantity]
    fused_pairs: Quantity
    cmp: Quantity
    casts: Quantity

    @property
    def fma_fraction(self) -> Ratio:
        """alpha = F / (F + N) = F / (W - F) (rule 5)."""
        others = combined(self.total, self.fused_pairs, -1)
        return Ratio(self.fused_pairs, others)


class Traffics(Record):
    """The traffic through one cache in bytes; loads and stores are None in the convention `once`."""

    loads: Quantity | None
    stores: Quantity | None
    bytes: Quantity


class Plateau(Record):
    """One plateau of Q(Z): its first cache size, traffic and intensity; leading terms unless `exact`.

    all_bytes: the traffic on the plateau with all lower-order terms. until_bytes: where the plateau ends, if that is
    before the next one begins; from there on, Q(Z) falls gradually, because reuse distances that grow along a loop
    begin to fit. where: the sizes for which the row holds, by their remainders (None: all sizes). end_bytes: where
    `all_bytes` ends.
    """

    from_bytes: Quantity
    bytes: Quantity
    intensity: Ratio
    exact: bool
    all_bytes: Quantity
    until_bytes: Quantity | None = None
    where: Condition | None = None
    end_bytes: Quantity | None = None


# ---- the argument behind it, step by step ----


class LoopStep(Record):
    """`for var in range(start, stop, step)`."""

    var: str
    start: IntExpr
    stop: IntExpr
    step: IntExpr


class StatementStep(Record):
    """One statement: where it runs, how often, and the cost of one execution.

    operations: (class, number) for one execution, including those in pairs. fused_pairs, comparisons, casts: per
    execution.
    """

    text: str
    loops: tuple[LoopStep, ...]
    guards: tuple[str, ...]
    executions: Quantity
    operations: tuple[tuple[str, int], ...]
    fused_pairs: int
    comparisons: int
    casts: int

    @property
    def total(self) -> int:
        return sum(n for _, n in self.operations)


Access = Literal["read", "written", "read, then written", "written, then read", "mixed"]


class ArrayStep(Record):
    """One array: its references, the number of distinct elements (or lines) they touch, and the resulting traffic.

    unit_bytes: the size of an element, or of a line if `in_lines`. loaded, stored: bytes, None under `once`. first: how
    each element is accessed, the first kind of access first; "mixed" if elements differ.
    """

    name: str
    references: tuple[str, ...]
    unit_bytes: int
    in_lines: bool
    intent: str
    distinct: Quantity
    bytes: Quantity
    first: Access
    loaded: Quantity | None
    stored: Quantity | None


class ReuseStep(Record):
    """Reuse of an array: the previous access was in an earlier iteration of `loop`, or in the same one (`within`).

    references: those that find their element this way. loop: None if no loop surrounds both accesses. low, high: the
    shortest and the longest distance in bytes, leading terms; a cache of that size holds the element. times: the number
    of such accesses, leading terms. step: the step of Q(Z) that the reuse belongs to.
    """

    array: str
    references: tuple[str, ...]
    loop: str | None
    within: bool
    low: Quantity
    high: Quantity
    times: Quantity
    step: int


class PlateauStep(Record):
    """One plateau of Q(Z): what the cache begins to hold there, and what each array moves (leading terms).

    best_from_bytes: the size that is enough under the best replacement, where that is less than LRU needs.
    """

    plateau: Plateau
    held: tuple[ReuseStep, ...]
    by_array: tuple[tuple[str, Quantity], ...]
    best_from_bytes: Quantity | None = None


class Steps(Record):
    """The whole argument. scalars: bytes loaded and stored once. streamed: those that stores past the caches move.
    reuses: those that matter to leading order, by distance; `note` says why there are none."""

    statements: tuple[StatementStep, ...]
    arrays: tuple[ArrayStep, ...]
    scalars: tuple[int, int]
    reuses: tuple[ReuseStep, ...]
    plateaus: tuple[PlateauStep, ...]
    note: str
    streamed: Quantity | None = None


# ---- what depends on data ----


class Share(Record):
    """How much of what an array could move it does move, where that depends on data: alpha, between two bounds.

    alpha: the bytes that move when the array is accessed, divided by the number of accesses and by the bytes of an
    element (Kreutzer et al., SIAM J. Sci. Comput. 36(5), 2014). name: its symbol in forms. accesses: their number; a
    read and a write of one element by one statement are one. least, most: lower bounds of alpha, and upper ones; all of
    them hold. loads, stores: whether this share is loaded (in `load_store`), and stored. stated: what the kernel
    assumes. value: for the data given.
    """

    name: str
    array: str
    references: tuple[str, ...]
    element_bytes: int
    accesses: Quantity
    least: tuple[Ratio, ...]
    most: tuple[Ratio, ...]
    loads: bool
    stores: bool
    stated: Fraction | None = None
    value: Fraction | None = None

    @property
    def low(self) -> Fraction | None:
        """The value if it is known, otherwise the lower bound at the sizes given; None if sizes are missing."""
        if self.value is not None or self.stated is not None:
            return self.value if self.value is not None else self.stated
        return _extreme(max, self.least)

    @property
    def high(self) -> Fraction | None:
        """The value if it is known, otherwise the upper bound at the sizes given; None if sizes are missing."""
        if self.value is not None or self.stated is not None:
            return self.value if self.value is not None else self.stated
        return _extreme(min, self.most)


def _extreme(of: Callable[[list[Fraction]], Fraction], ratios: tuple[Ratio, ...]) -> Fraction | None:
    values = [r.value for r in ratios if r.value is not None]
    return of(values) if values and len(values) == len(ratios) else None


class Between(Record):
    """A Q(Z) between two bounds: what it depends on, the least Z that it holds for, and the Z that holds everything."""

    shares: tuple[Share, ...]
    from_bytes: int
    whole: Quantity


# ---- all of it ----


class Derivation(Shown):
    """The results of `derive` for one kernel. values: the parameters that were given numbers.

    any_cache: Q(Z) with the cache size in bytes as the symbol Z; None if it was not requested. plateaus_at: the
    parameters that are numbers in the plateaus.
    """

    kernel: Kernel
    values: Mapping[str, int]
    convention: Traffic
    cache_bytes: int | None
    line_bytes: int | None
    work: Work
    compulsory: Traffics
    by_array: Mapping[str, Quantity]
    at_cache: Traffics
    once: Quantity
    plateaus: tuple[Plateau, ...]
    plateaus_note: str
    plateaus_at: Mapping[str, int]
    counters: Mapping[str, Quantity]
    notes: tuple[str, ...]
    steps: Steps | None = None
    any_cache: Traffics | None = None
    shares: tuple[Share, ...] = ()
    """What the compulsory traffic depends on besides the sizes."""
    cache_shares: tuple[Share, ...] = ()
    """What the traffic at the cache size depends on besides the sizes."""
    between: Between | None = None
    """For which Z the shares of `any_cache` hold; None if nothing depends on data."""

    def interval(self, q: Quantity, shares: Sequence[Share]) -> tuple[Fraction, Fraction] | None:
        """The least and the most that a traffic in terms of `shares` can be.

        None if sizes or forms are missing, and unless all that the form assumes holds at the sizes given.
        """
        if q.form is None or not self._hold(q.form.assumes):
            return None
        ends = []
        for known in ({s.name: s.low for s in shares}, {s.name: s.high for s in shares}):
            at: dict[str, int | Fraction] = {**self.values, **{n: v for n, v in known.items() if v is not None}}
            try:
                ends.append(q.form.evaluate(at))
            except KeyError:
                return None
        return ends[0], ends[1]

    def _hold(self, facts: Sequence[Fact]) -> bool:
        """Whether all facts are known to hold at the sizes given."""
        try:
            return all(fact.holds(self.values) for fact in facts)
        except KeyError:
            return False

    def intensities(self) -> tuple[Fraction, Fraction] | None:
        """The least and the most that I can be; None if sizes or forms are missing, or if nothing may move."""
        found, work = self.interval(self.at_cache.bytes, self.shares_at_cache), self.work.total.value
        if found is None or work is None or not all(found):
            return None
        return work / found[1], work / found[0]

    @property
    def shares_at_cache(self) -> tuple[Share, ...]:
        return self.shares if self.cache_bytes is None else self.cache_shares

    @property
    def intensity(self) -> Ratio:
        """I = W / Q at the cache size (compulsory Q if no size is given)."""
        return Ratio(self.work.total, self.at_cache.bytes, of_work=True)


def combined(a: Quantity, b: Quantity, factor: int) -> Quantity:
    """a + factor * b; only its value, unless all cases of one of the forms are also cases of the other."""
    value = a.value + factor * b.value if a.value is not None and b.value is not None else None
    if a.form is None or b.form is None:
        return Quantity(None, value, a.note or b.note)
    left = {case.alternatives: case.value for case in a.form.cases}
    right = {case.alternatives: case.value * factor for case in b.form.cases}
    if not (left.keys() <= right.keys() or right.keys() <= left.keys()):
        return Quantity(None, value, "the cases of the two differ")
    zero = Quasi.constant(0)  # the cases are disjoint: where one that only one form has holds, the other form is 0
    where = left if len(left) >= len(right) else right
    cases = tuple(Case(each, left.get(each, zero) + right.get(each, zero)) for each in where)
    return Quantity(Cases(cases, tuple(dict.fromkeys((*a.form.assumes, *b.form.assumes)))), value)
