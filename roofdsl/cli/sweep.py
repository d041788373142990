"""`roofdsl sweep`: predictions over ranges of parameters, machines and cache sizes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from roofdsl.cli.look import look_options
from roofdsl.cli.options import choose, json_option, traffic_option, unit_option, warn
from roofdsl.cli.progress import progress_bar
from roofdsl.cli.text import show_blocks
from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.record import replace
from roofdsl.loops.load import kernel
from roofdsl.loops.model import Kernel, Traffic
from roofdsl.loops.parameter_values import numbers
from roofdsl.loops.program_at_sizes import program_sizes
from roofdsl.machine.find import load_machine
from roofdsl.machine.model import Machine
from roofdsl.plot.look import Look
from roofdsl.predict.options import Options
from roofdsl.sweep.journal import Journal, journaled
from roofdsl.sweep.point_block import Variant
from roofdsl.sweep.program import swept_program
from roofdsl.sweep.ranges import parse_ranges, parse_sizes, points_of
from roofdsl.sweep.run import sweep as run
from roofdsl.sweep.single_points import ConnectionLost, on_cluster, on_cores
from roofdsl.sweep.table import column_named
from roofdsl.tell.sweep import Views, blocks, views_of
from roofdsl.tell.sweep_files import FORMATS, check_output, json_pieces, to_json, write_table

if TYPE_CHECKING:
    from roofdsl.sweep.run import Sweep
    from roofdsl.sweep.single_points import Runner

MOST_VARIANTS = 1000


@click.command()
@click.argument("file")
@click.option(
    "--machine",
    "machine_names",
    multiple=True,
    required=True,
    metavar="NAME|FILE[:NAME]",
    help="A shipped machine, or a file with one (repeatable).",
)
@click.option(
    "--set",
    "texts",
    multiple=True,
    metavar="RANGES",
    help="Values to combine, as in n=1..4096:*2,b=8..128:+8 or n=64,100 (repeatable).",
)
@click.option(
    "--cache", "cache_text", metavar="SIZES", help="Sizes of the machines' last cache, as in 256KiB..8MiB:*2."
)
@traffic_option
@unit_option
@click.option(
    "--ceiling",
    "ceilings",
    multiple=True,
    metavar="NAME",
    help="A named ceiling of the machine that limits the code (repeatable).",
)
@click.option(
    "--levels", type=click.Choice(["all", "memory"]), default="all", help="Predict all levels, or only the memory."
)
@click.option("--warm", is_flag=True, help="Start with the caches as a previous launch left them.")
@click.option("-o", "--output", metavar="|".join(f"OUT.{f}" for f in FORMATS), help="Write the whole table.")
@click.option("--best", "best_by", metavar="COLUMN", help="The column that ranks the points; by default, the rate.")
@click.option(
    "--per",
    "per_text",
    metavar="NAMES",
    help="Report the best point and the Pareto front for each value of these parameters.",
)
@click.option(
    "--pareto",
    "pareto_text",
    metavar="A,B",
    help="The columns of the Pareto front; by default, time_s and the memory's bytes.",
)
@click.option("--plot", "figure", metavar="OUT.svg|png|pdf", help="Draw curves over one parameter, or maps over two.")
@look_options("figure")
@click.option("--show", "shown", metavar="COLUMN", help="The column to draw; by default, the rate.")
@click.option("--over", "over_text", metavar="X[,Y]", help="One parameter (curves) or two (a map) for the axes.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    help="Number of processes for points without a closed form; by default, one per core.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="A dask.distributed scheduler for points without a closed form, as in tcp://host:8786.",
)
@click.option(
    "--journal",
    "journal_name",
    metavar="FILE",
    help="The file that keeps counted points; with -o, the default is OUT.journal.",
)
@click.option(
    "--most-counted",
    type=click.IntRange(0),
    default=100_000,
    help="The most points to count one by one; by default, 100,000.",
)
@json_option
def sweep(
    *,
    file: str,
    machine_names: tuple[str, ...],
    texts: tuple[str, ...],
    cache_text: str | None,
    traffic: Traffic | None,
    unit: str | None,
    ceilings: tuple[str, ...],
    levels: Literal["all", "memory"],
    warm: bool,
    output: str | None,
    best_by: str | None,
    per_text: str | None,
    pareto_text: str | None,
    figure: str | None,
    look: Look,
    shown: str | None,
    over_text: str | None,
    jobs: int | None,
    scheduler: str | None,
    journal_name: str | None,
    most_counted: int,
    as_json: bool,
) -> int:
    """Predict a kernel or program at every combination of parameters, machines and cache sizes.

    Where closed forms are exact, all points are evaluated together, millions per second. The other points are counted
    or simulated one by one, as in `predict`.

    The general option --budget (see roofdsl --help) limits the search for closed forms, and the time of counted points
    that fail; points that succeed take as long as they need. --most-counted limits the number of counted points. After
    Ctrl-C, the journal has all points counted so far.
    """
    ranges = _ranges(texts)
    caches = parse_sizes(cache_text) if cache_text else ()
    _check_files(output, figure)
    machines = _machines(machine_names)
    variants, ranges = _variants(file, ranges)
    runner, journal = _runner(jobs, scheduler, journal_name or (f"{output}.journal" if output else None))
    options = Options(traffic, unit, ceilings, levels, warm=warm)
    with _kept_in(journal), progress_bar("counting points") as move:
        found = run(
            variants, ranges, machines, options, caches=caches, runner=runner, most_counted=most_counted,
            tell=lambda done, total: move(done / max(1, total), f"{done:,} of {total:,}"),
        )  # fmt: skip
    _require_points(found, journal)
    name, per = variants[0].kernel.name, _names(per_text)
    views = views_of(found.table, _views(found.table.names, machines, best_by, pareto_text), per)
    if output is not None:
        write_table(Path(output), found)
    if figure is not None:
        drawn = column_named(shown or views.rated, found.table.names)
        _draw(Path(figure), found, drawn, _names(over_text), name, look)
    if as_json:
        _print_json(found, name, views)
    elif output is None or best_by or pareto_text or per:
        show_blocks(blocks(found, name, views))
    return _tell_troubles(found, journal)


def _require_points(found: Sweep, journal: Journal | None) -> None:
    """Raise CommandError for a sweep without a single prediction."""
    if not len(found.table):
        raise CommandError("the sweep has no points")
    if len(found.failures) == len(found.table):
        _tell_troubles(found, journal)
        raise CommandError("no point of the sweep could be predicted")


def _check_files(output: str | None, figure: str | None) -> None:
    """Raise CommandError for a file that could not be written, before anything is computed."""
    if output is not None:
        check_output(Path(output))
    if figure is not None:
        from roofdsl.plot.board import check_format

        check_format(Path(figure))


def _draw(path: Path, found: Sweep, column: str, over: tuple[str, ...], name: str, look: Look) -> None:  # noqa: PLR0917
    from roofdsl.plot.board import save_figure
    from roofdsl.plot.sweep_map import draw_sweep_figure

    save_figure(path, draw_sweep_figure(found.table, column, over, name, look=look))


def _print_json(found: Sweep, name: str, views: Views) -> None:
    """Print the document piece by piece, since a table of millions of points does not fit into one text."""
    for piece in json_pieces(to_json(found, name, views), found.table, 2):
        click.echo(piece, nl=False)
    click.echo()


def _machines(names: Sequence[str]) -> list[Machine]:
    """Every machine once. Raises CommandError if two of them have the same name."""
    machines = [load_machine(name) for name in dict.fromkeys(names)]
    if len({m.name for m in machines}) < len(machines):
        raise CommandError("two of the machines have the same name")
    return machines


def _names(text: str | None) -> tuple[str, ...]:
    """The names in a comma-separated list."""
    return tuple(n.strip() for n in text.split(",")) if text else ()


@contextmanager
def _kept_in(journal: Journal | None) -> Iterator[None]:
    """Report where the counted points are if the sweep is interrupted or its scheduler is lost; close the journal."""
    try:
        yield
    except KeyboardInterrupt:
        if kept := _kept(journal):
            warn(kept)
        raise
    except ConnectionLost as error:
        here = "without --scheduler, it counts on this machine"
        kept = _kept(journal) or "they are lost; with `--journal FILE`, the same command would continue from there"
        raise CommandError(error.message, f"{kept}; {here}") from None
    finally:
        if journal is not None:
            journal.close()


def _kept(journal: Journal | None) -> str:
    """A message about where the counted points are, if there are any."""
    done = 0 if journal is None else len(journal.rows) + journal.written
    return (
        f"{done:,} counted points are in {journal.path}; the same command continues from there"
        if journal and done
        else ""
    )


def _views(
    names: Sequence[str], machines: Sequence[Machine], best_by: str | None, pareto_text: str | None
) -> tuple[str, str, tuple[str, ...]]:
    """(column of the best, the two columns of the Pareto front); the second is by default that of each machine's
    memory.
    """
    rate = "flops_per_s" if "flops_per_s" in names else "bytes_per_s"
    rated = column_named(best_by or rate, names)
    if pareto_text is None:
        memories = dict.fromkeys(f"{machine.main_memory.name}_bytes" for machine in machines)
        return rated, "time_s", tuple(name for name in memories if name in names)
    pair = _names(pareto_text)
    if len(pair) != 2:
        raise CommandError(f"`{pareto_text}` is not two columns", "write --pareto time,HBM")
    first, second = (column_named(each, names) for each in pair)
    return rated, first, (second,)


def _runner(jobs: int | None, scheduler: str | None, journal_name: str | None) -> tuple[Runner, Journal | None]:
    if jobs is not None and scheduler is not None:
        raise click.UsageError("--jobs sets processes on this machine, and --scheduler has its own workers; choose one")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    runner = on_cluster(scheduler) if scheduler is not None else on_cores(jobs or cores)
    if journal_name is None:
        return runner, None
    journal = Journal(Path(journal_name))
    if journal.damaged:
        warn(f"{journal.damaged:,} damaged lines of {journal.path} are ignored; their points are counted again")
    return journaled(runner, journal), journal


def _tell_troubles(found: Sweep, journal: Journal | None) -> int:
    """Report which points were left out and which failed; returns the exit status.

    A journal is kept only if another attempt may help.
    """
    if found.left_out:
        warn(f"{found.left_out:,} points violate an assumption of the kernel and are left out")
    warn(*found.warnings)
    failures = found.failures
    for where, why in failures[:10]:
        warn(f"{', '.join(f'{n} = {v}' for n, v in where.items())}: {why}")
    if len(failures) > 10:
        warn(f"and {len(failures) - 10:,} more points")
    if journal is not None:
        journal.close(remove=not failures)
    if not failures:
        return 0
    warn(f"{len(failures):,} points failed; their rows are empty")
    return 2


def _variants(file: str, ranges: dict[str, Sequence[int]]) -> tuple[list[Variant], dict[str, Sequence[int]]]:
    """The kernels or programs, one for each combination of numbers that shape it, and their parameters' ranges."""

    chosen = choose(file)
    found = (*chosen.programs, *chosen.kernels)
    if len(found) != 1:
        what = "programs" if chosen.programs else "kernels"
        names = ", ".join(found[:8])
        raise CommandError(f"`{file}` has several {what}", f"pick one, such as {file}:{found[0]} ({names})")
    name = found[0]
    shaping = [n for n in _constants_of(chosen.checked, name) if n in ranges]
    count = points_of({n: ranges[n] for n in shaping})
    if count > MOST_VARIANTS:
        shape = "shapes" if len(shaping) == 1 else "shape"
        what = "program" if chosen.programs else "kernel"
        raise CommandError(
            f"{' and '.join(shaping)} {shape} {what} {name}, and {count:,} combinations are too many",
            f"at most {MOST_VARIANTS:,}",
        )
    combinations = [dict(zip(shaping, values, strict=True)) for values in product(*(ranges[n] for n in shaping))]
    own = {n: values for n, values in ranges.items() if n not in shaping}
    if chosen.programs:
        programs = [swept_program(chosen.checked, name, combination) for combination in combinations]
        sizes = program_sizes(chosen.checked, programs[0].lowered, {n: v[0] for n, v in own.items()})
        return [Variant(p, dict(p.constants)) for p in programs], _ordered(sizes, own)
    kernels = [kernel(chosen.checked, name, combination) for combination in combinations]
    return [Variant(k, dict(k.constants)) for k in kernels], _complete(kernels[0], own)


