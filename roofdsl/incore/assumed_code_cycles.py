"""Cycles of a loop as the assumed compiler leaves it, on a machine that states its instructions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from roofdsl.counts.work_record import StatementOperations
from roofdsl.incore.chains import Chain
from roofdsl.incore.classes import Kind, Work
from roofdsl.incore.innermost_loops import Loop, Moved
from roofdsl.incore.rates import LINE, Access, Rates
from roofdsl.incore.result import NotStated
from roofdsl.lang.record import Record
from roofdsl.lang.types import TYPES
from roofdsl.loops.affine import affine
from roofdsl.loops.integers import Const
from roofdsl.machine.model import Machine

VECTOR_FUNCTIONS = ("sqrt",)
"""Special functions that are one instruction, even on vectors; the others are calls for one value at a time."""

UNROLLED = 4
"""Iterations between two jumps: compilers unroll short bodies, so the instructions of the loop itself count little."""
OWN_INSTRUCTIONS = 2
"""The instructions of a loop itself: the increment, and the comparison with its jump, which counts as one."""


class Effects(Record):
    """The causes that a time includes.

    fused: whether products and sums are fused. scalar: the reasons (`PlannedLoop.reason`) for which loops run without
    vectors. slow: divisions and functions are instructions and calls, instead of operations at the rates of the bound.
    chains: iterations wait for each other. short: entries, exits and remainders. lines: accesses across two lines.
    """

    fused: bool = True
    scalar: frozenset[str] = frozenset()
    slow: bool = False
    chains: bool = False
    short: bool = False
    lines: bool = False


class PlannedLoop(Record):
    """A compiled loop: why it has no vectors (cause and remedy, or empty), and its chain, with a remedy.

    goes_through: the chain continues from one entry of the loop to the next. varies: so does the number of iterations.
    """

    loop: Loop
    reason: tuple[str, str]
    chain: Chain | None
    chain_remedy: str
    goes_through: bool
    varies: bool


class Timer:
    """Cycles of loops under effects, as (arithmetic and chains, loads and stores)."""

    def __init__(self, rates: Rates, machine: Machine) -> None:
        self.rates, self.machine = rates, machine
        self.vector_bits = max((i.bits for i in machine.instructions if i.cls in ("add", "fma")), default=64)

    def lanes(self, loop: Loop) -> int:
        """The iterations that one vector holds."""
        return max(1, self.vector_bits // (8 * _widest(loop)))

    def cycles(self, p: PlannedLoop, effects: Effects) -> tuple[float, float]:
        """Cycles of one launch. Raises NoInCore for what the machine does not state."""
        loop = p.loop
        vector = loop.loop is not None and p.reason[0] not in effects.scalar
        lanes = self.lanes(loop) if vector else 1
        core, loads, _ = self._iteration(loop, lanes, effects)
        many, rest = _split(loop, lanes, p.varies) if effects.short else (loop.iterations / lanes, 0.0)
        single = self._iteration(loop, 1, effects) if rest else (0.0, 0.0, 0.0)
        core, loads = core * many + single[0] * rest, loads * many + single[1] * rest
        loads += loop.entries * loop.outside * self._access(8, stored=False)
        if effects.chains and p.chain is not None:
            core = max(core, self._chain(p))
        if effects.short and loop.loop is not None:
            core += self._exits(p)
        return core, loads

    def instructions(self, p: PlannedLoop, effects: Effects) -> float:
        """The instructions of one launch. A function that is called counts as many as fit into its time."""
        vector = p.loop.loop is not None and p.reason[0] not in effects.scalar
        lanes = self.lanes(p.loop) if vector else 1
        many, rest = _split(p.loop, lanes, p.varies)
        return self._iteration(p.loop, lanes, effects)[2] * many + self._iteration(p.loop, 1, effects)[2] * rest

    def _exits(self, p: PlannedLoop) -> float:
        """The cycles lost at the loop's ends if it has more iterations than the core predicts."""
        limit = self.rates.varied if p.varies else self.rates.predicted
        return self.rates.mispredict * p.loop.entries if p.loop.length > limit else 0.0

    def _chain(self, p: PlannedLoop) -> float:
        """The cycles of the loop's chain. The chains of different entries overlap as far as the core holds waiting
        operations, unless one chain runs through all entries.
        """
        assert p.chain is not None
        whole = p.chain.cycles * p.loop.iterations
        if p.goes_through:
            return whole
        operations = sum(cost.total * share for cost, share in p.loop.operations)
        return whole / max(1.0, self.rates.waiting / max(1.0, p.loop.length * operations))

    def _iteration(self, loop: Loop, lanes: int, effects: Effects) -> tuple[float, float, float]:
        """(cycles of arithmetic, of loads and stores; instructions) of one iteration, or of `lanes` of them."""
        bits = self.vector_bits if lanes > 1 else 0
        done: list[tuple[tuple[int, ...], float]] = []
        apart = slots = 0.0
        for cost, share in loop.operations:
            for kind, n in self._kinds(cost, bits, effects):
                found = self.rates.cost(kind)
                done += found.work(n * share)
                slots += found.slots * n * share
            apart += share * sum(n * cycles for cycles, n in self._functions(cost, lanes, effects))
        loads = stores = mixed = 0.0
        for m in loop.moved:
            size = bits // 8 if bits and m.stride == "unit" else m.element.array.type.bytes
            extra = self._crossing(m, size) if effects.lines and bits else 0.0
            work = Work(Kind("", "", 0), (), "", bytes=size)
            if m.loaded:
                busy, mix = _occupied(self.rates.load(work), extra)
                loads += busy
                mixed += mix
            if m.stored:
                busy, mix = _occupied(self.rates.store(work), extra)
                stores += busy
                mixed += mix
                slots += 1  # a store is an instruction of its own; a load is an operand of the arithmetic
        own = OWN_INSTRUCTIONS / UNROLLED if loop.loop is not None else 0.0
        core = max(_ports(done) + apart, (slots + own) / self.rates.dispatch)
        return core, max(loads, stores, mixed), slots + own + apart * self.rates.dispatch

    def _kinds(self, cost: StatementOperations, bits: int, effects: Effects) -> Iterator[tuple[Kind, float]]:
        """(kind, number) of the instructions of one statement that run on execution ports or the divider."""
        for (type_name, cls), n in cost.operations.items():
            width = bits or 8 * TYPES[type_name].bytes
            pairs = cost.fused_pairs.get(type_name, 0) if effects.fused and self._fuses(type_name) else 0
            if cls in ("add", "mul"):
                yield Kind(cls, type_name, width), n - pairs
                if cls == "mul":
                    yield Kind("fma", type_name, width), pairs
            elif cls == "min":
                yield Kind("max", type_name, width), n
            elif cls == "div" and effects.slow:
                yield Kind("div", type_name, width), n
        for (type_name, function), n in cost.functions.items():
            if effects.slow and function in VECTOR_FUNCTIONS:
                yield Kind(function, type_name, bits or 8 * TYPES[type_name].bytes), n

    def _fuses(self, type_name: str) -> bool:
        return self.machine.stated(type_name, "fma") is not None

    def _functions(self, cost: StatementOperations, lanes: int, effects: Effects) -> Iterator[tuple[float, float]]:
        """(cycles, number) of divisions and functions: at the machine's rates, as in the bound, or as actual calls."""
        assert self.machine.clock_hz is not None
        cycles_per_s = float(self.machine.clock_hz) * (self.machine.units or 1)
        slow = {(t, "div"): n for (t, cls), n in cost.operations.items() if cls == "div"} | dict(cost.functions)
        for (type_name, name), n in slow.items():
            if effects.slow and name in ("div", *VECTOR_FUNCTIONS):
                continue  # an ordinary instruction
            called = self.rates.call(name if type_name == "f64" else f"{name}f") if effects.slow else None
            if called is not None:
                yield called[0] * lanes, n
                continue
            if effects.slow and not self.machine.has_own_rate(type_name, name):
                raise NotStated(f"machine {self.machine.name} states no rate of {name}, which compiled code calls")
            yield cycles_per_s / float(self.machine.rate(type_name, name).per_s) * lanes, n

    def _access(self, size: int, *, stored: bool) -> float:
        work = Work(Kind("", "", 0), (), "", bytes=size)
        return (self.rates.store(work) if stored else self.rates.load(work)).busy

    @staticmethod
    def _crossing(m: Moved, size: int) -> float:
        """The share of an access's vectors that cross the end of a line.

        Arrays are assumed to begin on lines, and so are rows that are a whole number of lines long.
        """
        array = m.element.array
        lanes, per_line = size // array.type.bytes, LINE // array.type.bytes
        if m.stride != "unit" or lanes <= 1 or lanes > per_line:
            return 0.0
        fastest = 0 if array.column_major else len(array.dims) - 1
        row = array.dims[fastest]
        shift = affine(m.element.subscripts[fastest]).constant
        aligned = len(array.dims) == 1 or (isinstance(row, Const) and row.value % per_line == 0)
        crossed = 0
        shifts = [shift % per_line] if aligned else list(range(per_line))
        for first in shifts:
            crossed += sum(at % per_line + lanes > per_line for at in range(first, first + per_line, lanes))
        return crossed / (len(shifts) * (per_line // lanes))


def _occupied(access: Access, crossing: float) -> tuple[float, float]:
    """The cycles that an access keeps its own units busy, and what loads and stores share, if this share of all crosses
    into a second line.
    """
    busy = access.busy + crossing * (access.split - access.busy)
    return busy, access.mix + crossing * (access.mix_split - access.mix)


def _ports(done: Sequence[tuple[tuple[int, ...], float]]) -> float:
    """The cycles until all instructions are executed, each on one of its ports, with the best distribution (Hall's
    condition).
    """
    used = sorted({port for ports, _ in done for port in ports})
    longest = 0.0
    for size in range(1, len(used) + 1):
        for some in combinations(used, size):
            inside = sum(busy for ports, busy in done if ports and set(ports) <= set(some))
            longest = max(longest, inside / size)
    return longest


def _widest(loop: Loop) -> int:
    """The bytes of the widest type that the loop computes with or moves."""
    types = {t for cost, _ in loop.operations for t, _ in cost.operations}
    types |= {m.element.array.type.component.name for m in loop.moved}
    return max((TYPES[t].bytes for t in types), default=8)


def _split(loop: Loop, lanes: int, varies: bool) -> tuple[float, float]:
    """(vector iterations, single iterations left over) of one launch; if the number varies, half of the most is left
    over on average.
    """
    if lanes == 1:
        return float(loop.iterations), 0.0
    if varies or loop.iterations % loop.entries:
        rest = min(loop.length, (lanes - 1) / 2) * loop.entries
        return (loop.iterations - rest) / lanes, rest
    length = loop.iterations // loop.entries
    return float(length // lanes * loop.entries), float(length % lanes * loop.entries)
