"""A kernel as one execution runs it."""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.lang.record import Record
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.transform import apply


class Sized(Record):
    """A kernel with its directives applied, and a number for every parameter.

    A function that takes it need not check either; `sized` makes it from a kernel as written in the file.
    """

    kernel: Kernel
    values: Mapping[str, int]

    @property
    def name(self) -> str:
        return self.kernel.name


def sized(kernel: Kernel, params: Mapping[str, int]) -> Sized:
    """`kernel` at `params`, or else at the file's defaults. Raises what `numbers` and `apply` raise."""
    values = numbers(kernel, params)
    return Sized(apply(kernel), values)
