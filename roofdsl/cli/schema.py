"""`roofdsl schema`: the JSON Schemas of what commands print with `--json`."""

from __future__ import annotations

import click

from roofdsl.cli.options import show_json
from roofdsl.cli.text import show_blocks


@click.command()
@click.argument("command", nargs=-1, metavar="[COMMAND]")
def schema(command: tuple[str, ...]) -> None:
    """Print the JSON Schema (draft 2020-12) of what COMMAND prints with --json; without COMMAND, list all schemas."""
    from roofdsl.tell.blocks import figures
    from roofdsl.tell.schemas.commands import COMMANDS, schema_of

    if command:
        show_json(schema_of(" ".join(command)))
        return
    rows = [(name, document) for name, (document, _) in COMMANDS.items()]
    show_blocks([figures(rows, ("command", "document"), depth=0)])
