"""`roofdsl explore`: one self-contained interactive page."""

from __future__ import annotations

from pathlib import Path

import click

from roofdsl.cli.options import choose_all, kernels_of, no_programs, set_option, traffic_option, type_option, warn
from roofdsl.cli.progress import tell_step
from roofdsl.lang.findings import plural
from roofdsl.loops.model import Traffic
from roofdsl.machine.find import load_machine
from roofdsl.store.atomic import check_writable, write_whole


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--machine",
    "machine_names",
    multiple=True,
    required=True,
    metavar="NAME|FILE[:NAME]",
    help="A shipped machine, or a file with one (repeatable).",
)
@click.option("-o", "--output", required=True, metavar="PAGE.html", help="The page to write.")
@set_option
@traffic_option
@click.option("--unit", type=click.Choice(["tensor", "tensor_sparse"]), help="Start with matrix units.")
@type_option("Types to offer; by default, those of the machines (repeatable).")
@click.option(
    "--results",
    "result_files",
    multiple=True,
    metavar="RESULT.json",
    help="Measured points, from `measure` (repeatable).",
)
@click.option("--title", help="The page's title; by default, the kernels' names.")
def explore(
    *,
    files: tuple[str, ...],
    machine_names: tuple[str, ...],
    output: str,
    settings: dict[str, int],
    traffic: Traffic | None,
    unit: str | None,
    types: tuple[str, ...],
    result_files: tuple[str, ...],
    title: str | None,
) -> None:
    """Write an interactive HTML page of kernels (FILEs, FILE:KERNELs, shipped names) and machines, in one offline file.

    Sliders start at the values of --set, otherwise at a parameter's default, otherwise at 1024 (tile sizes at 32).
    """
    from roofdsl.measure.measurement import load
    from roofdsl.page.assemble import to_page
    from roofdsl.page.content import Asked, content_of

    path = Path(output)
    if path.suffix.lower() not in (".html", ".htm"):
        raise click.BadParameter(f"`{output}` does not end in .html", param_hint="-o")
    check_writable(path)
    machines = tuple(load_machine(name) for name in machine_names)
    kernels = []
    for chosen, (own,) in choose_all(files, settings):
        if chosen.programs:
            raise no_programs(chosen, "a page shows kernels")
        kernels += kernels_of(chosen, own)
    asked = Asked(
        title or " and ".join(", ".join(dict.fromkeys(k.name for k, _ in kernels)).rsplit(", ", 1)),
        tuple(kernels),
        machines,
        traffic,
        unit,
        types or None,
        tuple(m for name in result_files for m in load(Path(name))),
    )
    content = content_of(asked, lambda text: tell_step(f"deriving {text}"))
    warn(*content.warnings)
    page = to_page(content)
    write_whole(path, page)
    counts = f"{plural(len(kernels), 'kernel')}, {plural(len(machines), 'machine')}"
    click.echo(f"{output}: {counts}, {len(page.encode('utf-8')) // 1000} kB")
