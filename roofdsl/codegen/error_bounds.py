"""Running error analysis: values with a bound on the error of code that computes in the types of a kernel.

`value` is in higher precision than the kernel's types. `error` bounds the accumulated rounding error in the kernel's
own types, in the order of the operations as written (N. J. Higham, Accuracy and Stability of Numerical Algorithms,
section 3.3). An operation on values without error adds none if its exact result is representable in its type.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roofdsl.codegen.storage import LARGEST, LEAST, UNIT, decode, encode
from roofdsl.lang.functions import FUNCTIONS

Numbers = NDArray[Any]


@dataclass(frozen=True)
class Ball:
    """`value` (broadcastable numpy arrays or scalars) and `error`, which is not negative, and infinite if nothing is
    known.

    summands: if the value is a sum, the sizes of its summands added up, since compilers may add them in another order.
    """

    value: Any
    error: Any
    summands: Any = None

    @property
    def size(self) -> Any:
        """The size of the value, or for a sum that of its summands together."""
        return np.abs(self.value) if self.summands is None else self.summands


def rounded(
    ball: Ball, type_name: str, units: float = 1.0, size: Any = None, summands: tuple[Any, Any] | None = None
) -> Ball:
    """The ball after rounding to a type; integer types round nothing. The error is infinite if the result may overflow.

    units: the units of rounding by which the operation may be wrong. size: the size of what is rounded if that may
    exceed the value: the sizes of summands, which compilers reorder. summands: the two values that were added, if it is
    a sum.
    """
    unit = UNIT.get(type_name)
    if unit is None:
        return ball
    if summands is None:
        exact = _is_exact(ball.value, type_name)
    else:
        room = _room(np.abs(ball.value) if size is None else size)
        exact = _fits(summands[0], room, type_name) & _fits(summands[1], room, type_name)
    exact &= np.asarray(ball.error) == 0
    size = np.abs(ball.value) if size is None else size
    more = (unit * units * (size + ball.error) + LEAST.get(type_name, 0.0)).astype(np.float64)
    error = np.where(exact, 0.0, ball.error + more)
    return Ball(ball.value, np.where(size + error <= LARGEST[type_name], error, np.inf))


def _room(size: Any) -> Any:
    """A power of two above all sums that another order of the summands may produce, for `_fits`."""
    with np.errstate(divide="ignore"):
        return 4 * np.exp2(np.ceil(np.log2(size)))


def _fits(value: Any, room: Any, type_name: str) -> Any:
    """Whether a number is a multiple of the last digit that the type has next to `room`.

    Sums of such numbers that stay below `room` are exact in any order. The sum itself does not show this, because it is
    rounded in higher precision, too.
    """
    with np.errstate(all="ignore"):
        moved = np.asarray(value) + room
        return _is_exact(moved, type_name) & (moved - room == value)


def _is_exact(value: Any, type_name: str) -> Any:
    with np.errstate(all="ignore"):
        if type_name in ("f16", "bf16", "f8"):
            return decode(encode(np.asarray(value, np.float64), type_name), type_name) == value
        narrow = {"f64": np.float64, "c128": np.complex128, "c64": np.complex64}.get(type_name, np.float32)
        return np.asarray(value).astype(narrow) == value


def arithmetic(op: str, a: Ball, b: Ball, type_name: str) -> Ball:
    """`a op b` in a type; op is one of + - * /."""
    with np.errstate(all="ignore"):
        size_a, size_b = np.abs(a.value), np.abs(b.value)
        size = summands = None
        if op in "+-":
            size, summands = a.size + b.size, (a.value, b.value)
            value, error = (a.value + b.value if op == "+" else a.value - b.value), a.error + b.error
        elif op == "*":
            value = a.value * b.value
            error = _zero_wins(size_a, b.error) + _zero_wins(size_b, a.error) + _zero_wins(a.error, b.error)
        elif type_name in ("i32", "i64"):
            value, error = _truncated(a.value, b.value), a.error + b.error
        else:
            value = a.value / b.value
            room = size_b - b.error
            error = np.where(room > 0, (a.error + _zero_wins(np.abs(value), b.error)) / room, np.inf)
    # complex products and quotients round several times
    units = 4.0 if type_name in ("c64", "c128") and op in "*/" else 1.0
    result = rounded(Ball(value, _number(error)), type_name, units, size, summands)
    return Ball(result.value, result.error, size)


def _zero_wins(a: Any, b: Any) -> Any:
    """a * b, or 0 if one of them is 0 and the other infinite."""
    return np.where((np.asarray(a) == 0) | (np.asarray(b) == 0), 0.0, np.asarray(a) * np.asarray(b))


def _number(error: Any) -> Any:
    error = np.asarray(error, np.float64)
    return np.where(np.isnan(error), np.inf, error)


def _truncated(a: Any, b: Any) -> Any:
    safe = np.where(np.asarray(b) == 0, 1, b)
    quotient = np.abs(a) // np.abs(safe)
    return np.where((np.asarray(a) < 0) == (safe < 0), quotient, -quotient)


def extremum(function: str, a: Ball, b: Ball) -> Ball:
    """The smaller or larger of two values, with an error that covers the extremum of the two intervals."""
    pick = FUNCTIONS[function].numpy(np)
    with np.errstate(invalid="ignore"):
        low, high = (pick(a.value + sign * a.error, b.value + sign * b.error) for sign in (-1, 1))
        return _between(pick(a.value, b.value), low, high)


def extremum_along(function: str, ball: Ball, axis: int) -> Ball:
    """The smallest or largest of the values along an axis, which is kept with length one."""
    pick = FUNCTIONS[function].numpy(np)

    def of(x: Any) -> Any:
        return pick.reduce(x, axis=axis, keepdims=True)

    with np.errstate(invalid="ignore"):
        return _between(of(ball.value), of(ball.value - ball.error), of(ball.value + ball.error))


def _between(value: Any, low: Any, high: Any) -> Ball:
    with np.errstate(invalid="ignore"):
        return Ball(value, _number(np.maximum(value - low, high - value)))


def chosen(op: str, left: Ball, right: Ball, a: Ball, b: Ball) -> Ball:
    """`select(left op right, a, b)`; if rounding may change the outcome of the comparison, the error covers both
    values.
    """
    with np.errstate(all="ignore"):
        holds = COMPARE[op](left.value, right.value)
        doubt = np.asarray(left.error) + right.error
        unsure = (np.abs(left.value - right.value) <= doubt) & (doubt > 0)
        apart = np.abs(np.asarray(a.value) - b.value).astype(np.float64)
        error = np.where(holds, a.error, b.error)
        error = np.where(unsure, np.maximum(a.error, b.error) + apart, error)
        return Ball(np.where(holds, a.value, b.value), _number(error))


COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip


def function(name: str, a: Ball, type_name: str) -> Ball:
    """A special function of a real value."""
    row = FUNCTIONS[name]
    apply = row.numpy(np)
    with np.errstate(all="ignore"):
        value = apply(a.value)
        if row.slope is not None:
            error: Any = np.minimum(row.slope * np.asarray(a.error), row.spread)
        else:
            high, low = a.value + a.error, a.value - a.error
            error = np.maximum(np.abs(apply(high) - value), np.abs(apply(low) - value))
            if row.pole:
                error = np.where(np.sign(high) == np.sign(low), error, np.inf)
            error = np.where(np.asarray(a.error) == 0, 0.0, error)
    return rounded(Ball(value, _number(error)), type_name, row.units)


def summed(start: Ball, terms: Ball, axis: int, compute: str, stored: str) -> Ball:
    """`start` with `terms` added one by one along an axis, each partial sum rounded and stored."""
    with np.errstate(all="ignore"):
        sums = start.value + np.cumsum(terms.value, axis=axis)
        given = np.asarray(start.error + np.sum(terms.error, axis=axis, keepdims=True))
        clean = np.asarray(start.error + np.cumsum(terms.error, axis=axis))
        before = np.concatenate([np.asarray(start.value + 0 * np.take(sums, [0], axis=axis)), sums], axis=axis)
        held = np.take(before, range(sums.shape[axis]), axis=axis)
        size = np.abs(held) + terms.size
        each = rounded(rounded(Ball(sums, clean), compute, 1.0, size, (held, terms.value)), stored)
        error = given + np.sum(each.error - clean, axis=axis, keepdims=True)
    last = np.take(sums, [-1], axis=axis)
    return Ball(last, _number(error))


def to_integer(ball: Ball) -> Ball:
    """A real value stored in an integer: truncated."""
    with np.errstate(all="ignore"):
        high, low = np.trunc(ball.value + ball.error), np.trunc(ball.value - ball.error)
        value = np.trunc(np.asarray(ball.value))
        bad = ~np.isfinite(value) | (np.abs(value) > 2.0**62)
        error = np.where(bad, np.inf, high - low).astype(np.float64)
        return Ball(np.where(bad, 0, value).astype(np.int64), error)
