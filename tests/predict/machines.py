"""Machines and counts that the tests of this folder share."""

from collections.abc import Mapping

from roofdsl.counts.work_record import WorkAt
from roofdsl.lang.source import Source
from roofdsl.loops.load import kernel, load_file
from roofdsl.loops.model import Kernel
from roofdsl.machine.find import machine_of
from roofdsl.machine.model import Machine
from roofdsl.predict.hardware_traffic import Moving
from roofdsl.predict.kernel import _checked, _moving
from roofdsl.predict.options import Options
from roofdsl.predict.prediction import Prediction


def machine(*lines: str) -> Machine:
    """A machine of these lines; `memory HBM 16 GiB, 1 TB/s` where they state none."""
    stated = lines if any(line.startswith("memory") for line in lines) else (*lines, "memory HBM 16 GiB, 1 TB/s")
    return machine_of(load_file(Source("m.roof", "machine m:\n" + "".join(f"    {line}\n" for line in stated))), None)


def kernel_of(text: str, name: str | None = None) -> Kernel:
    return kernel(load_file(Source("k.roof", text)), name)


def work(type_name: str = "f64", *, pairs: int = 0, **classes: int) -> WorkAt:
    """`pairs` fused pairs and, beside them, these operations."""
    operations = {(type_name, c): n for c, n in classes.items()}
    for c in ("add", "mul"):
        if pairs:
            operations[(type_name, c)] = operations.get((type_name, c), 0) + pairs
    return WorkAt(operations, {type_name: pairs} if pairs else {})


def moving_of(found: Prediction, kernel: Kernel, sizes: Mapping[str, int], given: Machine, options: Options) -> Moving:
    """What the hardware moves in one launch, beside the prediction of its bound."""
    return _moving(_checked(kernel, sizes, given, options), found)


def of_lines(lines: int) -> Machine:
    """A machine whose last cache has so many lines of 64 B, and all stores load their lines first."""
    return machine(
        "peak f64 fma 10 GFLOP/s",
        "cache L1 1 KiB, 200 GB/s, line 64 B, write_allocate",
        f"cache L2 {lines * 64} B, 40 GB/s, line 64 B, write_allocate",
        "memory DRAM 16 GiB, 10 GB/s",
        "transfers serial",
    )
