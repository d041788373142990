"""The costs of instructions on this core: latency, throughput and units of each class, and how the core executes.

Every number is the shortest of many short runs, in cycles given by a chain of dependent additions
(`stopwatch.Stopwatch`). The loops stay within the nearest cache. This works on x86-64 with AVX2, and covers 512-bit
vectors if the processor has them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from roofdsl.lang.record import Record, replace
from roofdsl.machine.core import Core
from roofdsl.machine.instruction import Instruction
from roofdsl.measure.adders import adder_loops, with_adders
from roofdsl.measure.general_register_cycles import general_loops, general_registers
from roofdsl.measure.instruction_bench import MANTISSAS, ONE, REPEATS, ROTATED, Bench, operands, rounded
from roofdsl.measure.instruction_texts import Template, filled, templates
from roofdsl.measure.load_store_cycles import among_loops, memory, memory_loops, with_shares
from roofdsl.measure.out_of_order_core import core_loops, core_of, queue, refill
from roofdsl.measure.port_sets import Sets, find_sets, matched

RUNS = {True: 12, False: 40}
"""How often each loop runs, in a quick and in a full characterization."""


class CoreRates(Record):
    """The instructions and the core as a machine states them, and the usual and the highest clock in hertz. shared:
    (the number of loops that were never measured without somebody else on the core, the number of all loops).
    """

    instructions: tuple[Instruction, ...]
    core: Core
    clock_hz: float
    highest_hz: float
    shared: tuple[int, int] = (0, 0)


def measure_core(quick: bool = False, tell: Callable[[float, str], None] | None = None) -> CoreRates:
    """Measures one core in a few seconds. Raises CommandError if its instructions cannot be assembled."""
    say = tell or (lambda part, what: None)
    bench = Bench(RUNS[quick])
    known = [t for t in templates() if t.needs in bench.has or t.needs == "avx2"]
    _arithmetic_loops(bench, known)
    adder_loops(bench, known)
    memory_loops(bench)
    general_loops(bench)
    among_loops(bench, known)
    core_loops(bench)
    cycles = bench.measure(say)
    instructions = [*_arithmetic(known, cycles), *_general(cycles), *memory(bench, cycles)]
    instructions = with_adders(with_shares(instructions, known, cycles), cycles)
    instructions += general_registers(cycles, instructions)
    core = core_of(cycles)
    core = replace(core, waiting=queue(bench.texts, cycles, core, instructions))
    core = replace(core, refill=refill(cycles, core, instructions))
    return CoreRates(tuple(instructions), core, bench.usual_hertz, bench.hertz, (bench.shared, len(bench.texts)))


# ---- arithmetic ----


def _groups(known: Sequence[Template]) -> Iterator[list[Template]]:
    """The classes whose pairs are measured: those of f64, i32 and i16 at one width, conversions from f32, and moves
    from general registers.

    Scalars are measured with the 128-bit classes.
    """
    for bits in (128, 256, 512):
        yield [
            t for t in known
            if (t.bits == bits or (bits == 128 and t.bits < 128)) and t.cls not in (*_SLOW, *_ALIKE)
            and not (t.type == "f32" and t.cls != "convert") and (t.type not in ("i64", "f16") or t.cls == "move")
        ]  # fmt: skip


_SLOW = {"div": 16.0, "sqrt": 24.0}
_BYPASSED = ("add", "mul", "max", "fma")
"""Classes whose results may reach other classes later than their own."""

_ALIKE = {
    "extract": "permute_f64", "insert": "permute_f64", "exchange": "permute_f64", "horizontal": "shuffle_f64",
    "shift_each": "shift_i32",
}  # fmt: skip
"""Classes that are taken to run on the units of another one, whose pairs are measured."""


def _operands(t: Template) -> tuple[str, ...]:
    """Sets the registers to the numbers that a class computes with, if they are not the doubles of the setup, all 1."""
    wide = t.bits == 512
    if t.cls in _SLOW:
        return operands(*MANTISSAS[t.type], wide)
    if t.type == "f32" and t.cls != "convert":
        return operands(ONE["f32"], ONE["f32"], wide)
    return ()


def _arithmetic_loops(bench: Bench, known: Sequence[Template]) -> None:
    for t in known:
        text = [filled(t.text, t.bits, 2 + k % ROTATED) for k in range(REPEATS)]
        before = _operands(t)
        bench.add(f"alone_{t.key}", text, REPEATS * _SLOW.get(t.cls, 1.0), before)
        if t.chain:
            bench.add(
                f"chain_{t.key}",
                [filled(c, t.bits, 2) for c in t.chain] * 8,
                32 * len(t.chain) * _SLOW.get(t.cls, 1) / 4,
                before,
            )
        if t.cls in _BYPASSED and t.type in ONE:
            other = ("vpandq" if t.bits == 512 else "vandpd") + " {a}, {c}, {c}"
            bench.add(f"bypass_{t.key}", [filled(c, t.bits, 2) for c in (*t.chain, other)] * 8, 8 * 5, before)
    for group in _groups(known):
        for a, b in itertools.permutations(group, 2):
            bench.add(f"pair_{a.key}_{b.key}", _together(a, b, a), 3 * _ROUNDS)
        for a, b in _once_each(group):
            bench.add(f"both_{a.key}_{b.key}", _together(a, b), 2 * _ROUNDS)


_ROUNDS, _OWN = 24, (8, 6)
"""How often two classes take turns in a loop, and the registers that each of them writes in turn: so many that no
fused multiply-add waits for the one that wrote its register before.
"""


def _together(*classes: Template) -> list[str]:
    """A loop of two classes; the first one may come twice in each round."""
    text, written = [], {t.key: 0 for t in classes}
    for _ in range(_ROUNDS):
        for t in classes:
            first = t.key == classes[0].key
            register = written[t.key] % _OWN[0] if first else _OWN[0] + written[t.key] % _OWN[1]
            text.append(filled(t.text, t.bits, register))
            written[t.key] += 1
    return text


def _once_each(group: Sequence[Template]) -> Iterator[tuple[Template, Template]]:
    """All pairs of a group; one with the longest time to its result, the fused multiply-add, comes first."""
    for a, b in itertools.combinations(group, 2):
        yield (b, a) if b.cls == "fma" else (a, b)


def _arithmetic(known: Sequence[Template], cycles: dict[str, float]) -> list[Instruction]:
    alone = {t.key: cycles[f"alone_{t.key}"] / REPEATS for t in known}
    sets: Sets = {}
    for group in _groups(known):
        if not group:
            continue
        own = {t.key: alone[t.key] for t in group}
        pairs = {(a.key, b.key): cycles[f"pair_{a.key}_{b.key}"] / _ROUNDS for a, b in itertools.permutations(group, 2)}
        both = {(a.key, b.key): cycles[f"both_{a.key}_{b.key}"] / _ROUNDS for a, b in _once_each(group)}
        count = min(4, max(1, round(1 / min(own.values()))))
        sets |= matched(find_sets(own, pairs, count, both), sets)
    found = []
    for t in known:
        units = _units(t, sets)
        made = Instruction(t.cls, t.type, t.bits, _latency(t, cycles), rounded(alone[t.key]), bypass=_bypass(t, cycles))
        found.append(replace(made, p0=0 in units, p1=1 in units, p2=2 in units, p3=3 in units))
    return found


def _units(t: Template, sets: Sets) -> frozenset[int]:
    """The units of a class; those of a similar class if its own pairs were not measured."""
    if t.cls in _SLOW:
        return frozenset()  # they have a separate divider
    likely = [t.key, t.key.replace("f32", "f64").replace("_32", "_64"), f"{_ALIKE.get(t.cls)}_{t.bits}"]
    if t.type == "f16":
        likely = [f"convert_f64_{t.bits}"]
    elif t.cls == "mul" and t.type == "i64":
        likely = [f"mul_i32_{t.bits}"]
    elif t.cls == "convert" and t.type == "i64":
        likely = ["convert_f32_32"]
    return next((sets[key] for key in (*likely, f"add_i32_{t.bits}") if key in sets), frozenset())


def _latency(t: Template, cycles: dict[str, float]) -> Fraction | None:
    if not t.chain:
        return None
    found = cycles[f"chain_{t.key}"] / 8
    beside = {"compare_f64": "blend", "sqrt_f64": "logic", "sqrt_f32": "logic"}.get(f"{t.cls}_{t.type}")
    if beside is not None:  # the other instruction in the chain
        found -= cycles[f"chain_{beside}_f64_{max(t.bits, 128)}"] / 8
    return rounded(max(found / t.links, 0.5))


def _bypass(t: Template, cycles: dict[str, float]) -> Fraction | None:
    """How much longer a chain with logic between takes than the two alone, in half cycles; None if it does not."""
    if f"bypass_{t.key}" not in cycles:
        return None
    alone = cycles[f"chain_{t.key}"] + cycles[f"chain_logic_f64_{max(t.bits, 128)}"]
    longer = (cycles[f"bypass_{t.key}"] - alone) / 8
    return Fraction(round(2 * longer), 2) if longer > 0.25 else None


def _general(cycles: dict[str, float]) -> list[Instruction]:
    found = [
        Instruction(cls, "i64", 64, rounded(cycles[f"chain_int_{cls}"] / 32), rounded(cycles[f"alone_int_{cls}"] / 42))
        for cls in ("add", "mul", "shift", "blend")
    ]
    div = Instruction("div", "i64", 64, rounded(cycles["chain_int_div"] / 8), rounded(cycles["alone_int_div"] / 8))
    return [*found, div]
