"""Numbers on the command line: what is unambiguous is taken, and the rest gets help."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from roofdsl.cli.derive import derive


def run(*args: str) -> Result:
    return CliRunner().invoke(derive, list(args))


def derived(*args: str) -> Any:
    result = run(*args, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


@pytest.mark.parametrize("text", ["1048576", "1_048_576", "1.048576e6", "2^20", "2**20", "1024*1024"])
def test_sizes(text: str) -> None:
    assert derived("gemv", "--set", f"n={text}")["parameters"] == {"n": 2**20}


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("n=4k", "write 4000 or 4096"),
        ("n=1,000,000", "without commas"),
        ("n=1.5", "write a whole number"),
        ("n=0", "a positive integer"),
        ("n=2^63", "at most 2**62"),
    ],
)
def test_sizes_that_are_none(text: str, help: str) -> None:
    result = run("gemv", "--set", text)
    assert result.exit_code == 2
    assert help in " ".join(result.output.split())


def test_a_line_without_a_unit_is_in_bytes() -> None:
    given = derived("triad", "--line", "64")
    assert given == derived("triad", "--line", "64B")
    assert given["cache"]["line_bytes"] == 64


def test_a_cache_without_a_unit_is_ambiguous() -> None:
    result = run("gemv", "--cache", "32")
    assert result.exit_code == 2
    assert "a size needs a unit" in result.output
