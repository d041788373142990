"""Converts a profiler's metrics to time, operations by type and bytes by level.

Methods: Yang, Kurth and Williams, Hierarchical Roofline Analysis for GPUs, section II.B and table I (nvprof:
transactions of 32 bytes, tensor operations from a utilization of 0 to 10); Wang et al., Time-Based Roofline, section
III.B, and Yang, Hierarchical Roofline Analysis: How to Collect Data (Nsight Compute: thread instructions that were not
predicated off, with fused ones counted twice; 512 operations for a tensor instruction of a V100).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from roofdsl.lang.diagnostics import CommandError
from roofdsl.profiler.measured_points import LevelBytes, MeasuredPoint, Points, TypeWork
from roofdsl.profiler.tables import Launches

SECTOR_BYTES = 32
V100_TENSOR_FLOP = 512  # for an HMMA.884 instruction of a warp; other generations have other shapes
V100_TENSOR_PEAK = 125e12  # the rate at utilization 10 (hierarchical paper, section II.B)
_LETTERS = {"f64": "d", "f32": "f", "f16": "h"}
_NVPROF = {"f64": "dp", "f32": "sp", "f16": "hp"}
_TENSOR = "sm__inst_executed_pipe_tensor.sum"
_TENSOR_KINDS = re.compile(r"sm__inst_executed_pipe_tensor(_op_\w+?)?\.sum")
_TENSOR_OPS = re.compile(r"sm__ops_path_tensor_\w+\.sum")
_UTILIZATION = "tensor_precision_fu_utilization"
_L1 = "l1tex__t_sectors_pipe_lsu_mem_{}_op_{}.sum"

# Level -> ways to compute its bytes, the best first; each is a list of metrics that must all be present, and a factor.
LEVELS: Mapping[str, Sequence[tuple[tuple[str, ...], int]]] = {
    "L1": (
        (("l1tex__t_bytes.sum",), 1),
        (("l1tex__t_sectors.sum",), SECTOR_BYTES),
        (tuple(_L1.format(m, op) for m in ("global", "local") for op in ("ld", "st")), SECTOR_BYTES),
        (("gld_transactions", "gst_transactions"), SECTOR_BYTES),
    ),
    "L2": (
        (("lts__t_bytes.sum",), 1),
        (("lts__t_sectors_srcunit_tex.sum",), SECTOR_BYTES),  # without what halves of the L2 send to each other
        (("lts__t_sectors.sum",), SECTOR_BYTES),
        (("lts__t_sectors_op_read.sum", "lts__t_sectors_op_write.sum"), SECTOR_BYTES),
        (("l2_read_transactions", "l2_write_transactions"), SECTOR_BYTES),
    ),
    "HBM": (
        (("dram__bytes.sum",), 1),
        (("dram__bytes_read.sum", "dram__bytes_write.sum"), 1),
        (("dram__bytes_op_read.sum", "dram__bytes_op_write.sum"), 1),
        (("dram__sectors_read.sum", "dram__sectors_write.sum"), SECTOR_BYTES),
        (("dram_read_transactions", "dram_write_transactions"), SECTOR_BYTES),
    ),
    "system": ((("system_read_transactions", "system_write_transactions"), SECTOR_BYTES),),
}
# Also counted if the report has them: table I of the hierarchical paper, and atomic operations at L2.
EXTRA: Mapping[str, Sequence[str]] = {
    "gld_transactions": (
        "atomic_transactions", "local_load_transactions", "local_store_transactions", "shared_load_transactions",
        "shared_store_transactions",
    ),
    "lts__t_sectors_op_read.sum": ("lts__t_sectors_op_atom.sum", "lts__t_sectors_op_red.sum"),
    _L1.format("global", "ld"): (_L1.format("global", "atom"), _L1.format("global", "red")),
}  # fmt: skip


def points_of(launches: Sequence[Launches], source: str, tensor_flop: int | None = None) -> Points:
    """All launches as points, one for each kernel name, in order of first appearance.

    tensor_flop: operations of one tensor instruction of a warp; by default 512 on compute capability 7.0 and unknown
    elsewhere (then it is reported as missing). Launches of several reports add up; nvprof's metrics and times are
    merged. If a launch lacks a metric that others of its kernel have, the sum is unknown and the metric is missing.
    Raises CommandError if two nvprof reports have the same metric of a kernel.
    """
    by_name: dict[str, list[Launches]] = {}
    for one in launches:
        by_name.setdefault(one.kernel, []).append(one)
    notes: list[str] = []
    points = tuple(_point(name, some, tensor_flop, notes) for name, some in by_name.items())
    origin = "nvprof" if any(one.form == "nvprof" for one in launches) else "ncu"
    return Points(origin, source, points, tuple(dict.fromkeys(notes)))


def short_name(kernel: str) -> str:
    """`void ns::axpy<double>(int, double *)` as `axpy`; a name of another form stays as it is."""
    depth, kept = 0, ""
    for c in kernel.replace("(anonymous namespace)::", ""):
        if c == "(" and depth == 0:
            break
        depth += c == "<"
        kept += c if depth == 0 else ""
        depth -= c == ">"
    words = kept.split()
    return words[-1].rsplit("::", 1)[-1] if words and depth == 0 else kernel


def _joined(launches: Sequence[Launches], notes: list[str]) -> tuple[int, dict[str, float]]:
    """The number of launches, and the sums of the metrics that all of them have.

    nvprof's metrics and times are two reports on the same launches, which are merged. If the number of launches
    differs, amounts are those of an average launch times the larger number. Raises CommandError if two reports have the
    same metric.
    """
    if launches[0].form != "nvprof":
        shared = set.intersection(*(set(one.metrics) for one in launches))
        return len(launches), {name: sum(one.metrics[name] for one in launches) for name in shared}
    times = max(one.times for one in launches)
    if any(one.times != times for one in launches):
        notes.append(
            f"{short_name(launches[0].kernel)}: the reports differ in launches; means are multiplied by {times}"
        )
    merged: dict[str, float] = {}
    for one in launches:
        for name in one.metrics.keys() & merged.keys():
            message = f"two reports of nvprof have `{name}` of {short_name(one.kernel)}"
            raise CommandError(message, "give one with metrics and one with times")
        merged |= {n: v if n == _UTILIZATION else v * times / one.times for n, v in one.metrics.items()}
    return times, merged


def _point(kernel: str, launches: Sequence[Launches], tensor_flop: int | None, notes: list[str]) -> MeasuredPoint:
    times, metrics = _joined(launches, notes)
    missing: list[str] = []
    seconds = _seconds(launches, metrics, missing)
    work = _work(metrics, missing)
    if _UTILIZATION in metrics:
        notes.append("tensor operations are a utilization of 0 to 10 in tenths of 125 TFLOP/s: a coarse estimate")
        work += _utilized(metrics[_UTILIZATION], seconds, missing)
    else:
        devices = {one.cc for one in launches}
        work += _tensor(metrics, devices.pop() if len(devices) == 1 else "", tensor_flop, missing)
    levels = _levels(metrics, missing)
    return MeasuredPoint(kernel, short_name(kernel), times, seconds, work or None, levels, tuple(missing))


def _seconds(launches: Sequence[Launches], metrics: Mapping[str, float], missing: list[str]) -> float | None:
    for name in ("time", "gpu__time_duration.sum", "gpu__time_duration.avg", "gpu__time_duration.max"):
        if name in metrics:
            return metrics[name]
    cycles, rate = "sm__cycles_elapsed.avg", "sm__cycles_elapsed.avg.per_second"
    if cycles in metrics and rate in metrics and all(one.metrics[rate] > 0 for one in launches):
        return sum(one.metrics[cycles] / one.metrics[rate] for one in launches)
    nvprof = launches[0].form == "nvprof"
    missing.append("time: nvprof --print-gpu-summary --csv" if nvprof else "time: gpu__time_duration.sum")
    return None


def _work(metrics: Mapping[str, float], missing: list[str]) -> tuple[TypeWork, ...]:
    """Scalar operations by type; a type that lacks some metric is missing."""
    found = []
    for name, letter in _LETTERS.items():
        metric = {op: f"sm__sass_thread_inst_executed_op_{letter}{op}_pred_on.sum" for op in ("add", "mul", "fma")}
        total = f"flop_count_{_NVPROF[name]}"
        parts = {op: f"{total}_{op}" for op in ("add", "mul", "fma")}
        for names in (metric, parts):
            if all(m in metrics for m in names.values()):
                found.append(TypeWork(name, metrics[names["add"]], metrics[names["mul"]], metrics[names["fma"]]))
                break
        else:
            if total in metrics:
                found.append(TypeWork(name, other=metrics[total]))
                continue
            absent = [m for m in metric.values() if m not in metrics]
            missing.append(f"{name}: {', '.join(absent)}")
    return tuple(found)


def _utilized(level: float, seconds: float | None, missing: list[str]) -> tuple[TypeWork, ...]:
    """The operations for a utilization level (hierarchical paper, section II.B): 10 means 125 TFLOP/s."""
    if seconds is None:
        missing.append(f"tensor: {_UTILIZATION} needs the time")
        return ()
    return (TypeWork("tensor", other=level / 10 * V100_TENSOR_PEAK * seconds),) if level else ()


def _tensor(metrics: Mapping[str, float], cc: str, tensor_flop: int | None, missing: list[str]) -> tuple[TypeWork, ...]:
    counted = {n.removesuffix(".sum"): v for n, v in metrics.items() if _TENSOR_OPS.fullmatch(n)}
    # `..._sparsity_off` is a part of what the metric without that end counts.
    operations = sum(v for n, v in counted.items() if not any(n.startswith(f"{whole}_") for whole in counted))
    if operations:
        return (TypeWork("tensor", other=operations),)
    kinds = {n: v for n, v in metrics.items() if _TENSOR_KINDS.fullmatch(n)}
    instructions = kinds.get(_TENSOR, sum(kinds.values()))
    if not kinds and not counted:
        missing.append(f"tensor: {_TENSOR}")
    if not instructions:
        return ()
    known = V100_TENSOR_FLOP if cc == "7.0" else None
    each = tensor_flop if tensor_flop is not None else known
    if each is None:
        which = f"of compute capability {cc}" if cc else "of this device"
        missing.append(f"tensor: the operations of a tensor instruction {which} (--tensor-flop)")
        return ()
    return (TypeWork("tensor", other=instructions * each),)


def _levels(metrics: Mapping[str, float], missing: list[str]) -> tuple[LevelBytes, ...]:
    found = []
    for level, ways in LEVELS.items():
        for names, factor in ways:
            if all(n in metrics for n in names):
                extra = [n for n in EXTRA.get(names[0], ()) if n in metrics]
                found.append(LevelBytes(level, sum(metrics[n] for n in (*names, *extra)) * factor))
                break
        else:
            if level != "system":
                missing.append(f"{level}: {', '.join(ways[0][0])}")
    return tuple(found)
