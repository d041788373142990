"""All generated CUDA compiled by nvcc: `python -m benchmarks.gpu.compiled [ARCH]` prints registers, shared memory and
spills of every function as a table. It needs nvcc, and no GPU.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gpu.plan import planned
from benchmarks.kernels import fresh, shipped
from benchmarks.measure import markdown
from roofdsl.checks.parallel_loops import parallel_loops
from roofdsl.codegen.generate import generate
from roofdsl.codegen.generated import Generated
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.parameter_values import numbers

PARTS = 8
"""Compiler runs that the kernels are divided among."""


@dataclass(frozen=True)
class Compiled:
    """One function as ptxas reports it; sizes in bytes."""

    function: str
    registers: int
    shared: int
    stack: int
    spilled: int


def codes() -> Iterator[tuple[str, Generated]]:
    """(label, code) of every variant of the plan, the naive ones once, the tiled ones with each size of tiles."""
    every = shipped()
    seen = set()
    for run in (*planned().ragged, *planned().runs):
        tiles = tuple((n, v) for n, v in run.sizes.items() if n in ("b", "bi", "bj", "bk", "bq"))
        key = (run.kernel, run.variant, tiles if run.variant == "tiled" else ())
        if run.variant == "library" or key in seen:
            continue
        seen.add(key)
        kernel = fresh(every[run.kernel], run.kernel)
        free = parallel_loops(kernel)
        label = f"{run.kernel} {run.variant}{''.join(f', {n} = {v}' for n, v in key[2])}"
        yield label, generate(kernel, "cuda", run.variant, free=free, sizes=numbers(kernel, run.sizes))


def together(sources: Sequence[str]) -> str:
    """Several texts as one, each in a namespace; their functions get the text's number as a prefix."""
    includes = sorted({line for source in sources for line in source.splitlines() if line.startswith("#include")})
    parts = list(includes)
    for k, source in enumerate(sources):
        body = "\n".join(line for line in source.splitlines() if not line.startswith("#include"))
        named = re.sub(r'(extern "C" __global__ void(?: __launch_bounds__\(\d+\))?\s+)(\w+)\(', rf"\g<1>k{k}_\2(", body)
        parts.append(f"namespace kernel_{k} {{\n{named}\n}}")
    return "\n".join(parts)


def compiled(sources: Sequence[str], arch: str = "sm_90") -> list[list[Compiled]]:
    """The functions of each text. Raises CommandError if nvcc is not there, or refuses one."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise CommandError("nvcc is not installed", "it comes with CUDA's toolkit")
    with tempfile.TemporaryDirectory(prefix="roofdsl") as folder:
        path = Path(folder) / "kernels.cu"
        path.write_text(together(sources), encoding="utf-8")
        command = [nvcc, f"-arch={arch}", "-cubin", "-Xptxas", "-v", "-o", str(path.with_suffix(".cubin")), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandError(f"nvcc does not compile the generated CUDA: {done.stderr.strip()[:2000]}")
    return grouped(reported(done.stderr), len(sources))


def grouped(found: Mapping[str, Compiled], count: int) -> list[list[Compiled]]:
    """The functions of each text, by the number that `together` gave them."""
    groups: list[list[Compiled]] = [[] for _ in range(count)]
    for name, one in sorted(found.items()):
        number, _, function = name[1:].partition("_")
        groups[int(number)].append(Compiled(function, one.registers, one.shared, one.stack, one.spilled))
    return groups


def reported(text: str) -> dict[str, Compiled]:
    """What `ptxas -v` says of each function."""
    found: dict[str, Compiled] = {}
    name, stack, spilled = "", 0, 0
    for line in text.splitlines():
        if entry := re.search(r"Compiling entry function '(\w+)'", line):
            name = entry[1]
        elif frame := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            stack, spilled = int(frame[1]), int(frame[2]) + int(frame[3])
        elif name and (used := re.search(r"Used (\d+) registers", line)):
            shared = re.search(r"(\d+) bytes smem", line)
            found[name] = Compiled(name, int(used[1]), int(shared[1]) if shared else 0, stack, spilled)
            name = ""
    return found


def table(arch: str) -> str:
    """All functions as a Markdown table, those that spill first."""
    every = list(codes())
    rows = []
    for part in range(PARTS):
        some = every[part::PARTS]
        for (label, _), functions in zip(some, compiled([code.source for _, code in some], arch), strict=True):
            rows += [(label, f) for f in functions]
    rows.sort(key=lambda row: (-row[1].spilled, row[0], row[1].function))
    head = ["code", "function", "registers", "shared memory, B", "stack, B", "spilled, B"]
    lines = [[label, f.function, *map(str, (f.registers, f.shared, f.stack, f.spilled))] for label, f in rows]
    most = max(rows, key=lambda row: row[1].registers)
    spilling = sum(f.spilled > 0 for _, f in rows)
    words = (
        f"{len(rows)} functions of {len(every)} generated texts, compiled for {arch}: {spilling} spill registers; the "
        f"most registers are {most[1].registers} ({most[0]})."
    )
    return f"# Generated CUDA as compiled\n\n{words}\n\n{markdown(head, lines, (2, 3, 4, 5))}\n"


if __name__ == "__main__":
    try:
        print(table(sys.argv[1] if len(sys.argv) > 1 else "sm_90"), end="")
    except CommandError as error:
        sys.exit(f"error: {error}")
