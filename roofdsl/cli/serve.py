"""`roofdsl mcp` and `roofdsl serve`: roofdsl as a service for agents and editors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from roofdsl.lang.diagnostics import CommandError


def limits_options(function: Callable[..., None]) -> Callable[..., None]:
    """The root and the limits of a call; the function gets `root`, `seconds` and `memory`."""
    from roofdsl.cli.options import size_option

    function = size_option("--memory", "Memory of a call; 4GiB by default.")(function)
    function = click.option(
        "--seconds", type=click.FloatRange(0.1, 3600), default=20.0, show_default=True, help="Processor time of a call."
    )(function)
    return click.option(
        "--root", metavar="FOLDER", help="Let calls read the files under this folder; by default, none."
    )(function)


@click.command("mcp")
@limits_options
def mcp(*, root: str | None, seconds: float, memory: int | None) -> None:
    """Serve the Model Context Protocol on standard input and output, for agents.

    The tools are check, derive, predict, sol, validate_claim, bound, advise and simulate. Each call is answered in a
    process of its own, with limits on time and memory. The service runs no program, and of your files it reads only
    those under --root.
    """
    if find_spec("mcp") is None:
        raise CommandError("the package `mcp` is not installed", "install it with `pip install mcp`")
    with _nursery(root, seconds, memory) as (nursery, folder):
        from roofdsl.server.mcp_server import run

        run(nursery, folder)


@click.command("serve")
@click.option("--stdio", is_flag=True, help="Serve on standard input and output (required).")
@limits_options
def serve(*, stdio: bool, root: str | None, seconds: float, memory: int | None) -> None:
    """Answer JSON lines on standard input, for editors: {"id": 1, "method": "derive", "params": {"text": "..."}}."""
    if not stdio:
        raise click.UsageError("give --stdio")
    with _nursery(root, seconds, memory) as (nursery, folder):
        from roofdsl.server.json_lines import serve as answers

        for line in answers(sys.stdin, nursery, folder):
            print(line, flush=True)


def run_for_programs(args: list[str]) -> int:
    """Run a command line; a failure is one line of JSON on standard error, for the server to read."""
    from roofdsl.cli.main import run

    return run(args, spoken=lambda f: json.dumps({"status": f.status, "message": f.message, "help": f.help}))


class _nursery:  # used as a function
    """The process that answers calls, and the absolute path of the root. Raises CommandError if that is no folder."""

    def __init__(self, root: str | None, seconds: float, memory: int | None) -> None:
        from roofdsl.server.isolation import Limits

        self.root = None if root is None else Path(root).resolve()
        if self.root is not None and not self.root.is_dir():
            raise CommandError(f"`{root}` is not a folder")
        self.limits = Limits(seconds, memory or 4 << 30, 3 * seconds + 5)

    def __enter__(self) -> tuple[Any, Path | None]:
        from roofdsl.server.isolation import Nursery

        self.made = Nursery(run_for_programs, self.root, self.limits)
        return self.made, self.root

    def __exit__(self, *_: object) -> None:
        self.made.close()
