"""`roofdsl simulate`: sends every access of a kernel through caches."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from roofdsl.cli.forecast import forecast
from roofdsl.cli.look import look_options
from roofdsl.cli.options import (
    choose_kernels,
    data_option,
    json_option,
    kernels_of,
    set_option,
    show_json,
    size_option,
)
from roofdsl.cli.text import show_blocks
from roofdsl.counts.simulated_run import SimulatedRun
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.findings import listed
from roofdsl.lang.record import Record
from roofdsl.loops.indirect import is_indirect, require_data
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.sized import Sized, sized
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Cache, Machine
from roofdsl.machine.quantities import show_time
from roofdsl.plot.look import Look
from roofdsl.plot.traffic_content import traffic_content
from roofdsl.simulate.best_curve import line_of_elements
from roofdsl.simulate.cache_levels import CacheLevel, Inclusion, Policy, Write, WriteMiss
from roofdsl.tell.simulation import blocks, curve_json, of_curve, to_json

ACCESSES_PER_S = 5e7  # a cautious guess; streams are several times faster
LONG_S = 3600


@click.command()
@click.argument("file")
@set_option
@data_option
@size_option("--cache", "The size of a single cache, such as 32KiB.")
@click.option("--machine", "machine_name", metavar="NAME|FILE[:NAME]", help="Simulate all cache levels of a machine.")
@size_option("--line", "The size of a cache line; by default, the machine's, otherwise one element of each array.")
@size_option(
    "--sector", "The size of a sector, the part of a line that is loaded at a time; by default, the machine's."
)
@click.option("--ways", type=int, help="Number of ways; by default, the machine's, otherwise fully associative.")
@click.option(
    "--policy",
    type=click.Choice(["lru", "fifo", "plru", "opt"]),
    default="lru",
    help="The replacement policy; the default is lru. opt is the best one, which knows the future (Belady's MIN).",
)
@click.option("--bypass", is_flag=True, help="With --policy opt: an access may go past the cache.")
@click.option(
    "--write",
    type=click.Choice(["back", "through"]),
    default="back",
    help="Whether the first cache is write-back (the default) or write-through.",
)
@click.option(
    "--traffic",
    type=click.Choice(["load_store", "write_allocate"]),
    help="Whether a write miss loads its line; by default as the kernel, the file or the machine says, else "
    "load_store.",
)
@click.option("--around", is_flag=True, help="On a write miss, write to the next level without allocating a line.")
@click.option(
    "--last-level",
    type=click.Choice(["free", "inclusive", "exclusive"]),
    default="free",
    help="inclusive: the last level holds all lines of the other levels. exclusive: it holds none of them, as a victim "
    "cache. free: neither is guaranteed.",
)
@click.option(
    "--histogram",
    is_flag=True,
    help="Also print Q(Z) of all fully associative LRU caches, by stack distances, and, with --policy opt, of the best "
    "replacement.",
)
@click.option("--sets", type=int, help="With --histogram: use caches with this many sets, for every number of ways.")
@click.option("--curve", "figure", metavar="OUT.svg|png|pdf", help="Draw Q(Z) over the cache size.")
@look_options("figure", "--curve")
@click.option("--every-access", is_flag=True, help="Also simulate iterations that only repeat earlier ones.")
@click.option(
    "--long",
    "long_run",
    is_flag=True,
    help="Allow more than 180 billion accesses; such a run usually needs a larger --budget, too.",
)
@json_option
def simulate(
    *,
    file: str,
    settings: dict[str, int],
    data: tuple[str, ...],
    cache: int | None,
    machine_name: str | None,
    line: int | None,
    sector: int | None,
    ways: int | None,
    policy: Policy,
    bypass: bool,
    write: Write,
    traffic: Traffic | None,
    around: bool,
    last_level: Inclusion,
    histogram: bool,
    sets: int | None,
    figure: str | None,
    look: Look,
    every_access: bool,
    long_run: bool,
    as_json: bool,
) -> None:
    """Simulate every memory access of FILE's kernels (or FILE:KERNEL, or a shipped kernel's name) in caches."""
    if cache is None and machine_name is None and not histogram and figure is None:
        raise click.UsageError("give the caches: --cache SIZE, or --machine NAME")
    if sets is not None and (figure is not None or not histogram):
        what = "--curve draws fully associative caches" if figure is not None else "--histogram is missing"
        raise click.UsageError(f"--sets selects the caches for --histogram, but {what}")
    _refuse_pairs(cache, machine_name, line, sector, traffic, around, policy, bypass)
    if cache is None and machine_name is None:
        what = "--curve draws" if figure is not None else "--histogram is for"
        _refuse_ignored(what, sector, ways, policy, write, around, last_level)
    chosen = choose_kernels(
        file, "only kernels are simulated (a program is the sum of its kernels, each starting cold)"
    )
    machine = load_machine(machine_name) if machine_name is not None else None
    kernels = kernels_of(chosen, settings, data)
    if figure is not None:
        if len(kernels) > 1:
            raise CommandError("a figure shows one kernel", f"pick one of {', '.join(k.name for k, _ in kernels)}")
        from roofdsl.plot.board import check_name

        check_name(Path(figure))
    caches = Caches(machine, cache, line, sector, ways, policy, bypass, write, traffic, around, last_level)
    one_set = 1 if sets is None else sets
    curve_sets = one_set if histogram or figure is not None else None
    runs = [
        _run(kernel, own, caches, curve_sets, every_access=every_access, long_run=long_run) for kernel, own in kernels
    ]
    _show(runs, histogram=histogram, as_json=as_json)
    if figure is not None:  # the numbers are printed by now, whatever happens to the figure
        _save_curve(Path(figure), kernels[0][0], runs[0], caches, look)


def _save_curve(path: Path, kernel: Kernel, run: SimulatedRun, caches: Caches, look: Look) -> None:
    """Draw Q(Z) of a simulated kernel beside its plateaus."""
    from roofdsl.plot.board import save_figure
    from roofdsl.plot.kinds.traffic import draw_traffic

    best = None if caches.bypass else run.best
    content = traffic_content(
        kernel, run.parameters, run.convention, caches.line, machine=caches.machine, curve=run.curve, best=best
    )
    save_figure(path, draw_traffic(content, look=look))


def _refuse_pairs(  # noqa: PLR0917
    cache: int | None,
    machine_name: str | None,
    line: int | None,
    sector: int | None,
    traffic: Traffic | None,
    around: bool,
    policy: Policy,
    bypass: bool,
) -> None:
    """Raise click.UsageError for options that do not go together."""
    if cache is not None and machine_name is not None:
        raise click.UsageError("--cache and --machine both define the caches; choose one")
    if traffic is not None and around:
        raise click.UsageError("--around allocates no line on a write miss, so --traffic has no effect")
    if line is None and machine_name is None and sector is not None:
        raise click.UsageError("--sector divides a line: give the size of a line as well, as in --line 64B")
    if bypass and policy != "opt":
        raise click.UsageError("--bypass needs to know the future: give --policy opt")


def _refuse_ignored(  # noqa: PLR0917
    what: str, sector: int | None, ways: int | None, policy: Policy, write: Write, around: bool, last_level: Inclusion
) -> None:
    """Raise click.UsageError for options that change a simulated cache, but not Q(Z) by stack distances."""
    given = {
        f"--sector {sector}B": sector is not None,
        f"--ways {ways}": ways is not None,
        f"--policy {policy}": policy not in ("lru", "opt"),
        f"--write {write}": write != "back",
        "--around": around,
        f"--last-level {last_level}": last_level != "free",
    }
    ignored = [option for option, is_given in given.items() if is_given]
    if ignored:
        sets = "" if what.startswith("--curve") else " (with --sets N: for each number of ways)"
        help = f"leave out {listed(ignored, 'and')}, or give --cache or --machine"
        raise click.UsageError(f"{what} fully associative LRU caches{sets}; {help}")


class Caches(Record):
    """The options about caches: those of a machine, or one of `cache_bytes`; neither if none is requested.

    None means: as the machine or the kernel says.
    """

    machine: Machine | None
    cache_bytes: int | None
    line: int | None
    sector: int | None
    ways: int | None
    policy: Policy
    bypass: bool
    write: Write
    traffic: Traffic | None
    around: bool
    last_level: Inclusion

    def stated(self, kernel: Kernel) -> Traffic | None:
        """The convention for a line that is written first, from the option or the kernel."""
        return self.traffic or (None if kernel.traffic == "once" else kernel.traffic)

    def levels(self, kernel: Kernel) -> tuple[CacheLevel, ...] | None:
        """The levels, nearest to the registers first; None for one fully associative LRU cache whose lines are elements
        of different sizes.

        A write that misses follows the option or the kernel, else the machine; otherwise the line is claimed without
        being loaded. Raises CommandError if a line is needed and none is given.
        """
        element = line_of_elements(kernel)
        if self.machine is None:
            assert self.cache_bytes is not None
            usual = (self.sector, self.ways, self.policy, self.write, self.around) == (None, None, "lru", "back", False)
            if self.line is None and element is None and usual:
                return None
            line = self.line or element or _no_line("the cache")
            miss = self._write_miss(kernel) or "claim"
            return (
                CacheLevel(
                    "cache", self.cache_bytes, line, self.ways, self.policy, self.write, miss, self.last_level,
                    self.sector, self.bypass,
                ),
            )  # fmt: skip
        levels = []
        for k, c in enumerate(self.machine.caches):
            levels.append(
                CacheLevel(
                    c.name,
                    c.size_bytes,
                    self.line or c.line_bytes or element or _no_line(f"cache {c.name} of {self.machine.name}"),
                    self.ways or c.ways,
                    self.policy,
                    self.write if k == 0 else "back",
                    self._write_miss(kernel) or _stated_miss(c, self.machine.name),
                    self.last_level if k == len(self.machine.caches) - 1 else "free",
                    self.sector or (c.sector_bytes if self.line is None else None),
                    self.bypass,
                )
            )
        return tuple(levels)

    def _write_miss(self, kernel: Kernel) -> WriteMiss | None:
        """The behavior for a write that misses, from the option or the kernel."""
        if self.around:
            return "around"
        stated = self.stated(kernel)
        if stated is None:
            return None
        return "allocate" if stated == "write_allocate" else "claim"


def _stated_miss(cache: Cache, machine: str) -> WriteMiss:
    """What the machine says of a write that misses. Raises CommandError where it says a share of them."""
    if isinstance(cache.write_allocate, Fraction):
        raise CommandError(
            f"{machine}'s {cache.name} loads {float(100 * cache.write_allocate):g} % of the lines whose first access "
            "is a store, and a simulation needs to know which",
            "choose with --traffic write_allocate, --traffic load_store or --around",
        )
    return _WRITE_MISS[cache.write_allocate]


_WRITE_MISS: dict[bool | None, WriteMiss] = {True: "allocate", False: "around", None: "claim"}
"""The behavior of a machine's cache, by whether the machine says that it allocates."""


