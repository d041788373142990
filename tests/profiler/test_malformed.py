"""Reports that are damaged, contradict themselves or leave something open: an error with line and column, or the one
right reading; never a number that the report does not state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.lang.source import Source
from roofdsl.profiler import metrics
from roofdsl.profiler.measured_points import MeasuredPoint, parse_points
from roofdsl.profiler.metric_units import EXPECTED, Quantity, factor, quantity_of
from roofdsl.profiler.metrics import points_of
from roofdsl.profiler.tables import parse
from tests.cli.conftest import Run, roofdsl

__all__ = ["roofdsl"]
LONG = "ID,Kernel Name,Metric Name,Metric Unit,Metric Value\n"
WIDE = "ID,Kernel Name,gpu__time_duration.sum,dram__bytes.sum\n"
NVPROF = "Device,Kernel,Invocations,Metric Name,Min,Max,Avg\n"
SUMMARY = "Type,Time,Calls,Name\n,ms,,\n"
TRACE = "Duration,Name\nus,\n"
TIME, BYTES = "gpu__time_duration.sum", "dram__bytes.sum"


def points(text: str) -> tuple[MeasuredPoint, ...]:
    return points_of(parse(Source("r.csv", text)), "r.csv").points


def moved(point: MeasuredPoint) -> float:
    (level,) = (x for x in point.levels if x.name == "HBM")
    return level.bytes


# ---- units ----


@pytest.mark.spread(15)
@pytest.mark.parametrize(
    ("unit", "quantity", "expected"),
    [
        ("s", "time", 1), ("second", "time", 1), ("sec", "time", 1), ("ms", "time", 1e-3), ("msecond", "time", 1e-3),
        ("us", "time", 1e-6), ("usecond", "time", 1e-6), ("\u00b5s", "time", 1e-6), ("\u03bcs", "time", 1e-6),
        ("\u00b5second", "time", 1e-6), ("ns", "time", 1e-9), ("nsecond", "time", 1e-9), ("min", "time", 60),
        ("hour", "time", 3600), ("byte", "bytes", 1), ("B", "bytes", 1), ("Kbyte", "bytes", 1e3), ("KB", "bytes", 1e3),
        ("Mbyte", "bytes", 1e6), ("GB", "bytes", 1e9), ("Gbyte", "bytes", 1e9), ("Tbyte", "bytes", 1e12),
        ("KiB", "bytes", 1024), ("MiB", "bytes", 2**20), ("Mibyte", "bytes", 2**20), ("GiB", "bytes", 2**30),
        ("", "count", 1), ("inst", "count", 1), ("Kinst", "count", 1e3), ("Minst", "count", 1e6),
        ("sector", "count", 1), ("Gsector", "count", 1e9), ("cycle", "count", 1), ("cycles", "count", 1),
        ("cycle/second", "rate", 1), ("cycle/nsecond", "rate", 1e9), ("cycle/usecond", "rate", 1e6),
        ("cycle/\u00b5s", "rate", 1e6), ("Ghz", "rate", 1e9), ("GHz", "rate", 1e9), ("Mhz", "rate", 1e6),
    ],
)  # fmt: skip
def test_units(unit: str, quantity: Quantity, expected: float) -> None:
    assert factor(unit, quantity) == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("unit", "quantity"),
    [
        ("", "time"), ("", "bytes"), ("", "rate"), ("%", "time"), ("%", "bytes"), ("byte", "time"), ("us", "bytes"),
        ("mbyte", "bytes"), ("mB", "bytes"), ("Ms", "time"), ("Mb", "bytes"), ("bit", "bytes"), ("Kbit", "bytes"),
        ("MS", "time"), ("US", "time"), ("byte/second", "bytes"), ("byte/block", "bytes"), ("byte", "count"),
        ("inst/cycle", "count"), ("ninst", "count"), ("cycle/byte", "rate"), ("cycle", "rate"), ("/", "rate"),
        ("second/cycle", "rate"), ("furlong", "time"), ("u", "time"), ("M", "bytes"), ("Ki", "bytes"), ("n/a", "time"),
    ],
)  # fmt: skip
def test_no_units_of_it(unit: str, quantity: Quantity) -> None:
    assert factor(unit, quantity) is None


def test_everything_that_points_are_made_of_has_a_quantity() -> None:
    used = [name for ways in metrics.LEVELS.values() for names, _ in ways for name in names]
    used += [name for more in metrics.EXTRA.values() for name in more]
    used += ["sm__sass_thread_inst_executed_op_dfma_pred_on.sum", "sm__inst_executed_pipe_tensor_op_hmma.sum"]
    assert {quantity_of(name) for name in used} == {"bytes", "count"}
    assert quantity_of(TIME) == "time"
    assert quantity_of("sm__cycles_elapsed.avg.per_second") == "rate"
    for other in ("dram__bytes.sum.per_second", "dram__bytes.sum.pct_of_peak_sustained_elapsed", "Duration"):
        assert quantity_of(other) is None
    assert set(EXPECTED) == set(get_args(Quantity))


# ---- the right reading ----


def test_units_with_either_micro_sign() -> None:
    for micro in "u\u00b5\u03bc":
        (point,) = points(LONG + f"0,k,{TIME},{micro}s,10\n0,k,{BYTES},Mbyte,1\n")
        assert point.time_s == pytest.approx(10e-6)
        assert moved(point) == 1e6


def test_binary_prefixes() -> None:
    (point,) = points(LONG + f"0,k,{TIME},min,2\n0,k,{BYTES},MiB,1\n")
    assert (point.time_s, moved(point)) == (120, 2**20)


def test_without_ids_each_kernel_is_a_launch() -> None:
    text = "Kernel Name,Metric Name,Metric Unit,Metric Value\n"
    text += f"k1,{TIME},usecond,10\nk1,{BYTES},Mbyte,1\nk2,{TIME},usecond,90\nk2,{BYTES},Mbyte,5\n"
    one, two = points(text)
    assert [(p.kernel, p.launches, moved(p)) for p in (one, two)] == [("k1", 1, 1e6), ("k2", 1, 5e6)]
    assert [p.time_s for p in (one, two)] == [pytest.approx(10e-6), pytest.approx(90e-6)]


def test_the_same_value_twice_counts_once() -> None:
    """Sections of the details page repeat a metric."""
    (point,) = points(LONG + f'0,k,{TIME},us,10\n0,k,{TIME},nsecond,"10,000"\n0,k,{BYTES},byte,7\n')
    assert (point.launches, moved(point)) == (1, 7)
    assert point.time_s == pytest.approx(10e-6)


def test_reports_of_several_processes_in_one_file() -> None:
    """`mpirun -n 2 ncu --csv`: IDs begin at 0 in each process, and each prints its header."""
    header = "ID,Process ID,Kernel Name,Metric Name,Metric Unit,Metric Value\n"
    one, other = f"0,11,k,{BYTES},byte,3\n", f"0,12,k,{BYTES},Kbyte,2\n"
    (point,) = points(header + one + header + other)
    assert (point.launches, moved(point)) == (2, 2003)
    wide = "ID,Process ID,Kernel Name,dram__bytes.sum\n"
    (point,) = points(wide + ",,,byte\n0,11,k,3\n" + wide + ",,,Kbyte\n0,12,k,2\n")
    assert (point.launches, moved(point)) == (2, 2003)


def test_unused_metrics_may_have_any_unit_and_value() -> None:
    text = LONG + "0,k,sm__throughput.avg.pct_of_peak_sustained_elapsed,%,inf\n0,k,Duration,eon,-3\n"
    (point,) = points(text + f"0,k,smsp__x.ratio,,nan\n0,k,{BYTES},byte,3\n")
    assert moved(point) == 3


def test_what_was_not_measured_is_missing() -> None:
    for text in ("n/a", "nan", "(!) n/a", "(!) nan", ""):
        (point,) = points(LONG + f"0,k,{TIME},,{text}\n0,k,{BYTES},byte,3\n")
        assert point.time_s is None
        assert "time: gpu__time_duration.sum" in point.missing


def test_nvprof_on_two_devices() -> None:
    text = NVPROF + "V100 (0),k,2,flop_count_dp,1,1,10\nV100 (1),k,3,flop_count_dp,1,1,100\n"
    text += "V100 (0),k,2,dram_read_throughput,1,1,12.5GB/s\nV100 (0),k,2,flop_count_sp,0,0,1\n"
    (point,) = points(text)
    assert point.launches == 5
    assert point.work is not None
    assert {w.type: w.total for w in point.work} == {"f64": 2 * 10 + 3 * 100}  # f32 is known of one device only


def test_a_summary_for_each_gpu() -> None:
    text = SUMMARY + "GPU activities,2,1,k\n" + SUMMARY.replace("ms", "us") + "GPU activities,5,2,k\n"
    (point,) = points(text)
    assert point.launches == 3
    assert point.time_s == pytest.approx(2e-3 + 5e-6)


def test_devices_that_differ_leave_tensor_instructions_open() -> None:
    text = "ID,CC,Kernel Name,Metric Name,Metric Unit,Metric Value\n"
    text += "0,7.0,k,sm__inst_executed_pipe_tensor.sum,inst,1\n1,9.0,k,sm__inst_executed_pipe_tensor.sum,inst,1\n"
    (point,) = points(text)
    assert any("--tensor-flop" in m for m in point.missing)


# ---- errors ----

MALFORMED = [
    # units
    (LONG + f"0,k,{TIME},furlong,3\n", (2, 28), "`furlong` is not a unit of `gpu__time_duration.sum`"),
    (LONG + f"0,k,{TIME},,3\n", (2, 28), "no unit is given for `gpu__time_duration.sum`"),
    (LONG + f"0,k,{TIME},%,3\n", (2, 28), "`%` is not a unit"),
    (LONG + f"0,k,{TIME},Mbyte,3\n", (2, 28), "`Mbyte` is not a unit"),
    (LONG + f"0,k,{BYTES},,3\n", (2, 21), "no unit is given"),
    (LONG + f"0,k,{BYTES},mbyte,3\n", (2, 21), "`mbyte` is not a unit"),
    (LONG + f"0,k,{BYTES},byte/second,3\n", (2, 21), "`byte/second` is not a unit"),
    (LONG + "0,k,lts__t_sectors.sum,byte,3\n", (2, 24), "`byte` is not a unit"),
    (LONG + "0,k,sm__cycles_elapsed.avg.per_second,cycle,3\n", (2, 39), "`cycle` is not a unit"),
    (f"ID,Kernel Name,Metric Name,Metric Value\n0,k,{TIME},3\n", (1, 1), "no column `Metric Unit`"),
    # a row of units
    (WIDE + "0,k,1,1\n,,us,Mbyte\n1,k,1,1\n", (2, 1), "row of units below the header is missing"),
    (WIDE + ",,us,Mbyte\n0,k,1,1\n,,ns,byte\n1,k,1,1\n", (4, 1), "is not the one below the header"),
    (WIDE + ",,us,\n0,k,1,1\n", (3, 7), "no unit is given for `dram__bytes.sum`"),
    (WIDE + ",,eon,byte\n0,k,1,1\n", (3, 5), "`eon` is not a unit of `gpu__time_duration.sum`"),
    (WIDE + ",,us,byte\n0,k,1,1\n" + WIDE + "1,k,1,1\n", (5, 1), "row of units below the header is missing"),
    ("Type,Time,Calls,Name\nGPU activities,1,1,k\n,ms,,\n", (2, 1), "row of units below the header is missing"),
    (SUMMARY + "GPU activities,1,1,k\n,us,,\nGPU activities,1,1,j\n", (4, 1), "is not the one below the header"),
    ("Type,Time,Calls,Name\n%,,,\nGPU activities,1,1,k\n", (3, 16), "no unit is given for `Time`"),
    (SUMMARY.replace("ms", "%") + "GPU activities,1,1,k\n", (3, 16), "`%` is not a unit of `Time`"),
    (TRACE + "1,k\nms,\n2,k\n", (4, 1), "is not the one below the header"),
    # numbers
    (LONG + f"0,k,{TIME},us,.\n", (2, 31), "`.` is not a number"),
    (LONG + f"0,k,{TIME},us,+\n", (2, 31), "`+` is not a number"),
    (LONG + f"0,k,{TIME},us,e5\n", (2, 31), "`e5` is not a number"),
    (LONG + f"0,k,{TIME},us,-\n", (2, 31), "`-` is not a number"),
    (LONG + f"0,k,{TIME},us,1.5.2\n", (2, 31), "`1.5.2` is not a number"),
    (LONG + f"0,k,{TIME},us,\"0,125\"\n", (2, 31), "`0,125` is not a number"),
    (LONG + f"0,k,{TIME},us,\"12,34\"\n", (2, 31), "`12,34` is not a number"),
    (LONG + f"0,k,{TIME},us,1 234\n", (2, 31), "`1 234` is not a number"),
    (LONG + f"0,k,{TIME},us,\u0661\u0662\n", (2, 31), "is not a number"),
    (LONG + f"0,k,{TIME},us,0x10\n", (2, 31), "`0x10` is not a number"),
    (LONG + f"0,k,{TIME},us,5%\n", (2, 31), "`5%` is not a number"),
    (LONG + f"0,k,{TIME},us,Low (2)\n", (2, 31), "`Low (2)` is not a number"),
    (LONG + f"0,k,{TIME},us,-3\n", (2, 31), "`-3` is negative"),
    (LONG + f"0,k,{TIME},us,-1e-12\n", (2, 31), "is negative"),
    (LONG + f"0,k,{BYTES},byte,-inf\n", (2, 26), "it is infinite"),
    (LONG + f"0,k,{BYTES},byte,inf\n", (2, 26), "it is infinite"),
    (LONG + f"0,k,{BYTES},byte,Infinity\n", (2, 26), "it is infinite"),
    (LONG + f"0,k,{BYTES},byte,1e400\n", (2, 26), "larger than a profiler can count"),
    (LONG + f"0,k,{BYTES},byte,1e99\n", (2, 26), "larger than a profiler can count"),
    (LONG + f"0,k,{BYTES},Tbyte,{'9' * 400}\n", (2, 27), "larger than a profiler can count"),
    (LONG + f"0,k,{TIME},ns,1e-300\n", (2, 31), "smaller than a profiler can measure"),
    (WIDE + ",,us,byte\n0,k,-1,1\n", (3, 5), "`-1` is negative"),
    (WIDE + ",,us,byte\n0,k,1,.\n", (3, 7), "`.` is not a number"),
    (SUMMARY + "GPU activities,-1,1,k\n", (3, 16), "`-1` is negative"),
    (SUMMARY + "GPU activities,inf,1,k\n", (3, 16), "it is infinite"),
    (SUMMARY + "GPU activities,1,1e300,k\n", (3, 18), "not a number of calls"),
    (SUMMARY + "GPU activities,1,1.5,k\n", (3, 18), "not a number of calls"),
    (SUMMARY + "GPU activities,1,inf,k\n", (3, 18), "it is infinite"),
    (SUMMARY + "GPU activities,,1,k\n", (3, 16), "this row has no time"),
    (TRACE + "-1,k\n", (3, 1), "`-1` is negative"),
    (TRACE + ",k\n", (3, 1), "this row has no duration"),
    (NVPROF + "d,k,-1,flop_count_dp,0,0,1\n", (2, 5), "`-1` is negative"),
    (NVPROF + "d,k,1e400,flop_count_dp,0,0,1\n", (2, 5), "not a number of invocations"),
    (NVPROF + "d,k,1,flop_count_dp,0,0,-1\n", (2, 25), "`-1` is negative"),
    (NVPROF + "d,k,1,flop_count_dp,0,0,inf\n", (2, 25), "it is infinite"),
    (NVPROF + "d,k,1,tensor_precision_fu_utilization,0,0,Max (11)\n", (2, 43), "not a level of 0 to 10"),
    # what contradicts itself
    (LONG + f"0,k,{BYTES},Mbyte,1\n0,k,{BYTES},Mbyte,5\n", (3, 27), "is 5e+06 here, and 1e+06 on line 2"),
    (LONG + f"0,k,{BYTES},Mbyte,1\n0,k,{BYTES},byte,1\n", (3, 26), "is 1 here, and 1e+06 on line 2"),
    (LONG + f"0,k,{TIME},us,1\n0,other,{BYTES},byte,1\n", (3, 3), "launch 0 is of `other` here, and of `k` on line 2"),
    (WIDE + ",,us,byte\n0,k,1,1\n0,k,1,2\n", (4, 7), "is 2 here, and 1 on line 3"),
    (WIDE + ",,us,byte\n0,k,1,1\n0,other,1,1\n", (4, 3), "launch 0 is of `other` here"),
    (f"Kernel Name,Metric Name,Metric Unit,Metric Value\nk,{BYTES},byte,1\nk,{BYTES},byte,2\n", (3, 24),
     "is 2 here, and 1 on line 2"),
    (LONG + f",k,{TIME},us,1\n", (2, 1), "this row has no ID"),
    (f"ID,Kernel Name,{BYTES},{BYTES}\n,,byte,byte\n0,k,1,2\n", (1, 32), "two columns are named `dram__bytes.sum`"),
    ("ID,ID,Kernel Name,Metric Name,Metric Unit,Metric Value\n", (1, 4), "two columns are named `ID`"),
    (NVPROF + "d,k,1,flop_count_dp,0,0,1\nd,k,1,flop_count_dp,0,0,2\n", (3, 25), "is 2 here, and 1 on line 2"),
    (NVPROF + "d,k,1,flop_count_dp,0,0,1\nd,k,2,flop_count_sp,0,0,2\n", (3, 5), "has 2 invocations here, and 1"),
    (NVPROF + "d,,1,flop_count_dp,0,0,1\n", (2, 3), "names no kernel"),
    (SUMMARY + "GPU activities,1,1,k\nGPU activities,2,1,k\n", (4, 20), "already has a row, on line 3"),
    # the table
    (LONG + f"0,k,{TIME},us,1,9\n", (2, 1), "this row has 6 columns, and the header has 5"),
    (LONG + f'0,"k,{TIME},us,1\n', (2, 1), "not a whole CSV"),
    (LONG + f'0,"k"x,{TIME},us,1\n', (2, 1), "not a whole CSV"),
    (LONG + f"0,{'k' * 200_000},{TIME},us,1\n", (2, 1), "not a whole CSV"),
    (LONG.replace("\n", "\r") + f"0,k,{TIME},us,1\r", (1, 1), "not a whole CSV"),
]  # fmt: skip


@pytest.mark.spread(15)
@pytest.mark.parametrize(("text", "place", "message"), MALFORMED, ids=[m for _, _, m in MALFORMED])
def test_malformed_reports(text: str, place: tuple[int, int], message: str) -> None:
    with pytest.raises(InputError, match="profile-damaged") as caught:
        points(text)
    assert message in str(caught.value)
    assert f"r.csv:{place[0]}:{place[1]}:" in str(caught.value)


def test_the_table_is_long_enough() -> None:
    assert len(MALFORMED) >= 40


def test_two_reports_of_nvprof_that_both_have_a_metric() -> None:
    one = parse(Source("a.csv", SUMMARY + "GPU activities,1,1,k\n"))
    other = parse(Source("b.csv", SUMMARY + "GPU activities,2,1,k\n"))
    with pytest.raises(CommandError, match="two reports of nvprof have `time` of k"):
        points_of((*one, *other), "")


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e400", "-1", "NaN", "-Infinity", "1e-300"])
def test_numbers_of_documents(number: str) -> None:
    point = '{"kernel": "k", "label": "k", "launches": 1, "time_s": %s, "work": null, "work_flops": null, '
    point += '"flops_per_s": null, "levels": [], "missing": []}'
    text = '{"schema": "roofdsl.points/1", "origin": "ncu", "source": "", "notes": [], "points": [' + point + "]}"
    with pytest.raises(InputError, match="`time_s`"):
        parse_points(Source("p.json", text % number))


def test_the_command(roofdsl: Run, tmp_path: Path) -> None:
    report = tmp_path / "r.csv"
    report.write_text(LONG + f"0,k,{TIME},\u00b5s,10\n0,k,{BYTES},MiB,1\n", encoding="utf-8")
    shown = json.loads(roofdsl("import", "ncu", str(report), "--json").stdout)["points"][0]
    assert shown["time_s"] == pytest.approx(10e-6)
    assert shown["levels"][0]["bytes"] == 2**20
    report.write_text(LONG + f"0,k,{TIME},us,.\n", encoding="utf-8")
    failed = roofdsl("import", "ncu", str(report))
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "r.csv:2:31: error[profile-damaged]: `.` is not a number" in failed.stderr
    assert "Traceback" not in failed.stderr
