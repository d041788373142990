"""The README's commands and example do what it says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import click
import pytest

from roofdsl.cli.main import COMMANDS, cli, run
from roofdsl.machine.find import GROUPS, shipped, shipped_machines

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_ci_finds_both_commands() -> None:
    script = (ROOT / ".ci/run").read_text()
    function = script[script.index("command_of() {") : script.index("step() {")]
    for name, last in (("try", "roofdsl demo"), ("test", "-m pytest -n auto")):
        result = subprocess.run(
            ["bash", "-c", f"{function}\ncommand_of {name}"], capture_output=True, text=True, cwd=ROOT, check=True
        )
        assert result.stdout.startswith("python3 -m venv .venv && ")
        assert result.stdout.endswith(f"{last}\n")
        assert result.stdout.count("\n") == 1


def test_the_first_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
    example = next(text for language, text in blocks if language == "roof")
    commands = [text for language, text in blocks if language == "sh"][-1].strip().splitlines()
    monkeypatch.chdir(tmp_path)
    Path("axpy.roof").write_text(example)
    assert len(commands) == 3
    for command in commands:
        assert run(command.split()[1:]) == 0, capsys.readouterr().err
    assert "axpy on laptop (My laptop)" in capsys.readouterr().out
    assert Path("axpy.svg").stat().st_size > 5000


def test_documents_name_what_there_is() -> None:
    commands = (ROOT / "docs/commands.md").read_text()
    for name in ("check", "fmt", "predict", "machines", "models"):
        assert name in COMMANDS
        assert f"| `{name}" in commands
    models = (ROOT / "docs/models.md").read_text()
    for name in shipped_machines():
        assert f"`{name}`" in models, name
    for kind in ("machines", *GROUPS):
        for path in shipped(kind).values():
            assert f"`{path.name}`" in models, path


def test_the_page_of_commands_has_every_option_and_no_other() -> None:
    """A synopsis, `roofdsl COMMAND ...`, names only options of its command."""
    page = (ROOT / "docs/commands.md").read_text()
    known: dict[str, set[str]] = {}
    todo: list[tuple[str, click.Command]] = [("", cli)]
    context = click.Context(cli)
    while todo:
        name, command = todo.pop()
        options = [p for p in command.params if isinstance(p, click.Option)]
        known[name] = {text for option in options for text in option.opts}
        for option in options:
            assert any(re.search(rf"(?<![\w-]){text}(?![\w-])", page) for text in option.opts), (name, option.opts)
        if isinstance(command, click.Group):
            for each in command.list_commands(context):
                inner = command.get_command(context, each)
                assert inner is not None
                todo.append((f"{name} {each}".strip(), inner))
    for name, words in re.findall(r"roofdsl ((?:plot |exercise |import )?[\w|-]+)([^\n`#]*(?:\n {8}.*)*)", page):
        named = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", words))
        own = known.get(name.partition("|")[0], set())  # `plot energy|power`
        assert named <= own | known[""] | {"--help"}, (name, named)