def _run(
    kernel: Kernel, own: dict[str, int], caches: Caches, curve_sets: int | None, *, every_access: bool, long_run: bool
) -> SimulatedRun:
    """Run one kernel through the caches, if there are some, and compute its curve for caches with `curve_sets` sets."""
    from roofdsl.checks.deep import require_legal
    from roofdsl.simulate.best_curve import best_curve
    from roofdsl.simulate.distances import miss_curve

    if is_indirect(kernel):
        require_data(kernel)
    require_legal(kernel)
    at = sized(kernel, own)
    plain, values = at.kernel, dict(at.values)
    total = count_accesses(at, long_run=long_run, is_kept=caches.policy == "opt")
    convention: Traffic = caches.stated(kernel) or "load_store"
    about = () if kernel.data is None else kernel.data.about
    run = SimulatedRun(kernel.name, values, caches.machine.name if caches.machine else None, data=about)
    if caches.cache_bytes is not None or caches.machine is not None:
        levels = caches.levels(plain)
        steady = every_access or _never_skip(levels)
        with forecast(f"simulating {kernel.name}", kernel.name, total, is_steady=steady) as progress:
            run = run.through(
                plain, values, caches.cache_bytes, levels, convention=convention, progress=progress,
                skip=not every_access,
            )  # fmt: skip
    if curve_sets is not None:
        with forecast(f"stack distances of {kernel.name}", kernel.name, total, is_steady=True) as progress:
            curve = miss_curve(plain, values, caches.line, sets=curve_sets, progress=progress)
        run = run.with_curve(curve, convention)
    if curve_sets is not None and caches.policy == "opt":
        what = f"the best replacement of {kernel.name}"
        with forecast(what, kernel.name, total, is_steady=False) as progress:
            best = best_curve(plain, values, caches.line, sets=curve_sets, bypass=caches.bypass, progress=progress)
        run = run.beside_best(best, bypass=caches.bypass)
    return run


