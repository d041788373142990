"""The least time of a kernel's operations, on ordinary pipes and on matrix units side by side.

A contraction runs on matrix units as a whole, if the machine has them for its types (docs/rules.md, rule 14). In other
kernels, such as a convolution with its ReLU or attention with its exponentials, the multiply-add pairs that sum
products may run on matrix units while everything else runs on the ordinary pipes. The narrower type of the two factors
decides the rate of such a pair, since code may round the other factor to it, as FlashAttention does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from roofdsl.counts.executions import statement_executions
from roofdsl.counts.operations import operation_counts
from roofdsl.counts.work_record import StatementOperations, WorkAt, weighed
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import Record, replace
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import sized
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_rate
from roofdsl.predict.compute import compute_time
from roofdsl.predict.contraction import is_contraction
from roofdsl.predict.time_model import ComputePart, pipe_cost
from roofdsl.sol.sums import SumOfProducts, sums_of_products

MATRIX_UNIT = "tensor"


class Operations(Record):
    """The operations of a launch, or of several: those that matrix units may do, and the others.

    unit: the matrix unit that does everything (for a contraction), or None. costs: the costs of classes that the file
    states.
    """

    work: int
    matrix: tuple[ComputePart, ...]
    ordinary: WorkAt
    costs: tuple[tuple[str, Fraction], ...]
    unit: str | None

    @property
    def partly(self) -> str | None:
        """The matrix unit that does a part of the operations; None if it does all or none."""
        return MATRIX_UNIT if self.unit is None and self.matrix else None


class ComputeFloor(Record):
    """The least seconds for the operations, and how they are made up, in words: as one text, and part by part, each
    part with `+` or `beside` in front of it if it follows another.
    """

    time_s: Fraction
    formula: str
    parts: tuple[str, ...]


class Executed(Record):
    """A kernel, as given and with its directives applied (`plain`), and each statement's operations and executions."""

    kernel: Kernel
    plain: Kernel
    counts: tuple[StatementOperations, ...]
    executions: tuple[int, ...]


def executed(kernel: Kernel, values: Mapping[str, int]) -> Executed:
    """One launch of a kernel at its sizes. Raises what counting raises."""
    at = sized(kernel, values)
    executions = statement_executions(at.kernel, at.values)
    return Executed(kernel, at.kernel, tuple(operation_counts(at.kernel)), executions)


def operations_of(launch: Executed, machine: Machine) -> Operations:
    """All operations of one launch."""
    kernel, counts, executions = launch.kernel, launch.counts, launch.executions
    work = weighed(counts, executions)
    costs = tuple((name, Fraction(value)) for name, value in kernel.costs)
    unit = kernel.unit or fitting_unit(kernel, work, machine)
    if unit is not None:
        parts = compute_time(work, machine, unit=unit, costs=dict(costs)).parts
        return Operations(work.total, parts, WorkAt({}, {}), costs, unit)
    matrix: list[ComputePart] = []
    rest = list(counts)
    for one in sums_of_products(launch.plain):
        own = counts[one.place]
        for type_name, pairs in own.fused_pairs.items():
            rate = _matrix_rate(type_name, one, machine)
            if rate is not None and pairs and executions[one.place]:
                matrix.append(ComputePart(rate[0], MATRIX_UNIT, 2 * pairs * executions[one.place], rate[1]))
                rest[one.place] = _without_pairs(rest[one.place], type_name)
    return Operations(work.total, _joined(matrix), weighed(rest, executions), costs, None)


def fitting_unit(kernel: Kernel, work: WorkAt, machine: Machine) -> str | None:
    """The matrix unit that a library would use: for contractions, if the machine has one for all types of `work`."""
    types = {name for name, operations in work.by_type.items() if operations}
    has = all(machine.stated(name, MATRIX_UNIT) is not None for name in types)
    return MATRIX_UNIT if types and has and is_contraction(kernel) else None


