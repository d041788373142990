"""The histogram of stack distances of a kernel at given sizes, found once for all caches (`counts.lines`)."""

from __future__ import annotations

from functools import lru_cache

from roofdsl import budget
from roofdsl.counts.lines.distance_records import Histogram
from roofdsl.counts.lines.operand_histogram import Operands
from roofdsl.counts.lines.symbolic import Undecided
from roofdsl.counts.lines.uniform import NotUniform, uniform
from roofdsl.counts.lines.uniform_histogram import histogram
from roofdsl.loops.model import Kernel
from roofdsl.loops.sized import Sized


class NoAnswer(Exception):
    """One method does not find the number; another may."""


def stack_distances(
    at: Sized,
    line_bytes: int | None,
    sector_bytes: int | None = None,
    *,
    first: bool = False,
    all_distances: bool = False,
) -> Histogram:
    """The histogram of stack distances of one execution; `first`: it counts only the first visits of lines.

    all_distances: include short ones, which matter only for small caches. Raises NoAnswer for kernels that this method
    does not handle, and TooHard.
    """
    from roofdsl.sets.library import limited

    with budget.part(2), limited(f"the stack distances of kernel {at.name}"):
        found = _distances(at.kernel, tuple(at.values.items()), (line_bytes, sector_bytes), (first, all_distances))
    if isinstance(found, str):
        raise NoAnswer(found)
    return found


@lru_cache(maxsize=64)
def _distances(
    kernel: Kernel,
    values: tuple[tuple[str, int], ...],
    sizes: tuple[int | None, int | None],
    which: tuple[bool, bool],
) -> Histogram | str:
    """The histogram of `kernel` (directives applied) at `values`, or the reason why there is none.

    sizes: of a line and of a sector; which: `first` and `all_distances`, as in `stack_distances`.
    """
    at, (line_bytes, sector_bytes), (first, all_distances) = Sized(kernel, dict(values)), sizes, which
    reason = "sectors"
    if not all_distances:
        try:
            return histogram(uniform(at, line_bytes), first=first, sector_bytes=sector_bytes)
        except NotUniform as error:
            reason = str(error)
    if sector_bytes is not None:
        return reason
    found = _operands(kernel, values, line_bytes)
    if isinstance(found, str):
        return found
    try:
        return found.histogram(first=first, every=all_distances)
    except (NotUniform, Undecided) as error:
        return str(error)


@lru_cache(maxsize=16)
def _operands(kernel: Kernel, values: tuple[tuple[str, int], ...], line_bytes: int | None) -> Operands | str:
    """The object that finds all histograms of a kernel at its sizes, or the reason why none does."""
    try:
        return Operands(Sized(kernel, dict(values)), line_bytes)
    except NotUniform as error:
        return str(error)
