"""What a machine block may say: the attributes of machines, one row each.

The grammar of lines with one quantity, the checker, `machines show`, JSON, the editor grammars and the language page
are made from these rows, and the model is filled by them. A new attribute is a row here (of `core` and `instruction`
lines, in `core_attributes`) and the field that it fills in `roofdsl.machine` (`model`, `core`, `multiprocessor` or
`instruction`). Rows stand in the order in which they are shown. Not in this table, but read in `check_machine.py`: what
`cache`, `memory`, `sustained` and `instruction` lines begin with (names, the first quantities), and the lines
`processor`, `peak`, `pipes`, `transfers`, `latency`, `link`, `ceiling`, `cost` and `source`.
"""

from __future__ import annotations

from roofdsl.lang.attribute_row import Attribute, Place
from roofdsl.lang.core_attributes import CORE_ATTRIBUTES

_MACHINE: tuple[Place, ...] = ("machine",)
_PEAK: tuple[Place, ...] = ("peak",)
_CACHE: tuple[Place, ...] = ("cache",)
_MEMORY: tuple[Place, ...] = ("memory",)
_LEVELS: tuple[Place, ...] = ("cache", "memory")
_UNIT: tuple[Place, ...] = ("multiprocessor",)
_SUSTAINED: tuple[Place, ...] = ("sustained",)

