"""`roofdsl simulate`: every access of a kernel through caches."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

from roofdsl.cli.look import look_options
from roofdsl.cli.options import choose_kernels, json_option, kernels_of, set_option, show_json, size_option
from roofdsl.cli.progress import bar
from roofdsl.cli.text import show_blocks
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.sized import Sized
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.machine.quantities import show_time
from roofdsl.plot.look import Look
from roofdsl.simulate.levels import CacheLevel, Inclusion, Policy, Write, WriteMiss
from roofdsl.tell.simulation import Run, blocks, curve_json, of_curve, to_json

ACCESSES_PER_S = 5e7  # a cautious guess; streams are several times faster
LONG_S = 3600


@click.command()
@click.argument("file")
@set_option
@size_option("--cache", "Size of one cache, such as 32KiB.")
@click.option("--machine", "machine_name", metavar="NAME|FILE[:NAME]", help="The caches of a machine, all levels.")
@size_option("--line", "Size of a line; without one, the machine's, else an element of each array.")
@size_option("--sector", "Size of a sector, the part of a line that is loaded at a time (with --cache).")
@click.option("--ways", type=int, help="Ways of a set; without, the machine's, else fully associative.")
@click.option("--policy", type=click.Choice(["lru", "fifo", "plru"]), default="lru", help="What is replaced; lru.")
@click.option("--write", type=click.Choice(["back", "through"]), default="back", help="When writes go down; back.")
@click.option(
    "--traffic",
    type=click.Choice(["load_store", "write_allocate"]),
    help="Whether a line that is written first is loaded too; by default as the file or the machine says.",
)
@click.option("--around", is_flag=True, help="On a write miss, write to the next level without allocating a line.")
@click.option(
    "--last-level",
    type=click.Choice(["free", "inclusive", "exclusive"]),
    default="free",
    help="What the last level promises of those above; exclusive is a victim cache.",
)
@click.option("--histogram", is_flag=True, help="Also Q(Z) of all fully associative LRU caches, by stack distances.")
@click.option(
    "--sets", type=int, help="With --histogram: cover caches with this many sets and any number of ways instead."
)
@click.option("--curve", "figure", metavar="OUT.svg|png|pdf", help="Draw that Q(Z) beside the exact one.")
@look_options("figure", "--curve")
@click.option("--every-access", is_flag=True, help="Skip no iterations that only repeat earlier ones.")
@click.option("--long", "long_run", is_flag=True, help="Start runs of more than an hour too.")
@json_option
def simulate(
    *,
    file: str,
    settings: dict[str, int],
    cache: int | None,
    machine_name: str | None,
    line: int | None,
    sector: int | None,
    ways: int | None,
    policy: str,
    write: str,
    traffic: Traffic | None,
    around: bool,
    last_level: str,
    histogram: bool,
    sets: int | None,
    figure: str | None,
    look: Look,
    every_access: bool,
    long_run: bool,
    as_json: bool,
) -> None:
    """Simulate every access of the kernels of FILE (or FILE:KERNEL, or a shipped kernel's name) through caches."""
    if cache is None and machine_name is None and not histogram and figure is None:
        raise click.UsageError("give the caches: --cache SIZE, or --machine NAME")
    if cache is not None and machine_name is not None:
        raise click.UsageError("--cache and --machine both define the caches; choose one")
    if traffic is not None and around:
        raise click.UsageError("--around allocates no line on a write miss, so --traffic has no effect")
    if sets is not None and (figure is not None or not histogram):
        what = "--curve draws fully associative caches" if figure is not None else "--histogram is missing"
        raise click.UsageError(f"--sets selects the caches for --histogram, but {what}")
    from roofdsl.checks.deep import require_legal
    from roofdsl.loops.sized import sized
    from roofdsl.simulate.distances import miss_curve

    chosen = choose_kernels(file, "kernels are simulated (each launch starts cold, so that a program's is their sum)")
    machine = load_machine(machine_name) if machine_name is not None else None
    kernels = kernels_of(chosen, settings)
    if figure is not None:
        if len(kernels) > 1:
            raise CommandError("a figure shows one kernel", f"pick one of {', '.join(k.name for k, _ in kernels)}")
        from roofdsl.plot.board import check_name

        check_name(Path(figure))
    runs: list[Run] = []
    for kernel, own in kernels:
        require_legal(kernel)
        at = sized(kernel, own)
        plain, values = at.kernel, dict(at.values)
        total = count_accesses(at, long_run=long_run)
        convention: Traffic = traffic or (kernel.traffic if kernel.traffic != "once" else None) or "load_store"
        run = Run(kernel.name, values, machine.name if machine else None)
        if cache is not None or machine is not None:
            stated = traffic or (kernel.traffic if kernel.traffic != "once" else None)
            levels = levels_of(
                plain, machine, cache, stated, line=line, sector=sector, ways=ways, policy=policy, write=write,
                around=around, last_level=last_level,
            )  # fmt: skip
            with bar(f"simulating {kernel.name}", total) as progress:
                run = run.through(
                    plain, values, cache, levels, convention=convention, progress=progress, warp=not every_access
                )
        if histogram or figure is not None:
            with bar(f"stack distances of {kernel.name}", total) as progress:
                run = run.with_curve(
                    miss_curve(plain, values, line, sets=1 if sets is None else sets, progress=progress), convention
                )
        runs.append(run)
    _show(runs, histogram=histogram, as_json=as_json)
    if figure is not None:  # the numbers are told by now, whatever comes of the figure
        from roofdsl.plot.board import save_figure
        from roofdsl.plot.kinds.traffic import draw_traffic
        from roofdsl.plot.traffic_content import traffic_content

        content = traffic_content(kernel, values, convention, line, machine=machine, curve=run.curve)
        save_figure(Path(figure), draw_traffic(content, look=look))


def _show(runs: list[Run], *, histogram: bool, as_json: bool) -> None:
    if as_json:
        documents = [{**to_json(r), **(curve_json(r) if histogram else {})} for r in runs]
        single = len(documents) == 1
        show_json(documents[0] if single else {"schema": "roofdsl.simulate/1", "kernels": documents})
        return
    show_blocks(*([*blocks(r), *(of_curve(r) if histogram else [])] for r in runs))


def count_accesses(at: Sized, *, long_run: bool) -> int | None:
    """How many accesses there will be; None where counting them is as hard as making them.

    Raises CommandError where simulating them would take more than an hour, unless `long_run`.
    """
    from roofdsl.counts.traffic_at import access_count
    from roofdsl.sets.library import LibraryFailure, TooHard

    try:
        total = access_count(at)
    except (TooHard, LibraryFailure):
        return None
    seconds = total / ACCESSES_PER_S
    if seconds > LONG_S and not long_run:
        shown = show_time(seconds) if seconds < 86400 else f"{seconds / 86400:,.0f} days"
        raise CommandError(
            f"kernel {at.name} makes {total:,} accesses at these sizes, and simulating them takes {shown} or so",
            "use smaller sizes, or --long to start it anyway; `derive --cache` may find the traffic at once",
        )
    return total


def levels_of(
    kernel: Kernel,
    machine: Machine | None,
    cache_bytes: int | None,
    traffic: Traffic | None,
    *,
    line: int | None,
    sector: int | None,
    ways: int | None,
    policy: str,
    write: str,
    around: bool,
    last_level: str,
) -> tuple[CacheLevel, ...] | None:
    """The levels, nearest to the registers first; None for one fully associative LRU cache of lines of all sizes.

    A write that misses: as `traffic` says (the option or the kernel), else the machine, else the line is taken
    without being loaded. Raises CommandError where a line is needed and none is given.
    """
    element = _element(kernel)
    stated: WriteMiss | None = None
    if around:
        stated = "around"
    elif traffic is not None:
        stated = "allocate" if traffic == "write_allocate" else "claim"
    if machine is None:
        assert cache_bytes is not None
        plain = (sector, ways, policy, write, around) == (None, None, "lru", "back", False)
        if line is None and element is None and plain:
            return None
        own = line or element or _no_line("the cache")
        return (
            CacheLevel(
                "cache", cache_bytes, own, ways, cast(Policy, policy), cast(Write, write), stated or "claim",
                cast(Inclusion, last_level), sector,
            ),
        )  # fmt: skip
    levels = []
    for k, c in enumerate(machine.caches):
        miss: WriteMiss = stated or {True: "allocate", False: "around", None: "claim"}[c.write_allocate]  # type: ignore[assignment]
        last = k == len(machine.caches) - 1
        levels.append(
            CacheLevel(
                c.name,
                c.size_bytes,
                line or c.line_bytes or element or _no_line(f"cache {c.name} of {machine.name}"),
                ways or c.ways,
                cast(Policy, policy),
                cast(Write, write) if k == 0 else "back",
                miss,
                cast(Inclusion, last_level) if last else "free",
                sector or (c.sector_bytes if line is None else None),
            )
        )
    return tuple(levels)


def _element(kernel: Kernel) -> int | None:
    """The size of all elements, where they have one."""
    sizes = {a.type.bytes for a in kernel.arrays if not a.is_scalar}
    return sizes.pop() if len(sizes) == 1 else 8 if not sizes else None


def _no_line(what: str) -> int:
    raise CommandError(f"{what} has no line, and the kernel has elements of several sizes", "give a --line")
