"""Integers that change evenly from one block of iterations to the next, for compiled code. Imports numba.

A number is a pair (value, change): in the block that comes t blocks later, it is value + t change. Every decision that
depends on such numbers is made as in the first block, where t is 0; `limit[0]` is lowered to the last t for which all
later blocks up to it decide the same. A quotient is such a number only up to some t, so it lowers the limit, too. A
result that does not change evenly lowers it to 0.
"""

from __future__ import annotations

from roofdsl.simulate.walk import Ints, inlined

Affine = tuple[int, int]


def _less(limit: Ints, a: Affine, b: Affine) -> bool:
    value, change = b[0] - a[0], b[1] - a[1]
    if value > 0:
        if change < 0 and value + change * limit[0] <= 0:
            limit[0] = (value - 1) // -change
        return True
    if change > 0 and value + change * limit[0] > 0:
        limit[0] = -value // change
    return False


less = inlined(_less)


def _same(limit: Ints, a: Affine, b: Affine) -> bool:
    value, change = b[0] - a[0], b[1] - a[1]
    if value == 0:
        if change != 0:
            limit[0] = 0
        return True
    if value < 0:
        value, change = -value, -change
    if change < 0 and value + change * limit[0] <= 0:
        limit[0] = (value - 1) // -change
    return False


same = inlined(_same)


def _less_or_same(limit: Ints, a: Affine, b: Affine) -> bool:
    return not less(limit, b, a)


less_or_same = inlined(_less_or_same)


def _true(limit: Ints, a: Affine) -> bool:
    """Whether a number is not zero."""
    return not same(limit, a, (0, 0))


true = inlined(_true)


def _fixed(limit: Ints, a: Affine) -> int:
    """The value of a number that must not change, such as a subscript."""
    if a[1] != 0:
        limit[0] = 0
    return a[0]


fixed = inlined(_fixed)


def _plus(limit: Ints, a: Affine, b: Affine) -> Affine:
    return a[0] + b[0], a[1] + b[1]


plus = inlined(_plus)


def _minus(limit: Ints, a: Affine, b: Affine) -> Affine:
    return a[0] - b[0], a[1] - b[1]


minus = inlined(_minus)


def _times(limit: Ints, a: Affine, b: Affine) -> Affine:
    if a[1] != 0 and b[1] != 0:
        limit[0] = 0
    return a[0] * b[0], a[0] * b[1] + a[1] * b[0]


times = inlined(_times)


def _quotient(limit: Ints, a: Affine, b: Affine) -> Affine:
    """The quotient, rounded down; it holds as long as the remainder stays between 0 and the divisor."""
    by = fixed(limit, b)
    value, change = a[0] // by, a[1] // by
    rest, more = a[0] - value * by, a[1] - change * by
    if by < 0:
        if more:
            limit[0] = 0
    elif 2 * more > by:  # of the two nearest evenly changing numbers, the one that the quotient follows for longer
        change += 1
        limit[0] = min(limit[0], rest // (by - more))
    elif more > 0:
        limit[0] = min(limit[0], (by - 1 - rest) // more)
    return value, change


quotient = inlined(_quotient)


def _low_quotient(limit: Ints, a: Affine, b: Affine) -> Affine:
    """A number that is the quotient rounded down, or less in later blocks."""
    by = fixed(limit, b)
    if by <= 0:
        limit[0] = 0
    return a[0] // by, a[1] // by


low_quotient = inlined(_low_quotient)


def _remainder(limit: Ints, a: Affine, b: Affine) -> Affine:
    whole = quotient(limit, a, b)
    return a[0] - whole[0] * b[0], a[1] - whole[1] * b[0]


remainder = inlined(_remainder)


def _shifted_left(limit: Ints, a: Affine, b: Affine) -> Affine:
    bits = fixed(limit, b)
    return a[0] << bits, a[1] << bits


shifted_left = inlined(_shifted_left)


def _shifted_right(limit: Ints, a: Affine, b: Affine) -> Affine:
    result: Affine = quotient(limit, a, (1 << fixed(limit, b), 0))
    return result


shifted_right = inlined(_shifted_right)


def _either_bits(limit: Ints, a: Affine, b: Affine) -> Affine:
    return fixed(limit, a) | fixed(limit, b), 0


either_bits = inlined(_either_bits)


def _common_bits(limit: Ints, a: Affine, b: Affine) -> Affine:
    """The common bits of two numbers: a remainder if the mask consists of the lowest bits."""
    mask = fixed(limit, b)
    if mask > 0 and mask & (mask + 1) == 0:
        result: Affine = remainder(limit, a, (mask + 1, 0))
        return result
    return fixed(limit, a) & mask, 0


common_bits = inlined(_common_bits)


def _larger(limit: Ints, a: Affine, b: Affine) -> Affine:
    """The larger of two numbers; of two equal ones, the one that will be larger."""
    value, change = b[0] - a[0], b[1] - a[1]
    if value < 0 or (value == 0 and change < 0):
        value, change = -value, -change
    elif value != 0 or change != 0:
        a = b
    if change < 0 and value + change * limit[0] < 0:
        limit[0] = value // -change
    return a


larger = inlined(_larger)


def _smaller(limit: Ints, a: Affine, b: Affine) -> Affine:
    x = larger(limit, (-a[0], -a[1]), (-b[0], -b[1]))
    return -x[0], -x[1]


smaller = inlined(_smaller)


def _negative(limit: Ints, a: Affine) -> Affine:
    return -a[0], -a[1]


negative = inlined(_negative)


def _size(limit: Ints, a: Affine) -> Affine:
    return negative(limit, a) if less(limit, a, (0, 0)) else a


size = inlined(_size)


def _get1(table: Ints, i: int) -> Affine:
    return table[i, 0], table[i, 1]


get1 = inlined(_get1)


def _get2(table: Ints, i: int, j: int) -> Affine:
    return table[i, j, 0], table[i, j, 1]


get2 = inlined(_get2)


def _put1(table: Ints, i: int, a: Affine) -> None:
    table[i, 0], table[i, 1] = a


put1 = inlined(_put1)


def _put2(table: Ints, i: int, j: int, a: Affine) -> None:
    table[i, j, 0], table[i, j, 1] = a


put2 = inlined(_put2)
