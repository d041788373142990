"""How much less cache the best replacement needs for what LRU holds from a plateau on, in bytes and in rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from roofdsl.counts.derived import Quantity, ReuseStep
from roofdsl.loops.model import Array, Kernel
from roofdsl.tell.blocks import Inline, Sentence

NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten"}


def less_room(
    kernel: Kernel,
    held: Sequence[ReuseStep],
    sizes: tuple[Quantity, Quantity],
    shown: Callable[[Quantity], Inline],
    what: Sentence,
) -> Sentence:
    """The sentence for the `sizes` that LRU and the best replacement need to hold `what`, which is `held`."""
    names = {r.array for r in held}
    array = next((a for a in kernel.arrays if a.name in names and len(a.dims) > 1), None)
    rows = ["", ""]
    if array is not None and None not in (counts := [rows_of(array, q) for q in sizes]):
        whose = f" of {array.name}" if len(names) == 1 else ""
        rows = [f" (as much as {'a row' if n == 1 else f'{NUMBERS.get(n or 0, n)} rows'}{whose})" for n in counts]
    lru, best = sizes
    return (
        "LRU needs ", shown(lru), f" B{rows[0]} to hold ", *what,
        "; the best replacement, which drops what is not used again, needs ", shown(best), f" B{rows[1]}.",
    )  # fmt: skip


def rows_of(array: Array, size: Quantity) -> int | None:
    """A size as a number of rows of an array, to leading order; None if it is no whole number of them."""
    single = None if size.form is None else size.form.single
    symbols = sorted(array.dims[-1].symbols())
    if single is None or len(single.terms) != 1 or len(symbols) != 1:
        return None
    (symbol,) = symbols
    ((monomial, coefficient),) = single.terms
    # What the extent grows by with its symbol: rows of `x[n, 2*n + 1]` are twice as long as n.
    long, longer = (array.dims[-1].evaluate({symbol: n}) for n in (1 << 20, (1 << 20) + 1))
    count = coefficient / ((longer - long) * array.type.bytes) if longer > long else Fraction(0)
    return int(count) if monomial == ((symbol, 1),) and count.denominator == 1 and count >= 1 else None
