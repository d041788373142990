"""The result of code generation: the text, its arguments, and for CUDA the steps that launch it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal

from roofdsl.codegen.launch_grids import Launch, Step, launches_of
from roofdsl.lang.types import ElementType
from roofdsl.loops.integers import IntExpr

Role = Literal["array", "scalar_in", "scalar_out", "parameter"]


@dataclass(frozen=True)
class Argument:
    """One argument, in the order of the call.

    role: `array` is a contiguous block of `dims` elements (column-major if the flag says so), a scalar_out is the
    address of one element (read as well as written), a scalar_in and a parameter are passed by value. `written` says
    whether the kernel may change it. `type` is None for a parameter, a 64-bit signed integer. Elements are stored in
    memory as `storage.STORAGE[type.name]`; a scalar_in of f16, bf16, f8 or tf32 is passed as f32, and in C and CUDA one
    of i8 or i16 as i32. work_bytes: None for an argument that the kernel declares. Otherwise the array is memory for
    copies that the caller provides; if it would take more than these bytes, the launches do without it, and one element
    is enough.
    """

    name: str
    role: Role
    type: ElementType | None = None
    dims: tuple[IntExpr, ...] = ()
    column_major: bool = False
    written: bool = False
    work_bytes: int | None = None

    def shape(self, params: Mapping[str, int]) -> tuple[int, ...]:
        """The extents of the array; (1,) for a scalar that is written, () for arguments passed by value."""
        if self.role == "scalar_out":
            return (1,)
        found = tuple(d.evaluate(params) for d in self.dims)
        if self.work_bytes is not None and self.type is not None:
            fits = min(found) > 0 and prod(found) * self.type.bytes <= self.work_bytes
            return found if fits else (1,) * len(found)
        return found


@dataclass(frozen=True)
class Generated:
    """Source text and how to call it.

    function: the entry point; for CUDA, `launches` replaces it. sizes: parameters that are numbers in the text (they
    are arguments nevertheless) and must have these values.
    """

    kernel: str
    target: str
    variant: str
    source: str
    function: str
    arguments: tuple[Argument, ...]
    parallel: tuple[str, ...] = ()
    """The loops whose iterations are shared by cores or threads."""
    steps: tuple[Step, ...] | None = None
    """The steps of the host that launch it; None if it is one function to call."""
    sizes: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()

    def launches(self, params: Mapping[str, int]) -> Iterator[Launch]:
        """The launches, in order, at these values of all parameters; a launch without iterations is left out."""
        yield from launches_of(self.steps or (), dict(params))
