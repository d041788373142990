"""A block of compiled code, looked up once for a walk that runs it many times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from roofdsl.incore.assembly import Code, Instruction, Memory
from roofdsl.incore.classes import Work
from roofdsl.incore.flow import Block, Flow
from roofdsl.incore.integers import effect
from roofdsl.incore.state import Effect, State, plain_condition
from roofdsl.incore.window import Clock, Step


@dataclass(frozen=True)
class Planned:
    """A block ready to run.

    items: the effect of each instruction, its costs (None if it takes no time, and for calls), the function that gives
    its address, its place in the text, and the function that it calls. last: the last instruction; condition: that of
    its conditional jump. The strings are empty if there is no call or no condition.
    """

    items: tuple[tuple[Effect, Step | None, Callable[[], int | None] | None, int, str], ...]
    last: Instruction
    condition: str
    leaves: tuple[int, ...]  # the loops that its jump may leave


def planned(block: Block, flow: Flow, code: Code, works: Mapping[int, Work], *, state: State, clock: Clock) -> Planned:
    """The plan of one block."""
    items = []
    for k in range(block.start, block.stop):
        instruction, work = code.instructions[k], works[k]
        memory = work.load or work.store
        address = state.address(memory) if isinstance(memory, Memory) else None
        call = instruction.target or "*" if instruction.name.startswith("call") else ""
        quiet = instruction.name.startswith(("nop", "endbr", "vzero", "prefetch", "ret"))
        step = None if quiet or call else clock.step(work)
        items.append((effect(instruction, state), step, address, k, call))
    last = code.instructions[block.stop - 1]
    leaves: tuple[int, ...] = ()
    if len(block.successors) == 2:
        around = flow.nests[block.start]
        leaves = tuple(n for n in around if any(n not in flow.nests[s] for s in block.successors))
    jump = last.name.startswith("j") and last.name != "jmp"
    return Planned(tuple(items), last, plain_condition(last.name[1:]) if jump else "", leaves)
