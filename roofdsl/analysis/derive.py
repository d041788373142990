"""`derive`: everything the analyses say of one kernel, as one result with expressions and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from roofdsl.analysis.at import TrafficAt, traffic_at, work_at
from roofdsl.analysis.closed import Bytes, ClosedForms, NoClosedForm, Regime
from roofdsl.analysis.deep import require_legal
from roofdsl.analysis.results import OPERATION_CLASSES, WorkAt
from roofdsl.analysis.setting import check_cache, numbers
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.polyhedral.cases import Case, Cases, constant
from roofdsl.polyhedral.quasi import Quasi


@dataclass(frozen=True)
class Quantity:
    """A derived quantity: its closed form (None where none is found, `note` says why) and its value (exact; None
    where not all parameters have numbers)."""

    form: Cases | None
    value: Fraction | None = None
    note: str = ""

    @property
    def assumes(self) -> tuple[str, ...]:
        """Conditions beyond the kernel's own under which the form holds."""
        return self.form.assumes if self.form is not None else ()

    def sympy(self) -> Any:
        """The closed form as a sympy expression; None where there is none."""
        from roofdsl.analysis.expressions import expression

        return None if self.form is None else expression(self.form)

    def _repr_latex_(self) -> str:
        from sympy import latex

        return f"${latex(self.sympy())}$" if self.form is not None else self.note


@dataclass(frozen=True)
class Ratio:
    """numerator / denominator, both derived; a value is None where either's is, or the denominator is 0."""

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
        return self.numerator.note or self.denominator.note

    @property
    def assumes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.numerator.assumes, *self.denominator.assumes)))

    def sympy(self) -> Any:
        """The ratio as a sympy expression in lowest terms; None where a form is missing or the denominator is 0."""
        from roofdsl.analysis.expressions import ratio

        if self.numerator.form is None or self.denominator.form is None or not self.denominator.form.cases:
            return None
        if self.of_work and not self.numerator.form.cases:
            return None
        return ratio(self.numerator.form, self.denominator.form)

    def _repr_latex_(self) -> str:
        from sympy import latex

        value = self.sympy()
        return f"${latex(value)}$" if value is not None else self.note


@dataclass(frozen=True)
class Work:
    """W and its parts (counting_and_time.md, rules 1 to 7): quantities in operations."""

    total: Quantity
    by_class: Mapping[str, Quantity]
    by_type: Mapping[str, Quantity]
    fused_pairs: Quantity
    cmp: Quantity
    casts: Quantity

    @property
    def fma_fraction(self) -> Ratio:
        """alpha = F / (F + N) = F / (W - F) (rule 5)."""
        others = _combined(self.total, self.fused_pairs, -1)
        return Ratio(self.fused_pairs, others)


@dataclass(frozen=True)
class Traffics:
    """Traffic through one cache in bytes; loads and stores are None in the convention `once`."""

    loads: Quantity | None
    stores: Quantity | None
    bytes: Quantity


@dataclass(frozen=True)
class Plateau:
    """One plateau of Q(Z): its first cache size, traffic and intensity, leading terms unless exact.

    all_bytes: the traffic on the plateau with all lower orders.
    """

    from_bytes: Quantity
    bytes: Quantity
    intensity: Ratio
    exact: bool
    all_bytes: Quantity


@dataclass(frozen=True)
class Derivation:
    """What `derive` knows of a kernel. `values` are the parameters that were given numbers."""

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
    counters: Mapping[str, Quantity]
    notes: tuple[str, ...]

    @property
    def intensity(self) -> Ratio:
        """I = W / Q at the cache (compulsory where none is given)."""
        return Ratio(self.work.total, self.at_cache.bytes, of_work=True)


