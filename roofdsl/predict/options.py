"""The options of a prediction."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from roofdsl.lang.record import Record
from roofdsl.loops.model import Traffic
from roofdsl.predict.in_core_time import Code
from roofdsl.predict.occupancy import Block

Accesses = Literal["written", "compiled"]


class Options(Record):
    """The options of a prediction, besides kernel and machine.

    - traffic: the convention; overrides file and machine (rule 11).
    - unit: "tensor" or "tensor_sparse" (rule 14); overrides the kernel's.
    - ceilings: names of the machine's ceilings that limit the code.
    - levels: "all", or "memory" for only the memory.
    - data: the further memory that holds all data at first.
    - warm: the launch directly follows another one like it, whose data are still in the caches as far as they fit.
    - block: the thread block, for the occupancy and for the order of accesses by blocks.
    - in_flight_bytes: the bytes that each thread has in flight, which cap the bandwidth of levels with a stated
      latency.
    - accesses: those to the first cache as "written" in the kernel (rule 10), or as "compiled": values that inner loops
      do not change stay in a register.
    - sets: count bytes by simulating each cache with its sets, if the machine states its ways.
    - conflicts: without `sets`, warn if sets matter, which takes a few hundredths of a second.
    - step_s: the latency of each step of a program's collectives.
    - code: the code whose expected time is wanted; None for the bound alone.
    - energy: whether the energy is wanted (`predict.energy`).
    """

    traffic: Traffic | None = None
    unit: str | None = None
    ceilings: tuple[str, ...] = ()
    levels: Literal["all", "memory"] = "all"
    data: str | None = None
    warm: bool = False
    block: Block | None = None
    in_flight_bytes: int | None = None
    accesses: Accesses = "written"
    step_s: Fraction = Fraction(0)
    sets: bool = False
    conflicts: bool = False
    code: Code | None = None
    energy: bool = False


DEFAULTS = Options()
