"""Does the floor of `roofdsl sol` hold?

For every shipped kernel and machine, at random sizes: the floor is at most the time as written, the expected time, the
best order found, and, in small caches, what orders of the executions load under optimal replacement (Belady). What
orders in tiles move across each boundary is at least what the floor says of it. No stored measurement is below it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path

from benchmarks.kernels import ROOT
from roofdsl import budget
from roofdsl.lang.check import check
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.source import Source
from roofdsl.loops.accesses import scalar_bytes
from roofdsl.loops.load import kernel as pick
from roofdsl.loops.load import load_file
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import numbers
from roofdsl.machine.find import load_machine, machine_of, shipped_machines, shipped_models
from roofdsl.machine.model import Machine
from roofdsl.measure.measurement import Measurement, load
from roofdsl.predict.fast_memories import REGISTER_BYTES
from roofdsl.sol.answer import speed_of_light
from roofdsl.sol.floor import Floor, floor
from roofdsl.sol.schedule import Schedule, in_tiles

REUSE = ("partition", "stencil", "bottleneck", "sweep")
"""Arguments about how often data that do not fit must be loaded again."""

MOST_ACCESSES = 40_000
"""Of a kernel at sizes that are simulated here: its executions are put in other orders in plain Python."""

ONE_S = 5.0
"""Processor time for one kernel on one machine at one size; what takes longer counts as refused."""

REGISTERS = 8
"""Of 4 B, of the machine whose cache is so small that orders matter."""

RUNS = ("validation-2026-11-21", "validation-2026-11-23", "blind-2026-11-23", "blind-2026-11-23-second")
"""Folders of benchmarks/reports with measurements and the machine that they were made on."""

SLACK = Fraction(97, 100)
"""A measured time may be so much below the floor: the machine's rates are themselves measured."""


@dataclass
class Checked:
    """What was compared. wrong: in words, with the kernel, the machine and the sizes."""

    sizes: int = 0
    orders: int = 0
    measured: int = 0
    refused: int = 0
    left_out: int = 0
    wrong: list[str] = field(default_factory=list)


@cache
def kernels() -> dict[str, Kernel]:
    """Every shipped kernel, by name."""
    found = {}
    for name, target in shipped_models().items():
        checked = load_file(target.path)
        if target.name in checked.kernels:
            found[name] = pick(checked, target.name)
    return found


