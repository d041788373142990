"""`roofdsl cache`: the on-disk cache of derivations."""

from __future__ import annotations

import click

from roofdsl.cli.lazy import NamingGroup
from roofdsl.cli.options import json_option, show_json
from roofdsl.lang.cache_folder import folder, is_off
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.quantities import group, show_size
from roofdsl.store import entries
from roofdsl.tell.blocks import figures, line


@click.group(cls=NamingGroup, otherwise="the commands are `info` and `clear`")
def cache() -> None:
    """Show or clear the on-disk cache of derivations.

    Results that took long to compute are stored and reused for any kernel with the same meaning. `--no-cache` with
    any command, or ROOFDSL_CACHE=off, disables the cache. ROOFDSL_CACHE_DIR names another folder.
    """


@cache.command()
@json_option
def info(as_json: bool) -> None:
    """Show the folder, the number of entries and their size."""
    from roofdsl.cli.text import show_blocks

    root = folder()
    found = entries.kept(root) if root is not None else entries.Kept(0, 0)
    if as_json:
        show_json(
            {
                "schema": "roofdsl.cache/1",
                "on": root is not None and not is_off(),
                "folder": None if root is None else str(root),
                "entries": found.entries,
                "bytes": found.bytes,
                "most_bytes": entries.MOST_BYTES,
            }
        )
        return
    if root is None:
        click.echo("no cache folder is known on this system: set ROOFDSL_CACHE_DIR")
        return
    size = f"{show_size(found.bytes)} of at most {show_size(entries.MOST_BYTES)}"
    rows = [("folder", str(root)), ("entries", group(found.entries)), ("size", size)]
    off = [line("disabled: nothing is read or stored", 0)] if is_off() else []
    show_blocks([*off, figures(rows, depth=0)])


@cache.command()
def clear() -> None:
    """Remove all cached derivations, and no other file."""

    root = folder()
    if root is None:
        raise CommandError("no cache folder is known on this system", "set ROOFDSL_CACHE_DIR")
    try:
        removed = entries.clear(root)
    except OSError as error:
        raise CommandError(f"`{root}` cannot be cleared: {error.strerror or error}") from None
    click.echo(f"removed {group(removed.entries)} {'entry' if removed.entries == 1 else 'entries'} from {root}")
