"""The registers that matter at each place: those that are read before they are written again."""

from __future__ import annotations

from collections.abc import Mapping

from roofdsl.incore.assembly import Code, Instruction, Register
from roofdsl.incore.classes import Work
from roofdsl.incore.flow import Flow

_PASSED = frozenset(("rax", "rdi", "rsi", "rdx", "rcx", "r8", "r9", "rsp"))
"""The general registers that a call may read (System V ABI of x86-64)."""


def live_registers(flow: Flow, code: Code, works: Mapping[int, Work]) -> dict[int, frozenset[str]]:
    """The live registers at the start of each block, by backward data-flow analysis."""
    effects = {at: _of_block(block.start, block.stop, code, works) for at, block in flow.blocks.items()}
    live: dict[int, frozenset[str]] = dict.fromkeys(flow.blocks, frozenset())
    changed = True
    while changed:
        changed = False
        for at in sorted(flow.blocks, reverse=True):
            read, written = effects[at]
            after = frozenset[str]().union(*(live[s] for s in flow.blocks[at].successors))
            found = read | (after - written)
            if found != live[at]:
                live[at], changed = found, True
    return live


def _of_block(start: int, stop: int, code: Code, works: Mapping[int, Work]) -> tuple[frozenset[str], frozenset[str]]:
    """The registers that a block reads before it writes them, and those that it writes."""
    read: set[str] = set()
    written: set[str] = set()
    for k in range(start, stop):
        instruction, work = code.instructions[k], works[k]
        uses = {*work.reads, *work.address_reads}
        if instruction.name.startswith("call") or (instruction.name == "jmp" and not instruction.target):
            uses |= _PASSED
        if not _whole(instruction):
            uses.add(work.writes)
        read |= uses - written - {""}
        if _whole(instruction):
            written.add(work.writes)
    return frozenset(read), frozenset(written)


def _whole(instruction: Instruction) -> bool:
    """Whether nothing of the old contents of the last operand remains: parts below 32 bits and masks keep the rest."""
    last = instruction.operands[-1] if instruction.operands else None
    return isinstance(last, Register) and last.bits >= 32 and not last.mask
