"""Sweeps of programs, and of launches that find their data in the caches: rows are those of `predict`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.program_at_sizes import program_at
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from roofdsl.predict.program import predict_at
from roofdsl.sweep.journal import Journal, journaled, meaning_of
from roofdsl.sweep.point_block import Variant
from roofdsl.sweep.program import swept_program
from roofdsl.sweep.run import Sweep, sweep
from roofdsl.sweep.single_points import Task, here, row_of, solve
from tests.models.shipped import model
from tests.sweep.machines import machine
from tests.sweep.test_equal import known_places, not_counted, written

MODELS = Path(__file__).parents[2] / "models" / "kernels"
WARM = Options(warm=True)

TEXT = """
kernel scale(n):
    inout A: f64[n]
    for i in range(n):
        A[i] = 2.0 * A[i]

kernel half(n):
    in A: f32[n]
    out B: f32[n]
    for i in range(n):
        B[i] = A[i]

kernel tiled(n, b):
    assume n % b == 0
    inout A: f64[n, n]
    for i in range(0, n, b):
        for j in range(b):
            A[i + j, 0] += 1.0

program both(n, steps):
    repeat steps:
        run scale(2 * n)
        run half(n)
    run scale(n)
    run tiled(n, 4)

program halves(n):
    run half(n)
    run half(n - 8)
