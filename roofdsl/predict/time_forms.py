"""The terms of a prediction as closed forms in the parameters: seconds of compute, bytes of memory.

This module uses integer sets through `counts.closed_forms`, without sympy. It is for machines without caches:
compulsory traffic has one closed form for all sizes, while Q(Z) has several.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from roofdsl.counts.closed_forms import ClosedForms
from roofdsl.counts.computed_once import NoClosedForm
from roofdsl.formulas.fact_text import facts_text
from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.integers import Compare, Const, IntExpr
from roofdsl.loops.model import Kernel, Parameter
from roofdsl.loops.parameter_values import check_names, numbers
from roofdsl.loops.streams import require_ordinary
from roofdsl.machine.model import Machine
from roofdsl.predict.boundary import memory_boundary
from roofdsl.predict.compute import statement_seconds
from roofdsl.predict.contraction import check_unit
from roofdsl.predict.options import DEFAULTS, Options
from roofdsl.predict.program import Units
from roofdsl.predict.time_model import COMPUTE, LAUNCH, LAUNCHES, Largest, launch_seconds, level_seconds, whole_weights
from roofdsl.sets.cases import Case, Cases
from roofdsl.sets.quasi import Quasi


class Terms(Record):
    """T_comp in seconds, Q at the memory's boundary in bytes, and the number of launches; exact, for all sizes.

    label: the kernel with its arguments, as in a program. within: polynomials that are not negative at sizes that the
    kernel's assumptions allow (other forms of assumptions are ignored).
    """

    label: str
    compute_s: Quasi
    memory_bytes: Quasi
    within: frozenset[Quasi] = frozenset()
    launches: Quasi = Quasi.constant(1)

    def seconds(self, term: str, machine: Machine) -> Quasi:
        """One term of the time: `compute`, `launch` or the memory's name. Raises CommandError for any other name."""
        memory, launch_s = machine.main_memory, machine.launch_s
        if term == COMPUTE:
            return self.compute_s
        if term == memory.name:
            of = level_seconds(term, memory.bandwidth_bytes_per_s, duplex=False)
            return in_closed_form(of, {f"{term} bytes": self.memory_bytes})
        if term == LAUNCH and launch_s:
            return in_closed_form(launch_seconds(machine), {LAUNCHES: self.launches})
        known = [COMPUTE, memory.name, *([LAUNCH] if launch_s else [])]
        raise CommandError(f"no term is named {term}", f"those with a formula on {machine.name} are {', '.join(known)}")


def in_closed_form(of: Largest, counts: Mapping[str, Quasi]) -> Quasi:
    """A term that is a single sum, with closed forms as its counts. Raises ValueError for several sums."""
    return sum((counts[name] * weight for name, weight in of.only), Quasi.constant(0))


def summed(terms: Sequence[Terms]) -> Terms:
    """The sum of all terms."""
    zero = Quasi.constant(0)
    within = frozenset().union(*(t.within for t in terms))
    compute, moved, launches = (
        sum(each, zero) for each in zip(*((t.compute_s, t.memory_bytes, t.launches) for t in terms), strict=True)
    )
    return Terms("", compute, moved, within, launches)


def terms_of(kernel: Kernel, machine: Machine, options: Options = DEFAULTS) -> Terms:
    """The terms of one launch of `kernel` on `machine`, in all its parameters.

    `options.unit` and `options.traffic` are used as in `predict`; other options are ignored. Raises CommandError if
    there is no single closed form for all sizes, and if the machine lacks something.
    """
    unit = options.unit or kernel.unit
    check_unit(unit, kernel)
    if not machine.one_sequence and unit is None:
        what = f"{machine.name} has separate pipes, so its compute time is not a sum of closed forms"
        raise CommandError(what, "omit --formula to search by predictions")
    if machine.main_memory.duplex:
        memory = f"{machine.main_memory.name} of {machine.name}"
        message = f"{memory} loads and stores at the same time, so only the larger one counts"
        raise CommandError(message, "omit --formula to search by predictions")
    at = memory_boundary(kernel, machine, options.traffic)
    if at.cache_bytes is not None:
        what = f"{machine.name} has caches, so its traffic has no single closed form for all sizes"
        help = "omit --formula to search by predictions, or use a machine without caches"
        raise CommandError(what, help)
    try:
        found = launch_forms(kernel, {}, machine, replace(options, unit=unit))
        return Terms(kernel.name, _one(found.compute_s), _one(found.bytes), _within(kernel))
    except NoClosedForm as error:
        raise CommandError(f"{kernel.name} has no single closed form for all sizes: {error}") from None


class LaunchForms(Record):
    """T_comp in seconds, W and compulsory Q of one launch, case by case, in the parameters without numbers."""

    compute_s: Cases
    work: Cases
    bytes: Cases


def launch_forms(kernel: Kernel, given: Mapping[str, int], machine: Machine, options: Options) -> LaunchForms:
    """The closed forms of a launch whose parameters `given` are numbers; `options.unit` is used as it is.

    Raises NoClosedForm.
    """
    from roofdsl.checks.deep import require_legal

    require_legal(kernel)
    require_ordinary(kernel, "the time in closed form")
    forms = ClosedForms(kernel, given)
    costs = {name: Fraction(value) for name, value in kernel.costs}
    time = statement_seconds(forms.operations, machine, unit=options.unit, costs=costs)
    if len(time.sums) > 1:
        raise NoClosedForm(f"the compute time of {kernel.name} is the larger of several sums")
    weights, below = whole_weights(time.only, map(str, range(len(forms.operations))))
    compute = forms.weighted(weights)
    cases = tuple(Case(c.alternatives, c.value * Fraction(1, below)) for c in compute.cases)
    convention = memory_boundary(kernel, machine, options.traffic).convention
    return LaunchForms(Cases(cases, compute.assumes), forms.work, forms.compulsory(convention).total)


