"""The structure of the package: imports run one way, and files and functions stay short enough to read."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "roofdsl"
FILES = sorted(PACKAGE.rglob("*.py"))
LONGEST_FILE = 400


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


def imports(path: Path) -> set[str]:
    """Modules of the package that a file imports anywhere in it, be it for type checkers only."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module for name in inside}
    return found & MODULES.keys()


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """What can reach itself, modules that reach each other together."""
    reach = {node: set(after) for node, after in graph.items()}
    for through in graph:
        for node in graph:
            if through in reach[node]:
                reach[node] |= reach[through]
    found = {tuple(sorted(m for m in reach[node] if node in reach[m])) for node in graph if node in reach[node]}
    return [list(each) for each in sorted(found)]


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()}) == [["a", "b", "c"]]


@pytest.mark.thorough
def test_no_files_import_each_other() -> None:
    assert circles({module: imports(path) - {module} for module, path in MODULES.items()}) == []


def test_files_are_short() -> None:
    lengths = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in MODULES.items()}
    assert [module for module, lines in lengths.items() if lines > LONGEST_FILE] == []
