"""What stays in registers, against an execution that has them: a read must find the value that memory would have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from roofdsl.counts.registers import Kept, compiled_bytes_at, kept_at
from roofdsl.counts.sector_traffic import register_bytes_at
from roofdsl.lang.source import Source
from roofdsl.loops.accesses import PlacedStatement, accesses, statements
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Assign, Kernel, Let
from roofdsl.loops.sized import Sized
from roofdsl.loops.transform import apply
from tests.oracle.enumerate import element_access, walk
from tests.oracle.families import families
from tests.oracle.loading import kernel_of
from tests.oracle.random_kernels import random_kernel

FAMILIES = families()


@dataclass
class Register:
    """What one holds now: whose iteration of its outer loops, the element, the version of its value."""

    prefix: tuple[int, ...]
    index: tuple[str, tuple[int, ...]]
    version: int | None
    dirty: bool = False


def run_with_registers(plain: Kernel, values: Mapping[str, int], kept: Sequence[Kept]) -> list[tuple[int, int]]:
    """(loads, stores) of each register. Fails where a read finds a value that plain execution would not."""
    placed_of = {id(p.statement): p for p in statements(plain.body)}
    holder = {(id(p.statement), str(k.element)): g for g, k in enumerate(kept) for p in k.places}
    counts = [[0, 0] for _ in kept]
    true: dict[tuple[str, tuple[int, ...]], int] = {}
    memory: dict[tuple[str, tuple[int, ...]], int] = {}
    live: dict[int, Register] = {}
    writes = 0

    def end(g: int) -> None:
        register = live.pop(g)
        if register.dirty:
            assert register.version is not None
            memory[register.index] = register.version
            counts[g][1] += 1

    for statement, env in walk(plain.body, dict(values)):
        placed = placed_of[id(statement)]
        for g in [g for g, r in live.items() if not _goes_on(kept[g], r, placed, env)]:
            end(g)
        for access in accesses(statement) if isinstance(statement, (Assign, Let)) else ():
            g = holder[id(statement), str(access.element)]
            at = element_access(access.element, env, access.is_write)
            index = (at.array, at.index)
            if g not in live:
                live[g] = Register(_prefix(kept[g], env), index, memory.get(index, 0) if kept[g].loaded else None)
                counts[g][0] += kept[g].loaded
            register = live[g]
            assert register.index == index
            if access.is_write:
                writes += 1
                true[index] = register.version = writes
                register.dirty = True
            else:
                assert register.version == true.get(index, 0)
    for g in list(live):
        end(g)
    assert {i: v for i, v in memory.items() if v} == true
    return [(loads, stores) for loads, stores in counts]


def _prefix(kept: Kept, env: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(env[loop.var] for loop in kept.places[0].loops[: kept.depth])


def _goes_on(kept: Kept, register: Register, placed: PlacedStatement, env: Mapping[str, int]) -> bool:
    """Whether a statement is within the loops through which the register is kept, or within its own statements, in the
    same iteration around.
    """
    first, last = kept.places[0], kept.places[-1]
    if any(loop.var not in env for loop in first.loops[: kept.depth]) or _prefix(kept, env) != register.prefix:
        return False
    if kept.depth == len(first.loops):
        return first.position <= placed.position <= last.position
    return placed.position[: kept.depth + 1] == first.position[: kept.depth + 1]


def check(given: Kernel, params: Mapping[str, int]) -> None:
    plain = apply(given)
    kept = kept_at(Sized(plain, params))
    counted = run_with_registers(plain, params, kept)
    assert counted == [(k.times * k.loaded, k.times * k.stored) for k in kept]
    loaded, stored = compiled_bytes_at(given, params)
    written = register_bytes_at(given, params)
    assert loaded <= written[0]
    assert stored <= written[1]


@pytest.mark.spread(8)
@pytest.mark.parametrize("family", FAMILIES, ids=[f.name for f in FAMILIES])
def test_registers_hold_what_memory_would(family) -> None:
    settings = family.sizes[min(1, len(family.sizes) - 1)]
    check(kernel_of(family.text, settings), settings)


@pytest.mark.spread(3)
@pytest.mark.parametrize("seed", range(40))
def test_registers_of_random_kernels(seed: int) -> None:
    found = random_kernel(seed)
    check(kernel_of(found.text, found.sizes[0]), found.sizes[0])


def loaded_and_stored(body: str, n: int) -> tuple[int, int]:
    text = f"kernel k(n):\n    inout A, B, C: f64[n, n], x, y: f64[n]\n{body}"
    return compiled_bytes_at(kernel(load_file(Source("k.roof", text)), "k"), {"n": n})


@pytest.mark.parametrize(
    ("body", "loaded", "stored"),
    [
        ("    for i in range(n), j in range(n):\n        y[i] += A[i, j] * x[j]\n", 100 + 100 + 10, 10),
        ("    for j in range(n), i in range(n):\n        y[i] += A[i, j] * x[j]\n", 100 + 100 + 10, 100),
        (
            "    for k in range(n), i in range(n), j in range(n):\n        C[i, j] += A[i, k] * B[k, j]\n",
            1000 + 1000 + 100,
            1000,
        ),
        # x[i] is none of the x[j] before it
        ("    for i in range(n), j in range(i):\n        x[i] -= A[i, j] * x[j]\n", 45 + 45 + 9, 9),
        # x[0] changes within the loop
        ("    for i in range(n):\n        x[i] += 2 * x[0]\n", 10 + 10, 10),
        # an element of one body that two statements name
        ("    for i in range(n):\n        let t = x[i]\n        y[i] = t * x[i]\n        x[i] = t\n", 10, 20),
        # not where the statement between may change it
        ("    for i in range(n):\n        y[i] = x[i]\n        x[0] = 1\n        y[i] += x[i]\n", 20, 10 + 10),
        # conditions: only in the rows where something is added
        ("    for i in range(n), j in range(n):\n        if i % 2 == 0:\n            y[i] += A[i, j]\n", 50 + 5, 5),
    ],
)  # fmt: skip
def test_counts_by_hand(body: str, loaded: int, stored: int) -> None:
    assert loaded_and_stored(body, 10) == (8 * loaded, 8 * stored)
