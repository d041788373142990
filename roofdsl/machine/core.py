"""How a core executes instructions out of order, as a machine's `core` line states it."""

from __future__ import annotations

from fractions import Fraction

from roofdsl.lang.record import Record


class Core(Record):
    """How a core executes out of order; times are in cycles.

    dispatch: instructions a cycle; window: the most instructions in flight; waiting: those of them that may wait for
    operands; loading, storing, registers, general: the most loads, stores and results in vector and in general
    registers in flight, 0 where that is not known; refill: cycles from the end of an instruction to the start of one
    that takes its place; taken: cycles from one taken branch to the next; redirect: cycles of dispatch lost by a taken
    branch, averaged over the places where loops may lie in memory; mispredict: cycles lost by a mispredicted branch;
    indexed: the number of instructions that vector arithmetic with an indexed address counts as; closes: whether
    512-bit vectors close the units that they do not use to narrower ones; predicted: the most iterations of a short
    inner loop whose end is predicted, `varied` where their number differs from time to time; left: cycles lost at the
    end of a loop even if that was predicted; blocked: cycles that a load waits for stores of parts of its bytes; pages:
    how many pages of 4 KiB its TLB holds the addresses of; walk: cycles that an access to another page takes; learned:
    the most calls, or iterations of a loop over data, per launch whose branches the core remembers from the previous
    launch; remembered: the most branches of a launch that are predicted because of the previous launch.
    """

    dispatch: int
    window: int
    waiting: int
    predicted: int = 0
    varied: int = 0
    left: Fraction | None = None
    taken: Fraction | None = None
    redirect: Fraction | None = None
    mispredict: Fraction | None = None
    blocked: Fraction | None = None
    indexed: int = 1
    closes: bool = False
    loading: int = 0
    storing: int = 0
    registers: int = 0
    refill: Fraction | None = None
    pages: int | None = None
    walk: Fraction | None = None
    learned: int | None = None
    remembered: int | None = None
    general: int = 0
    source: str = ""
