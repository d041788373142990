"""`import ncu`: the tables of Nsight Compute and nvprof, and what is made of them.

The files under data/ are made by hand in the profilers' forms; the numbers here are worked from what they state.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.source import Source
from roofdsl.profiler.measured_points import (
    LevelBytes,
    MeasuredPoint,
    Points,
    TypeWork,
    load_points,
    parse_points,
    save_points,
)
from roofdsl.profiler.metrics import points_of, short_name
from roofdsl.profiler.tables import Launches, parse, read
from tests.cli.conftest import Run, roofdsl

__all__ = ["roofdsl"]
DATA = Path(__file__).parent / "data"
L1_WAYS = ("global_op_ld", "global_op_st", "local_op_ld", "local_op_st")
HEADER = '"ID","Kernel Name","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
FMA = {f"sm__sass_thread_inst_executed_op_{t}{op}_pred_on.sum": 0.0 for t in "dfh" for op in ("add", "mul", "fma")}


def long(*rows: str) -> tuple[Launches, ...]:
    return parse(Source("r.csv", HEADER + "".join(f"{r}\n" for r in rows)))


@pytest.mark.parametrize("name", ["long.csv", "wide.csv"])
def test_both_forms_of_nsight_compute(name: str) -> None:
    axpy, gemm = points_of(read(DATA / name), name).points
    assert (axpy.kernel, axpy.label, axpy.launches) == ("void axpy<double>(int, double, double *)", "axpy", 2)
    assert axpy.time_s == pytest.approx(80e-6)
    assert axpy.work is not None
    assert {w.type: w.total for w in axpy.work} == {"f64": 2 * (2 * 1_000_000 + 500_000), "f32": 0, "f16": 0}
    assert axpy.fma_fraction == pytest.approx(2 / 3)
    assert {x.name: x.bytes for x in axpy.levels} == {"L1": 48e6, "L2": 48e6, "HBM": 48e6}
    assert axpy.flops_per_s == pytest.approx(5e6 / 80e-6)
    assert axpy.intensity("HBM") == pytest.approx(5 / 48)
    assert gemm.work_flops == 2_000_000 * 512 + 1000
    assert gemm.time_s == pytest.approx(1e-3)
    assert (axpy.missing, gemm.missing, gemm.fma_fraction) == ((), (), None)


def test_nvprof() -> None:
    (alone,) = points_of(read(DATA / "nvprof_metrics.csv"), "").points
    assert alone.time_s is None
    assert any(m.startswith("time") for m in alone.missing)
    both = points_of((*read(DATA / "nvprof_metrics.csv"), *read(DATA / "nvprof_summary.csv")), "")
    (gpp,) = both.points
    assert (gpp.launches, gpp.label) == (2, "gpp")
    assert gpp.time_s == pytest.approx(4e-6)
    # equation 4 of the paper: transactions of 32 bytes; a utilization of 2 is 25 TFLOP/s
    assert {x.name: x.bytes for x in gpp.levels} == {
        "L1": 2 * 125_000 * 32,
        "L2": 2 * 75_000 * 32,
        "HBM": 2 * 50_000 * 32,
    }
    assert gpp.work_flops == pytest.approx(2 * 4_000_000 + 25e12 * 4e-6)
    assert "coarse" in both.notes[0]


def test_a_trace_of_nvprof() -> None:
    text = (
        '"Start","Duration","Name"\nms,us,\n1.0,2.5,"k(int) [12]"\n2.0,3.5,"k(int) [14]"\n3.0,9,"[CUDA memcpy DtoH]"\n'
    )
    assert parse(Source("t.csv", text)) == (Launches("k(int)", 2, {"time": pytest.approx(6e-6)}, "", "nvprof"),)


def test_time_from_cycles() -> None:
    rate = "sm__cycles_elapsed.avg.per_second"
    launches = long(
        '0,k,7.0,s,sm__cycles_elapsed.avg,cycle,"2,624"', f"0,k,7.0,s,{rate},cycle/nsecond,1.312",
        "1,k,7.0,s,sm__cycles_elapsed.avg,cycle,1312", f"1,k,7.0,s,{rate},cycle/second,1312000000",
    )  # fmt: skip
    assert points_of(launches, "").points[0].time_s == pytest.approx(3e-6)


@pytest.mark.parametrize(
    ("metrics", "level", "expected"),
    [
        ({f"lts__t_sectors_op_{op}.sum": 5.0 for op in ("read", "write", "atom")}, "L2", 480),
        ({"dram__bytes_read.sum": 100, "dram__bytes_write.sum": 28}, "HBM", 128),
        ({"dram__sectors_read.sum": 3, "dram__sectors_write.sum": 1}, "HBM", 128),
        ({f"l1tex__t_sectors_pipe_lsu_mem_{w}.sum": 1.0 for w in L1_WAYS}, "L1", 128),
        ({"dram__bytes.sum": 7, "dram__sectors_read.sum": 3, "dram__sectors_write.sum": 1}, "HBM", 7),
    ],
)  # fmt: skip
def test_bytes_of_levels(metrics: dict[str, float], level: str, expected: int) -> None:
    (point,) = points_of([Launches("k", 1, metrics)], "").points
    assert {x.name: x.bytes for x in point.levels} == {level: expected}


def test_half_a_level_is_missing() -> None:
    (point,) = points_of([Launches("k", 1, {"dram__bytes_read.sum": 100.0})], "").points
    assert point.levels == ()
    assert "HBM: dram__bytes.sum" in point.missing


def test_missing_metrics_are_named() -> None:
    some = dict(FMA)
    del some["sm__sass_thread_inst_executed_op_dmul_pred_on.sum"]
    (point,) = points_of([Launches("k", 1, some)], "").points
    assert point.missing == (
        "time: gpu__time_duration.sum", "f64: sm__sass_thread_inst_executed_op_dmul_pred_on.sum",
        "tensor: sm__inst_executed_pipe_tensor.sum", "L1: l1tex__t_bytes.sum", "L2: lts__t_bytes.sum",
        "HBM: dram__bytes.sum",
    )  # fmt: skip
    assert point.work is not None
    assert [w.type for w in point.work] == ["f32", "f16"]


def test_a_metric_that_one_launch_lacks_is_no_sum() -> None:
    launches = long(
        "0,k,7.0,s,dram__bytes.sum,byte,64", "1,k,7.0,s,dram__bytes.sum,byte,n/a", "1,k,7.0,s,lts__t_bytes.sum,byte,1"
    )
    (point,) = points_of(launches, "").points
    assert (point.launches, point.levels) == (2, ())


@pytest.mark.parametrize(
    ("cc", "given", "expected"), [("7.0", None, 5120), ("9.0", None, None), ("9.0", 4096, 40960), ("7.0", 2, 20)]
)
def test_tensor_instructions(cc: str, given: int | None, expected: int | None) -> None:
    launch = Launches("k", 1, {"sm__inst_executed_pipe_tensor.sum": 10.0}, cc)
    (point,) = points_of([launch], "", given).points
    assert point.work_flops == expected
    assert any("--tensor-flop" in m for m in point.missing) == (expected is None)


def test_operations_that_the_profiler_counts_itself() -> None:
    launch = Launches(
        "k", 1, {"sm__ops_path_tensor_src_bf16_dst_fp32.sum": 64.0, "sm__inst_executed_pipe_tensor.sum": 1.0}
    )
    assert points_of([launch], "").points[0].work_flops == 64


def test_operations_of_a_part_are_not_added_to_those_of_the_whole() -> None:
    """Without the whole, its parts are added; a device may count several kinds of operations."""
    counts = {"src_fp16_dst_fp32": 96.0, "src_fp16_dst_fp32_sparsity_off": 64.0, "src_fp16_dst_fp32_sparsity_on": 32.0}
    for kinds, expected in ((counts, 96), ({**counts, "src_fp64": 8.0}, 104), (dict([*counts.items()][1:]), 96)):
        metrics = {f"sm__ops_path_tensor_{kind}.sum": value for kind, value in kinds.items()}
        assert points_of([Launches("k", 1, metrics)], "").points[0].work_flops == expected


def test_no_tensor_operations_are_a_measurement_too() -> None:
    launch = Launches("k", 1, {"sm__ops_path_tensor_src_fp16_dst_fp32.sum": 0.0})
    (point,) = points_of([launch], "").points
    assert point.work_flops is None and not any("tensor" in missing for missing in point.missing)


@pytest.mark.parametrize(
    ("kernel", "label"),
    [
        ("axpy", "axpy"), ("void axpy<double>(int, double *)", "axpy"), ("at::(anonymous namespace)::k(int)", "k"),
        ("void a::b<c<(int)3>, d>(e<f>)", "b"), ("k(int) const", "k"), ("a >> b", "a >> b"),
    ],
)  # fmt: skip
def test_short_names(kernel: str, label: str) -> None:
    assert short_name(kernel) == label


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "not a report"),
        ("a,b\n1,2\n", 1, "not a report"),
        (HEADER + "0,k,7.0,s,dram__bytes.sum,byte\n", 2, "6 columns, and the header has 7"),
        (HEADER + "0,k,7.0,s,dram__bytes.sum,byte,12x\n", 2, "`12x` is not a number"),
        (HEADER + "0,k,7.0,s,dram__bytes.sum,byte,27.595.520\n", 2, "`27.595.520` is not a number"),
        (HEADER + '0,k,7.0,s,dram__bytes.sum,byte,"65,77"\n', 2, "`65,77` is not a number"),
        (HEADER + "0,,7.0,s,dram__bytes.sum,byte,1\n", 2, "names no kernel"),
        (HEADER + '0,k,7.0,s,"dram__bytes.sum,byte,1\n', 2, "not a whole CSV"),
        ('"ID","Kernel Name","dram__bytes.sum"\n0,k,12\n', 2, "row of units"),
        ("Kernel,Invocations,Metric Name,Avg\nk,0,flop_count_dp,1\n", 2, "not a number of invocations"),
        ("Type,Time,Calls,Name\nGPU activities,1,1,k\n", 2, "row of units"),
    ],
)
def test_damaged_reports(text: str, line: int, message: str) -> None:
    with pytest.raises(InputError, match="profile-damaged") as caught:
        parse(Source("r.csv", text))
    assert message in str(caught.value)
    assert f"r.csv:{line}:" in str(caught.value)


def test_unreadable_reports(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        read(tmp_path / "none.csv")
    with pytest.raises(CommandError, match="cannot be read"):
        read(tmp_path)
    (tmp_path / "b.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8 text"):
        read(tmp_path / "b.csv")


# ---- documents ----

POINT = MeasuredPoint("k(int)", "k", 2, 1e-3, (TypeWork("f64", 1, 2, 3, 4),), (LevelBytes("HBM", 26),), ("L2: x",))


def test_documents_come_back_as_they_were(tmp_path: Path) -> None:
    points = Points("ncu", "r.csv", (POINT, MeasuredPoint("e", "e", 1, None, None, ())), ("a note",))
    save_points(tmp_path / "p.json", points)
    assert load_points(tmp_path / "p.json") == points
    plain = json.loads((tmp_path / "p.json").read_text())["points"][0]
    assert (plain["work_flops"], plain["flops_per_s"]) == (13, 13e3)
    assert plain["levels"] == [{"name": "HBM", "bytes": 26, "intensity": 0.5, "bytes_per_s": 26e3}]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("time_s", -1),
        ("launches", 0.5),
        ("work_flops", 12),
        ("flops_per_s", None),
        ("levels", {}),
        ("kernel", 3),
        ("work", [{}]),
    ],
)
def test_damaged_documents(key: str, value: object) -> None:
    document = Points("ncu", "", (POINT,)).to_json()
    document["points"][0][key] = value
    with pytest.raises(InputError, match="profile-damaged"):
        parse_points(Source("p.json", json.dumps(document)))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": "roofdsl.points/2"}', '{"schema": "roofdsl.points/1"}', "[" * 10**5]
)
def test_no_documents(text: str) -> None:
    with pytest.raises(InputError, match="profile-damaged"):
        parse_points(Source("p.json", text))


# ---- the command ----


@pytest.mark.thorough
def test_the_command(roofdsl: Run, tmp_path: Path) -> None:
    out, figure = tmp_path / "p.json", tmp_path / "f.svg"
    made = roofdsl("import", "ncu", str(DATA / "long.csv"), "-o", str(out))
    assert made.returncode == 0
    assert made.stderr == ""
    assert "axpy" in made.stdout
    drawn = roofdsl("plot", "roofline", "--machine", "v100", "--measured-file", str(out), "-o", str(figure))
    assert drawn.returncode == 0
    assert "axpy" in figure.read_text()
    shown = json.loads(roofdsl("import", "ncu", str(DATA / "wide.csv"), "--kernel", "axpy", "--json").stdout)
    assert [p["label"] for p in shown["points"]] == ["axpy"]


@pytest.mark.spread(2)
@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["missing.csv"], 2, "cannot be read"),
        ([str(DATA / "README.md")], 1, "profile-damaged"),
        ([str(DATA / "long.csv"), "--kernel", "none"], 2, "no kernel with `none`"),
        ([str(DATA / "long.csv"), "-o", "/nowhere/p.json"], 2, "there is no directory"),
        ([], 2, "Missing argument"),
    ],
)
def test_errors_of_the_command(roofdsl: Run, args: list[str], status: int, message: str) -> None:
    result = roofdsl("import", "ncu", *args)
    assert (result.returncode, result.stdout) == (status, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
