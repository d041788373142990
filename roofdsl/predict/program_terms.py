"""The launches and collectives of a program in one growing parameter: terms of the time as closed forms in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.integers import Const, IntExpr, add, mul
from roofdsl.loops.model import Kernel
from roofdsl.loops.program_model import LoweredProgram
from roofdsl.machine.model import Machine
from roofdsl.predict.largest_of import NotExact
from roofdsl.predict.options import Options
from roofdsl.predict.time_model import COMPUTE, LAUNCH, launch_seconds, level_seconds, link_seconds
from roofdsl.sets.cases import Case, Cases
from roofdsl.sets.quasi import Quasi


class Growing(Record):
    """Launches of a kernel whose arguments and number are expressions in the growing parameter only."""

    kernel: Kernel
    arguments: tuple[tuple[str, IntExpr], ...]
    times: IntExpr
    unit: str | None


class Sent(Record):
    """A collective in the growing parameter: the array's bytes, the fraction over the busiest link, the number of
    steps.
    """

    link: str
    bytes: IntExpr
    share: Fraction
    bandwidth_bytes_per_s: Fraction
    steps: int
    times: IntExpr

    def seconds_at(self, values: Mapping[str, int], step_s: Fraction) -> Fraction:
        """The time of one execution at a size, if each step takes `step_s`."""
        sent, waited = self.bytes.evaluate(values) * self.share, self.steps * step_s
        return link_seconds(self.bandwidth_bytes_per_s).at({"bytes": sent, "latency": waited})

    def seconds(self, step_s: Fraction) -> Quasi:
        """The time of one execution as a closed form. Raises NotExact."""
        from roofdsl.predict.time_forms import in_closed_form

        sent, waited = as_quasi(self.bytes) * self.share, Quasi.constant(self.steps * step_s)
        return in_closed_form(link_seconds(self.bandwidth_bytes_per_s), {"bytes": sent, "latency": waited})


class Grown(Record):
    """The launches, and the collectives among them."""

    launches: tuple[Growing, ...]
    sent: tuple[Sent, ...] = ()


def sent_by(lowered: LoweredProgram, numbers: Mapping[str, IntExpr], machine: Machine) -> tuple[Sent, ...]:
    """The program's collectives. Raises CommandError if the growing parameter is their number of devices."""
    from roofdsl.loops.program_at_sizes import Exchanged
    from roofdsl.predict.exchanges import collective_of

    found = []
    for e in lowered.exchanges:
        devices = e.devices.substitute(numbers)
        if devices.symbols():
            raise CommandError(
                f"`{min(devices.symbols())}` is the number of devices of program {lowered.name}'s collectives",
                "predict each number of devices separately, or vary another parameter",
            )
        size = mul(Const(e.type.bytes), *(d.substitute(numbers) for d in e.dims))
        one = collective_of(Exchanged(e.step, e.source, 1, devices.evaluate({}), 1), machine)
        rate = one.bandwidth_bytes_per_s
        found.append(Sent(one.link, size, one.share, rate, one.steps, e.times.substitute(numbers)))
    return tuple(found)


def closed_terms(
    launches: Sequence[Growing], sent: Sequence[Sent], machine: Machine, options: Options
) -> tuple[dict[str, list[tuple[Quasi, Cases]]], Cases | None, Cases | None]:
    """The terms as sums of closed forms in seconds; then W and Q of all launches, None if several have cases. Raises
    NotExact.
    """
    if machine.caches:
        raise NotExact(f"Q behind the caches of {machine.name} has no single closed form")
    if machine.main_memory.duplex:
        raise NotExact(f"{machine.main_memory.name} of {machine.name} loads and stores at the same time")
    if not machine.one_sequence or options.ceilings or options.data:
        raise NotExact("one of its terms is itself a maximum")
    memory = machine.main_memory
    moving = level_seconds(memory.name, memory.bandwidth_bytes_per_s, duplex=False)
    launching = launch_seconds(machine)
    terms: dict[str, list[tuple[Quasi, Cases]]] = {COMPUTE: [], memory.name: [], LAUNCH: []}
    works: list[tuple[Quasi, Cases]] = []
    moved: list[tuple[Quasi, Cases]] = []
    for launch in launches:
        times = as_quasi(launch.times)
        compute, work, traffic = _forms(launch, machine, options)
        terms[COMPUTE].append((times, compute))
        for name, of, count in ((memory.name, moving, traffic), (LAUNCH, launching, _constant(1))):
            terms[name] += [(times * weight, count) for _, weight in of.only]
        works.append((times, work))
        moved.append((times, traffic))
    for e in sent:
        each = Cases((Case((), e.seconds(options.step_s)),))
        terms.setdefault(e.link, []).append((as_quasi(e.times), each))
    return terms, _total(works), _total(moved)


def _forms(launch: Growing, machine: Machine, options: Options) -> tuple[Cases, Cases, Cases]:
    """(compute time in seconds, W, compulsory bytes) of one launch in the growing parameter. Raises NotExact."""
    from roofdsl.counts.computed_once import NoClosedForm
    from roofdsl.formulas.fact_text import facts_text
    from roofdsl.predict.time_forms import launch_forms

    given = {n: e.evaluate({}) for n, e in launch.arguments if not e.symbols()}
    growing = {n: as_quasi(e) for n, e in launch.arguments if e.symbols()}
    try:
        forms = launch_forms(launch.kernel, given, machine, replace(options, unit=launch.unit))
    except NoClosedForm as error:
        raise NotExact(f"{launch.kernel.name} has no closed form: {error}") from None
    found = (forms.compute_s, forms.work, forms.bytes)
    only = next((form.assumes for form in found if form.assumes), ())
    if only:
        raise NotExact(f"the form of {launch.kernel.name} holds only where {facts_text(only)}")
    compute, work, moved = (_in(form, growing) for form in found)
    return compute, work, moved


def _in(form: Cases, meaning: Mapping[str, Quasi]) -> Cases:
    def put(value: Quasi) -> Quasi:
        return value.substitute(meaning)

    return Cases(
        tuple(
            Case(tuple(tuple((put(v), zero) for v, zero in a) for a in case.alternatives), put(case.value))
            for case in form.cases
        )
    )


def _constant(value: int) -> Cases:
    return Cases((Case((), Quasi.constant(value)),))


def _total(pairs: Iterable[tuple[Quasi, Cases]]) -> Cases | None:
    """The sum as one closed form; None if several of the summands have cases."""
    total = Quasi.constant(0)
    split: tuple[Quasi, Cases] | None = None
    for factor, cases in pairs:
        if cases.single is not None:
            total = total + factor * cases.single
        elif split is None:
            split = (factor, cases)
        else:
            return None
    if split is None:
        return Cases((Case((), total),))
    factor, cases = split
    rows = [Case(c.alternatives, factor * c.value + total) for c in cases.cases]
    return Cases((*rows, Case((), total)) if total else tuple(rows))


def as_quasi(e: IntExpr) -> Quasi:
    """An integer expression as a polynomial. Raises NotExact if it is not one."""
    from roofdsl.counts.readable_forms import quasi_of

    try:
        return quasi_of(e)
    except ValueError:
        raise NotExact(f"the argument {e} is not a polynomial") from None


def count_text(launches: Sequence[Growing]) -> str:
    """The number of launches, as text."""
    return argument_text(add(*(launch.times for launch in launches)))


def argument_text(e: IntExpr) -> str:
    """An expression, with its constants multiplied out if it is a polynomial."""
    from roofdsl.formulas.writing import text

    try:
        return text(as_quasi(e))
    except NotExact:
        return str(e)
