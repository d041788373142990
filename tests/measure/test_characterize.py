"""Characterizations: of a processor whose rates are known, and small parts of one on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from roofdsl.cli.characterize import sweep_figure
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.format import format_source
from roofdsl.lang.functions import FUNCTIONS
from roofdsl.lang.operation_classes import SPECIAL_FUNCTIONS
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel as kernel_named
from roofdsl.loops.load import load_file
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.measure.bandwidth_curve import (
    COPY,
    LOAD,
    PATTERNS,
    STREAMS,
    TRIAD,
    UPDATE,
    Counts,
    Point,
    bandwidth,
    stores_per_s,
)
from roofdsl.measure.bandwidth_sweep import Buffers, run_sweep, working_sets
from roofdsl.measure.characterize_cpu import characterize_cpu
from roofdsl.measure.device import describe_cpu, software
from roofdsl.measure.levels_found import find_levels
from roofdsl.measure.machine_file import machine_name, machine_text, save_machine, to_machine
from roofdsl.measure.microkernels import ARITHMETIC, DIVIDE_EVERY, INTEGER, arithmetic, operands, shapes
from roofdsl.measure.multicore_timing import Effort, Rate
from roofdsl.measure.peaks import Peak
from roofdsl.measure.timing import usable_cores
from roofdsl.plot.bandwidth_curve import draw_sweep
from roofdsl.plot.board import save_figure
from roofdsl.predict.kernel import predict
from roofdsl.predict.options import Options
from tests.measure.made_up import CPU, KIB, MANY, ONE_CORE, PEAKS, characterized, sweep

GOLDEN = Path(__file__).parent / "golden"
BRIEF = Effort(3, 2e-4, 0.01)


def caches_of(machine: Machine) -> dict[str, tuple[int, float, int, bool | None, bool]]:
    return {
        c.name: (c.size_bytes, float(c.bandwidth_bytes_per_s) / 1e9, c.copies, c.write_allocate, c.duplex)
        for c in machine.caches
    }


@pytest.mark.parametrize("cores", [1, 2])
def test_known_rates_come_out(cores: int) -> None:
    machine = to_machine(characterized(cores=cores))
    assert caches_of(machine) == {
        "L1": (32 * KIB, 300 * cores, cores, True, False),  # L2 is duplex: lines are loaded before they are stored to
        "L2": (1024 * KIB, 100 * cores, cores, True, True),
        "L3": (32768 * KIB, 80 * cores, 1, True, True),  # so they are from memory, at a cost that shows
    }
    assert float(machine.main_memory.bandwidth_bytes_per_s) == (45e9 if cores == 2 else 30e9)
    assert float(machine.rate("f64", "add").per_s) == 30e9 * cores  # the faster of add (25) and mul (30)
    for cls in ("fma", "min", "div", *SPECIAL_FUNCTIONS):
        assert float(machine.rate("f64", cls).per_s) == 1e9 * PEAKS[cls] * cores
        assert machine.rate("f16", cls) == machine.rate("f32", cls)
    assert machine.units == cores and float(machine.launch_s or 0) == pytest.approx(4e-7)


def test_the_file(golden: Callable[[Path, str], None], tmp_path: Path) -> None:
    text = machine_text(characterized())
    golden(GOLDEN / "machine.roof", text)
    assert format_source(Source("m.roof", text)) == text
    path = tmp_path / "m.roof"
    save_machine(path, text)
    assert load_machine(str(path)).name == machine_name(characterized()) == "a_fast_9000_2_cores"
    with pytest.raises(InputError):
        save_machine(path, "machine x:\n    units 1\n")
    assert path.read_text() == text  # a file that is not a machine is never written
    with pytest.raises(CommandError, match="cannot be written"):
        save_machine(tmp_path / "no" / "m.roof", text)


def test_one_core_of_the_same_run() -> None:
    assert to_machine(characterized().alone(), "m") == to_machine(characterized(cores=1), "m")


def test_a_cache_of_which_a_share_is_ours() -> None:
    other = replace(CPU, caches=(*CPU.caches[:2], replace(CPU.caches[2], size_bytes=128 << 20)))
    found = characterized(other)
    level = found.levels[2]
    assert level.agrees is False and level.capacity_bytes == 128 << 20 and level.holds_bytes is not None
    assert level.holds_alone is not None and 0.7 < level.holds_alone / (32 << 20) < 1.42
    assert 0.7 < level.holds_bytes / (32 << 20) < 1.42
    assert any("131072 KiB reported" in note and "a core keeps" in note for note in found.notes)
    assert to_machine(found).caches[2].holds_bytes == level.holds_bytes


def test_a_nearer_cache_is_as_large_as_the_system_says() -> None:
    """Noise, or pages that share sets, let the curve fall early there."""
    second = replace(CPU.caches[1], size_bytes=2048 << 10)
    found = characterized(replace(CPU, caches=(CPU.caches[0], second, CPU.caches[2])))
    level = found.levels[1]
    assert level.capacity_bytes == 2048 << 10 and level.seen_bytes is not None and level.seen_bytes < 1500 << 10
    assert to_machine(found).caches[1].ways == 8
    assert any("L2: 2048 KiB reported" in note and "too noisy to use" in note for note in found.notes)


def test_the_last_cache_may_be_shared_with_many() -> None:
    """The system reports 16 times what the curve shows, for nothing else ends there."""
    cpu = replace(CPU, caches=(*CPU.caches[:2], replace(CPU.caches[2], size_bytes=512 << 20)))
    found = characterized(cpu, cores=1)
    assert found.levels[2].agrees is False
    assert found.levels[2].capacity_bytes == 512 << 20 and found.levels[2].holds_bytes is not None
    assert 0.7 <= found.levels[2].holds_bytes / (32 << 20) <= 1.42


def test_a_system_that_reports_nothing() -> None:
    found = characterized(replace(CPU, caches=()))
    assert [level.name for level in found.levels] == ["L1", "L2", "L3", "DRAM"]
    assert [round(level.one_core.bytes_per_s / 1e9) for level in found.levels] == [300, 100, 80, 30]


def points(*rates: float) -> list[Point]:
    return [Point(p, 1 << 28, r, 0.0) for p, r in zip((LOAD, COPY, TRIAD, UPDATE), rates, strict=False)]


@pytest.mark.parametrize(
    ("rates", "counted"),
    [
        ((30, 30, 30), "no_write_allocate"),
        ((30, 20, 22.5), "write_allocate"),
        ((30, 21, 23), "write_allocate"),
        ((30, 29, 15), "no_write_allocate"),  # one disturbed pattern is not an evidence
        ((30, 28, 28), "no_write_allocate"),
        ((10, 30, 30), "no_write_allocate"),
        ((30, 30, 30, 45), "duplex"),
        ((30, 28, 29, 39), "duplex"),
        ((30, 30, 30, 32), "no_write_allocate"),
        ((30, 20, 22.5, 30), "write_allocate"),
    ],
)
def test_what_takes_time_shows_in_the_streams(rates: tuple[float, ...], counted: Counts) -> None:
    found = bandwidth(points(*rates))
    assert found.counts == counted
    streams = points(*(rates if counted == "duplex" else rates[:3]))
    assert found.bytes_per_s == pytest.approx(max(p.rate(counted) for p in streams))


def test_many_streams_show_what_memory_delivers() -> None:
    """Its bandwidth is that of the fastest; one stream gets less. Loads of four arrays, not of one, show that a store
    loads its line first.
    """
    slow = {LOAD: 30, COPY: 22, TRIAD: 29, UPDATE: 34}
    rates = {p: (*ONE_CORE[p][:3], slow[p]) for p in ONE_CORE}
    seen = sweep(1, rates)
    memory = find_levels(CPU, 1, seen, seen)[0][-1].all_cores
    assert memory.counts == "no_write_allocate" and memory.one_stream_per_s == pytest.approx(30e9)
    assert memory.bytes_per_s == 34e9 and memory.streams == 3
    seen = sweep(1, rates, many=MANY)
    memory = find_levels(CPU, 1, seen, seen)[0][-1].all_cores
    assert memory.counts == "write_allocate" and memory.one_stream_per_s == pytest.approx(30e9)
    assert memory.bytes_per_s == pytest.approx(40e9) and memory.fastest == "update of three arrays"
    assert memory.streams == 6 and stores_per_s(memory) is None


def test_the_typical_rate_of_a_cache_is_the_median_over_working_sets() -> None:
    seen = sweep(1)
    better = [p.working_set_bytes for p in seen.points if 2 << 20 <= p.working_set_bytes < 3 << 20]
    best = tuple(
        replace(p, bytes_per_s=1.1 * p.bytes_per_s) if p.working_set_bytes in better else p for p in seen.points
    )
    seen = replace(seen, points=best)
    level = find_levels(CPU, 1, seen, seen)[0][2]
    assert level.name == "L3" and level.typical is not None and level.typical == level.typical_alone
    assert level.typical.bytes_per_s == pytest.approx(level.all_cores.bytes_per_s / 1.1)
    machine = to_machine(replace(characterized(cores=1), levels=find_levels(CPU, 1, seen, seen)[0]))
    assert float(machine.caches[2].typical_bytes_per_s or 0) == 80e9 and machine.caches[2].bandwidth_bytes_per_s > 80e9
    assert to_machine(characterized(cores=1)).caches[2].typical_bytes_per_s is None


@pytest.mark.parametrize(("factor", "seen_from"), [(1.3, 5 << 20), (0.7, 5 << 20), (1.1, None)])
def test_large_working_sets_may_get_another_rate_than_small_ones(factor: float, seen_from: int | None) -> None:
    """A step inside the last cache, at 5 MiB: it is stated if it is high enough, whichever way it goes."""
    seen = sweep(1)
    points = (
        replace(p, bytes_per_s=factor * p.bytes_per_s) if 5 << 20 <= p.working_set_bytes <= 32 << 20 else p
        for p in seen.points
    )
    seen = replace(seen, points=tuple(points))
    levels = find_levels(CPU, 1, seen, seen)[0]
    found = levels[2].larger
    cache = to_machine(replace(characterized(cores=1), levels=levels)).caches[2]
    if seen_from is None:
        assert found is None and cache.larger_from_bytes is None and cache.larger_bytes_per_s is None
        return
    assert found is not None and levels[2].typical is not None and levels[2].larger_alone == found
    assert 0.7 * seen_from < found[0] <= 1.4 * seen_from
    assert found[1].bytes_per_s == pytest.approx(factor * levels[2].typical.bytes_per_s)
    assert cache.larger_from_bytes == 5632 << 10  # a round number below the size that was measured
    assert float(cache.larger_bytes_per_s or 0) == pytest.approx(found[1].bytes_per_s, rel=1e-3)


def test_the_typical_rate_of_a_memory_is_the_median_of_its_patterns() -> None:
    found = characterized(cores=1)
    *caches, memory = found.levels
    rates = (("load", 30e9), ("copy", 27e9), ("triad", 28e9), ("update", 26e9), ("update of three arrays", 20e9))

    def typical(**stated: object) -> float | None:
        width = replace(memory.all_cores, **({"by_pattern": rates, "counts": "duplex"} | stated))
        made = to_machine(replace(found, levels=(*caches, replace(memory, all_cores=width))))
        rate = made.main_memory.typical_bytes_per_s
        return None if rate is None else float(rate)

    assert typical(bytes_per_s=30e9) == 27e9
    assert typical(bytes_per_s=27.5e9) is None, "nearly the bandwidth"
    assert typical(bytes_per_s=30e9, one_stream_per_s=20e9, streams=4) is None, "few streams explain it"
    slow = {"counts": "no_write_allocate", "update_per_s": 26e9}
    assert typical(bytes_per_s=30e9, **slow) is None, "slower stores explain it"


def test_bytes_of_patterns() -> None:
    assert [p.elements() for p in PATTERNS] == [1, 2, 3, 3]
    assert [p.elements("write_allocate") for p in PATTERNS] == [1, 3, 4, 3]
    assert [p.elements("duplex") for p in PATTERNS] == [1, 2, 3, 2]  # loads, of lines that are stored to as well
    with pytest.raises(ValueError, match="no stream"):
        bandwidth([])


@pytest.mark.spread(3)
@pytest.mark.parametrize("kernel", ["load", "copy", "triad", "update"])
def test_predictions_on_it_are_the_rates_it_was_measured_by(kernel: str) -> None:
    """Each stream out of L2 and out of memory takes the time of its own measurement, whatever was counted for it."""
    machine = to_machine(characterized(cores=1))
    file = load_file(Source("streams.roof", STREAMS_TEXT))
    pattern = {p.name: p for p in PATTERNS}[kernel]
    for level, place, n in (("L2", 1, 2**13), ("L3", 2, 2**18)):
        found = predict(kernel_named(file, kernel), {"n": n}, machine, Options(levels="all", warm=True))
        time = next(t.time_s for t in found.levels if t.name == level)
        moved = 8 * n * pattern.elements()
        assert moved / float(time) == pytest.approx(1e9 * ONE_CORE[pattern][place], rel=0.03), level


STREAMS_TEXT = """
kernel load(n):
    in A: f64[n]
    out s: f64
    s = 0
    for i in range(n):
        s += A[i]

