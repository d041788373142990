"""W and Q of a program: the sums over its launches, each with empty caches (docs/rules.md, rule 18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from roofdsl.counts.derive import derive
from roofdsl.counts.derived import Derivation, Quantity, Ratio, Traffics, Work
from roofdsl.counts.readable_forms import quasi_of
from roofdsl.formulas.fact_text import fact_text
from roofdsl.formulas.quotients import Alternatives
from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.operation_classes import OPERATION_CLASSES, SPECIAL_FUNCTIONS
from roofdsl.lang.record import Record, replace
from roofdsl.loops.integers import Const, FloorDiv, IntExpr, Mod, mul
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.parameter_values import check_names
from roofdsl.loops.program_model import Exchange, Launch, LoweredProgram, program, require_launches
from roofdsl.sets.cases import Case, Cases, Constraint, constant
from roofdsl.sets.facts import Compared, Fact, Remainders, RowsAligned, decided
from roofdsl.sets.quasi import Quasi

NOTHING = Quantity(constant(0), Fraction(0))


MOST_CASES = 24
"""The maximum number of cases of a sum of forms."""


class ProgramPart(Record):
    """All launches of one kernel with the same arguments. The quantities are sums over these launches.

    label: the kernel with its arguments, as in the program's text.
    """

    label: str
    kernel: Kernel
    launches: Quantity
    work: Quantity
    bytes: Quantity

    @property
    def intensity(self) -> Ratio:
        """I = W / Q of a launch."""
        return Ratio(self.work, self.bytes, of_work=True)


class ExchangePart(Record):
    """A collective of the program. `bytes` is the whole array, for all its executions; it is not part of W and Q."""

    label: str
    times: Quantity
    devices: Quantity
    bytes: Quantity


class ProgramDerivation(Record):
    """The results of `derive` for a program: sums over its launches, in the program's parameters.

    values: the parameters that were given numbers. settled: those that are numbers in the forms, because something is
    divided by them. convention: None if its kernels state different ones. notes: on the forms of its kernels, such as
    that they are for b = 16.
    """

    name: str
    parameters: tuple[str, ...]
    values: Mapping[str, int]
    settled: Mapping[str, int]
    convention: Traffic | None
    cache_bytes: int | None
    line_bytes: int | None
    launches: Quantity
    work: Work
    compulsory: Traffics
    at_cache: Traffics
    once: Quantity
    parts: tuple[ProgramPart, ...]
    exchanges: tuple[ExchangePart, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def intensity(self) -> Ratio:
        """I = W / Q at the cache (compulsory where none is given)."""
        return Ratio(self.work.total, self.at_cache.bytes, of_work=True)


def derive_program(
    checked: CheckedFile,
    name: str,
    values: Mapping[str, int] | None = None,
    *,
    traffic: Traffic | None = None,
    cache_bytes: int | None = None,
    line_bytes: int | None = None,
) -> ProgramDerivation:
    """Derive W, Q and I of program `name` symbolically, with values if `values` has all its parameters.

    Every launch begins with empty caches, so Q is a sum over launches at any cache size. The other arguments mean what
    they mean in `derive`. Raises CommandError for an unknown parameter, for a program that launches nothing, for sizes
    that violate a kernel's assumption or make an argument less than 1, and what `derive` raises for one of the kernels.
    """
    given = dict(values or {})
    names = checked.programs[name].names
    check_names(f"program {name}", given, names)
    lowered = program(checked, name, given)
    require_launches(lowered)
    sums = _Sums(given, traffic, cache_bytes, line_bytes)
    groups = [sums.of(launch) for launch in _together(lowered)]
    conventions = {d.convention for _, _, d in groups}
    whole = [_times(times, d.work.total) for _, times, d in groups]
    each = [_times(times, d.at_cache.bytes) for _, times, d in groups]
    parts = tuple(
        ProgramPart(label, d.kernel, times, work, moved)
        for (label, times, d), work, moved in zip(groups, whole, each, strict=True)
    )
    return ProgramDerivation(
        name,
        names,
        given,
        sums.settled,
        conventions.pop() if len(conventions) == 1 else None,
        cache_bytes,
        line_bytes,
        _added([times for _, times, _ in groups]),
        _work_of([(times, d.work) for _, times, d in groups], _added(whole)),
        _traffics([(times, d.compulsory) for _, times, d in groups]),
        _traffics([(times, d.at_cache) for _, times, d in groups]),
        _sum([(times, d.once) for _, times, d in groups]),
        parts,
        tuple(sums.exchange(e) for e in lowered.exchanges),
        tuple(f"Kernel of {label}: {note}" for label, _, d in groups for note in d.notes),
    )


def _together(lowered: LoweredProgram) -> list[tuple[str, list[Launch]]]:
    """Launches with equal arguments merged, in the order of their first occurrence."""
    found: dict[str, list[Launch]] = {}
    for launch in lowered.launches:
        constants = [f"{n} = {v}" for n, v in launch.kernel.constants]
        label = f"{launch.kernel.name}({', '.join([*(str(e) for _, e in launch.arguments), *constants])})"
        found.setdefault(label, []).append(launch)
    return list(found.items())


class _Sums:
    """Derivations of kernels in the parameters of the program, each kernel derived once."""

    def __init__(
        self, given: Mapping[str, int], traffic: Traffic | None, cache_bytes: int | None, line_bytes: int | None
    ) -> None:
        self.given, self.traffic, self.cache_bytes, self.line_bytes = given, traffic, cache_bytes, line_bytes
        self.known: dict[tuple[object, ...], Derivation] = {}
        self.settled: dict[str, int] = {}
        """Parameters that stand as numbers in the forms."""

    def of(self, group: tuple[str, list[Launch]]) -> tuple[str, Quantity, Derivation]:
        """The label, the number of launches, and the derivation of one launch, in the program's parameters."""
        label, launches = group
        times = _added([self.expression(launch.times, "repetitions") for launch in launches])
        kernel, arguments = launches[0].kernel, launches[0].arguments
        numbers = {n: self.number(e, f"{n} of {kernel.name}") for n, e in arguments}
        complete = {n: v for n, v in numbers.items() if v is not None}
        values = complete if len(complete) == len(numbers) else {}
        derivation = self.derived(kernel, values)
        meaning = {n: self.quasi(e) for n, e in arguments}
        return label, times, _in(derivation, _Meaning(meaning, dict(arguments)))

    def exchange(self, e: Exchange) -> ExchangePart:
        """All executions of a collective together."""
        array = e.step.array.text
        label = f"{e.step.kind.text} {array}: {e.type}[{', '.join(map(str, e.dims))}] among {e.devices}"
        times, devices = self.expression(e.times, "repetitions"), self.expression(e.devices, f"devices of {array}")
        each = self.expression(mul(Const(e.type.bytes), *e.dims), f"the size of {array}")
        return ExchangePart(label, times, devices, _times(times, each))

    def derived(self, kernel: Kernel, values: Mapping[str, int]) -> Derivation:
        key = (kernel.name, kernel.constants, tuple(values.items()))
        if key not in self.known:
            self.known[key] = derive(
                kernel,
                values,
                traffic=self.traffic,
                cache_bytes=self.cache_bytes,
                line_bytes=self.line_bytes,
                plateaus=False,
            )
        return self.known[key]

    def number(self, e: IntExpr, what: str) -> int | None:
        """The value of an argument; None if a parameter has none. Raises CommandError if it is less than 1."""
        if not e.symbols() <= self.given.keys():
            return None
        value = e.evaluate(self.given)
        if value < 1:
            raise CommandError(f"{what} is {value} at these sizes", "it must be at least 1")
        return value

    def quasi(self, e: IntExpr) -> Quasi | None:
        """The polynomial that equals an expression, with numbers for its divisors; None if it is not a polynomial."""
        numbers = {n: self.given[n] for n in sorted(_divisors(e) & self.given.keys())}
        try:
            found = quasi_of(e.substitute({n: Const(v) for n, v in numbers.items()}))
        except ValueError:
            return None
        self.settled |= numbers
        return found

    def expression(self, e: IntExpr, what: str) -> Quantity:
        value = self.number(e, what)
        form = self.quasi(e)
        note = f"`{e}` is not a polynomial without numbers for what it divides by" if form is None else ""
        return Quantity(
            None if form is None else Cases((Case((), form),)), None if value is None else Fraction(value), note
        )