def _within(kernel: Kernel) -> frozenset[Quasi]:
    """a - b for every assumption `a >= b`, and accordingly for the other comparisons."""
    found = set()
    for assumed in kernel.assumptions:
        if isinstance(assumed, Compare) and assumed.op in (">=", ">", "<=", "<"):
            try:
                excess = quasi(assumed.left) - quasi(assumed.right)
            except CommandError:
                continue
            found.add((excess if assumed.op[0] == ">" else -excess) - int("=" not in assumed.op))
    return frozenset(found)


def _one(form: Cases) -> Quasi:
    found = form.single
    if found is None:
        raise NoClosedForm("its form has several cases")
    if form.assumes:
        raise NoClosedForm(f"its form holds only where {facts_text(form.assumes)}")
    return found


Values = dict[str, int | None]
"""Parameters by name, with numbers where they are given or have defaults."""


def kernel_terms(
    checked: CheckedFile,
    name: str,
    machine: Machine,
    settings: Mapping[str, int],
    options: Options = DEFAULTS,
) -> tuple[Values, tuple[Terms, ...]]:
    """The parameters of a kernel in a file, and the terms of one launch in them. Raises as `terms_of` does."""
    from roofdsl.loops.load import kernel

    found = kernel(checked, name, settings)
    numbers(found, settings, complete=False)  # raises if they are not its parameters
    return _values(found.parameters, settings), (terms_of(found, machine, options),)


def program_terms(
    checked: CheckedFile,
    name: str,
    machine: Machine,
    settings: Mapping[str, int],
    options: Options = DEFAULTS,
    *,
    over: str | None = None,
) -> tuple[Values, tuple[Terms, ...]]:
    """The parameters of a program, and the terms of each launch in them; equal launches together, in order.

    `options.unit` applies to the launches that can use it, as in `predict_launches`. An argument without a closed form
    in all parameters, such as `kv // p`, is taken at the numbers of `settings`. over: a parameter that must stay a
    symbol; an error if a kernel takes it as `const`. Raises what `terms_of` raises.
    """
    from roofdsl.formulas.writing import text
    from roofdsl.loops.program_model import program, require_launches

    check_names(f"program {name}", settings, checked.programs[name].names)
    lowered = program(checked, name, settings)
    require_launches(lowered)
    if over is not None:
        check_free(checked, name, settings, over)
    units = Units(machine, options.unit)
    numbers_given = {n: Const(v) for n, v in settings.items() if n != over}
    known: dict[tuple[str, tuple[tuple[str, int], ...]], Terms] = {}
    found: dict[str, Terms] = {}
    for launch in lowered.launches:
        kernel = launch.kernel
        key = (kernel.name, kernel.constants)
        if key not in known:
            known[key] = terms_of(kernel, machine, replace(options, unit=units.of(kernel)))
        arguments = {n: _with_form(e, numbers_given) for n, e in launch.arguments}
        values, times = {n: quasi(e) for n, e in arguments.items()}, quasi(_with_form(launch.times, numbers_given))
        shown = [str(e) if e is arguments[n] else text(values[n]) for n, e in launch.arguments]
        label = f"{kernel.name}({', '.join(shown)})"
        one = known[key]
        compute, moved = (form.substitute(values) * times for form in (one.compute_s, one.memory_bytes))
        terms = Terms(label, compute, moved, frozenset(q.substitute(values) for q in one.within), times)
        found[label] = replace(summed([terms, found[label]]), label=label) if label in found else terms
    return _values(lowered.parameters, settings), tuple(found.values())


ANY = 5040
"""A value with many divisors for a parameter that is a symbol in all forms, used to lower a program."""


def check_free(checked: CheckedFile, name: str, given: Mapping[str, int], over: str) -> None:
    """Raises CommandError if `over` reaches a `const` parameter of a kernel, whose values are different kernels."""
    from roofdsl.loops.program_model import program

    for launch in program(checked, name, {**given, over: ANY}).launches:
        for constant, symbols in launch.decided:
            if over in symbols:
                what = f"program {name} gives `{over}` for the `const` parameter `{constant}` of {launch.kernel.name}"
                raise CommandError(what, f"predict it with --set {over}=1, --set {over}=2, ...")


def _values(parameters: Sequence[Parameter], settings: Mapping[str, int]) -> Values:
    return {p.name: settings.get(p.name, p.default) for p in parameters}


def _with_form(e: IntExpr, numbers_given: Mapping[str, IntExpr]) -> IntExpr:
    """An expression, with numbers for its parameters if it is not a polynomial in them. Raises CommandError."""
    try:
        quasi(e)
    except CommandError:
        put = e.substitute(numbers_given)
        put = put if put.symbols() else Const(put.evaluate({}))
        try:
            quasi(put)
        except CommandError as error:
            help = "give numbers for its parameters (--set), or omit --formula to search by predictions"
            raise CommandError(error.message, help) from None
        return put
    return e


def quasi(e: IntExpr) -> Quasi:
    """An integer expression of parameters as a polynomial. Raises CommandError if it is not one."""
    from roofdsl.counts.readable_forms import quasi_of

    try:
        return quasi_of(e)
    except ValueError:
        raise CommandError(f"`{e}` has no closed form") from None
