"""Programs in a sweep: the sum over their launches, each evaluated at its own arguments, as in `predict.program`."""

from __future__ import annotations

from collections.abc import Mapping
from math import lcm
from typing import Any

from roofdsl.checks.deep import require_legal
from roofdsl.counts.integers_at_many_points import holds, value_of
from roofdsl.counts.operations import operation_counts
from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.record import Record, replace
from roofdsl.loops.integers import Condition, Const, IntExpr, add
from roofdsl.loops.model import Kernel, Parameter
from roofdsl.loops.program_at_sizes import ProgramOf
from roofdsl.loops.program_model import LoweredProgram, program, require_launches
from roofdsl.loops.transform import apply
from roofdsl.machine.model import Machine
from roofdsl.predict.options import Options
from roofdsl.predict.program import Units
from roofdsl.sweep.exact_forms import KernelForms
from roofdsl.sweep.numeric import EXACT, Points, TooLarge
from roofdsl.sweep.rounding import Term, ordered, over_sum, quotient, total_time, words
from roofdsl.sweep.time_terms import Plan, Values, intensity


class SweptProgram(Record):
    """A program of a file, with numbers for its `const` parameters; a sweep uses it like a kernel."""

    of: ProgramOf
    lowered: LoweredProgram
    constants: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        return self.lowered.name

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.lowered.parameters

    @property
    def assumptions(self) -> tuple[Condition, ...]:
        """Empty: a launch whose kernel does not allow its sizes is reported."""
        return ()

    @property
    def moves_only(self) -> bool:
        """Whether none of its kernels has operations."""

        kernels = {launch.kernel.name: launch.kernel for launch in self.lowered.launches}
        return not any(s.total for k in kernels.values() for s in operation_counts(apply(k)))


def swept_program(checked: CheckedFile, name: str, constants: Mapping[str, int]) -> SweptProgram:
    """The program of that name. Raises CommandError as `loops.program_model.program` does."""
    return SweptProgram(ProgramOf(checked, name), program(checked, name, constants), tuple(constants.items()))


def require_legal_launches(swept: SweptProgram) -> None:
    """Raises InputError for an illegal kernel."""
    for kernel in {launch.kernel.name: launch.kernel for launch in swept.lowered.launches}.values():
        require_legal(kernel)


class _Part:
    """All launches of a kernel with the same arguments, and their number, in the program's parameters."""

    def __init__(self, kernel: Kernel, arguments: Mapping[str, IntExpr], plan: Plan) -> None:
        self.kernel, self.arguments, self.plan = kernel, arguments, plan
        self.times: IntExpr = Const(0)

    def columns(self, columns: Mapping[str, Any], count: int) -> tuple[dict[str, Any], Any, Any]:
        """(the kernel's parameters, launches, where `predict` accepts them) as arrays."""
        import numpy as np

        own = {n: np.broadcast_to(value_of(e, columns), count) for n, e in self.arguments.items()}
        times = np.broadcast_to(value_of(self.times, columns), count)
        allowed = times >= 1
        for column in own.values():
            allowed = allowed & (column >= 1)
        own = {n: np.maximum(c, 1) for n, c in own.items()}  # values that are not allowed are computed but not used
        for condition in self.kernel.assumptions:
            allowed = allowed & np.asarray(holds(condition, own), dtype=bool)
        return own, times, np.asarray(allowed, dtype=bool)


