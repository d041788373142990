"""A dated report of all benchmarks: the machine, the versions, the tables."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.kernels import ROOT
from benchmarks.measure import markdown

REPORTS = Path(__file__).resolve().parent / "reports"
PACKAGES = ("islpy-barvinok", "sympy", "numba", "numpy", "click", "lark")


def processor() -> str:
    """The processor's name as the system gives it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def engine() -> str:
    """The commit measured, and which of the package's files differ from it."""
    commit = _git("rev-parse", "--short", "HEAD") or "unknown"
    changed = [line.split()[-1] for line in _git("status", "--porcelain", "roofdsl", "models").split("\n") if line]
    return f"commit {commit}" + (f", with changes not committed in {', '.join(changed)}" if changed else "")


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def machine(load: tuple[float, float]) -> str:
    """Where and on what it was measured. `load`: the load average before and after."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    rows = [
        ("processor", processor()),
        ("cores", str(cores)),
        ("system", f"{platform.system()} {platform.release()}"),
        ("python", sys.version.split()[0]),
        ("packages", ", ".join(f"{p} {_installed(p)}" for p in PACKAGES)),
        ("roofdsl", engine()),
        ("load average before, after", f"{load[0]:.2f}, {load[1]:.2f}"),
    ]
    return markdown(("", ""), rows)


def write(sections: list[str], load: tuple[float, float], folder: Path = REPORTS) -> Path:
    """Writes `folder`/YYYY-MM-DD.md and returns its path."""
    today = date.today().isoformat()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{today}.md"
    path.write_text("\n\n".join([f"# Benchmarks, {today}", machine(load), *sections]) + "\n", encoding="utf-8")
    return path


def write_validation(
    names: Sequence[str], seconds: float, before: float, keep: Path | None = None, folder: Path = REPORTS
) -> Path:
    """Runs the validation and writes `folder`/validation-YYYY-MM-DD/: report, figure, machine and all results.

    before: the load average before it. keep: a folder to write instead; an interrupted run in it goes on.
    """
    from benchmarks import validation, validation_report

    today = date.today().isoformat()
    own = keep or folder / f"validation-{today}"
    found = validation.run_all(own, names, tell=True, seconds=seconds, resume=keep is not None)
    load = (before, os.getloadavg()[0])
    validation_report.draw(found, own / "ratios.svg")
    picture = "![Ratio of measured to predicted performance against the size of the data](ratios.svg)"
    parts = [f"# Validation, {today}", machine(load), picture, validation_report.section(found)]
    path = own / "README.md"
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path
