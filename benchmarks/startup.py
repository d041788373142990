"""How long whole commands take, beside a process that only imports sympy."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from math import inf
from statistics import median

from benchmarks.kernels import ROOT
from benchmarks.measure import markdown, show_seconds

RUNS = 15
SYMPY = "import sympy"

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    SYMPY: ["-c", "import sympy"],
    "roofdsl --help": ["-m", "roofdsl", "--help"],
    "roofdsl check gemv": ["-m", "roofdsl", "check", "gemv"],
    "roofdsl predict gemv": ["-m", "roofdsl", "predict", "gemv", "--machine", "v100_deck", "--set", "n=4096"],
    "roofdsl derive gemv": ["-m", "roofdsl", "derive", "gemv"],
}
GOALS = {"roofdsl predict gemv": 0.5, "roofdsl derive gemv": 1.5}
"""Largest ratio to a process that imports sympy."""
GOALS_S = {"roofdsl --help": 0.15, "roofdsl check gemv": 0.3, "roofdsl derive gemv": 1.0}
"""Longest wall time in seconds."""


@dataclass(frozen=True)
class Command:
    """Seconds of every run of one command; `failure` is the last line of its errors where it fails."""

    name: str
    seconds: tuple[float, ...]
    failure: str = ""

    @property
    def median(self) -> float:
        return median(self.seconds)


def _python(arguments: list[str], compiled: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A python process that keeps and finds compiled modules in `compiled`, as an installed package does beside it.

    Without that, a checkout under PYTHONDONTWRITEBYTECODE compiles all of roofdsl anew in every run, and sympy not.
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPYCACHEPREFIX": compiled, **more}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def measure_all(runs: int = RUNS) -> list[Command]:
    """All commands in turn, `runs` times over, after one round that compiles all modules."""
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    failures: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as compiled:
        for turn in range(runs + 1):
            for name, arguments in COMMANDS.items():
                start = time.perf_counter()
                done = _python(arguments, compiled)
                if turn:
                    seconds[name].append(time.perf_counter() - start)
                if done.returncode:
                    failures[name] = done.stderr.strip().split("\n")[0]
    return [Command(name, tuple(seconds[name]), failures.get(name, "")) for name in COMMANDS]


KEPT = ("derive stencil27", "derive stencil27 --steps", "predict conv2d --machine h100_sxm")
"""Commands measured with and without what is kept on disk."""


def measure_kept(runs: int = 3) -> list[tuple[Command, Command]]:
    """Each command of KEPT found anew, and from the disk, where a run before left it."""
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        compiled, cache = (os.path.join(folder, part) for part in ("compiled", "cache"))
        for text in KEPT:
            seconds: dict[str, list[float]] = {"off": [], "on": []}
            for turn in range(runs + 1):
                for switch, taken in seconds.items():
                    start = time.perf_counter()
                    _python(["-m", "roofdsl", *text.split()], compiled, ROOFDSL_CACHE=switch, ROOFDSL_CACHE_DIR=cache)
                    if turn:
                        taken.append(time.perf_counter() - start)
            pairs.append((Command(f"{text}, anew", tuple(seconds["off"])), Command(text, tuple(seconds["on"]))))
    return pairs


def kept_section(pairs: list[tuple[Command, Command]]) -> str:
    """The part of a report."""
    rows = [
        (
            f"`roofdsl {hit.name}`",
            show_seconds(anew.median),
            show_seconds(hit.median),
            f"{anew.median / hit.median:.1f}",
        )
        for anew, hit in pairs
    ]
    return "\n\n".join(
        [
            "## What is kept on disk",
            f"Whole processes, medians of {len(pairs[0][0].seconds)} runs in turn: found anew, and from the disk. All "
            "other benchmarks run without a cache.",
            markdown(("process", "anew s", "from the disk s", "times quicker"), rows, numeric=(1, 2, 3)),
        ]
    )


def _figures(command: Command, unit: float) -> tuple[str, str, str]:
    return show_seconds(command.median), show_seconds(min(command.seconds)), f"{command.median / unit:.2f}"


def _goals(command: Command, unit: float) -> tuple[str, str]:
    """The goals of a command in words, and whether its median keeps to all; `unit` in seconds is sympy's median."""
    ratio, seconds = GOALS.get(command.name), GOALS_S.get(command.name)
    words = [f"ratio under {ratio:g}"] if ratio else []
    words += [f"under {seconds:g} s"] if seconds else []
    reached = command.median < min(ratio * unit if ratio else inf, seconds or inf)
    return ", ".join(words), "" if not words else "reached" if reached else "not reached"


def section(commands: list[Command]) -> str:
    """The part of a report."""
    unit = next(c.median for c in commands if c.name == SYMPY)
    rows = []
    for c in commands:
        goals, verdict = _goals(c, unit)
        if c.failure:
            verdict = f"fails: {c.failure}"
        rows.append(
            (
                f"`{c.name}`" if c.name != SYMPY else '`python -c "import sympy"`',
                *(("", "", "") if c.failure else _figures(c, unit)),
                goals,
                verdict,
            )
        )
    head = ("process", "median s", "least s", "ratio to sympy", "goal", "")
    return "\n\n".join(
        [
            "## Whole commands",
            f"Wall time of the whole process, {len(commands[0].seconds)} runs of each in turn, as `python -m roofdsl` "
            "with all modules compiled before; `predict` is with `--machine v100_deck --set n=4096`.",
            markdown(head, rows, numeric=(1, 2, 3)),
        ]
    )


def dearest_imports(name: str, top: int = 10) -> list[tuple[str, float]]:
    """(module, its own milliseconds) of the dearest imports of a command, by `python -X importtime`."""
    with tempfile.TemporaryDirectory() as compiled:
        _python(COMMANDS[name], compiled)
        done = _python(["-X", "importtime", *COMMANDS[name]], compiled)
    found = []
    for line in done.stderr.split("\n"):
        if line.startswith("import time:") and "imported package" not in line:
            own, _, module = line.removeprefix("import time:").split("|")
            found.append((module.strip(), int(own) / 1000))
    return sorted(found, key=lambda f: -f[1])[:top]
