"""`roofdsl cache`: what was derived before and is kept on disk."""

from __future__ import annotations

import click

from roofdsl.cli.options import json_option, show_json
from roofdsl.lang.diagnostics import CommandError


@click.group()
def cache() -> None:
    """The derivations kept on disk: where they are and how many (info), or away with them (clear).

    Derivations that took long are kept by the meaning of the kernel, so that the next one of it takes no time.
    `--no-cache` with a command, or ROOFDSL_CACHE=off, does without; ROOFDSL_CACHE_DIR names another folder.
    """


@cache.command()
@json_option
def info(as_json: bool) -> None:
    """Where derivations are kept, how many, and how much room they take."""
    from roofdsl.machine.quantities import group, show_size
    from roofdsl.store import entries
    from roofdsl.store.place import folder, is_off

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
        click.echo("no folder for a cache is known here: ROOFDSL_CACHE_DIR names one")
        return
    if is_off():
        click.echo("switched off: nothing is read or kept")
    click.echo(f"folder   {root}")
    click.echo(f"entries  {group(found.entries)}")
    click.echo(f"room     {show_size(found.bytes)} of at most {show_size(entries.MOST_BYTES)}")


@cache.command()
def clear() -> None:
    """Remove all derivations that are kept, and no other file."""
    from roofdsl.machine.quantities import group
    from roofdsl.store import entries
    from roofdsl.store.place import folder

    root = folder()
    if root is None:
        raise CommandError("no folder for a cache is known here", "ROOFDSL_CACHE_DIR names one")
    try:
        removed = entries.clear(root)
    except OSError as error:
        raise CommandError(f"`{root}` cannot be cleared: {error.strerror or error}") from None
    click.echo(f"removed {group(removed.entries)} {'entry' if removed.entries == 1 else 'entries'} from {root}")
