"""kerncraft's layer conditions as JSON; runs in kerncraft's own environment.

Usage: kerncraft_lc.py MACHINE.yml KERNEL.c... The last line of the output is one object: name -> seconds and rows, or
error. A row is one condition of the first cache: the bytes it asks for (in n), misses, hits and evictions an iteration.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import sympy
from kerncraft.cacheprediction import LayerConditionPredictor, sympy_expr_abs_distance_key
from kerncraft.kerncraft import create_parser
from kerncraft.kernel import KernelCode
from kerncraft.machinemodel import MachineModel


def requirement(option: dict[str, Any], distances: list[Any], arrays: Any) -> Any:
    """The left side of the condition before kerncraft simplifies it (cacheprediction.py, build_symbolic_LCs)."""
    tail = option["tail"]
    if tail is sympy.oo:
        return arrays
    key = sympy_expr_abs_distance_key
    inside = [d for d in distances if key(d) <= key(tail)]
    return sympy.expand(sum(inside) + tail * (len(distances) - len(inside)))


def analyse(path: Path, machine: Any, machine_path: str) -> dict[str, Any]:
    """One kernel, in a folder of its own, where kerncraft finds no earlier result."""
    arguments = create_parser().parse_args(["-p", "LC", "-m", machine_path, str(path)])
    start = time.perf_counter()
    with path.open() as file:
        kernel = KernelCode(file.read(), filename=str(path), machine=machine)
    kernel.set_constant("n", 1000)
    results = LayerConditionPredictor(kernel, machine, cores=arguments.cores, symbolic=True).results
    seconds = time.perf_counter() - start
    arrays = sum(kernel.array_sizes(in_bytes=True, subs_consts=False).values())
    rows = []
    for option in results["cache"][0]:
        asked = 0 if "tail" not in option else requirement(option, results["distances_bytes"], arrays)
        rows.append(
            {
                "condition": str(option["condition"]),
                "bytes": str(asked),
                "misses": int(option["misses"]),
                "hits": int(option["hits"]),
                "evicts": int(option["evicts"]),
            }
        )
    return {"seconds": seconds, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("machine")
    parser.add_argument("kernels", nargs="+", type=Path)
    options = parser.parse_args()
    machine = MachineModel(options.machine)
    found: dict[str, Any] = {}
    for source in [options.kernels[0], *options.kernels]:  # the first twice: once to load what is loaded late
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(shutil.copy(source, folder))
            try:
                found[source.stem] = analyse(copy, machine, options.machine)
            except Exception as error:
                found[source.stem] = {"error": f"{type(error).__name__}: {error}"}
    sys.stdout.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
