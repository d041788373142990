"""Vector arithmetic in assembly does the operations that it is counted for, and peaks take the fastest loop."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from roofdsl.incore.assembly import read
from roofdsl.incore.classes import work_of
from roofdsl.measure import nearest_cache, peaks
from roofdsl.measure.assembled import is_known, loops
from roofdsl.measure.instruction_bench import ROTATED, operands
from roofdsl.measure.instruction_texts import register
from roofdsl.measure.multicore_timing import QUICK, Rate
from roofdsl.measure.peaks import DTYPES, wanted
from roofdsl.measure.vector_loops import (
    BUFFER_BYTES,
    MIXES,
    VectorLoop,
    _before,
    _keys,
    move_loops,
    moves,
    text,
    vector_loops,
)
from tests.measure.made_up import characterized

pytestmark = pytest.mark.skipif(not is_known(), reason="assembled loops are for x86-64 with AVX2")

ROUNDS = 3
STEPS = 48 // ROTATED * ROUNDS
"""How often each accumulator is changed in these rounds of 48 instructions."""

TWICE = {"f64": struct.pack("<d", 2.0), "f32": struct.pack("<2f", 2.0, 2.0)}
"""Constants and accumulators of the test, in 64 bits; integers are the bytes 3, 0, 5, 0, 0, 0, 7, 1."""

_STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "fma": lambda x, c: x + c * c, "add": lambda x, c: x + c, "mul": lambda x, c: x * c, "min": lambda x, c: x,
}  # fmt: skip


def _computed(type_name: str, cls: str, bits: int, constant: bytes) -> Any:
    """The accumulators after all rounds, one in each row, if everything starts with the constant: by the processor."""
    stored = "vmovdqu64" if bits == 512 else "vmovdqu"
    stores = [f"{stored} {register(bits, 2 + k)}, {k * bits // 8}(%rdi)" for k in range(ROTATED)]
    whole = int.from_bytes(constant, "little")
    made = loops({"stored": [*text(type_name, cls, bits), *stores]}, {"stored": operands(whole, whole, bits == 512)})[
        "stored"
    ]
    buffer = np.zeros(ROTATED * bits // 8, np.uint8)
    made(buffer.ctypes.data, ROUNDS)
    return buffer.view(DTYPES[type_name]).reshape(ROTATED, -1)


@pytest.mark.parametrize("key", _keys() if is_known() else [], ids=str)
def test_loops_compute_what_they_are_counted_for(key: tuple[str, str, int]) -> None:
    """Every element of every accumulator went through all its steps: against numpy."""
    type_name, cls, bits = key
    constant = TWICE.get(type_name, bytes((3, 0, 5, 0, 0, 0, 7, 1)))
    c = np.frombuffer(constant * (bits // 64), DTYPES[type_name])
    found = _computed(type_name, cls, bits, constant)
    for row in range(ROTATED):
        step = _STEPS[("mul" if row % 2 else "add") if cls == "add and mul" else cls]
        want = c
        with np.errstate(over="ignore"):
            for _ in range(STEPS):
                want = step(want, c)
        np.testing.assert_array_equal(found[row], want)


def test_floats_stay_in_range() -> None:
    """A factor of 1 leaves its accumulator as it is, and sums of ones stop at 2**24 or 2**53."""
    for type_name, one in (("f64", struct.pack("<d", 1.0)), ("f32", struct.pack("<2f", 1.0, 1.0))):
        assert tuple(_before(type_name, 256)) == operands(*(int.from_bytes(one, "little"),) * 2)


def test_operations_are_those_of_all_elements() -> None:
    """A round has 48 instructions; a fused multiply-add is two operations on each element."""
    by_width = {loop.amount for loop in vector_loops("f32", "fma")}
    assert 48 * 8 * 2 in by_width and by_width <= {48 * 8 * 2, 48 * 16 * 2}
    assert 48 * 4 in {loop.amount for loop in vector_loops("i64", "add")}
    assert vector_loops("i8", "mul") == [] and vector_loops("f64", "exp") == []


def test_every_class_that_is_one_instruction_has_its_loop() -> None:
    have = {(t, c) for t, c in wanted(tuple(DTYPES)) if vector_loops(t, c)}
    assert {("f64", "fma"), ("f32", "add and mul"), ("i64", "add"), ("i16", "mul"), ("i8", "min")} <= have


@pytest.mark.parametrize("rates", [(3.0, 2.0), (2.0, 3.0)])
def test_the_fastest_vectors_are_the_peak(monkeypatch: pytest.MonkeyPatch, rates: tuple[float, float]) -> None:
    """With made-up rates; compiled loops are for classes without vectors, such as the exponential function."""
    narrow, wide = (VectorLoop(lambda address, rounds: None, amount) for amount in (96, 192))

    def made_up(loop: Any, arguments: Any, amount: float, cores: Any, effort: Any) -> Rate:
        for vectors, per_s in zip((narrow, wide), rates, strict=True):
            if loop is vectors.loop:
                assert amount == 2 * vectors.amount and arguments == [(0,), (0,)]
                return Rate(per_s, 0.0)
        return Rate(1.0, 0.0)

    monkeypatch.setattr(peaks, "rate", made_up)
    monkeypatch.setattr(peaks, "vector_loops", lambda type_name, cls: [narrow, wide] if cls == "add" else [])
    assert peaks._arithmetic("i64", "add", (0, 1), QUICK).per_s == 3.0
    assert peaks._arithmetic("f64", "exp", (0, 1), QUICK).per_s == 1.0


# ---- loads and stores ----


@pytest.mark.parametrize(("loads", "stores"), MIXES)
def test_moves_stay_in_the_buffer_and_count_their_bytes(loads: int, stores: int) -> None:
    """A round is 24 groups. Against the addresses as a reader of assembly sees them."""
    lines = moves(loads, stores, 256)
    works = [work_of(i) for i in read("".join(f"\t{line}\n" for line in lines)).instructions]
    assert sum(w.bytes for w in works) == 24 * (loads + stores) * 32
    read_at = {w.load.displacement % 4096 for w in works if w.load is not None}
    stored_at = {w.store.displacement % 4096 for w in works if w.store is not None}
    assert not read_at & stored_at
    for name, size in (("load", 4096), ("store", BUFFER_BYTES)):
        assert all(0 <= at.displacement <= size - 32 for w in works if (at := getattr(w, name)) is not None)
    assert (24 * (loads + stores) * 32) in {loop.amount for loop in move_loops()}


def test_the_nearest_cache_is_as_fast_as_its_fastest_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = characterized().levels
    slow, fast = levels[0].one_core.bytes_per_s / 2, levels[0].one_core.bytes_per_s * 2
    for per_s, want in ((slow, levels[0].one_core.bytes_per_s), (fast, fast)):
        monkeypatch.setattr(nearest_cache, "moves_rate", lambda team, effort, per_s=per_s: Rate(per_s, 0.01))
        found = nearest_cache.with_moves(levels, (0,), QUICK)
        assert found[0].one_core.bytes_per_s == want and found[1:] == levels[1:]
        assert dict(found[0].one_core.by_pattern)[nearest_cache.MOVES] == per_s
    monkeypatch.setattr(nearest_cache, "moves_rate", lambda team, effort: None)
    assert nearest_cache.with_moves(levels, (0, 1), QUICK) == levels