kernel copy(n):
    in A: f64[n]
    out B: f64[n]
    for i in range(n):
        B[i] = A[i]

kernel triad(n):
    in A, B: f64[n]
    out C: f64[n]
    for i in range(n):
        C[i] = A[i] + 3 * B[i]

kernel update(n):
    in A: f64[n]
    inout B: f64[n]
    for i in range(n):
        B[i] += 3 * A[i]
"""


def test_an_adder_beside_a_multiplier_is_stated() -> None:
    found = characterized()
    assert "pipes" not in machine_text(found)  # in the made-up one both together reach 28, multiplications alone 30
    peaks = [
        replace(p, all_cores=Rate(61e9, 0.0)) if p.cls == "add and mul" and p.type == "f64" else p for p in found.peaks
    ]
    assert "pipes" not in machine_text(replace(found, peaks=tuple(peaks)))  # f32 has not
    peaks = [replace(p, all_cores=Rate(1e12, 0.0)) if p.cls == "add and mul" else p for p in found.peaks]
    assert "pipes separate add mul source" in machine_text(replace(found, peaks=tuple(peaks)))


@pytest.mark.parametrize(("part", "three"), [(0.0, True), (0.4, True), (0.6, False), (1.0, False)])
def test_a_divider_beside_a_multiplier_is_stated(part: float, three: bool) -> None:
    """part: how far from side by side to one after the other."""
    peaks = [replace(p, all_cores=Rate(1e12, 0.0)) if p.cls == "add and mul" else p for p in characterized().peaks]
    for type_name in ("f64", "f32"):
        rates = {p.cls: p.all_cores.per_s for p in peaks if p.type == type_name}
        times = (DIVIDE_EVERY / rates["mul"], 1 / rates["div"])
        both = (DIVIDE_EVERY + 1) / (max(times) + part * min(times))
        peaks.append(Peak(type_name, "mul and div", Rate(both, 0.0), Rate(both, 0.0)))
    text = machine_text(replace(characterized(), peaks=tuple(peaks)))
    assert ("pipes separate add mul div source" in text) is three
    assert to_machine(replace(characterized(), peaks=tuple(peaks))).divider_separate is three


# ---- on this machine, briefly ----


@pytest.mark.thorough
def test_arithmetic_does_what_it_counts() -> None:
    """The loops against numpy: a step of each class on a few accumulators."""
    import numpy as np

    steps = {
        "fma": lambda a, c, d: a * c + d, "add": lambda a, c, d: a + c, "mul": lambda a, c, d: a * c,
        "min": lambda a, c, d: np.maximum(np.minimum(a, c), d), "div": lambda a, c, d: c / a,
        "exp": lambda a, c, d: np.exp(-a) * c, "log": lambda a, c, d: np.log(a + d) + c,
    }  # fmt: skip
    for f in (f for f in SPECIAL_FUNCTIONS if f not in steps):
        row = FUNCTIONS[f]
        text = row.step.format(y=f"apply({row.argument.format(shift='d')})", term="c", factor="c")
        steps[f] = eval(f"lambda a, c, d: {text}", {"apply": row.numpy(np)})
    for name, chain in product(ARITHMETIC, (1, 4)):
        c, d, e, f = operands(name, "float64")
        start = np.random.default_rng(2).uniform(1, 2, 16)
        acc = start.copy()
        arithmetic(name, (8, chain))(acc, c, d, e, f, 3)
        want = start.copy()
        rounds = (((c, d), (e, f)), ((e, f), (c, d)), ((c, d), (e, f)))
        for cc, dd in (each[k % 2] for each in rounds for k in range(chain)):
            if name == "add and mul":
                want = np.concatenate([want[:8] + cc, want[8:] * dd])
            elif name == "mul and div":
                want = np.concatenate([dd / want[:8], want[8:] * cc**DIVIDE_EVERY])
            else:
                want[:8] = steps[name](want[:8], cc, dd)
        np.testing.assert_allclose(acc, want, rtol=1e-14)


@pytest.mark.thorough
def test_accumulators_stay_in_range() -> None:
    import numpy as np

    for name in ARITHMETIC:
        acc = np.random.default_rng(2).uniform(1, 2, 16).astype(np.float32)
        arithmetic(name, (8, 1))(acc, *operands(name, "float32"), 100_000)
        assert np.isfinite(acc).all() and (np.abs(acc) > 1e-6).all()
    assert set(INTEGER) == {"add", "mul", "min"}


@pytest.mark.parametrize("dtype", ["int16", "int8"])
def test_loops_of_short_integers_wrap_around_and_fill_vectors(dtype: str) -> None:
    """Against numpy, whose integers of this size wrap around as well."""
    import numpy as np

    assert [lanes for lanes, _ in shapes("add", True, True, np.dtype(dtype).itemsize)] == [
        {"int16": 128, "int8": 256}[dtype]
    ]
    c, d, e, f = operands("add", dtype)
    start = (np.random.default_rng(5).uniform(1, 2, 16) * 50).astype(dtype)
    acc, a, b = start.copy(), start[:8].copy(), start[8:].copy()
    arithmetic("add", (8, 1), integer=True)(acc, c, d, e, f, 40)
    for _ in range(40):
        a = a + b
        b = b + a
    np.testing.assert_array_equal(acc, np.concatenate([a, b]))


def test_a_sweep_of_this_machine() -> None:
    buffers = Buffers(1 << 20, 1)
    told: list[float] = []
    found = run_sweep(usable_cores()[:1], [8192, 65536], buffers, BRIEF, lambda part, what: told.append(part))
    assert len(found.points) == 8 and all(p.bytes_per_s > 1e6 for p in found.points)
    assert told == sorted(told)
    assert found.best(LOAD, 0, 10_000) == found.of(LOAD)[0] and found.best(LOAD, 1, 2) is None


def test_working_sets_reach_far_beyond_the_last_cache() -> None:
    sizes = working_sets(CPU, 2, 2)
    assert sizes[0] == 4 * KIB and sizes == sorted(set(sizes)) and sizes[-1] >= 4 * (32 << 20)
    small = working_sets(replace(CPU, memory_bytes=1 << 24), 2, 1)
    assert small[-1] <= 1 << 20


def test_too_many_cores() -> None:
    with pytest.raises(ValueError, match="cores were requested"):
        characterize_cpu(cores=100_000)


# ---- the device as the system reports it ----


def test_a_recorded_system(tmp_path: Path) -> None:
    core = usable_cores()[0]
    text = "model name\t: Some  CPU @ 2.00GHz\nflags\t: fpu hypervisor sse\ncpu MHz\t: 2000.000\ncpu MHz\t: 2500.5\n"
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(text)
    for index, (kind, size) in enumerate([("Data", "48K"), ("Instruction", "32K"), ("Unified", "2M"), ("Odd", "?")]):
        folder = tmp_path / f"sys/devices/system/cpu/cpu{core}/cache/index{index}"
        folder.mkdir(parents=True)
        for name, value in (("type", kind), ("size", size), ("level", str(index // 2 + 1)), ("shared_cpu_list", "0")):
            (folder / name).write_text(value + "\n")
        (folder / "coherency_line_size").write_text("64\n")
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("1048576\n")
    found = describe_cpu(tmp_path)
    assert (found.name, found.virtual, found.clock_hz) == ("Some CPU @ 2.00GHz", True, 2_500_500_000)
    assert [(c.level, c.size_bytes, c.line_bytes) for c in found.caches] == [(1, 48 * KIB, 64), (2, 2048 * KIB, 64)]
    assert found.memory_bytes == 1 << 20 and found.last_cache_bytes == 2048 * KIB and found.line_bytes == 64


def test_this_system() -> None:
    found = describe_cpu()
    assert found.cores == len(usable_cores()) and found.name
    assert software()["numba"] != "unknown" and found.to_json()["kind"] == "cpu"


# ---- the figure ----


def test_the_figure_shows_the_sweep(tmp_path: Path) -> None:
    found = characterized()
    figure = sweep_figure(found)
    assert [c.label for c in figure.curves if not c.thin] == [f"{p.name}, 2 cores" for p in STREAMS]
    assert figure.curves[0].points[0] == (4096.0, 400e9)
    assert [m.capacity_bytes for m in figure.marks] == [32 * KIB, 1024 * KIB, 16384 * KIB, None]
    drawn = draw_sweep(figure)
    (axes,) = drawn.axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert list(lines["load, 2 cores"].get_ydata()) == [y for _, y in figure.curves[0].points]
    for name in ("a.svg", "b.svg"):
        save_figure(tmp_path / name, draw_sweep(figure))
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    with pytest.raises(CommandError, match="is not an svg, png or pdf file"):
        save_figure(tmp_path / "a.gif", draw_sweep(figure))


def test_the_made_up_machine_is_what_it_says() -> None:
    assert sweep(1).of(LOAD)[0].bytes_per_s == ONE_CORE[LOAD][0] * 1e9
