"""`roofdsl models`: the shipped kernels."""

from __future__ import annotations

from pathlib import Path

import click

from roofdsl.cli.options import find, json_option, shipped_kernels, show_json
from roofdsl.cli.text import columns
from roofdsl.lang import tree
from roofdsl.loops.load import read_source
from roofdsl.machine.find import checked_file


@click.group(invoke_without_command=True)
@click.pass_context
@json_option
def models(ctx: click.Context, as_json: bool) -> None:
    """List the shipped kernels and programs; `models show NAME` prints the file of one."""
    if ctx.invoked_subcommand is not None:
        return
    rows = [(name, _parameters(path, name), Path(path).name) for name, path in sorted(shipped_kernels().items())]
    if as_json:
        listed = [{"name": n, "parameters": p, "file": f} for n, p, f in rows]
        show_json({"schema": "roofdsl.models/1", "models": listed})
    else:
        click.echo("\n".join(columns([("name", "parameters", "file"), *rows])))


@models.command()
@click.argument("name")
def show(name: str) -> None:
    """The text of the file that defines a shipped kernel."""
    click.echo(read_source(find(name).path).text, nl=False)


def _parameters(path: str, name: str) -> str:
    from roofdsl.lang.format_text import parameters

    checked = checked_file(path)
    found: tree.Kernel | tree.Program
    found = checked.kernels[name].tree if name in checked.kernels else checked.programs[name].tree
    return parameters(found.parameters)
