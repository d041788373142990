"""A machine as predictions see it: exact numbers, units in the names, and where each came from.

Rates fall back by docs/rules.md, rule 12; every fallback that is used becomes an assumption, in words, of the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.operation_classes import MATRIX_CLASSES, SPECIAL_FUNCTIONS
from roofdsl.lang.record import Record, field
from roofdsl.lang.types import TYPES
from roofdsl.machine.core import Core
from roofdsl.machine.instruction import Instruction
from roofdsl.machine.multiprocessor import Multiprocessor
from roofdsl.machine.quantities import show_rate

UNFUSED = "unfused"  # what `peak TYPE RATE` without a class states
ONLY_STORED, COMPUTED_IN = ("f8",), "f32"  # types that ordinary units do not compute in, and what they use instead
DEFAULT_COSTS: Mapping[str, Fraction] = {"div": Fraction(8), "special": Fraction(8)}  # rule 12


def operation(type_name: str) -> str:
    """What operations on a type are counted in: OP for integers, FLOP for all other types (rule 7)."""
    return "OP" if TYPES[type_name].kind == "int" else "FLOP"


class Peak(Record):
    """Operations per second of one class on one type; a fused pair is two operations.

    `energy_j`: the energy of one of them, in addition to the constant power; None where the machine does not say.
    """

    type: str
    cls: str
    rate_per_s: Fraction
    energy_j: Fraction | None = None
    source: str = ""


class Cache(Record):
    """One cache level. `size_bytes` is the size of one copy, the bandwidth that of all copies together.

    `write_allocate` is None where the machine does not say; then predictions take load_store (rule 11). A share is the
    part of the lines first touched by a store that the hardware loads before the store: the expected time counts these
    loads. The bound counts none, since stores can bypass the cache. `duplex`: loads from it and stores to it cross at
    the same time, each at the bandwidth. `beside_bytes_per_s`: the rate of its hits while lines from farther levels
    pass through it; the time of the hits is then added to that of those levels. None: both overlap. If this rate is
    below the bandwidth, the bound takes the bandwidth, since code can always use the levels one after the other.
    `beside_updates_bytes_per_s`: the same for hits that are both loaded and stored. `beside_far_bytes_per_s`: the same
    while the lines come from beyond the next level. `energy_j_per_byte`: of a byte across the boundary to the nearer
    level, in addition to the constant power.

    Only expected times use what follows. `typical_bytes_per_s`: the median bandwidth over working sets on ordinary
    pages; the bound takes the best. `larger_bytes_per_s`: the same over those of `larger_from_bytes` or more, if these
    get another rate. `stores_bytes_per_s`: the bandwidth of stores where it is lower than that of loads.
    `written_bytes_per_s`: the rate that stored lines cannot exceed; `written_loads_bytes_per_s`: the rate at which
    loaded lines, including those whose first access is a store, add to the time of stored ones (without it, they add
    nothing). `holds_bytes`: the part of it that remains for the code if others use the cache too (`machine.kept`).
    `fill_bytes_per_s`: the rate at which lines come in while it serves no loads and stores of the core.
    `one_stream_bytes_per_s`: the rate of a single stream; `streams` of them reach the bandwidth. `strided_bytes_per_s`:
    the rate of its lines if every load takes another one, too far from the last to be fetched ahead;
    `strided_stores_bytes_per_s`: the rate at which stores to these lines add to the time. `strided_odd_bytes_per_s`,
    `strided_odd_stores_bytes_per_s`: the same if the lines are an odd number of lines apart, so that they use all sets
    and banks; `crowded_bytes_per_s`: the rate of lines that all fall into one set of the first cache, which has room
    for few of them at a time; `crowded_stores_bytes_per_s`: the rate at which stores to such lines add to the time.
    `buffers`: the number of lines on their way into it in which loads hit, in addition to those in its sets.
    `stored_lines`: if more lines than a set has ways are stored, as many are kept as by random replacement among so
    many ways. `in_order`: it answers loads in the order in which they were issued, so hits wait for misses before them.
    `gathered_bytes_per_s`: the rate of consecutive lines that gather instructions load, eight elements of each.
    `random_bytes_per_s`, `random_stores_bytes_per_s`: like the strided ones, for randomly accessed lines. `restart_s`:
    the time that a stream from it loses at each page of 4 KiB, where prefetching ends, while the core computes.
    """

    name: str
    size_bytes: int
    bandwidth_bytes_per_s: Fraction
    line_bytes: int | None = None
    sector_bytes: int | None = None
    ways: int | None = None
    copies: int = 1
    write_allocate: bool | Fraction | None = None
    duplex: bool = False
    typical_bytes_per_s: Fraction | None = None
    larger_bytes_per_s: Fraction | None = None
    larger_from_bytes: int | None = None
    stores_bytes_per_s: Fraction | None = None
    written_bytes_per_s: Fraction | None = None
    written_loads_bytes_per_s: Fraction | None = None
    beside_bytes_per_s: Fraction | None = None
    beside_updates_bytes_per_s: Fraction | None = None
    beside_far_bytes_per_s: Fraction | None = None
    holds_bytes: int | None = None
    one_stream_bytes_per_s: Fraction | None = None
    streams: int = 0
    fill_bytes_per_s: Fraction | None = None
    strided_bytes_per_s: Fraction | None = None
    strided_stores_bytes_per_s: Fraction | None = None
    strided_odd_bytes_per_s: Fraction | None = None
    strided_odd_stores_bytes_per_s: Fraction | None = None
    crowded_bytes_per_s: Fraction | None = None
    crowded_stores_bytes_per_s: Fraction | None = None
    buffers: int = 0
    stored_lines: int | None = None
    gathered_bytes_per_s: Fraction | None = None
    random_bytes_per_s: Fraction | None = None
    random_stores_bytes_per_s: Fraction | None = None
    restart_s: Fraction | None = None
    in_order: bool = False
    energy_j_per_byte: Fraction | None = None
    source: str = ""

    @property
    def kept_bytes(self) -> int:
        """How many bytes of it the code finds again, as far as the machine says."""
        return min(self.size_bytes, self.holds_bytes or self.size_bytes)

    @property
    def takes_turns(self) -> bool:
        """Whether its hits take turns with the lines of some level behind it."""
        return self.beside_bytes_per_s is not None or self.beside_far_bytes_per_s is not None


class Memory(Record):
    """A memory. The first one of a machine is its last level; the others are reached only through links.

    Its rates are as for caches, but `typical_bytes_per_s` is the median over streaming patterns; `streamed_bytes_per_s`
    is that of stores that bypass the caches.
    """

    name: str
    size_bytes: int
    bandwidth_bytes_per_s: Fraction
    line_bytes: int | None = None
    duplex: bool = False
    typical_bytes_per_s: Fraction | None = None
    stores_bytes_per_s: Fraction | None = None
    strided_bytes_per_s: Fraction | None = None
    strided_stores_bytes_per_s: Fraction | None = None
    crowded_bytes_per_s: Fraction | None = None
    gathered_bytes_per_s: Fraction | None = None
    random_bytes_per_s: Fraction | None = None
    random_stores_bytes_per_s: Fraction | None = None
    restart_s: Fraction | None = None
    energy_j_per_byte: Fraction | None = None
    one_stream_bytes_per_s: Fraction | None = None
    streams: int = 0
    streamed_bytes_per_s: Fraction | None = None
    source: str = ""


class ComputeCeiling(Record):
    """A named ceiling below the peak of `type`, in operations per second; `cls` narrows it to one class.

    A ceiling of the class "special" applies to all special functions together.
    """

    name: str
    type: str
    rate_per_s: Fraction
    cls: str = ""
    source: str = ""


class BandwidthCeiling(Record):
    """A named ceiling below the bandwidth of the cache or memory `level`."""

    name: str
    level: str
    bandwidth_bytes_per_s: Fraction
    source: str = ""


ONE_CORE = "one core, {level}"
"""The name of the ceiling that states the bandwidth of a shared level, or of STREAMED, to a single core."""

STREAMED = "stores past the caches"


class Link(Record):
    """A link from `start` to `end` (memories or machines); `both_ways` gives each direction its own bandwidth."""

    name: str
    start: str
    end: str
    bandwidth_bytes_per_s: Fraction
    both_ways: bool = False
    source: str = ""


class Sustained(Record):
    """The bandwidth of a level that a stream in one direction ("read", "write" or "mixed") approaches.

    A launch with L bytes in flight reaches a bandwidth of `(F**-p + B**-p)**(-1/p)`, where F = L / `latency_s`, B is
    `bandwidth_bytes_per_s` and p the `exponent`. The latency is that of the stream's threads, each of which starts,
    loads, stores and ends, so it is longer than that of a single load.
    """

    level: str
    direction: str
    bandwidth_bytes_per_s: Fraction
    latency_s: Fraction
    exponent: Fraction
    source: str = ""


class Rate(Record):
    """Operations per second, and in words what was assumed to get them (empty if the machine states the rate)."""

    per_s: Fraction
    assumptions: tuple[str, ...] = ()


class MatrixUnitsOnly(CommandError):
    """Only the matrix units of the machine compute in this type, and the kernel did not ask for them."""


class Machine(Record):
    """A checked machine. `launch_s` is the time of one kernel launch; `units` counts cores or multiprocessors.

    line_sources: the source of each line that states one and fills a field of the machine itself, by what the line is
    about: `launch`, `units`, `latency L1`, `cost div`.
    """

    name: str
    title: str
    peaks: tuple[Peak, ...]
    memories: tuple[Memory, ...]
    caches: tuple[Cache, ...] = ()
    ceilings: tuple[ComputeCeiling | BandwidthCeiling, ...] = ()
    links: tuple[Link, ...] = ()
    launch_s: Fraction | None = None
    launch_array_s: Fraction | None = None
    launch_scalar_s: Fraction | None = None
    launch_number_s: Fraction | None = None
    clock_hz: Fraction | None = None
    throttled_clock_hz: Fraction | None = None
    units: int | None = None
    constant_power_w: Fraction | None = None
    power_cap_w: Fraction | None = None
    costs: tuple[tuple[str, Fraction], ...] = ()
    pipes_separate: bool = False
    divider_separate: bool = False  # then the others are too
    pipes_by_unit: bool = False  # classes compete for the vector units that `instructions` state
    transfer_overlap: Fraction | None = None  # 0: transfers take turns, 1: the longest counts; None: not stated
    multiprocessor: Multiprocessor | None = None
    latencies: tuple[tuple[str, Fraction], ...] = ()  # seconds, by level
    instructions: tuple[Instruction, ...] = ()
    core: Core | None = None
    processor: str = ""  # its name as the system reports it where the machine was measured
    sustained: tuple[Sustained, ...] = ()
    source: str = ""
    line_sources: tuple[tuple[str, str], ...] = ()
    origin: str = field(default="", compare=False)  # the file it was read from

    def source_of(self, line: str) -> str:
        """The source of a line such as `units` or `latency L1`; empty if it states none."""
        return dict(self.line_sources).get(line, "")

    @property
    def main_memory(self) -> Memory:
        """The last level of the hierarchy: the first memory declared."""
        return self.memories[0]

    @property
    def hierarchy(self) -> tuple[Cache | Memory, ...]:
        """The caches, nearest first, and the main memory."""
        return (*self.caches, self.main_memory)

    @property
    def last_cache(self) -> Cache | None:
        """The cache nearest to memory; None on a machine without caches (the textbook's)."""
        return self.caches[-1] if self.caches else None

    @property
    def one_sequence(self) -> bool:
        """Whether all arithmetic takes turns; otherwise some of it overlaps, and compute time is a maximum."""
        return not (self.pipes_separate or self.pipes_by_unit)

    @property
    def types(self) -> tuple[str, ...]:
        """The types with any peak, in the order declared."""
        return tuple(dict.fromkeys(p.type for p in self.peaks))

    def stated(self, type_name: str, cls: str) -> Peak | None:
        """The peak as the machine states it; None if it does not."""
        return next((p for p in self.peaks if (p.type, p.cls) == (type_name, cls)), None)

    def peak(self, type_name: str, unit: str | None = None) -> Rate:
        """The highest rate of a type: fused if the machine has fused multiply-add, or that of a matrix unit.

        Raises CommandError if the machine does not have the type (or the unit for it).
        """
        if unit is not None:
            return self.rate(type_name, unit)
        paired = self.stated(type_name, "fma") is not None or self._has_matrix_units_alone(type_name)
        return self.rate(type_name, "fma" if paired else UNFUSED)

    def rate(self, type_name: str, cls: str, costs: Mapping[str, Fraction] | None = None) -> Rate:
        """Operations per second of `cls` on `type_name` (docs/rules.md, rule 12).

        `cls` is a class of `peak` lines, or "add" or "mul" for unfused ones. `costs` are the `cost CLASS N` lines of a
        kernel's file, which take precedence over the machine's. A special function for which nothing is stated has the
        rate of "special". If pairs are requested and the machine has no fused multiply-add, a pair runs as an add and a
        mul. Raises CommandError if the machine does not have the type.
        """
        if cls in SPECIAL_FUNCTIONS and not self.has_own_rate(type_name, cls, costs):
            return self.rate(type_name, "special", costs)
        own = (costs or {}).get(cls)
        stated = self.stated(type_name, cls)
        unfused = self.stated(type_name, UNFUSED) if cls == "fma" else None
        if stated is not None and unfused is not None and unfused.rate_per_s > stated.rate_per_s:
            note = f"{type_name}: a pair runs as one add and one mul, which are faster than a fused one"
            return Rate(unfused.rate_per_s, (note,))
        if stated is not None and own is None:
            return Rate(stated.rate_per_s)
        if cls in MATRIX_CLASSES:
            raise self._missing(type_name, cls)
        if self._has_matrix_units_alone(type_name):
            return self._rate_beside_matrix_units(type_name, cls, costs)
        if cls == "fma":
            base = self.rate(type_name, UNFUSED)
            note = f"{type_name}: no fused multiply-add on this machine, so a pair runs as one add and one mul"
            return Rate(base.per_s, (*base.assumptions, note))
        if cls == UNFUSED:
            fused = self.stated(type_name, "fma")
            if fused is None:
                raise self._missing(type_name, None)
            half = show_rate(fused.rate_per_s / 2, operation(type_name))
            note = f"{type_name}: unfused operations at half the fused rate ({half})"
            return Rate(fused.rate_per_s / 2, (note,))
        base = self.rate(type_name, UNFUSED)
        cost = own if own is not None else dict(self.costs).get(cls)
        if cost is not None:
            return Rate(base.per_s / cost, base.assumptions)
        cost = DEFAULT_COSTS.get(cls, Fraction(1))
        if cls in ("add", "mul"):
            return base
        how = "at the unfused rate" if cost == 1 else f"at 1/{cost} of the unfused rate (the default cost)"
        return Rate(base.per_s / cost, (*base.assumptions, f"{type_name}: {cls} {how}"))

    def computed_in(self, type_name: str) -> str:
        """The type in which ordinary units compute: f32 for a type whose only rates are those of matrix units."""
        return COMPUTED_IN if self._has_matrix_units_alone(type_name) else type_name

    def _has_matrix_units_alone(self, type_name: str) -> bool:
        """Whether the only rates of a type here are those of matrix units, and ordinary units compute in it nowhere."""
        own = {p.cls for p in self.peaks if p.type == type_name}
        return type_name in ONLY_STORED and {MATRIX_CLASSES[0]} <= own <= set(MATRIX_CLASSES)

    def _rate_beside_matrix_units(self, type_name: str, cls: str, costs: Mapping[str, Fraction] | None) -> Rate:
        """Pairs of multiplication and addition run on matrix units; all other operations are computed in f32."""
        if cls == "fma":
            on = MATRIX_CLASSES[0]
            return Rate(self.rate(type_name, on).per_s, (f"{type_name}: sums of products on {on} units",))
        base = self.rate(COMPUTED_IN, cls, costs)
        return Rate(base.per_s, (*base.assumptions, f"{type_name}: other operations at the rates of {COMPUTED_IN}"))

    def has_own_rate(self, type_name: str, function: str, costs: Mapping[str, Fraction] | None = None) -> bool:
        """Whether a special function has another rate than the class "special": by the `cost` of a kernel's file, or by
        the machine's `peak` or `cost`. The `cost special` of a file applies to all functions without their own cost.
        What runs beside matrix units has the peaks of the type in which it is computed.
        """
        given = costs or {}
        if function in given or "special" in given:
            return function in given
        return self.stated(self.computed_in(type_name), function) is not None or function in dict(self.costs)

    def _missing(self, type_name: str, unit: str | None) -> CommandError:
        matrix = [p.cls for p in self.peaks if p.type == type_name and p.cls in MATRIX_CLASSES]
        if unit is None and matrix:
            return MatrixUnitsOnly(
                f"machine {self.name} has a rate of {type_name} for its matrix units, but none for others",
                f"add `peak {type_name} fma RATE` to the machine; or for a contraction, use `--unit {matrix[0]}`; or "
                "compute in f32 (`temp s: f32`, and `s = C[i]` before the computation)",
            )
        if unit is not None:
            have = [p.type for p in self.peaks if p.cls == unit]
            what = f"machine {self.name} has no {unit} rate for {type_name}"
            units = "sparse tensor units" if unit == "tensor_sparse" else "tensor units"
            return CommandError(what, f"its {units} take {', '.join(have)}" if have else "leave out `--unit`")
        have = [t for t in self.types if any(p.type == t and p.cls not in MATRIX_CLASSES for p in self.peaks)]
        listed = ", ".join(have) if have else f"only matrix rates, for {', '.join(self.types)}"
        word = "" if type_name.startswith("i") else "fma "
        add = f"add `peak {type_name} {word}RATE` to the machine"
        return CommandError(f"machine {self.name} has no peak for {type_name}", f"it has {listed}; {add}")