def sizes_of(kernel: Kernel, draw: random.Random, most: int = 3000) -> dict[str, int] | None:
    """Random sizes that the kernel allows, small and large ones up to `most`; None if hundred attempts find none."""
    for _ in range(100):
        largest = min(most, draw.choice((8, 40, 300, 3000)))
        unit = draw.choice((1, 1, 8))
        found = {p.name: unit * draw.randint(1, max(1, largest // unit)) for p in kernel.parameters}
        try:
            return numbers(kernel, found)
        except CommandError:
            continue
    return None


def compare(name: str, kernel: Kernel, machine: Machine, sizes: Mapping[str, int], into: Checked) -> None:
    """One kernel on one machine at one size: the floor beside the other times."""
    try:
        with budget.beginning(ONE_S, budget.DEFAULT_BYTES, whole=False), budget.region(name):
            found = speed_of_light(kernel, sizes, machine)
    except (CommandError, InputError, budget.Spent):
        into.refused += 1
        return
    into.sizes += 1
    least = found.floor.time_s
    others: dict[str, Fraction | None] = {"the best order found": None if found.best is None else found.best.time_s}
    if found.written is not None:
        others["as written"] = found.written.bound_s
        if found.written.expected is not None:
            others["expected"] = Fraction(found.written.expected.expected_s)
    for what, seconds in others.items():
        if seconds is not None and seconds < least:
            into.wrong.append(
                f"{name} on {machine.name} at {dict(sizes)}: {what} takes {float(seconds / least):.4f} floors"
            )
    for order in in_tiles(kernel, machine, found.floor):
        into.wrong += _moved_too_little(f"{name} on {machine.name} at {dict(sizes)}", order, found.floor)


def _moved_too_little(where: str, order: Schedule, found: Floor) -> Iterator[str]:
    """Levels at which an order in tiles moves less than an argument about reuse says that every order must."""
    moved = dict(order.terms)
    for term in found.terms:
        if term.argument in REUSE and moved.get(term.name, term.time_s) < term.time_s:
            yield f"{where}: {term.name} moves {float(moved[term.name] / term.time_s):.4f} bounds {order.what}"


def tiny(cache_bytes: int) -> Machine:
    """A cache of that size and REGISTERS before a slow memory."""
    peaks = "".join(f"    peak {t} fma 1 TFLOP/s\n" for t in ("f64", "f32", "f16", "bf16", "f8"))
    text = f"machine tiny:\n{peaks}    cache L1 {cache_bytes} B, 1000 GB/s, line 16 B\n    memory DRAM 1 TiB, 1 GB/s\n"
    text += f"    units 1\n    multiprocessor warp 32, registers {REGISTERS}\n"
    return machine_of(check(Source("<tiny>", text)), None)


def compare_orders(name: str, kernel: Kernel, draw: random.Random, into: Checked) -> None:
    """The loads that the floor counts at a small cache, beside those of orders under optimal replacement."""
    from roofdsl.counts.traffic_at import access_count, traffic_at
    from roofdsl.loops.sized import sized
    from tests.bounds.belady import loads, random_order, scalars_of, tasks, tiled_order

    sizes = next((s for _ in range(30) if (s := _small(kernel, draw)) is not None), None)
    arrays = [a.type.bytes for a in kernel.arrays if not a.is_scalar]
    if sizes is None or len(set(arrays)) != 1:
        into.left_out += 1  # the simulation counts elements, which are of one size there
        return
    try:
        if access_count(sized(kernel, sizes)) > MOST_ACCESSES:
            into.left_out += 1
            return
        room = draw.randint(1, 60)
        least = floor(kernel, sizes, tiny(room * arrays[0]))
        written, free = tasks(kernel, sizes), tasks(kernel, sizes, scalars=True)
    except (CommandError, InputError, ValueError):
        into.left_out += 1
        return
    term = next(t for t in least.terms if t.name == "DRAM")
    loaded = term.amount - (traffic_at(kernel, sizes, None, None, "load_store").stores_bytes or 0)
    held = room + REGISTERS * REGISTER_BYTES // arrays[0]
    room_of = scalars_of(kernel)
    for order, more in ((written, 0), (random_order(free, draw, 4), room_of), (tiled_order(free, draw), room_of)):
        into.orders += 1
        moved = loads(order, held + more) * arrays[0] + scalar_bytes(kernel)[0]
        if loaded > moved:
            into.wrong.append(f"{name} at {dict(sizes)}, {room} elements: {loaded} B > {moved} B loaded")


def _small(kernel: Kernel, draw: random.Random) -> dict[str, int] | None:
    try:
        return numbers(kernel, {p.name: draw.randint(1, 9) for p in kernel.parameters})
    except CommandError:
        return None


def compare_measured(folder: Path, into: Checked, seconds: float) -> None:
    """Stored measurements on one core beside the floor; data that a cache may still hold need not be loaded."""
    machine = machine_of(load_file(folder / "machine.roof"), None)
    every, stored = kernels(), load(folder / "results.json")
    end = time.monotonic() + seconds
    for run in stored:
        kernel = every.get(run.kernel)
        if time.monotonic() > end:
            return
        if kernel is None or run.is_stale(kernel) or run.threads != 1 or run.by_launch:
            continue
        try:
            with budget.beginning(ONE_S, budget.DEFAULT_BYTES, whole=False), budget.region(run.kernel):
                found = floor(kernel, {n: v for n, v in run.parameters if n not in dict(kernel.constants)}, machine)
        except (CommandError, InputError, budget.Spent):
            into.refused += 1
            continue
        into.measured += 1
        least = max(_when_warm(found, machine, run), default=Fraction(0))
        if Fraction(min(run.times_s)) < SLACK * least:
            ratio = float(Fraction(min(run.times_s)) / least)
            into.wrong.append(
                f"{run.kernel} at {dict(run.parameters)}, {run.state}, in {folder.name}: {ratio:.4f} floors"
            )


def _when_warm(found: Floor, machine: Machine, run: Measurement) -> Iterator[Fraction]:
    """The terms, less what the caches in front of a boundary may hold at the start."""
    held = 0
    rates = {at.name: at.bandwidth_bytes_per_s for at in machine.hierarchy}
    terms = {t.name: t for t in found.terms}
    yield terms["compute"].time_s
    for at in machine.hierarchy:
        amount = terms[at.name].amount - (0 if run.state == "cold" else 2 * held)
        yield max(Fraction(0), Fraction(amount)) / rates[at.name]
        held += getattr(at, "size_bytes", 0) * getattr(at, "copies", 1)


def run(seconds: float, sizes: int = 200, seed: int = 0) -> Checked:
    """Every kernel on every machine at `sizes` sizes each, in random order until the time is over, then the rest."""
    every, machines = kernels(), [load_machine(name) for name in shipped_machines()]
    into, begun = Checked(), time.monotonic()
    for folder in RUNS:
        compare_measured(ROOT / "benchmarks" / "reports" / folder, into, seconds / 10)
    draw = random.Random(seed)
    tasks = [(name, machine) for name in every for machine in machines for _ in range(sizes)]
    draw.shuffle(tasks)
    for k, (name, machine) in enumerate(tasks):
        if time.monotonic() - begun > seconds:
            into.left_out += len(tasks) - k
            break
        found = sizes_of(every[name], draw)
        if found is not None:
            compare(name, every[name], machine, found, into)
        if k % 10 == 0:
            compare_orders(name, every[name], draw, into)
    return into


def section(found: Checked) -> str:
    """The counts as Markdown."""
    lines = [
        "## Floors",
        "",
        f"{found.sizes:,} floors at sizes of kernels on machines ({found.refused:,} refused, "
        f"{found.left_out:,} not tried), "
        f"{found.orders:,} orders under optimal replacement, {found.measured:,} stored measurements: "
        f"{len(found.wrong):,} below the floor.",
        *("", *(f"- {line}" for line in found.wrong[:50])),
    ]
    return "\n".join(lines)
