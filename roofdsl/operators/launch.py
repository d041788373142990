"""How many blocks and threads of a launch are resident, and what calling an operator costs."""

from __future__ import annotations

from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.model import Machine
from roofdsl.machine.multiprocessor import Multiprocessor
from roofdsl.predict.occupancy import Block, occupancy

DISPATCH_S = 13e-6
"""The time from one call of an operator in eager PyTorch to the next, without the launch itself. Python, the
dispatcher, and the allocation of the result take more than 10 microseconds, which small operators cannot hide."""

LAUNCH_S = 4.2e-6
"""The launch time of a machine that states none: that of a V100 (Time-Based Roofline, section III.B)."""


def call_s(machine: Machine) -> float:
    """Seconds that a call of an operator takes before and after its kernel runs."""
    launch = LAUNCH_S if machine.launch_s is None else float(machine.launch_s)
    return launch + DISPATCH_S


def multiprocessors(machine: Machine) -> tuple[int, Multiprocessor]:
    """The number of multiprocessors of the machine, and what one of them holds.

    Raises CommandError for a machine that does not define them, such as a CPU.
    """
    if machine.units is None or machine.multiprocessor is None:
        raise CommandError(
            f"machine {machine.name} does not define its multiprocessors, and operators are launched on them",
            "add lines such as `units 80` and `multiprocessor warp 32, warps 64, blocks 32, shared 96 KiB`",
        )
    return machine.units, machine.multiprocessor


def resident_blocks(machine: Machine, threads: int, registers: int = 32) -> int:
    """The number of blocks of `threads` threads, each with `registers` registers, resident on one multiprocessor.

    Raises CommandError for a block that does not fit.
    """
    return occupancy(machine, Block(threads, registers)).blocks
