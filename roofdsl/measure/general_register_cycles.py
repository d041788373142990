"""Loads and stores of general registers: the counters, addresses and bounds that compiled code keeps on the stack.

Cores may load more of these in a cycle than vectors (Zen 5: four and two), and hand a stored value to a load at once,
by renaming its place on the stack like a register, where a vector waits for the store (Zen 5: almost 0 and 10 cycles).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from roofdsl.incore.rates import GENERAL
from roofdsl.lang.record import replace
from roofdsl.machine.instruction import Instruction
from roofdsl.measure.instruction_bench import Bench, best_fit, rounded

EXTRA = Fraction(11, 10)
"""Accesses to a different line each time cost extra if they take more than this many times the throughput."""

_COUNT, _ROUNDS, _APART = 32, 8, 320
_STREAMS = (1, 2, 3)
_LOADED = ("%rax", "%rcx", "%rdx", "%r8", "%r9", "%r10")
_STORED = "%r11"
_BESIDE = ((1, 1), (2, 2), (1, 3), (2, 4))
"""(vectors, general registers) that are loaded for each vector that is stored."""

_STORED_AT = 16384 + 2048
"""Where stores begin. Their last 12 bits must not be those of a load, which they would delay: loads end before 1728."""

_AMONG, _ADDS = 14, 5
"""Accesses in a loop, and the additions to each of them: so many that they decide the time."""

_CLEARED = (f"xorl {_STORED}d, {_STORED}d", "xorl %eax, %eax")


def general_loops(bench: Bench) -> None:
    """Loads alone, also across lines; stores alone; 1 to 3 loads to each store; loads beside those of vectors; a
    value that is added to in memory.
    """
    loads = [f"movq {8 * k}(%rdi), {_LOADED[k % 6]}" for k in range(_COUNT)]
    across = [f"movq {64 * k + 60}(%rdi), {_LOADED[k % 6]}" for k in range(_COUNT)]
    bench.add("general_load", loads, _COUNT / 4, _CLEARED)
    bench.add("general_load_split", across, _COUNT, _CLEARED)
    bench.add("general_store", [f"movq {_STORED}, {8 * k}(%rdi)" for k in range(_COUNT)], _COUNT / 2, _CLEARED)
    for streams in _STREAMS:
        text = []
        for k in range(_COUNT // 2):
            text += [f"movq {8 * k + _APART * s}(%rdi), {_LOADED[(k + s) % 6]}" for s in range(streams)]
            text.append(f"movq {_STORED}, {_STORED_AT + 8 * k}(%rdi)")
        bench.add(f"general_mixed_{streams}", text, _COUNT / 2 * streams / 2, _CLEARED)
    for vectors, general in _BESIDE:
        text = []
        for k in range(_COUNT // 2):
            text += [f"vmovsd {8 * k + _APART * v}(%rdi), %xmm{(k + v) % 12}" for v in range(vectors)]
            text += [f"movq {8 * k + _APART * (vectors + g)}(%rdi), {_LOADED[(k + g) % 6]}" for g in range(general)]
            text.append(f"vmovsd %xmm13, {_STORED_AT + 8 * k}(%rdi)")
        bench.add(f"general_beside_{vectors}_{general}", text, _COUNT / 2 * (vectors + general) / 2, _CLEARED)
    for access, move in (("load", "movq {at}(%rdi), {to}"), ("store", f"movq {_STORED}, {{at}}(%rdi)")):
        among = []
        for k in range(_AMONG):
            among.append(move.format(at=8 * k, to=_LOADED[k % 2]))
            among += [f"leaq 8(%rdi), {_LOADED[2 + (k + j) % 4]}" for j in range(_ADDS)]
        bench.add(f"general_{access}_among", among, _AMONG * _ADDS / 5, _CLEARED)
    bench.add("general_forward", ["addq -64(%rsp), %rax", "movq %rax, -64(%rsp)"] * _ROUNDS, _ROUNDS * 5, _CLEARED)


def general_registers(cycles: Mapping[str, float], known: Sequence[Instruction]) -> list[Instruction]:
    """The load and the store of a 64-bit general register.

    Pages are taken from the vector accesses of 64 bits in `known`, and so are lines apart, if they cost extra there.
    The latency is that of the 32-bit load, whose chain consists of loads of general registers.
    """
    plain = {i.cls: i for i in known if i.bits == 64 and i.cls in ("load", "store") and not i.type}
    load, store = cycles["general_load"] / _COUNT, cycles["general_store"] / _COUNT
    tried = (y * store / 25 for y in range(26))
    times = {s: cycles[f"general_mixed_{s}"] / (_COUNT // 2) for s in _STREAMS}
    mixed = best_fit(tried, lambda n, y: max(n * load, store, n * load + y), times)
    among = _of_vectors(load, mixed, plain, cycles)
    apart = {cls: i.apart if (i.apart or 0) > EXTRA * (i.throughput or 0) else None for cls, i in plain.items()}
    add = next(i for i in known if (i.cls, i.type) == ("add", GENERAL) and i.bits == 64)
    adder = {cls: _of_adds(cycles[f"general_{cls}_among"] / _AMONG, float(add.throughput or 1)) for cls in plain}
    latency = next(i.latency for i in known if (i.cls, i.type, i.bits) == ("load", "", 32))
    forward = max(0.0, cycles["general_forward"] / _ROUNDS - float(add.latency or 1))
    made_load = replace(
        plain["load"], type=GENERAL, latency=latency, throughput=rounded(load),
        split=rounded(cycles["general_load_split"] / _COUNT), apart=apart["load"],
        mixed=rounded(among) if among else None, adder=adder["load"],
    )  # fmt: skip
    made_store = replace(
        plain["store"], type=GENERAL, throughput=rounded(store), apart=apart["store"],
        mixed=rounded(mixed) if mixed else None, forward=rounded(forward), adder=adder["store"],
    )  # fmt: skip
    return [made_load, made_store]


def _of_adds(cycles: float, add: float) -> Fraction | None:
    """The cycles for which an access keeps the units of additions busy, from those of an access and _ADDS additions;
    None if these take hardly longer than the additions.
    """
    longer = cycles - _ADDS * add
    return rounded(longer) if longer > add / 2 else None


def _of_vectors(load: float, stored: float, plain: Mapping[str, Instruction], cycles: Mapping[str, float]) -> float:
    """The cycles for which such a load occupies what loads and stores of vectors share: what best explains the times of
    both kinds of loads together with stores. 0 if vectors share nothing. stored: what a store takes of what all
    accesses share.
    """
    x, y = (float(plain[cls].mixed or 0) for cls in ("load", "store"))
    alone, store = (float(plain[cls].throughput or 1) for cls in ("load", "store"))
    if not x:
        return 0.0
    tried = (z * x / 25 for z in range(26))
    times = {b: cycles[f"general_beside_{b[0]}_{b[1]}"] / (_COUNT // 2) for b in _BESIDE}

    def together(of: tuple[int, int], z: float) -> float:
        vectors, general = of
        return max(vectors * alone, store, (vectors + general) * load + stored, vectors * x + general * z + y)

    return best_fit(tried, together, times)
