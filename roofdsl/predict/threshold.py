"""What bounds a kernel or program as one parameter grows, and where that changes.

The terms of the time (rule 15) become functions of the parameter: exact closed forms of W and of compulsory Q over
their rates, and the launches. `largest_of` finds, over all integers, where they cross. On a machine with caches, Q is
the traffic behind a cache; the terms are then predicted at single sizes, and the changes are found by bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial, reduce
from itertools import pairwise
from operator import add as add_predictions
from typing import TypeVar

from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.integers import Const, IntExpr, Sym, add
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import check_complete, check_names, numbers
from roofdsl.loops.program_model import program
from roofdsl.loops.streams import require_ordinary
from roofdsl.machine.model import Machine
from roofdsl.predict.allowed_sizes import first_allowed, last_allowed
from roofdsl.predict.contraction import check_unit
from roofdsl.predict.kernel import predict
from roofdsl.predict.largest_of import Interval, NotExact, largest
from roofdsl.predict.options import Options
from roofdsl.predict.program import Units
from roofdsl.predict.program_terms import Growing, Grown, argument_text, closed_terms, count_text, sent_by
from roofdsl.predict.time_forms import ANY, check_free
from roofdsl.predict.time_model import LAUNCH
from roofdsl.sets.cases import Cases

SEARCH_TO = 4096
"""The largest value of the parameter that a search examines by default."""

T = TypeVar("T")


class Bounds(Record):
    """What bounds a launch of a kernel (or all of a program) over a parameter.

    label: for a launch of a program, the kernel with its arguments; otherwise the name. intervals: of the parameter,
    each with its bound; values in them that violate an assumption do not count. work, bytes: W and Q in the parameter;
    None without a closed form. launches: their number, as text. searched_to: None if the intervals are exact for all
    integers, otherwise the largest value examined. why: the reason for a search.
    """

    kernel: str
    label: str
    launches: str
    intervals: tuple[Interval, ...]
    work: Cases | None = None
    bytes: Cases | None = None
    searched_to: int | None = None
    why: str = ""

    def first_without(self, name: str) -> int | None:
        """The least value from which the bound is never `name`; None if it is `name` for all large values."""
        last = max((k for k, i in enumerate(self.intervals) if name in i.names), default=-1)
        return self.intervals[last + 1].first if last + 1 < len(self.intervals) else None


class Question(Record):
    """over: the growing parameter. terms: the only ones compared (empty: all). search_to: the largest value."""

    over: str
    options: Options = Options()
    terms: tuple[str, ...] = ()
    search_to: int = SEARCH_TO


def kernel_bounds(kernel: Kernel, settings: Mapping[str, int], machine: Machine, question: Question) -> Bounds:
    """What bounds one launch of a kernel. `settings` and defaults give numbers to its other parameters.

    Raises CommandError for a parameter that is missing, unknown or `const`, and what `predict` raises at the sizes of a
    search.
    """
    over = question.over
    names, whose = [p.name for p in kernel.parameters], f"kernel {kernel.name}"
    if over in dict(kernel.constants):
        raise _const(whose, over)
    check_names(whose, [over], names)
    _require_countable(kernel)
    given = {p.name: p.default for p in kernel.parameters if p.default is not None} | dict(settings)
    given.pop(over, None)
    check_complete(whose, [n for n in names if n != over], given)
    values = numbers(kernel, given, complete=False)
    unit = question.options.unit or kernel.unit
    check_unit(unit, kernel)
    arguments: dict[str, IntExpr] = {n: Const(v) for n, v in values.items()} | {over: Sym(over)}
    launch = Growing(kernel, tuple(arguments.items()), Const(1), unit)
    return _bounds(Grown((launch,)), machine, question, kernel.name, _admissible([launch]))


def _require_countable(kernel: Kernel) -> None:
    """Raises InputError for a kernel that is not legal, CommandError for one with stores that bypass the caches."""
    from roofdsl.checks.deep import require_legal

    require_legal(kernel)
    require_ordinary(kernel, "a threshold")


def program_bounds(
    checked: CheckedFile, name: str, settings: Mapping[str, int], machine: Machine, question: Question
) -> tuple[Bounds, tuple[Bounds, ...]]:
    """What bounds the sum of a program's launches, and each launch that differs in kernel or sizes.

    The terms of the sum are the sums of the launches' terms, as in the planes. Raises as `kernel_bounds` does.
    """
    from roofdsl.loops.program_at_sizes import program_sizes

    given = {n: v for n, v in settings.items() if n != question.over}
    lowered = program(checked, name, {**given, question.over: ANY})
    sizes = program_sizes(checked, lowered, given, question.over)
    if question.over not in {p.name for p in lowered.parameters}:
        raise _const(f"program {name}", question.over)
    check_free(checked, name, given, question.over)
    numbers: dict[str, IntExpr] = {n: Const(v) for n, v in sizes.items()}
    units = Units(machine, question.options.unit)
    found: dict[tuple[object, ...], Growing] = {}
    for kernel in dict.fromkeys(launch.kernel for launch in lowered.launches):
        _require_countable(kernel)
    for launch in lowered.launches:
        arguments = tuple((n, e.substitute(numbers)) for n, e in launch.arguments)
        times = launch.times.substitute(numbers)
        key = (launch.kernel.name, launch.kernel.constants, arguments)
        if key in found:
            times = add(found[key].times, times)
        found[key] = Growing(launch.kernel, arguments, times, units.of(launch.kernel))
    launches = list(found.values())
    allowed = _admissible(launches)
    whole = _bounds(Grown(tuple(launches), sent_by(lowered, numbers, machine)), machine, question, name, allowed)
    parts = [_bounds(Grown((launch,)), machine, question, launch.kernel.name, allowed) for launch in launches]
    labels = [
        f"{launch.kernel.name}({', '.join(argument_text(e) for _, e in launch.arguments)})" for launch in launches
    ]
    return whole, tuple(replace(part, label=label) for part, label in zip(parts, labels, strict=True))


def _const(whose: str, over: str) -> CommandError:
    what = f"`{over}` is a `const` parameter of {whose}, so each of its values is a different kernel"
    return CommandError(what, f"predict it with --set {over}=1, --set {over}=2, ...")


def _bounds(grown: Grown, machine: Machine, question: Question, name: str, admissible: Callable[[int], bool]) -> Bounds:
    work, moved = None, None
    try:
        terms, work, moved = closed_terms(grown.launches, grown.sent, machine, question.options)
        intervals = largest(_picked(terms, question.terms, machine), question.over)
        exact, why = True, ""
    except NotExact as error:
        exact, why = False, str(error)
        intervals = _searched(grown, machine, question, admissible)
    kept = _allowed(intervals, admissible)
    if not kept:
        raise CommandError(f"no value of {question.over} was found that the assumptions of {name} allow")
    return Bounds(name, name, count_text(grown.launches), kept, work, moved, None if exact else intervals[-1].last, why)


def _picked(terms: Mapping[str, T], names: Sequence[str], machine: Machine) -> dict[str, T]:
    """The requested terms, without the launches of a machine that has no launch time. Raises CommandError."""
    known = [n for n in terms if n != LAUNCH or machine.launch_s]
    wrong = next((n for n in names if n not in known), None)
    if wrong is not None:
        raise CommandError(f"no term is named {wrong}", f"on {machine.name} the terms are {', '.join(known)}")
    return {n: terms[n] for n in known if not names or n in names}


# ---- by search ----


def _searched(
    grown: Grown, machine: Machine, question: Question, admissible: Callable[[int], bool]
) -> tuple[Interval, ...]:
    """Intervals from predictions at powers of two, and bisection between those with different bounds.

    A bound that holds only between two neighboring ones of these sizes may be missed. Ends early if a size is out of
    reach.
    """
    bound_at = cache(partial(_bound_at, grown, machine, question))

    def nearest(n: int) -> int | None:
        return first_allowed(admissible, n, question.search_to)

    def last_above(n: int) -> int | None:
        last = last_allowed(admissible, n, question.search_to)
        return last if last > n else None

    at: list[tuple[int, str]] = []
    n: int | None = nearest(1)
    while n is not None:
        try:
            at.append((n, bound_at(n)))
        except CommandError:
            if not at:
                raise
            break
        n = nearest(2 * n) or last_above(n)
    if not at:
        what = f"no value of {question.over} up to {question.search_to} was found that the assumptions allow"
        raise CommandError(what, "--up-to searches farther")
    changes = [at[0], *(change for pair in pairwise(at) for change in _changes(*pair, bound_at, nearest))]
    ends = [start - 1 for start, _ in changes[1:]] + [at[-1][0]]
    return tuple(Interval(start, end, (bound,)) for (start, bound), end in zip(changes, ends, strict=True))


def _bound_at(grown: Grown, machine: Machine, question: Question, n: int) -> str:
    """The largest of the requested terms if the parameter has this value."""
    options, over = replace(question.options, unit=None), {question.over: n}
    parts = []
    for launch in grown.launches:
        values = {name: e.evaluate(over) for name, e in launch.arguments}
        p = predict(launch.kernel, values, machine, replace(options, unit=launch.unit))
        parts.append(p * launch.times.evaluate(over))
    total = dict(reduce(add_predictions, parts).terms) if parts else {}
    for e in grown.sent:
        each = e.seconds_at(over, question.options.step_s)
        total[e.link] = total.get(e.link, Fraction(0)) + each * e.times.evaluate(over)
    terms = _picked(total, question.terms, machine)
    return max(terms, key=lambda name: terms[name])


def _changes(
    low: tuple[int, str], high: tuple[int, str], bound_at: Callable[[int], str], nearest: Callable[[int], int | None]
) -> Iterator[tuple[int, str]]:
    """(the first allowed value with it, the bound) for every other bound found between two values with their bounds."""
    (first, bound), (end_at, after) = low, high
    while bound != after:  # the least value with a bound other than `bound`, then further from there
        a, b, end = first, end_at, end_at  # nothing from `end` to `b` is allowed
        while end - a > 1:
            middle = nearest((a + end) // 2)
            if middle is None or middle >= end:
                end = (a + end) // 2
            elif bound_at(middle) == bound:
                a = middle
            else:
                b = end = middle
        first, bound = b, bound_at(b)
        yield first, bound


# ---- allowed values ----


def _admissible(launches: Sequence[Growing]) -> Callable[[int], bool]:
    """A test: every launch is made at least once, with positive arguments that its kernel's assumptions allow."""

    @cache  # all launches of a program ask for the same values
    def allowed(n: int) -> bool:
        for launch in launches:
            values = {
                name: e.evaluate(dict.fromkeys(e.symbols(), n)) for name, e in (*launch.arguments, ("", launch.times))
            }
            if min(values.values()) < 1:
                return False
            values.pop("")
            if not all(c.holds(values) for c in launch.kernel.assumptions if c.symbols() <= values.keys()):
                return False
        return True

    return allowed


def _allowed(intervals: Sequence[Interval], admissible: Callable[[int], bool]) -> tuple[Interval, ...]:
    """The intervals with their ends moved to allowed values; intervals without any are left out."""
    kept: list[Interval] = []
    for i in intervals:
        first = first_allowed(admissible, i.first, i.last)
        if first is None:
            continue
        last = i.last if i.last is None else last_allowed(admissible, first, i.last)
        if kept and kept[-1].names == i.names:
            kept[-1] = Interval(kept[-1].first, last, i.names)
        else:
            kept.append(Interval(first, last, i.names))
    return tuple(kept)
