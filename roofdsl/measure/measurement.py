"""Measurements as values, and the documents `roofdsl.measurement/1` that store them (specified in commands.md)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from roofdsl.lang.diagnostics import Diagnostic, InputError
from roofdsl.lang.reading import read_limited
from roofdsl.lang.source import Source, Span
from roofdsl.loops.model import Kernel
from roofdsl.measure.timing import Times
from roofdsl.measure.verified import STATUS, Verified
from roofdsl.store.atomic import write_whole

SCHEMA = "roofdsl.measurement/1"
_SHARED = ("schema", "backend", "device", "software", "when")  # stated once for all kernels of a program
_LARGEST_FILE = 64 << 20
_LEAST_S, _MOST_S = 1e-15, 1e9  # the possible range of a time per call
_MOST_COUNTED = 10**30

OTHERS = "others_cores"
"""The key of `details` with the number of cores that other programs kept busy during the measurement."""

MATH = "math"
"""The key of `details` with what the compiler of CPU code was allowed to do: "relaxed" or "strict"."""

CORES = "cores"
"""The key of `details` with the number of cores that were asked for."""


@dataclass(frozen=True)
class Launches:
    """The launches of one kernel at one size in a program: their number per execution, and the time of one of them."""

    launches: int
    of: Measurement

    @property
    def median_s(self) -> float:
        """Seconds of all launches together."""
        return self.launches * self.of.median_s


@dataclass(frozen=True)
class Measurement:
    """One kernel at one size, one variant, one device: everything that influences the number.

    A program is measured as one, too: `kernel` is its name, `by_launch` has its kernels, each with a measurement of its
    own; `times_s` are those of whole executions.

    times_s: seconds per call, one for each repeat; each repeat made `calls_per_repeat` calls. state: "warm" (the same
    buffers again and again), "cold" (caches emptied before each repeat) or "rotated" (buffers in turn, together larger
    than the caches). work: W, in operations named by `operation` (FLOP or OP). footprint_bytes: all arrays together.
    `details`: further data of the backend (block sizes, math mode), and under OTHERS the cores that other programs
    took. source_sha256 is that of the kernel's own text, generated_sha256 that of the code that ran.
    """

    kernel: str
    parameters: tuple[tuple[str, int], ...]
    backend: str
    variant: str
    device: Mapping[str, Any] = field(hash=False)
    software: Mapping[str, str] = field(hash=False)
    when: str
    times_s: tuple[float, ...]
    calls_per_repeat: int
    state: str
    threads: int
    pinned: bool
    compiler: str
    work: int
    operation: str
    footprint_bytes: int | None
    verified: Verified
    source: str
    source_sha256: str
    generated_sha256: str
    counters: tuple[tuple[str, int], ...] = ()
    warnings: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)
    by_launch: tuple[Launches, ...] = ()

    @property
    def times(self) -> Times:
        return Times(self.times_s, self.calls_per_repeat)

    @property
    def median_s(self) -> float:
        return self.times.median_s

    @property
    def low_s(self) -> float:
        return self.times.low_s

    @property
    def high_s(self) -> float:
        return self.times.high_s

    @property
    def rate_per_s(self) -> float:
        """W over the median time, in operations per second; 0 if W = 0."""
        return self.work / self.median_s

    def is_stale(self, kernel: Kernel) -> bool:
        """Whether the kernel's text is no longer the one that was measured (its layout and comments do not count)."""
        return source_hash(kernel) != self.source_sha256

    def to_json(self) -> dict[str, Any]:
        """The document (commands.md): plain numbers in bytes, seconds, operations per second."""
        return {
            "schema": SCHEMA,
            "kernel": self.kernel,
            "parameters": dict(self.parameters),
            "backend": self.backend,
            "variant": self.variant,
            "device": dict(self.device),
            "software": dict(self.software),
            "when": self.when,
            "repeats": len(self.times_s),
            "calls_per_repeat": self.calls_per_repeat,
            "state": self.state,
            "threads": self.threads,
            "pinned": self.pinned,
            "compiler": self.compiler,
            "times_s": list(self.times_s),
            "median_s": self.median_s,
            "low_s": self.low_s,
            "high_s": self.high_s,
            "work_flops": self.work,
            "operation": self.operation,
            "flops_per_s": self.rate_per_s,
            "footprint_bytes": self.footprint_bytes,
            "counters": dict(self.counters),
            "verified": self.verified.to_json(),
            "source": self.source,
            "source_sha256": self.source_sha256,
            "generated_sha256": self.generated_sha256,
            "warnings": list(self.warnings),
            "details": dict(self.details),
            **({"by_launch": [self._launch_json(part) for part in self.by_launch]} if self.by_launch else {}),
        }

    def _launch_json(self, part: Launches) -> dict[str, Any]:
        """One kernel of a program: its document without what the program's document already says."""
        own = part.of.to_json()
        return {"launches": part.launches} | {k: v for k, v in own.items() if k not in _SHARED}