def _divisors(e: IntExpr) -> frozenset[str]:
    """The parameters that occur as divisors."""
    return frozenset[str]().union(*(d.divisor.symbols() for d in e.walk() if isinstance(d, (FloorDiv, Mod))))


class _Meaning(Record):
    """A kernel's parameters in those of the program: as polynomials (None if an argument is none), and as written."""

    polynomials: Mapping[str, Quasi | None]
    written: Mapping[str, IntExpr]

    def of(self, fact: Fact) -> Fact:
        """A fact about the kernel's sizes in the program's parameters."""
        match fact:
            case Compared():
                return fact.substitute({n: v for n, v in self.polynomials.items() if v is not None})
            case Remainders():
                return Remainders(fact.condition.substitute(self.written))
            case RowsAligned():
                return RowsAligned()  # the arrays and sizes are internal to the kernel
        return fact


def _in(d: Derivation, meaning: _Meaning) -> Derivation:
    """The derivation of a kernel, with its parameters replaced by the arguments of the program."""

    def moved(t: Traffics) -> Traffics:
        loads, stores = (None if q is None else _substituted(q, meaning) for q in (t.loads, t.stores))
        return Traffics(loads, stores, _substituted(t.bytes, meaning))

    work = Work(
        _substituted(d.work.total, meaning),
        {n: _substituted(q, meaning) for n, q in d.work.by_class.items()},
        {n: _substituted(q, meaning) for n, q in d.work.by_function.items()},
        {n: _substituted(q, meaning) for n, q in d.work.by_type.items()},
        *(_substituted(q, meaning) for q in (d.work.fused_pairs, d.work.cmp, d.work.casts)),
    )
    return replace(
        d,
        work=work,
        compulsory=moved(d.compulsory),
        at_cache=moved(d.at_cache),
        once=_substituted(d.once, meaning),
    )


