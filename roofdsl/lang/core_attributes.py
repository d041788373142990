"""The attributes of `core` and `instruction` lines, one row each: a part of those in `machine_attributes.py`."""

from __future__ import annotations

from roofdsl.lang.attribute_row import Attribute, Place

_CORE: tuple[Place, ...] = ("core",)
_INSTRUCTION: tuple[Place, ...] = ("instruction",)

CORE_ATTRIBUTES = (
    Attribute(
        "dispatch", _CORE, "count", "dispatch", "the number of instructions dispatched per cycle",
        example="6", needed="a core needs the number of instructions that begin in a cycle",
        shown="{number} instructions per cycle",
    ),
    Attribute(
        "window", _CORE, "count", "window",
        "size of the reorder buffer: the most instructions in flight at the same time",
        example="512", needed="a core needs the number of instructions in flight at the same time",
        shown="window (reorder buffer) {number}",
    ),
    Attribute(
        "waiting", _CORE, "count", "waiting",
        "scheduler entries: the most instructions that wait for operands at the same time",
        example="97", needed="a core needs the number of instructions that wait for operands",
        shown="scheduler {number}",
    ),
    Attribute(
        "loading", _CORE, "count", "loading", "load buffer entries: the most loads in flight at the same time",
        example="192", shown="load buffer {number}",
    ),
    Attribute(
        "storing", _CORE, "count", "storing", "store buffer entries: the most stores in flight at the same time",
        example="112", shown="store buffer {number}",
    ),
    Attribute(
        "general", _CORE, "count", "general",
        "physical general registers for results: the most such results in flight at the same time",
        example="192", shown="{number} physical general registers",
    ),
    Attribute(
        "registers", _CORE, "count", "registers",
        "physical vector registers for results: the most such results in flight at the same time",
        example="280", shown="{number} physical vector registers",
    ),
    Attribute(
        "refill", _CORE, "cycles", "refill",
        "cycles from the end of an instruction to the start of one that takes its place in the window or in a buffer",
        example="20 cycles", shown="{text} to refill a place",
    ),
    Attribute(
        "predicted", _CORE, "count", "predicted",
        "the most iterations of an inner loop whose end is predicted; 32 if not stated",
        example="32", shown="loops of up to {number} predicted",
    ),
    Attribute(
        "varied", _CORE, "count", "varied", "the same for a loop whose number of iterations varies; none if not stated",
        example="32", shown="{number} where their number varies",
    ),
    Attribute(
        "left", _CORE, "cycles", "left", "cycles lost when a loop ends, even if its end was predicted",
        example="3 cycles", shown="{text} to leave a loop",
    ),
    Attribute(
        "taken", _CORE, "cycles", "taken", "cycles from one taken branch to the next", example="1 cycle",
        shown="taken branches every {text}",
    ),
    Attribute(
        "redirect", _CORE, "cycles", "redirect", "cycles without dispatch after a taken branch, on average",
        example="0.25 cycles", shown="{text} lost by a taken branch",
    ),
    Attribute(
        "mispredict", _CORE, "cycles", "mispredict", "misprediction penalty: cycles lost by a mispredicted branch",
        example="17 cycles", shown="misprediction penalty {text}",
    ),
    Attribute(
        "blocked", _CORE, "cycles", "blocked",
        "penalty of a failed store-to-load forwarding: cycles lost by a load if an earlier store wrote only part of "
        "its bytes",
        example="12 cycles", shown="failed store forwarding {text}",
    ),
    Attribute(
        "indexed", _CORE, "count", "indexed",
        "the number of instructions that vector arithmetic with an indexed address counts as", example="2",
        shown="{number} for arithmetic on an indexed address",
    ),
    Attribute(
        "closes", _CORE, None, "closes",
        "while 512-bit vectors run, units that cannot execute them are closed to narrower vectors",
        value=True, shown="512 bits close units",
    ),
    Attribute(
        "pages", _CORE, "count", "pages", "entries of its TLB: the pages of 4 KiB whose addresses it holds",
        example="2048", shown="TLB of {number} pages",
    ),
    Attribute(
        "walk", _CORE, "cycles", "walk", "cycles of a page walk, which finds the address of a page not in the TLB",
        example="20 cycles", shown="{text} for a page walk",
    ),
    Attribute(
        "learned", _CORE, "count", "learned",
        "the most calls of functions per launch whose branches the core remembers; without `remembered`, also the most "
        "iterations of a loop over data (such as the rows of a sparse matrix) whose branches it remembers",
        example="2048", shown="{number} calls learned",
    ),
    Attribute(
        "remembered", _CORE, "count", "remembered",
        "the most branches on data per launch that the core predicts because it remembers the previous launch",
        example="8192", shown="{number} branches remembered",
    ),
    Attribute(
        "latency", _INSTRUCTION, "cycles", "latency", "cycles from the operands to the result", example="4 cycles",
        shown="latency {text}",
    ),
    Attribute(
        "throughput", _INSTRUCTION, "cycles", "throughput",
        "cycles from one instruction to the next, if they are independent",
        example="0.5 cycles", needed="an instruction needs its throughput", shown="one every {text}",
    ),
    Attribute(
        "unpredicted", _INSTRUCTION, "cycles", "unpredicted",
        "the throughput of a call whose own branches depend on the data, if a launch makes more calls than `learned`",
        example="50 cycles", shown="{text} with branches not predicted",
    ),
    Attribute(
        "split", _INSTRUCTION, "cycles", "split", "the throughput of loads or stores across two lines",
        example="1 cycle", shown="across lines {text}",
    ),
    Attribute(
        "page", _INSTRUCTION, "cycles", "page", "the throughput of loads or stores across two pages",
        example="4 cycles", shown="across pages {text}",
    ),
    Attribute(
        "apart", _INSTRUCTION, "cycles", "apart", "the throughput of loads or stores that each go to a different line",
        example="1 cycle", shown="in lines of their own {text}",
    ),
    Attribute(
        "mixed", _INSTRUCTION, "cycles", "mixed",
        "cycles for which it occupies the resources that loads, stores and arithmetic share",
        example="0.25 cycles", shown="{text} of what loads and stores share",
    ),
    Attribute(
        "forward", _INSTRUCTION, "cycles", "forward",
        "store-to-load forwarding latency: cycles from a store to a load of the same bytes; for masked stores and for "
        "short `memset` and `memcpy`, how long the load waits",
        example="5 cycles", shown="forwarded in {text}",
    ),
    Attribute(
        "bypass", _INSTRUCTION, "cycles", "bypass",
        "further cycles until instructions of other classes can use its result",
        example="1 cycle", shown="{text} later for other classes",
    ),
    Attribute(
        "adder", _INSTRUCTION, "cycles", "adder",
        "cycles for which a fused multiply-add or an access of a general register keeps the units of `add` busy",
        example="0.5 cycles", shown="{text} of the units of add",
    ),
    Attribute(
        "slots", _INSTRUCTION, "count", "slots",
        "how many instructions a gather counts as, both at dispatch and in the window; for a call, the most places "
        "that it takes in the window",
        example="44", shown="counts as {number} instructions",
    ),
    *(
        Attribute(f"p{k}", _INSTRUCTION, None, f"p{k}", f"vector unit {k} executes it", value=True, shown=f"p{k}")
        for k in range(4)
    ),
)  # fmt: skip
