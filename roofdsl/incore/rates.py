"""The costs of instructions on a machine: its `instruction` and `core` lines, looked up by class, type and width.

An instruction that the machine does not state costs what the nearest stated one does: another type of the same class
and width, then a narrower one (twice the time for twice the width) or a wider one (the same time), then one of a
simpler class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from roofdsl.incore.classes import Kind, Work
from roofdsl.incore.result import NotStated
from roofdsl.lang.record import Record, replace
from roofdsl.machine.core import Core
from roofdsl.machine.instruction import Instruction
from roofdsl.machine.model import Machine

LINE, PAGE = 64, 4096

FORESEEN = 32
"""The end of a loop of constant length is predicted up to this many iterations unless the machine says otherwise, since
all current processors predict short loops. Where the length varies, the end is predicted only if the machine says so.
"""

FALLBACKS = {
    "max": "add", "compare": "add", "convert": "add", "widen": "convert", "narrow": "convert", "shuffle": "add",
    "horizontal": "shuffle", "permute": "shuffle", "exchange": "permute", "extract": "permute", "insert": "permute",
    "blend": "logic", "logic": "add", "shift": "logic", "shift_each": "shift", "mask": "compare", "move": "permute",
    "fma": "mul", "mul": "add",
}  # fmt: skip
"""The substitute of a class that is not stated; `add`, divisions, roots, gathers, scatters and calls have none."""

GENERAL = "i64"
"""The type of loads and stores of general registers; those of vectors have no type."""

_SEPARATE = ("div", "sqrt")
DIVIDER, INTEGERS = 4, 8
"""The numbers of the divider and of the units for general registers among the units. The first four are those of the
vector units, and 5 to 7 and 9 to 11 those of loads and stores.
"""

ALL_UNITS = 14
"""The number of all of them, with those of _OF_FEW."""

_INTEGER_CLASSES = ("mul", "div", "shift", "blend")
"""Classes of instructions on general registers that take longer than an addition."""

_OF_FEW = {"mul": 12, "shift": 13}
"""Numbers for the units for general registers that can execute a class which not all of them can."""


class Cost(Record):
    """latency: in cycles. ports: by number; the instruction keeps one of them busy for `busy` cycles. slots: the
    dispatch slots that it takes. mix: cycles for which it occupies the resources that it shares with loads and stores.
    also: the units of which it keeps one busy for also_busy cycles besides. bypass: further cycles until an instruction
    of another class has the result.
    """

    latency: float
    ports: tuple[int, ...]
    busy: float
    slots: float = 1.0
    mix: float = 0.0
    also: tuple[int, ...] = ()
    also_busy: float = 0.0
    bypass: float = 0.0

    def work(self, times: float) -> list[tuple[tuple[int, ...], float]]:
        """The units that can do the work of `times` instructions, and the cycles that it keeps one unit busy."""
        return [w for w in ((self.ports, self.busy * times), (self.also, self.also_busy * times)) if w[0]]


class Access(Record):
    """A load or store: the cycles that it keeps its units busy, within a line and across two.

    mix, mix_split: the same for the resources that loads and stores share; apart: the cycles if it goes to a line other
    than the recent ones. every, every_split: the cycles for which it keeps busy what all loads and stores share,
    those of general registers too. waits: the cycles that a load of the same bytes waits once a masked store has
    retired; 0 if the core hands over the data. integers: the cycles for which it keeps the units for general registers
    busy.
    """

    latency: float
    busy: float
    split: float
    mix: float
    mix_split: float
    apart: float = 0.0
    every: float = 0.0
    every_split: float = 0.0
    waits: float = 0.0
    integers: float = 0.0


NO_ACCESS = Access(0.0, 0.0, 0.0, 0.0, 0.0)
"""The load of an instruction that loads nothing, or its store."""

_FREE = Cost(0.0, (), 0.0)


def rates_of(machine: Machine) -> Rates:
    """The rates that a machine states. Raises NoInCore if it states none."""
    if machine.core is None or not machine.instructions:
        raise NotStated(f"machine {machine.name} states no instruction latencies (`characterize` measures them)")
    return Rates(machine.name, machine.core, machine.instructions)


class Rates:
    """The rates of a machine of this name. Raises NoInCore if it states no loads or no stores."""

    def __init__(self, machine: str, core: Core, instructions: Sequence[Instruction]) -> None:
        self.machine = machine
        self.stated = {(i.cls, i.type, i.bits): i for i in instructions}
        self.dispatch, self.window, self.waiting = core.dispatch, core.window, core.waiting
        self.loading, self.storing = core.loading, core.storing
        self.registers, self.general = core.registers, core.general
        self.refill = float(core.refill or 0)
        self.mispredict, self.left = float(core.mispredict or 0), float(core.left or 0)
        self.predicted, self.varied = core.predicted or FORESEEN, core.varied
        self.taken, self.redirect = float(core.taken or 1), float(core.redirect or 0)
        self.blocked = float(core.blocked or 0)
        self.indexed = core.indexed
        self.wide = frozenset(k for i in instructions if i.bits == 512 for k in i.units) if core.closes else frozenset()
        self.learned, self.remembered = core.learned, core.remembered
        self.unlearned = False  # whether a launch makes more calls than the core learns the branches for
        self._costs: dict[Kind, Cost] = {}
        self._forward: dict[tuple[int, bool], float] = {}
        general = self.stated.get(("load", GENERAL, 64))
        self.every_load = float(general.throughput or 0) if general is not None else 0.0
        general = self.stated.get(("store", GENERAL, 64))
        self.every_store = float(general.mixed or 0) if general is not None else 0.0
        for cls in ("load", "store"):
            if not any(i.cls == cls and i.type != GENERAL for i in instructions):
                raise NotStated(f"machine {machine} states no `instruction {cls}` (`characterize` measures it)")

    # ---- arithmetic ----

    def cost(self, kind: Kind) -> Cost:
        """The cost of one instruction of a class. Raises NoInCore if nothing similar is stated."""
        if kind not in self._costs:
            self._costs[kind] = self._cost(kind)
        return self._costs[kind]

    def _cost(self, kind: Kind) -> Cost:
        if kind.cls in ("gather", "scatter"):
            return self._of_lanes(kind)
        if not kind.cls:
            return _FREE
        if (kind.type, kind.bits) == (GENERAL, 64) and kind.cls in _INTEGER_CLASSES:
            return self._of_integers(kind)
        cls = kind.cls
        while True:
            found = self._nearest(cls, kind.type, kind.bits)
            if found is not None:
                return self._of(*found)
            if cls not in FALLBACKS:
                missing = f"instruction {kind.cls} {kind.type}"
                line = f"{missing} 256 bits, latency 14 cycles, throughput 8 cycles"
                raise NotStated(f"machine {self.machine} states nothing like `{missing}`", line)
            cls = FALLBACKS[cls]

    def _of_integers(self, kind: Kind) -> Cost:
        """The cost of an instruction on general registers that takes longer than an addition. If only some of their
        units can execute it, it is limited by those, and occupies all of them only as long as an addition does.
        """
        add = self.cost(Kind("add", GENERAL, 64))
        stated = self.stated.get((kind.cls, GENERAL, 64))
        if stated is None or kind.cls in _SEPARATE:
            return self._of(stated, 1.0) if stated is not None else add
        busy = float(stated.throughput or 1)
        if kind.cls not in _OF_FEW:
            return Cost(float(stated.latency or 1), (INTEGERS,), busy)
        return Cost(float(stated.latency or 1), (INTEGERS,), add.busy, also=(_OF_FEW[kind.cls],), also_busy=busy)

    def _of(self, stated: Instruction, factor: float) -> Cost:
        throughput = float(stated.throughput or 1) * factor
        latency = float(stated.latency or 1)
        if stated.cls in _SEPARATE:
            return Cost(latency, (DIVIDER,), throughput)
        ports = stated.units
        if not ports:
            return Cost(latency, (INTEGERS,), throughput)
        busy = throughput * len(ports)
        mix = float(stated.mixed or 0) * factor
        cost = Cost(latency, ports, busy, max(1.0, round(busy)), mix, bypass=float(stated.bypass or 0))
        add = self._nearest("add", stated.type, stated.bits) if stated.adder is not None else None
        if add is None:
            return cost
        adders = add[0].units
        return replace(cost, also=adders, also_busy=float(stated.adder or 0) * factor * len(adders))

    def _of_lanes(self, kind: Kind) -> Cost:
        """What a gather or scatter takes beside its accesses, which `load` and `store` know: its dispatch slots."""
        found = self._nearest(kind.cls, kind.type, kind.bits)
        return replace(_FREE, slots=(found[0].slots or 1) * found[1]) if found is not None else _FREE

    def _nearest(self, cls: str, type_name: str, bits: int) -> tuple[Instruction, float] | None:
        own = [i for i in self.stated.values() if i.cls == cls and _family(i.type) == _family(type_name)]
        if not own:
            own = [i for i in self.stated.values() if i.cls == cls]
        if not own:
            return None

        def distance(i: Instruction) -> tuple[float, bool, bool]:
            ratio = i.bits / bits
            return (max(ratio, 1 / ratio), i.type != type_name, i.bits > bits)

        best = min(own, key=distance)
        return best, max(1.0, bits / best.bits if bits >= 128 else 1.0)

    # ---- memory ----

    def load(self, work: Work) -> Access:
        """One load, or all loads of a gather."""
        if work.lanes:
            found = self._nearest("gather", work.kind.type, work.kind.bits)
            if found is None:
                raise NotStated(f"machine {self.machine} states no `instruction gather`")
            busy = float(found[0].throughput or 1) * found[1]
            return Access(float(found[0].latency or 1), busy, busy, 0.0, 0.0)
        return self._moved("load", work)

    def store(self, work: Work) -> Access:
        """One store, or all stores of a scatter."""
        if work.lanes:
            found = self._nearest("scatter", work.kind.type, work.kind.bits)
            if found is None:
                raise NotStated(f"machine {self.machine} states no `instruction scatter`")
            busy = float(found[0].throughput or 1) * found[1]
            return Access(0.0, busy, busy, 0.0, 0.0)
        return self._moved("store", work)

    def _moved(self, cls: str, work: Work) -> Access:
        """A load or store, of the masked kind or of a general register if the machine states that.

        A core may load more general registers than vectors in a cycle (Zen 5: four and two, of at most four accesses in
        all). A load of a general register only takes its part of what all accesses share. Loads of vectors and all
        stores take such a part, too, in addition to what they take of the path for vectors.
        """
        own = [i for i in self.stated.values() if i.cls == f"masked_{cls}"] if work.masked else []
        own = [i for i in own if i.type in ("", work.kind.type)] or own
        vectors = [i for i in self.stated.values() if i.cls == cls and i.type != GENERAL]
        general = self.stated.get((cls, GENERAL, 64)) if work.general else None
        integers = float(general.adder or 0) if general is not None else 0.0
        if cls == "load" and self.every_load and general is not None:
            found = self._access([general], work.bytes)
            return replace(found, busy=0.0, split=0.0, every=found.busy, every_split=found.split, integers=integers)
        found = self._access(own or vectors, work.bytes)
        # An access that crosses into a second line is two accesses for what all share, by the same ratio as for its own
        # units.
        part = self.every_store if cls == "store" else self.every_load
        return replace(found, every=part, every_split=part * found.split / found.busy, integers=integers)

    @staticmethod
    def _access(own: Sequence[Instruction], size: int) -> Access:
        fitting = sorted((i for i in own if i.bits >= 8 * size), key=lambda i: i.bits)
        stated = fitting[0] if fitting else max(own, key=lambda i: i.bits)
        busy = float(stated.throughput or 1)
        split, page = float(stated.split or busy), float(stated.page or stated.split or busy)
        crossing = split + max(0.0, page - split) * LINE / PAGE  # one in 64 line boundaries is a page boundary
        mix = float(stated.mixed or 0)
        waits = float(stated.forward or 0) if stated.cls == "masked_store" else 0.0
        apart = float(stated.apart or 0)
        return Access(float(stated.latency or 0), busy, crossing, mix, mix * crossing / busy, apart, waits=waits)

    def forwarded(self, size: int, *, renamed: bool = False) -> float:
        """The cycles from a store's data to those of the load that receives them. renamed: the load is of a general
        register, from a place whose store the core knows.
        """
        if (size, renamed) not in self._forward:
            self._forward[size, renamed] = self._forward_of(size, renamed)
        return self._forward[size, renamed]

    def _forward_of(self, size: int, renamed: bool) -> float:
        stores = [i for i in self.stated.values() if i.cls == "store" and i.forward]
        own = [i for i in stores if (i.type == GENERAL) == renamed] or stores
        own.sort(key=lambda i: i.bits)
        fitting = [i for i in own if i.bits >= 8 * size] or own[-1:]
        return float(fitting[0].forward or 0) if fitting else 0.0

    def block(self, function: str, size: int | None) -> tuple[float, float] | None:
        """(cycles of a call that fills or copies a block, 0): a fixed cost plus one for each 64 bytes. None if it is
        unknown.
        """
        stated = self._block(function)
        if stated is None or size is None:
            return None
        return float(stated.latency or 0) + float(stated.throughput or 0) * size / LINE, 0.0

    def block_waits(self, function: str, size: int) -> float:
        """The cycles that a load waits for a block of bytes that was filled or copied; 0 if the core hands over the
        data, as it does unless the block is written by a masked store.
        """
        stated = self._block(function)
        return float(stated.forward or 0) if stated is not None and size < LINE else 0.0

    def _block(self, function: str) -> Instruction | None:
        return self.stated.get(("memset" if function == "memset" else "memcpy", "", 512))

    def call(self, function: str) -> tuple[float, float] | None:
        """The cycles in which a function's call keeps the core busy, and its latency; None if it is not stated."""
        stated = self._called(function)
        if stated is None:
            return None
        busy = float(stated.throughput or 1)
        more = float(stated.unpredicted or busy) - busy if self.unlearned else 0.0
        return busy + more, float(stated.latency or 1) + more

    def call_slots(self, function: str) -> int | None:
        """The places in the window that a call's instructions take, at most; None if they are not stated."""
        stated = self._called(function)
        return None if stated is None else stated.slots

    def _called(self, function: str) -> Instruction | None:
        for cls in (function, function.removeprefix("__").removesuffix("_finite")):
            name, type_name = (cls[:-1], "f32") if cls.endswith("f") else (cls, "f64")
            stated = self.stated.get((name, type_name, int(type_name[1:])))
            if stated is not None:
                return stated
        return None

    def missed(self, function: str) -> float:
        """The part of the busy cycles of `call` that mispredicted branches inside the function take."""
        found = self.call(function)
        if found is None or not self.unlearned:
            return 0.0
        self.unlearned = False
        plain = self.call(function)
        self.unlearned = True
        return found[0] - plain[0] if plain is not None else 0.0

    def forgets(self, calls: Mapping[str, int]) -> bool:
        """Whether a launch makes more of these calls than the core learns the branches for."""
        return self.learned is not None and sum(calls.values()) > self.learned

    def remembers(self, mispredictions: float, rows: int) -> float:
        """The share of a launch's mispredictions that it avoids, since the core remembers the launch before.

        mispredictions: those of a core that remembers nothing. A machine that does not say how many of them a core
        remembers may say how many `rows` of data it has learned.
        """
        if self.remembered is not None:
            return min(1.0, self.remembered / mispredictions) if mispredictions else 1.0
        return float(self.learned is not None and rows <= self.learned)


def _family(type_name: str) -> str:
    return type_name[:1]
