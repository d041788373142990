"""Rows of quantities for the reports of kernels and programs: W with its parts, Q with its directions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from roofdsl.counts.derived import Quantity, Ratio, Traffics, Work
from roofdsl.counts.readable_forms import Names, gives, limit_of, of_quantity, of_ratio
from roofdsl.formulas.writing import neat_text
from roofdsl.lang.record import Record
from roofdsl.machine.quantities import show_number
from roofdsl.sets.plateaus import Growth
from roofdsl.tell.equation_lines import Row
from roofdsl.tell.words import class_name, exact_number, is_zero, operation_name


class Rows:
    """Makes rows. at: the given sizes; names: those of floors; large: parameters in which ratios may have a limit."""

    def __init__(
        self,
        work: Work,
        order: Growth,
        at: Mapping[str, int],
        names: Names | None = None,
        large: Sequence[str] = (),
    ) -> None:
        self.counted, self.order, self.at, self.names, self.large = work, order, at, names, large
        self.operation = operation_name(work)
        self.sizes = ", ".join(f"{n} = {v}" for n, v in at.items())

    def quantity(self, label: str, q: Quantity, unit: str = "", remark: str = "") -> Row:
        """A quantity's form, its value, and whether the two are equal at the sizes given."""
        value = "" if q.value is None else exact_number(q.value)
        form = of_quantity(q, self.order, self.names, self.at)
        here = q.value is None or gives(q, self.at)
        return Row(label, form, value, unit, "", remark, q.assumes, q.note, equal=here, at=self.sizes)

    def ratio(self, label: str, r: Ratio, remark: str = "") -> Row:
        """An intensity, with its limit for large parameters."""
        value = "" if r.value is None else show_number(r.value)
        form = of_ratio(r, self.order, self.names, self.at)
        tends = ""
        if form is not None and self.large:
            limit = limit_of(r, self.order, self.at)
            if limit is not None and limit != form.main.expr:
                names = form.main.expr.names() | limit.names()
                tends = f"-> {neat_text(limit)} for large {', '.join(n for n in self.large if n in names)}"
        note = r.note if form is None else ""
        here = form is None or r.value is None or gives(r, self.at)
        return Row(label, form, value, f"{self.operation}/B", tends, remark, r.assumes, note, equal=here, at=self.sizes)

    def work(self) -> Iterator[Row]:
        """W, by class and by type if there are several, and other counts."""
        for part in work_parts(self.counted):
            yield self.quantity("  " * part.depth + part.label, part.of, part.unit, part.remark)

    def traffic(self, t: Traffics) -> Iterator[Row]:
        """Q in bytes, with its loads and stores if they are distinguished."""
        yield self.quantity("Q", t.bytes, "B")
        if t.loads is not None and t.stores is not None:
            yield self.quantity("  loads", t.loads, "B")
            yield self.quantity("  stores", t.stores, "B")


class WorkPart(Record):
    """One quantity of W; `depth` is its level below W."""

    label: str
    of: Quantity
    depth: int = 0
    unit: str = ""
    remark: str = ""


def work_parts(work: Work) -> Iterator[WorkPart]:
    """W, by class and by type if there are several, and other counts; the same in every report."""
    types = list(work.by_type)
    yield WorkPart("W", work.total, 0, f"{operation_name(work)}{f' ({types[0]})' if len(types) == 1 else ''}")
    functions = work.by_function if len(work.by_function) > 1 else {}
    if len(work.by_class) > 1:
        for name, q in work.by_class.items():
            yield WorkPart(class_name(name), q, 1)
            if name == "special":
                yield from (WorkPart(function, of, 2) for function, of in functions.items())
    elif work.by_class:
        (name,) = work.by_class
        yield WorkPart(f"all {class_name(name)}", work.total, 1)
        yield from (WorkPart(function, of, 2) for function, of in functions.items())
    if len(types) > 1:
        yield from (WorkPart(f"in {name}", q, 1) for name, q in work.by_type.items())
    if not is_zero(work.fused_pairs):
        yield WorkPart("fused pairs", work.fused_pairs)
    for name, q in (("comparisons", work.cmp), ("casts", work.casts)):
        if not is_zero(q):
            yield WorkPart(name, q, remark="(not in W)")
