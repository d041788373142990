"""A hostile client: wrong paths, sizes, texts and floods, by the SDK of the Model Context Protocol and directly."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roofdsl.cli.serve import run_for_programs
from roofdsl.server.answers import answer
from roofdsl.server.isolation import Limits, Nursery
from tests.server.calls import CALLS, KERNEL, hostile

MARKER = "a secret word of another file"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile").resolve()
    (folder / "scale.roof").write_text(KERNEL)
    (folder.parent / "secret.roof").write_text(f"# {MARKER}\n{MARKER}\n")
    (folder / "link.roof").symlink_to(folder.parent / "secret.roof")
    return folder


def harmless(found: dict[str, Any]) -> None:
    """An answer or an error as data, without a traceback and without what stands in other files."""
    text = json.dumps(found)
    assert "error" in found or found["schema"].startswith("roofdsl."), text[:500]
    assert "Traceback" not in text and MARKER not in text and "root:x:" not in text, text[:500]


@pytest.fixture(scope="module")
def nursery(root: Path) -> Iterator[Nursery]:
    with Nursery(run_for_programs, root, Limits(seconds=3, memory_bytes=2 << 30, wall_s=20)) as made:
        yield made


def test_calls_are_answered_and_the_server_lives(nursery: Nursery, root: Path, pytestconfig: pytest.Config) -> None:
    draw = random.Random(5)
    for _ in range(20 if pytestconfig.option.thorough else 10):
        harmless(answer(nursery, root, *hostile(draw, root)))
    assert answer(nursery, root, "derive", CALLS["derive"])["kernel"] == "scale"


@pytest.mark.thorough
@pytest.mark.parametrize("calls", [12, 100])
def test_the_sdks_client_is_answered_whatever_it_calls(calls: int, root: Path) -> None:
    """Every tool, many calls at a time; afterwards the server answers as before, and nothing was written."""
    import anyio
    from mcp import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    draw = random.Random(calls)
    made = [hostile(draw, root) for _ in range(calls)]
    made = [(name, given) for name, given in made if "\ud800" not in str(given.get("text"))]  # no text of a protocol
    before = sorted(p.name for p in root.iterdir())
    found: list[tuple[str, dict[str, Any]]] = []

    async def drive() -> None:
        arguments = ["-m", "roofdsl", "mcp", "--root", str(root), "--seconds", "2", "--memory", "2GiB"]
        how = StdioServerParameters(command=sys.executable, args=arguments)
        async with stdio_client(how) as (reading, writing), ClientSession(reading, writing) as client:
            await client.initialize()

            async def call(name: str, given: dict[str, Any]) -> None:
                result = await client.call_tool(name, given)
                assert result.structured_content is not None
                found.append((name, result.structured_content))

            for first in range(0, len(made), 8):
                async with anyio.create_task_group() as group:
                    for name, given in made[first : first + 8]:
                        group.start_soon(call, name, given)
            last = await client.call_tool("derive", CALLS["derive"])
            assert not last.is_error and last.structured_content is not None

    anyio.run(drive)
    assert len(found) == len(made)
    for _, one in found:
        harmless(one)
    assert calls < 200 or {name for name, _ in found} >= CALLS.keys()
    assert sorted(p.name for p in root.iterdir()) == before
