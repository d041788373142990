"""Programs as one launch and as their launches, against sums and against what really passes between launches."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from roofdsl.cli.main import cli
from roofdsl.lang.record import replace
from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.loops.program_at_sizes import ProgramAt, program_at
from roofdsl.machine.find import find_model, load_machine, machine_of
from roofdsl.sol.floor import floor
from roofdsl.sol.fused import fused
from roofdsl.sol.program import program_light
from roofdsl.tell.schemas.commands import schema_of

CHAIN = """\
kernel first(n):
    in a: f64[n]
    out b: f64[n]
    for i in range(n):
        b[i] = 2 * a[i]

kernel second(n):
    in x, w: f64[n]
    out y: f64[n]
    for i in range(n):
        y[i] = x[i] + w[i]

kernel last(n):
    in y: f64[n]
    inout s: f64
    for i in range(n):
        s += y[i]

program chain(n):
    run first(n)
    run second(n)
    run last(n)

program again(n):
    repeat 3:
        run first(n)
        run second(n)

program apart(n):
    run first(n)
    run second(2 * n)
"""


def at(name: str, n: int, text: str = CHAIN) -> ProgramAt:
    return program_at(load_file(Source("<test>", text)), name, {"n": n})


@pytest.mark.parametrize(
    ("name", "loads", "stores"),
    [
        ("chain", 8 + 8 / 1000, 8 / 1000),  # a, which may be w, and s; b and y need not move
        ("again", 8, 8),  # a, which may be w; y of the last time
        ("apart", 8 * (1 + 2 + 2), 8 * (1 + 2)),  # arrays of another length: b is no input of the second launch
    ],
)
def test_what_passes_between_launches_need_not_move(name: str, loads: float, stores: float) -> None:
    """In bytes for each of n = 1000, counted by hand."""
    machine = load_machine("zen2_epyc_7452")
    found = fused(at(name, 1000), machine)
    term = next(t for t in found.floor.terms if t.name == machine.main_memory.name)
    assert term.amount == pytest.approx(1000 * (loads + stores), abs=1e-6)


def test_as_launched_is_the_sum_of_the_launches() -> None:
    machine = load_machine("v100")
    program = at("again", 4096)
    found = program_light(program, machine)
    own = {p.kernel.name: floor(p.kernel, dict(p.arguments), machine).time_s for p in program.launched}
    assert found.launches == 6 and found.launched_s == 3 * (own["first"] + own["second"])
    assert found.fused.floor.time_s <= found.launched_s
    assert found.best_s is not None and found.written_s is not None
    assert found.best_s <= found.written_s


def test_a_cache_that_holds_both_launches_saves_the_loads_in_between() -> None:
    """y stays in the last cache where `second` and `last` fit in it, and only there."""
    machine = load_machine("v100")
    small, large = (program_light(at("chain", n), machine) for n in (30_000, 250_000))
    assert [(k.array, k.writer, k.reader) for k in small.kept] == [("y", "second", "last")] and not large.kept
    assert small.kept[0].bytes == 8 * 30_000


def test_a_cache_holds_the_parts_of_an_array_that_are_read_and_those_that_are_written() -> None:
    """Of w, half is read and the other half is written: 160 bytes for each of n, not 80. The last cache is a sixteenth
    of a V100's, which has 6 MiB.
    """
    text = """\
kernel first(n):
    inout w: f64[20*n]
    out y: f64[n]
    for i in range(10*n):
        w[10*n + i] = w[i]
    for i in range(n):
        y[i] = w[i]

kernel last(n):
    in y: f64[n]
    inout s: f64
    for i in range(n):
        s += y[i]

program halves(n):
    run first(n)
    run last(n)
"""
    whole = load_machine("v100")
    assert whole.last_cache is not None and whole.last_cache.size_bytes == 6 << 20
    machine = replace(whole, caches=(*whole.caches[:-1], replace(whole.last_cache, size_bytes=(6 << 20) // 16)))
    small, large = (program_light(at("halves", n, text), machine) for n in (1_875, 3_125))
    assert [k.array for k in small.kept] == ["y"] and not large.kept


WIDE = """\
kernel wide(n):
    in a, b, c, d, e, f: f64[n]
    out t: f64[n]
    for i in range(n):
        t[i] = a[i] + b[i] + c[i] + d[i] + e[i] + f[i]

kernel twice(n):
    in t: f64[n]
    out u: f64[n]
    for i in range(n):
        u[i] = 2 * t[i]

kernel total(n):
    in u: f64[n]
    inout s: f64
    for i in range(n):
        s += u[i]

program fused_first(n):
    run wide(n)
    run twice(n)
    run total(n)

