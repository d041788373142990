"""What instructions cost on this core: latency, throughput and units of each class, and how the core executes.

Every number is the shortest of many short runs, in cycles of a chain of dependent additions that runs beside it
(`assembled.Stopwatch`). The loops stay within the nearest cache. x86-64 with AVX2; widths of 512 bits where it has them.
"""

from __future__ import annotations

import itertools
import platform
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from roofdsl.incore.assembly import read
from roofdsl.incore.classes import work_of
from roofdsl.incore.rates import Rates
from roofdsl.incore.window import Clock
from roofdsl.lang.record import Record, replace
from roofdsl.machine.model import Core, Instruction
from roofdsl.measure.assembled import Stopwatch, loops
from roofdsl.measure.instruction_texts import LOADS, Template, filled, register, templates
from roofdsl.measure.port_sets import find_sets, matched

RUNS = {True: 12, False: 40}
"""How often each loop runs, in a quick and in a full characterization."""

_REPEATS = 24
_ROTATED = 12
_BUFFER = 1 << 16
_SETUP = (
    "movq $0x3ff0000000000000, %rax", "vmovq %rax, %xmm15", "vbroadcastsd %xmm15, %ymm15", "vmovapd %ymm15, %ymm14",
    *(f"vmovapd %ymm15, %ymm{k}" for k in range(14)), "xorl %eax, %eax",
)  # fmt: skip
_SETUP_512 = ("vbroadcastsd %xmm15, %zmm15", *(f"vmovapd %zmm15, %zmm{k}" for k in range(15)), "kxnorw %k1, %k1, %k1",
              "kxnorw %k2, %k2, %k2")  # fmt: skip

_SINGLES = (
    "movq $0x3f8000003f800000, %rax", "vmovq %rax, %xmm15", "vbroadcastsd %xmm15, %ymm15",
    *(f"vmovapd %ymm15, %ymm{k}" for k in range(15)), "xorl %eax, %eax",
)  # fmt: skip


class CoreRates(Record):
    """The instructions and the core as a machine states them, and the clock in hertz."""

    instructions: tuple[Instruction, ...]
    core: Core
    clock_hz: float


def is_known() -> bool:
    """Whether this processor's instructions are those that are measured here."""
    return platform.machine().lower() in ("x86_64", "amd64") and "avx2" in _features() and "fma" in _features()


def _features() -> frozenset[str]:
    import llvmlite.binding as llvm

    return frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)


class _Bench:
    """Texts that are assembled together, and the buffer that they work on."""

    def __init__(self, runs: int) -> None:
        import numpy as np

        self.has = _features()
        self.block: Any = np.zeros(_BUFFER + 8192, np.uint8)
        self.address = (self.block.ctypes.data + 4095) // 4096 * 4096
        self.texts: dict[str, list[str]] = {}
        self.before: dict[str, Sequence[str]] = {}
        self.lengths: dict[str, float] = {}
        self.runs = runs

    @property
    def setup(self) -> tuple[str, ...]:
        return (*_SETUP, *(_SETUP_512 if "avx512f" in self.has else ()))

    def add(self, name: str, text: Sequence[str], cycles: float, before: Sequence[str] = ()) -> None:
        """A loop; `cycles` is about what one round takes."""
        self.texts[name], self.lengths[name] = list(text), cycles
        self.before[name] = (*self.setup, *before)

    def measure(self, tell: Callable[[float, str], None]) -> dict[str, float]:
        """Cycles of one round of each loop."""
        found = {}
        watch = Stopwatch(loops(self.texts, self.before), self.address, self.runs)
        for k, name in enumerate(self.texts):
            tell(k / len(self.texts), name.replace("_", " "))
            found[name] = watch.cycles(name, self.lengths[name])
        self.hertz = watch.hertz()
        return found


