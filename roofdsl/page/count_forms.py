"""The traffic and work of a kernel as closed forms in all sizes, with the conditions under which each holds."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.counts.derived import Derivation, Quantity, Traffics
from roofdsl.counts.fixed import FixedForms
from roofdsl.counts.work_record import StatementOperations
from roofdsl.lang.operation_classes import OPERATION_CLASSES, SPECIAL_FUNCTIONS
from roofdsl.lang.record import Record, replace
from roofdsl.loops.accesses import accesses, scalar_bytes, statements
from roofdsl.loops.integers import Condition
from roofdsl.loops.model import Assign, Kernel, Let, Node, Traffic
from roofdsl.sets.cases import Case, Cases, Constraint
from roofdsl.sets.facts import CACHE, CacheMultiple, Compared, Fact, LeadingTerms, Remainders, fixed, whole_units
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.terms import Terms


class Held(Record):
    """A closed form, the conditions on sizes under which it is stated, and its further assumptions.

    loads: for traffic, the part that is loaded, if the convention distinguishes it and it has a closed form.
    """

    form: Cases | Terms
    needs: tuple[Compared, ...] = ()
    others: tuple[Fact, ...] = ()
    loads: Cases | Terms | None = None


class PlateauForm(Record):
    """A plateau of Q(Z): the cache sizes at which it begins and ends (leading terms; end None: it is the last one). A
    step lies between the end of one plateau and the start of the next.

    whole: its bytes, with all lower orders if possible; leading: their leading terms. where: the sizes that have this
    plateau, by their remainders; None: all.
    """

    start: Quasi
    whole: Held
    leading: Quasi
    end: Quasi | None
    where: Condition | None = None


class Rows(Record):
    """What the forms assume: rows of arrays start on line boundaries. aligned: the conditions for this. steps: by how
    much parameters must grow for each row to be longer by whole lines; None if that is not known.
    """

    aligned: tuple[Condition, ...]
    steps: tuple[tuple[str, int], ...] | None


class TrafficForms(Record):
    """Q of one kernel in one convention, in lines of `line_bytes` (None: each element is its own line).

    any_cache: Q(Z) exactly, if Z is a multiple of `grain` bytes; None if no form is found. least_bytes: the smallest
    cache for which the forms hold. compulsory: Q of an unbounded cache, in units of what moves at a time. lines: by
    array, the bytes of all lines touched; empty if a form is missing. plateaus: the plateaus of Q(Z), smallest cache
    first. note: why forms are missing. rows: what the forms assume about rows of arrays. every: the bytes if every
    access missed, which no cache exceeds. moved_bytes: the part of a line that moves at a time, if less than the line;
    then `any_cache` and `plateaus` count whole lines, an upper bound on what moves. smallest_bytes: the smallest
    element. large: the sizes at which plateaus say anything. At smaller ones, the lower-order terms are as large as the
    leading terms that say where plateaus begin and end.
    """

    line_bytes: int | None
    convention: Traffic
    any_cache: Held | None
    grain: int
    least_bytes: int
    compulsory: Held | None
    lines: tuple[Held, ...]
    plateaus: tuple[PlateauForm, ...]
    note: str = ""
    rows: Rows | None = None
    every: Held | None = None
    moved_bytes: int | None = None
    smallest_bytes: int = 1
    large: tuple[Compared, ...] = ()

    def scaled(self, ratio: Fraction) -> TrafficForms:
        """The traffic with every element `ratio` times as large; only for one-element lines and a single type."""
        if self.line_bytes is not None:
            raise ValueError("lines of a size of their own do not scale with the elements")

        def scaled(of: Held) -> Held:
            loads = None if of.loads is None else _scaled(of.loads, ratio)
            return Held(_scaled(of.form, ratio), of.needs, of.others, loads)

        return TrafficForms(
            None,
            self.convention,
            None if self.any_cache is None else scaled(self.any_cache),
            max(1, int(self.grain * ratio)),
            int(self.least_bytes * ratio),
            None if self.compulsory is None else scaled(self.compulsory),
            tuple(map(scaled, self.lines)),
            tuple(
                PlateauForm(
                    p.start * ratio,
                    scaled(p.whole),
                    p.leading * ratio,
                    None if p.end is None else p.end * ratio,
                    p.where,
                )
                for p in self.plateaus
            ),
            self.note,
            every=None if self.every is None else scaled(self.every),
            smallest_bytes=int(self.smallest_bytes * ratio),
            large=self.large,
        )


def _scaled(form: Cases | Terms, ratio: Fraction) -> Cases | Terms:
    """`ratio` times the form, for a cache `ratio` times as large."""
    cache = {CACHE: Quasi.symbol(CACHE) * (1 / ratio)}
    if isinstance(form, Terms):
        terms = form.substitute(cache)
        return replace(terms, terms=tuple(replace(t, value=t.value * ratio) for t in terms.terms))

    def moved(constraint: Constraint) -> Constraint:
        return constraint[0].substitute(cache), constraint[1]

    cases = tuple(
        Case(tuple(tuple(map(moved, a)) for a in c.alternatives), c.value.substitute(cache) * ratio) for c in form.cases
    )
    return Cases(cases, form.assumes)


# ---- sources of forms ----


def held(form: Cases | Terms, at: Mapping[str, int] | None = None, loads: Cases | Terms | None = None) -> Held:
    """A form with its assumptions. at: the values of sizes for which the form contains numbers."""
    needs: list[Compared] = [fixed(n, v) for n, v in (at or {}).items()]
    others: list[Fact] = []
    for fact in form.assumes:
        if isinstance(fact, CacheMultiple):
            continue  # the page only evaluates at whole units, and at caches of at least `least_bytes`
        if not isinstance(fact, Compared) or (CACHE in fact.symbols() and fact.relation != ">="):
            others.append(fact)
        elif CACHE not in fact.symbols():
            needs.append(fact)
    return Held(form, tuple(needs), tuple(others), loads)


def _moved(of: Traffics | None) -> Held | None:
    """A traffic with its loads; None if it has no form."""
    form = None if of is None else of.bytes.form or of.bytes.terms
    if of is None or form is None:
        return None
    return held(form, loads=None if of.loads is None else of.loads.form or of.loads.terms)


def of_derivation(d: Derivation) -> TrafficForms:
    """The forms of a derivation with `any_cache`, in one-element lines."""
    total = None if d.any_cache is None else d.any_cache.bytes
    sizes = [a.type.bytes for a in d.kernel.arrays if not a.is_scalar]
    plateaus: list[PlateauForm] = []
    for p in d.plateaus:
        start, leading, end = (None if q is None else _single(q) for q in (p.from_bytes, p.bytes, p.end_bytes))
        if start is not None and leading is not None:
            whole = on_plateau(p.all_bytes.form, Cases((Case((), leading),)), p.where, d.plateaus_at)
            plateaus.append(PlateauForm(start, whole, leading, end, p.where))
    return TrafficForms(
        None,
        d.convention,
        _moved(d.any_cache),
        1 if total is None else whole_units(total.assumes),
        max(sizes, default=1),
        _moved(d.compulsory),
        tuple(held(q.form) for q in d.by_array.values() if q.form is not None)
        if all(q.form is not None for q in d.by_array.values())
        else (),
        tuple(plateaus),
        (total.note if total is not None else "") or d.plateaus_note,
        every=every_access(ClosedForms(d.kernel, {}), d.convention, None),
        smallest_bytes=min(sizes, default=1),
        large=large_sizes(ClosedForms(d.kernel, {}), 1) if plateaus else (),
    )


LEAST_TIMES = 2
"""A size counts as large if it is at least this many times the smallest one for which forms of Q(Z) hold. If a line
has more elements than this, their number takes its place.
"""


def large_sizes(forms: ClosedForms, per_line: int) -> tuple[Compared, ...]:
    """The sizes at which plateaus begin and end about where their leading terms say. per_line: elements in a line."""
    times = max(LEAST_TIMES, per_line)
    stated = (fact for fact in forms.facts(forms.large_size_sets, forms.least) if isinstance(fact, Compared))
    return tuple(replace(f, right=f.right * times) if f.right.is_constant() else f for f in stated)


def _single(q: Quantity) -> Quasi | None:
    return None if q.form is None else q.form.single


def on_plateau(
    whole: Cases | None, leading: Cases, where: Condition | None, at: Mapping[str, int] | None = None
) -> Held:
    """The traffic on a plateau at the sizes `where` it exists: exactly or, if it changes along the plateau, as leading
    terms.
    """
    if whole is None:
        return Held(leading, others=(LeadingTerms(),))
    kept = tuple(fact for fact in whole.assumes if where is None or fact != Remainders(where))
    return held(Cases(whole.cases, kept), at)


def with_tiles(forms: TrafficForms, kernel: Kernel, tiles: Mapping[str, int]) -> TrafficForms:
    """`forms` with Q(Z) at the tile sizes `tiles`, if Q(Z) has no form in all parameters but has one at these sizes."""
    if forms.any_cache is not None or not tiles:
        return forms
    try:
        found = FixedForms(ClosedForms(kernel, {}), tiles).at_any_cache(forms.convention)
    except NoClosedForm:
        return forms
    return replace(forms, any_cache=held(found.total, loads=found.loads), grain=whole_units(found.total.assumes))


def every_access(forms: ClosedForms, convention: Traffic, unit_bytes: int | None) -> Held | None:
    """The traffic of a kernel if every access misses and moves `unit_bytes` (None: an element), scalars included.

    None if it has no closed form.
    """

    def cost(statement: Node) -> int:
        if not isinstance(statement, (Assign, Let)):
            return 0
        each = [(a.is_write, unit_bytes or a.element.array.type.bytes) for a in accesses(statement)]
        twice = convention == "write_allocate"
        return sum(size * (2 if is_write and twice else 1) for is_write, size in each)

    try:
        found = forms.weighted([cost(placed.statement) for placed in statements(forms.kernel.body)])
    except NoClosedForm:
        return None
    scalars = sum(scalar_bytes(forms.kernel))
    cases = [Case(c.alternatives, c.value + scalars) for c in found.cases]
    if scalars and all(c.alternatives for c in cases):
        cases.append(Case((), Quasi.constant(scalars)))  # also where no array is accessed
    return held(Cases(tuple(cases), found.assumes))


# ---- work ----


class WorkForms(Record):
    """The operations of a kernel: W as `total`, and the number by (type, class), without those that are always 0.

    classes: "pair" (a fused pair), "add", "mul" (all of them), "add_left", "mul_left" (outside pairs), "div", "min",
    every special function, and "all" for a type as a whole.
    """

    total: Held
    counts: Mapping[tuple[str, str], Held]


def work_forms(kernel: Kernel) -> WorkForms:
    """Closed forms of the operations of `kernel`. Raises NoClosedForm."""
    forms = ClosedForms(kernel, {})
    every = forms.operations
    types = sorted({t for s in every for t, _ in s.operations})
    counts: dict[tuple[str, str], Held] = {}

    def put(key: tuple[str, str], weights: list[int]) -> None:
        if any(weights):
            counts[key] = held(forms.weighted(weights))

    for t in types:
        put((t, "all"), [sum(n for (of, _), n in s.operations.items() if of == t) for s in every])
        put((t, "pair"), [s.fused_pairs.get(t, 0) for s in every])
        for cls in OPERATION_CLASSES:
            if cls != "special":
                put((t, cls), [_of(s, t, cls) for s in every])
        for function in SPECIAL_FUNCTIONS:
            put((t, function), [s.functions.get((t, function), 0) for s in every])
        for cls in ("add", "mul"):
            put((t, f"{cls}_left"), [_of(s, t, cls) - s.fused_pairs.get(t, 0) for s in every])
    return WorkForms(held(forms.work), counts)


def _of(s: StatementOperations, type_name: str, cls: str) -> int:
    return s.operations.get((type_name, cls), 0)
