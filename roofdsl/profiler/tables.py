"""A profiler's CSV as launches with metrics: Nsight Compute in its long and its wide form, and nvprof.

Forms, by their header: Nsight Compute `--csv` has one metric a row (columns "Metric Name", "Metric Unit", "Metric
Value"); with `--page raw` it has one launch a row, a column for each metric, and a row of units below the header;
nvprof `--metrics ... --csv` has averages over invocations ("Invocations", "Avg"); nvprof `--print-gpu-summary --csv`
has times ("Calls", "Time") and `--print-gpu-trace --csv` durations ("Duration"), both with a row of units.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from roofdsl.lang.diagnostics import Diagnostic, InputError
from roofdsl.lang.reading import read_limited
from roofdsl.lang.source import Source, Span

_LARGEST_FILE = 256 << 20
_PREFIXES = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_UNITS = {"second": "s", "sec": "s", "s": "s", "byte": "B", "B": "B", "hz": "Hz", "Hz": "Hz"}
_COUNTS = ("inst", "sector", "cycle", "request", "warp", "block", "thread", "register", "op")
_NUMBER = re.compile(r"[+-]?(\d{1,3}(,\d{3})+|\d+)?(\.\d*)?([eE][+-]?\d+)?")
_LEVEL = re.compile(r"(?:Low|Mid|High|Max|Idle)\s*\((\d+)\)")
_NAMELESS = {"", "n/a", "nan", "inf", "-inf", "(!) n/a", "<overflow>"}
# Columns of Nsight Compute's wide form that are no metrics.
_PLAIN = {
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Kernel Time", "Context", "Stream", "Block Size",
    "Grid Size", "Device", "CC", "Section Name",
}  # fmt: skip


@dataclass(frozen=True)
class Launches:
    """What a report says of one kernel's launches taken together, in seconds, bytes, hertz and plain counts.

    `metrics` are sums over the launches; `rates` (units per second or per cent, levels) are not summable and hold
    the mean. `times`: how many launches. cc: the compute capability where the report has it.
    """

    kernel: str
    times: int
    metrics: Mapping[str, float]
    cc: str = ""
    form: str = "ncu"


def read(path: Path) -> tuple[Launches, ...]:
    """Every launch (Nsight Compute) or kernel (nvprof) of a report.

    Raises CommandError where the file cannot be read, InputError where it is no such report or is damaged.
    """
    data = read_limited(path, _LARGEST_FILE, "a report")
    try:
        text = data.decode("utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig")  # of PowerShell
    except UnicodeDecodeError:
        source = Source(str(path), data.decode("utf-8", "replace"))
        raise wrong(source, 1, "this is no CSV: it is no text in UTF-8", _EXPORT) from None
    return parse(Source(str(path), text))


_EXPORT = "export it with `ncu --csv --page raw --import REPORT.ncu-rep`"


def wrong(source: Source, line: int, message: str, help: str = "") -> InputError:
    """An error about one line of a report."""
    return InputError(source, [Diagnostic("profile-damaged", message, Span(line, 1, line, 2), help)])


def parse(source: Source) -> tuple[Launches, ...]:
    """The launches of a report's text. Raises InputError as `read` does."""
    rows = _rows(source)
    for line, row in rows:
        names = [c.strip() for c in row]
        form = next((f for f, (needed, _) in _FORMS.items() if needed <= set(names)), None)
        if form is not None:
            return _FORMS[form][1](source, _Table(source, line, names, list(rows)))
    raise wrong(
        source, 1, "this is no report of Nsight Compute or nvprof: no line has the names of its columns", _EXPORT
    )


def _rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """The rows with their lines, without the profiler's own messages (`==PROF==`, `==123==`) and blank lines."""
    lines = source.text.split("\n")
    reader = csv.reader(("" if line.startswith("==") else line + "\n" for line in lines), strict=True)
    whole = 0  # a quote that is never closed swallows the rest of the file: the fault is where its row began
    try:
        for row in reader:
            whole = reader.line_num
            if any(c.strip() for c in row):
                yield whole, row
    except csv.Error as error:
        raise wrong(source, whole + 1, f"this is no whole CSV: {error}") from None


