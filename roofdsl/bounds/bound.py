"""The lower bound of a kernel: the largest of several arguments, each of which holds at every size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import sympy

from roofdsl.bounds.bottleneck import Bottleneck, bottleneck, sweep_bottleneck
from roofdsl.bounds.bound_at_sizes import LowerBound, Segments
from roofdsl.bounds.counting import at_large_sizes, count, top_terms
from roofdsl.bounds.flow import Flow, NotExact, flow
from roofdsl.bounds.held_reads import without_tile_loops
from roofdsl.bounds.partition import Partition, partition
from roofdsl.bounds.staggered import Staggered, staggered
from roofdsl.bounds.stencil import Stencil, stencil
from roofdsl.checks.deep import require_legal
from roofdsl.formulas.sympy_forms import expression, polynomial
from roofdsl.loops.model import Kernel
from roofdsl.loops.streams import ordinary
from roofdsl.loops.transform import apply
from roofdsl.sets.access_sets import build
from roofdsl.sets.cases import Cases, closed_form
from roofdsl.sets.library import LibraryFailure, OverBudget, TooHard, limited
from roofdsl.sets.sizes import NotAffine

T = TypeVar("T")
OPERATIONS = 3_000_000
"""Integer-set operations (a second or two) for each argument; one that needs more is left out."""

FEW_OPERATIONS = 2_000_000
"""Like OPERATIONS, for the search for bottlenecks, which most kernels do not have."""


@dataclass(frozen=True)
class Compulsory:
    """Input elements that the kernel reads, each loaded at least once: in total (sympy) and by array."""

    loads: Any
    by_array: tuple[tuple[str, Cases], ...]
    leading: Any


@dataclass(frozen=True)
class Bound:
    """loads >= max of the arguments, in elements, for every legal order, all sizes the kernel allows and all S >= 1.

    size: the symbol of S, elements of fast memory. plain: the kernel that was analyzed, with its directives applied and
    loops over tiles removed where possible; untiled: whether any were removed. notes: arguments that gave nothing, and
    why.
    """

    kernel: Kernel
    plain: Kernel
    size: Any
    compulsory: Compulsory
    partition: Partition | None
    stencil: Stencil | Staggered | None
    bottleneck: Bottleneck | None
    sweep: Bottleneck | None
    registers: int
    untiled: bool
    notes: tuple[str, ...]
    flow: Flow | None

    @property
    def arguments(self) -> list[tuple[str, Any]]:
        """(name, value) of every argument that gave a bound."""
        found = [("compulsory", self.compulsory.loads)]
        for name in ("partition", "stencil", "bottleneck", "sweep"):
            part = getattr(self, name)
            if part is not None:
                found.append((name, part.value))
        return found

    @property
    def loads(self) -> Any:
        """The bound as one sympy expression in the parameters and S."""
        values = [v for _, v in self.arguments]
        return values[0] if len(values) == 1 else sympy.Max(*values, evaluate=False)

    def leading(self) -> list[Any]:
        """The leading terms of all arguments."""
        parts = [self.compulsory, self.partition, self.stencil, self.bottleneck, self.sweep]
        return [p.leading for p in parts if p is not None]

    @cached_property
    def numbers(self) -> LowerBound:
        """The same in exact arithmetic, for given sizes, in a form that can be kept."""
        sizes = {a.name: a.type.bytes for a in self.kernel.arrays if not a.is_scalar}
        smallest = min(sizes.values(), default=1)
        parts = [(name, getattr(self, name)) for name in ("partition", "stencil", "bottleneck", "sweep")]
        in_bytes: tuple[tuple[str, Segments], ...] = ()
        if len(set(sizes.values())) > 1 and self.partition is not None and self.flow is not None:
            from roofdsl.bounds.element_bytes import partition_bytes

            counted = partition_bytes(self.flow, self.partition)
            in_bytes = (("partition", counted),) if counted is not None else ()
        return LowerBound(
            tuple((name, sizes.get(name, smallest), count) for name, count in self.compulsory.by_array),
            tuple((name, part.numbers()) for name, part in parts if part is not None),
            in_bytes,
            smallest,
            self.notes,
        )

    def at(self, params: Mapping[str, int], elements: int) -> tuple[int, str]:
        """(the bound as a whole number of loads, the argument that gives it) at the given sizes and S = `elements`."""
        return self.numbers.at(params, elements)

    def bytes_at(self, params: Mapping[str, int], cache_bytes: int) -> tuple[int, str]:
        """As `at`, in bytes of loads into a fast memory of `cache_bytes` (`LowerBound.bytes_at`)."""
        return self.numbers.bytes_at(params, cache_bytes)


def bound(kernel: Kernel, numbers: Mapping[str, int] | None = None) -> Bound:
    """The lower bound of `kernel`. Raises InputError if it is not legal, or if its directives cannot be applied, and
    CommandError if it has index arrays.

    numbers: parameters (tile sizes) to replace by their numbers if there is no exact form without them.
    """
    require_legal(kernel)
    kernel = ordinary(kernel)
    plain = apply(kernel)
    # The bound holds for every legal order, so we may analyze one without tile loops, in which executions have fewer
    # dimensions.
    simple, held = without_tile_loops(plain)
    shorter = simple is not plain
    size = sympy.Symbol("S" if all(p.name != "S" for p in kernel.parameters) else "S_fast", integer=True, positive=True)
    notes: list[str] = []
    found = _guarded("the flow of values", lambda: _flow(simple, numbers or {}), notes)
    found = found if found is None else replace(found, registers=found.registers + held)
    if found is None:
        return Bound(kernel, simple, size, _touched(plain), None, None, None, None, 0, shorter, tuple(notes), None)
    counted = _guarded("the count of what is read", lambda: _compulsory(found), notes)
    once = counted if counted is not None else Compulsory(sympy.Integer(0), (), sympy.Integer(0))
    partitioned = _guarded("the partition argument", lambda: partition(found, size), notes)
    waves = _guarded("the stencil argument", lambda: staggered(found, size) or stencil(found, size), notes)
    narrow = swept = None
    if waves is None:
        narrow = _guarded("the bottleneck argument", lambda: bottleneck(found, size), notes, FEW_OPERATIONS)
        swept = _guarded("the sweep argument", lambda: sweep_bottleneck(found, size), notes, FEW_OPERATIONS)
    others = [once.leading, *([narrow.leading] if narrow is not None else [])]
    # The leading term of this bound falls as S grows, the others' do not: if it gives no more at S = 1, it never does.
    if partitioned is not None and _covered(partitioned.leading, others, size):
        partitioned = None
    return Bound(
        kernel, simple, size, once, partitioned, waves, narrow, swept, found.registers, shorter, tuple(notes), found
    )


def _covered(leading: Any, others: list[Any], size: Any) -> bool:
    """Whether another argument is at least as large at large sizes, even for S = 1."""

    # Large sizes are represented by 2**20 for every parameter.
    def weight(value: Any) -> float:
        return float(value.subs(size, 1).subs(dict.fromkeys(value.free_symbols, 1 << 20)))

    return any(weight(leading) <= weight(other) for other in others)


def _guarded(what: str, compute: Callable[[], T], notes: list[str], operations: int = OPERATIONS) -> T | None:
    """What `compute` returns, or None and a note that says why not."""
    try:
        with limited(what, operations):
            return compute()
    except NotExact as error:
        notes.append(f"{what} has no exact form: {error}")
    except OverBudget as error:
        notes.append(error.message)
    except TooHard:
        notes.append(f"{what} exceeds its limit of integer-set operations")
    except LibraryFailure as error:
        notes.append(f"{what} is left out: {error}")
    return None


def _compulsory(found: Flow) -> Compulsory:
    counts = [(name, count(found, values)) for name, values in sorted(found.inputs().items())]
    total = sum((expression(c) for _, c in counts), sympy.Integer(0))
    main = sum((polynomial(at_large_sizes(found, c)) for _, c in counts), sympy.Integer(0))
    return Compulsory(total, tuple(counts), top_terms(main) if main else main)


def _flow(kernel: Kernel, numbers: Mapping[str, int]) -> Flow:
    """The symbolic flow of values, with numbers only for parameters that prevent an exact form. Raises NotExact."""
    try:
        return flow(kernel)
    except NotExact as error:
        needed = {n: numbers[n] for n in error.hard if n in numbers}
        if not needed or needed.keys() != error.hard:
            raise
        return flow(kernel, needed)


def _touched(kernel: Kernel) -> Compulsory:
    """The compulsory loads from the engine's own counts, if the flow of values has no exact form."""
    from roofdsl.sets.compulsory import compulsory
    from roofdsl.sets.count import count_symbolic
    from roofdsl.sets.misses import CannotCount
    from roofdsl.sets.previous import NotCertified

    try:
        with limited("compulsory loads"):
            access_sets = build(kernel, {}, None)
            by_array = []
            for residencies in compulsory(access_sets):
                number = count_symbolic([residencies.begun_by_read])
                form = closed_form(number, access_sets.context, access_sets.sizes.meaning())
                by_array.append((residencies.array, form))
            total = sum((expression(c) for _, c in by_array), sympy.Integer(0))
            return Compulsory(total, tuple(by_array), total)
    except (NotAffine, NotCertified, CannotCount, LibraryFailure, TooHard):
        return Compulsory(sympy.Integer(0), (), sympy.Integer(0))
