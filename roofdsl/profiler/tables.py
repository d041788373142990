"""A profiler's CSV as launches with metrics: Nsight Compute in its long and its wide form, and nvprof.

Forms, by their header: Nsight Compute `--csv` has one metric per row (columns "Metric Name", "Metric Unit", "Metric
Value"); with `--page raw` it has one launch per row, a column for each metric, and a row of units below the header;
nvprof `--metrics ... --csv` has averages over invocations ("Invocations", "Avg"); nvprof `--print-gpu-summary --csv`
has times ("Calls", "Time") and `--print-gpu-trace --csv` durations ("Duration"), both with a row of units.

A report may contain several tables of one form (`mpirun -n 4 ncu --csv`, a section for each GPU), each of which begins
with the header again. A contradiction is an error with its line and column, since one of the two numbers is wrong.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose
from pathlib import Path

from roofdsl.lang.diagnostics import Diagnostic, InputError
from roofdsl.lang.reading import read_limited
from roofdsl.lang.source import Source, Span
from roofdsl.profiler.metric_units import EXPECTED, LARGEST, LEAST, Quantity, factor, quantity_of

_LARGEST_FILE = 256 << 20
_NUMBER = re.compile(r"[+-]?([1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?|[0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LEVEL = re.compile(r"(?:Low|Mid|High|Max|Idle)\s*\(([0-9]+)\)")
_NAMELESS = {"", "n/a", "nan", "-nan", "<overflow>"}
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_UTILIZATION = "_utilization"
_MOST_CALLS = 1e15


@dataclass(frozen=True)
class Launches:
    """A report's data about one kernel's launches taken together, in seconds, bytes, hertz and plain counts.

    `metrics`, those used for points, are sums over the launches; rates and levels cannot be summed and hold the mean.
    `times`: the number of launches. cc: the compute capability if the report has it.
    """

    kernel: str
    times: int
    metrics: Mapping[str, float]
    cc: str = ""
    form: str = "ncu"


def read(path: Path) -> tuple[Launches, ...]:
    """Every launch (Nsight Compute) or kernel (nvprof) in a report.

    Raises CommandError if the file cannot be read, InputError if it is not such a report, is damaged, or contradicts
    itself.
    """
    data = read_limited(path, _LARGEST_FILE, "a report")
    try:
        text = data.decode("utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig")  # from PowerShell
    except UnicodeDecodeError:
        source = Source(str(path), data.decode("utf-8", "replace"))
        raise wrong(source, 1, "this is not a CSV file: it is not UTF-8 text", _EXPORT) from None
    return parse(Source(str(path), text))


_EXPORT = "export it with `ncu --csv --page raw --import REPORT.ncu-rep`"
_LOCALE = "thousands are `1,234`, decimals `.5`: run with LC_ALL=C"
_ONE_REPORT = "a file must contain one report: pass several files separately"
_EDITED = "the report is truncated, or was edited"


def wrong(source: Source, line: int, message: str, help: str = "", column: int = 0) -> InputError:
    """An error about one line of a report, at its `column`-th value (from 0)."""
    first, end = _stretch(source.line(line), column)
    return InputError(source, [Diagnostic("profile-damaged", message, Span(line, first, line, end), help)])


def _stretch(text: str, column: int) -> tuple[int, int]:
    """The position of the `column`-th value in a line of CSV, from 1, with exclusive end; the line's first character if
    there is no such value.
    """
    first, quoted, number = 0, False, 0
    for place, c in enumerate(text + ","):
        quoted ^= c == '"'
        if c == "," and not quoted:
            if number == column:
                return first + 1, max(place, first + 1) + 1
            first, number = place + 1, number + 1
    return 1, 2


def parse(source: Source) -> tuple[Launches, ...]:
    """The launches in a report's text. Raises InputError as `read` does."""
    rows = _rows(source)
    for line, row in rows:
        names = [c.strip() for c in row]
        form = next((f for f, (needed, _) in _FORMS.items() if needed <= set(names)), None)
        if form is not None:
            return _FORMS[form][1](_Table(source, line, names, list(rows)))
    raise wrong(
        source,
        1,
        "this is not a report of Nsight Compute or nvprof: no line contains the names of its columns",
        _EXPORT,
    )


