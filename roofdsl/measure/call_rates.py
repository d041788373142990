"""The costs of calls on this core: functions of the mathematical library as compiled loops call them, and launches.

A function's throughput is the time of one element of a loop that does nothing else. Its latency is the time of an
element of a loop in which each call needs the result of the previous one. Launches are timed with more and fewer
arguments of each kind.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from roofdsl.lang.functions import FUNCTIONS
from roofdsl.lang.operation_classes import SPECIAL_FUNCTIONS
from roofdsl.lang.record import Record, replace
from roofdsl.machine.core import Core
from roofdsl.machine.instruction import Instruction
from roofdsl.measure.assembled import loops, page_from
from roofdsl.measure.load_store_cycles import waits_for
from roofdsl.measure.shared_core import undisturbed
from roofdsl.measure.stopwatch import Stopwatch
from roofdsl.measure.timing import is_time

ELEMENTS = 256
LENGTHS = (256, 1024, 4096, 16384, 65536, 262144)
"""The calls in loops that are run again and again. A core learns all branches inside the first loop, and hardly any
inside the last.
"""

AFTER = 16
"""The multiplications that follow a call, each of which needs the result of the one before, in the loop that shows how
far calls overlap.
"""

OWN = 4
"""The instructions of a loop that only calls: a load, a store, an addition, and a comparison with its jump."""

RUNS = 60
MORE = 1.1
"""Branches matter for a function if it takes at least this many times as long when they are not predicted."""

_INLINED = ("sqrt", "rsqrt", "abs")
"""Functions that compilers replace by instructions."""

_DTYPES = {"f64": "float64", "f32": "float32"}

SINCOS = "sincos"
"""The call by which compilers replace those of the sine and the cosine of one angle."""


class Launches(Record):
    """The seconds that one argument of each kind adds to a call: an array, a numpy scalar, a Python integer."""

    array_s: float
    scalar_s: float
    number_s: float


_THROUGHPUT = """
def loop(a, b):
    for i in range(a.shape[0]):
        b[i] = {call}
"""
_LATENCY = """
def loop(a, b):
    x = a[0]
    for i in range(a.shape[0]):
        x = {call} * b[0] + a[i]
    b[1] = x
"""
_FOLLOWED = """
def loop(a, b):
    c = a[0]
    for i in range(a.shape[0]):
        x = {call}
        {products}
        b[i] = x
