"""Other tools on the same kernels: kerncraft's layer conditions, loopy's and DaCe's counts, each in an environment.

The environments are made from PyPI under a folder outside the project; what they answer stands beside our own numbers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DRIVERS = HERE / "peer_drivers"
HOME = Path(os.environ.get("ROOFDSL_PEERS", "/tmp/roofdsl-peers"))
KERNELS = ("gemv", "matmul", "jacobi2d", "jacobi3d", "triad")
KERNCRAFT_MACHINE = "SkylakeSP_Gold-6148.yml"
TIMEOUT_S = 600


@dataclass(frozen=True)
class Tool:
    """What to install for a peer, and the packages whose versions a report names.

    `then` is installed after the rest without looking at dependencies.
    """

    name: str
    packages: tuple[str, ...]
    named: tuple[str, ...]
    then: tuple[str, ...] = ()


TOOLS = (
    Tool("kerncraft", ("kerncraft",), ("kerncraft", "sympy")),
    # loopy 2025.2 calls methods that islpy 2026 no longer has, and only barvinok counts parametric sets.
    Tool("loopy", ("loopy", "islpy<2026"), ("loopy", "islpy-barvinok"), ("islpy-barvinok<2026",)),
    Tool("dace", ("dace",), ("dace", "networkx", "sympy")),
)


@dataclass(frozen=True)
class Answer:
    """What one tool said: its versions, the object its driver printed, or why there is none."""

    tool: str
    versions: dict[str, str] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)
    whole_s: float = 0.0
    failure: str = ""


def python_of(tool: Tool) -> Path:
    return HOME / tool.name / "bin" / "python"


def install(tool: Tool) -> str:
    """Makes the tool's environment unless it is there. Empty, or the last lines of what pip said."""
    python = python_of(tool)
    done = python.parent.parent / "installed"
    if done.exists():
        return ""
    steps = [
        [sys.executable, "-m", "venv", "--clear", str(python.parent.parent)],
        [str(python), "-m", "pip", "install", "--quiet", *tool.packages],
        *([[str(python), "-m", "pip", "install", "--quiet", "--no-deps", *tool.then]] if tool.then else []),
    ]
    for step in steps:
        failure = _failure(step)
        if failure:
            return failure
    done.touch()
    return ""


def _failure(command: list[str]) -> str:
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    errors = [line for line in run.stderr.strip().split("\n") if not line.startswith("WARNING")]
    return "" if run.returncode == 0 else " / ".join(errors[-3:])


def versions(tool: Tool) -> dict[str, str]:
    """Package -> version in the tool's environment."""
    code = "import sys, importlib.metadata as m; print(*[m.version(p) for p in sys.argv[1:]])"
    done = subprocess.run([str(python_of(tool)), "-c", code, *tool.named], capture_output=True, text=True, check=True)
    return dict(zip(tool.named, done.stdout.split(), strict=True))


def kerncraft_machine() -> Path:
    """A machine file of kerncraft's own examples, which only its source distribution has. Raises OSError."""
    wanted = HOME / KERNCRAFT_MACHINE
    if not wanted.exists():
        python = python_of(TOOLS[0])
        version = versions(TOOLS[0])["kerncraft"]
        folder = HOME / "source"
        wheelless = ["--quiet", "--no-deps", "--no-binary", "kerncraft", "-d", str(folder)]
        failure = _failure([str(python), "-m", "pip", "download", *wheelless, f"kerncraft=={version}"])
        if failure:
            raise OSError(failure)
        with tarfile.open(next(folder.glob("kerncraft-*.tar.gz"))) as archive:
            member = next(m for m in archive.getmembers() if m.name.endswith(f"/machine-files/{KERNCRAFT_MACHINE}"))
            content = archive.extractfile(member)
            assert content is not None
            wanted.write_bytes(content.read())
    return wanted


def ask(tool: Tool) -> Answer:
    """Installs the tool where needed and runs its driver, twice: the second run is timed, with all modules compiled."""
    failure = install(tool)
    if failure:
        return Answer(tool.name, failure=f"cannot be installed: {failure}")
    known = versions(tool)
    driver = {"kerncraft": "kerncraft_lc.py", "loopy": "loopy_counts.py", "dace": "dace_counts.py"}[tool.name]
    command = [str(python_of(tool)), str(DRIVERS / driver)]
    try:
        if tool.name == "kerncraft":
            command += [str(kerncraft_machine()), *(str(HERE / "peer_kernels" / f"{k}.c") for k in KERNELS)]
        environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")}
        for _ in range(2):
            start = time.perf_counter()
            done = subprocess.run(
                command, cwd=HOME, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
            taken = time.perf_counter() - start
    except (OSError, subprocess.TimeoutExpired) as error:
        return Answer(tool.name, known, failure=str(error))
    if done.returncode:
        return Answer(tool.name, known, failure=done.stderr.strip().split("\n")[-1])
    return Answer(tool.name, known, json.loads(done.stdout.strip().split("\n")[-1]), taken)


def ask_all() -> list[Answer]:
    """The answers of all tools, in the order of TOOLS."""
    HOME.mkdir(parents=True, exist_ok=True)
    return [ask(tool) for tool in TOOLS]
