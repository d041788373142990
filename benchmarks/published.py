"""Published measurements of GPUs beside our expected times: operators of PyTorch, and streams by occupancy.

Files have the columns of the published data:

- operators: op, device, batch, m, n, k, width, time_ms. The launches that the authors recorded show that a product's
  result has m x k elements and that n is summed over, so that is how the columns are read here.
- streams: device, loop, threads_per_multiprocessor, gb_per_s, and, if the file has it, threads: the threads of all
  multiprocessors (an RX 6900 XT pairs its units, and has half as many multiprocessors as units). Two blocks of
  threads_per_multiprocessor threads are resident on a multiprocessor, and each thread handles one f64 element.
"""

from __future__ import annotations

import csv
import json as json_text
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from benchmarks.measure import markdown
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.operators.bandwidth import STREAMING, Round, stream_rate
from roofdsl.operators.operator import Operator
from roofdsl.operators.time import operator_time

MACHINES = {
    "Tesla V100-PCIE-32GB": "v100_pcie",
    "Tesla T4": "t4",
    "Tesla P100-PCIE-16GB": "p100_pcie",
    "Tesla P4": "p4",
    "NVIDIA A100-PCIE-40GB": "a100_40_pcie",
    "NVIDIA A100 80GB PCIe": "a100_80_pcie",
    "NVIDIA H100 80GB HBM3": "h100_80",
    "NVIDIA L4": "l4",
    "v100": "v100",
    "a100_40": "a100_40",
    "a100_80": "a100_80",
    "h200": "gh200_96",
}
"""The shipped machine of a device, where it has another name. The authors of gpu-benches call a GH200's GPU `h200`."""

STREAMS = {
    "init": (0, 8), "read": (8, 0), "scale": (8, 8), "triad": (16, 8), "1pt": (8, 8), "3pt": (8, 8), "5pt": (8, 8),
}  # fmt: skip
"""Bytes that an element of each loop loads from and stores to the memory; stencils find their neighbors in a cache."""

STENCILS = {"3pt": Round(neighbors=2, multiply_adds=3), "5pt": Round(neighbors=4, multiply_adds=5)}
MISLABELED = {"1pt": "3pt", "3pt": "5pt"}
"""The loops of a device whose table has the headings `1pt` and `3pt`. The program that printed them (gpu-benches,
`cuda-stream/main.cu` until 2022) runs `stencil1d3pt` and `stencil1d5pt`; later versions print `3pt` and `5pt`."""

RESIDENT = 2
"""Blocks of a stream resident on a multiprocessor."""

ABOVE = 1.03
"""A measurement counts as above the bound if it is faster by more than 3 %."""


@dataclass(frozen=True)
class OperatorErrors:
    """The errors |expected / measured - 1| of all rows of an operator on a device, and the median ratio of measured to
    expected.
    """

    device: str
    op: str
    rows: int
    median_error: float
    p90_error: float
    median_ratio: float
    above_bound: int


@dataclass(frozen=True)
class StreamErrors:
    """The errors over all occupancies of one loop on one device: |expected / measured - 1| of the bandwidth."""

    device: str
    loop: str
    rows: int
    mean_error: float


def rows_of(path: Path, needed: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a CSV file. Raises CommandError if it cannot be read or lacks a column."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            found = list(csv.DictReader(file, skipinitialspace=True))
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} cannot be read: {error}", "give a CSV file with a heading") from None
    missing = [name for name in needed if not found or name not in found[0]]
    if missing:
        raise CommandError(f"{path} has no column `{missing[0]}`", f"its columns should be {', '.join(needed)}")
    return found


def machine_of(device: str) -> Machine:
    """The shipped machine for a published device. Raises CommandError if there is none."""
    return load_machine(MACHINES.get(device, device))


def operator_of(row: Mapping[str, str]) -> Operator:
    """The operator of a row; see the module on the names of a product's sizes."""

    def size(name: str) -> int:
        return int(float(row[name])) if row[name] else 0

    return Operator(row["op"], size("batch"), size("m"), size("k"), size("n"), size("width"))


@dataclass(frozen=True)
class OperatorPoint:
    """One row of a file of operators: seconds as measured, as expected, and of the bound."""

    device: str
    op: str
    measured_s: float
    expected_s: float
    bound_s: float


@dataclass(frozen=True)
class StreamPoint:
    """One row of a file of streams: bytes per second as measured and as expected."""

    device: str
    loop: str
    threads: int
    measured_per_s: float
    expected_per_s: float