class ProgramPlan:
    """Like `Plan`, for a program. Raises CommandError if `predict` does at all sizes."""

    def __init__(self, swept: SweptProgram, machine: Machine, options: Options, forms: dict[Any, KernelForms]) -> None:
        self.machine, self.options = machine, options
        require_launches(swept.lowered)
        units = Units(machine, options.unit)
        parts: dict[tuple[object, ...], _Part] = {}
        for launch in swept.lowered.launches:
            key = (launch.kernel.name, launch.kernel.constants, launch.arguments)
            if key not in parts:
                given = {n: e.value for n, e in launch.arguments if isinstance(e, Const)}
                of = (*key[:2], tuple(sorted(given.items())))
                if of not in forms:
                    forms[of] = KernelForms(launch.kernel, given)
                plan = Plan(forms[of], machine, replace(options, unit=units.of(launch.kernel)))
                parts[key] = _Part(launch.kernel, dict(launch.arguments), plan)
            parts[key].times = add(parts[key].times, launch.times)
        self.parts = tuple(parts.values())
        plans = [part.plan for part in self.parts]
        kept = [level for level in plans[0].levels if all(level.name in p.level_names for p in plans)]
        kinds = {tuple(bool(level.directions) for level in p.levels) for p in plans}
        self._apart = len(kinds) > 1  # times of levels add only if loads and stores are separate for all
        self._apart |= bool(swept.lowered.exchanges)  # the time of a collective is not linear in its array
        self.level_names = tuple(level.name for level in kept)
        self.moves_only = all(p.moves_only for p in plans)
        self.names = tuple(name for name in plans[0].names if all(name in p.names for p in plans))
        self.left_out = list(dict.fromkeys((*units.warnings(swept.name), *(w for p in plans for w in p.left_out))))
        self.may_need_cache_forms = any(p.may_need_cache_forms for p in plans)
        self.has_footprint = all(p.has_footprint for p in plans)

    def may_be_known(self, *, try_cache: bool) -> bool:
        """Whether there can be points at which everything is known; not for a program that runs warm."""
        if self.options.warm or self._apart:
            return False
        return all(p.plan.may_be_known(try_cache=try_cache) for p in self.parts)

    def bound(self, code: int) -> str:
        """What bounds the program, in words."""
        return words(code, self.names)

    def held(self, columns: Mapping[str, Any], count: int) -> Any:
        """Like `Plan.held`."""
        import numpy as np

        found = np.ones(count, dtype=bool)
        for part in self.parts:
            own, _, allowed = part.columns(columns, count)
            found &= allowed & part.plan.held(own, count)
        return found

    def touched(self, columns: Mapping[str, Any], count: int) -> Any:
        """Bytes of distinct elements touched by the launch that touches most; 0 where `predict` refuses a launch."""
        import numpy as np

        found: Any = 0
        accepted: Any = True
        for part in self.parts:
            own, _, allowed = part.columns(columns, count)
            found, accepted = np.maximum(found, part.plan.touched(own, count)), accepted & allowed
        return np.where(accepted, found, 0)

    def values(self, columns: Mapping[str, Any], count: int, *, try_cache: bool) -> Values:
        """Like `Plan.values`."""
        try:
            return self._values(columns, count, try_cache=try_cache, exact=False)
        except TooLarge:
            return self._values(columns, count, try_cache=try_cache, exact=True)

    def _values(self, columns: Mapping[str, Any], count: int, *, try_cache: bool, exact: bool) -> Values:
        import numpy as np

        known = np.ones(count, dtype=bool)
        work, launches, amounts = _Total(exact), _Total(exact), {name: _Total(exact) for name in self.level_names}
        sums = {name: _Sum(exact) for name in self.names}
        bound, no_overlap = _Sum(exact), _Sum(exact)
        for part in self.parts:
            own, times, allowed = part.columns(columns, count)
            weight = np.where(allowed, times, 1).astype(object if exact else np.float64)
            counts = part.plan.counts(Points(own, count, exact=exact), own, try_cache=try_cache)
            known &= allowed & counts.known
            work.add(counts.work, weight)
            launches.add(weight, 1)
            for name, total in amounts.items():
                total.add(counts.levels[name], weight)
            _, largest, _ = ordered(counts.terms, [quotient(top, below) for _, top, below in counts.terms])
            for k, (name, top, below) in enumerate(counts.terms):
                if name in sums:
                    sums[name].add(top, weight, below)
                no_overlap.add(top, weight, below)
                bound.add(np.where(largest == k, top, 0), weight, below)
        terms = [sums[name].one(name) for name in self.names]
        seconds = [quotient(top, below) for _, top, below in terms]
        moved = amounts[self.level_names[-1]].value
        return Values(
            known,
            work.value,
            {name: total.value for name, total in amounts.items()},
            seconds[0],
            total_time(bound.terms()),
            total_time(no_overlap.terms()),
            over_sum(moved if self.moves_only else work.value, bound.terms()),
            intensity(work.value, moved),
            ordered(terms, seconds)[2],
            launches.value,
        )


class _Total:
    """A sum of integers times launches. Raises TooLarge if an intermediate may reach 2**53."""

    def __init__(self, exact: bool) -> None:
        self.exact, self.reach = exact, 0.0
        self.value: Any = 0

    def add(self, amount: Any, weight: Any) -> None:
        import numpy as np

        if not self.exact:
            self.reach += float(abs(amount).max(initial=0)) * float(np.max(weight, initial=0))
            if self.reach >= EXACT:
                raise TooLarge
        self.value = self.value + amount * weight


class _Sum:
    """A sum of times in seconds: integers, one for each denominator."""

    def __init__(self, exact: bool) -> None:
        self.exact = exact
        self.by_below: dict[int, _Total] = {}

    def add(self, top: Any, weight: Any, below: int) -> None:
        self.by_below.setdefault(below, _Total(self.exact)).add(top, weight)

    def terms(self) -> list[Term]:
        return [("", total.value, below) for below, total in self.by_below.items()]

    def one(self, name: str) -> Term:
        """The sum over a single denominator. Raises TooLarge."""
        below, whole = lcm(*self.by_below), _Total(self.exact)
        for each, total in self.by_below.items():
            whole.add(total.value, below // each)
        return name, whole.value, below