def _constants_of(checked: CheckedFile, name: str) -> list[str]:
    """Parameters whose numbers must be known before the kernel or program can be analyzed."""
    found = checked.programs[name].tree if name in checked.programs else checked.kernels[name].tree
    return [p.name.text for p in found.parameters if p.const]


def _complete(kernel: Kernel, ranges: Mapping[str, Sequence[int]]) -> dict[str, Sequence[int]]:
    """Values of all parameters, including the file's defaults. Raises CommandError as `predict` does."""
    free = replace(kernel, assumptions=())  # whether points violate assumptions is checked later
    return _ordered(numbers(free, {n: v[0] for n, v in ranges.items()}), ranges)


def _ordered(first: Mapping[str, int], ranges: Mapping[str, Sequence[int]]) -> dict[str, Sequence[int]]:
    """The ranges of all parameters: those that are not swept, then the swept ones in the order in which they were
    written.
    """
    found = {n: ranges.get(n, (v,)) for n, v in first.items()}
    return {n: found[n] for n in [*(n for n in found if n not in ranges), *ranges]}


def _ranges(texts: Sequence[str]) -> dict[str, Sequence[int]]:
    """The values of all `--set` options. Raises CommandError for a name in two of them, and for a wrong range."""
    found: dict[str, Sequence[int]] = {}
    for text in texts:
        for name, values in parse_ranges(text).items():
            if name in found:
                raise CommandError(f"`{name}` is given twice", f"list its values in one `--set`: {name}=1,2,4")
            found[name] = values
    return found