"""


def call_rates(
    core: Core, cycle_ns: float, types: tuple[str, ...] = ("f64", "f32")
) -> tuple[list[Instruction], int | None]:
    """The calls of those special functions of the language that Python's `math` has, by type, on a core of which the
    rest is measured; cycle_ns: the length of a clock cycle.

    The second result is the number of calls that a core learns, from the function for which the shortest and the
    longest loop differ most: the most calls in a loop whose calls take at most the mean of both. It is None if they
    hardly differ. Arguments are random numbers between -1 and 1 (or 0 and 1, where only these are allowed), like those
    with which kernels are measured.
    """
    import math

    import numpy as np

    chains = {t: _chain_cycles(np.dtype(_DTYPES[t]), cycle_ns) for t in types}
    found, learned, most = [], None, MORE
    for name in (*SPECIAL_FUNCTIONS, SINCOS):
        if name != SINCOS and (name in _INLINED or not hasattr(math, name) or FUNCTIONS[name].arguments != 1):
            continue
        for type_name in types:
            dtype = np.dtype(_DTYPES[type_name])
            call, values = _compiled(_THROUGHPUT.format(call=_called(name, "a[i]"))), _arguments(name, dtype)
            by_length = {n: _cycles(call, (values[:n], np.zeros(n, dtype)), cycle_ns) for n in LENGTHS}
            each, longest = by_length[LENGTHS[0]], by_length[LENGTHS[-1]]
            if longest > most * each:
                most = longest / each
                learned = max(n for n, cycles in by_length.items() if 2 * cycles <= each + longest)
            alone = max(1.0, each - OWN / core.dispatch)
            latency, slots = _latency_and_slots(name, dtype, core, chains[type_name], cycle_ns)
            call_of = Instruction(name, type_name, int(type_name[1:]), Fraction(max(1, round(latency))), _tenths(alone))
            more = _tenths(alone + longest - each) if longest > MORE * each else None
            found.append(replace(call_of, unpredicted=more, slots=slots))
    return found, learned


def _called(name: str, argument: str) -> str:
    """The expression that compilers turn into a call of the function."""
    if name == SINCOS:
        return f"(math.sin({argument}) + math.cos({argument}))"
    return f"math.{name}({argument})"


def _tenths(cycles: float) -> Fraction:
    return Fraction(round(10 * cycles), 10)


def _chain_cycles(dtype: Any, cycle_ns: float) -> tuple[float, float]:
    """The cycles of an element that needs the one before: of what a latency is measured with besides the call, and of
    that with AFTER products.
    """
    texts = (_LATENCY.format(call=x) for x in ("x", " * ".join(["x", *["a[1]"] * AFTER])))
    beside, products = (_cycles(_compiled(text), _of_chains(dtype), cycle_ns) for text in texts)
    return beside, products


def _of_chains(dtype: Any) -> tuple[Any, Any]:
    import numpy as np

    return np.random.default_rng(3).uniform(0.3, 0.9, ELEMENTS).astype(dtype), np.zeros(ELEMENTS, dtype)


def _latency_and_slots(
    name: str, dtype: Any, core: Core, chains: tuple[float, float], cycle_ns: float
) -> tuple[float, int]:
    """The latency of a call, and the places that its instructions take in the core's window, at most. chains: as
    `_chain_cycles` measures them.

    A call and the multiplications after it pass through the window in their latency and what it takes to refill their
    places. As many of them as fit into the window do so at the same time, so their number follows from the time of each
    and that latency.
    """
    beside, products = chains
    latency = _cycles(_compiled(_LATENCY.format(call=_called(name, "x"))), _of_chains(dtype), cycle_ns) - beside
    followed = _FOLLOWED.format(call=_called(name, "a[i]"), products="; ".join(["x = x * c"] * AFTER))
    each = _cycles(_compiled(followed), _of_chains(dtype), cycle_ns)
    through = latency + products - beside + float(core.refill or 0)
    return latency, max(1, round(each * core.window / through) - AFTER - OWN)


def _arguments(name: str, dtype: Any) -> Any:
    """Random numbers for the longest loop, at which the function is defined."""
    import numpy as np

    numbers = np.random.default_rng(3).uniform(-1, 1, LENGTHS[-1])
    return (np.abs(numbers) if name != SINCOS and FUNCTIONS[name].positive else numbers).astype(dtype)


def _compiled(text: str) -> Any:
    import math

    from numba import njit

    names: dict[str, Any] = {"math": math}
    exec(compile(text, "<calls>", "exec"), names)  # a text of this module, with a name of the language's table
    return njit(names["loop"], nogil=True, error_model="numpy")


def _cycles(function: Any, arguments: tuple[Any, ...], cycle_ns: float) -> float:
    """Cycles of one element."""
    import numpy as np

    none = tuple(np.zeros(2, a.dtype)[:1] if k == 0 else a for k, a in enumerate(arguments))
    whole, empty = _shortest(function, arguments), _shortest(function, none)
    return (whole - empty) / (len(arguments[0]) - 1) / cycle_ns


def _shortest(function: Any, arguments: tuple[Any, ...], calls: int = 4) -> float:
    """The nanoseconds of one call: the shortest of many on an unshared core."""
    function(*arguments)
    calls = max(1, min(calls, 4 * LENGTHS[2] // len(arguments[0])))  # a long loop takes long enough
    return undisturbed(lambda: _least(function, arguments, calls), time.monotonic() + PATIENCE_S)


PATIENCE_S = 0.3
"""The longest time that the measurement of one number waits for an unshared core and is repeated."""


def _least(function: Any, arguments: tuple[Any, ...], calls: int) -> float:
    from time import perf_counter_ns

    best = float("inf")
    for _ in range(RUNS):
        begun = perf_counter_ns()
        for _ in range(calls):
            function(*arguments)
        taken = (perf_counter_ns() - begun) / calls
        if is_time(taken):
            best = min(best, taken)
    return best


_SIZES = (64, 1024)
"""Bytes; longer blocks are filled by other instructions, which start slowly."""

_SHORT = 8
"""The bytes of a block that is shorter than a vector."""


def block_rates(runs: int) -> list[Instruction]:
    """Calls of `memset` and `memcpy` within the nearest cache: the time of a call, and of each 64 bytes; and how long a
    load waits for a short block.
    """
    import ctypes

    import numpy as np

    texts = {}
    for name in ("memset", "memcpy"):
        address = ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value
        second = "xorl %esi, %esi" if name == "memset" else "leaq 8192(%rdi), %rsi"
        for size in (*_SIZES, _SHORT):
            texts[f"{name}_{size}"] = [
                "pushq %rdi", "pushq %rsi", "subq $8, %rsp", second, f"movl ${size}, %edx", f"movabsq ${address}, %rax",
                "callq *%rax", "addq $8, %rsp", "popq %rsi", "popq %rdi",
            ]  # fmt: skip
        texts[f"{name}_loaded"] = [*texts[f"{name}_{_SHORT}"], "movzbl (%rdi), %ecx"]
    block = np.zeros(1 << 15, np.uint8)
    watch = Stopwatch(loops(texts, {}), page_from(block.ctypes.data), runs)
    found = []
    for name in ("memset", "memcpy"):
        small, large = (watch.cycles(f"{name}_{size}", 20 + size / 32) for size in _SIZES)
        each = (large - small) / (_SIZES[1] - _SIZES[0]) * 64
        fixed = max(1.0, small - each * _SIZES[0] / 64)
        waits = waits_for(watch.cycles(f"{name}_loaded", 24), watch.cycles(f"{name}_{_SHORT}", 20))
        per_line = Fraction(max(1, round(100 * each)), 100)
        found.append(Instruction(name, "", 512, Fraction(round(fixed)), per_line, forward=waits))
    return found


_LAUNCHED = "def loop({names}):\n    pass\n"


def launches() -> Launches:
    """The time that arguments add to a call of a compiled function."""
    import numpy as np

    a, x = np.ones(8), np.float64(1.5)
    kinds: Mapping[str, Any] = {"array": a, "scalar": x, "number": 5}
    base = _call((a, a))
    added = {kind: (_call((a, a, *[value] * 4)) - base) / 4 for kind, value in kinds.items()}
    return Launches(*(max(0.0, added[kind]) * 1e-9 for kind in ("array", "scalar", "number")))


def _call(arguments: tuple[Any, ...]) -> float:
    names = ", ".join(f"a{k}" for k in range(len(arguments)))
    return _shortest(_compiled(_LAUNCHED.format(names=names)), arguments, 100)
