"""`roofdsl bound`: I/O lower bounds, optimal tiles, and how far the loops as written are from them."""

from __future__ import annotations

import click

from roofdsl.cli.options import choose_kernels, json_option, kernels_of, set_option, show_json, size_option
from roofdsl.cli.text import show_blocks
from roofdsl.lang.diagnostics import CommandError
from roofdsl.loops.model import Kernel
from roofdsl.loops.parameter_values import numbers
from roofdsl.machine.find import load_machine


@click.command()
@click.argument("file")
@set_option
@size_option("--cache", "Evaluate the bound for a fast memory of this size, such as 32KiB.")
@click.option(
    "--machine", "machine_name", metavar="NAME|FILE[:NAME]", help="Evaluate the bound for every cache of a machine."
)
@click.option("--steps", is_flag=True, help="Show the proof step by step.")
@click.option(
    "--nested", is_flag=True, help="Find nested tiles for all caches of --machine at once; --apply prints them."
)
@click.option("--apply", "write", is_flag=True, help="Print the tiled kernel in .roof (needs --cache or --machine).")
@json_option
def bound(
    *,
    file: str,
    settings: dict[str, int],
    cache: int | None,
    machine_name: str | None,
    steps: bool,
    nested: bool,
    write: bool,
    as_json: bool,
) -> None:
    """Find a lower bound on the loads of FILE's kernels in any legal order, and tiles that come close to it."""
    if cache is not None and machine_name is not None:
        raise click.UsageError("--cache and --machine both set the size of fast memory; choose one")
    if write and as_json:
        raise click.UsageError("--apply and --json are two outputs; choose one")
    if nested and machine_name is None:
        raise click.UsageError("--nested needs the caches of a machine: give --machine M")
    caches = _caches(cache, machine_name)
    if write and not caches:
        raise click.UsageError("--apply needs the size of fast memory: --cache SIZE or --machine M")
    chosen = choose_kernels(file, "bounds are for kernels")
    from roofdsl.bounds.bound import bound as lower_bound
    from roofdsl.bounds.bound_report import report
    from roofdsl.tell.bound import SCHEMA, blocks, document

    pairs = [(kernel, _values(kernel, own)) for kernel, own in kernels_of(chosen, settings)]
    if write:
        click.echo("\n".join(_applied(kernel, values, caches, nested) for kernel, values in pairs), nl=False)
        return
    found = [report(lower_bound(kernel, values), values, caches, nested) for kernel, values in pairs]
    if as_json:
        documents = [document(r) for r in found]
        show_json(documents[0] if len(documents) == 1 else {"schema": SCHEMA, "kernels": documents})
    else:
        show_blocks(*(blocks(r, steps) for r in found))


def _values(kernel: Kernel, own: dict[str, int]) -> dict[str, int]:
    """The given parameters, and the file's defaults for the others. Raises what `numbers` raises."""
    defaults = {p.name: p.default for p in kernel.parameters if p.default is not None}
    return numbers(kernel, {**defaults, **own}, complete=False)


def _caches(cache: int | None, machine_name: str | None) -> tuple[tuple[str, int], ...]:
    if cache is not None:
        return (("a cache", cache),)
    if machine_name is None:
        return ()

    machine = load_machine(machine_name)
    caches = tuple((c.name, c.size_bytes) for c in machine.caches)
    if not caches:
        raise CommandError(f"machine {machine_name} has no caches", "give the size of fast memory with --cache")
    return caches


def _applied(kernel: Kernel, values: dict[str, int], caches: tuple[tuple[str, int], ...], nested: bool) -> str:
    """The tiled kernel as text: for the last cache, or for all. Raises CommandError if no tile is known."""
    from roofdsl.bounds import nested as tiles_in_tiles
    from roofdsl.bounds.bound import bound as lower_bound
    from roofdsl.bounds.tiles import NoTiling, lines, sides_at, source_of, tiling

    widths = {a.type.bytes for a in kernel.arrays if not a.is_scalar}
    found = lower_bound(kernel, values)
    try:
        plan = tiling(found)
        if len(widths) != 1:
            raise CommandError(
                f"kernel {kernel.name} has elements of different sizes", "tiles are known only for elements of one size"
            )
        elements = [size // min(widths) for _, size in caches]
        if nested:
            return source_of(found, tiles_in_tiles.lines(found, plan, tiles_in_tiles.nested(plan, values, elements)))
        return source_of(found, lines(found, plan, *sides_at(plan, values, elements[-1])))
    except NoTiling as error:
        help = "`roofdsl advise` tries tiles for other loop nests; for sweeps in a time loop, see `roofdsl sol`"
        raise CommandError(f"no tile is known for kernel {kernel.name}: {error}", help) from None
