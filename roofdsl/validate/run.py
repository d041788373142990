"""Measure kernels at their sizes, and set every measurement, fresh or stored, beside its prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.loops.model import Kernel
from roofdsl.machine.model import Machine
from roofdsl.measure.results import Measurement
from roofdsl.predict.kernel import Accesses, Options, predict
from roofdsl.validate.compare import DEFAULTS, Comparison, Limits, compare

Backend = Literal["cpu", "gpu"]


@dataclass(frozen=True)
class Run:
    """One kernel at one size in one variant of the back end."""

    kernel: Kernel
    sizes: Mapping[str, int]
    variant: str


@dataclass(frozen=True)
class How:
    """How runs are measured.

    cold: whether the caches are emptied before each sample; else a launch finds what the one before it left there,
    and is predicted so. On a GPU buffers rotate, so that every launch starts cold. budget_s: seconds of samples for
    each run, at most about that.
    """

    backend: Backend = "cpu"
    compiler: str = "numba"
    cold: bool = False
    budget_s: float = 10.0
    repeats: int = 20


def measure_runs(
    runs: Sequence[Run], how: How | None = None, tell: Callable[[float, str], None] | None = None
) -> list[Measurement]:
    """Every run, verified and timed on this computer.

    `tell` gets the part that is done and what is being done. Raises what the back ends raise; a kernel whose
    results are wrong raises, and is no measurement.
    """
    found = []
    for number, run in enumerate(runs):
        label = f"{run.kernel.name} {', '.join(f'{n}={v}' for n, v in run.sizes.items())}"

        def say(what: str, number: int = number, label: str = label) -> None:
            if tell is not None:
                tell(number / len(runs), f"{label}: {what}")

        found.append(_measure(run, how or How(), say))
    return found


def _measure(run: Run, how: How, say: Callable[[str], None]) -> Measurement:
    from roofdsl.measure.timing import Plan

    plan = Plan(repeats=how.repeats, budget_s=how.budget_s)
    if how.backend == "gpu":
        from roofdsl.measure.gpu import GpuOptions, measure_gpu

        return measure_gpu(run.kernel, run.sizes, GpuOptions(run.variant, plan), say)
    from roofdsl.measure.cpu import CpuOptions, measure_cpu

    return measure_cpu(run.kernel, run.sizes, CpuOptions(run.variant, how.compiler, plan, how.cold), say)


def compare_all(
    kernels: Sequence[Kernel],
    measurements: Sequence[Measurement],
    machine: Machine,
    *,
    sizes: Mapping[str, int] | None = None,
    options: Options | None = None,
    limits: Limits = DEFAULTS,
    accesses: Accesses | None = None,
) -> list[Comparison]:
    """The measurements of these kernels, at these sizes where some are given, beside their predictions on `machine`:
    warm ones of what was measured warm. Accesses of the first cache are as compiled for what was compiled for a CPU,
    unless `accesses` says how. Raises CommandError where there is no measurement, and what prediction raises.
    """
    found = []
    for m in measurements:
        kernel = next((k for k in kernels if k.name == m.kernel), None)
        at = dict(m.parameters)
        if kernel is None or any(at.get(n, v) != v for n, v in (sizes or {}).items()):
            continue
        own = {p.name: at[p.name] for p in kernel.parameters if p.name in at}
        asked = replace(options or Options(), warm=m.state == "warm", accesses=accesses or _accesses(m, machine))
        found.append(compare(predict(kernel, own, machine, asked), m, machine, limits))
    if not found:
        names = ", ".join(dict.fromkeys(k.name for k in kernels))
        held = ", ".join(dict.fromkeys(m.kernel for m in measurements)) or "nothing"
        raise CommandError(f"the results hold no measurement of {names} at these sizes", f"they hold {held}")
    return found


def _accesses(measured: Measurement, machine: Machine) -> Accesses:
    """Compilers keep in a register what inner loops do not move, of loops as the kernel has them."""
    compiled = measured.backend == "cpu" and measured.variant in ("loops", "parallel")
    return "compiled" if compiled and machine.multiprocessor is None else "written"


def stale(kernels: Sequence[Kernel], measurements: Sequence[Measurement]) -> list[str]:
    """What to say of measurements whose kernel's text is another now."""
    by_name = {k.name: k for k in kernels}
    return [
        f"{m.kernel} was measured on {m.when}, and its text is another now: measure it again"
        for m in measurements
        if m.kernel in by_name and m.is_stale(by_name[m.kernel])
    ]
