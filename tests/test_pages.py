"""The examples of documentation pages are what the program prints."""

from __future__ import annotations

import ast
import re
import shlex
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

from roofdsl.cli.main import run
from roofdsl.predict import expected_on_gpu as gpu
from roofdsl.predict.expected_of_launches import IN_SEQUENCE

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = [
    (page, line, printed)
    for page in ("links.md", "transformer.md", "expected.md", "expected_gpu.md", "sol.md", "energy.md", "sweep.md")
    for line, printed in re.findall(r"```console\n\$ roofdsl (.*?)\n(.*?)\n```", (DOCS / page).read_text(), re.S)
]


def test_the_pages_have_examples() -> None:
    assert len(EXAMPLES) == sum((DOCS / page).read_text().count("$ roofdsl ") for page in {p for p, _, _ in EXAMPLES})
    assert len(EXAMPLES) >= 6


@pytest.mark.spread(1)
@pytest.mark.parametrize(("page", "line", "printed"), EXAMPLES, ids=[line for _, line, _ in EXAMPLES])
def test_examples_are_what_is_printed(page: str, line: str, printed: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line `...` stands for lines that the page leaves out."""
    assert run(shlex.split(line)) == 0, page
    out, at = capsys.readouterr().out.rstrip() + "\n", 0
    first, *others = re.split(r"^\.\.\.\n", printed + "\n", flags=re.MULTILINE)
    assert (out == first) if not others else out.startswith(first)
    for part in others:
        at = out.find(part, max(at, len(first)))
        assert at >= 0, part
        at += len(part)
    assert not others or at == len(out)


SAMPLES = [
    (page.name, text)
    for page in sorted(DOCS.glob("*.md"))
    for text in re.findall(r"```python\n(from .*?|import .*?)```", page.read_text(encoding="utf-8"), re.S)
]


def test_every_cause_on_gpus_is_on_the_page() -> None:
    page = (DOCS / "expected_gpu.md").read_text()
    listed = set(re.findall(r"^\| ([^|]*) \|", page.partition("## Causes\n")[2].partition("\n## ")[0], re.MULTILINE))
    worded = (gpu.REGISTERS, gpu.FEW, gpu.UNEVEN, gpu.IDLE, gpu.ONE_BY_ONE, gpu.WAITING, gpu.STARTING, gpu.ALONE,
              gpu.UNEQUAL, IN_SEQUENCE)  # fmt: skip
    assert {*worded} <= listed, {*worded} - listed


@pytest.mark.parametrize(("page", "text"), SAMPLES, ids=[f"{k} {page}" for k, (page, _) in enumerate(SAMPLES)])
def test_python_samples_import_what_there_is(page: str, text: str) -> None:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.split(".")[0] == "roofdsl":
            module = import_module(node.module)
            modules = {found.name for found in iter_modules(getattr(module, "__path__", []))}
            assert [a.name for a in node.names if a.name not in modules and not hasattr(module, a.name)] == [], page


@pytest.mark.parametrize("page", ["bound.md", "derive.md", "sol.md", "sweep.md", "trust.md"])
def test_python_samples_run(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that need no file of the user's."""
    monkeypatch.chdir(DOCS.parent)
    (text,) = [text for name, text in SAMPLES if name == page]
    exec(compile(text, page, "exec"), {})


GLOSSARY = re.findall(r"```sh\nroofdsl (.*?)\n```", (DOCS / "glossary.md").read_text(), re.S)


def test_the_glossary_has_the_words_of_the_field() -> None:
    """In alphabetical order, each with a definition of a few lines and a command."""
    text = (DOCS / "glossary.md").read_text()
    words = re.findall(r"^### (.*)$", text, re.MULTILINE)
    assert words == sorted(words, key=str.lower)
    for word in ("Arithmetic intensity", "Operational intensity", "Working set", "Machine balance", "Ridge point",
                 "Layer condition", "Reuse distance", "Compulsory traffic", "Write-allocate", "Speed of light",
                 "Cache line", "Sector", "Roofline", "Ceiling", "Occupancy"):  # fmt: skip
        assert word in words
    entries = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    for entry in entries:
        definition = entry.split("\n", 1)[1].split("```")[0].strip()
        assert 1 <= len(definition.splitlines()) <= 5, entry
        assert "```sh\nroofdsl " in entry or definition.startswith("See ["), entry


@pytest.mark.spread(1)
@pytest.mark.parametrize("line", GLOSSARY)
def test_commands_of_the_glossary_run(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(line)) == 0, capsys.readouterr().err


def test_every_page_is_in_the_navigation() -> None:
    """The pages of docs/ and the tutorials, each once."""
    listed = re.findall(r": ([\w/]+)\.md$", (DOCS.parent / ".ci/mkdocs.yml").read_text(), re.MULTILINE)
    pages = [p.stem for p in DOCS.glob("*.md")] + ["index", "reference", "tutorials/index"]
    pages += [f"tutorials/{p.stem}" for p in (DOCS.parent / "tutorials").glob("*.py")]
    assert sorted(listed) == sorted(pages)


def test_contributing_names_every_package_and_no_file_that_is_not_there() -> None:
    text = (DOCS / "contributing.md").read_text()
    package = DOCS.parent / "roofdsl"
    rows = re.findall(r"^\| (`.*?) \|", text.partition("## Where things are")[2], re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    packages = {path.parent.name for path in package.glob("*/__init__.py")}
    assert packages <= named, packages - named
    files = re.findall(r"`((?:roofdsl|tests|\w+)/[\w/]+(?:\.py|/))`", text)
    assert files
    for file in files:
        assert any((root / file).exists() for root in (package, DOCS.parent)), file


def test_the_readme_has_every_page_in_its_group() -> None:
    """Learn, use, look up, understand: the groups of the navigation."""
    navigation = (DOCS.parent / ".ci/mkdocs.yml").read_text()
    readme = (DOCS.parent / "README.md").read_text()
    groups = re.findall(r"^  - (Learn|Use|Look up|Understand):\n((?:      - .*\n)+)", navigation, re.MULTILINE)
    assert len(groups) == 4
    for group, entries in groups:
        section = re.search(rf"^### {group}\n(.*?)(?=^#)", readme, re.MULTILINE | re.DOTALL)
        assert section, group
        for page in re.findall(r": (\w+)\.md$", entries, re.MULTILINE):
            assert page == "reference" or f"(docs/{page}.md" in section[1], (group, page)