def derive(
    kernel: Kernel,
    values: Mapping[str, int] | None = None,
    *,
    traffic: Traffic | None = None,
    cache_bytes: int | None = None,
    line_bytes: int | None = None,
    plateaus: bool = True,
) -> Derivation:
    """Derive W, Q, Q(Z) and I of `kernel`, symbolically, with values where `values` give all parameters.

    traffic: the convention, by default the kernel's own, else load_store. cache_bytes: Z (None: compulsory).
    Raises InputError where the kernel is illegal for some sizes, CommandError for impossible sizes, cache or line.
    """
    require_legal(kernel)
    given = numbers(kernel, values or {}, complete=False)
    check_cache(kernel, cache_bytes, line_bytes)
    convention: Traffic = traffic or kernel.traffic or "load_store"
    names = {p.name for p in kernel.parameters}
    complete = names <= given.keys()
    forms = _Forms(kernel, given, line_bytes)
    weights = work_at(kernel, given) if complete else None
    work = _work(forms, weights)
    compulsory = _traffics(forms, given if complete else None, convention, None)
    once = _traffics(forms, given if complete else None, "once", cache_bytes).bytes
    at_cache = compulsory
    if cache_bytes is not None:
        at_cache = _traffics(forms, given if complete else None, convention, cache_bytes)
    rows, why = _plateaus(forms, work.total, given, convention) if plateaus else ((), "not asked for")
    return Derivation(
        kernel,
        given,
        convention,
        cache_bytes,
        line_bytes,
        work,
        compulsory,
        {n: _quantity(partial(forms.of_array, n), given) for n in _touched(kernel)},
        at_cache,
        once,
        rows,
        why,
        {n: _at(q, given) for n, q in forms.counters().items()},
        forms.notes,
    )


class _Forms:
    """Closed forms in all parameters, or, where a step has none, with the step's parameter as the number given."""

    def __init__(self, kernel: Kernel, given: Mapping[str, int], line_bytes: int | None) -> None:
        self.kernel, self.given, self.line_bytes = kernel, given, line_bytes
        self.notes: tuple[str, ...] = ()
        self.closed = ClosedForms(kernel, {}, line_bytes)
        try:
            _ = self.closed.work
        except NoClosedForm as error:
            if not given:
                return
            self.closed = ClosedForms(kernel, given, line_bytes)
            shown = ", ".join(f"{n} = {v}" for n, v in given.items())
            self.notes = (f"no closed form in all parameters ({error}): at {shown}",)

    def of_array(self, name: str) -> Cases:
        return self.closed.by_array()[name]

    def counters(self) -> dict[str, Cases]:
        try:
            return self.closed.counters()
        except NoClosedForm:
            return {}


def _touched(kernel: Kernel) -> list[str]:
    return [a.name for a in kernel.arrays if not a.is_scalar]


def _quantity(form: Callable[[], Cases], given: Mapping[str, int], value: Fraction | int | None = None) -> Quantity:
    exact = None if value is None else Fraction(value)
    try:
        found = form()
    except NoClosedForm as error:
        return Quantity(None, exact, str(error))
    except KeyError:
        return Quantity(constant(0), Fraction(0))
    if exact is None:
        try:
            exact = found.evaluate(given) if not found.assumes else None
        except KeyError:
            exact = None
    return Quantity(found, exact)


def _combined(a: Quantity, b: Quantity, factor: int) -> Quantity:
    """a + factor * b, where both forms are single polynomials."""
    value = a.value + factor * b.value if a.value is not None and b.value is not None else None
    if a.form is None or b.form is None:
        return Quantity(None, value, a.note or b.note)
    left, right = a.form.single, b.form.single
    if left is not None and right is not None:
        return Quantity(Cases((Case((), left + right * factor),)), value)
    cases = []
    for case in a.form.cases:
        same = next((c.value for c in b.form.cases if c.alternatives == case.alternatives), None)
        if same is None and b.form.cases:
            return Quantity(None, value, "the cases of the two differ")
        cases.append(Case(case.alternatives, case.value + (same or Quasi.constant(0)) * factor))
    return Quantity(Cases(tuple(cases)), value)