@dataclass(frozen=True)
class _Table:
    source: Source
    line: int
    names: Sequence[str]
    rows: Sequence[tuple[int, list[str]]]

    def records(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Rows by column; what a program printed after its report is left out, a row cut short is an error."""
        for line, row in self.rows:
            if len(row) == 1 and len(self.names) > 1:
                continue
            if len(row) != len(self.names):
                message = f"this row has {len(row)} columns, and the header has {len(self.names)}"
                raise wrong(self.source, line, message, "the report is cut off, or was edited")
            yield line, dict(zip(self.names, (c.strip() for c in row), strict=True))

    def number(self, line: int, text: str, unit: str = "") -> float | None:
        """A value in base units; None where the profiler has none. Raises InputError."""
        if text.lower() in _NAMELESS:
            return None
        level = _LEVEL.fullmatch(text)
        bare = level[1] if level else text.removesuffix("%").strip()
        if not bare or not _NUMBER.fullmatch(bare):
            message = f"`{text[:40]}` is no number"
            raise wrong(self.source, line, message, "thousands are `1,234`, decimals `.5`: run with LC_ALL=C")
        return float(bare.replace(",", "")) * factor(unit)


def factor(unit: str) -> float:
    """What a unit as the profilers write it is in seconds, bytes, hertz or counts; 1 for what has no prefix."""
    head, slash, per = unit.strip().partition("/")
    if slash:
        return factor(head) / factor(per)
    if head in _UNITS or head in _COUNTS:
        return 1.0
    for ending in (*_UNITS, *_COUNTS):
        prefix = head.removesuffix(ending)
        if prefix != head and prefix in _PREFIXES:
            return _PREFIXES[prefix]
    return 1.0


def _long(source: Source, table: _Table) -> tuple[Launches, ...]:
    found: dict[tuple[str, str], tuple[str, str, dict[str, float]]] = {}
    for line, row in table.records():
        if not row["Kernel Name"]:
            raise wrong(source, line, "this row names no kernel")
        launch = (row.get("Process ID", ""), row.get("ID", ""))
        metrics = found.setdefault(launch, (row["Kernel Name"], row.get("CC", ""), {}))[2]
        if not row["Metric Name"]:
            continue  # a rule's advice
        value = _try(table, line, row["Metric Value"], row.get("Metric Unit", ""), row["Metric Name"])
        if value is not None:
            metrics[row["Metric Name"]] = value
    return tuple(Launches(name, 1, metrics, cc) for name, cc, metrics in found.values())


def _wide(source: Source, table: _Table) -> tuple[Launches, ...]:
    units: dict[str, str] = {}
    found = []
    for line, row in table.records():
        if not row["ID"] and not row["Kernel Name"]:
            units = row
            continue
        if not row["Kernel Name"]:
            raise wrong(source, line, "this row names no kernel")
        values = {n: _try(table, line, v, units.get(n, ""), n) for n, v in row.items() if n not in _PLAIN}
        metrics = {n: v for n, v in values.items() if v is not None}
        found.append(Launches(row["Kernel Name"], 1, metrics, row.get("CC", "")))
    if found and not units:
        raise wrong(source, table.line + 1, "the row of units below the header is missing", _EXPORT)
    return tuple(found)


def _try(table: _Table, line: int, text: str, unit: str, name: str) -> float | None:
    """Metrics have dots or `__` in their names; of the other columns (text, sizes) only numbers are of use."""
    if "__" in name:
        return table.number(line, text, unit)
    return None


def _nvprof(source: Source, table: _Table) -> tuple[Launches, ...]:
    found: dict[str, tuple[int, dict[str, float]]] = {}
    for line, row in table.records():
        times = table.number(line, row["Invocations"])
        if times is None or times < 1 or times != int(times):
            raise wrong(source, line, f"`{row['Invocations'][:40]}` is no number of invocations")
        value = table.number(line, row["Avg"])
        _, metrics = found.setdefault(row["Kernel"], (int(times), {}))
        if value is not None:
            name = row["Metric Name"]
            metrics[name] = value if name.endswith("_utilization") else value * times
    return tuple(Launches(name, times, metrics, "", "nvprof") for name, (times, metrics) in found.items())


def _summary(source: Source, table: _Table) -> tuple[Launches, ...]:
    units: dict[str, str] = {}
    found = []
    for line, row in table.records():
        if not row["Name"]:
            units = row
            continue
        calls, spent = table.number(line, row["Calls"]), table.number(line, row["Time"], units.get("Time", ""))
        if calls is None or calls < 1 or spent is None or not units:
            raise wrong(source, line, "this row has no calls, no time, or no unit for it")
        if row.get("Type", "GPU activities") == "GPU activities" and not row["Name"].startswith("[CUDA"):
            found.append(Launches(row["Name"], int(calls), {"time": spent}, "", "nvprof"))
    return tuple(found)


def _trace(source: Source, table: _Table) -> tuple[Launches, ...]:
    units: dict[str, str] = {}
    found: dict[str, tuple[int, float]] = {}
    for line, row in table.records():
        if not row["Name"]:
            units = row
            continue
        spent = table.number(line, row["Duration"], units.get("Duration", ""))
        if spent is None or not units:
            raise wrong(source, line, "this row has no duration, or no unit for it")
        name = re.sub(r" \[\d+\]$", "", row["Name"])
        if not name.startswith("[CUDA"):
            times, total = found.get(name, (0, 0.0))
            found[name] = times + 1, total + spent
    return tuple(Launches(name, times, {"time": t}, "", "nvprof") for name, (times, t) in found.items())


_FORMS = {
    "long": ({"Kernel Name", "Metric Name", "Metric Value"}, _long),
    "wide": ({"ID", "Kernel Name"}, _wide),
    "nvprof": ({"Kernel", "Invocations", "Metric Name", "Avg"}, _nvprof),
    "summary": ({"Time", "Calls", "Name"}, _summary),
    "trace": ({"Duration", "Name"}, _trace),
}