def _rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """The rows with their line numbers, without the profiler's own messages (`==PROF==`, `==123==`) and blank lines."""
    lines = source.text.split("\n")
    reader = csv.reader(("" if line.startswith("==") else line + "\n" for line in lines), strict=True)
    whole = 0  # a quote that is never closed swallows the rest of the file: report the start of its row
    try:
        for row in reader:
            whole = reader.line_num
            if any(c.strip() for c in row):
                yield whole, row
    except csv.Error as error:
        raise wrong(source, whole + 1, f"this is not a whole CSV: {error}") from None


@dataclass(frozen=True)
class _Row:
    """A row by column, and the number of its table."""

    line: int
    table: int
    values: Mapping[str, str]
    units: Mapping[str, str] | None

    def __getitem__(self, name: str) -> str:
        return self.values.get(name, "")


@dataclass(frozen=True)
class _Table:
    source: Source
    line: int
    names: Sequence[str]
    rows: Sequence[tuple[int, list[str]]]

    def __post_init__(self) -> None:
        for k, name in enumerate(self.names):
            if name and name in self.names[:k]:
                raise wrong(self.source, self.line, f"two columns are named `{name[:60]}`", _EDITED, k)

    def fail(self, row: _Row, message: str, help: str = "", name: str = "") -> InputError:
        """An error about the value of a row in the column `name`."""
        column = self.names.index(name) if name in self.names else 0
        return wrong(self.source, row.line, message, help, column)

    def records(self) -> Iterator[_Row]:
        """Rows by column. Text that a program printed after its report is left out; a truncated row is an error.

        A repeated header begins another table.
        """
        table = 0
        for line, row in self.rows:
            values = [c.strip() for c in row]
            if len(row) == 1 and len(self.names) > 1:
                continue
            if values == list(self.names):
                table += 1
                continue
            if len(row) != len(self.names):
                message = f"this row has {len(row)} columns, and the header has {len(self.names)}"
                raise wrong(self.source, line, message, _EDITED)
            yield _Row(line, table, dict(zip(self.names, values, strict=True)), None)

    def with_units(self, *identity: str) -> Iterator[_Row]:
        """Rows of a form that has a row of units (without an `identity`) below each header. Raises InputError."""
        units: Mapping[str, str] | None = None
        table = -1
        for row in self.records():
            first, table = row.table != table, row.table
            if not any(row[name] for name in identity):
                if not first:
                    message = "this row of units is not the one below the header"
                    raise self.fail(row, message, "no earlier row has the units of its numbers")
                units = row.values
                continue
            if first:
                help = _EXPORT if "ID" in self.names else _EDITED
                raise self.fail(row, "the row of units below the header is missing", help)
            yield _Row(row.line, row.table, row.values, units)

    def value(self, row: _Row, name: str, quantity: Quantity, unit: str, unit_column: str) -> float | None:
        """The value in a column, in base units; None if the profiler has none. Raises InputError."""
        number = self.number(row, name)
        if number is None:
            return None
        scale = factor(unit, quantity)
        if scale is None:
            what = f"`{unit[:40]}` is not a unit of" if unit else "no unit is given for"
            raise self.fail(row, f"{what} `{row['Metric Name'] or name}`", f"it is {EXPECTED[quantity]}", unit_column)
        result = number * scale
        if result and not LEAST <= result <= LARGEST:
            what = "larger than a profiler can count" if result > LARGEST else "smaller than a profiler can measure"
            raise self.fail(row, f"`{row[name][:40]}` is {what}", _EDITED, name)
        return result

    def number(self, row: _Row, name: str) -> float | None:
        """A number that is not negative; None if the profiler has none. Raises InputError."""
        text = row[name].removeprefix("(!)").strip()
        if text.lower() in _NAMELESS:
            return None
        if _INFINITE.fullmatch(text):
            message = f"`{text}` is not an amount: it is infinite"
            raise self.fail(row, message, "measure again, without this launch", name)
        if not _NUMBER.fullmatch(text):
            raise self.fail(row, f"`{text[:40]}` is not a number", _LOCALE, name)
        result = float(text.replace(",", ""))
        if result < 0:
            raise self.fail(row, f"`{text[:40]}` is negative, but counts are not", _EDITED, name)
        return result

    def calls(self, row: _Row, name: str) -> int:
        """How often a kernel ran. Raises InputError."""
        found = self.number(row, name)
        if found is None or not 1 <= found <= _MOST_CALLS or found != int(found):
            raise self.fail(row, f"`{row[name][:40]}` is not a number of {name.lower()}", "", name)
        return int(found)


