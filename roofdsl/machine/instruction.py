"""What one instruction costs a core."""

from __future__ import annotations

from fractions import Fraction

from roofdsl.lang.record import Record


class Instruction(Record):
    """What one instruction of a class costs a core, in cycles, if its data are in the nearest cache.

    cls: `add`, `fma`, `load`, `exp` (a call of the function), ...; bits: of the vector, or of a scalar's type. latency:
    from the operands to the result; bypass: the further cycles until an instruction of another class can use it;
    throughput: from one instruction to the next if nothing waits. p0 to p3: the vector
    units that can execute it; two classes with a unit in common compete for it. unpredicted: of a call, the throughput
    where the branches inside it depend on data and are not learned. Loads and stores: `split` is the throughput across
    two lines, `page` across two pages, `apart` if each goes to a line that none of those just before it went to;
    `forward`: cycles from a store to a load of the same bytes. `mixed`: cycles for which a load, a store or arithmetic
    occupies the resources that they share. Fused multiply-adds: `adder` is the number of cycles for which each keeps
    the units of `add` busy, in addition to its own. Gathers and scatters:
    `slots` is the number of instructions that each counts as when it is dispatched and in the window; calls: in the
    window, at most.
    """

    cls: str
    type: str
    bits: int
    latency: Fraction | None = None
    throughput: Fraction | None = None
    split: Fraction | None = None
    page: Fraction | None = None
    apart: Fraction | None = None
    mixed: Fraction | None = None
    forward: Fraction | None = None
    unpredicted: Fraction | None = None
    adder: Fraction | None = None
    bypass: Fraction | None = None
    slots: int | None = None
    p0: bool = False
    p1: bool = False
    p2: bool = False
    p3: bool = False
    source: str = ""

    @property
    def units(self) -> tuple[int, ...]:
        """The numbers of the vector units that can execute it; empty if they are not stated."""
        return tuple(k for k, used in enumerate((self.p0, self.p1, self.p2, self.p3)) if used)
