"""Closed forms in lines of a kernel that goes through an array against its loop, for sizes that are whole lines.

`B[n - 1 - i] = A[i] + A[n - 1 - i]` meets the lines of A from both ends. Where lines begin at the far end, and whether
both ends meet inside a line, depends on the remainder of n. There are forms for an even number of whole lines.
"""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.counts.closed_forms import ClosedForms
from roofdsl.counts.traffic_form_records import Bytes, PlateauBytes
from roofdsl.lang.record import replace
from roofdsl.loops.accesses import accesses, statements
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import And, Compare, Condition, Const, Mod, Sym, all_of
from roofdsl.loops.model import Count, Kernel, Traffic
from roofdsl.loops.transform import apply
from roofdsl.sets.facts import Remainders


class MirroredForms:
    """The closed forms of `kernel` for sizes that meet `where`."""

    def __init__(self, kernel: Kernel, given: Mapping[str, int], line_bytes: int, where: Condition) -> None:
        self.where = where
        whole = replace(kernel, assumptions=(*kernel.assumptions, where))
        self.closed = ClosedForms(whole, given, line_bytes)

    def at_cache(self, cache_bytes: int, convention: Traffic) -> Bytes:
        """The traffic of a cache of `cache_bytes`. Raises NoClosedForm."""
        return self.closed.at_cache(cache_bytes, convention).assuming((Remainders(self.where),))

    def plateau_forms(self, convention: Traffic) -> tuple[PlateauBytes, ...]:
        """The plateaus of Q(Z). Raises NoClosedForm."""
        return tuple(
            replace(row, where=self.where if row.where is None else And((self.where, row.where)))
            for row in self.closed.plateau_forms(convention)
        )


def mirrored(kernel: Kernel, given: Mapping[str, int], line_bytes: int) -> Condition | None:
    """The condition that sizes from which a reference is counted backwards are multiples of two lines; None if there
    are none.
    """
    largest: dict[str, int] = {}
    for placed in statements(apply(kernel).body):
        if isinstance(placed.statement, Count):
            continue
        loops = {loop.var for loop in placed.loops}
        for access in accesses(placed.statement):
            subscripts = access.element.subscripts
            if not subscripts:
                continue
            per_line = line_bytes // access.element.array.type.bytes
            own = affine(subscripts[0 if access.element.array.column_major else -1]).coefficients()
            backwards = any(c < 0 for name, c in own.items() if name in loops)
            if backwards and per_line > 1:
                for name in own.keys() - loops - given.keys():
                    largest[name] = max(largest.get(name, 1), 2 * per_line)
    return all_of([Compare("==", Mod(Sym(n), Const(m)), Const(0)) for n, m in sorted(largest.items())])