def measure_core(quick: bool = False, tell: Callable[[float, str], None] | None = None) -> CoreRates:
    """Measure one core in a few seconds. Raises CommandError where its instructions cannot be assembled."""
    say = tell or (lambda part, what: None)
    bench = _Bench(RUNS[quick])
    known = [t for t in templates() if t.needs in bench.has or t.needs == "avx2"]
    _arithmetic_loops(bench, known)
    _memory_loops(bench)
    _core_loops(bench)
    cycles = bench.measure(say)
    instructions = [*_arithmetic(known, cycles), *_general(cycles), *_memory(bench, cycles)]
    core = _core(cycles)
    core = replace(core, waiting=_queue(bench.texts, cycles, core, instructions))
    return CoreRates(tuple(instructions), core, bench.hertz)


# ---- arithmetic ----


def _groups(known: Sequence[Template]) -> Iterator[list[Template]]:
    """Classes whose pairs are measured: those of f64, i32 and i16 at one width; scalars are with 128 bits."""
    for bits in (128, 256, 512):
        yield [
            t for t in known
            if (t.bits == bits or (bits == 128 and t.bits < 128)) and t.cls not in ("div", "sqrt")
            and not (t.type == "f32" and t.cls != "convert") and t.type not in ("i64", "f16")
        ]  # fmt: skip


def _ones(t: Template) -> tuple[str, ...]:
    """Ones of single precision where a class computes with them; the setup's are doubles."""
    if t.type != "f32" or t.cls == "convert":
        return ()
    wide = ("vbroadcastsd %xmm15, %zmm15", *(f"vmovapd %zmm15, %zmm{k}" for k in range(15))) if t.bits == 512 else ()
    return (*_SINGLES, *wide)


