"""One execution of a kernel's generated CUDA, on random numbers, and nothing else: what a profiler looks at.

`python -m benchmarks.gpu.once KERNEL VARIANT n=4096,...`. `roofdsl measure` launches a kernel many times, at the sizes
of its verification too, and a profiler repeats every launch for each group of its counters.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from benchmarks.kernels import fresh, shipped
from roofdsl.lang.diagnostics import CommandError, InputError


def run(name: str, variant: str, sizes: Mapping[str, int]) -> None:
    """Raises CommandError where there is no GPU or no such code."""
    from roofdsl.codegen.inputs import random_inputs
    from roofdsl.loops.numbers import numbers
    from roofdsl.measure.gpu import GpuOptions, build_gpu
    from roofdsl.measure.gpu_driver import find_driver

    kernel = fresh(shipped()[name], name)
    values = numbers(kernel, sizes)
    device = find_driver()
    code = build_gpu(kernel, GpuOptions(variant), device, values)
    arrays = {name: device.put(array) for name, array in random_inputs(kernel, values, 0).items()}
    device.elapsed([code.bind(arrays, values)])


def main(arguments: list[str]) -> None:
    name, variant, at = arguments
    try:
        run(name, variant, {n: int(v) for n, v in (part.split("=") for part in at.split(","))})
    except (CommandError, InputError) as error:
        sys.exit(f"ERR {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
