"""`derive`: all results of the analyses of one kernel, as one object with expressions and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial

from roofdsl import budget
from roofdsl.checks.deep import require_legal
from roofdsl.counts.check_cache import check_cache
from roofdsl.counts.closed_forms import ClosedForms, NoClosedForm
from roofdsl.counts.counters import counter_names, counters_at, has_counters
from roofdsl.counts.derived import AS_TERMS, Derivation, Plateau, Quantity, Ratio, Traffics
from roofdsl.counts.growth import leading_of, value_of
from roofdsl.counts.kernel_forms import SOON, Forms
from roofdsl.counts.quantity_of import at_values, quantity
from roofdsl.counts.steps import statement_texts, steps_of
from roofdsl.counts.traffic_at import TrafficAt, traffic_at
from roofdsl.counts.traffic_form_records import Bytes, PlateauBytes, TermBytes
from roofdsl.counts.work_at import work_at
from roofdsl.counts.work_quantities import work_quantities
from roofdsl.counts.work_record import WorkAt
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.indirect import is_indirect, require_affine
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.parameter_values import numbers
from roofdsl.sets.cases import Case, Cases
from roofdsl.sets.facts import Fact, Remainders
from roofdsl.sets.library import MAX_OPERATIONS, TooHard
from roofdsl.sets.plateaus import Growth
from roofdsl.sets.quasi import Quasi
from roofdsl.sets.terms import Terms
from roofdsl.store.memo import recall


def derive(
    kernel: Kernel,
    values: Mapping[str, int] | None = None,
    *,
    traffic: Traffic | None = None,
    cache_bytes: int | None = None,
    line_bytes: int | None = None,
    plateaus: bool = True,
    steps: bool = False,
    any_cache: bool = False,
) -> Derivation:
    """Derive W, Q, Q(Z) and I of `kernel` symbolically, with values if `values` has all parameters.

    traffic: the convention, by default the kernel's own, otherwise load_store. cache_bytes: Z (None: compulsory).
    plateaus: also find those of Q(Z). steps: also derive the argument, as facts. any_cache: also derive Q(Z) with a
    symbolic Z.

    Raises InputError if the kernel is illegal at some sizes, and CommandError for impossible sizes, caches or lines.
    Results that took long are kept on disk (`roofdsl.store`).
    """
    convention: Traffic = traffic or kernel.traffic or "load_store"
    given = dict(values or {})
    texts = statement_texts(kernel) if steps else None  # steps quote the file
    asked = given, convention, cache_bytes, line_bytes, plateaus, any_cache, texts

    if is_indirect(kernel):
        from roofdsl.counts.indirect import derive_indirect

        if steps:
            require_affine(kernel, "a derivation step by step")
        require_legal(kernel)
        check_cache(kernel, cache_bytes, line_bytes)
        return derive_indirect(kernel, given, convention, cache_bytes, line_bytes, any_cache=any_cache)

    def found() -> Derivation:
        wanted = _Wanted(plateaus, steps, any_cache)
        return _derive(kernel, given, convention, (cache_bytes, line_bytes), wanted)

    return recall("derive", kernel, asked, found)


class _Wanted(Record):
    plateaus: bool
    steps: bool
    any_cache: bool


def _derive(
    kernel: Kernel,
    values: Mapping[str, int],
    convention: Traffic,
    sizes: tuple[int | None, int | None],
    wanted: _Wanted,
) -> Derivation:
    """`derive` without the disk cache. sizes: of the cache and of its line."""
    cache_bytes, line_bytes = sizes
    require_legal(kernel)
    given = numbers(kernel, values, complete=False)
    check_cache(kernel, cache_bytes, line_bytes)
    names = {p.name for p in kernel.parameters}
    complete = names <= given.keys()
    with budget.part(2):  # numbers first: forms get the rest of the budget, at least half of it
        at = _Numbers(kernel, given, sizes, convention) if complete else None
    forms = Forms(kernel, given, line_bytes)
    with budget.part(2):
        work = work_quantities(forms.closed, forms.given, None if at is None else at.work)
    with budget.part(2):
        compulsory = _traffics(forms, at, convention, None)
        by_array = {n: quantity(partial(forms.of_array, n), given) for n in _touched(kernel)}
    with budget.part(2):
        once = _traffics(forms, at, "once", cache_bytes).bytes
        at_cache = compulsory if cache_bytes is None else _traffics(forms, at, convention, cache_bytes)
    with budget.part(2 if wanted.steps or wanted.any_cache else 1):
        found = _plateaus(forms, work.total, compulsory.bytes.value, given, convention) if wanted.plateaus else None
        rows, why, fixed = found or ((), "not asked for", {})
    return Derivation(
        kernel,
        given,
        convention,
        cache_bytes,
        line_bytes,
        work,
        compulsory,
        by_array,
        at_cache,
        once,
        rows,
        why,
        fixed,
        _counters(forms, complete=complete),
        forms.notes,
        steps_of(forms.closed, convention, rows, given) if wanted.steps else None,
        _any_cache(forms, convention) if wanted.any_cache else None,
    )


class _Numbers:
    """Exact values, if all parameters have numbers; None, or a reason, for a value that takes too long."""

    def __init__(
        self,
        kernel: Kernel,
        given: Mapping[str, int],
        sizes: tuple[int | None, int | None],
        convention: Traffic,
    ) -> None:
        cache_bytes, line_bytes = sizes
        self.work = _unless_too_hard(lambda: work_at(kernel, given))
        self.traffic: dict[tuple[Traffic, int | None], TrafficAt | str] = {}
        for asked in dict.fromkeys(((convention, None), (convention, cache_bytes), ("once", cache_bytes))):
            how, cache = asked
            try:
                self.traffic[asked] = traffic_at(kernel, given, cache, line_bytes, how)
            except CommandError as error:
                self.traffic[asked] = error.message


def _unless_too_hard(compute: Callable[[], WorkAt]) -> WorkAt | None:
    try:
        return compute()
    except TooHard:
        return None


def _counters(forms: Forms, *, complete: bool) -> dict[str, Quantity]:
    """The totals of `count` names: closed forms, and values where all parameters have numbers."""
    if not has_counters(forms.kernel.body):
        return {}
    note, cases, values = "", dict[str, Cases](), dict[str, int]()
    try:
        cases = forms.closed.counters()
    except NoClosedForm as error:
        note = str(error)
    if complete:
        values = counters_at(forms.kernel, forms.given)
    found = {}
    for name in cases or values or dict.fromkeys(counter_names(forms.kernel.body)):
        value = Fraction(values[name]) if name in values else None
        found[name] = Quantity(cases.get(name), value, "" if name in cases else note)
    return found


def _touched(kernel: Kernel) -> list[str]:
    return [a.name for a in kernel.arrays if not a.is_scalar]


def _traffics(forms: Forms, numbers: _Numbers | None, convention: Traffic, cache: int | None) -> Traffics:
    counted = None if numbers is None else numbers.traffic[convention, cache]
    at, failure = (None, counted) if isinstance(counted, str) else (counted, "")
    bytes_at = (None, None, None) if at is None else (at.loads_bytes, at.stores_bytes, at.bytes)
    loads, stores, total = (None if v is None else Fraction(v) for v in bytes_at)

    def form() -> Bytes | TermBytes:
        return forms.closed.compulsory(convention) if cache is None else forms.at_cache(cache, convention)

    try:
        found = form()
    except NoClosedForm as error:
        note = str(error) + (f"; {failure}" if failure else "")
        if convention == "once":  # counts an access of either kind, so there is no division into loads and stores
            return Traffics(None, None, Quantity(None, total, note))
        return Traffics(*(Quantity(None, v, note) for v in (loads, stores, total)))
    of_total = _of_form(found.total, total, failure)
    if found.loads is None or found.stores is None:
        return Traffics(None, None, of_total)
    return Traffics(_of_form(found.loads, loads, failure), _of_form(found.stores, stores, failure), of_total)


def _of_form(form: Cases | Terms, value: Fraction | None = None, note: str = "") -> Quantity:
    if isinstance(form, Terms):
        return Quantity(None, value, note or AS_TERMS, form)
    return Quantity(form, value, note)


def _any_cache(forms: Forms, convention: Traffic) -> Traffics:
    try:
        found = forms.at_any_cache(convention)
    except NoClosedForm as error:
        none = Quantity(None, None, str(error))
        return Traffics(None, None, none) if convention == "once" else Traffics(none, none, none)
    loads, stores = (None if c is None else _of_form(c) for c in (found.loads, found.stores))
    return Traffics(loads, stores, _of_form(found.total))


SMALL = 16
"""Given or default sizes below this may be used as numbers if symbols are too hard."""


def _small(forms: Forms) -> dict[str, int]:
    """Small numbers, such as those of a filter, for some of the symbolic parameters, but not for all."""
    unknown = [p for p in forms.kernel.parameters if p.name not in forms.closed.given]
    known = {p.name: forms.given.get(p.name, p.default) for p in unknown}
    few = {n: v for n, v in known.items() if v is not None and v < SMALL}
    return few if len(few) < len(unknown) else {}


def _plateaus(
    forms: Forms, work: Quantity, compulsory: Fraction | None, given: Mapping[str, int], convention: Traffic
) -> tuple[tuple[Plateau, ...], str, Mapping[str, int]]:
    """(plateaus, the reason if there are none, the parameters that are numbers in them)."""
    closed = forms.closed
    try:
        rows, numbers = forms.plateau_forms(convention)
        return _told(rows, work, compulsory, given, closed.order), "", dict(numbers)
    except NoClosedForm:
        pass  # the method for all kernels
    try:
        found: tuple[PlateauBytes, ...] = closed.plateau_forms(convention, given)
    except NoClosedForm as error:
        few = _small(forms)
        if not few:
            return (), str(error), {}
        # The numbers decide which size is larger. They seldom make hard counts easy.
        limit = SOON if isinstance(error.__cause__, TooHard) else MAX_OPERATIONS
        closed = ClosedForms(forms.kernel, {**closed.given, **few}, forms.line_bytes, limit)
        try:
            found = closed.plateau_forms(convention, given)
        except NoClosedForm:
            return (), str(error), {}
        forms.notes += (
            f"plateaus at {', '.join(f'{n} = {v}' for n, v in few.items())}, not in all parameters: {error}",
        )
        work = quantity(lambda: closed.work, given, work.value)
    return _told(found, work, compulsory, given, closed.order), "", dict(closed.given)


def _told(
    found: Sequence[PlateauBytes],
    work: Quantity,
    compulsory: Fraction | None,
    given: Mapping[str, int],
    order: Growth,
) -> tuple[Plateau, ...]:
    """Plateaus with their values. compulsory: the number of bytes that the last one moves at these sizes."""
    every = dict.fromkeys(fact for r in found if r.all_bytes is not None for fact in r.all_bytes.assumes)
    assumes = tuple(every)
    return tuple(
        _plateau(r, work, given, order, assumes=assumes, compulsory=compulsory if r.exact else None) for r in found
    )


def _plateau(
    r: PlateauBytes,
    work: Quantity,
    given: Mapping[str, int],
    order: Growth,
    *,
    assumes: Sequence[Fact],
    compulsory: Fraction | None,
) -> Plateau:
    """A plateau with values, as far as the sizes meet what its forms assume: `assumes`, and its own remainders."""
    remainders = () if r.where is None else (Remainders(r.where),)

    def told(value: Quasi, needs: Sequence[Fact] = (*remainders, *assumes)) -> Quantity:
        form = Cases((Case((), value),) if value else (), remainders)
        known = value.names() <= given.keys() and not any(_fails(fact, given) for fact in needs)
        return Quantity(form, form.evaluate(given) if known else None)

    # I has to be a ratio of like with like. W is reduced to its leading terms if the plateau's bytes are leading terms,
    # and to its form in the plateau's residue class if they are exact.
    top = work
    if not r.exact and work.form is not None and work.form.cases:
        lead = leading_of(work.form, order, given, r.where)
        top = Quantity(None, work.value, REMAINDERS) if lead is None else told(lead, remainders)
    elif r.where is not None and work.form is not None and work.form.single is not None:
        whole_top = value_of(work.form, order, given, r.where)
        top = work if whole_top is None else replace(told(whole_top, remainders), value=work.value)
    moved = told(r.bytes)
    # On the last plateau Q is the compulsory traffic, counted exactly even at sizes for which the form does not hold.
    if compulsory is not None:
        moved = replace(moved, value=compulsory)
    note = "terms of lower order change along the plateau"
    whole = Quantity(None, None, note) if r.all_bytes is None else at_values(r.all_bytes, given)
    if r.where is not None and whole.form is not None:
        value = None if any(_fails(fact, given) for fact in remainders) else whole.value
        whole = Quantity(Cases(whole.form.cases, (*remainders, *whole.form.assumes)), value)
    return Plateau(
        told(r.from_bytes),
        moved,
        Ratio(top, moved, of_work=True),
        r.exact,
        whole,
        None if r.until_bytes is None else told(r.until_bytes),
        r.where,
        None if r.end_bytes is None else told(r.end_bytes),
    )


def _fails(fact: Fact, given: Mapping[str, int]) -> bool:
    """Whether these sizes violate a fact, or do not decide it although all that it mentions have numbers."""
    try:
        return not fact.holds(given)
    except KeyError:
        return False


REMAINDERS = "remainders of the sizes decide the leading terms"
"""The note of a quantity whose leading terms differ among the requested sizes."""
