"""Options and fixtures shared by all tests: golden files and the length of the random tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

# Tests find everything anew, in child processes too, and neither use nor fill anybody's cache of derivations.
os.environ["ROOFDSL_CACHE"] = "off"
# What is printed is as wide as where there is no terminal, whatever the terminal that starts the tests.
os.environ.pop("COLUMNS", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew instead of comparing")
    parser.addoption("--kernels", type=int, default=300, help="how many random kernels are compared with brute force")
    parser.addoption("--sweep-points", type=int, default=1, help="points of each shipped kernel compared with predict")
    parser.addoption("--long-points", type=int, default=4_000_000, help="points of the sweep whose memory is measured")
    parser.addoption("--residue-kernels", type=int, default=40, help="random kernels whose plateaus are simulated")
    parser.addoption("--residue-seed", type=int, default=100, help="of the first of them")
    parser.addoption("--fuzz", type=int, default=3000, help="how many inputs the fuzz test tries")
    parser.addoption("--bound-sizes", type=int, default=2, help="sizes at which I/O bounds meet optimal replacement")
    parser.addoption("--words", type=int, default=250, help="words of the headers that kernels are named after")
    parser.addoption("--submissions", type=int, default=40, help="how many damaged submissions are graded")
    parser.addoption(
        "--guided", type=int, default=0, help="seconds of coverage-guided fuzzing of each reader (atheris)"
    )
    parser.addoption("--all-budgets", action="store_true", help="every command on every hard kernel ends within 20 s")
    parser.addoption("--kept", action="store_true", help="all shipped kernels: from the cache as derived anew")
    parser.addoption("--fuzz-seed", default="2026", help="other inputs for the fuzz test")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """`golden(path, text)`: asserts that the file at `path` holds `text`, or writes it under --update-golden."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
            return
        assert path.exists(), f"{path} is missing; run pytest with --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return compare
