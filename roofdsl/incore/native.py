"""A kernel's native code: what `measure` runs, as assembly text, and the state in which it is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from roofdsl.codegen.generated import Argument
from roofdsl.codegen.math_mode import Math
from roofdsl.codegen.storage import STORAGE
from roofdsl.incore.result import NoInCore
from roofdsl.incore.sampled_data import SampledData, numbers_at
from roofdsl.incore.state import STACK, STACK_BYTES, State
from roofdsl.lang.record import Record
from roofdsl.loops.array_placement import places
from roofdsl.loops.model import Kernel

_INTEGERS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
_FLOATS = 8
_ARRAYS = 0x1_0000_0000


class Native(Record):
    """Assembly text and the function in it.

    compiler: for people, as `numba 0.68.1`; convention: `numba` passes arrays as structures, `c` as addresses.
    """

    text: str
    function: str
    compiler: str
    arguments: tuple[Argument, ...]
    convention: str


def by_numba(kernel: Kernel, math: Math = "relaxed", variant: str = "loops") -> Native:
    """The native code of the variant `loops` or `grouped` as numba compiles it, for arrays as `measure` passes them."""
    import numba

    from roofdsl.codegen.generate import generate
    from roofdsl.codegen.load import load_python

    generated = generate(kernel, "python", variant, free=_free(kernel, variant), math=math)
    dispatcher = load_python(generated)
    dispatcher.compile(tuple(_numba_type(a) for a in generated.arguments))
    signature = dispatcher.signatures[0]
    function = dispatcher.overloads[signature].fndesc.llvm_func_name
    text = dispatcher.inspect_asm(signature)
    return Native(text, function, f"numba {numba.__version__}", generated.arguments, "numba")


def _numba_type(argument: Argument) -> Any:
    """numba's type of the value that `measure` passes for an argument."""
    import numpy as np
    from numba import from_dtype, types

    if argument.role == "parameter":
        return types.int64
    assert argument.type is not None
    stored = STORAGE[argument.type.name]
    if argument.role == "scalar_in":
        return types.float32 if stored.startswith("uint") else from_dtype(np.dtype(stored))
    dims = len(argument.dims) if argument.role == "array" else 1
    layout = "F" if argument.column_major and dims > 1 else "C"
    return types.Array(from_dtype(np.dtype(stored)), max(dims, 1), layout)


def entered(native: Native, kernel: Kernel, values: Mapping[str, int], data: SampledData, state: State) -> None:
    """Put the arguments of one launch where the function expects them (System V ABI of x86-64).

    Arrays lie as `measure` lays them: each at a page's start plus five lines times its place among the arrays. values:
    the sizes that they have there; data: the sizes of the launch, and the values of index arrays. Raises NoInCore for
    more floating-point arguments than registers.
    """
    integers: list[int | None] = []
    floats: list[int | None] = []
    if native.convention == "numba":
        integers += [STACK + 64, STACK + 128]  # the places of the result and of an exception
    at = places(kernel, values, _ARRAYS)
    state.numbers += numbers_at(data, kernel, at)
    for argument in native.arguments:
        whole, real = _words(argument, at, data.values, native.convention)
        integers += whole
        floats += real
    top = STACK + STACK_BYTES - (1 << 14)
    state.registers["rsp"] = top
    for name in ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", *(f"r{k}" for k in range(8, 16))):
        state.registers[name] = None
    for name, value in zip(_INTEGERS, integers, strict=False):
        state.registers[name] = value
    rest = integers[len(_INTEGERS) :]
    if floats[_FLOATS:]:
        raise NoInCore(f"{len(floats)} floating-point arguments are more than fit into registers")
    for k, value in enumerate(rest):
        state.store(top + 8 + 8 * k, 8, value)
    state.written.clear()


def _words(
    argument: Argument, at: Mapping[str, int], values: Mapping[str, int], convention: str
) -> tuple[list[int | None], list[int | None]]:
    """The words passed for an argument: integers and floats; a value that depends on the data is None."""
    if argument.role == "parameter":
        return [values[argument.name]], []
    assert argument.type is not None
    if argument.role == "scalar_in":
        if argument.type.kind == "int":
            return [None], []
        return [], [None, None] if argument.type.kind == "complex" else [None]
    if convention == "c":
        return [at[argument.name]], []
    shape = argument.shape(values) or (1,)
    size = _size(argument)
    strides = [size]
    for extent in reversed(shape[1:]) if not argument.column_major else shape[:-1]:
        strides.append(strides[-1] * extent)
    if not argument.column_major:
        strides.reverse()
    count = 1
    for extent in shape:
        count *= extent
    return [0, 0, count, size, at[argument.name], *shape, *strides], []


def _size(argument: Argument) -> int:
    import numpy as np

    assert argument.type is not None
    return int(np.dtype(STORAGE[argument.type.name]).itemsize)


def _free(kernel: Kernel, variant: str) -> Mapping[tuple[int, ...], int]:
    """The loops whose iterations are independent, if the variant needs them."""
    from roofdsl.checks.parallel_loops import parallel_loops

    return {} if variant == "loops" else parallel_loops(kernel)


def by_cc(kernel: Kernel, math: Math = "relaxed", variant: str = "loops") -> Native:
    """The assembly of the variant `loops` or `grouped` from the C compiler, with the flags that `measure` uses.

    Raises CommandError if there is no compiler or it fails.
    """
    from roofdsl.codegen.c_flags import WITHOUT, assembly, flags_for
    from roofdsl.codegen.generate import generate
    from roofdsl.codegen.system_c_compiler import compiler_version, find_compiler

    generated = generate(kernel, "c", variant, free=_free(kernel, variant))
    compiler = find_compiler(WITHOUT)
    text = assembly(compiler, flags_for(math), generated.source)
    return Native(text, generated.function, compiler_version(compiler), generated.arguments, "c")