def _substituted(q: Quantity, meaning: _Meaning) -> Quantity:
    """A quantity in the program's parameters; without a form if the arguments leave it none."""
    if q.terms is not None:
        return Quantity(
            None, q.value, "a kernel's form is a sum of conditional terms, which cannot be added over launches"
        )
    if q.form is None:
        return q
    lost = sorted(n for n in q.form.names() if meaning.polynomials.get(n, Quasi.symbol(n)) is None)
    if lost:
        return Quantity(None, q.value, f"its argument for `{lost[0]}` divides by a parameter, which needs a number")
    known = {n: v for n, v in meaning.polynomials.items() if v is not None}
    assumes: list[Fact] = []
    for fact in q.form.assumes:
        here = meaning.of(fact)
        if isinstance(here, (Compared, Remainders)) and decided(here) is False:
            return Quantity(None, q.value, f"the form assumes `{fact_text(fact)}`, which its arguments violate")
        assumes += [] if decided(here) else [here]
    return Quantity(Cases(_cases_left(q.form.cases, known), tuple(dict.fromkeys(assumes))), q.value)


def _cases_left(cases: Sequence[Case], known: Mapping[str, Quasi]) -> tuple[Case, ...]:
    """The cases that can occur with these arguments: of "2*n if n < 8, n if n >= 8" at n = 16, only the second."""
    found = []
    for case in cases:
        alternatives = [_decided(a, known) for a in case.alternatives]
        if alternatives and all(a is None for a in alternatives):
            continue
        always = not alternatives or any(a == () for a in alternatives)
        left = () if always else tuple(a for a in alternatives if a is not None)
        found.append(Case(left, case.value.substitute(known)))
        if always:
            break
    # Where no case holds, a form is 0. So a single case of 0 is not needed, but one of several may come before a case
    # with a weaker condition, which would hold in its place.
    return tuple(c for c in found if c.value or len(found) > 1)


