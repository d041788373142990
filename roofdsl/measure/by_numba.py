"""Generated Python, compiled by numba."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofdsl.codegen.generated import Argument, Generated
from roofdsl.codegen.load import load_python
from roofdsl.codegen.math_mode import Math
from roofdsl.codegen.storage import STORAGE, decode
from roofdsl.loops.model import Kernel
from roofdsl.measure.device import software
from roofdsl.measure.runner import Call, Runner

Value = Callable[[Argument, Mapping[str, NDArray[Any]], Mapping[str, int]], Any]
"""Gives the value to pass for an argument, from the arrays and sizes."""


def numba_runner(kernel: Kernel, variant: str, math: Math = "relaxed", threads: int | None = None) -> Runner:
    """The variants `loops`, `grouped` and `parallel`, the last one on `threads` threads.

    Raises CommandError if the kernel does not have the variant.
    """
    generated = generate_for(kernel, "python", variant, math)
    function = load_python(generated)
    flags = re.findall(r"^@njit\((.*)\)$", generated.source, re.MULTILINE)[-1]
    compiler = f"numba {software()['numba']}, {flags}"
    if variant != "parallel":
        return runner_of(generated, function, _value, compiler, 1)
    return runner_of(generated, function, _value, compiler, threads or _threads(), _use_threads)


def runner_of(  # noqa: PLR0917
    generated: Generated,
    function: Any,
    value: Value,
    compiler: str,
    threads: int,
    use_threads: Callable[[int], int] | None = None,
) -> Runner:
    """A compiled function, called with the `value` of each argument."""

    def bind(arrays: dict[str, NDArray[Any]], params: Mapping[str, int]) -> Call:
        values = [value(a, arrays, params) for a in generated.arguments]
        return lambda: function(*values)

    details: dict[str, Any] = {"notes": list(generated.notes)} if generated.notes else {}
    if generated.parallel:
        details["parallel_loops"] = list(generated.parallel)
    return Runner(generated.variant, compiler, threads, generated.source, bind, details, use_threads)


def generate_for(kernel: Kernel, target: Any, variant: str, math: Math = "relaxed") -> Generated:
    """The source of a variant; the dependences prove which loops are parallel."""
    from roofdsl.codegen.generate import generate

    if variant == "loops":
        return generate(kernel, target, "loops", math=math)
    from roofdsl.checks.parallel_loops import parallel_loops
    from roofdsl.checks.private_copies import private_scalar_loops

    private = private_scalar_loops(kernel) if variant == "parallel" else {}
    return generate(kernel, target, variant, free=parallel_loops(kernel), private=private, math=math)


def _threads() -> int:
    import numba

    return int(numba.get_num_threads())


def _use_threads(count: int) -> int:
    import numba

    before = _threads()
    numba.set_num_threads(count)
    return before


def _value(argument: Argument, arrays: Mapping[str, NDArray[Any]], params: Mapping[str, int]) -> Any:
    """The value to pass for an argument: an array, a scalar by value, or a size."""
    if argument.role == "parameter":
        return int(params[argument.name])
    array = arrays[argument.name]
    if argument.role == "scalar_in":
        return by_value(argument, array)
    return array


def by_value(argument: Argument, array: NDArray[Any]) -> Any:
    """A scalar as a numpy value; reduced types are passed as f32."""
    assert argument.type is not None
    if STORAGE[argument.type.name].startswith("uint"):
        return np.float32(decode(array, argument.type.name).reshape(-1)[0])
    return array.reshape(-1)[0]