ATTRIBUTES = (
    Attribute("launch", _MACHINE, "time", "launch_s", "the time of one kernel launch"),
    Attribute(
        "launch_array", _MACHINE, "time", "launch_array_s",
        "the time of each array after the third in a call, in expected times of compiled Python code",
    ),
    Attribute(
        "launch_scalar", _MACHINE, "time", "launch_scalar_s",
        "the time of each scalar that a call only reads, in expected times of compiled Python code",
    ),
    Attribute(
        "launch_number", _MACHINE, "time", "launch_number_s",
        "the time of each parameter after the first in a call, in expected times of compiled Python code",
    ),
    Attribute("clock", _MACHINE, "frequency", "clock_hz", "the clock frequency"),
    Attribute(
        "throttled", _MACHINE, "frequency", "throttled_clock_hz",
        "the clock frequency while all units compute, if a power limit lowers it",
    ),
    Attribute("units", _MACHINE, "count", "units", "the number of cores or multiprocessors"),
    Attribute(
        "constant_power", _MACHINE, "power", "constant_power_w",
        "the power that the machine draws while it runs, whatever it does",
    ),
    Attribute(
        "power_cap", _MACHINE, "power", "power_cap_w",
        "the most power that the machine may draw, beyond which it slows down",
    ),
    Attribute(
        "energy", _PEAK, "operation_energy", "energy_j",
        "the energy of one operation, in addition to the constant power; a fused pair is two operations",
        example="20 pJ/FLOP",
    ),
    Attribute("copies", _CACHE, "count", "copies", "the number of such caches", shown=" x {number}", joins=True),
    Attribute(
        "holds", _CACHE, "size", "holds_bytes", "the part of it that remains for the code, if others use the cache too",
        example="64 MiB", shown="holds {text}",
    ),
    Attribute("line", _LEVELS, "size", "line_bytes", "bytes moved at a time", example="64 B", shown="line {number} B"),
    Attribute(
        "sector", _CACHE, "size", "sector_bytes", "the part of a line that can be moved on its own",
        example="64 B", shown="sector {number} B",
    ),
    Attribute(
        "ways", _CACHE, "count", "ways", "lines in a set; without it, the cache counts as fully associative",
        shown="{number} ways",
    ),
    Attribute(
        "write_allocate", _CACHE, None, "write_allocate",
        "a store loads its line first; with a SHARE such as 0.25, only that share of such lines is loaded",
        value=True, share=True, shown="write_allocate",
    ),
    Attribute(
        "no_write_allocate", _CACHE, None, "write_allocate", "a store does not load its line",
        value=False, shown="no_write_allocate",
    ),
    Attribute(
        "duplex", _LEVELS, None, "duplex", "loads and stores at the same time, each at the bandwidth",
        value=True, shown="duplex",
    ),
    Attribute(
        "typical", _LEVELS, "bandwidth", "typical_bytes_per_s",
        "the bandwidth to be expected, if it is lower than the best",
        example="100 GB/s", shown="typical {text}",
    ),
    Attribute(
        "larger", _CACHE, "bandwidth", "larger_bytes_per_s",
        "the bandwidth to be expected for data of `larger_from` or more that fit into the cache, instead of `typical`",
        example="270 GB/s", shown="{text} for larger data",
    ),
    Attribute(
        "larger_from", _CACHE, "size", "larger_from_bytes", "the size of data from which `larger` is the bandwidth",
        example="352 KiB", shown="from {text} on",
    ),
    Attribute(
        "stores", _LEVELS, "bandwidth", "stores_bytes_per_s",
        "the bandwidth of stores, if it is lower than that of loads",
        example="100 GB/s", shown="stores {text}",
    ),
    Attribute(
        "streamed", _MEMORY, "bandwidth", "streamed_bytes_per_s",
        "the bandwidth of stores that bypass the caches (`stream`)",
        example="100 GB/s", shown="stores past the caches {text}",
    ),
    Attribute(
        "one_stream", _LEVELS, "bandwidth", "one_stream_bytes_per_s",
        "the rate of a single stream, if several streams at once are faster",
        example="12 GB/s", shown="one stream {text}",
    ),
    Attribute(
        "streams", _LEVELS, "count", "streams", "the number of streams that reach the bandwidth",
        example="6", shown="{number} streams",
    ),
    Attribute(
        "written", _CACHE, "bandwidth", "written_bytes_per_s",
        "the rate that stored lines cannot exceed, however little is loaded beside them",
        example="30 GB/s", shown="written lines at {text}",
    ),
    Attribute(
        "written_loads", _CACHE, "bandwidth", "written_loads_bytes_per_s",
        "the time of stored lines grows by the bytes of loaded lines, divided by this bandwidth; a line whose first "
        "access is a store counts as stored and as loaded",
        example="200 GB/s", shown="loads beside them {text}",
    ),
    Attribute(
        "beside", _CACHE, "bandwidth", "beside_bytes_per_s",
        "the rate of its hits, if it takes turns with the levels behind it",
        example="100 GB/s", shown="beside {text}",
    ),
    Attribute(
        "beside_updates", _CACHE, "bandwidth", "beside_updates_bytes_per_s",
        "the same for hits that are both loaded and stored; without it, `beside` holds for these, too",
        example="100 GB/s", shown="updates beside {text}",
    ),
    Attribute(
        "beside_far", _CACHE, "bandwidth", "beside_far_bytes_per_s",
        "the same while lines come from farther than the next level; without it, `beside` holds there too",
        example="100 GB/s", shown="beside farther levels {text}",
    ),
    Attribute(
        "fill", _CACHE, "bandwidth", "fill_bytes_per_s",
        "the rate at which it takes in lines, if it cannot serve loads and stores meanwhile",
        example="200 GB/s", shown="filled at {text}",
    ),
    Attribute(
        "strided", _LEVELS, "bandwidth", "strided_bytes_per_s", "the rate of strided loads, each from a different line",
        example="40 GB/s", shown="strided {text}",
    ),
    Attribute(
        "strided_stores", _LEVELS, "bandwidth", "strided_stores_bytes_per_s",
        "a store to such a line adds the line's bytes, divided by this bandwidth, to the time of its load",
        example="40 GB/s", shown="strided stores {text}",
    ),
    Attribute(
        "crowded", _LEVELS, "bandwidth", "crowded_bytes_per_s",
        "the rate of strided loads whose lines fall into one set of the first cache; in N sets, N below 8, it is N "
        "times as high, up to `strided`",
        example="10 GB/s", shown="crowded {text}",
    ),
    Attribute(
        "crowded_stores", _CACHE, "bandwidth", "crowded_stores_bytes_per_s",
        "if the lines fall into fewer than eight sets of the first cache, a store adds its line's bytes, divided by "
        "this bandwidth, to the time of the line's load; loading and storing a line from a farther level takes at "
        "least as long as loading and storing one from this cache",
        example="20 GB/s", shown="crowded stores {text}",
    ),
    Attribute(
        "buffers", _CACHE, "count", "buffers",
        "how many lines that are still on their way into the cache count as hits for loads, in addition to those in "
        "its sets",
        shown="{number} buffers",
    ),
    Attribute(
        "stored_lines", _CACHE, "count", "stored_lines",
        "when stores go to more lines of a set than it has ways, the set keeps as many of them as a set of N ways with "
        "random replacement would",
        shown="stores in {number} lines of a set",
    ),
    Attribute(
        "gathered", _LEVELS, "bandwidth", "gathered_bytes_per_s",
        "the rate of lines that gathers load in the order of addresses, eight elements of each line: "
        "they are not prefetched like streams",
        example="6 GB/s", shown="gathered {text}",
    ),
    Attribute(
        "strided_odd", _CACHE, "bandwidth", "strided_odd_bytes_per_s",
        "the rate of strided loads that are an odd number of lines apart, if it differs",
        example="100 GB/s", shown="odd strides {text}",
    ),
    Attribute(
        "strided_odd_stores", _CACHE, "bandwidth", "strided_odd_stores_bytes_per_s",
        "a store to such a line adds the line's bytes, divided by this bandwidth, to the time of its load",
        example="60 GB/s", shown="stores of odd strides {text}",
    ),
    Attribute(
        "random", _LEVELS, "bandwidth", "random_bytes_per_s",
        "the rate of randomly accessed lines: each load is from a different line, which the data choose",
        example="40 GB/s", shown="random {text}",
    ),
    Attribute(
        "random_stores", _LEVELS, "bandwidth", "random_stores_bytes_per_s",
        "a store to such a line adds the line's bytes, divided by this bandwidth, to the time of its load",
        example="40 GB/s", shown="random stores {text}",
    ),
    Attribute(
        "restart", _LEVELS, "time", "restart_s",
        "the time that a stream from this level loses at each page of 4 KiB, if the core computes meanwhile",
        example="100 ns", shown="{text} at each page",
    ),
    Attribute(
        "in_order", _CACHE, None, "in_order",
        "it answers loads in the order in which they were issued, so a hit waits for the misses before it",
        value=True, shown="loads in order",
    ),
    Attribute(
        "energy", _LEVELS, "byte_energy", "energy_j_per_byte",
        "the energy of one byte across its boundary, in addition to the constant power",
        example="100 pJ/B",
    ),
    Attribute(
        "warp", _UNIT, "count", "warp", "threads that execute together",
        example="32", needed="a multiprocessor needs the number of threads that execute together",
        shown="warps of {number} threads",
    ),
    Attribute("warps", _UNIT, "count", "warps", "the most resident warps", example="32", shown="{number:,} warps"),
    Attribute("blocks", _UNIT, "count", "blocks", "the most resident blocks", example="32", shown="{number:,} blocks"),
    Attribute(
        "registers", _UNIT, "count", "registers", "registers of 32 bits",
        example="32", shown="{number:,} registers",
    ),
    Attribute(
        "thread_registers", _UNIT, "count", "thread_registers", "the most registers of one thread", example="255",
        shown="at most {number} of them a thread",
    ),
    Attribute(
        "block_threads", _UNIT, "count", "block_threads", "the most threads in a block",
        example="32", shown="{number:,} threads a block",
    ),
    Attribute("shared", _UNIT, "size", "shared_bytes", "shared memory", example="96 KiB", shown="{text} shared"),
    Attribute(
        "schedulers", _UNIT, "count", "schedulers", "warp schedulers; registers and warps are divided among them",
        example="32", shown="{number} schedulers",
    ),
    Attribute(
        "load_units", _UNIT, "count", "load_units", "load/store units, each of which answers one thread per cycle",
        example="32", shown="{number} load/store units",
    ),
    Attribute(
        "tlb", _UNIT, "size", "tlb_bytes", "the memory whose addresses its TLB holds",
        example="32 MiB", shown="TLB of {text}",
    ),
    Attribute(
        "tlb_miss", _UNIT, "time", "tlb_miss_s",
        "the time that a request of a warp waits for an address that is not in the TLB",
        example="100 ns", shown="{text} for a TLB miss",
    ),
    *CORE_ATTRIBUTES,
    Attribute(
        "latency", _SUSTAINED, "time", "latency_s",
        "the time in which a thread of a stream starts and makes one round of requests to the memory",
        example="600 ns", needed="a sustained bandwidth needs the latency that requests in flight have to cover",
        shown="latency {text}",
    ),
    Attribute(
        "exponent", _SUSTAINED, "number", "exponent", "how sharply the bandwidth bends from latency-bound to sustained",
        example="2", needed="a sustained bandwidth needs the exponent of its bend", shown="exponent {text}",
    ),
)  # fmt: skip


def attributes(of: str) -> dict[str, Attribute]:
    """The attributes of a place, by keyword."""
    return {a.word: a for a in ATTRIBUTES if of in a.of}


SETTINGS = tuple(attributes("machine"))
"""The lines of a machine that are one word and one quantity."""

LINES = (
    "processor", "peak", "pipes", "transfers", "cache", "memory", "ceiling", "link", *SETTINGS, "multiprocessor",
    "latency", "sustained", "core", "instruction", "source",
)  # fmt: skip
"""The words that begin the lines of a machine, except `cost`, which may also stand outside machines."""

GRAMMAR = "\n".join([
    f"_setting: {' | '.join(SETTINGS)}",
    *(f"{word}: _{word.upper()} quantity [note]" for word in SETTINGS),
    *(f'_{word.upper()}.2: "{word}" _UNLESS_TARGET' for word in SETTINGS),
])  # fmt: skip
"""What `grammar.lark` leaves to this table: the rules and keywords of the settings."""