def operator_points(path: Path) -> list[OperatorPoint]:
    """Our expected time of each row of a file of operators."""
    machines: dict[str, Machine] = {}
    points = []
    for row in rows_of(path, ("op", "device", "batch", "m", "n", "k", "width", "time_ms")):
        device = row["device"]
        if device not in machines:
            machines[device] = machine_of(device)
        found = operator_time(operator_of(row), machines[device])
        measured_s = float(row["time_ms"]) / 1000
        points.append(OperatorPoint(device, row["op"], measured_s, found.expected_s, found.bound_s))
    return points


def stream_points(path: Path) -> list[StreamPoint]:
    """Our expected bandwidth of each row of a file of streams."""
    points = []
    rows = rows_of(path, ("device", "loop", "threads_per_multiprocessor", "gb_per_s"))
    early = {row["device"] for row in rows if row["loop"] == "1pt"}
    for row in rows:
        machine = machine_of(row["device"])
        if row["loop"] not in STREAMS:
            raise CommandError(f"there is no model of the loop `{row['loop']}`", f"there are {', '.join(STREAMS)}")
        loads, stores = STREAMS[row["loop"]]
        loop = MISLABELED.get(row["loop"], row["loop"]) if row["device"] in early else row["loop"]
        threads = int(row["threads_per_multiprocessor"])
        everywhere = int(row["threads"]) if row.get("threads") else threads * (machine.units or 1)
        in_flight = RESIDENT * everywhere * (loads + stores)
        expected = stream_rate(machine, loads, stores, in_flight, STENCILS.get(loop, STREAMING))
        points.append(StreamPoint(row["device"], loop, RESIDENT * threads, float(row["gb_per_s"]) * 1e9, expected))
    return points


def operator_errors(points: Sequence[OperatorPoint]) -> list[OperatorErrors]:
    """By device and operator, in the order of the file."""
    grouped: dict[tuple[str, str], list[OperatorPoint]] = defaultdict(list)
    for p in points:
        grouped[p.device, p.op].append(p)
    found = []
    for (device, op), own in grouped.items():
        errors = sorted(abs(p.expected_s / p.measured_s - 1) for p in own)
        p90 = errors[min(len(errors) - 1, int(0.9 * len(errors)))]
        ratio = median(p.measured_s / p.expected_s for p in own)
        above = sum(p.bound_s > ABOVE * p.measured_s for p in own)
        found.append(OperatorErrors(device, op, len(own), median(errors), p90, ratio, above))
    return found


def stream_errors(points: Sequence[StreamPoint]) -> list[StreamErrors]:
    """By device and loop, in the order of the file."""
    grouped: dict[tuple[str, str], list[float]] = defaultdict(list)
    for p in points:
        grouped[p.device, p.loop].append(abs(p.expected_per_s / p.measured_per_s - 1))
    return [StreamErrors(device, loop, len(errors), mean(errors)) for (device, loop), errors in grouped.items()]


def answer(operators: Path | None, streams: Path | None, figure: Path | None, *, json: bool) -> str:
    """What `python -m benchmarks published` prints. Raises CommandError without a file, and for an unusable one."""
    if operators is None and streams is None:
        raise CommandError("there is nothing to compare with", "give --operators CSV, --streams CSV, or both")
    calls = operator_points(operators) if operators else []
    curves = stream_points(streams) if streams else []
    if figure is not None:
        from benchmarks.published_figure import draw

        draw(calls, curves, figure)
    found, bent = operator_errors(calls), stream_errors(curves)
    return as_json(found, bent) if json else section(found, bent)


def as_json(found: Iterable[OperatorErrors], curves: Iterable[StreamErrors]) -> str:
    document: dict[str, Any] = {
        "operators": [asdict(f) for f in found],
        "streams": [asdict(c) for c in curves],
    }
    return json_text.dumps(document, indent=2)


def section(found: Sequence[OperatorErrors], curves: Sequence[StreamErrors]) -> str:
    """Two tables in Markdown, without those that would be empty."""
    parts = []
    if found:
        heading = ("operator", "device", "rows", "median error", "90th percentile", "measured/expected", "above bound")
        table = [
            (f.op, f.device, str(f.rows), f"{f.median_error:.1%}", f"{f.p90_error:.1%}", f"{f.median_ratio:.2f}",
             str(f.above_bound))
            for f in sorted(found, key=lambda f: (f.op, f.device))
        ]  # fmt: skip
        parts.append(markdown(heading, table))
    if curves:
        rows = [(c.loop, c.device, str(c.rows), f"{c.mean_error:.1%}") for c in curves]
        parts.append(markdown(("loop", "device", "rows", "mean error"), rows))
    return "\n\n".join(parts)
