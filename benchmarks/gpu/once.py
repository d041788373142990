"""Single executions of kernels, on random numbers, and nothing else: what a profiler or a checker looks at.

`python -m benchmarks.gpu.once RUNS.json [--seconds S] [--profile] [--no-pool]`: RUNS.json holds kernel, variant and
sizes of each. `roofdsl measure` launches a kernel many times, at the sizes of its verification too, and a profiler
repeats every launch for each group of its counters. One line before and one after each run tell a tool's output apart;
with `--profile` only the runs are profiled, each after an empty function. `--no-pool` gives every array memory of its
own, since a checker of accesses sees nothing inside a pool.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.kernels import fresh, shipped
from roofdsl.lang.diagnostics import CommandError, InputError

BEGUN, ENDED, REFUSED = "begun", "ended", "refused"
MARK = "roofdsl_mark"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.once", description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--seconds", type=float, default=1e9, help="after which no more runs are begun")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--no-pool", action="store_true")
    options = parser.parse_args(arguments)
    from roofdsl.measure.gpu_driver import find_driver

    try:
        device = find_driver()
    except CommandError as error:
        sys.exit(f"ERR {error}")
    if options.no_pool:
        device.without_pool()
    mark = device.compile(f'extern "C" __global__ void {MARK}() {{ }}\n')(MARK) if options.profile else None
    begun = time.monotonic()
    for number, run in enumerate(json.loads(options.runs.read_text(encoding="utf-8"))):
        if time.monotonic() - begun > options.seconds:
            print("out of time", flush=True)
            return
        print(f"{BEGUN} {number} {run['kernel']} {run['variant']}", flush=True)
        try:
            execute(run, device, mark)
        except (CommandError, InputError) as error:
            print(f"{REFUSED} {number} {str(error).splitlines()[0]}", flush=True)
            continue
        print(f"{ENDED} {number}", flush=True)


def execute(run: dict[str, Any], device: Any, mark: Any = None) -> None:
    """One execution. Raises CommandError where there is no such code."""
    from roofdsl.loops.parameter_values import numbers
    from roofdsl.measure.gpu import GpuOptions, build_gpu, copies_on

    kernel = fresh(shipped()[run["kernel"]], run["kernel"])
    values = numbers(kernel, run["sizes"])
    options = GpuOptions(run["variant"], rotate=False, math_mode=run.get("math_mode", "default"))
    code = build_gpu(kernel, options, device, values)
    call = code.bind(copies_on(device, kernel, values, options, 0).arrays[0], values)
    if mark is None:
        device.elapsed([call])
        return
    with device.profiled():
        device.elapsed([lambda: device.launch(mark, (1, 1, 1), (1, 1, 1), 0, []), call])


if __name__ == "__main__":
    main(sys.argv[1:])
