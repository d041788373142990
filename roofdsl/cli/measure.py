"""`roofdsl measure`: kernels generated, verified and timed on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from roofdsl.cli.options import choose, json_option, kernels_of, parse_steps, set_option, show_json, warn
from roofdsl.cli.progress import progress_bar
from roofdsl.cli.text import bold, columns
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.machine.quantities import group, show_rate, show_time
from roofdsl.measure.atomic import check_writable
from roofdsl.measure.results import SCHEMA, Measurement, save
from roofdsl.measure.timing import REPEATS, Plan

_CPU, _GPU = ("loops", "parallel", "library"), ("naive", "tiled", "library")


@click.command()
@click.argument("file")
@click.option("--backend", type=click.Choice(["cpu", "gpu"]), default="cpu", show_default=True)
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME",
    help="CPU: loops, parallel, library; GPU: naive, tiled, library (repeatable).",
)
@click.option("--compiler", type=click.Choice(["numba", "cc"]), default="numba", show_default=True, help="On the CPU.")
@set_option
@click.option("--at", "sizes", multiple=True, metavar="n=64|n=8..64:*2", help="One measurement per size (repeatable).")
@click.option("--repeats", type=click.IntRange(1, 10_000), default=REPEATS, show_default=True)
@click.option(
    "--budget",
    type=click.FloatRange(0.01, 3600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="After it no more than five repeats of one measurement are made.",
)
@click.option("--cold", is_flag=True, help="Empty the caches before each repeat.")
@click.option(
    "--math-mode",
    type=click.Choice(["default", "tf32", "pedantic"]),
    default="default",
    show_default=True,
    help="Of the library on the GPU.",
)
@click.option("-o", "--output", metavar="RESULT.json", help="Write all measurements.")
@json_option
def measure(
    *,
    file: str,
    backend: str,
    variants: tuple[str, ...],
    compiler: str,
    settings: dict[str, int],
    sizes: tuple[str, ...],
    repeats: int,
    budget: float,
    cold: bool,
    math_mode: str,
    output: str | None,
    as_json: bool,
) -> None:
    """Time the kernels of FILE (or FILE:KERNEL, or a shipped kernel's name), after verifying what they compute."""
    known = _CPU if backend == "cpu" else _GPU
    for name in variants:
        if name not in known:
            raise click.BadParameter(
                f"there is no `{name}` on the {backend.upper()}; it has {', '.join(known)}", param_hint="--variant"
            )
    if output is not None:
        check_writable(Path(output))
    chosen = choose(file)
    if chosen.programs:
        raise CommandError(
            f"`{file}` is a program, and kernels are measured", f"pick one: {', '.join(chosen.checked.kernels)}"
        )
    pairs = [pair for at in parse_steps(sizes) for pair in kernels_of(chosen, settings | at)]
    jobs = [(kernel, own, variant) for kernel, own in pairs for variant in variants or known[:1]]
    how = _How(backend, compiler, Plan(repeats=repeats, budget_s=budget), cold, math_mode)
    found: list[Measurement] = []
    with progress_bar("measure") as tell:
        for k, (kernel, own, variant) in enumerate(jobs):

            def say(what: str, k: int = k, name: str = f"{kernel.name} {variant}") -> None:
                tell(k / len(jobs), f"{name}: {what}")

            found.append(_one(how, kernel, own, variant, say))
            if output is not None:
                save(Path(output), found)
    if as_json:
        documents = [m.to_json() for m in found]
        show_json(documents[0] if len(documents) == 1 else {"schema": SCHEMA, "kernels": documents})
    else:
        click.echo(report(found))
        if output is not None:
            click.echo(f"written to {output}")
    for message in dict.fromkeys(w for m in found for w in m.warnings):
        warn(message)


@dataclass(frozen=True)
class _How:
    """What the options say for all measurements of a command."""

    backend: str
    compiler: str
    plan: Plan
    cold: bool
    math_mode: str


def _one(how: _How, kernel: Kernel, own: dict[str, int], variant: str, say: Callable[[str], None]) -> Measurement:
    if how.backend == "gpu":
        from roofdsl.measure.gpu import GpuOptions, measure_gpu

        return measure_gpu(kernel, own, GpuOptions(variant, how.plan, True, how.math_mode), say)
    from roofdsl.measure.cpu import CpuOptions, measure_cpu

    return measure_cpu(kernel, own, CpuOptions(variant, how.compiler, how.plan, how.cold), say)


def report(found: list[Measurement]) -> str:
    """One line for each measurement: median, 10th and 90th percentile, rate, how it was verified."""
    rows = [["kernel", "variant", "median", "10 %", "90 %", "rate", "error", "calls"]]
    for m in found:
        sizes = ", ".join(f"{n}={v}" for n, v in m.parameters)
        times = [show_time(t, 4) for t in (m.median_s, m.low_s, m.high_s)]
        rate = show_rate(m.rate_per_s, m.operation) if m.work else "no operations"
        calls = f"{len(m.times_s)} x {group(m.calls_per_repeat)}"
        rows.append([f"{m.kernel} {sizes}".strip(), m.variant, *times, rate, f"{m.verified.max_error:.1e}", calls])
    lines = columns(rows, right=(2, 3, 4, 5, 6, 7))
    return "\n".join([bold(lines[0]), *lines[1:]])
