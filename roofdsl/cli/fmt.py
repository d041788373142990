"""`roofdsl fmt`: canonical layout."""

from __future__ import annotations

import os
from pathlib import Path

import click

import roofdsl.frontends  # noqa: F401 registers what reads files of other languages
from roofdsl.cli.safe_streams import exact_output
from roofdsl.lang.diagnostics import CommandError
from roofdsl.lang.format import format_source
from roofdsl.loops.load import READERS, read_source, standard_input
from roofdsl.store.atomic import write_whole


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--check", "only_check", is_flag=True, help="Change nothing; the exit status is 1 if a file would change."
)
def fmt(files: tuple[str, ...], only_check: bool) -> int:
    """Rewrite FILEs in the canonical layout; `-` reads standard input and writes standard output."""
    changed = False
    for file in files:
        if os.path.splitext(file)[1] in READERS:
            raise CommandError(
                f"`{file}` is not a .roof file, so fmt cannot lay it out", f"`roofdsl convert {file}` reads it"
            )
        source = standard_input() if file == "-" else read_source(file)
        text = format_source(source)
        if only_check:
            if text != source.text:
                changed = True
                click.echo(f"{source.name} would change")
        elif file == "-":
            exact_output().write(text)
        elif text != source.text:
            write_whole(Path(source.name), text)
            click.echo(f"{source.name} laid out")
    return 1 if changed else 0
