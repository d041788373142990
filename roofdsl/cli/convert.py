"""`roofdsl convert`: code in another language as the `.roof` kernel that it is read as."""

from __future__ import annotations

from pathlib import Path

import click

from roofdsl.cli.options import choose
from roofdsl.cli.safe_streams import exact_output


@click.command()
@click.argument("file", metavar="FILE[:NAME]")
@click.option("-o", "--output", metavar="OUT.roof", help="Write to a file instead of standard output.")
def convert(file: str, output: str | None) -> None:
    """Print the .roof kernels that the functions of a C FILE are read as."""
    from roofdsl.lang.write import written
    from roofdsl.store.atomic import write_whole

    chosen = choose(file)
    text = "\n".join(written(chosen.checked.kernels[name]) for name in chosen.kernels)
    if output is None:
        exact_output().write(text)
        return
    write_whole(Path(output), text)
    click.echo(f"wrote {output}")
