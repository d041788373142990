"""Measure a kernel on a GPU: generated CUDA or the vendor's library, verified, timed by events, rotating buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import ceil
from typing import Any

from numpy.typing import NDArray

from roofdsl.codegen.generated import Argument, Generated
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.indirect import is_indirect
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import numbers
from roofdsl.measure.by_numba import by_value
from roofdsl.measure.device import software
from roofdsl.measure.energy_counter import details_of, read_energy
from roofdsl.measure.gpu_code import GpuCode
from roofdsl.measure.gpu_driver import MATH_MODES, Call, Driver, find_driver
from roofdsl.measure.gpu_library import library_code
from roofdsl.measure.gpu_timing import PER_LAUNCH_S, time_launches
from roofdsl.measure.measurement import Measurement, source_hash
from roofdsl.measure.measurement_record import Ran, Setup, recorded
from roofdsl.measure.timing import DEFAULT, Plan
from roofdsl.measure.verified import Verified
from roofdsl.measure.verify import BUDGET_S, verify

VARIANTS = ("naive", "tiled", "library")
_COPIES = 64
_IN_GRAPH = 100

Known = dict[tuple[str, str, str, str], Verified]
"""Verifications by the hash of the kernel's text, the variant, the math mode and the text of the code."""


@dataclass(frozen=True)
class GpuOptions:
    """How a kernel is run.

    rotate: use the arrays in turn, in as many copies as exceed twice the L2 cache. math_mode: the library's, one of
    MATH_MODES. verify_s: seconds for the reference. energy: whether to read the energy of an execution as well. known:
    earlier verifications, which are completed; what is known is not verified again at other sizes.
    """

    variant: str = "naive"
    plan: Plan = DEFAULT
    rotate: bool = True
    math_mode: str = "default"
    seed: int = 0
    verify_s: float = BUDGET_S
    energy: bool = False
    known: Known | None = None


def measure_gpu(
    kernel: Kernel,
    params: Mapping[str, int],
    options: GpuOptions | None = None,
    tell: Callable[[str], None] | None = None,
    driver: Driver | None = None,
) -> Measurement:
    """Time one execution of `kernel` at `params` on the GPU after comparing its results with the reference.

    The time is taken between two events around the launches, with several executions per sample if one is short. Raises
    InputError for an illegal kernel, CommandError for one with index arrays and if there is no GPU or no such code, and
    WrongResult for wrong results.
    """
    from roofdsl.checks.deep import require_legal

    options = options or GpuOptions()
    say = tell or (lambda what: None)
    if is_indirect(kernel):
        message = f"kernel {kernel.name} has index arrays, and such kernels are measured only on the CPU"
        raise CommandError(message, "write `--backend cpu` and give their values with `--data`")
    require_legal(kernel)
    values = numbers(kernel, params)
    device = driver or find_driver()
    about = device.describe()
    say("compiling")
    code = build_gpu(kernel, options, device, values)

    say("verifying")
    compute = "tf32" if options.variant == "library" and options.math_mode == "tf32" else None
    what = f"the variant `{options.variant}` on the GPU"
    key = source_hash(kernel), options.variant, options.math_mode, code.text  # that of a library names no types
    verified = options.known.get(key) if options.known is not None else None
    if verified is None:
        verified = verify(kernel, device_runner(device, code), values, what, compute, options.verify_s)
    if options.known is not None:
        options.known[key] = verified
    say("preparing")
    sets = copies_on(device, kernel, values, options, int(about["l2_bytes"]))
    say("timing")
    runs = [code.bind(arrays, values) for arrays in sets.arrays]
    about_code = code.details(values)
    timed = time_launches(device, runs, options.plan, sets.restore, int(about_code.get("launches", 1)))
    copies = len(sets.arrays)
    energy = energy_details(device, runs, timed.times.median_s, sets.restore, say) if options.energy else {}
    ran = Ran(
        kernel, values, options.variant, code.compiler, code.text, 1, verified, sets.footprint_bytes,
        {**about_code, "copies": copies, **timed.details(), **energy},
    )  # fmt: skip
    setup = Setup("gpu", about, {**software(), **device.software()}, "rotated" if copies > 1 else "warm")
    return recorded(ran, setup, timed.times)


def energy_details(
    device: Driver, runs: Sequence[Call], call_s: float, prepare: Call, say: Callable[[str], None]
) -> dict[str, Any]:
    """What the record says about the energy of an execution, which takes call_s seconds; short ones run in a graph."""
    turn = cycle(runs)
    replay = device.captured([next(turn) for _ in range(_IN_GRAPH)]) if call_s < PER_LAUNCH_S else None

    def calls(count: int) -> int:
        if replay is None:
            device.elapsed([next(turn) for _ in range(count)])
            return count
        times = ceil(count / _IN_GRAPH)
        device.elapsed([replay] * times)
        return times * _IN_GRAPH

    say("reading energy")
    return details_of(lambda: read_energy(device.energy_counter(), calls, call_s, backend="gpu", prepare=prepare))


@dataclass(frozen=True)
class Copies:
    """Several copies of a kernel's arrays on the device; restore: undoes the updates of executions."""

    arrays: tuple[Mapping[str, Any], ...]
    restore: Call
    footprint_bytes: int


