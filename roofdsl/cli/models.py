"""`roofdsl models`: the shipped kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any

import click

from roofdsl.cli.options import json_option, show_json
from roofdsl.lang import tree
from roofdsl.lang.checked import CheckedFile
from roofdsl.loops.load import read_source
from roofdsl.machine.find import GROUPS, checked_file, find_model, shipped_models, standard_sizes

SUITE = "PolyBench 4.2, all 30 kernels (the standard sizes: `roofdsl models --json`)"

WIDTH = 96


@click.group(invoke_without_command=True)
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
        tables = [by_file(rows) for rows in groups.values()]
        click.echo("\n\n".join([tables[0], f"{SUITE}:", tables[1]]))


@models.command()
@click.argument("name")
def show(name: str) -> None:
    """The text of the file that defines a shipped kernel."""
    click.echo(read_source(find_model(name).path).text, nl=False)


def by_file(rows: Iterable[tuple[str, str, str]]) -> str:
    """The models under the files that define them, no line wider than WIDTH."""
    files: dict[str, list[tuple[str, str]]] = {}
    for name, parameters, file in rows:
        files.setdefault(file, []).append((name, parameters))
    out = []
    longest = max(len(name) for own in files.values() for name, _ in own)
    for file, own in sorted(files.items()):
        out.append(file)
        for name, parameters in own:
            indent = " " * (longest + 4)
            # `s = 2` is one word
            text = parameters.replace(" = ", "\u00a0=\u00a0").replace("const ", "const\u00a0")
            lines = wrap(text, WIDTH, initial_indent=f"  {name:{longest}}  ", subsequent_indent=indent) or [f"  {name}"]
            out += [line.replace("\u00a0", " ").rstrip() for line in lines]
    return "\n".join(out)


def _listed(group: str, rows: Iterable[tuple[str, str, str]]) -> Iterator[dict[str, Any]]:
    """What `--json` says of the models of a group."""
    sizes = standard_sizes() if group == "polybench" else {}
    for name, parameters, file in rows:
        more = {"sizes": sizes[Path(file).stem]} if sizes else {}
        yield {"name": name, "parameters": parameters, "file": file, "group": group, **more}


def _parameters(checked: CheckedFile, name: str) -> str:
    from roofdsl.lang.format_text import parameters

    found: tree.Kernel | tree.Program
    found = checked.kernels[name].tree if name in checked.kernels else checked.programs[name].tree
    return parameters(found.parameters)
