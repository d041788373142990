"""The names of the classes of operations: those that an operation is counted in (rule 1), and those that a machine
states a rate for.

`functions` has the class of every function, and `counts.operations` finds the classes of a statement's operations.
"""

from __future__ import annotations

from roofdsl.lang.functions import FUNCTIONS

OPERATION_CLASSES = ("add", "mul", "div", "min", "special")
"""What every operation is counted as."""

SPECIAL_FUNCTIONS = tuple(name for name, row in FUNCTIONS.items() if row.cls == "special")
"""One operation of the class `special` each; a machine may state a rate for each of them."""

COST_CLASSES = (*OPERATION_CLASSES, *SPECIAL_FUNCTIONS)
"""What a `cost` line may name."""

MATRIX_CLASSES = ("tensor", "tensor_sparse")

PEAK_CLASSES = ("fma", "min", "div", "special", *SPECIAL_FUNCTIONS, *MATRIX_CLASSES)
"""What a `peak` line may name after its type; without a class, it is the peak of additions and multiplications. `fma`
is a class of rates only: a fused pair is counted as an `add` and a `mul`.
"""

INSTRUCTION_CLASSES = (
    "add", "mul", "fma", "max", "div", "sqrt", "convert", "widen", "narrow", "compare", "shuffle", "horizontal",
    "permute", "exchange", "extract", "insert", "blend", "logic", "shift", "shift_each", "mask", "move", "load",
    "store", "masked_load", "masked_store", "gather", "scatter", "memset", "memcpy", "sincos",
    *SPECIAL_FUNCTIONS,
)  # fmt: skip
"""What an `instruction` line may name. `max` also covers minima, `widen` converts numbers as it loads them, and
`narrow` as it stores them. `shuffle` moves elements within the 128-bit parts of a vector and `permute` across them;
`exchange` combines parts of two vectors, `extract` and `insert` copy one part, and `horizontal` adds neighbors.
`shift_each` shifts every element by a number of bits of its own, and `move` goes between general and vector registers.
A function is a call of it; `sincos` is a call for the sine and the cosine of one angle, and `memset` and `memcpy` are
calls that take their latency and, for each 64 bytes, their throughput.
"""
