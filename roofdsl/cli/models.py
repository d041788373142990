"""`roofdsl models`: the shipped kernels."""

from __future__ import annotations

import click

from roofdsl.cli.options import find, json_option, show_json
from roofdsl.cli.text import columns
from roofdsl.lang import tree
from roofdsl.lang.checked import CheckedFile
from roofdsl.loops.load import read_source
from roofdsl.machine.find import checked_file, shipped_names


@click.group(invoke_without_command=True)
@click.pass_context
@json_option
def models(ctx: click.Context, as_json: bool) -> None:
    """List the shipped kernels and programs; `models show NAME` prints the file of one."""
    if ctx.invoked_subcommand is not None:
        return
    names = shipped_names("kernels")
    files = {path: checked_file(str(path)) for path in names.values()}
    rows = [(name, _parameters(files[path], name), path.name) for name, path in sorted(names.items())]
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


def _parameters(checked: CheckedFile, name: str) -> str:
    from roofdsl.lang.format_text import parameters

    found: tree.Kernel | tree.Program
    found = checked.kernels[name].tree if name in checked.kernels else checked.programs[name].tree
    return parameters(found.parameters)
