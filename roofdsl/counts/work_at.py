"""The numbers that an analysis returns: exact operation counts at given sizes."""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.lang.record import Record


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
