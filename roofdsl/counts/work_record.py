"""Records of exact operation counts: of one execution of a statement, and their sum over all executions.

`operations` makes the former, `work_at` the latter, which is W at given sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roofdsl.lang.record import Record
from roofdsl.loops.model import Assign, Count, Let


class WorkAt(Record):
    """Exact operation counts of one kernel at given sizes (docs/rules.md, rules 1 to 7).

    operations: (type name, class) -> number of operations, including those in fused pairs; class is one of
    `roofdsl.lang.operation_classes.OPERATION_CLASSES`, the type is a real or integer one (complex counts as its
    component). fused_pairs: type name -> number of fused pairs (each is one add and one mul of that type). cmp, casts:
    comparisons and casts, which are not part of W. functions: (type name, function) -> how many of the operations of
    class "special" are this function; others belong to no particular function.
    """

    operations: Mapping[tuple[str, str], int]
    fused_pairs: Mapping[str, int]
    cmp: int = 0
    casts: int = 0
    functions: Mapping[tuple[str, str], int] = {}

    @property
    def total(self) -> int:
        """W, in operations."""
        return sum(self.operations.values())

    @property
    def by_type(self) -> dict[str, int]:
        """W by type, in operations."""
        types: dict[str, int] = {}
        for (name, _), n in self.operations.items():
            types[name] = types.get(name, 0) + n
        return types

    @property
    def fma_fraction(self) -> float | None:
        """alpha = F / (F + N): F pairs, N = W - 2F other operations; None where W = 0 (rule 5)."""
        pairs = sum(self.fused_pairs.values())
        rest = self.total - 2 * pairs
        return pairs / (pairs + rest) if self.total else None


Statement = Assign | Let | Count


class StatementOperations(Record):
    """The cost of one execution of `statement`; the fields have the meaning of those of `WorkAt`."""

    statement: Statement
    operations: Mapping[tuple[str, str], int]
    fused_pairs: Mapping[str, int]
    cmp: int = 0
    casts: int = 0
    functions: Mapping[tuple[str, str], int] = {}

    @property
    def total(self) -> int:
        """Operations of one execution, those in fused pairs included."""
        return sum(self.operations.values())


def weighed(operations: Sequence[StatementOperations], executions: Sequence[int]) -> WorkAt:
    """The total if statement k runs `executions[k]` times; numbers that come to 0 are omitted from the mappings.

    Raises ValueError if the lengths differ.
    """
    totals: dict[tuple[str, str], int] = {}
    functions: dict[tuple[str, str], int] = {}
    pairs: dict[str, int] = {}
    cmp = casts = 0
    for statement, times in zip(operations, executions, strict=True):
        for sums, counts in ((totals, statement.operations), (functions, statement.functions)):
            for key, n in counts.items():
                sums[key] = sums.get(key, 0) + n * times
        for name, n in statement.fused_pairs.items():
            pairs[name] = pairs.get(name, 0) + n * times
        cmp += statement.cmp * times
        casts += statement.casts * times
    present = {k: n for k, n in functions.items() if n}
    return WorkAt({k: n for k, n in totals.items() if n}, {k: n for k, n in pairs.items() if n}, cmp, casts, present)
