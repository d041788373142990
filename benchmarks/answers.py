"""How long `roofdsl sol` takes in a process that has its imports, as under `roofdsl mcp` and `roofdsl serve`.

For every shipped kernel on two machines, at random sizes, without what is kept on disk. Each kernel is asked about in a
copy of a process that has made a server's preparations. Its first answer contains all that is derived of the kernel for
every size; later ones are about other sizes or the other machine.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

from benchmarks.floors import kernels, sizes_of
from benchmarks.measure import markdown, show_seconds
from roofdsl import budget
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import load_machine
from roofdsl.server.preparations import preparations
from roofdsl.sets.child_process import in_child
from roofdsl.sol.answer import speed_of_light

MACHINES = ("haswell_e5_2695v3", "a100_80")
SIZES = 3
"""Of each kernel, on each machine."""

MEDIAN_S, MOST_S = 0.1, 1.0
"""The goals: for the median, and for 95 % of all answers."""

SLOWEST = 10
"""Answers that are listed."""

LONGEST_S = 600.0
"""Processor time for all answers about one kernel, each of which has a budget of its own."""


@dataclass(frozen=True)
class Answer:
    """One answer. seconds: of the processor. cut: whether the budget left something of it out."""

    kernel: str
    machine: str
    sizes: dict[str, int]
    seconds: float
    first: bool
    cut: bool


def measure_all(only: Sequence[str] | None = None, seconds: float = inf) -> list[Answer]:
    """The answers about all kernels, or about those in `only`; no kernel is begun after so many seconds."""
    for _ in preparations():
        pass
    end, found = time.monotonic() + seconds, list[Answer]()
    for name, kernel in kernels().items():
        if (not only or name in only) and time.monotonic() < end:
            found += _in_copy(name, kernel)
    return found


def _in_copy(name: str, kernel: Kernel) -> list[Answer]:
    """The answers about a kernel, in a copy of this process: what it leaves in memory helps no other kernel."""
    text = in_child(lambda: json.dumps([vars(answer) for answer in _answers(name, kernel)]), LONGEST_S)
    return [Answer(**fields) for fields in json.loads(text)]


def _answers(name: str, kernel: Kernel) -> Iterator[Answer]:
    """The answers about a kernel, as to calls of a server; refusals are left out, but derive what others need."""
    budget.serve()
    draw, first = random.Random(name), True
    for machine in MACHINES:
        for _ in range(SIZES):
            sizes = sizes_of(kernel, draw)
            if sizes is None:
                continue
            begun = budget.processor_s()
            try:
                with budget.beginning(budget.DEFAULT_S, budget.DEFAULT_BYTES, whole=False) as own, budget.region(name):
                    found = speed_of_light(kernel, sizes, load_machine(machine))
            except (CommandError, InputError, budget.Spent):
                continue
            cut = bool(found.why_not or own.left_out)
            yield Answer(name, machine, sizes, budget.processor_s() - begun, first, cut)
            first = False


def section(found: Sequence[Answer]) -> str:
    """The part of a report."""
    groups = [("first answers", [a for a in found if a.first]), ("later answers", [a for a in found if not a.first])]
    groups += [(f"later, {name}", [a for a in groups[1][1] if a.machine == name]) for name in MACHINES]
    groups += [("all", list(found)), ("all, nothing left out", [a for a in found if not a.cut])]
    rows = [(name, *_figures(sorted(a.seconds for a in own))) for name, own in groups if own]
    head = ("answers", "number", "median s", "95 % s", "slowest s", "within 0.1 s", "within 1 s")
    slowest = sorted(found, key=lambda a: -a.seconds)[:SLOWEST]
    listed = [
        (a.kernel, a.machine, ", ".join(f"{n}={v}" for n, v in a.sizes.items()), show_seconds(a.seconds),
         "yes" if a.first else "", "yes" if a.cut else "")
        for a in slowest
    ]  # fmt: skip
    return "\n\n".join(
        [
            "## Answers of `sol` in a warm process",
            f"Processor time of shipped kernels on {' and '.join(MACHINES)}, at {SIZES} random sizes each, without "
            "what is kept on disk.",
            markdown(head, rows, numeric=range(1, len(head))),
            f"{_verdict(sorted(a.seconds for a in found))} The slowest:",
            markdown(("kernel", "machine", "sizes", "s", "first", "left out"), listed, numeric=(3,)),
        ]
    )


def _figures(seconds: Sequence[float]) -> tuple[str, ...]:
    """The columns of a group of answers, from their times in order."""
    within = (f"{sum(s < limit for s in seconds) / len(seconds):.0%}" for limit in (MEDIAN_S, MOST_S))
    times = (median(seconds), most_of(seconds), seconds[-1])
    return (f"{len(seconds):,}", *map(show_seconds, times), *within)


def most_of(seconds: Sequence[float]) -> float:
    """The time within which 95 % of the answers come, from all times in order."""
    return seconds[max(0, -(-len(seconds) * 95 // 100) - 1)]


def _verdict(seconds: Sequence[float]) -> str:
    if not seconds:
        return "No answer was found."
    reached = median(seconds) < MEDIAN_S and most_of(seconds) < MOST_S
    return (
        f"The goals, a median under {MEDIAN_S:g} s and 95 % under {MOST_S:g} s, are "
        f"{'reached' if reached else 'not reached'}."
    )
