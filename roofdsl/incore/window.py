"""The clock of an out-of-order core: instructions in execution order, each with the cycle in which it is done.

The core dispatches a fixed number of instructions per cycle, in order, into a window of limited size, and retires them
from it in order. In between, an instruction starts when its operands are ready and a port of its class is free. Ports
serve their instructions at a rate, not in order: an instruction that waits for its operands does not delay those after
it.

The queue of waiting instructions is limited, too. Its size shows in strict sums of short rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush

from roofdsl.incore.classes import Work
from roofdsl.incore.rates import ALL_UNITS, DIVIDER, INTEGERS, LINE, NO_ACCESS, Rates
from roofdsl.lang.record import Record

AHEAD = 24.0
"""The cycles by which the predictor may be ahead: a few dozen blocks wait between it and the decoders."""

RETIRED_PER_DISPATCHED = 8
"""In a cycle, this many times as many instructions can retire as are dispatched: retirement is never the limit."""


class Step(Record):
    """The clock's data on one instruction of the text: registers by number, and its costs.

    entries: the places that it takes in the window. open_ports: those of its ports that stay open beside 512-bit
    instructions. wide: whether it is such an instruction. holds, holds_general: whether its result takes up a vector or
    a general register. every, every_split: the cycles for which it keeps busy what all loads and stores share. renamed:
    whether it loads a general register from the stack. bypass: the cycles by which instructions of the same class have
    its result earlier than others; maker: the number of that class, or 0 if there are none. waits: the cycles that a
    load of the stored bytes waits once the store has retired; 0 if it gets them earlier. integers: the cycles for which
    a load or store keeps the units for general registers busy.
    """

    reads: tuple[int, ...]
    address_reads: tuple[int, ...]
    write: int
    loads: bool
    stores: bool
    bytes: int
    latency: float
    ports: tuple[int, ...]
    busy: float
    slots: float
    entries: int
    load_busy: float
    load_split: float
    load_latency: float
    store_busy: float
    store_split: float
    mix: float
    mix_split: float
    open_ports: tuple[int, ...]
    wide: bool
    holds: bool
    holds_general: bool
    load_apart: float
    store_apart: float
    also: tuple[int, ...]
    also_busy: float
    every: float
    every_split: float
    renamed: bool
    bypass: float
    maker: int
    waits: float
    integers: float


def _is_on_stack(work: Work) -> bool:
    """Whether a general register is loaded from the stack. Its place is in the text, so the core knows which store it
    comes from, and renames the place. The distance to the store of an element that data choose cannot be predicted.
    """
    return work.general and work.load is not None and work.load.base == "rsp" and not work.load.index


def _takes_general(work: Work) -> bool:
    """Whether the result is in a new general register. A move between two of them only renames one."""
    named = work.writes[:1] not in ("", "v", "k") and work.writes not in ("flags", "rsp")
    return named and (bool(work.kind.cls) or work.load is not None)


_LOADS, _STORES, _MIX = 5, 6, 7
"""Places in `Clock.free` after those of the vector units and the DIVIDER: loads, stores, and what loads, stores and
arithmetic share.
"""


_LINES_LOADED, _LINES_STORED, _EVERY = 9, 10, 11
"""Loads and stores of lines of their own, and what all loads and stores share."""

LAST_BYTES = 4096
"""The bytes at the end of a block that may still be on their way to the cache when the function that wrote it ends."""

RECENT = 8
"""The number of lines that count as recent: those of two or three arrays, and their neighbors. Only a load from another
line takes extra time (`load_apart`).
"""


class Queue:
    """Operations under way, such as loads, at most `size` of them (0: no limit). `refill`: cycles until a free place is
    taken again.
    """

    def __init__(self, size: int, refill: float) -> None:
        self.left: deque[float] = deque(maxlen=size)
        self.last, self.refill = 0.0, refill

    def room(self) -> float:
        """The cycle in which there is room for one more."""
        return self.left[0] + self.refill if self.left and len(self.left) == self.left.maxlen else 0.0

    def add(self, leaves: float) -> None:
        """Adds an operation that leaves in the cycle `leaves`."""
        self.left.append(leaves)
        self.last = leaves

    def shift(self, cycles: float) -> None:
        self.left = deque((t + cycles for t in self.left), self.left.maxlen)
        self.last += cycles


class Clock:
    """The state of the core during a walk; times are in cycles from the launch."""

    def __init__(self, rates: Rates, works: Sequence[Work]) -> None:
        self.rates = rates
        names = sorted({r for w in works for r in (*w.reads, *w.address_reads, w.writes) if r})
        self.numbers = {name: k for k, name in enumerate(names)}
        self.ready = [0.0] * (len(names) + 1)
        self.makers = [0] * (len(names) + 1)
        self.bypassed: dict[str, int] = {}
        self.free = [0.0] * ALL_UNITS
        self.lines: deque[int] = deque(maxlen=RECENT)
        self.last_stored = -1
        self.ring = [-rates.refill] * rates.window
        self.position = 0
        self.loading, self.storing, self.registers, self.general = (
            Queue(size, rates.refill) for size in (rates.loading, rates.storing, rates.registers, rates.general)
        )
        self.dispatched = self.retired = self.branched = 0.0
        self.waiting: list[float] = []
        self.stores: dict[int, tuple[int, int, float, float, float]] = {}
        self.per_slot = 1 / rates.dispatch
        self.instructions = self.closed_until = 0

    def step(self, work: Work) -> Step:
        """The costs of an instruction, looked up once."""
        rates, number = self.rates, self.numbers
        cost = rates.cost(work.kind)
        load = rates.load(work) if work.load is not None else NO_ACCESS
        store = rates.store(work) if work.store is not None else NO_ACCESS
        slots = 0.0 if work.fused else cost.slots
        # With an address of two registers, some cores dispatch the load and the arithmetic one by one (Intel calls this
        # un-lamination); otherwise the two take one slot.
        if work.indexed:
            slots += rates.indexed - 1
        # An instruction that would have no port left beside 512-bit ones keeps its own: it has to run somewhere.
        open_ports = tuple(p for p in cost.ports if p in rates.wide or p >= DIVIDER) or cost.ports
        # Makers are numbered from 1: 0 says that no other instruction has the result early.
        maker = self.bypassed.setdefault(work.kind.cls, len(self.bypassed) + 1) if cost.bypass else 0
        return Step(
            tuple(number[r] for r in work.reads), tuple(number[r] for r in work.address_reads),
            number.get(work.writes, -1), work.load is not None, work.store is not None, work.bytes,
            cost.latency, cost.ports, cost.busy, slots, round(slots),
            load.busy, load.split, load.latency, store.busy, store.split,
            load.mix + store.mix + cost.mix, load.mix_split + store.mix_split + cost.mix, open_ports,
            bool(rates.wide) and work.kind.bits == 512, work.writes[:1] == "v", _takes_general(work),
            load.apart, store.apart, cost.also, cost.also_busy,
            load.every + store.every, load.every_split + store.every_split, _is_on_stack(work),
            cost.bypass, maker, store.waits, load.integers + store.integers,
        )  # fmt: skip

    def issue(self, step: Step, address: int | None) -> None:
        """Issues one more instruction; `address` of its load or store, None if there is none or it is unknown."""
        self.instructions += 1
        ready, free = self.ready, self.free
        begun = self.dispatched = self._dispatched(step)
        start = begun
        for r in step.reads:
            at = ready[r]
            if step.maker and self.makers[r] == step.maker:
                at -= step.bypass
            start = max(start, at)
        crosses = address is not None and (address % LINE) + step.bytes > LINE
        served = begun
        # Units work one after the other: `free` is when a unit is done with all that it has, free - busy when it begins
        # the last. `served`: when the units that loads and stores share have let this one through.
        if step.integers:
            free[INTEGERS] = max(free[INTEGERS], begun) + step.integers
            served = free[INTEGERS] - step.integers
            start = max(start, served)
        if step.every:
            busy = step.every_split if crosses else step.every
            free[_EVERY] = max(free[_EVERY], begun) + busy
            served = max(served, free[_EVERY] - busy)
            start = max(start, served)
        if step.loads:
            start = max(start, self._loaded(step, address, served, crosses))
        if step.ports:
            # Counted in instructions and not in cycles: a 512-bit instruction closes units for those queued along with
            # it.
            if step.wide:
                self.closed_until = self.instructions + self.rates.waiting
            ports = step.open_ports if self.instructions < self.closed_until else step.ports
            port = min(ports, key=free.__getitem__) if len(ports) > 1 else ports[0]
            # The port is reserved from dispatch on, not from the start: it is a rate, and while this instruction waits
            # for its operands, the port serves others that are ready, which a reservation at `start` would hold up.
            free[port] = max(free[port], begun) + step.busy
            start = max(start, free[port] - step.busy)
            if step.also:
                port = min(step.also, key=free.__getitem__)
                free[port] = max(free[port], begun) + step.also_busy
                start = max(start, free[port] - step.also_busy)
            heappush(self.waiting, start)
        done = start + step.latency
        if step.stores:
            busy = step.store_split if crosses else step.store_busy
            free[_STORES] = max(free[_STORES], served) + busy
            done = max(done, free[_STORES] - busy)
            if step.store_apart and address is not None and address // LINE != self.last_stored:
                self.last_stored = address // LINE
                free[_LINES_STORED] = max(free[_LINES_STORED], begun) + step.store_apart
                done = max(done, free[_LINES_STORED] - step.store_apart)
        if step.mix:
            busy = step.mix_split if crosses else step.mix
            free[_MIX] = max(free[_MIX], begun) + busy
            done = max(done, free[_MIX] - busy)
        self._retire(step, address, done)
        if step.write >= 0:
            ready[step.write] = done + step.bypass
            self.makers[step.write] = step.maker

    def _dispatched(self, step: Step) -> float:
        """The cycle in which an instruction leaves the front end: when each queue that it needs has room."""
        begun = self.dispatched + step.slots * self.per_slot
        # The ring holds the retirement times of the last `window` instructions. This instruction takes the place of the
        # oldest, which has to retire first.
        if step.entries:
            begun = max(self.ring[(self.position + step.entries - 1) % len(self.ring)] + self.rates.refill, begun)
        if step.loads:
            begun = max(begun, self.loading.room())
        if step.stores:
            begun = max(begun, self.storing.room())
        if step.holds:
            begun = max(begun, self.registers.room())
        if step.holds_general:
            begun = max(begun, self.general.room())
        # Only instructions that need a port wait in this queue; plain loads and stores have separate queues.
        if step.ports:
            waiting = self.waiting
            while waiting and waiting[0] <= begun:
                heappop(waiting)
            if len(waiting) >= self.rates.waiting:
                begun = max(begun, heappop(waiting))
        return begun

    def _retire(self, step: Step, address: int | None, done: float) -> None:
        """Retires an instruction that is done in this cycle, and gives back the places that it holds in the queues."""
        # In order: an instruction retires after all earlier ones, however early it is done.
        self.retired = max(self.retired + 1 / (RETIRED_PER_DISPATCHED * self.rates.dispatch), done)
        for _ in range(step.entries):
            self.ring[self.position] = self.retired
            self.position = (self.position + 1) % len(self.ring)
        if step.holds:
            self.registers.add(self.retired)
        if step.holds_general:
            self.general.add(self.retired)
        if step.loads:
            self.loading.add(self.retired)
        if not step.stores:
            return
        # Stores go to the cache after they retire, one after the other.
        self.storing.add(max(self.retired, self.storing.last + step.store_busy))
        if address is not None:
            self._stored(address, step.bytes, done, step.waits)

    def _stored(self, address: int, size: int, done: float, waits: float) -> None:
        """Remembers a store for the loads of its bytes."""
        store = (address, size, done, self.retired, waits)
        # In units of 8 bytes: a load looks up the stores that wrote its first and its last 8 bytes.
        for part in range(address >> 3, (address + size + 7) >> 3):
            self.stores[part] = store
        if size < 8:  # its neighbor may be stored to before it is loaded: a place of its own, below 0
            self.stores[~address] = store

    def block_stored(self, address: int, size: int, waits: float) -> None:
        """Records that the function that was just called has written a block of bytes, in vectors of a line. Of a long
        block, only the last lines count, since the others are in the cache before the function ends.
        """
        for at in range(address + max(0, size - LAST_BYTES) // LINE * LINE, address + size, LINE):
            self._stored(at, min(LINE, address + size - at), self.retired, waits)

    def _loaded(self, step: Step, address: int | None, begun: float, crosses: bool) -> float:
        """The cycle in which a load's data are available."""
        at, free = begun, self.free
        for r in step.address_reads:
            at = max(at, self.ready[r])
        busy = step.load_split if crosses else step.load_busy
        free[_LOADS] = max(free[_LOADS], begun) + busy
        at = max(at, free[_LOADS] - busy)
        if address is None:
            return at + step.load_latency
        if step.load_apart and address // LINE not in self.lines:
            self.lines.append(address // LINE)
            free[_LINES_LOADED] = max(free[_LINES_LOADED], begun) + step.load_apart
            at = max(at, free[_LINES_LOADED] - step.load_apart)
        return max(at + step.load_latency, self._forwarded(step, address, at))

    def _forwarded(self, step: Step, address: int, at: float) -> float:
        """The cycle in which a store on its way to the cache hands its data to a load; 0 if there is none."""
        found = 0.0
        stores = self.stores
        for part in (address >> 3, (address + step.bytes - 1) >> 3, ~address):
            store = stores.get(part)
            if store is None:
                continue
            begin, size, done, retired, waits = store
            if retired + waits <= at or begin >= address + step.bytes or begin + size <= address:
                continue  # already in the cache, or at other bytes
            if waits:
                found = max(found, retired + waits)
            elif begin <= address and address + step.bytes <= begin + size:
                found = max(found, done + self.rates.forwarded(step.bytes, renamed=step.renamed))
            else:  # the store has only some of the bytes: the load waits until they are in the cache
                found = max(found, retired + self.rates.blocked)
        return found

    def jumped(self) -> None:
        """Records a taken jump. The predictor runs ahead of the instructions, at about one taken jump per cycle."""
        self.branched = max(self.branched + self.rates.taken, self.dispatched - AHEAD)
        self.dispatched = max(self.dispatched + self.rates.redirect, self.branched)

    def left(self, iterations: int) -> None:
        """Records that a loop was left as predicted. The predictor loses some cycles, which matter only if it is not
        ahead.
        """
        if iterations > 1:
            self.branched = max(self.branched + self.rates.left, self.dispatched - AHEAD)

    def mispredicted(self) -> None:
        """Records that the last jump was mispredicted: nothing is dispatched until it is resolved, and for some more
        cycles.
        """
        flags = self.ready[self.numbers["flags"]] if "flags" in self.numbers else 0.0
        self.dispatched = max(self.dispatched, flags) + self.rates.mispredict
        self.branched = self.dispatched

    def called(  # noqa: PLR0917
        self,
        busy: float,
        latency: float,
        slots: int | None,
        argument: int,
        clobbered: Sequence[int],
        missed: float = 0.0,
    ) -> None:
        """Records the call of a function whose instructions are not walked; its argument is in the register `argument`,
        if >= 0. Branches that were not predicted delay what follows by `missed` cycles.

        Its instructions take up `slots` places of the window until the result is there. If their number is not stated,
        it has two limits. In `busy` cycles, no more can be dispatched than the core's rate allows. And independent
        calls follow each other at this distance, so the window holds as many of them as run during one's latency.
        """
        ring, refill = self.ring, self.rates.refill
        most = len(ring) if latency <= 0 else len(ring) * busy / (latency + refill)
        entries = max(1, int(min(slots or busy * self.rates.dispatch, most, len(ring))))
        begun = max(ring[self.position] + refill, self.dispatched)
        room = ring[(self.position + entries - 1) % len(ring)] + refill  # for the last of its instructions
        self.dispatched = max(begun + busy + missed, room)
        start = max(begun, self.ready[argument]) if argument >= 0 else begun
        done = max(start + latency, self.dispatched)
        self.retired = max(self.retired, done)
        for _ in range(entries):
            ring[self.position] = self.retired
            self.position = (self.position + 1) % len(ring)
        for r in clobbered:
            self.ready[r], self.makers[r] = done, 0

    def shift(self, cycles: float) -> None:
        """Lets this many cycles pass in the same state: skipped work is done, and the core is as busy as before."""
        self.ready = [t + cycles for t in self.ready]
        self.free = [t + cycles for t in self.free]
        self.ring = [t + cycles for t in self.ring]
        self.waiting = [t + cycles for t in self.waiting]
        self.loading.shift(cycles)
        self.storing.shift(cycles)
        self.registers.shift(cycles)
        self.general.shift(cycles)
        self.dispatched += cycles
        self.retired += cycles
        self.branched += cycles