def _work(forms: _Forms, at: WorkAt | None) -> Work:
    given = forms.given
    operations = forms.closed.operations

    def sum_of(weight: Callable[[Any], int], value: int | None) -> Quantity:
        return _quantity(lambda: forms.closed.weighted([weight(s) for s in operations]), given, value)

    def of_class(name: str) -> Callable[[Any], int]:
        return lambda s: sum(n for (_, c), n in s.operations.items() if c == name)

    def of_type(name: str) -> Callable[[Any], int]:
        return lambda s: sum(n for (t, _), n in s.operations.items() if t == name)

    types = sorted({t for s in operations for t, _ in s.operations})
    classes = [c for c in OPERATION_CLASSES if any(of_class(c)(s) for s in operations)]
    by_class = {} if at is None else {c: sum(n for (_, k), n in at.operations.items() if k == c) for c in classes}
    return Work(
        sum_of(lambda s: s.total, None if at is None else at.total),
        {c: sum_of(of_class(c), by_class.get(c)) for c in classes},
        {t: sum_of(of_type(t), None if at is None else at.by_type.get(t, 0)) for t in types},
        sum_of(lambda s: sum(s.fused_pairs.values()), None if at is None else sum(at.fused_pairs.values())),
        sum_of(lambda s: s.cmp, None if at is None else at.cmp),
        sum_of(lambda s: s.casts, None if at is None else at.casts),
    )


def _traffics(forms: _Forms, given: Mapping[str, int] | None, convention: Traffic, cache: int | None) -> Traffics:
    at: TrafficAt | None = None
    failure = ""
    if given is not None:
        try:
            at = traffic_at(forms.kernel, given, cache, forms.line_bytes, convention)
        except CommandError as error:
            failure = error.message

    def form() -> Bytes:
        return forms.closed.compulsory(convention) if cache is None else forms.closed.at_cache(cache, convention)

    try:
        found = form()
    except NoClosedForm as error:
        note = str(error) + (f"; {failure}" if failure else "")
        if convention == "once":
            return Traffics(None, None, Quantity(None, None if at is None else Fraction(at.bytes), note))
        loads, stores, total = (None, None, None) if at is None else (at.loads_bytes, at.stores_bytes, at.bytes)
        return Traffics(*(Quantity(None, None if v is None else Fraction(v), note) for v in (loads, stores, total)))

    def quantity(part: Cases, value: int | None) -> Quantity:
        return Quantity(part, None if value is None else Fraction(value), failure)

    if found.loads is None or found.stores is None:
        return Traffics(None, None, quantity(found.total, at.bytes if at else None))
    return Traffics(
        quantity(found.loads, at.loads_bytes if at else None),
        quantity(found.stores, at.stores_bytes if at else None),
        quantity(found.total, at.bytes if at else None),
    )


def _plateaus(
    forms: _Forms, work: Quantity, given: Mapping[str, int], convention: Traffic
) -> tuple[tuple[Plateau, ...], str]:
    try:
        regimes: tuple[Regime, ...] = forms.closed.regimes(convention)
    except NoClosedForm as error:
        return (), str(error)
    order = forms.closed.order
    rows = []
    for r in regimes:
        exact = Cases((Case((), r.bytes),))
        top = work
        if not r.exact and work.form is not None and work.form.cases:
            far = max((c.value for c in work.form.cases), key=order.key)
            top = _at(Cases((Case((), order.leading(far)),)), given)
        moved = _at(exact, given)
        rows.append(
            Plateau(
                _at(Cases((Case((), r.from_bytes),)), given),
                moved,
                Ratio(top, moved, of_work=True),
                r.exact,
                _at(r.all_bytes, given),
            )
        )
    return tuple(rows), ""


def _at(form: Cases, given: Mapping[str, int]) -> Quantity:
    return _quantity(lambda: form, given)