def _decided(constraints: Sequence[Constraint], known: Mapping[str, Quasi]) -> tuple[Constraint, ...] | None:
    """The constraints that the arguments leave undecided; None if the arguments violate one."""
    left = []
    for value, zero in constraints:
        found = value.substitute(known)
        if not found.is_constant():
            left.append((found, zero))
        elif found.constant_value() < 0 or (zero and found.constant_value()):
            return None
    return tuple(left)


def _times(times: Quantity, q: Quantity) -> Quantity:
    """times * q, case by case; `times` is a single polynomial."""
    value = None if times.value is None or q.value is None else times.value * q.value
    if times.form is None or q.form is None:
        return Quantity(None, value, times.note if times.form is None else q.note)
    factor = times.form.single or Quasi.constant(0)
    return Quantity(Cases(tuple(Case(c.alternatives, c.value * factor) for c in q.form.cases), q.assumes), value)


def _added(parts: Sequence[Quantity]) -> Quantity:
    """The sum of quantities, case by case."""
    values = [q.value for q in parts]
    value = None if None in values else sum((v for v in values if v is not None), Fraction(0))
    missing = next((q for q in parts if q.form is None), None)
    if missing is not None:
        return Quantity(None, value, missing.note)
    assumes = tuple(dict.fromkeys(fact for q in parts for fact in q.assumes))
    # Forms without cases are added first, and equal forms with cases once with a factor: each further form multiplies
    # the number of cases.
    plain, several = Quasi.constant(0), dict[Cases, int]()
    for q in parts:
        assert q.form is not None
        if q.form.single is not None:
            plain = plain + q.form.single
        else:
            form = Cases(q.form.cases)
            several[form] = several.get(form, 0) + 1
    cases = [Case((), plain)]
    for form, times in several.items():
        # The first case that holds counts, so the last one, without a condition, says "otherwise 0".
        each = [Case(c.alternatives, c.value * times) for c in form.cases] + [Case((), Quasi.constant(0))]
        cases = [Case(_both(a.alternatives, b.alternatives), a.value + b.value) for a in cases for b in each]
        if len(cases) > MOST_CASES:
            return Quantity(None, value, f"the forms of its launches have more than {MOST_CASES} cases together")
    if not cases[-1].value:
        cases.pop()  # if none holds, it is 0 anyway
    return Quantity(Cases(tuple(cases), assumes), value)


def _both(a: Alternatives, b: Alternatives) -> Alternatives:
    """The condition that both hold; no alternatives means everywhere."""
    return tuple((*x, *y) for x in a for y in b) if a and b else a or b


def _sum(parts: Sequence[tuple[Quantity, Quantity]]) -> Quantity:
    return _added([_times(times, q) for times, q in parts])


def _traffics(parts: Sequence[tuple[Quantity, Traffics]]) -> Traffics:
    loads = [(times, t.loads) for times, t in parts if t.loads is not None]
    stores = [(times, t.stores) for times, t in parts if t.stores is not None]
    moved = _sum([(times, t.bytes) for times, t in parts])
    if len(loads) < len(parts):  # `once` does not distinguish them
        return Traffics(None, None, moved)
    return Traffics(_sum(loads), _sum(stores), moved)


def _work_of(works: Sequence[tuple[Quantity, Work]], total: Quantity) -> Work:
    """The work of all launches, from the (number, work of one) of each kind."""
    return Work(
        total,
        _by_name([(n, w.by_class) for n, w in works], OPERATION_CLASSES),
        _by_name([(n, w.by_function) for n, w in works], SPECIAL_FUNCTIONS),
        _by_name([(n, w.by_type) for n, w in works]),
        _sum([(n, w.fused_pairs) for n, w in works]),
        _sum([(n, w.cmp) for n, w in works]),
        _sum([(n, w.casts) for n, w in works]),
    )


def _by_name(
    parts: Sequence[tuple[Quantity, Mapping[str, Quantity]]], order: Sequence[str] = ()
) -> dict[str, Quantity]:
    names = {n for _, found in parts for n in found}
    return {
        name: _sum([(times, found.get(name, NOTHING)) for times, found in parts])
        for name in sorted(names, key=lambda n: (order.index(n) if n in order else len(order), n))
    }
