"""`roofdsl models`: the shipped kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from roofdsl.cli.lazy import NamingGroup
from roofdsl.cli.options import json_option, show_json
from roofdsl.cli.text import show_blocks
from roofdsl.lang import tree
from roofdsl.lang.checked import CheckedFile
from roofdsl.lang.format_text import parameters
from roofdsl.loops.load import read_source
from roofdsl.machine.find import GROUPS, checked_file, find_model, shipped_models, standard_sizes
from roofdsl.tell.blocks import line
from roofdsl.tell.models import SUITE, by_file


@click.group(
    cls=NamingGroup,
    otherwise="`roofdsl models` lists the models, and `roofdsl models show NAME` shows one",
    invoke_without_command=True,
)
@click.pass_context
@json_option
def models(ctx: click.Context, as_json: bool) -> None:
    """List the shipped kernels and programs; `models show NAME` prints the file of one."""
    if ctx.invoked_subcommand is not None:
        return
    files = {target.path: checked_file(target.path) for target in shipped_models().values()}
    groups: dict[str, list[tuple[str, str, str]]] = {group: [] for group in GROUPS}
    for text, target in sorted(shipped_models().items()):
        path, name = Path(target.path), target.name or ""
        groups[path.parent.name].append((text, _parameters(files[target.path], name), path.name))
    if as_json:
        show_json({"schema": "roofdsl.models/1", "models": [d for g, rows in groups.items() for d in _listed(g, rows)]})
    else:
        first, suite = groups.values()
        show_blocks(by_file(first), [line(f"{SUITE}:", 0)], by_file(suite))


@models.command()
@click.argument("name")
def show(name: str) -> None:
    """Print the file that defines a shipped kernel or program."""
    click.echo(read_source(find_model(name).path).text, nl=False)


def _listed(group: str, rows: Iterable[tuple[str, str, str]]) -> Iterator[dict[str, Any]]:
    """The `--json` data about the models of a group."""
    sizes = standard_sizes() if group == "polybench" else {}
    for name, own, file in rows:
        more = {"sizes": sizes[Path(file).stem]} if sizes else {}
        yield {"name": name, "parameters": own, "file": file, "group": group, **more}


def _parameters(checked: CheckedFile, name: str) -> str:
    found: tree.Kernel | tree.Program
    found = checked.kernels[name].tree if name in checked.kernels else checked.programs[name].tree
    return parameters(found.parameters)
