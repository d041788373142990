"""How this core executes out of order: its window, its queue, its jumps. `instruction_rates` measures instructions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from statistics import median

from roofdsl.incore.assembly import read
from roofdsl.incore.classes import work_of
from roofdsl.incore.rates import Rates
from roofdsl.incore.window import Clock
from roofdsl.lang.record import replace
from roofdsl.machine.core import Core
from roofdsl.machine.instruction import Instruction
from roofdsl.measure.instruction_bench import Bench, rounded

_FREE = ("rax", "rcx", "rdx", "r8", "r9", "r10", "r11")
_TRIPS = (4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
_NESTS = (8, 16, 32, 48, 64, 96)
_OFFSETS = (0, 16, 32, 48)
_TURNS = 60
_PLACED = (
    "vmovsd (%rdi), %xmm1", "vaddsd 64(%rdi), %xmm1, %xmm2", "addq $8, %rcx", "vmovsd %xmm2, 512(%rdi)",
    "addq $8, %rax", "nop", "nop",
)  # fmt: skip
_NOPS = 192
"""So many that the cycle which a taken jump may cost hardly shows in the number dispatched per cycle."""

_FILLERS = tuple(range(32, 800, 32))
_QUEUED = tuple(range(8, 260, 8))
_LINKS = 40
_HELD = {
    "loading": ("vmovsd (%rdi), %xmm5", range(16, 320, 16)),
    "general": ("leaq 8(%rdi), %r8", range(16, 320, 16)),
    "storing": ("movq %r8, 1024(%rdi)", range(16, 176, 16)),
    "registers": ("vandpd %xmm14, %xmm15, %xmm5", range(64, 560, 16)),
}
_STEP, _USUAL = 0.12, 3
_ROWS = (24, 32, 48)
_REFILLS = range(0, 42, 2)


def core_loops(bench: Bench) -> None:
    """Adds the loops from which `core` rates are found: of general registers, of the front end, of jumps, and of what
    the core can have in flight.
    """
    _general_loops(bench)
    _slot_loops(bench)
    _jump_loops(bench)
    _window_loops(bench)


def _general_loops(bench: Bench) -> None:
    bench.add("chain_int_add", ["addq %rax, %rax"] * 32, 32)
    bench.add("alone_int_add", [f"leaq 8(%rdi), %{r}" for r in _FREE] * 6, 9)
    bench.add("chain_int_shift", ["shlq $1, %rax"] * 32, 32)
    bench.add("alone_int_shift", [f"shlq $1, %{r}" for r in _FREE] * 6, 14)
    bench.add("chain_int_blend", ["cmovgeq %rdi, %rax"] * 32, 32)
    bench.add("alone_int_blend", [f"cmovgeq %rdi, %{r}" for r in _FREE] * 6, 20)
    bench.add("chain_int_mul", ["imulq %rax, %rax"] * 32, 96)
    bench.add("alone_int_mul", [f"imulq %rdi, %{r}" for r in _FREE] * 6, 42)
    prepare = ["movl $7, %ecx", "movl $1000, %eax", "xorl %edx, %edx"]
    bench.add("chain_int_div", ["divq %rcx", "xorl %edx, %edx"] * 8, 8 * 16, prepare)
    bench.add("alone_int_div", ["movl $1000, %eax", "xorl %edx, %edx", "divq %rcx"] * 8, 8 * 8, prepare)


def _slot_loops(bench: Bench) -> None:
    bench.add("nops", ["nop"] * _NOPS, _NOPS / 6)
    bench.add("empty", [], 1)
    for name, address in (("plain", "{o}(%rdi)"), ("indexed", "{o}(%rdi,%rax,8)")):
        adds = [f"vaddpd {address.format(o=64 * k)}, %ymm1, %ymm{2 + k}" for k in range(4)]
        bench.add(f"slots_{name}", [*adds, *["nop"] * 20], 4)
    if "avx512f" in bench.has:
        narrow = [f"vandpd %ymm14, %ymm15, %ymm{2 + k % 10}" for k in range(24)]
        bench.add("closes", [*narrow, "vpandq %zmm14, %zmm15, %zmm13"], 12)
        bench.add("closes_not", [*narrow, "vpand %ymm14, %ymm15, %ymm13"], 12)


def _jump_loops(bench: Bench) -> None:
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
    bench.add("random", random_branch("testl $0x40000000, %eax"), 25, ["rdtsc"])
    bench.add("foretold", random_branch("testl $0, %eax"), 25, ["rdtsc"])


def _window_loops(bench: Bench) -> None:
    """Two chains of products with other instructions between them: the second begins early if all of these fit."""
    first, second = ([f"vmulsd %xmm15, {r}, {r}"] * _LINKS for r in ("%xmm0", "%xmm1"))
    for fillers in _FILLERS:
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
    for name, (filler, counts) in _HELD.items():
        for count in counts:
            between = [filler] * count
            text = ["vmovapd %xmm15, %xmm0", *first, *between, "vmovapd %xmm15, %xmm1", *second, *between]
            bench.add(f"{name}_{count}", text, 4 * _LINKS * 2)
    for links in _ROWS:
        bench.add(f"rows_{links}", _rows(links), 4 * links)
    for queued in _QUEUED:
        waiting = [f"vandpd %xmm0, %xmm15, %xmm{2 + k % 12}" for k in range(queued)]
        waiting_second = [f"vandpd %xmm1, %xmm15, %xmm{2 + k % 12}" for k in range(queued)]
        text = ["vmovapd %xmm15, %xmm0", *first, *waiting, "vmovapd %xmm15, %xmm1", *second, *waiting_second]
        bench.add(f"waiting_{queued}", text, 4 * _LINKS * 2)


def random_branch(test: str) -> list[str]:
    """A jump that depends on a bit of a generator of pseudo-random numbers (Numerical Recipes)."""
    return ["imull $1664525, %eax, %eax", "addl $1013904223, %eax", test, "jz 77f", "nop", "77:"]


def core_of(cycles: dict[str, float]) -> Core:
    dispatch = max(1, round((_NOPS + 1) / cycles["nops"]))  # and the jump
    # Half of the random jumps are mispredicted.
    mispredict = 2 * (cycles["random"] - cycles["foretold"])
    entry = min(cycles[f"trips_{t}"] - t for t in _TRIPS[:3])
    predicted = 0
    for trips in _TRIPS:
        if cycles[f"trips_{trips}"] - trips - entry > mispredict / 2:
            break
        predicted = trips
    # Each of the three iterations takes a cycle, since their jumps are taken: the rest is lost when a loop is left.
    left = cycles["nest_3"] / 32 - 3
    lost = {n: (cycles[f"triangle_{n}"] - n * (n + 1) / 2) / n for n in _NESTS}
    varied = max((n for n in _NESTS if lost[n] - lost[_NESTS[0]] < mispredict / 2), default=0)
    placed = sum(cycles[f"placed_{o}"] for o in _OFFSETS) / len(_OFFSETS) / _TURNS
    redirect = max(0.0, placed - (len(_PLACED) + 1) / dispatch)
    window = _threshold({f: cycles[f"window_{f}"] for f in _FILLERS}) + _LINKS
    taken = rounded(max(cycles["empty"], 0.5))
    indexed = 1 + max(0, round((cycles["slots_indexed"] - cycles["slots_plain"]) * dispatch / 4))
    loading, general, storing, registers = (
        _last_step({n: cycles[f"{name}_{n}"] for n in counts}) for name, (_, counts) in _HELD.items()
    )
    closes = cycles.get("closes", 0.0) > 1.25 * cycles.get("closes_not", 1.0)
    return Core(dispatch, window, window, predicted, varied, rounded(max(left, 0.01)), taken,
                rounded(max(redirect, 0.01)), rounded(mispredict), rounded(cycles["blocked"] / 8),
                indexed, closes, loading, storing, registers + _LINKS, general=general)  # fmt: skip


def queue(
    texts: dict[str, list[str]], cycles: dict[str, float], core: Core, instructions: Sequence[Instruction]
) -> int:
    """The number of instructions that can wait.

    With this number, the model's own clock best reproduces the series of two chains with instructions between them that
    wait for the first.
    """
    measured = {q: cycles[f"waiting_{q}"] for q in _QUEUED}
    near = _threshold(measured)
    asked = [q for q in _QUEUED if near - 32 <= q <= near + 32]

    def error(queue: int) -> float:
        rates = Rates("measured", replace(core, waiting=queue), instructions)
        return sum((simulated(texts[f"waiting_{q}"], rates) / measured[q] - 1) ** 2 for q in asked)

    return min(range(max(8, near - 24), near + _LINKS + 48, 4), key=error)


def _rows(links: int) -> list[str]:
    """Four chains of `links` products among loads and an addition of general registers, like sums of rows: each fills a
    part of the window, which limits how many run at the same time. (No-ops would not do, since some cores keep several
    of them in one place.)
    """
    text = []
    for k in range(4):
        text += [f"vmovapd %xmm15, %xmm{k}"]
        for j in range(links):
            text += [f"vmovsd {8 * j}(%rdi), %xmm{4 + j % 8}", "leaq 8(%rdi), %r8", f"movq {1024 + 8 * j}(%rdi), %r9"]
            text.append(f"vmulsd %xmm15, %xmm{k}, %xmm{k}")
    return text


def refill(cycles: dict[str, float], core: Core, instructions: Sequence[Instruction]) -> Fraction:
    """The cycles from an instruction's end to the start of one in its place.

    With this number, the model's own clock best reproduces chains in short rows.
    """

    def error(after: int) -> float:
        rates = Rates("measured", replace(core, refill=Fraction(after)), instructions)
        return sum((simulated(_rows(n), rates) / cycles[f"rows_{n}"] - 1) ** 2 for n in _ROWS)

    return Fraction(min(_REFILLS, key=error))


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


def _last_step(times: dict[int, float]) -> int:
    """The size before the last step of the time; earlier, smaller steps come from the queue of waiting instructions.

    A step is much higher than the time usually grows from one size to the next, since all of the instructions take
    some.
    """
    sizes = sorted(times)
    least = {size: min(times[s] for s in sizes[k:]) for k, size in enumerate(sizes)}
    grown = {a: least[b] - least[a] for a, b in itertools.pairwise(sizes)}
    usual = median(grown.values())
    return max((a for a, g in grown.items() if g > _USUAL * usual and g > _STEP * least[a]), default=sizes[-1])


def _threshold(times: dict[int, float]) -> int:
    """The size before the steepest step of a round's time; beyond it, the chains run one after the other."""
    sizes = sorted(times)
    # More instructions never take less time: a time above a later one was disturbed.
    least = {size: min(times[s] for s in sizes[k:]) for k, size in enumerate(sizes)}
    steps = {a: least[b] / least[a] for a, b in itertools.pairwise(sizes) if a >= sizes[len(sizes) // 8]}
    return max(steps, key=lambda a: steps[a])