def now() -> str:
    """The time in UTC, ISO 8601 to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def text_hash(text: str) -> str:
    """SHA-256 of a text in UTF-8, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def source_hash(kernel: Kernel) -> str:
    """SHA-256 of the kernel's own text without comments, blank lines and spaces within lines.

    Therefore a new layout of the file, or a change to another kernel in it, makes no measurement stale.
    """
    return text_hash(own_text(kernel.source, kernel.span))


def own_text(source: Source, span: Span) -> str:
    """The lines of a definition without comments, blank lines and spaces within lines."""
    lines = []
    for number in range(span.line, span.end_line + 1):
        text = source.line(number).partition("#")[0].rstrip()
        if text:
            depth = len(text) - len(text.lstrip())
            lines.append(" " * depth + re.sub(r"\s+", "", text))
    return "\n".join(lines)


# ---- writing ----


def save(path: Path, measurements: Sequence[Measurement]) -> None:
    """Write one document, or several in a list under "kernels", in one step. Raises CommandError."""
    documents = [m.to_json() for m in measurements]
    document = documents[0] if len(documents) == 1 else {"schema": SCHEMA, "kernels": documents}
    write_whole(path, json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n")


# ---- reading ----


def load(path: Path) -> tuple[Measurement, ...]:
    """Every measurement of a result file.

    Raises CommandError if it cannot be read, InputError if it is not a complete result file of this version: cut off,
    edited into something inconsistent, or of another schema.
    """
    data = read_limited(path, _LARGEST_FILE, "a result file")
    return parse(Source(str(path), data.decode("utf-8-sig", "replace")))


def parse(source: Source) -> tuple[Measurement, ...]:
    """The measurements of a text; raises InputError as `load` does."""
    try:
        document = json.loads(source.text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        message = f"this is not a complete result file: {error.msg}"
        raise _wrong(source, message, Span(error.lineno, error.colno, error.lineno, error.colno + 1)) from None
    except (ValueError, RecursionError) as error:
        raise _wrong(source, f"this is not a result file: {error}") from None
    reader = _Reader(source)
    if isinstance(document, dict) and "kernels" in document:
        reader.schema(document)
        entries = reader.typed(document, "kernels", list)
    else:
        entries = document if isinstance(document, list) else [document]
    if not entries:
        raise reader.fail("this is not a result file: it holds no measurement")
    try:
        return tuple(reader.measurement(entry) for entry in entries)
    except ArithmeticError:  # 10**400 operations, or so many calls that one takes no time
        raise reader.fail("it has a number or time that is impossible on any computer") from None


def _no_constant(name: str) -> float:
    raise ValueError(f"it contains {name}, which is not a JSON number")


def _wrong(source: Source, message: str, span: Span | None = None) -> InputError:
    help = "measure again with `roofdsl measure`; do not edit result files"
    return InputError(source, [Diagnostic("result-damaged", message, span or Span(1, 1, 1, 2), help)])


class _Reader:
    """Reads a document field by field; a missing field or one of the wrong kind raises InputError."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def fail(self, message: str, key: str = "") -> InputError:
        for number, line in enumerate(self.source.text.split("\n"), 1):
            place = line.find(f'"{key}"') if key else -1
            if place >= 0:
                return _wrong(self.source, message, Span(number, place + 1, number, place + len(key) + 3))
        return _wrong(self.source, message)

    def schema(self, document: Mapping[str, Any]) -> None:
        given = document.get("schema")
        if given != SCHEMA:
            what = "no schema" if given is None else f"the schema `{str(given)[:60]}`"
            raise self.fail(f"this document has {what}; a result file has `{SCHEMA}`", "schema")

    def typed(self, document: Mapping[str, Any], key: str, kind: Any) -> Any:
        """A field of one kind (bool is not an int). Raises InputError."""
        if key not in document:
            raise self.fail(f"the field `{key}` is missing")
        value = document[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.fail(f"the field `{key}` has the wrong type", key)
        return value

    def number(self, document: Mapping[str, Any], key: str) -> float:
        value = self.typed(document, key, (int, float))
        try:
            return float(value)
        except OverflowError:
            raise self.fail(f"`{key}` is too large: it has {len(str(abs(value)))} digits", key) from None

    def time(self, document: Mapping[str, Any], key: str) -> float:
        """A time in seconds. Raises InputError for a time that no clock could give."""
        value = self.number(document, key)
        if not _LEAST_S <= value <= _MOST_S:
            raise self.fail(f"`{key}` is {value:g}, which is not a possible time of a call", "times_s")
        return value

    def part(self, document: Mapping[str, Any], key: str) -> float:
        value = self.number(document, key)
        if not 0 <= value < float("inf"):
            raise self.fail(f"`{key}` is {value}, but must be a finite number that is not negative", key)
        return value

    def count(self, document: Mapping[str, Any], key: str, least: int = 0) -> int:
        value: int = self.typed(document, key, int)
        if value < least:
            raise self.fail(f"`{key}` is {value}, but must be at least {least}", key)
        if value > _MOST_COUNTED:
            raise self.fail(f"`{key}` is too large: it has {value.bit_length()} bits", key)
        return value

    def counts(self, document: Mapping[str, Any], key: str) -> tuple[tuple[str, int], ...]:
        table = self.typed(document, key, dict)
        return tuple((name, self.count(table, name)) for name in table)

    def hash(self, document: Mapping[str, Any], key: str) -> str:
        value: str = self.typed(document, key, str)
        if not re.fullmatch(r"[0-9a-f]{64}", value):
            raise self.fail(f"`{key}` is not a SHA-256 hash", key)
        return value

    def strings(self, document: Mapping[str, Any], key: str) -> tuple[str, ...]:
        values = self.typed(document, key, list)
        if not all(isinstance(v, str) for v in values):
            raise self.fail(f"`{key}` is not a list of strings", key)
        return tuple(values)

    def times(self, document: Mapping[str, Any]) -> tuple[float, ...]:
        values = self.typed(document, "times_s", list)
        table = {f"times_s[{i}]": v for i, v in enumerate(values)}
        times = tuple(self.time(table, key) for key in table)
        if not times or len(times) != self.count(document, "repeats", 1):
            raise self.fail(f"`times_s` has {len(times)} times, which does not match `repeats`", "times_s")
        return times

    def verified(self, document: Mapping[str, Any]) -> Verified:
        table = self.typed(document, "verified", dict)
        error, allowed, share = (self.part(table, key) for key in ("max_error", "of_allowed", "unverified"))
        reasons = self.strings(table, "unverifiable") if "unverifiable" in table else ()  # not in older files
        if not (allowed <= 1 and (share < 1 or (reasons and share == 1))):
            raise self.fail(f"the results are not verified: {allowed:g} times the allowed error", "of_allowed")
        if table.get("status", STATUS[not reasons]) != STATUS[not reasons]:
            raise self.fail("`status` contradicts `unverifiable`", "status")
        against, sizes = self.typed(table, "against", str), self.counts(table, "parameters")
        return Verified(against, error, allowed, share, sizes, reasons)

    def when(self, document: Mapping[str, Any]) -> str:
        value: str = self.typed(document, "when", str)
        try:
            datetime.fromisoformat(value)
        except ValueError:
            raise self.fail(f"`when` is not a date and time: {value[:40]}", "when") from None
        return value

    def measurement(self, document: Any) -> Measurement:
        if not isinstance(document, dict):
            raise self.fail("this is not a result file: a measurement is an object")
        self.schema(document)
        state = self.typed(document, "state", str)
        if state not in ("warm", "cold", "rotated"):
            raise self.fail(f"`state` is `{state[:40]}`, but must be warm, cold or rotated", "state")
        backend = self.typed(document, "backend", str)
        if backend not in ("cpu", "gpu"):
            raise self.fail(f"`backend` is `{backend[:40]}`, but must be cpu or gpu", "backend")
        footprint = document.get("footprint_bytes")
        found = Measurement(
            kernel=self.typed(document, "kernel", str),
            parameters=self.counts(document, "parameters"),
            backend=backend,
            variant=self.typed(document, "variant", str),
            device=self.typed(document, "device", dict),
            software=self.typed(document, "software", dict),
            when=self.when(document),
            times_s=self.times(document),
            calls_per_repeat=self.count(document, "calls_per_repeat", 1),
            state=state,
            threads=self.count(document, "threads", 1),
            pinned=self.typed(document, "pinned", bool),
            compiler=self.typed(document, "compiler", str),
            work=self.count(document, "work_flops"),
            operation=self.typed(document, "operation", str),
            footprint_bytes=None if footprint is None else self.count(document, "footprint_bytes"),
            verified=self.verified(document),
            source=self.typed(document, "source", str),
            source_sha256=self.hash(document, "source_sha256"),
            generated_sha256=self.hash(document, "generated_sha256"),
            counters=self.counts(document, "counters"),
            warnings=self.strings(document, "warnings"),
            details=self.typed(document, "details", dict),
            by_launch=self.launches(document),
        )
        self._consistent(document, found)
        return found

    def launches(self, document: Mapping[str, Any]) -> tuple[Launches, ...]:
        """The kernels of a program; empty for the document of a kernel."""
        if "by_launch" not in document:
            return ()
        shared = {key: document.get(key) for key in _SHARED}
        found = []
        for part in self.typed(document, "by_launch", list):
            if not isinstance(part, dict) or "by_launch" in part:
                raise self.fail("`by_launch` is not a list of kernels", "by_launch")
            found.append(Launches(self.count(part, "launches", 1), self.measurement(part | shared)))
        if not found:
            raise self.fail("`by_launch` is empty", "by_launch")
        return tuple(found)

    def _consistent(self, document: Mapping[str, Any], found: Measurement) -> None:
        """Check that the derived values follow from the times; if they do not, the file was changed by hand."""
        derived = {"median_s": found.median_s, "low_s": found.low_s, "high_s": found.high_s}
        derived["flops_per_s"] = found.rate_per_s
        for key, value in derived.items():
            stated = self.number(document, key)
            if not abs(stated - value) <= 1e-9 * abs(value):
                raise self.fail(f"`{key}` is {stated:g}, but the times give {value:g}", key)
