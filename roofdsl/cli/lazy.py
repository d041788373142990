"""A group of commands whose modules are imported when they run, not when they are listed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class NamingGroup(click.Group):
    """A click group that names a similar command for one that it does not have; `otherwise` is the help without one."""

    def __init__(self, *args: Any, otherwise: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.otherwise = otherwise

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in click, with a suggestion for an unknown name. Raises click.UsageError."""
        name = args[0] if args else ""
        known = self.list_commands(ctx)
        if name and not name.startswith("-") and name not in known:
            from roofdsl.lang.findings import did_you_mean

            hint = did_you_mean(name, known, self.otherwise)
            raise click.UsageError(f"there is no command `{name}`" + (f"; {hint}" if hint else ""), ctx)
        return super().resolve_command(ctx, args)


class LazyGroup(NamingGroup):
    """A group of commands that are imported when they run.

    `commands_at` maps a name to (module:attribute, one line of help).
    """

    def __init__(self, *args: Any, commands_at: Mapping[str, tuple[str, str]] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands_at = dict(commands_at or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of their registration."""
        return list(self.commands_at)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module. None for a name that is not registered."""
        if cmd_name not in self.commands_at:
            return None
        module, _, attribute = self.commands_at[cmd_name][0].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the registered lines of help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.commands_at.items()])
