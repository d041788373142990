"""The accesses of compiled launches, compared with threads that are followed one by one in the generated loops.

An element is in a register while the loops run that its subscripts do not name. Each of the remaining accesses of a
warp asks for its lines; a round is one iteration, or some of an innermost loop.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from fractions import Fraction

import pytest

from roofdsl.counts.compiled_warps import UNROLLED, FirstCache, warp_accesses_at
from roofdsl.machine.find import load_machine
from roofdsl.predict.kernel_launches import launches_of_kernel
from roofdsl.predict.loops_as_launched import AsLaunched
from tests.predict.launch_threads import WARP, Access, followed, the_call
from tests.predict.machines import kernel_of

LINE = 128
CACHE = FirstCache(LINE, Fraction(64), Fraction(16))
TYPES = ("f16", "f32", "f64")


def drawn(seed: int) -> tuple[str, dict[str, int]]:
    """A kernel whose threads have loops inside, and its sizes."""
    draw = random.Random(seed)
    loops = ["i", "j", "k"][: draw.choice((1, 2, 2, 3, 3))]
    sizes = {f"n{v}": draw.choice((1, 2, 3, 5, 8, 17, 33, 40) if len(loops) > 1 else (1, 31, 33, 300)) for v in "ijk"}
    inner = loops[-1] if len(loops) > 1 and draw.random() < 0.7 else ""
    outer = [v for v in loops if v != inner]
    order = draw.choice(("", "", " col"))

    def reference(name: str, of: list[str]) -> tuple[str, str]:
        strides = [draw.choice((1, 1, 1, 2, 3)) for _ in of]
        dims = ", ".join(f"{s} * n{v} + 2" for v, s in zip(of, strides, strict=True))
        places = ", ".join(f"{s} * {v} + {draw.choice((0, 0, 1))}" for v, s in zip(of, strides, strict=True))
        return f"{name}: {draw.choice(TYPES)}[{dims}]{order}", f"{name}[{places}]"

    arrays = [reference(name, draw.sample(loops, draw.randint(1, len(loops)))) for name in "BC"]
    out = (f"A: {draw.choice(('f32', 'f64'))}[{', '.join(f'n{v}' for v in outer)}]", f"A[{', '.join(outer)}]")
    stop = f"n{inner}" if inner and draw.random() < 0.5 else f"min(n{inner}, {outer[0]} + 1)" if inner else ""
    nest = ", ".join(f"{v} in range(n{v})" for v in outer) + (f", {inner} in range({stop})" if inner else "")
    text = f"kernel q({', '.join(sizes)}):\n"
    for declared, _ in arrays:
        text += f"    in {declared}\n"
    text += f"    {'inout' if inner else 'out'} {out[0]}\n    for {nest}:\n"
    text += f"        {out[1]} {'+=' if inner else '='} {arrays[0][1]} * {arrays[1][1]}\n"
    return text, sizes


def body_of(access: Access, spread: int) -> tuple[object, ...]:
    """The iteration in which an access is made: of the last loop that its subscripts name, or that is over threads."""
    named = [k for k, var in enumerate(access.around) if f" {var} " in f" {spaced(access.name)} "]
    return access.turn[: max(spread, max(named, default=-1) + 1)]


def spaced(text: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text)


def counted(every: list[Access], block: tuple[int, int, int], spread: int) -> tuple[int, int, Fraction]:
    """(loads, stores, cycles) of the accesses that are made. spread: loops over threads."""
    x, y, _ = block
    made: dict[tuple[object, ...], Access] = {}
    for a in every:
        made.setdefault((a.block, a.thread, a.reference, a.is_write, body_of(a, spread)), a)
    lines: dict[tuple[int, bool], set[tuple[object, ...]]] = defaultdict(set)
    executed, size = Counter[tuple[int, bool]](), dict[tuple[int, bool], int]()
    for a in made.values():
        warp = (a.block, (a.thread[0] + x * (a.thread[1] + y * a.thread[2])) // WARP)
        key = (a.reference, a.is_write)
        lines[key].add((warp, body_of(a, spread), a.address // LINE))
        executed[key], size[key] = executed[key] + 1, a.size
    cycles = sum(max(Fraction(len(lines[k])), Fraction(n, 16), Fraction(n * size[k], 64)) for k, n in executed.items())
    loads = sum(n for (_, is_write), n in executed.items() if not is_write)
    return loads, sum(executed.values()) - loads, Fraction(cycles)


def rounds_of(every: list[Access], spread: int) -> Fraction:
    """Of all threads: iterations of each body that loads, several of an innermost loop together. spread: loops over
    threads.
    """
    bodies: dict[tuple[str, ...], set[tuple[object, ...]]] = defaultdict(set)
    for a in every:
        if not a.is_write:
            inside = body_of(a, spread)
            bodies[a.around[: len(inside)]].add((a.block, a.thread, inside))
    deepest, found = max((len(a.around) for a in every), default=0), Fraction(0)
    for around, iterations in bodies.items():
        together = Fraction(1)
        if len(around) == deepest and deepest > spread:
            entered = {(block, thread, inside[:-1]) for block, thread, inside in iterations}  # type: ignore[index]
            together = max(Fraction(1), min(Fraction(UNROLLED), Fraction(len(iterations), len(entered))))
        found += len(iterations) / together
    return found


@pytest.mark.spread(30)
@pytest.mark.parametrize("seed", range(150))
def test_accesses_that_leave_registers(seed: int) -> None:
    text, sizes = drawn(seed)
    of = kernel_of(text)
    (launch,) = launches_of_kernel(of, sizes, load_machine("v100")).each
    if not isinstance(launch.how, AsLaunched) or launch.how.kernel is None or not launch.how.loops:
        pytest.skip("one thread")
    call, made = the_call(of, sizes)
    every = followed(of, sizes)
    found = warp_accesses_at(launch.how.kernel, sizes, WARP, CACHE, launch.how.threads())
    assert (found.loads, found.stores, found.cycles) == counted(every, made.block, len(call.parallel)), text
    assert found.rounds == rounds_of(every, len(call.parallel)), text
