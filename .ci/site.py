"""Hooks of the documentation site: what is generated from the program itself.

reference.md is what every command prints for --help. In gallery.md each `roofdsl plot ... -o gallery/NAME.svg` is run,
and its figure put below it, so that the gallery shows what the program draws now. index.md is the README. Each tutorial
is a page: its text, its code, and its answers to fold out.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from roofdsl.cli.main import cli, run

ROOT = Path(__file__).resolve().parent.parent
GALLERY = re.compile(r"```sh\n(?P<command>roofdsl (?:[^`]|\\\n)*? -o (?P<path>gallery/\w+\.svg))\n```")
OUTSIDE = re.compile(r"\[([^]]*)]\(\.\./([^)]*)\)")
_made = tempfile.TemporaryDirectory()


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages and figures that are generated."""
    files.append(File.generated(config, "index.md", content=_readme()))
    files.append(File.generated(config, "reference.md", content="\n".join(_reference())))
    files.append(File.generated(config, "tutorials/index.md", content=_tutorials()))
    for path in sorted((ROOT / "tutorials").glob("*.py")):
        page = tutorial_page(path.read_text(encoding="utf-8"), path.name)
        files.append(File.generated(config, f"tutorials/{path.stem}.md", content=page))
    gallery = (Path(config["docs_dir"]) / "gallery.md").read_text(encoding="utf-8")
    for found in GALLERY.finditer(gallery):
        out = Path(_made.name) / Path(found["path"]).name
        words = shlex.split(found["command"].replace("\\\n", " "))[1:-1]
        if run([*words, str(out)]) != 0:
            raise PluginError(f"gallery.md: this command failed: {found['command']}")
        files.append(File.generated(config, found["path"], abs_src_path=str(out)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Figures below their commands; links to files outside docs/ become their paths."""
    markdown = GALLERY.sub(lambda m: f"{m[0]}\n\n![{m['command'].split(' -o ')[0]}]({m['path']})", markdown)
    return OUTSIDE.sub(lambda m: f"{m[1]} (`{m[2]}` in the repository)", markdown)


def _readme() -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.sub(r"\(docs/([^)]*)\)", r"(\1)", text).replace("(tutorials/README.md)", "(tutorials/index.md)")


def _tutorials() -> str:
    """The index of the tutorials, with links to their pages."""
    text = (ROOT / "tutorials/README.md").read_text(encoding="utf-8")
    return re.sub(r"\[(\w+)\.py]\(\1\.py\)", r"[\1](\1.md)", text)


def tutorial_page(source: str, name: str) -> str:
    """A notebook in percent format as a page: cells of text as they are, cells of code in fences; inside `<details>` is
    Markdown, so that answers fold out."""
    parts = []
    for cell in re.split(r"^# %%", source, flags=re.MULTILINE)[1:]:
        head, _, body = cell.partition("\n")
        if head.strip() == "[markdown]":
            parts.append("\n".join(re.sub(r"^# ?", "", line) for line in body.strip("\n").splitlines()))
        elif body.strip():
            parts.append(f"```python\n{body.strip()}\n```")
    first, *rest = parts
    run = f"Run it with `python tutorials/{name}`, or open it as a notebook ([how](index.md))."
    page = "\n\n".join([first, run, *rest])
    page = page.replace("<details>", "<details markdown>").replace("](../docs/", "](../")
    return re.sub(r"\]\((\w+)\.py\)", r"](\1.md)", page) + "\n"


def _reference() -> Iterator[str]:
    yield "# Command reference\n\nWhat `roofdsl COMMAND --help` prints.\n"
    for path, command in _commands(cli, ("roofdsl",)):
        yield f"## {' '.join(path[1:]) or 'roofdsl'}\n"
        context = click.Context(command, info_name=path[-1], parent=_parents(path[:-1]))
        context.help_option_names = ["-h", "--help"]
        yield f"```text\n{command.get_help(context)}\n```\n"


def _parents(names: tuple[str, ...]) -> click.Context | None:
    context = None
    for name in names:
        context = click.Context(cli, info_name=name, parent=context)
    return context


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=path[-1])
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _commands(inner, (*path, name))
