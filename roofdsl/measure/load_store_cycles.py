"""Loads, stores and gathers of this core: the cost of each width within a line, across lines, and among others."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from roofdsl.lang.record import replace
from roofdsl.machine.instruction import Instruction
from roofdsl.measure.instruction_bench import Bench, best_fit, rounded
from roofdsl.measure.instruction_texts import LOADS, Template, filled, register


def _move(bits: int, load: bool, at: int, number: int, mask: str = "") -> str:
    name = f"v{LOADS[bits]}"
    reg = register(bits, number)
    return f"{name} {at}(%rdi), {reg}" if load else f"{name} {reg}, {at}(%rdi){mask}"


def _widths(bench: Bench) -> list[int]:
    return [32, 64, 128, 256, *([512] if "avx512f" in bench.has else [])]


_AMONG_GATHERS = 192
"""The instructions between two gathers, more than the core dispatches during one."""

_COUNT = 32
"""Loads or stores in a loop of one kind."""

_STREAMS = (1, 2, 3, 4)
_AMONG_STREAMS, _AMONG_TRIPS = (1, 2), 32
_STARTS = ("leaq 17984(%rdi), %rcx",)
_AMONG = ("fma", "mul", "add", "max", "logic", "shuffle", "blend")


def memory_loops(bench: Bench) -> None:
    count = _COUNT
    for bits in _widths(bench):
        size = bits // 8
        for load in (True, False):
            kind = "load" if load else "store"
            bench.add(f"{kind}_{bits}", [_move(bits, load, k * size % 2048, k % 12) for k in range(count)], count / 2)
            lines = [_move(bits, load, 64 * k, k % 12) for k in range(count)]
            bench.add(f"{kind}_apart_{bits}", lines, count)
            if size > 1:
                across = [_move(bits, load, 64 * (k % 32) + 64 - size // 2, k % 12) for k in range(count)]
                bench.add(f"{kind}_split_{bits}", across, count)
                pages = [_move(bits, load, 4096 * (1 + k % 8) - size // 2, k % 12) for k in range(count)]
                bench.add(f"{kind}_page_{bits}", pages, 8 * count)
        for streams in _STREAMS:
            bench.add(f"mixed_{streams}_{bits}", _mixed(bits, streams), 16 * streams)
        if bits >= 128:
            narrowed = [_move(bits, True, size * g, g) for g in range(4)]
            narrowed += [f"vcvtps2ph $4, {register(bits, g)}, {4096 + size // 2 * g}(%rdi)" for g in range(4)]
            bench.add(f"narrow_{bits}", narrowed, 8)
        if bits >= 64:
            add = {64: "vaddsd"}.get(bits, "vaddpd")
            reg, one = register(bits, 2), register(bits, 15)
            bench.add(f"forward_{bits}", [f"{add} (%rdi), {one}, {reg}", _move(bits, False, 0, 2)] * 8, 8 * 10)
            bench.add(
                f"latency_{bits}", [_indexed(bits), "vmovq %xmm2, %rax"] * 8, 8 * 9,
                [f"movq $0, {k}(%rdi)" for k in range(0, 64, 8)],
            )  # fmt: skip
        if bits >= 128 and "avx512vl" in bench.has:
            bench.add(
                f"masked_store_{bits}",
                [_move(bits, False, k * size % 2048, k % 12, "{%k1}") for k in range(count)],
                count,
            )
            for name, mask in (("plain", ""), ("masked", "{%k1}")):
                loaded = [_move(bits, False, 0, 15, mask), _move(bits, True, 0, 2)]
                bench.add(f"{name}_loaded_{bits}", loaded * 8, 8 * 12)
        if bits in (128, 256) and "avx512vl" not in bench.has:
            _masked_loops(bench, bits)
    bench.add("latency_32", ["movl (%rdi,%rax), %eax"] * 8, 8 * 5, ["movq $0, (%rdi)"])
    halves = ["vmovsd %xmm2, (%rdi)", "vmovsd %xmm2, 8(%rdi)", "vaddpd (%rdi), %xmm15, %xmm2"]
    bench.add("blocked", halves * 8, 8 * 20)
    _gather_loops(bench)


_MASK = ("vpcmpeqd %ymm13, %ymm13, %ymm13",)
_MASKED = (("f64", "vmaskmovpd"), ("f32", "vmaskmovps"))


def _masked(name: str, bits: int, load: bool, at: int, number: int) -> str:
    """A load or store of AVX that leaves out the elements whose sign in register 13 is not set."""
    mask, reg = register(bits, 13), register(bits, number)
    return f"{name} {at}(%rdi), {mask}, {reg}" if load else f"{name} {reg}, {mask}, {at}(%rdi)"


def _masked_loops(bench: Bench, bits: int) -> None:
    """Masked loads and stores on processors without mask registers, some of which take many cycles for each."""
    size = bits // 8
    for type_name, name in _MASKED:
        for kind, load in (("load", True), ("store", False)):
            text = [_masked(name, bits, load, k * size % 2048, k % 12) for k in range(_COUNT)]
            bench.add(f"masked_{kind}_{type_name}_{bits}", text, 4 * _COUNT, _MASK)
        for streams in _STREAMS:
            text = []
            for k in range(16):
                text += [_move(bits, True, k * size + (2048 + 320) * s, k % 12) for s in range(streams)]
                text.append(_masked(name, bits, False, k * size + 16384 + 1600, 12))
            bench.add(f"masked_mixed_{streams}_{type_name}_{bits}", text, 16 * (4 + streams), _MASK)


def _masked_moves(cycles: dict[str, float], bits: int, load: Instruction, store: Instruction) -> list[Instruction]:
    """Masked loads and stores of each type, with what they take of the resources that all loads and stores share."""
    found = []
    for type_name, _ in _MASKED:
        if f"masked_store_{type_name}_{bits}" not in cycles:
            continue
        alone = {kind: cycles[f"masked_{kind}_{type_name}_{bits}"] / _COUNT for kind in ("load", "store")}
        share = float(load.mixed or 0) / float(load.throughput or 1) * alone["load"]
        times = {s: cycles[f"masked_mixed_{s}_{type_name}_{bits}"] / 16 for s in _STREAMS}
        shares = {"load": share, "store": _share_of_store(load, alone["store"], times)}
        for plain in (load, store):
            own, mixed = rounded(alone[plain.cls]), shares[plain.cls]
            made = Instruction(f"masked_{plain.cls}", type_name, bits, plain.latency, own)
            found.append(replace(made, mixed=rounded(mixed) if mixed else None))
    return found


def _share_of_store(load: Instruction, store: float, times: dict[int, float]) -> float:
    """The cycles y for which such a store occupies the resources that it shares with loads: the y that best explains
    the times of n loads and a store as max(n load, store, n x + y).
    """
    x, alone = float(load.mixed or load.throughput or 1), float(load.throughput or 1)
    tried = (k / 50 for k in range(1 + int(100 * store)))
    return best_fit(tried, lambda n, y: max(n * alone, store, n * x + y), times)


def _indexed(bits: int) -> str:
    return f"v{LOADS[bits]} (%rdi,%rax), {register(bits, 2)}"


def _mixed(bits: int, streams: int) -> list[str]:
    """`streams` loads to one store, in the order in which compilers write them when they unroll by four."""
    size, text = bits // 8, []
    for k in range(0, 16, 4):
        for s in range(streams):
            text += [_move(bits, True, (k + g) * size + (2048 + 320) * s, g + 4 * (s % 2)) for g in range(4)]
        text += [_move(bits, False, (k + g) * size + 16384 + 1600, 13) for g in range(4)]
    return text


def among_loops(bench: Bench, known: Sequence[Template]) -> None:
    """Arithmetic between loads and stores, as in nearly every loop, and the same loops without it."""
    for t in _among(known):
        for streams in _AMONG_STREAMS:
            name, other = f"among_{t.key}_{streams}", f"copied_{t.bits}_{streams}"
            if other not in bench.texts:
                bench.add(other, _streamed(t.bits, streams), 4 * _AMONG_TRIPS * streams, _STARTS)
            bench.add(name, _streamed(t.bits, streams, t.text), 4 * _AMONG_TRIPS * streams, _STARTS)
            bench.compare(name, other)


def _streamed(bits: int, streams: int, operation: str = "") -> list[str]:
    """A loop that loads from one array, or from two (`streams`), and stores to the second one, unrolled by four;
    `operation` comes before each store.
    """
    size, name = bits // 8, f"v{LOADS[bits]}"
    text = ["xorl %eax, %eax", ".p2align 6", "77:"]
    for s, base in enumerate(("%rdi", "%rcx")[:streams]):
        text += [f"{name} {size * g}({base},%rax), {register(bits, g + 4 * s)}" for g in range(4)]
    if operation:  # a fused one uses the loaded value as its sum
        text += [filled(operation, bits, g) for g in range(4)]
    text += [f"{name} {register(bits, g)}, {size * g}(%rcx,%rax)" for g in range(4)]
    return [*text, f"addq ${4 * size}, %rax", f"cmpq ${4 * size * _AMONG_TRIPS}, %rax", "jne 77b"]


def _among(known: Sequence[Template]) -> list[Template]:
    return [t for t in known if t.type == "f64" and t.bits >= 128 and t.cls in _AMONG]


def with_shares(found: Sequence[Instruction], known: Sequence[Template], cycles: dict[str, float]) -> list[Instruction]:
    """The instructions, with `mixed` for vector arithmetic: how long it occupies the resources that loads and stores
    share.

    It is measured in f64, and assumed to be the same for all float types.
    """
    own = {(i.cls, i.type, i.bits): i for i in found}
    shares: dict[tuple[str, int], float] = {}
    for t in _among(known):
        load, store = own[("load", "", t.bits)], own[("store", "", t.bits)]
        longer = {s: cycles[f"among_{t.key}_{s}"] for s in _AMONG_STREAMS}
        shares[(t.cls, t.bits)] = share_of(load, store, own[(t.cls, t.type, t.bits)], longer)
    made = []
    for i in found:
        share = shares.get((i.cls, i.bits), 0.0) if i.type.startswith("f") else 0.0
        made.append(replace(i, mixed=rounded(share)) if share else i)
    return made


def share_of(load: Instruction, store: Instruction, operation: Instruction, longer: dict[int, float]) -> float:
    """The cycles z for which an operation occupies the resources that loads and stores share.

    longer: how many times as long n loads and a store take with the operation, by n. Without it, they take max(n load,
    store, n x + y), and this z best explains that they take max(n load, store, operation, n x + y + z) with it.
    """
    x, y, most = float(load.mixed or 0), float(store.mixed or 0), float(operation.throughput or 1)

    def alone(n: int) -> float:
        return max(n * float(load.throughput or 1), float(store.throughput or 1), n * x + y)

    times = {n: alone(n) * more for n, more in longer.items()}
    if not x or all(t < 1.04 * max(alone(n), most) for n, t in times.items()):
        return 0.0
    tried = (k / 50 for k in range(1 + int(50 * most)))
    return best_fit(tried, lambda n, z: max(alone(n), most, n * x + y + z), times)


def _gather_loops(bench: Bench) -> None:
    if "avx512vl" not in bench.has:
        return
    nops = ["nop"] * _AMONG_GATHERS
    bench.add("gather_without", nops * 4, 4 * 30)
    for bits in (256, 512):
        if bits == 512 and "avx512f" not in bench.has:
            continue
        for type_name, name, index in (("f64", "vgatherqpd", bits), ("f32", "vgatherdps", bits)):
            where = register(index, 13)
            one = [f"kxnorw %k1, %k1, %k1", f"{name} (%rdi,{where},8), {{d}} {{{{%k1}}}}"]  # noqa: F541
            text = [line.format(d=register(bits, 2 + k % 8)) for k in range(8) for line in one]
            zero = [f"vpxor %xmm13, %xmm13, %xmm13"]  # noqa: F541
            bench.add(f"gather_{type_name}_{bits}", text, 8 * 6, zero)
            among = [line for k in range(0, 8, 2) for line in (*text[k : k + 2], *nops)]
            bench.add(f"gather_slots_{type_name}_{bits}", among, 4 * 30, zero)
            bench.compare(f"gather_slots_{type_name}_{bits}", "gather_without")
            joined = register(index, 13)
            chain = [
                one[0],
                one[1].format(d=register(bits, 2)),
                f"vpand{'q' if bits == 512 else ''} {register(bits, 2)}, {joined}, {joined}",
            ]
            bench.add(f"gather_chain_{type_name}_{bits}", chain * 4, 4 * 25, zero)


def memory(bench: Bench, cycles: dict[str, float]) -> list[Instruction]:
    found: list[Instruction] = []
    count = _COUNT
    for bits in _widths(bench):
        load, store = cycles[f"load_{bits}"] / count, cycles[f"store_{bits}"] / count
        shared = _shares(load, store, {s: cycles[f"mixed_{s}_{bits}"] / 16 for s in _STREAMS})
        move = cycles["chain_move_i64_64"] / 16
        latency = cycles["latency_32"] / 8 if bits == 32 else cycles[f"latency_{bits}"] / 8 - move
        for kind, alone, share in (("load", load, shared[0]), ("store", store, shared[1])):
            forward = None
            if kind == "store" and bits >= 64:
                added = cycles[f"bypass_add_f64_{bits}"] - cycles[f"chain_logic_f64_{max(bits, 128)}"]
                forward = rounded((cycles[f"forward_{bits}"] - added) / 8)
            made = Instruction(
                kind, "", bits, rounded(latency) if kind == "load" else None, rounded(alone),
                rounded(cycles[f"{kind}_split_{bits}"] / count), rounded(cycles[f"{kind}_page_{bits}"] / count),
                rounded(cycles[f"{kind}_apart_{bits}"] / count), rounded(share) if share else None, forward,
            )  # fmt: skip
            found.append(made)
        plain_load, plain_store = found[-2:]
        if f"masked_store_{bits}" in cycles:
            masked = rounded(cycles[f"masked_store_{bits}"] / count)
            waits = waits_for(cycles[f"masked_loaded_{bits}"] / 8, cycles[f"plain_loaded_{bits}"] / 8)
            found.append(replace(plain_store, cls="masked_store", throughput=masked, forward=waits))
        found += _masked_moves(cycles, bits, plain_load, plain_store)
        if f"narrow_{bits}" in cycles:  # in the order of compilers that unroll by four
            found.append(Instruction("narrow", "f16", bits, None, rounded(cycles[f"narrow_{bits}"] / 4)))
    for name, value in cycles.items():
        if name.startswith("gather_chain"):
            _, _, type_name, bits_text = name.split("_")
            latency = value / 4 - cycles[f"chain_logic_f64_{bits_text}"] / 8
            own = cycles[f"gather_{type_name}_{bits_text}"] / 8
            slots = gather_slots(cycles[f"gather_slots_{type_name}_{bits_text}"])
            gather = Instruction("gather", type_name, int(bits_text), rounded(latency), rounded(own), slots=slots)
            found.append(gather)
    return found


def waits_for(loaded: float, usual: float) -> Fraction | None:
    """The cycles that a load waits for the store before it, if the core does not hand over the data of such stores.

    loaded: cycles of a store and a load of its bytes, of which many follow each other; usual: those of pairs that do
    not wait.
    """
    return rounded(loaded) if loaded > 2 * usual else None


def gather_slots(longer: float) -> int:
    """The dispatch slots of a gather, from how many times as long so many instructions take with one among them: it
    only adds its own slots, and that of the instruction that sets its mask.
    """
    return max(1, round((longer - 1) * _AMONG_GATHERS - 1))


def _shares(load: float, store: float, mixed: dict[int, float]) -> tuple[float, float]:
    """The cycles for which a load and a store occupy their shared resources: those that best explain the mixtures'
    times; 0 if the loads or the store alone explain them.

    A mixture of n loads with a store takes max(n load, store, n x + y). They are found by search, in steps of a
    fiftieth of a cycle.
    """
    if all(t < 1.04 * max(n * load, store) for n, t in mixed.items()):
        return 0.0, 0.0

    tried = ((i / 50, j / 50) for i in range(76) for j in range(151))
    return best_fit(tried, lambda n, share: max(n * load, store, n * share[0] + share[1]), mixed)
