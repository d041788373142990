"""In-core time of the code that an assumed compiler would make (`stated`), for machines other than this one.

It follows from the kernel and the machine's stated instructions. `assumed_code_cycles` has the cycles. The assumed
compiler vectorizes a loop if all accesses move by one element or stay, if no iteration waits for another of the same
vector, if the loop cannot overwrite a value that it keeps, and if there are no calls and no conditions. With strict
math, it does not reorder sums and does not fuse a product with a sum; with relaxed math, it does both. It keeps in
registers the values that inner loops do not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from roofdsl.incore.assumed_code_cycles import VECTOR_FUNCTIONS, Effects, PlannedLoop, Timer
from roofdsl.incore.chains import CHAINED, Chain, chain, no_fusing, overwritten_in, reductions
from roofdsl.incore.classes import Kind
from roofdsl.incore.innermost_loops import Loop, loops_of, varies
from roofdsl.incore.rates import rates_of
from roofdsl.incore.result import InCore, NoInCore, Step
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.types import TYPES
from roofdsl.loops.model import Assign, Element, For, Kernel
from roofdsl.loops.parameter_values import with_numbers
from roofdsl.loops.sized import Sized, sized
from roofdsl.loops.streams import ordinary
from roofdsl.machine.model import Machine

RELAX = "`--math relaxed` lets sums be reordered"
FUSE = "`--math relaxed` lets a product and a sum be fused"
REORDER = "another order of the loops, or of the array's dimensions"


def in_core(kernel: Kernel, values: Mapping[str, int], machine: Machine, *, relaxed: bool = False) -> InCore:
    """The in-core time of one launch of the kernel at these sizes, divided evenly among the machine's cores.

    Raises NoInCore with the reason if there is none.
    """
    rates = rates_of(machine)
    if machine.clock_hz is None:
        raise NoInCore(f"machine {machine.name} states no clock frequency")
    at = sized(ordinary(kernel), values)  # stores that bypass the caches take the same instructions
    at = Sized(with_numbers(at.kernel, at.values), at.values)
    _refuse_types(at.kernel)
    timer = Timer(rates, machine)
    try:
        planned = [_planned(loop, at, timer, relaxed) for loop in loops_of(at)]
    except CommandError as error:
        raise NoInCore(error.message) from None
    if not planned:
        raise NoInCore(f"{kernel.name} executes nothing at these sizes")
    per_s = float(machine.clock_hz) * (machine.units or 1)
    steps: list[Step] = []
    effects = Effects()
    for cause, remedy, effects in _stages(planned, relaxed):
        each = [timer.cycles(p, effects) for p in planned]
        core, loads = (sum(cycles) / per_s for cycles in zip(*each, strict=True))
        if steps:
            core, loads = max(core, steps[-1].overlapping_s), max(loads, steps[-1].loads_s)
        steps.append(Step(cause, remedy, core, loads))
    math = "relaxed" if relaxed else "strict"
    notes = (f"a compiler with {math} math and vectors of {timer.vector_bits} bits", *_noted(planned))
    instructions = sum(timer.instructions(p, effects) for p in planned)
    return InCore(f"stated: {math} compiler", tuple(steps), None, notes, instructions=instructions)


def _refuse_types(kernel: Kernel) -> None:
    for array in kernel.arrays:
        if array.type.kind == "float" and array.type.bytes < 4:
            raise NoInCore(f"conversions of {array.type.name} are modeled only from compiled code")
        if array.type.kind == "complex":
            raise NoInCore("how a compiler arranges complex numbers in vectors is not modeled")


def _noted(planned: Sequence[PlannedLoop]) -> Iterator[str]:
    yield from dict.fromkeys(
        f"the loop over {p.loop.var} is not vectorized: {p.reason[0]}" for p in planned if p.reason[0] and p.loop.var
    )


# ---- the assumed compiler ----


def _planned(loop: Loop, at: Sized, timer: Timer, relaxed: bool) -> PlannedLoop:
    if loop.loop is None:
        return PlannedLoop(loop, ("", ""), None, "", False, False)

    def latency(cls: str, type_name: str) -> float:
        name = {"min": "max"}.get(cls, cls)
        return timer.rates.cost(Kind(name, type_name, 8 * TYPES[type_name].bytes)).latency

    def can_fuse(type_name: str) -> bool:
        return timer.machine.stated(type_name, "fma") is not None

    fuses = can_fuse if relaxed else no_fusing
    slow = chain(loop.statements, loop.loop, latency, fuses)
    sums = reductions(loop.statements, loop.loop)
    others = chain([p for p in loop.statements if p.statement not in sums], loop.loop, latency, fuses)
    is_sum = slow is not None and others is None
    obstacle = _obstacle(loop, loop.loop)
    if relaxed and is_sum and not obstacle[0]:
        slow = None  # partial sums, one for each element of a vector; with an obstacle, there is only one
    reason = obstacle if obstacle[0] else _dependence(slow, is_sum, timer.lanes(loop))
    remedy = RELAX if is_sum and not obstacle[0] else ""
    if slow is not None and not remedy and not relaxed:
        fused = chain(loop.statements, loop.loop, latency, can_fuse)
        remedy = FUSE if fused is not None and fused.cycles < slow.cycles else ""
    return PlannedLoop(loop, reason, slow, remedy, _goes_through(loop), varies(loop, at))


def _goes_through(loop: Loop) -> bool:
    """Whether a chain continues from one entry of the loop to the next, because both update the same place."""
    inner, *outer = (f.var for f in reversed(loop.statements[0].loops))
    for p in loop.statements:
        if not isinstance(p.statement, Assign):
            continue
        target = p.statement.target
        subscripts = target.subscripts if isinstance(target, Element) else ()
        names = frozenset().union(*(s.symbols() for s in subscripts))
        if inner not in names and outer and outer[0] not in names:
            return True
    return False


def _obstacle(loop: Loop, over: For) -> tuple[str, str]:
    """Why the loop would not be vectorized even if its iterations were independent, with the remedy; empty if nothing
    prevents it.
    """
    functions = {f for cost, _ in loop.operations for (_, f), n in cost.functions.items() if n}
    calls = sorted(functions.difference(VECTOR_FUNCTIONS))
    if calls:
        return f"call of {' and '.join(calls)}", ""
    if any(depth == len(p.loops) for p in loop.statements for depth, _ in p.guards):
        return "a condition inside", ""
    strided = [m for m in loop.moved if m.stride in ("strided", "irregular")]
    if strided:
        name = strided[0].element.array.name
        return (f"stride of {abs(strided[0].step)} in {name}" if strided[0].step else f"stride in {name}"), REORDER
    overwritten = overwritten_in(loop.statements, over)
    if overwritten:
        return f"{overwritten} may be written in the loop that reads it", ""
    return "", ""


def _dependence(slow: Chain | None, is_sum: bool, lanes: int) -> tuple[str, str]:
    """Why iterations of one vector wait for each other, with the remedy; empty if they do not."""
    if slow is None or slow.shortest >= lanes:
        return "", ""
    return ("the sum may not be reordered", RELAX) if is_sum else ("an iteration needs the one before", "")


# ---- causes, one after the other ----


def _stages(planned: Sequence[PlannedLoop], relaxed: bool) -> Iterator[tuple[str, str, Effects]]:
    """The causes in order, each with the effects that the time includes so far."""
    yield "", "", Effects()
    fused = relaxed or not any(n for p in planned for cost, _ in p.loop.operations for n in cost.fused_pairs.values())
    if not fused:
        yield "products and sums are not fused", FUSE, Effects(fused=False)
    scalar: frozenset[str] = frozenset()
    for cause, remedy in dict.fromkeys(p.reason for p in planned if p.reason[0]):
        scalar |= {cause}
        yield f"no SIMD: {cause}", remedy, Effects(fused, scalar)
    yield "division and functions", "", Effects(fused, scalar, slow=True)
    chains = [p for p in planned if p.chain is not None]
    if chains:
        slowest = max(chains, key=lambda p: p.chain.cycles * p.loop.iterations if p.chain else 0)
        assert slowest.chain is not None
        yield chain_words(slowest.chain), slowest.chain_remedy, Effects(fused, scalar, slow=True, chains=True)
    yield short_words(planned), "", Effects(fused, scalar, slow=True, chains=True, short=True)
    yield "vectors split lines", "", Effects(fused, scalar, slow=True, chains=True, short=True, lines=True)


def chain_words(found: Chain) -> str:
    """`chain of 4-cycle adds`, or the operations of a longer chain."""
    if len(found.operations) == found.iterations == 1:
        only = found.operations[0]
        return f"chain of {found.cycles:.3g}-cycle {CHAINED.get(only, f'calls of {only}')}"
    return f"chain of {found.cycles:.3g} cycles an iteration ({', '.join(found.operations)})"


def short_words(planned: Sequence[PlannedLoop]) -> str:
    """`short inner loop of 16: entry, exit and remainder`, for the loop entered most often; "short" below 64."""
    inner = [p.loop for p in planned if p.loop.loop is not None]
    if not inner:
        return "entering loops"
    most = max(inner, key=lambda loop: loop.entries)
    short = f"short inner loop of {most.length:.4g}" if most.length < 64 else f"inner loop of {most.length:.4g}"
    return f"{short}: entry, exit and remainder"
