"""A dated report of all benchmarks: the machine, the versions, the tables."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from math import inf
from pathlib import Path

from benchmarks.kernels import ROOT
from benchmarks.measure import markdown
from roofdsl.codegen.math_mode import Math

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


@dataclass(frozen=True)
class Validation:
    """What a validation is asked for: a set of kernels (or those of its `names`), math modes, seconds, and folders.

    keep: a folder to write; an interrupted run in it goes on. machine: a file to take instead of characterizing.
    again: a folder whose measurements are compared again; nothing is measured.
    """

    names: Sequence[str] = ()
    of: str = "shipped"
    maths: Sequence[Math] = ("relaxed",)
    seconds: float = inf
    keep: Path | None = None
    machine: Path | None = None
    again: Path | None = None


def write_validation(asked: Validation, before: float, folder: Path = REPORTS) -> Path:
    """Runs the validation and writes a folder with the report, the figure, and what was measured.

    It is the one to keep, or the one to compare again, or `folder`/validation-YYYY-MM-DD/ (with the name of the set,
    if it is not the shipped one). before: the load average before the run.
    """
    from benchmarks import validation, validation_figure, validation_kept, validation_report

    today = date.today().isoformat()
    name = "validation" if asked.of == "shipped" else f"validation-{asked.of}"
    own = asked.keep or asked.again or folder / f"{name}-{today}"
    if asked.again is not None:
        found = validation.compare_again(asked.again, asked.names, seconds=asked.seconds, tell=True)
        own.mkdir(parents=True, exist_ok=True)
    else:
        found = validation.run_all(
            own, asked.names, of=asked.of, maths=asked.maths, machine=asked.machine, tell=True, seconds=asked.seconds,
            resume=asked.keep is not None,
        )  # fmt: skip
        validation_kept.save_refusals(own, found.refusals)
    load = (before, os.getloadavg()[0])
    validation_figure.draw(found, own / "ratios.svg")
    title = "Validation" if asked.of == "shipped" else f"Validation, {asked.of} kernels"
    parts = [f"# {title}, {today}", machine(load), validation_figure.PICTURE, validation_report.section(found)]
    path = own / "README.md"
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path