@dataclass
class _Launch:
    """A launch of Nsight Compute, collected from its rows: metrics with their line numbers."""

    kernel: str
    cc: str
    line: int
    metrics: dict[str, tuple[float, int]] = field(default_factory=dict)


class _Collected:
    """The launches of a report by process and ID; without a column ID, one for each kernel."""

    def __init__(self, table: _Table) -> None:
        self.table = table
        self.numbered = "ID" in table.names
        self.found: dict[tuple[str, str], _Launch] = {}

    def launch(self, row: _Row) -> _Launch:
        kernel = row["Kernel Name"]
        if not kernel:
            raise self.table.fail(row, "this row names no kernel", _EDITED, "Kernel Name")
        if self.numbered and not row["ID"]:
            raise self.table.fail(row, "this row has no ID, so its launch is unknown", _EDITED, "ID")
        key = (row["Process ID"], row["ID"] if self.numbered else kernel)
        found = self.found.setdefault(key, _Launch(kernel, row["CC"], row.line))
        if found.kernel != kernel:
            others = f"`{kernel[:60]}` here, and of `{found.kernel[:60]}` on line {found.line}"
            raise self.table.fail(row, f"launch {row['ID']} is of {others}", _ONE_REPORT, "Kernel Name")
        return found

    def add(self, row: _Row, launch: _Launch, metric: str, value: float, column: str) -> None:
        """Add a metric of a launch. Raises InputError if the report has another value for it."""
        before, line = launch.metrics.setdefault(metric, (value, row.line))
        if isclose(before, value, rel_tol=1e-9):
            return
        if self.numbered:
            message = f"`{metric}` of launch {row['ID']} is {value:g} here, and {before:g} on line {line}"
            help = _ONE_REPORT
        else:
            message = f"`{metric}` of `{launch.kernel[:60]}` is {value:g} here, and {before:g} on line {line}"
            help = "without a column `ID` two launches of a kernel cannot be told apart; " + _EXPORT
        raise self.table.fail(row, message, help, column)

    def launches(self) -> tuple[Launches, ...]:
        return tuple(
            Launches(x.kernel, 1, {name: value for name, (value, _) in x.metrics.items()}, x.cc)
            for x in self.found.values()
        )


def _long(table: _Table) -> tuple[Launches, ...]:
    collected = _Collected(table)
    for row in table.records():
        launch = collected.launch(row)
        metric = row["Metric Name"]
        quantity = quantity_of(metric) if "__" in metric else None
        if quantity is None:
            continue  # a rule's advice, or a metric not used for points
        if "Metric Unit" not in table.names:
            message = "this report has no column `Metric Unit`, and its numbers could be in any unit"
            raise wrong(table.source, table.line, message, _EXPORT)
        value = table.value(row, "Metric Value", quantity, row["Metric Unit"], "Metric Unit")
        if value is not None:
            collected.add(row, launch, metric, value, "Metric Value")
    return collected.launches()


def _wide(table: _Table) -> tuple[Launches, ...]:
    wanted = {n: q for n in table.names if "__" in n and (q := quantity_of(n)) is not None}
    collected = _Collected(table)
    for row in table.with_units("ID", "Kernel Name"):
        launch = collected.launch(row)
        for name, quantity in wanted.items():
            value = table.value(row, name, quantity, (row.units or {}).get(name, ""), name)
            if value is not None:
                collected.add(row, launch, name, value, name)
    return collected.launches()