"""


def file(name: str) -> CheckedFile:
    return load_file(Source("both.roof", TEXT) if name == "own" else MODELS / f"{name}.roof")


def rows_are_those_of_predict(checked: CheckedFile, name: str, found: Sweep, on: Machine, options: Options) -> None:
    program = swept_program(checked, name, {})
    for place in known_places(found.table):
        row = {n: v for n, v in found.table.row(place).items() if v is not None}
        values = {p.name: row.pop(p.name) for p in program.parameters}
        total = predict_at(program_at(checked, name, values), on, options).total
        expected = row_of(total, moves_only=program.moves_only, launches=True)
        assert {n: v for n, v in row.items() if n not in ("machine", "how", "cache_bytes")} == expected, values


OWN = {"n": (4, 6, 8, 64, 1000, 100_000), "steps": (1, 3)}


@pytest.mark.spread(1)
@pytest.mark.parametrize(
    ("source", "name", "on", "options", "ranges", "known"),
    [
        ("own", "both", "bare", Options(), OWN, 10),
        ("own", "both", "three", Options(), OWN, 4),
        ("own", "both", "both_ways", Options(ceilings=("slow", "slow memory")), OWN, 8),
        ("own", "both", "two_pipes", Options(traffic="once"), OWN, 8),
        ("own", "halves", "bare", Options(), {"n": OWN["n"]}, 3),
        ("lstm", "lstm_forward", "bare", Options(),
         {"batch": (8,), "sequence": (4, 9), "features": (32,), "hidden": (8, 24)}, 4),
        ("llama", "llama3_8b_decode", "bare", Options(), {"batch": (1, 3), "context": (640,)}, 2),
        ("gpp_deck", "gpp_deck_squares", "bare", Options(),
         {"nw": (3,), "bands": (8, 40), "ngpown": (16,), "ncouls": (24,)}, 2),
    ],
)  # fmt: skip
def test_totals(  # noqa: PLR0917
    source: str, name: str, on: str, options: Options, ranges: Mapping[str, tuple[int, ...]], known: int
) -> None:
    checked = file(source)
    program = swept_program(checked, name, {})
    found = sweep([Variant(program, {})], ranges, [machine(on)], options, runner=not_counted)
    assert len(known_places(found.table)) >= known
    rows_are_those_of_predict(checked, name, found, machine(on), options)


def test_numbers_beyond_floats() -> None:
    checked = file("own")
    ranges = {"n": (2**30, 2**53), "steps": (2**20, 5)}
    found = sweep([Variant(swept_program(checked, "both", {}), {})], ranges, [machine("bare")], Options())
    assert found.table.cell("work_flops", 2) > 2**64 and not found.counted
    rows_are_those_of_predict(checked, "both", found, machine("bare"), Options())


def test_launches_that_are_not_allowed_are_told() -> None:
    """n is not a multiple of 4, or an argument is 0: `predict` says why, and the other rows stand."""
    found = sweep(
        [Variant(swept_program(file("own"), "both", {}), {})],
        {"n": (6, 8), "steps": (2,)},
        [machine("bare")],
        Options(),
    )
    assert [f[0]["n"] for f in found.failures] == [6] and "n % b == 0" in found.failures[0][1]
    found = sweep([Variant(swept_program(file("own"), "halves", {}), {})], {"n": (8, 9)}, [machine("bare")], Options())
    assert [f[0]["n"] for f in found.failures] == [8] and "n = 0" in found.failures[0][1]


def test_only_points_that_are_predicted_exceed_the_memory() -> None:
    """Both n exceed it, but only the first is a multiple of 4."""
    found = sweep(
        [Variant(swept_program(file("own"), "both", {}), {})],
        {"n": (2**40, 2**40 + 2), "steps": (1,)},
        [machine("bare")],
        Options(),
    )
    assert [f[0]["n"] for f in found.failures] == [2**40 + 2]
    assert [w for w in found.warnings if w.startswith("at 1 point, the data exceed")]


@pytest.mark.thorough
def test_counted_programs(tmp_path: Path) -> None:
    """Behind caches and again and again: point by point, and from a journal the same."""
    checked = file("own")
    program, ranges = swept_program(checked, "both", {}), {"n": (1000, 2000), "steps": (2,)}
    found = sweep([Variant(program, {})], ranges, [machine("three")], WARM)
    assert found.counted == 2 and not found.failures
    for place, n in enumerate((1000, 2000)):
        total = predict_at(program_at(checked, "both", {"n": n, "steps": 2}), machine("three"), WARM).total
        row = {k: v for k, v in found.table.row(place).items() if k not in ("machine", "how", "n", "steps")}
        assert {k: v for k, v in row.items() if v is not None} == row_of(total, moves_only=False, launches=True)
    task = Task(0, program, (("n", 1000), ("steps", 2)), machine("three"), WARM)
    journal = Journal(tmp_path / "j")
    (first,) = journaled(here, journal)([task])
    journal.close()
    again = Task(3, swept_program(file("own"), "both", {}), task.values, task.machine, WARM)
    assert meaning_of(again) == meaning_of(task)
    (second,) = journaled(_never, Journal(tmp_path / "j"))([again])
    assert second.row == first.row == solve(task).row


def test_collectives_are_counted() -> None:
    checked, on = file("llama_parallel"), load_machine("h100_sxm")
    program = swept_program(checked, "vocabulary_parallel", {})
    ranges = {"batch": (4,), "d": (512,), "words": (4096,), "p": (2, 4)}
    found = sweep([Variant(program, {})], ranges, [on], Options())
    assert found.counted == 2 and not found.failures
    for place, p in enumerate((2, 4)):
        at = program_at(checked, program.name, {n: v[0] for n, v in ranges.items()} | {"p": p})
        total = predict_at(at, on, Options()).total
        assert found.table.cell("time_s", place) == float(total.bound_s)
        assert total.links and found.table.cell("bound", place) == total.bound


def _never(tasks: Any) -> Any:
    raise AssertionError(tasks)


@pytest.mark.parametrize(
    ("name", "on"), [("gemv", "bare"), ("gemv", "both_ways"), ("triad", "three"), ("daxpy", "two_pipes")]
)
def test_warm_launches(name: str, on: str) -> None:
    """Where the data fit, and far beyond, by closed forms of two launches in a row."""
    k = written(name)
    ranges = {"n": tuple(range(64, 64 * 41, 64))}
    found = sweep([Variant(k, {})], ranges, [machine(on)], WARM, runner=not_counted)
    places = known_places(found.table)
    assert len(places) >= 3
    for place in {places[0], places[len(places) // 2], places[-1]}:
        row = {n: v for n, v in found.table.row(place).items() if n not in ("machine", "how", "n") and v is not None}
        at = predict(model(name), {"n": found.table.cell("n", place)}, machine(on), WARM)
        assert row == row_of(at, moves_only=False)


def test_a_cold_and_a_warm_launch_differ() -> None:
    k = kernel(file("own"), "scale")
    cold, warm = (
        sweep([Variant(k, {})], {"n": (64,)}, [machine("three")], options).table for options in (Options(), WARM)
    )
    assert cold.cell("DRAM_bytes", 0) == 2 * 64 * 8 and warm.cell("DRAM_bytes", 0) == 0
