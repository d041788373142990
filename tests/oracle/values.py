"""Execute a kernel on numbers modulo a prime, to see whether two orders of the same loops compute the same.

Sums and products may be reordered freely there, as in real arithmetic; functions are arbitrary scramblings.
"""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

from roofdsl.loops.model import (
    Array,
    Binary,
    Call,
    Count,
    DataCompare,
    Element,
    Expr,
    IntValue,
    Kernel,
    Let,
    LetRef,
    Number,
    ScalarRef,
    Select,
    Unary,
)
from tests.oracle.enumerate import element_access, walk

PRIME = 2**61 - 1
Place = tuple[str, tuple[int, ...]]


class Memory(dict[Place, int]):
    """Contents of the arrays; what was never written holds a number made from its place."""

    def __missing__(self, place: Place) -> int:
        return crc32(repr(place).encode()) + 1


def final_state(kernel: Kernel, params: Mapping[str, int]) -> dict[Place, int]:
    """What the kernel wrote that outlives it: every element of an `out` or `inout` array or scalar it wrote."""
    memory = Memory()
    lets: dict[str, int] = {}
    for statement, env in walk(kernel.body, dict(params)):
        if isinstance(statement, Count):
            continue
        value = _value(statement.value, env, memory, lets)
        if isinstance(statement, Let):
            lets[statement.name] = value
            continue
        place = _place(statement.target, env)
        memory[place] = value if statement.op == "=" else _apply(statement.op[:-1], memory[place], value)
    live = {a.name for a in kernel.arrays if a.intent in ("out", "inout")}
    return {place: value for place, value in memory.items() if place[0] in live}


def same_result(a: Kernel, b: Kernel, params: Mapping[str, int]) -> bool:
    """Whether both kernels leave the same contents behind."""
    return final_state(a, params) == final_state(b, params)


def writes_before_reads(kernel: Kernel, array: Array, params: Mapping[str, int]) -> bool:
    """Whether every element of `array` that is read was written before."""
    from tests.oracle.enumerate import run

    written: set[tuple[int, ...]] = set()
    for e in run(kernel, params):
        for access in e.accesses:
            if access.array == array.name:
                if access.is_write:
                    written.add(access.index)
                elif access.index not in written:
                    return False
    return True


def _place(target: Element | ScalarRef, env: Mapping[str, int]) -> Place:
    if isinstance(target, ScalarRef):
        return (target.array.name, ())
    return (target.array.name, element_access(target, env, is_write=True).index)


def _value(e: Expr | DataCompare, env: Mapping[str, int], memory: Memory, lets: dict[str, int]) -> int:
    match e:
        case Number():
            return crc32(repr(float(e.value)).encode()) if isinstance(e.value, float) else e.value % PRIME
        case IntValue():
            return e.value.evaluate(env) % PRIME
        case ScalarRef() | Element():
            return memory[_place(e, env)]
        case LetRef():
            return lets[e.name]
        case Unary():
            return -_value(e.operand, env, memory, lets) % PRIME
        case Binary():
            return _apply(e.op, _value(e.left, env, memory, lets), _value(e.right, env, memory, lets))
        case DataCompare():
            return int(_value(e.left, env, memory, lets) < _value(e.right, env, memory, lets))
        case Call():
            values = [_value(a, env, memory, lets) for a in e.args]
            if e.function in ("min", "max"):
                return min(values) if e.function == "min" else max(values)
            return crc32(repr((e.function, values)).encode())
        case Select():
            chosen = e.if_true if _value(e.condition, env, memory, lets) else e.if_false
            return _value(chosen, env, memory, lets)


def _apply(op: str, a: int, b: int) -> int:
    match op:
        case "+":
            return (a + b) % PRIME
        case "-":
            return (a - b) % PRIME
        case "*":
            return a * b % PRIME
        case "/":
            return a * pow(b, PRIME - 2, PRIME) % PRIME
        case "**":
            return pow(a, b, PRIME)
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
    raise ValueError(op)