def _never_skip(levels: tuple[CacheLevel, ...] | None) -> bool:
    """Whether these caches certainly see every access: iterations that repeat are skipped for one LRU list only."""
    if not levels:
        return False
    return levels[0].policy != "opt" and (len(levels) > 1 or levels[0].ways is not None)


def _show(runs: list[SimulatedRun], *, histogram: bool, as_json: bool) -> None:
    if as_json:
        documents = [{**to_json(r), **(curve_json(r) if histogram else {})} for r in runs]
        single = len(documents) == 1
        show_json(documents[0] if single else {"schema": "roofdsl.simulate/1", "kernels": documents})
        return
    show_blocks(*([*blocks(r), *(of_curve(r) if histogram else [])] for r in runs))


def count_accesses(at: Sized, *, long_run: bool, is_kept: bool) -> int | None:
    """The number of accesses to simulate; None if counting them is as hard as making them.

    is_kept: whether all of them are kept in memory. Raises CommandError if they do not fit there, and if simulating
    them would take more than an hour, unless `long_run`.
    """
    from roofdsl.counts.traffic_at import access_count
    from roofdsl.sets.library import LibraryFailure, TooHard
    from roofdsl.simulate.trace import MOST_KEPT, too_many_to_keep

    try:
        total = None if is_indirect(at.kernel) else access_count(at)
    except (TooHard, LibraryFailure):
        return None
    if total is None:
        return None
    if is_kept and total > MOST_KEPT:
        raise too_many_to_keep(f"kernel {at.name} makes {total:,} accesses at these sizes")
    seconds = total / ACCESSES_PER_S
    if seconds > LONG_S and not long_run:
        shown = show_time(seconds) if seconds < 86400 else f"{seconds / 86400:,.0f} days"
        raise CommandError(
            f"kernel {at.name} makes {total:,} accesses at these sizes, and simulating them takes about {shown}",
            "use smaller sizes, or start it anyway with --long --budget none; "
            "`derive --cache` may find the traffic quickly",
        )
    return total


def _no_line(what: str) -> int:
    raise CommandError(f"{what} has no line size, and the kernel has elements of several sizes", "give a --line")
