"""A made-up machine whose instructions have round numbers, so that schedules can be worked out by hand."""

from __future__ import annotations

from fractions import Fraction

from roofdsl.incore.rates import Rates
from roofdsl.lang.record import replace
from roofdsl.machine.core import Core
from roofdsl.machine.instruction import Instruction
from roofdsl.machine.model import Machine, Memory, Peak

CORE = Core(4, 64, 32, predicted=1000, varied=1000, taken=Fraction(1), mispredict=Fraction(20))


def _instruction(cls: str, type_name: str, bits: int, latency: int, throughput: str, *units: int) -> Instruction:
    made = Instruction(cls, type_name, bits, Fraction(latency) if latency else None, Fraction(throughput))
    return replace(made, p0=0 in units, p1=1 in units, p2=2 in units)


INSTRUCTIONS = (
    *(_instruction("fma", "f64", bits, 4, "0.5", 0, 1) for bits in (64, 128, 256)),
    *(_instruction("mul", "f64", bits, 4, "0.5", 0, 1) for bits in (64, 128, 256)),
    *(_instruction("add", "f64", bits, 3, "1", 1) for bits in (64, 128, 256)),
    *(_instruction("max", "f64", bits, 3, "1", 1) for bits in (64, 128, 256)),
    _instruction("div", "f64", 64, 14, "4"),
    _instruction("sqrt", "f64", 64, 18, "6"),
    *(_instruction(cls, "f64", bits, 1, "1", 2) for cls in ("shuffle", "permute", "blend") for bits in (128, 256)),
    *(_instruction("logic", "f64", bits, 1, "0.5", 0, 2) for bits in (128, 256)),
    *(_instruction("compare", "f64", bits, 3, "1", 2) for bits in (128, 256)),
    *(_instruction("convert", "f64", bits, 5, "1", 2) for bits in (128, 256)),
    _instruction("move", "i64", 64, 2, "1", 2),
    _instruction("add", "i64", 64, 1, "0.25"),
    _instruction("mul", "i64", 64, 3, "1"),
    _instruction("div", "i64", 64, 15, "10"),
    *(
        replace(_instruction("load", "", bits, 5, "0.5"), split=Fraction(1))
        for bits in (32, 64, 128, 256, 512)
    ),
    *(
        replace(_instruction("store", "", bits, 0, "1"), split=Fraction(2), forward=Fraction(5))
        for bits in (32, 64, 128, 256, 512)
    ),
    _instruction("gather", "f64", 256, 20, "4"),
    _instruction("exp", "f64", 64, 40, "16"),
)  # fmt: skip

MACHINE = Machine(
    "made_up", "", (Peak("f64", "fma", Fraction(16 * 10**9)),), (Memory("DRAM", 1 << 30, Fraction(10**9)),),
    launch_s=Fraction(3, 10**7), launch_array_s=Fraction(5, 10**8), clock_hz=Fraction(10**9),
    instructions=INSTRUCTIONS, core=CORE,
)  # fmt: skip


def rates(**changed: object) -> Rates:
    """The rates of the machine, with some numbers of its core changed."""
    return Rates("made_up", replace(CORE, **changed), INSTRUCTIONS)
