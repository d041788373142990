"""A kernel as one execution runs it."""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.lang.record import Record
from roofdsl.loops.model import Kernel
from roofdsl.loops.numbers import numbers
from roofdsl.loops.transform import apply


class Sized(Record):
    """A kernel with its directives applied, and a number for every parameter.

    What takes it need not ask for either; `sized` makes it of a kernel as the file has it.
    """

    kernel: Kernel
    values: Mapping[str, int]

    @property
    def name(self) -> str:
        return self.kernel.name


def sized(kernel: Kernel, params: Mapping[str, int]) -> Sized:
    """`kernel` at `params`, else at the file's defaults. Raises what `numbers` and `apply` raise."""
    values = numbers(kernel, params)
    return Sized(apply(kernel), values)