def _matrix_rate(type_name: str, one: SumOfProducts, machine: Machine) -> tuple[str, Fraction] | None:
    """The type and the rate at which matrix units may do a pair; None if the ordinary pipes are no slower."""
    types = dict.fromkeys((type_name, one.left.type.component.name, one.right.type.component.name))
    peaks = [p for t in types if (p := machine.stated(t, MATRIX_UNIT)) is not None]
    best = max(peaks, key=lambda p: p.rate_per_s, default=None)
    if best is None:
        return None
    try:
        ordinary = machine.peak(type_name).per_s
    except CommandError:  # the machine has this type on its matrix units only
        ordinary = Fraction(0)
    return (best.type, best.rate_per_s) if best.rate_per_s > ordinary else None


def _without_pairs(one: StatementOperations, type_name: str) -> StatementOperations:
    pairs = one.fused_pairs[type_name]
    left = {key: n - pairs * (key in ((type_name, "add"), (type_name, "mul"))) for key, n in one.operations.items()}
    return replace(one, operations=left, fused_pairs={**one.fused_pairs, type_name: 0})


def _joined(parts: Iterable[ComputePart]) -> tuple[ComputePart, ...]:
    """One part for each type and class."""
    found: dict[tuple[str, str, Fraction], int] = {}
    for part in parts:
        key = (part.type, part.cls, part.rate_per_s)
        found[key] = found.get(key, 0) + part.operations
    return tuple(ComputePart(t, cls, n, rate) for (t, cls, rate), n in found.items())


def together(launches: Sequence[tuple[Operations, int]]) -> Operations:
    """The operations of several launches, each with its number of executions, as those of one launch.

    A cost that every file states counts with its least value; others are left out.
    """
    matrix = _joined(replace(p, operations=p.operations * n) for own, n in launches for p in own.matrix)
    operations: dict[tuple[str, str], int] = {}
    pairs: dict[str, int] = {}
    functions: dict[tuple[str, str], int] = {}
    for own, n in launches:
        for key, count in own.ordinary.operations.items():
            operations[key] = operations.get(key, 0) + n * count
        for name, count in own.ordinary.fused_pairs.items():
            pairs[name] = pairs.get(name, 0) + n * count
        for key, count in own.ordinary.functions.items():
            functions[key] = functions.get(key, 0) + n * count
    given = [dict(own.costs) for own, _ in launches]
    names = set().union(*given)
    costs = {name: min(each[name] for each in given) for name in names if all(name in each for each in given)}
    units = {own.unit for own, _ in launches}
    return Operations(
        sum(own.work * n for own, n in launches), matrix, WorkAt(operations, pairs, 0, 0, functions),
        tuple(costs.items()), next(iter(units)) if len(units) == 1 else None,
    )  # fmt: skip


def compute_floor(found: Operations, machine: Machine) -> ComputeFloor:
    """The time of the matrix units or that of the ordinary pipes, whichever is longer. Raises CommandError for a type
    that the machine lacks.
    """
    on_unit = sum((part.time_s for part in found.matrix), Fraction(0))
    ordinary = compute_time(found.ordinary, machine, costs=dict(found.costs))
    sides: list[str] = []
    parts: list[str] = []
    if found.matrix:
        units = " and ".join(dict.fromkeys(part.cls for part in found.matrix))
        words = [_shown(p, p.rate_per_s, units) for p in found.matrix]
        sides.append(" + ".join(words) + f", on {units} units")
        parts = [f"{'+ ' if k else ''}{each}, on {units} units" for k, each in enumerate(words)]
    if ordinary.parts or not sides:
        apart = not machine.one_sequence
        words = []
        for part in ordinary.parts:
            cost = pipe_cost(part, machine) if apart and machine.pipes_separate else None
            rate = part.rate_per_s if cost is None else machine.peak(part.type).per_s / 2 / cost
            words.append(_shown(part, rate, ""))
        sign = "beside" if apart else "+"
        sides.append(f" {sign} ".join(words))
        first = "beside " if found.matrix else ""
        parts += [f"{f'{sign} ' if k else first}{each}" for k, each in enumerate(words)]
    return ComputeFloor(max(on_unit, ordinary.time_s), ", beside ".join(sides), tuple(parts))


def _shown(part: ComputePart, rate: Fraction, unit: str) -> str:
    cls = "" if part.cls == unit else f" ({part.cls})"
    return f"{part.operations:,} operations in {part.type}{cls} at {show_rate(rate)}"
