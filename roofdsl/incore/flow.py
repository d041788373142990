"""Control flow of a compiled function: basic blocks, successors, and the nest of loops.

Loops are the strongly connected components of the blocks, and recursively those that remain within each when its header
is removed. Compilers lay out blocks in an order that does not show how loops nest.
"""

from __future__ import annotations

from roofdsl.incore.assembly import Code, Instruction
from roofdsl.incore.result import NoInCore
from roofdsl.lang.record import Record


class Block(Record):
    """The instructions `start` to `stop` (exclusive); successors are blocks by number, the fall-through last."""

    start: int
    stop: int
    successors: tuple[int, ...]


class Loop(Record):
    """A loop by its number: the header's block, all blocks, the loop around it (None for an outermost one).

    innermost: whether it contains no other loop.
    """

    number: int
    header: int
    blocks: frozenset[int]
    parent: int | None
    innermost: bool


class Flow(Record):
    """The blocks reachable from a function's first; `nests` gives the loops around each block, outermost first."""

    blocks: dict[int, Block]  # by the index of the first instruction
    entry: int
    loops: tuple[Loop, ...]
    nests: dict[int, tuple[int, ...]]


def flow_of(code: Code, function: str) -> Flow:
    """The control flow of one function. Raises NoInCore if the text lacks it, and if it jumps to a computed or unknown
    place.

    An unconditional jump to a place outside the text is a call, with which the function ends.
    """
    if function not in code.labels:
        raise NoInCore(f"the assembly has no function `{function[:60]}`")
    entry = code.labels[function]
    starts = set(code.labels.values())
    blocks: dict[int, Block] = {}
    waiting = [entry]
    while waiting:
        start = waiting.pop()
        if start in blocks:
            continue
        block = _block(code, start, starts)
        blocks[start] = block
        waiting += block.successors
    loops: list[Loop] = []
    _find_loops(blocks, set(blocks), None, loops, frozenset())
    nests: dict[int, tuple[int, ...]] = dict.fromkeys(blocks, ())
    for loop in loops:  # outer loops come before the loops inside them
        for b in loop.blocks:
            nests[b] = (*nests[b], loop.number)
    return Flow(blocks, entry, tuple(loops), nests)


def _block(code: Code, start: int, starts: set[int]) -> Block:
    k = start
    while k < len(code.instructions):
        instruction = code.instructions[k]
        k += 1
        if _ends(instruction):
            return Block(start, k, _targets(code, instruction, k))
        if k in starts:
            return Block(start, k, (k,))
    raise NoInCore("the assembly ends within a function")


def _ends(instruction: Instruction) -> bool:
    return instruction.name.startswith(("j", "ret")) or instruction.name == "ud2"


def _targets(code: Code, jump: Instruction, behind: int) -> tuple[int, ...]:
    if jump.name.startswith("ret") or jump.name == "ud2":
        return ()
    if jump.indirect:
        raise NoInCore(f"the code jumps to an address that it computes (line {jump.line} of the assembly)")
    target = code.labels.get(jump.target)
    if target is None:
        if jump.name == "jmp":
            return ()  # a call at the end of a function
        raise NoInCore(f"the code jumps to `{jump.target[:60]}`, which is not in the assembly")
    return (target,) if jump.name == "jmp" else (target, behind)


def _find_loops(
    blocks: dict[int, Block], nodes: set[int], parent: int | None, loops: list[Loop], removed: frozenset[int]
) -> None:
    """Appends the loops among `nodes`, each before the loops inside it; edges into `removed` headers do not count."""
    for component in _components(blocks, nodes, removed):
        inside = set(component)
        entries = [n for n in nodes - inside if any(s in inside for s in blocks[n].successors)]
        headers = {s for n in entries for s in blocks[n].successors if s in inside}
        header = min(headers or inside)
        number = len(loops)
        loops.append(Loop(number, header, frozenset(inside), parent, True))
        _find_loops(blocks, inside, number, loops, removed | {header})
        if len(loops) > number + 1:
            loops[number] = Loop(number, header, frozenset(inside), parent, False)


def _components(blocks: dict[int, Block], nodes: set[int], removed: frozenset[int]) -> list[list[int]]:
    """Strongly connected components with a cycle, by Tarjan's algorithm without recursion.

    Source: R. Tarjan, Depth-first search and linear graph algorithms, SIAM J. Comput. 1 (1972). Texts of thousands of
    blocks would exceed Python's limit of recursion.
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on: set[int] = set()
    found: list[list[int]] = []

    def edges(v: int) -> list[int]:
        return [s for s in blocks[v].successors if s in nodes and s not in removed]

    for root in sorted(nodes):
        if root in index:
            continue
        work = [(root, iter(edges(root)))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            v, successors = work[-1]
            # The iterator goes on where it stopped when a successor was entered; `else` when all have been visited.
            for w in successors:
                if w not in index:
                    index[w] = low[w] = len(index)
                    stack.append(w)
                    on.add(w)
                    work.append((w, iter(edges(w))))
                    break
                if w in on:
                    low[v] = min(low[v], index[w])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[v])
                # v reaches nothing below itself on the stack: it is a component with all that is above.
                if low[v] == index[v]:
                    component: list[int] = []
                    while not component or component[-1] != v:
                        component.append(stack.pop())
                        on.discard(component[-1])
                    if len(component) > 1 or v in edges(v):  # one block is a loop only if it jumps to itself
                        found.append(component)
    return found