def copies_on(device: Driver, kernel: Kernel, values: Mapping[str, int], options: GpuOptions, l2_bytes: int) -> Copies:
    """Random inputs on the device, in as many copies as are used in turn."""
    from roofdsl.codegen.inputs import random_blocks

    blocks = random_blocks(kernel, values, options.seed)
    size = sum(block.nbytes for block in blocks.values())
    count = copies_of(size, l2_bytes) if options.rotate else 1
    sets = tuple({name: device.filled(*block) for name, block in blocks.items()} for _ in range(count))
    before = {a.name: device.filled(*blocks[a.name]) for a in kernel.arrays if a.intent == "inout"}

    def restore() -> None:
        for arrays in sets:
            for name, array in before.items():
                device.copy(arrays[name], array)

    return Copies(sets, restore, size)


def device_runner(driver: Driver, code: GpuCode) -> Callable[[dict[str, NDArray[Any]], Mapping[str, int]], None]:
    """Runs the code on arrays of the host, which it changes, through copies on the device, as `verify` requires."""

    def run(arrays: dict[str, NDArray[Any]], sizes: Mapping[str, int]) -> None:
        there = {name: driver.put(array) for name, array in arrays.items()}
        driver.elapsed([code.bind(there, sizes)])
        for name, array in there.items():
            arrays[name][...] = driver.get(array)

    return run


def copies_of(size: int, l2_bytes: int) -> int:
    """The number of copies of the arrays to use in turn, so that none is still in the L2 cache when its turn comes; at
    most _COPIES.
    """
    if size >= 2 * l2_bytes or size == 0:
        return 1
    return min(_COPIES, ceil(2 * l2_bytes / size) + 1)


def build_gpu(kernel: Kernel, options: GpuOptions, driver: Driver, values: Mapping[str, int]) -> GpuCode:
    """The code of a variant. Raises CommandError if there is none."""
    if options.variant not in VARIANTS:
        raise CommandError(f"there is no variant `{options.variant}` on the GPU", f"it has {', '.join(VARIANTS)}")
    if options.math_mode not in MATH_MODES:
        raise CommandError(f"there is no math mode `{options.math_mode}`", f"there are {', '.join(MATH_MODES)}")
    if options.variant == "library":
        return library_code(kernel, options.math_mode, driver)
    return _generated(kernel, options.variant, driver, values)


def _generated(kernel: Kernel, variant: str, driver: Driver, values: Mapping[str, int]) -> GpuCode:
    """CUDA from codegen. The text of `tiled` contains tile sizes; a verification with others generates it anew."""
    from roofdsl.checks.parallel_loops import parallel_loops
    from roofdsl.checks.private_copies import private_loops
    from roofdsl.codegen.generate import generate
    from roofdsl.codegen.inputs import work_space

    free, private = parallel_loops(kernel), private_loops(kernel)
    work: dict[tuple[str, tuple[int, ...]], Any] = {}
    compiled: dict[str, Callable[[str], Any]] = {}

    def at(sizes: Mapping[str, int]) -> tuple[Generated, Callable[[str], Any]]:
        found = generate(kernel, "cuda", variant, free=free, private=private, sizes=sizes)
        if found.source not in compiled:
            compiled[found.source] = driver.compile(found.source)
        return found, compiled[found.source]

    def copies(argument: Argument, sizes: Mapping[str, int]) -> dict[str, Any]:
        """Memory for the threads' copies of an array, once for all launches of these sizes."""
        key = argument.name, argument.shape(sizes)
        if key not in work:
            work[key] = driver.put(work_space(argument, sizes))
        return {argument.name: work[key]}

    def bind(arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> Call:
        found, function = at(sizes)
        fixed = [
            _value(a, arrays if a.work_bytes is None else copies(a, sizes), sizes, driver) for a in found.arguments
        ]
        launches = [(function(x.function), x, [*fixed, *_integers(x.values)]) for x in found.launches(sizes)]

        def run() -> None:
            for kernel_function, x, passed in launches:
                driver.launch(kernel_function, x.grid, x.block, x.shared_bytes, passed)

        return run

    def details(sizes: Mapping[str, int]) -> dict[str, Any]:
        found = at(sizes)[0]
        launches = list(found.launches(sizes))
        shapes = {(x.function, x.grid, x.block, x.shared_bytes) for x in launches[:1000]}
        shown = [dict(zip(("function", "grid", "block", "shared_bytes"), s, strict=True)) for s in sorted(shapes)[:16]]
        known = {"launches": len(launches), "shapes": shown, "parallel_loops": list(found.parallel)}
        return {**known, "sizes": dict(found.sizes), "notes": list(found.notes)}

    return GpuCode(at(values)[0].source, f"nvrtc {driver.software().get('nvrtc', '')}".strip(), bind, details)


def _value(argument: Any, arrays: Mapping[str, Any], sizes: Mapping[str, int], driver: Driver) -> Any:
    """The value to pass for an argument: an array on the device, a scalar by value, or a size in 64 bits."""
    import numpy as np

    if argument.role == "parameter":
        return np.int64(sizes[argument.name])
    if argument.role == "scalar_in":
        value = by_value(argument, driver.get(arrays[argument.name]))
        return np.int32(value) if isinstance(value, (np.int8, np.int16)) else value
    return arrays[argument.name]


def _integers(values: Sequence[int]) -> list[Any]:
    import numpy as np

    return [np.int64(v) for v in values]
