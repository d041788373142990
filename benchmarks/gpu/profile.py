"""What NVIDIA's tools say of the generated code: traffic by ncu, accesses by compute-sanitizer; many runs a process."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu.once import BEGUN, ENDED, MARK, REFUSED
from benchmarks.gpu.plan import PlannedRun
from benchmarks.gpu.results import run_json
from roofdsl.lang.diagnostics import CommandError, InputError
from roofdsl.profiler import tables
from roofdsl.profiler.metrics import short_name
from roofdsl.store.atomic import write_whole

METRICS = (
    "gpu__time_duration.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_sectors_srcunit_tex.sum",
    "l1tex__t_sectors.sum",
    "l1tex__data_pipe_lsu_wavefronts.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "smsp__inst_executed.sum",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    *(f"sm__sass_thread_inst_executed_op_{k}{op}_pred_on.sum" for k in "dfh" for op in ("add", "mul", "fma")),
)
"""Not lts__t_sectors.sum: it also counts what one half of the L2 cache sends to the other."""

BATCH = 12
"""Runs in a process of ncu: what a batch that hangs takes with it."""


def available(ncu: str, folder: Path) -> list[str]:
    """Those of METRICS that this ncu knows for the device; all of them if it cannot say. Kept in a file."""
    path = folder / "metrics.txt"
    if not path.exists():
        command = [ncu, "--query-metrics"]  # names without suffixes such as `.sum`
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        except subprocess.TimeoutExpired:
            return list(METRICS)
        write_whole(path, done.stdout)
    known = {line.split()[0] for line in path.read_text(encoding="utf-8").splitlines() if line.split()}
    found = [m for m in METRICS if m in known or m.split(".")[0] in known]
    return found or list(METRICS)


def traffic_of(runs: Sequence[PlannedRun], folder: Path, seconds: float) -> list[dict[str, Any]]:
    """What ncu counted in one execution of each run: {kernel, variant, sizes, launches, metrics}, or a `reason`.

    A batch that does not end in time loses only its own runs. Raises CommandError if there is no ncu.
    """
    ncu = shutil.which("ncu")
    if ncu is None:
        raise CommandError("ncu is not installed: no traffic is read", "it comes with CUDA's toolkit (Nsight Compute)")
    metrics = ",".join(available(ncu, folder))
    command = [
        ncu, "--csv", "--page", "raw", "--clock-control", "none", "--cache-control", "all", "--profile-from-start",
        "off", "--metrics", metrics,
    ]  # fmt: skip
    done = _of_once(command, runs, folder, seconds, ["--profile"])
    if done is None:
        return [_told(run, reason=f"ncu took longer than {seconds:.0f} s") for run in runs]
    report = folder / "last.csv"
    write_whole(report, "\n".join(line for line in done.stdout.splitlines() if line.startswith('"')) + "\n")
    try:
        launches = tables.read(report)
    except (CommandError, InputError) as error:
        reason = next((x for x in (done.stdout + done.stderr).splitlines() if "ERR" in x), str(error).split("\n")[0])
        return [_told(run, reason=f"ncu: {reason.strip()}") for run in runs]
    return by_marks(runs, launches, done.stdout)


def by_marks(runs: Sequence[PlannedRun], launches: Sequence[tables.Launches], said: str) -> list[dict[str, Any]]:
    """The launches between the marks, the empty functions that `once` launches before each run, in order."""
    parts: list[list[tables.Launches]] = []
    for launch in launches:
        if short_name(launch.kernel) == MARK:
            parts.append([])
        elif parts:
            parts[-1].append(launch)
    order = [int(line.split()[1]) for line in said.splitlines() if line.startswith(BEGUN)]
    reasons = {int(x.split()[1]): x.split(" ", 2)[2] for x in said.splitlines() if x.startswith(REFUSED)}
    found = []
    for number, part in zip(order, parts, strict=False):
        names = set.intersection(*(set(x.metrics) for x in part)) if part else set()
        if number in reasons or not part:
            found.append(_told(runs[number], reason=reasons.get(number, "it launched nothing")))
            continue
        sums = {name: sum(x.metrics[name] for x in part) for name in sorted(names)}
        active = "sm__warps_active.avg.pct_of_peak_sustained_active"
        if active in sums:
            sums[active] /= len(part)
        found.append(_told(runs[number], launches=sum(x.times for x in part), metrics=sums))
    told = set(order[: len(parts)])
    missing = [n for n in range(len(runs)) if n not in told]
    return found + [_told(runs[n], reason=reasons.get(n, "it was not reached")) for n in missing]


def checked(tool: str, runs: Sequence[PlannedRun], folder: Path, seconds: float) -> list[dict[str, Any]]:
    """What compute-sanitizer found in one execution of each run: {kernel, variant, sizes, errors, first}.

    Raises CommandError if it is not there.
    """
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        raise CommandError("compute-sanitizer is not installed", "it comes with CUDA's toolkit")
    command = [sanitizer, "--tool", tool, "--print-limit", "20"]
    done = _of_once(command, runs, folder, seconds, ["--no-pool"])
    said = "" if done is None else done.stdout + "\n" + done.stderr
    return by_turns(runs, said, f"{tool} took longer than {seconds:.0f} s")


def by_turns(runs: Sequence[PlannedRun], said: str, otherwise: str) -> list[dict[str, Any]]:
    """The tool's lines between `begun` and `ended` of each run."""
    found: dict[int, dict[str, Any]] = {}
    now: int | None = None
    errors: list[str] = []
    for line in said.splitlines():
        if line.startswith(BEGUN):
            now, errors = int(line.split()[1]), []
        elif line.startswith(REFUSED):
            number, reason = line.split(" ", 2)[1:]
            found[int(number)] = _told(runs[int(number)], reason=reason)
            now = None
        elif line.startswith(ENDED) and now is not None:
            found[now] = _told(runs[now], errors=len(errors), first=errors[0] if errors else "")
            now = None
        elif now is not None and line.startswith("=========") and _is_fault(line):
            errors.append(line.strip("= \n"))
    if now is not None:
        found[now] = _told(runs[now], errors=max(1, len(errors)), first=errors[0] if errors else "it did not end")
    return [found.get(n) or _told(run, reason=otherwise) for n, run in enumerate(runs)]


def _is_fault(line: str) -> bool:
    return any(word in line for word in ("Invalid", "Misaligned", "hazard", "Error:", "Race reported", "out of bounds"))


def _of_once(
    command: Sequence[str], runs: Sequence[PlannedRun], folder: Path, seconds: float, options: Sequence[str]
) -> subprocess.CompletedProcess[str] | None:
    """The runs, once each, in one process under a tool; None if that takes too long."""
    listed = folder / "runs.json"
    write_whole(listed, json.dumps([run_json(run) for run in runs]) + "\n")
    own = [sys.executable, "-m", "benchmarks.gpu.once", str(listed), "--seconds", f"{max(1.0, seconds - 10):.0f}"]
    process = subprocess.Popen(
        [*command, *own, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        start_new_session=True,
    )  # fmt: skip
    try:
        said, errors = process.communicate(timeout=max(1.0, seconds))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the tool and what it runs
        said, errors = process.communicate()
        return subprocess.CompletedProcess(command, 124, said, errors) if said else None
    return subprocess.CompletedProcess(command, process.returncode, said, errors)


def _told(run: PlannedRun, **more: Any) -> dict[str, Any]:
    return {**run_json(run), **more}


def keep(path: Path, found: Sequence[Mapping[str, Any]]) -> None:
    """All that was found so far, in one file."""
    write_whole(path, json.dumps(list(found), indent=1, ensure_ascii=False) + "\n")