def _arithmetic_loops(bench: _Bench, known: Sequence[Template]) -> None:
    slow = {"div": 16.0, "sqrt": 24.0}
    for t in known:
        text = [filled(t.text, t.bits, 2 + k % _ROTATED) for k in range(_REPEATS)]
        ones = _ones(t)
        bench.add(f"alone_{t.key}", text, _REPEATS * slow.get(t.cls, 1.0), ones)
        if t.chain:
            bench.add(
                f"chain_{t.key}",
                [filled(c, t.bits, 2) for c in t.chain] * 8,
                32 * len(t.chain) * slow.get(t.cls, 1) / 4,
                ones,
            )
    for group in _groups(known):
        for a, b in itertools.combinations(group, 2):
            both = [
                filled(t.text, t.bits, 2 + (2 * k + j) % _ROTATED)
                for k in range(_REPEATS // 2)
                for j, t in enumerate((a, b))
            ]
            bench.add(f"pair_{a.key}_{b.key}", both, _REPEATS)


def _arithmetic(known: Sequence[Template], cycles: dict[str, float]) -> list[Instruction]:
    alone = {t.key: cycles[f"alone_{t.key}"] / _REPEATS for t in known}
    sets: dict[str, frozenset[int]] = {}
    for group in _groups(known):
        if not group:
            continue
        own = {t.key: alone[t.key] for t in group}
        pairs = {
            (a.key, b.key): cycles[f"pair_{a.key}_{b.key}"] / (_REPEATS // 2)
            for a, b in itertools.combinations(group, 2)
        }
        units = min(4, max(1, round(1 / min(own.values()))))
        sets |= matched(find_sets(own, pairs, units), sets)
    found = []
    for t in known:
        latency = _latency(t, cycles)
        units = (
            sets.get(t.key)
            or sets.get(t.key.replace("f32", "f64").replace("_32", "_64"))
            or sets.get(f"add_i32_{t.bits}")
        )
        if t.cls in ("div", "sqrt") or units is None:
            units = frozenset()
        if t.type == "f16":
            units = sets.get(f"convert_f64_{t.bits}", units)
        if t.cls == "mul" and t.type == "i64":
            units = sets.get(f"mul_i32_{t.bits}", units)
        if t.cls in ("convert", "move") and t.type == "i64":
            units = sets.get("convert_f32_32", units)
        ports = {f"p{k}": True for k in units}
        found.append(Instruction(t.cls, t.type, t.bits, latency, _rounded(alone[t.key]), **ports))
    return found


def _latency(t: Template, cycles: dict[str, float]) -> Fraction | None:
    if not t.chain:
        return None
    found = cycles[f"chain_{t.key}"] / 8
    if t.cls == "compare":
        found -= cycles[f"chain_blend_f64_{t.bits}"] / 8
    return _rounded(max(found / t.links, 0.5))


def _rounded(cycles: float) -> Fraction:
    """To hundredths, or to a half or whole cycle that is within two per cent."""
    for whole in (round(cycles), round(2 * cycles) / 2, round(3 * cycles) / 3):
        if whole and abs(cycles / whole - 1) < 0.02:
            return Fraction(round(1000 * whole), 1000)
    return max(Fraction(round(cycles * 100), 100), Fraction(1, 100))


_FREE = ("rax", "rcx", "rdx", "r8", "r9", "r10", "r11")


def _general(cycles: dict[str, float]) -> list[Instruction]:
    return [
        Instruction("add", "i64", 64, _rounded(cycles["chain_int_add"] / 32), _rounded(cycles["alone_int_add"] / 42)),
        Instruction("mul", "i64", 64, _rounded(cycles["chain_int_mul"] / 32), _rounded(cycles["alone_int_mul"] / 42)),
        Instruction("div", "i64", 64, _rounded(cycles["chain_int_div"] / 8), _rounded(cycles["alone_int_div"] / 8)),
    ]


# ---- memory ----


def _move(bits: int, load: bool, at: int, number: int, mask: str = "") -> str:
    name = f"v{LOADS[bits]}"
    reg = register(bits, number)
    return f"{name} {at}(%rdi), {reg}" if load else f"{name} {reg}, {at}(%rdi){mask}"


def _widths(bench: _Bench) -> list[int]:
    return [32, 64, 128, 256, *([512] if "avx512f" in bench.has else [])]


_STREAMS = (1, 2, 3, 4)


def _memory_loops(bench: _Bench) -> None:
    count = 32
    for bits in _widths(bench):
        size = bits // 8
        for load in (True, False):
            kind = "load" if load else "store"
            bench.add(f"{kind}_{bits}", [_move(bits, load, k * size % 2048, k % 12) for k in range(count)], count / 2)
            if size > 1:
                across = [_move(bits, load, 64 * (k % 32) + 64 - size // 2, k % 12) for k in range(count)]
                bench.add(f"{kind}_split_{bits}", across, count)
                pages = [_move(bits, load, 4096 * (1 + k % 8) - size // 2, k % 12) for k in range(count)]
                bench.add(f"{kind}_page_{bits}", pages, 8 * count)
        for streams in _STREAMS:
            bench.add(f"mixed_{streams}_{bits}", _mixed(bits, streams), 16 * streams)
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
    bench.add("latency_32", ["movl (%rdi,%rax), %eax"] * 8, 8 * 5, ["movq $0, (%rdi)"])
    halves = ["vmovsd %xmm2, (%rdi)", "vmovsd %xmm2, 8(%rdi)", "vaddpd (%rdi), %xmm15, %xmm2"]
    bench.add("blocked", halves * 8, 8 * 20)
    _gather_loops(bench)


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


def _gather_loops(bench: _Bench) -> None:
    if "avx512vl" not in bench.has:
        return
    for bits in (256, 512):
        if bits == 512 and "avx512f" not in bench.has:
            continue
        for type_name, name, index in (("f64", "vgatherqpd", bits), ("f32", "vgatherdps", bits)):
            where = register(index, 13)
            one = [f"kxnorw %k1, %k1, %k1", f"{name} (%rdi,{where},8), {{d}} {{{{%k1}}}}"]  # noqa: F541
            text = [line.format(d=register(bits, 2 + k % 8)) for k in range(8) for line in one]
            zero = [f"vpxor %xmm13, %xmm13, %xmm13"]  # noqa: F541
            bench.add(f"gather_{type_name}_{bits}", text, 8 * 6, zero)
            joined = register(index, 13)
            chain = [
                one[0],
                one[1].format(d=register(bits, 2)),
                f"vpand{'q' if bits == 512 else ''} {register(bits, 2)}, {joined}, {joined}",
            ]
            bench.add(f"gather_chain_{type_name}_{bits}", chain * 4, 4 * 25, zero)


def _memory(bench: _Bench, cycles: dict[str, float]) -> list[Instruction]:
    found = []
    count = 32
    for bits in _widths(bench):
        load, store = cycles[f"load_{bits}"] / count, cycles[f"store_{bits}"] / count
        shares = _shares(load, store, {s: cycles[f"mixed_{s}_{bits}"] / 16 for s in _STREAMS})
        move = cycles["chain_move_i64_64"] / 16
        latency = cycles["latency_32"] / 8 if bits == 32 else cycles[f"latency_{bits}"] / 8 - move
        for kind, alone, share in (("load", load, shares[0]), ("store", store, shares[1])):
            forward = None
            if kind == "store" and bits >= 64:
                added = cycles[f"chain_add_f64_{max(bits, 64)}"] / 8
                forward = _rounded(cycles[f"forward_{bits}"] / 8 - added)
            made = Instruction(
                kind, "", bits, _rounded(latency) if kind == "load" else None, _rounded(alone),
                _rounded(cycles[f"{kind}_split_{bits}"] / count), _rounded(cycles[f"{kind}_page_{bits}"] / count),
                _rounded(share) if share else None, forward,
            )  # fmt: skip
            found.append(made)
            if kind == "store" and f"masked_store_{bits}" in cycles:
                masked = _rounded(cycles[f"masked_store_{bits}"] / count)
                found.append(replace(made, cls="masked_store", throughput=masked, forward=None))
    for name, value in cycles.items():
        if name.startswith("gather_chain"):
            _, _, type_name, bits_text = name.split("_")
            latency = value / 4 - cycles[f"chain_logic_f64_{bits_text}"] / 8
            own = cycles[f"gather_{type_name}_{bits_text}"] / 8
            found.append(Instruction("gather", type_name, int(bits_text), _rounded(latency), _rounded(own)))
    return found


def _shares(load: float, store: float, mixed: dict[int, float]) -> tuple[float, float]:
    """Cycles that a load and a store take of what both share: the least that explain the mixtures' times.

    A mixture of n loads with a store takes max(n load, store, n x + y). Found by trying, to a fiftieth of a cycle.
    """
    if all(t < 1.04 * max(n * load, store) for n, t in mixed.items()):
        return 0.0, 0.0

    def error(x: float, y: float) -> float:
        return sum((max(n * load, store, n * x + y) / t - 1) ** 2 for n, t in mixed.items())

    tried = [(error(i / 50, j / 50), i / 50, j / 50) for i in range(0, 76) for j in range(0, 151)]
    return min(tried)[1:]


# ---- the core ----

_TRIPS = (4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
_NESTS = (8, 16, 32, 48, 64, 96)
_OFFSETS = (0, 16, 32, 48)
_TURNS = 60
_PLACED = (
    "vmovsd (%rdi), %xmm1", "vaddsd 64(%rdi), %xmm1, %xmm2", "addq $8, %rcx", "vmovsd %xmm2, 512(%rdi)", "addq $8, %rax",
    "nop", "nop",
)  # fmt: skip
_FILLERS = tuple(range(32, 800, 32))
_QUEUED = tuple(range(8, 260, 8))
_LINKS = 40


def _core_loops(bench: _Bench) -> None:
    bench.add("chain_int_add", ["addq %rax, %rax"] * 32, 32)
    bench.add("alone_int_add", [f"leaq 8(%rdi), %{r}" for r in _FREE] * 6, 9)
    bench.add("chain_int_mul", ["imulq %rax, %rax"] * 32, 96)
    bench.add("alone_int_mul", [f"imulq %rdi, %{r}" for r in _FREE] * 6, 42)
    prepare = ["movl $7, %ecx", "movl $1000, %eax", "xorl %edx, %edx"]
    bench.add("chain_int_div", ["divq %rcx", "xorl %edx, %edx"] * 8, 8 * 16, prepare)
    bench.add("alone_int_div", ["movl $1000, %eax", "xorl %edx, %edx", "divq %rcx"] * 8, 8 * 8, prepare)
    bench.add("nops", ["nop"] * 96, 16)
    bench.add("empty", [], 1)
    for name, address in (("plain", "{o}(%rdi)"), ("indexed", "{o}(%rdi,%rax,8)")):
        adds = [f"vaddpd {address.format(o=64 * k)}, %ymm1, %ymm{2 + k}" for k in range(4)]
        bench.add(f"slots_{name}", [*adds, *["nop"] * 20], 4)
    if "avx512f" in bench.has:
        narrow = [f"vandpd %ymm14, %ymm15, %ymm{2 + k % 10}" for k in range(24)]
        bench.add("closes", [*narrow, "vpandq %zmm14, %zmm15, %zmm13"], 12)
        bench.add("closes_not", [*narrow, "vpand %ymm14, %ymm15, %ymm13"], 12)
    for trips in _TRIPS:
        inner = [f"movl ${trips}, %ecx", "77:", "decl %ecx", "jnz 77b"]
        bench.add(f"trips_{trips}", inner, trips)
    for n in _NESTS:
        body = ["77:", *["nop"] * 5, "decl %ecx", "jnz 77b"]
        growing = ["movl $1, %edx", "78:", "movl %edx, %ecx", *body, "incl %edx", f"cmpl ${n}, %edx", "jle 78b"]
        bench.add(f"triangle_{n}", growing, n * n / 2)
    bench.add("nest_3", ["movl $32, %edx", "78:", "movl $3, %ecx", *body, "decl %edx", "jnz 78b"], 3 * 32)
    for offset in _OFFSETS:  # compilers align loops to 16 bytes, and instructions are fetched in lines of 64
        placed = [".p2align 6", *([f".skip {offset}, 0x90"] if offset else []), "77:", *_PLACED, "decl %edx", "jnz 77b"]
        bench.add(f"placed_{offset}", [f"movl ${_TURNS}, %edx", *placed], _TURNS * 1.5)
    bench.add("random", _random("testl $0x40000000, %eax"), 25, ["rdtsc"])
    bench.add("foretold", _random("testl $0, %eax"), 25, ["rdtsc"])
    link = ["vmulsd %xmm15, {r}, {r}"]
    for fillers in _FILLERS:
        first, second = ([line.format(r=r) for line in link * _LINKS] for r in ("%xmm0", "%xmm1"))
        # Each chain starts from a constant: only the window keeps the two from running side by side.
        text = [
            "vmovapd %xmm15, %xmm0",
            *first,
            *["nop"] * fillers,
            "vmovapd %xmm15, %xmm1",
            *second,
            *["nop"] * fillers,
        ]
        bench.add(f"window_{fillers}", text, 4 * _LINKS * 2)
    for queued in _QUEUED:
        first, second = ([line.format(r=r) for line in link * _LINKS] for r in ("%xmm0", "%xmm1"))
        waiting = [f"vandpd %xmm0, %xmm15, %xmm{2 + k % 12}" for k in range(queued)]
        waiting_second = [f"vandpd %xmm1, %xmm15, %xmm{2 + k % 12}" for k in range(queued)]
        text = ["vmovapd %xmm15, %xmm0", *first, *waiting, "vmovapd %xmm15, %xmm1", *second, *waiting_second]
        bench.add(f"waiting_{queued}", text, 4 * _LINKS * 2)


def _random(test: str) -> list[str]:
    """A jump that depends on a bit of a generator of pseudo-random numbers (Numerical Recipes)."""
    return ["imull $1664525, %eax, %eax", "addl $1013904223, %eax", test, "jz 77f", "nop", "77:"]


def _core(cycles: dict[str, float]) -> Core:
    dispatch = max(1, round(96 / cycles["nops"]))
    mispredict = 2 * (cycles["random"] - cycles["foretold"])
    entry = min(cycles[f"trips_{t}"] - t for t in _TRIPS[:3])
    predicted = 0
    for trips in _TRIPS:
        if cycles[f"trips_{trips}"] - trips - entry > mispredict / 2:
            break
        predicted = trips
    # Each of the three iterations takes a cycle, since their jumps are taken: what is over is lost where a loop is left.
    left = cycles["nest_3"] / 32 - 3
    lost = {n: (cycles[f"triangle_{n}"] - n * (n + 1) / 2) / n for n in _NESTS}
    varied = max((n for n in _NESTS if lost[n] - lost[_NESTS[0]] < mispredict / 2), default=0)
    placed = sum(cycles[f"placed_{o}"] for o in _OFFSETS) / len(_OFFSETS) / _TURNS
    redirect = max(0.0, placed - (len(_PLACED) + 1) / dispatch)
    window = _threshold({f: cycles[f"window_{f}"] for f in _FILLERS}) + _LINKS
    taken = _rounded(max(cycles["empty"], 0.5))
    indexed = 1 + max(0, round((cycles["slots_indexed"] - cycles["slots_plain"]) * dispatch / 4))
    closes = cycles.get("closes", 0.0) > 1.25 * cycles.get("closes_not", 1.0)
    return Core(dispatch, window, window, predicted, varied, _rounded(max(left, 0.01)), taken,
                _rounded(max(redirect, 0.01)), _rounded(mispredict), _rounded(cycles["blocked"] / 8),
                indexed, closes)  # fmt: skip


def _queue(
    texts: dict[str, list[str]], cycles: dict[str, float], core: Core, instructions: Sequence[Instruction]
) -> int:
    """How many instructions wait at most: the number with which the model's own clock comes nearest to the series of
    two chains with instructions between them that wait for the first.
    """
    measured = {q: cycles[f"waiting_{q}"] for q in _QUEUED}
    near = _threshold(measured)
    asked = [q for q in _QUEUED if near - 32 <= q <= near + 32]

    def error(queue: int) -> float:
        rates = Rates("measured", replace(core, waiting=queue), instructions)
        return sum((simulated(texts[f"waiting_{q}"], rates) / measured[q] - 1) ** 2 for q in asked)

    return min(range(max(8, near - 24), near + _LINKS + 48, 4), key=error)


def simulated(text: Sequence[str], rates: Rates, rounds: int = 6) -> float:
    """Cycles of one round of a loop without memory, by the model's clock."""
    instructions = read("".join(f"\t{line}\n" for line in text)).instructions
    works = [work_of(i) for i in instructions]
    clock = Clock(rates, works)
    steps = [clock.step(w) for w in works]
    ends = []
    for _ in range(rounds):
        for step in steps:
            clock.issue(step, None)
        clock.jumped()
        ends.append(clock.retired)
    return (ends[-1] - ends[1]) / (rounds - 2)


def _threshold(times: dict[int, float]) -> int:
    """The size before the steepest step of the time of a round: from there on the chains run one after another."""
    sizes = sorted(times)
    # More instructions never take less time: a time above a later one was disturbed.
    least = {size: min(times[s] for s in sizes[k:]) for k, size in enumerate(sizes)}
    steps = {a: least[b] / least[a] for a, b in itertools.pairwise(sizes) if a >= sizes[len(sizes) // 8]}
    return max(steps, key=lambda a: steps[a])