def _nvprof(table: _Table) -> tuple[Launches, ...]:
    """Averages over the invocations on each device, converted to sums over all of them."""
    times: dict[tuple[str, str], int] = {}  # by device and kernel
    found: dict[str, dict[str, dict[str, tuple[float, int]]]] = {}  # by kernel, metric, device
    for row in table.records():
        kernel, device, metric = row["Kernel"], row["Device"], row["Metric Name"]
        if not kernel:
            raise table.fail(row, "this row names no kernel", _EDITED, "Kernel")
        calls = table.calls(row, "Invocations")
        if times.setdefault((device, kernel), calls) != calls:
            message = f"`{kernel[:60]}` has {calls} invocations here, and {times[device, kernel]} in another row"
            raise table.fail(row, message, _EDITED, "Invocations")
        metrics = found.setdefault(kernel, {})
        value = _average(table, row, metric)
        if value is None:
            continue
        before, line = metrics.setdefault(metric, {}).setdefault(device, (value, row.line))
        if not isclose(before, value, rel_tol=1e-9):
            message = f"`{metric}` of `{kernel[:60]}` is {value:g} here, and {before:g} on line {line}"
            raise table.fail(row, message, _EDITED, "Avg")
    return tuple(_summed(kernel, metrics, times) for kernel, metrics in found.items())


def _average(table: _Table, row: _Row, metric: str) -> float | None:
    """The mean of a metric that points use; a utilization is `Low (2)`, or its number."""
    quantity = None if "__" in metric else quantity_of(metric)
    if quantity is None:
        return None
    level = _LEVEL.fullmatch(row["Avg"])
    if level is None or not metric.endswith(_UTILIZATION):
        return table.value(row, "Avg", quantity, "", "Avg")
    if int(level[1][:4]) > 10:
        raise table.fail(row, f"`{row['Avg'][:40]}` is not a level of 0 to 10", _EDITED, "Avg")
    return float(level[1])


def _summed(
    kernel: str, metrics: Mapping[str, Mapping[str, tuple[float, int]]], times: Mapping[tuple[str, str], int]
) -> Launches:
    """The invocations on all devices together; a metric that one of them lacks has no sum."""
    calls = {device: n for (device, name), n in times.items() if name == kernel}
    every = sum(calls.values())
    sums = {}
    for metric, by_device in metrics.items():
        if by_device.keys() == calls.keys():
            total = sum(value * calls[device] for device, (value, _) in by_device.items())
            sums[metric] = total / every if metric.endswith(_UTILIZATION) else total
    return Launches(kernel, every, sums, "", "nvprof")


def _summary(table: _Table) -> tuple[Launches, ...]:
    seen: dict[tuple[int, str], int] = {}
    found: dict[str, tuple[int, float]] = {}
    for row in table.with_units("Name"):
        calls, spent = table.calls(row, "Calls"), table.value(row, "Time", "time", (row.units or {})["Time"], "Time")
        if spent is None:
            raise table.fail(row, "this row has no time", _EDITED, "Time")
        name = row["Name"]
        if row.values.get("Type", "GPU activities") != "GPU activities" or name.startswith("[CUDA"):
            continue
        if seen.setdefault((row.table, name), row.line) != row.line:
            message = f"`{name[:60]}` already has a row, on line {seen[row.table, name]}"
            raise table.fail(row, message, _EDITED, "Name")
        times, total = found.get(name, (0, 0.0))
        found[name] = times + calls, total + spent
    return _timed(found)


def _trace(table: _Table) -> tuple[Launches, ...]:
    found: dict[str, tuple[int, float]] = {}
    for row in table.with_units("Name"):
        spent = table.value(row, "Duration", "time", (row.units or {})["Duration"], "Duration")
        if spent is None:
            raise table.fail(row, "this row has no duration", _EDITED, "Duration")
        name = re.sub(r" \[\d+\]$", "", row["Name"])
        if not name.startswith("[CUDA"):
            times, total = found.get(name, (0, 0.0))
            found[name] = times + 1, total + spent
    return _timed(found)


def _timed(found: Mapping[str, tuple[int, float]]) -> tuple[Launches, ...]:
    return tuple(Launches(name, times, {"time": t}, "", "nvprof") for name, (times, t) in found.items())


_FORMS = {
    "long": ({"Kernel Name", "Metric Name", "Metric Value"}, _long),
    "wide": ({"ID", "Kernel Name"}, _wide),
    "nvprof": ({"Kernel", "Invocations", "Metric Name", "Avg"}, _nvprof),
    "summary": ({"Time", "Calls", "Name"}, _summary),
    "trace": ({"Duration", "Name"}, _trace),
}
