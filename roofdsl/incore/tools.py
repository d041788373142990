"""In-core time from other tools, if they are installed, each run as a separate process: llvm-mca and OSACA.

Both analyze one loop as if it never ended. Each innermost loop of the compiled function is passed to the tool, and its
cycles per iteration are multiplied by the iterations of a launch, which the walk counts. The code between the loops and
the cost of entering them are left out, because these tools do not model them.

OSACA is AGPL: it is run, never imported.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from roofdsl.codegen.math_mode import Math
from roofdsl.incore.compiled import native_code, walked_through
from roofdsl.incore.rates import rates_of
from roofdsl.incore.result import InCore, NoInCore, Step
from roofdsl.incore.walk import Walked
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine

TOOLS = ("llvm-mca", "osaca")

_ITERATIONS = 100
_SECONDS = 60
_ARCHITECTURES = (
    ("emeraldrapids", "SPR"), ("sapphirerapids", "SPR"), ("icelake", "ICX"), ("cascadelake", "CSX"), ("skylake", "SKX"),
    ("broadwell", "BDW"), ("haswell", "HSW"), ("znver5", "ZEN4"), ("znver4", "ZEN4"), ("znver3", "ZEN3"),
    ("znver2", "ZEN2"), ("znver1", "ZEN1"),
)  # fmt: skip
"""OSACA's names of processors, by LLVM's names."""

_STAND_INS = {"znver5": "OSACA's model of Zen 4 stands in for Zen 5, which it does not have"}
"""What is assumed on processors for which OSACA has no model."""


def in_core_by(
    tool: str,
    kernel: Kernel,
    values: Mapping[str, int],
    machine: Machine,
    *,
    code: str = "numba",
    math: Math = "relaxed",
) -> InCore:
    """The in-core time of one launch by `tool`, one of TOOLS. Raises NoInCore if it is not installed or fails, or if
    the machine states no clock.
    """
    if machine.clock_hz is None:
        raise NoInCore(f"machine {machine.name} states no clock")
    path = shutil.which(tool)
    if path is None:
        raise NoInCore(f"`{tool}` is not installed")
    native = native_code(kernel, code, math)
    walked = walked_through(native, kernel, values, rates_of(machine))
    cycles = loops_cycles(tool, path, walked, native.text)
    step = Step("", "", cycles / float(machine.clock_hz), 0.0)
    stand_in = _STAND_INS.get(_host(), "") if tool == "osaca" else ""
    assumed = ("innermost loops only, as if each never ended", *([stand_in] if stand_in else []))
    return InCore(version(tool, path), (step,), None, assumed)


def _host() -> str:
    """LLVM's name of this processor."""
    import llvmlite.binding as llvm

    return str(llvm.get_host_cpu_name())


def loops_cycles(tool: str, path: str, walked: Walked, text: str) -> float:
    """The cycles of all iterations of the innermost loops that run."""
    lines = text.splitlines()
    analyse: Callable[[str, Sequence[str]], float] = _mca if tool == "llvm-mca" else _osaca
    total = 0.0
    for loop in walked.flow.loops:
        times = walked.totals.iterations[loop.number]
        if not loop.innermost or not times:
            continue
        body = []
        for start in sorted(loop.blocks):
            block = walked.flow.blocks[start]
            body += [lines[walked.code.instructions[k].line - 1] for k in range(block.start, block.stop)]
        total += times * analyse(path, body)
    return total


def version(tool: str, path: str) -> str:
    """The tool and its version, for people."""
    found = re.search(r"\d+\.\d+(?:\.\d+)?", _run([path, "--version"]))
    return f"{tool} {found[0]}" if found else tool


def _run(command: Sequence[str]) -> str:
    """The output of a tool. Raises NoInCore with its first complaint if it fails."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoInCore(f"`{name}` cannot be run: {str(error)[:100]}") from None
    if done.returncode != 0:
        lines = [line.strip() for line in (done.stderr + done.stdout).splitlines()]
        said = next(filter(None, lines), "")
        raise NoInCore(f"`{name}` fails: {said[:160] or f'exit status {done.returncode}'}")
    return done.stdout


UNSUPPORTED = "unsupported instruction"
"""What llvm-mca says of an instruction for which it has no times on the processor."""


def _mca(path: str, body: Sequence[str]) -> float:
    """Cycles per iteration by llvm-mca, which runs a hundred iterations."""
    with tempfile.TemporaryDirectory(prefix="roofdsl") as folder:
        source = Path(folder) / "loop.s"
        source.write_text("\n".join(body) + "\n", encoding="utf-8")
        try:
            said = _run([path, "-mcpu=native", f"-iterations={_ITERATIONS}", str(source)])
        except NoInCore as error:
            if UNSUPPORTED not in str(error):
                raise
            tool = version("llvm-mca", path)
            raise NoInCore(f"{tool} does not know all instructions of this processor; try a newer version") from None
    found = re.search(r"^Total Cycles:\s+(\d+)", said, re.MULTILINE)
    if found is None:
        raise NoInCore("llvm-mca's output is not understood: it has no `Total Cycles`")
    return int(found[1]) / _ITERATIONS


def _osaca(path: str, body: Sequence[str]) -> float:
    """Cycles per iteration by OSACA: the larger of the busiest port and the longest loop-carried dependency."""
    host = _host()
    architecture = next((name for prefix, name in _ARCHITECTURES if host.startswith(prefix)), None)
    if architecture is None:
        raise NoInCore(f"OSACA's name of the processor {host} is not known")
    with tempfile.TemporaryDirectory(prefix="roofdsl") as folder:
        source = Path(folder) / "loop.s"
        source.write_text("\n".join(body) + "\n", encoding="utf-8")
        said = _run([path, "--arch", architecture, "--ignore-unknown", str(source)])
    return osaca_cycles(said)


def osaca_cycles(text: str) -> float:
    """The result of OSACA's combined view. The line of sums holds the pressure of each port, then the critical path and
    the loop-carried dependency.

    Raises NoInCore if there is no such line.
    """
    sums = [line for line in text.splitlines() if re.fullmatch(r"[\s|]*(?:\d+\.\d+[\s|]*){3,}", line)]
    if not sums:
        raise NoInCore("OSACA's output is not understood: it has no line of sums")
    numbers = [float(n) for n in re.findall(r"\d+\.\d+", sums[-1])]
    *ports, _, carried = numbers
    return max(*ports, carried)
