"""Values of formulas: exact fractions, or numbers with many digits if a root or logarithm is irrational.

Every step stays within RANGE and MAX_BITS, so that no formula takes long or fills memory, and so that two different
values differ by far more than the precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from math import isqrt
from typing import Any

from roofdsl.classroom.answer_language import Binary, Call, Comparison, Logic, Name, Negative, Node, Number
from roofdsl.classroom.answer_units import PLAIN, Dimension, value_of
from roofdsl.classroom.formula_errors import FormulaError

RANGE = 250
"""Absolute values other than 0 lie between 10**-RANGE and 10**RANGE."""

MAX_BITS = 40_000
MAX_EXPONENT = 64
_DIGITS = 1200
_SAME_DIGITS = 600  # values that agree to this many digits are equal: RANGE keeps different ones much further apart
_BITS_OF_RANGE = 831  # 10**250

Value = Any
"""A Fraction, or an mpmath number if the exact value is irrational."""


@cache
def _mp() -> Any:
    import mpmath

    context = mpmath.mp.clone()
    context.dps = _DIGITS
    return context


def evaluate(node: Node, env: Mapping[str, Value]) -> Value:
    """The value of a formula, with `env` for its names; units become numbers of operations, bytes and seconds.

    Raises FormulaError if there is no value (a division by zero, a root of a negative number) or it is out of range.
    """
    match node:
        case Number(value, unit):
            return _checked(value * value_of(unit)[0])
        case Name(text):
            return env[text]
        case Negative(operand):
            return -evaluate(operand, env)
        case Binary("**", base, exponent):
            return _checked(_power(evaluate(base, env), evaluate(exponent, env)))
        case Binary(op, left, right):
            return _checked(_arithmetic(op, evaluate(left, env), evaluate(right, env)))
        case Call(function, arguments):
            return _checked(_call(function, [evaluate(a, env) for a in arguments]))
    raise FormulaError("there is a condition where a number is expected")


def holds(node: Node, env: Mapping[str, Value]) -> bool:
    """Whether a condition holds. Raises FormulaError as `evaluate` does."""
    match node:
        case Comparison(op, left, right):
            a, b = evaluate(left, env), evaluate(right, env)
            if same(a, b):
                return op in ("<=", ">=", "==")
            return op == "!=" or (op in ("<", "<=") if real(a) < real(b) else op in (">", ">="))
        case Logic("not", parts):
            return not holds(parts[0], env)
        case Logic("and", parts):
            return all(holds(p, env) for p in parts)
        case Logic(_, parts):
            return any(holds(p, env) for p in parts)
    raise FormulaError("there is a number where a condition is expected")


def folded(node: Node) -> Node:
    """The formula with every part that has a nonnegative rational value replaced by that number."""
    parts: tuple[Node, ...]
    match node:
        case Negative(operand):
            parts = (folded(operand),)
            made: Node = Negative(*parts)
        case Binary(op, left, right):
            parts = (folded(left), folded(right))
            made = Binary(op, *parts)
        case Call(function, arguments):
            parts = tuple(map(folded, arguments))
            made = Call(function, parts)
        case _:
            return node
    if not all(isinstance(p, Number) and not p.unit for p in parts):
        return made
    value = evaluate(made, {})
    return Number(value) if isinstance(value, Fraction) and value >= 0 else made


def same(a: Value, b: Value) -> bool:
    """Whether two values are equal: exactly if both are fractions, otherwise to hundreds of digits."""
    if isinstance(a, Fraction) and isinstance(b, Fraction):
        return a == b
    a, b = real(a), real(b)
    return bool(abs(a - b) <= _mp().mpf(10) ** -_SAME_DIGITS * max(abs(a), abs(b)))


def dimension(node: Node) -> Dimension:
    """The dimension of a formula with units. Raises FormulaError if quantities of different dimensions are added."""
    match node:
        case Number(_, unit):
            return value_of(unit)[1]
        case Negative(operand):
            return dimension(operand)
        case Binary("*", left, right):
            return dimension(left) + dimension(right)
        case Binary("/" | "//", left, right):
            return dimension(left) + dimension(right) * -1
        case Binary("**", base, exponent):
            own = dimension(base)
            if dimension(exponent) != PLAIN:
                raise FormulaError("an exponent has no unit")
            if own == PLAIN:
                return own
            power = evaluate(exponent, {})
            if not isinstance(power, Fraction) or power.denominator != 1 or abs(power) > 4:
                raise FormulaError("a quantity with a unit can only be raised to small whole powers")
            return own * int(power)
        case Binary(op, left, right):
            return _joint("added" if op == "+" else "subtracted", (left, right))
        case Call("min" | "max", arguments):
            return _joint("compared", arguments)
        case Call(function, arguments):
            if dimension(arguments[0]) != PLAIN:
                raise FormulaError(f"`{function}` of a quantity with a unit has no meaning here")
    return PLAIN


def _joint(done: str, parts: tuple[Node, ...]) -> Dimension:
    first, *others = map(dimension, parts)
    for other in others:
        if other != first:
            raise FormulaError(f"{first.words()} and {other.words()} cannot be {done}")
    return first


# ---- arithmetic within limits ----


def real(value: Value) -> Any:
    """The value as an mpmath number with many digits."""
    mp = _mp()
    return mp.mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else value


def quotient(a: Value, b: Value) -> Value:
    """a / b; exact if a and b are."""
    return a / b if isinstance(a, Fraction) and isinstance(b, Fraction) else real(a) / real(b)


def _checked(value: Value) -> Value:
    if isinstance(value, Fraction):
        top, bottom = value.numerator.bit_length(), value.denominator.bit_length()
        if max(top, bottom) > MAX_BITS or (top and abs(top - bottom) > _BITS_OF_RANGE):
            raise FormulaError("a number in the formula is far too large or too small")
    elif value and not _mp().mpf(10) ** -RANGE <= abs(value) <= _mp().mpf(10) ** RANGE:
        raise FormulaError("a number in the formula is far too large or too small")
    return value


def _arithmetic(op: str, a: Value, b: Value) -> Value:
    if not (isinstance(a, Fraction) and isinstance(b, Fraction)):
        a, b = real(a), real(b)
    if op in ("/", "//") and not b:
        raise FormulaError("the formula divides by zero")
    match op:
        case "+" | "-":
            total = a + b if op == "+" else a - b
            noise = not isinstance(total, Fraction) and same(a, -b if op == "+" else b)
            return Fraction(0) if noise else total
        case "*":
            return a * b
        case "/":
            return a / b
    return _floor(a / b)


def _power(base: Value, exponent: Value) -> Value:
    if not isinstance(exponent, Fraction) or exponent.denominator > 12 or abs(exponent) > MAX_EXPONENT:
        raise FormulaError(f"an exponent must be a number up to {MAX_EXPONENT}, such as 2, 3 or 1/2")
    if exponent.denominator == 2:
        return _power(_root(base), exponent * 2)
    if not base and exponent <= 0:
        raise FormulaError("zero is raised to a power that is not positive")
    if exponent.denominator == 1:
        if isinstance(base, Fraction):
            bits = max(base.numerator.bit_length(), base.denominator.bit_length())
            if bits * abs(exponent) > MAX_BITS:
                raise FormulaError("a power in the formula is far too large")
        return base ** int(exponent)
    if base < 0:
        raise FormulaError("the root of a negative number is not defined")
    return _mp().power(real(base), real(exponent))


def _root(value: Value) -> Value:
    if value < 0:
        raise FormulaError("the square root of a negative number is not defined")
    if isinstance(value, Fraction):
        top, bottom = isqrt(value.numerator), isqrt(value.denominator)
        if top * top == value.numerator and bottom * bottom == value.denominator:
            return Fraction(top, bottom)
    return _mp().sqrt(real(value))


def _floor(value: Value) -> Fraction:
    if isinstance(value, Fraction):
        return Fraction(value // 1)
    near = int(_mp().nint(value))
    return Fraction(near) if same(value, Fraction(near)) else Fraction(int(_mp().floor(value)))


def _call(function: str, values: list[Value]) -> Value:
    first = values[0]
    match function:
        case "sqrt":
            return _root(first)
        case "log2":
            if first <= 0:
                raise FormulaError("the logarithm is defined only for positive numbers")
            if isinstance(first, Fraction) and (power := _exact_log2(first)) is not None:
                return power
            return _mp().log(real(first), 2)
        case "floor":
            return _floor(first)
        case "ceil":
            return -_floor(-first)
    best = first
    for value in values[1:]:
        smaller = real(value) < real(best)
        best = value if smaller == (function == "min") and not same(value, best) else best
    return best


def _exact_log2(value: Fraction) -> Fraction | None:
    top, bottom = value.numerator, value.denominator
    if top & (top - 1) or bottom & (bottom - 1):
        return None
    return Fraction(top.bit_length() - bottom.bit_length())
