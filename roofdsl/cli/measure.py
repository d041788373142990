"""`roofdsl measure`: generates, verifies and times kernels and programs on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from roofdsl.cli.options import (
    choose,
    cores_option,
    data_option,
    json_option,
    math_option,
    parse_steps,
    refuse_strict,
    set_option,
    show_json,
    variants_on,
    warn,
)
from roofdsl.cli.progress import progress_bar
from roofdsl.cli.subjects import subjects_of
from roofdsl.cli.text import show_blocks
from roofdsl.codegen.math_mode import Math
from roofdsl.measure.measurement import SCHEMA, Measurement, save
from roofdsl.measure.timing import REPEATS
from roofdsl.store.atomic import check_writable
from roofdsl.tell.measurement import blocks
from roofdsl.validate.run import Backend, How, Run, measure_run

_CPU, _GPU = ("loops", "grouped", "parallel", "library"), ("naive", "tiled", "library")


@click.command()
@click.argument("file")
@click.option(
    "--backend", type=click.Choice(["cpu", "gpu"]), default="cpu", show_default=True, help="Where the code runs."
)
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME",
    help="On the CPU: loops, grouped, parallel or library; on a GPU: naive, tiled or library (repeatable).",
)
@click.option(
    "--compiler",
    type=click.Choice(["numba", "cc"]),
    default="numba",
    show_default=True,
    help="The compiler for CPU code.",
)
@set_option
@data_option
@click.option(
    "--at",
    "sizes",
    multiple=True,
    metavar="n=64|n=8..64:*2",
    help="A size to measure at, or a range of sizes (repeatable).",
)
@click.option(
    "--repeats", type=click.IntRange(1, 10_000), default=REPEATS, show_default=True, help="Number of samples."
)
@click.option(
    "--budget",
    type=click.FloatRange(0.01, 3600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Time for one measurement; when it is over, measuring stops as soon as there are five repeats.",
)
@click.option("--cold", is_flag=True, help="Empty the caches before each repeat.")
@click.option(
    "--math-mode",
    type=click.Choice(["default", "tf32", "pedantic"]),
    default="default",
    show_default=True,
    help="The math mode of the GPU library.",
)
@math_option
@cores_option
@click.option("--energy", is_flag=True, help="Also read the energy of a call, where this computer counts it.")
@click.option("-o", "--output", metavar="RESULT.json", help="Write all measurements to this file.")
@json_option
def measure(
    *,
    file: str,
    backend: Backend,
    variants: tuple[str, ...],
    compiler: str,
    settings: dict[str, int],
    data: tuple[str, ...],
    sizes: tuple[str, ...],
    repeats: int,
    budget: float,
    cold: bool,
    math_mode: str,
    math: Math,
    cores: tuple[int, ...],
    energy: bool,
    output: str | None,
    as_json: bool,
) -> int:
    """Verify and time the kernels of FILE (or FILE:NAME, or a shipped name) on this machine.

    A program is timed as a whole and launch by launch. Those of its kernels that lack the chosen variant run as `loops`
    (on a GPU, `naive`). It is an error if a kernel that is not part of a program lacks the variant. The exit status is
    1 if results cannot be verified, because rounding errors may be larger than the results themselves.
    """
    refuse_strict(backend, math)
    known = _CPU if backend == "cpu" else _GPU
    for name in variants:
        if name not in known:
            raise click.BadParameter(
                f"there is no variant `{name}` on the {backend.upper()}; there are {', '.join(known)}",
                param_hint="--variant",
            )
    if output is not None:
        check_writable(Path(output))
    chosen = choose(file)
    subjects = [pair for at in parse_steps(sizes) for pair in subjects_of(chosen, settings | at, data)]
    ways = variants_on(cores, variants or (() if cores else known[:1]), backend)
    jobs = [Run(subject, own, *way) for subject, own in subjects for way in ways]
    how = How(backend, compiler, cold, budget, repeats, math_mode, math, energy)
    found: list[Measurement] = []
    with progress_bar("measure") as tell:
        for k, job in enumerate(jobs):

            def say(what: str, k: int = k, name: str = f"{job.kernel.name} {job.variant}") -> None:
                tell(k / len(jobs), f"{name}: {what}")

            found.append(measure_run(job, how, say))
            if output is not None:
                save(Path(output), found)
    if as_json:
        documents = [m.to_json() for m in found]
        show_json(documents[0] if len(documents) == 1 else {"schema": SCHEMA, "kernels": documents})
    else:
        show_blocks(blocks(found))
        if output is not None:
            click.echo(f"written to {output}")
    warn(*(w for m in found for w in m.warnings))
    return 0 if all(m.verified.holds for m in found) else 1
