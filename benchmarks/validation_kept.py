"""What a validation keeps while it runs, so that an interrupted one goes on: beside each measurement, in its details,
how busy others were, the memory's bandwidth, and the machine file and code it belongs to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.report import engine
from benchmarks.validation_runs import Refusal
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.source import Source
from roofdsl.loops.load import load_file
from roofdsl.machine.find import machine_of
from roofdsl.machine.model import Machine
from roofdsl.machine.processor import processor_name
from roofdsl.measure.device import describe_cpu, software
from roofdsl.measure.measurement import Measurement, load, text_hash
from roofdsl.store.atomic import write_whole

NOTES = "validation"
"""The key in a measurement's details."""

_ELSE = "begin a new run in another folder"


class Origin(NamedTuple):
    """To what a measurement belongs: the commit (`benchmarks.report.engine`) and the machine file of its session."""

    engine: str
    machine_sha256: str


class Notes(NamedTuple):
    """What is kept beside a measurement.

    others: cores that other programs kept busy. memory_per_s: the memory's bandwidth before and after, in bytes per
    second; None for data in caches. repeat: 0 of a first run, else the number of the repeat.
    """

    origin: Origin
    others: float
    memory_per_s: tuple[float, float] | None
    repeat: int


class Stored(NamedTuple):
    """A session's machine, and the measurements of each kernel, a run's repeats after it."""

    machine: Machine
    origin: Origin
    results: Mapping[str, Sequence[Measurement]]


def origin_now(machine_text: str) -> Origin:
    """Of a session that begins now."""
    return Origin(engine(), text_hash(machine_text))


def with_notes(
    run: Measurement, origin: Origin, others: float, memory_per_s: tuple[float, float] | None, repeat: int
) -> Measurement:
    """The measurement with its notes."""
    notes = {
        **origin._asdict(),
        "others_cores": others,
        "memory_bytes_per_s": None if memory_per_s is None else list(memory_per_s),
        "repeat": repeat,
    }
    return replace(run, details={**run.details, NOTES: notes})


def noted(run: Measurement) -> Notes:
    """The notes of a measurement. Raises CommandError where it has none, or they are damaged."""
    notes = run.details.get(NOTES)
    if isinstance(notes, dict):
        engine, machine, repeat = (notes.get(key) for key in ("engine", "machine_sha256", "repeat"))
        memory = notes.get("memory_bytes_per_s")
        rates = memory if isinstance(memory, list) else []
        whole = isinstance(engine, str) and isinstance(machine, str) and isinstance(repeat, int)
        whole &= memory is None or (len(rates) == 2 and all(_is_number(rate) and rate > 0 for rate in rates))
        others = notes.get("others_cores")
        if whole and _is_number(others):
            origin = Origin(str(engine), str(machine))
            return Notes(origin, float(others or 0), (rates[0], rates[1]) if rates else None, int(repeat or 0))
    raise CommandError(f"the result of `{run.kernel}` has no notes of a validation, or they are damaged", _ELSE)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value) and value >= 0


def machine_in(folder: Path, text: str) -> Machine:
    """The machine of the folder's file, whose text this is. Raises InputError for a damaged one."""
    return machine_of(load_file(Source(str(folder / "machine.roof"), text)), None)


def _read(folder: Path) -> tuple[str, tuple[Measurement, ...]]:
    """The folder's machine file and results. Raises InputError for damaged results, CommandError for missing files."""
    measurements = load(folder / "results.json")
    try:
        return (folder / "machine.roof").read_text(encoding="utf-8"), measurements
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"`{folder / 'machine.roof'}` cannot be read: {error}", _ELSE) from None


def _by_kernel(measurements: Sequence[Measurement]) -> dict[str, list[Measurement]]:
    results: dict[str, list[Measurement]] = {}
    for m in measurements:
        results.setdefault(m.kernel, []).append(m)
    return results


def stored_in(folder: Path) -> Stored | None:
    """The interrupted session in `folder`; None where it holds no results.

    Raises InputError for a damaged file; CommandError where results or machine cannot be read or are not of one
    session, or are of another processor, other software or other code than here and now.
    """
    if not (folder / "results.json").exists():
        return None
    text, measurements = _read(folder)
    machine = machine_in(folder, text)
    here = origin_now(text)
    if "commit unknown" in here.engine or "not committed" in here.engine:
        raise CommandError(
            f"the run in `{folder}` cannot go on: the code here is of {here.engine}",
            f"what is not committed may have changed since: {_ELSE}",
        )
    device = {k: v for k, v in describe_cpu().to_json().items() if k != "clock_hz"}  # which moves
    for m in measurements:
        origin = noted(m).origin
        pairs = {
            "another machine file": (origin.machine_sha256, here.machine_sha256),
            "other code": (origin.engine, here.engine),
            "another processor": ({k: m.device.get(k) for k in device}, device),
            "other software": (dict(m.software), software()),
        }
        for what, (then, now) in pairs.items():
            if then != now:
                differ = "" if isinstance(then, str) and what != "other code" else f": {_difference(then, now)}"
                raise CommandError(f"the result of `{m.kernel}` in `{folder}` is of {what}{differ}", _ELSE)
    return Stored(machine, here, _by_kernel(measurements))


class Kept(NamedTuple):
    """Measurements of another time: a session, what it refused, and what a report has to say of where they are from."""

    stored: Stored
    refusals: tuple[Refusal, ...]
    notes: tuple[str, ...]


def kept_in(folder: Path) -> Kept:
    """The finished session in `folder`, to be compared with the predictions of the code here.

    Raises InputError for a damaged file, CommandError where there is none, or where a result has no notes.
    """
    if not (folder / "results.json").exists():
        raise CommandError(f"`{folder}` holds no results of a validation")
    text, measurements = _read(folder)
    machine = machine_in(folder, text)
    here = origin_now(text)
    days = sorted({m.when.partition("T")[0] for m in measurements})
    devices = sorted({str(m.device.get("name", "an unknown processor")) for m in measurements})
    engines = sorted({noted(m).origin.engine for m in measurements})
    notes = [
        f"The measurements were made on {_several(days)} on {_several(devices)} with the code of {_several(engines)}; "
        f"bounds and expected times are those of the code of {here.engine}."
    ]
    if any(noted(m).origin.machine_sha256 != here.machine_sha256 for m in measurements):
        notes.append("The machine file has changed since the measurements.")
    if machine.processor != processor_name():
        notes.append(
            f"This report was made on {processor_name()}, so the time inside the core is made from the instructions "
            "that the machine file states, not from the compiled code."
        )
    refused = folder / "refusals.json"
    if not refused.exists():
        notes.append("Which runs were refused in that session is not kept.")
    return Kept(Stored(machine, here, _by_kernel(measurements)), _refusals(refused), tuple(notes))


def save_refusals(folder: Path, refusals: Sequence[Refusal]) -> None:
    """Writes what was not run beside the results."""
    document = [asdict(refusal) for refusal in refusals]
    write_whole(folder / "refusals.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def _refusals(path: Path) -> tuple[Refusal, ...]:
    """Raises CommandError for a damaged file."""
    if not path.exists():
        return ()
    try:
        return tuple(Refusal(**{name: str(row[name]) for name in row}) for row in json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise CommandError(f"`{path}` cannot be read: {error}") from None


def _several(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _difference(then: Any, now: Any) -> str:
    """What was and what is; of tables, where they differ."""
    if isinstance(then, dict):
        keys = [k for k in {**then, **now} if then.get(k) != now.get(k)]
        return ", ".join(f"{k} was {then.get(k)}, and is {now.get(k)}" for k in keys)
    return f"{then}, and here is {now}"
