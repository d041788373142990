"""`roofdsl convert`: code in another language as the `.roof` kernel that it is read as."""

from __future__ import annotations

from pathlib import Path

import click

from roofdsl.cli.options import choose
from roofdsl.cli.safe_streams import exact_output
from roofdsl.lang.diagnostics import CommandError


@click.command()
@click.argument("file", metavar="FILE[:NAME]")
@click.option("-o", "--output", metavar="OUT.roof", help="Write to a file instead of standard output.")
@click.option("--verify", is_flag=True, help="Compile your function too, and compare results on random data.")
def convert(file: str, output: str | None, verify: bool) -> None:
    """Print the .roof kernels that the functions of a C FILE are read as."""
    from roofdsl.lang.write import written
    from roofdsl.store.atomic import write_whole

    chosen = choose(file)
    text = "\n".join(written(chosen.checked.kernels[name]) for name in chosen.kernels)
    if output is None:
        exact_output().write(text)
    else:
        write_whole(Path(output), text)
        click.echo(f"wrote {output}")
    if verify:
        _verify(file)


def _verify(file: str) -> None:
    """Says on standard error what was compared. Raises CommandError where a result differs."""
    from roofdsl.machine.find import find_model

    target = find_model(file)
    if not target.path.endswith(".c"):
        raise CommandError("`--verify` executes code in another language, and this is a .roof file", "give a C file")
    from roofdsl.frontends.c.verify import verify_file

    for found in verify_file(target.path, target.name):
        click.echo(str(found), err=True)
