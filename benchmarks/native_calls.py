"""Cycles of one call of a compiled function, without Python between the calls.

numba's native function takes arrays as structures; a loop in assembly passes them and calls it again and again. Cycles
are those of a chain of dependent additions that runs beside it. The shortest of many short runs counts, so that what
other programs take does not.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofdsl.codegen.generate import generate
from roofdsl.codegen.inputs import random_inputs
from roofdsl.codegen.load import load_python
from roofdsl.loops.model import Kernel
from roofdsl.measure.assembled import loops
from roofdsl.measure.by_numba import by_value
from roofdsl.measure.stopwatch import Stopwatch
from roofdsl.measure.timed_arrays import aligned

# The table at %rdi: the function, the number of words for the stack, six words for registers, eight for %xmm0 to
# %xmm7, then the words for the stack.
_CALLER = (
    "pushq %rbx", "pushq %rbp", "pushq %r12", "pushq %r13", "pushq %r14", "movq %rdi, %rbx", "movq 8(%rbx), %r13",
    "movq %r13, %r14", "addq $1, %r14", "andq $-2, %r14", "shlq $3, %r14", "subq %r14, %rsp",
    "xorl %eax, %eax", "77:", "cmpq %r13, %rax", "jge 78f", "movq 128(%rbx,%rax,8), %rcx", "movq %rcx, (%rsp,%rax,8)",
    "incq %rax", "jmp 77b", "78:",
    *(f"vmovsd {64 + 8 * k}(%rbx), %xmm{k}" for k in range(8)),
    "pushq %rsi", "popq %r12", "movq 16(%rbx), %rdi", "movq 32(%rbx), %rdx", "movq 40(%rbx), %rcx",
    "movq 48(%rbx), %r8", "movq 56(%rbx), %r9", "movq 24(%rbx), %rsi", "lfence", "callq *(%rbx)", "lfence",
    "movq %r12, %rsi", "movq %rbx, %rdi",
    "addq %r14, %rsp", "popq %r14", "popq %r13", "popq %r12", "popq %rbp", "popq %rbx",
)  # fmt: skip
_NOTHING = ("xorl %eax, %eax", "retq")


class NativeCall:
    """A kernel's native function with arrays of its own, as `measure` passes them."""

    def __init__(self, kernel: Kernel, values: Mapping[str, int]) -> None:
        generated = generate(kernel, "python", "loops")
        self.arrays: dict[str, NDArray[Any]] = aligned(random_inputs(kernel, values))
        passed = [self._passed(a, values) for a in generated.arguments]
        self.dispatcher = load_python(generated)
        self.dispatcher(*passed)
        compiled = self.dispatcher.overloads[self.dispatcher.signatures[0]]
        address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
        self.result = np.zeros(16, np.int64)
        words: list[int] = [self.result.ctypes.data, self.result.ctypes.data + 64]
        floats: list[float] = []
        for value in passed:
            self._words(value, words, floats)
        registers = (words + [0] * 6)[:6]
        stack = words[6:]
        table = [address, len(stack), *registers, *([0] * 8), *stack]
        self.table = np.array([w - (1 << 64) if w >= 1 << 63 else w for w in table], np.int64)
        for k, value in enumerate(floats):
            self.table[8 + k] = np.frombuffer(value.tobytes().ljust(8, b"\0"), np.int64)[0]

    def _passed(self, argument: Any, values: Mapping[str, int]) -> Any:
        if argument.role == "parameter":
            return int(values[argument.name])
        array = self.arrays[argument.name]
        return by_value(argument, array) if argument.role == "scalar_in" else array

    @staticmethod
    def _words(value: Any, words: list[int], floats: list[Any]) -> None:
        if isinstance(value, np.ndarray):
            words += [0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides]
        elif isinstance(value, np.complexfloating):
            floats += [value.real, value.imag]
        elif isinstance(value, np.floating):
            floats.append(value)
        else:
            words.append(int(value))

    def cycles(self, runs: int, estimate: float) -> float:
        """Cycles of one call, less those of a call of an empty function."""
        called = loops({"caller": _CALLER}, {})
        watch = Stopwatch(called, self.table.ctypes.data, runs)
        found = watch.cycles("caller", estimate)
        empty = self.table.copy()
        nothing = loops({"nothing": ()}, {})["nothing"]
        empty[0] = ctypes.cast(nothing, ctypes.c_void_p).value or 0
        empty[3] = 1
        return found - Stopwatch(called, empty.ctypes.data, runs).cycles("caller", 60)