program at_two_sizes(n):
    run wide(n)
    run twice(n)
    run twice(n // 8)
    run total(n // 8)
"""


def test_a_cache_keeps_what_a_fused_launch_wrote_only_if_it_holds_the_whole_group() -> None:
    """`wide` and `twice` are one launch. The larger arrays of all three have 256 MiB, of the last two 96: 128 fit."""
    machine = load_machine("zen2_epyc_7452")
    large, small = (program_light(at("fused_first", n, WIDE), machine) for n in (1 << 22, 1 << 21))
    assert [g.places for g in large.together] == [(0, 1)] and not large.kept
    assert [g.places for g in small.together] == [(0, 1)] and [k.array for k in small.kept] == ["u"]
    parts, (group,) = large.parts, large.together
    last = parts[2].answer.best
    assert last is not None and large.best_s == group.time_s + last.time_s


def test_a_launch_of_a_kernel_that_is_fused_at_another_size_finds_its_array() -> None:
    found = program_light(at("at_two_sizes", 1 << 17, WIDE), load_machine("v100"))
    assert [g.places for g in found.together] == [(0, 1)]
    assert [(k.writer, k.reader, k.places) for k in found.kept] == [("twice", "total", (2, 3))]


def test_where_stores_move_beside_loads_only_the_longer_ones_are_saved() -> None:
    """Loads of n elements beside stores of 2 n, and beside none: saved from max(loads, stores), in times of n loads."""
    text = """\
kernel first(n):
    in a: f64[n]
    out t: f64[n]
    for i in range(n):
        t[i] = 2 * a[i]

kernel both(n):
    in t: f64[n]
    out c, d: f64[n]
    for i in range(n):
        c[i] = t[i]
        d[i] = t[i]

kernel last(n):
    in t: f64[n]
    inout s: f64
    for i in range(n):
        s += t[i]

program to_both(n):
    run first(n)
    run both(n)

program to_one(n):
    run first(n)
    run last(n)

machine m:
    peak f64 fma 10 TFLOP/s
    cache L2 4 MiB, 1 TB/s, line 64 B
    memory HBM 16 GiB, 100 GB/s, duplex
"""
    checked, n = load_file(Source("<test>", text)), 30_000
    for name, saved in (("to_both", 0), ("to_one", 1)):
        found = program_light(program_at(checked, name, {"n": n}), machine_of(checked, "m"))
        once = Fraction(8 * n, 100 * 10**9)
        assert sum((k.saved_s for k in found.kept), Fraction(0)) == pytest.approx(
            float(saved * once), rel=1e-2
        )  # less a little compute


FILLED = """\
kernel fill(n):
    out A: f64[n, n]
    for i in range(n), j in range(n):
        A[i, j] = 1

kernel product(n):
    in A: f64[n, n]
    in B: f64[n, 2 * n]
    out C: f64[n, 2 * n]
    for i in range(n), j in range(2 * n):
        C[i, j] = 0
        for k in range(n):
            C[i, j] += A[i, k] * B[k, j]

program filled(n):
    run fill(n)
    run product(n)

program given(n):
    run product(n)

machine small:
    peak f64 fma 1 PFLOP/s
    cache L1 4 KiB, 100 GB/s, line 64 B
    memory DRAM 16 GB, 1 GB/s
    units 1
"""


def test_what_a_launch_computes_may_be_computed_again_instead_of_loaded() -> None:
    """Column by column of B, one launch for both needs A in no memory: B is loaded once, and C stored once."""
    n = 256
    checked = load_file(Source("<test>", FILLED))
    filled, given = (
        next(t.amount for t in fused(program_at(checked, name, {"n": n}), machine_of(checked, "small")).floor.terms
             if t.name == "DRAM")
        for name in ("filled", "given")
    )  # fmt: skip
    assert filled <= 8 * (2 * n * n + 2 * n * n)
    assert given > 2 * 8 * 5 * n * n, "A and B do not fit: a product of given matrices loads them again"


@pytest.mark.thorough
def test_fused_compute_runs_on_both_units_side_by_side() -> None:
    """Flash attention as two launches: products on tensor units, exponentials on the ordinary pipes."""
    machine = load_machine("a100_80")
    target = find_model("attention_flash")
    assert target.name is not None
    program = program_at(load_file(target.path), target.name, {})
    found = fused(program, machine)
    products, exponentials = (floor(p.kernel, dict(p.arguments), machine) for p in program.launched)
    apart = [next(t.time_s for t in f.terms if t.name == "compute") for f in (products, exponentials)]
    assert next(t.time_s for t in found.floor.terms if t.name == "compute") == max(apart)


@pytest.mark.thorough
def test_the_fused_floor_is_below_every_order_of_its_launches() -> None:
    """A program has no more to do than its launches have, on any machine."""
    small = {"attention_naive": {"new": 32, "context": 48, "kv": 2}, "conv2d_im2col": {"batch": 2, "h": 9, "w": 9}}
    for name, sizes in small.items():
        target = find_model(name)
        assert target.name is not None
        program = program_at(load_file(target.path), target.name, sizes)
        for machine in map(load_machine, ("a100_80", "h100_sxm")):
            found = fused(program, machine)
            launches = [(floor(p.kernel, dict(p.arguments), machine), p.times) for p in program.launched]
            assert found.floor.time_s <= sum((f.time_s * n for f, n in launches), Fraction(0))


def test_the_command_takes_programs(tmp_path: Path) -> None:
    """FILE:PROGRAM; a file without a name still stands for its kernels."""
    file = tmp_path / "chain.roof"
    file.write_text(CHAIN)
    asked = ["sol", f"{file}:chain", "--machine", "a100_80", "--set", "n=100000"]
    run = CliRunner().invoke(cli, [*asked, "--measured", "1ns", "--json"])
    assert run.exit_code == 1, run.output
    found = json.loads(run.output)
    Draft202012Validator(schema_of("sol")).validate(found)
    assert found["kernel"] == "chain" and found["claim"]["verdict"] == "impossible"
    assert found["program"]["launches"] == 3 and len(found["program"]["kernels"]) == 3
    text = CliRunner().invoke(cli, asked)
    assert text.exit_code == 0 and "Fused into one launch" in text.output and "floor, as launched" in text.output
