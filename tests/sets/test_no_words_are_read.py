"""What modules know of one another's results travels as values: no text that was made for people is taken apart."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import roofdsl

PACKAGE = Path(roofdsl.__file__).parent
TAKING_APART = (
    "startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "replace", "match",
    "fullmatch", "search", "sub", "findall",
)  # fmt: skip
FOR_PEOPLE = ("label", "note", "notes", "assumes", "remark", "bound", "stated", "what", "why", "help")
"""Fields that hold text for people."""

ON_FACTS = ("sets/facts", "sets/cases", "sets/terms", "counts/fixed", "counts/program", "counts/traffic_form_records",
            "counts/derived", "formulas/fact_text", "sweep/assumed", "sweep/exact_forms", "page/count_forms",
            "page/line_forms", "plot/kinds/hierarchy", "plot/roofs", "plot/planes_content",
            "tell/equations")  # fmt: skip
"""Modules that facts, labels and units go through."""


NOT_READ = (
    "refused.why.startswith(f'`{refused.what}`')",  # so as not to say the same twice
    "error.help.replace('--set ', '')",  # sizes are keywords there
    "re.sub('\\\\\\\\[a-z]+|[{}^$ ]', '', p.label)",  # how wide it will be
)


@functools.cache
def trees() -> list[tuple[str, ast.Module]]:
    """Every module of the package: its name, and what it says."""
    names = {path.relative_to(PACKAGE).with_suffix("").as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
    return [(n, ast.parse(path.read_text("utf-8"))) for n, path in names.items() if not n.startswith("_models")]


def is_text_for_people(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in FOR_PEOPLE


def readings(tree: ast.Module) -> Iterator[ast.expr]:
    """Where a field with text for people is searched or taken apart."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=of, attr=name), args=args) if name in TAKING_APART:
                of_module = isinstance(of, ast.Name) and of.id == "re"
                if any(map(is_text_for_people, args if of_module else [of])):
                    yield node
            case ast.Compare(left=ast.Constant(value=str()), ops=[ast.In() | ast.NotIn()], comparators=[of]):
                if is_text_for_people(of):
                    yield node


@pytest.mark.parametrize("name", ON_FACTS)
def test_modules_on_the_way_of_facts_take_no_text_apart(name: str) -> None:
    for node in ast.walk(ast.parse((PACKAGE / f"{name}.py").read_text("utf-8"))):
        assert not (isinstance(node, ast.Import) and "re" in [a.name for a in node.names])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr != "replace":
            assert node.func.attr not in TAKING_APART, ast.unparse(node)


@pytest.mark.thorough
def test_no_text_for_people_is_searched() -> None:
    found = [ast.unparse(node) for _, tree in trees() for node in readings(tree)]
    assert sorted(found) == sorted(NOT_READ)


def test_readings_are_found() -> None:
    text = 'a.label.split(" ")\n" OP/s" in r.label\nre.search("n = 3", d.notes)\ns.removesuffix("x")\n"a" in names\n'
    assert [node.lineno for node in readings(ast.parse(text))] == [1, 2, 3]


@pytest.mark.thorough
def test_what_is_assumed_is_never_text() -> None:
    found = []
    for name, tree in trees():
        for node in ast.walk(tree):
            match node:
                case ast.AnnAssign(target=ast.Name(id="assumes"), annotation=kind):
                    found.append((name, ast.unparse(kind)))
                case ast.arg(arg="assumes", annotation=ast.expr() as kind):
                    found.append((name, ast.unparse(kind)))
                case ast.FunctionDef(name="assumes", returns=ast.expr() as kind):
                    found.append((name, ast.unparse(kind)))
    assert {name for name, _ in found} >= {"sets/cases", "sets/terms", "counts/derived", "tell/equation_lines"}
    assert [each for each in found if "str" in each[1]] == []


def test_the_page_reads_flags() -> None:
    for path in sorted((PACKAGE / "page" / "assets").glob("*.js")):
        text = path.read_text("utf-8")
        assert not re.search(r"stated\b[^;]*\.(split|includes|replace|startsWith)\(", text), path.name
