"""The service: every tool through the SDK's client, hostile calls, and lines of JSON."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from roofdsl.cli.serve import run_for_programs
from roofdsl.lang.diagnostics import CommandError
from roofdsl.machine.find import load_machine
from roofdsl.server.answers import answer
from roofdsl.server.isolation import Limits, Nursery
from roofdsl.server.json_lines import serve
from roofdsl.server.tools import BY_NAME, TOOLS, question, schema
from tests.server.calls import CALLS, KERNEL


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Simulations are compiled once for each installation, which takes longer than a call may."""
    assert run_for_programs(["simulate", "gemv", "--cache", "1KiB", "--set", "n=10", "--json"]) == 0
    assert run_for_programs(["bound", "matmul", "--cache", "1KiB", "--set", "n=10", "--json"]) == 0


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root").resolve()
    (folder / "scale.roof").write_text(KERNEL)
    (folder.parent / "secret.roof").write_text(KERNEL.replace("scale", "secret"))
    return folder


@pytest.fixture(scope="module")
def nursery(root: Path) -> Iterator[Nursery]:
    with Nursery(run_for_programs, root, Limits(seconds=10, wall_s=40)) as made:
        yield made


def test_every_tool_has_a_call_here_and_a_schema() -> None:
    assert set(CALLS) == set(BY_NAME)
    for tool in TOOLS:
        made = schema(tool)
        assert set(CALLS[tool.name]) <= set(made["properties"]) and set(made["required"]) <= set(CALLS[tool.name])


def test_the_sdks_client_drives_every_tool(root: Path) -> None:
    """In a process of its own, as an agent starts it; an error comes as data, and the server goes on."""
    import anyio
    from mcp import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    async def drive() -> None:
        how = StdioServerParameters(command=sys.executable, args=["-m", "roofdsl", "mcp", "--root", str(root)])
        async with stdio_client(how) as (reading, writing), ClientSession(reading, writing) as client:
            await client.initialize()
            tools = {t.name: t for t in (await client.list_tools()).tools}
            assert set(tools) == set(CALLS)
            refused = await client.call_tool("predict", {"file": "../secret.roof", "machine": "v100"})
            assert refused.is_error and "root" in str(refused.structured_content)
            for name, given in CALLS.items():
                found = await client.call_tool(name, given)
                assert not found.is_error, (name, found)
                Draft202012Validator(tools[name].output_schema).validate(found.structured_content)
                assert found.structured_content is not None and found.structured_content["schema"].startswith(
                    "roofdsl."
                )
            models = await client.read_resource("roofdsl://models")
            assert "gemv" in models.contents[0].text.split()
            machines = (await client.read_resource("roofdsl://machines")).contents[0].text.splitlines()
            own = [line for line in machines if line.split()[0] == "v100"]
            assert len(own) == 1 and "TFLOP/s" in own[0] and "GB/s" in own[0] and "V100" in own[0]

    anyio.run(drive)


def test_numbers_are_those_of_the_command(nursery: Nursery, root: Path) -> None:
    found = answer(nursery, root, "sol", {"file": "gemv", "machine": "v100", "set": {"n": 4000}})
    memory = load_machine("v100").main_memory.bandwidth_bytes_per_s
    assert found["floor_s"] == pytest.approx(8 * (4000 * 4000 + 2 * 4000) / float(memory), rel=1e-3)
    claim = answer(nursery, root, "validate_claim", CALLS["validate_claim"])["claim"]
    assert claim["verdict"] == "impossible" and claim["violated"]


@pytest.mark.parametrize(
    ("line", "is_own"),
    [
        ("machine v100:", True),
        ("machine  v100:", True),
        ("machine v100_mine:", False),
        ("# machine v100\nmachine m:", False),
    ],
)
def test_a_machine_of_the_text_is_one_that_the_text_defines(line: str, is_own: bool) -> None:
    text = f"{KERNEL}\n{line}\n    peak f32 fma 1 TFLOP/s\n    memory M 1 GB, 1 GB/s\n"
    asked = question("predict", {"text": text, "machine": "v100"}, None)
    assert ("--machine=given.roof:v100" if is_own else "--machine=v100") in asked.arguments


def test_files_are_read_under_the_root_only(nursery: Nursery, root: Path) -> None:
    assert answer(nursery, root, "derive", {"file": "scale.roof"})["kernel"] == "scale"
    assert answer(nursery, root, "derive", {"file": "scale.roof:scale"})["kernel"] == "scale"
    (root / "link.roof").symlink_to(root.parent / "secret.roof")
    for file in ("../secret.roof", str(root.parent / "secret.roof"), "link.roof", "/etc/passwd", "x/../../secret.roof"):
        assert "error" in answer(nursery, root, "derive", {"file": file}), file
    used = answer(nursery, root, "check", {"text": 'use "../secret.roof"\n'})
    assert used.get("error") or used["diagnostics"]
    outside = answer(nursery, root, "check", {"text": f'use "{root.parent}/secret.roof"\n'})
    assert "secret(" not in json.dumps(outside) and (outside.get("error") or outside["diagnostics"])


@pytest.mark.parametrize("file", ["/etc/hosts", "/etc/hosts:k", "//etc/hosts:k", "/proc/self/environ:k"])
@pytest.mark.parametrize("has_root", [True, False])
def test_a_path_is_no_shipped_name(file: str, has_root: bool, root: Path) -> None:
    """An absolute path of plain words before a `:` was passed on to the command as it is, even with a root."""
    for tool, given in (("derive", {"file": file}), ("predict", {"file": "gemv", "machine": file})):
        with pytest.raises(CommandError, match=r"no root|not under the server's root"):
            question(tool, given, root if has_root else None)


@pytest.mark.parametrize("file", ["gemv", "gemv:gemv", "polybench/gemm", "polybench/gemm:gemm"])
def test_a_shipped_name_is_no_path(file: str, root: Path) -> None:
    assert question("derive", {"file": file}, root).arguments[1] == file


def test_messages_are_not_those_of_a_command_line(nursery: Nursery, root: Path) -> None:
    """No `Usage:` of a command that the agent did not type, and no `error: ` before what stands under "error"."""
    wrong = answer(nursery, root, "predict", {"file": "gemv", "machine": "v100", "set": {"n": -1}})
    assert wrong["error"]["message"] == "Invalid value for '--set': `n` must be a positive integer, not -1"
    wrong = answer(nursery, root, "predict", {"file": "gemv", "machine": "v10"})
    assert wrong["error"]["message"] == "there is no shipped machine `v10`"
    assert "v100" in wrong["error"]["help"]


def test_a_call_that_does_not_end_is_ended(root: Path) -> None:
    """It says so as data, in about the time it had."""
    text = KERNEL.replace("for i in range(n):", "for t in range(n), i in range(n):").replace("b[i] = 2", "b[i] = i % 3")
    with Nursery(run_for_programs, root, Limits(seconds=0.5, wall_s=6)) as short:
        found = answer(short, root, "simulate", {"text": text, "cache": "64B", "ways": 1, "set": {"n": 3_000_001}})
        assert "error" in found
        assert answer(short, root, "check", {"text": KERNEL})["schema"] == "roofdsl.check/1"


def test_lines_are_answered_in_order(nursery: Nursery, root: Path) -> None:
    requests = [
        {"id": 1, "method": "derive", "params": {"text": KERNEL}},
        {"id": 2, "method": "hover", "params": {"text": f"{KERNEL}\n{KERNEL.replace('scale', 'again')}", "line": 9}},
        {"id": 3, "method": "hover", "params": {"text": KERNEL, "line": "3"}},
        {"id": 3, "method": "hover", "params": {"text": KERNEL, "line": 10**9}},
        {"id": 4, "method": "nothing", "params": {}},
        {"id": 5, "method": "check", "params": []},
        [],
    ]
    found = [json.loads(line) for line in serve([*map(json.dumps, requests), "{", "", "\n"], nursery, root)]
    assert [f["id"] for f in found] == [1, 2, 3, 3, 4, 5, None, None]
    assert found[0]["result"]["work"]["total"]["expr"] == "n" and found[1]["result"]["kernel"] == "again"
    assert all("message" in f["error"] for f in found[2:])
    assert found[4]["error"]["help"].endswith(", hover"), "the methods are the tools and hover"


def test_every_answer_is_json_with_the_id_of_its_request(nursery: Nursery, root: Path) -> None:
    """NaN and numbers beyond any float are no JSON, so that an answer could not repeat them."""
    requests = [
        '{"id": NaN, "method": "check", "params": {"text": ""}}', '{"id": 1e999, "method": "check", "params": {}}',
        '{"id": 5}', '{"id": 6, "method": "predict", "params": {"file": "gemv", "machine": "v100", "set": {"n": "8"}}}',
        '{"id": 7, "method": "predict", "params": {"file": "gemv", "machine": "v100", "set": {"n": 8.0}}}',
    ]  # fmt: skip

    def no_constant(text: str) -> None:
        raise AssertionError(text)

    found = [json.loads(line, parse_constant=no_constant) for line in serve(requests, nursery, root)]
    assert [f["id"] for f in found] == [None, None, 5, 6, 7]
    assert found[3]["error"]["help"] == 'the value of `n` is "8"'
    assert found[4]["result"]["parameters"] == {"n": 8}  # a whole number by the schema


@pytest.mark.thorough
def test_the_command_serves_lines() -> None:
    asked = json.dumps({"id": 7, "method": "predict", "params": CALLS["predict"]})
    done = subprocess.run(
        [sys.executable, "-m", "roofdsl", "serve", "--stdio"], input=asked + "\n", capture_output=True, text=True,
        timeout=120, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout)["result"]["machine"] == "v100"


@pytest.mark.spread(1)
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_server_that_is_killed(sent: signal.Signals, tmp_path: Path) -> None:
    """The process that answers calls ends with it: its end of standard output is closed, and its folder is gone.

    A service manager sends SIGTERM to all processes at once, so to that one, too.
    """
    asked = json.dumps({"id": 1, "method": "check", "params": {"text": KERNEL}})
    command = [sys.executable, "-m", "roofdsl", "serve", "--stdio"]
    own = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=own, start_new_session=True
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(asked + "\n")
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["id"] == 1
        if sent == signal.SIGKILL:
            server.kill()
        else:
            os.killpg(server.pid, sent)
        ended, _, _ = select.select([server.stdout], [], [], 30)
        assert ended and server.stdout.read() == ""
    assert not list(tmp_path.iterdir())


def test_data_of_index_arrays(nursery: Nursery, root: Path) -> None:
    """A generator, and a file under the root; other files are refused, whatever stands in front of them."""
    made = {"file": "spmv_csr", "data": {"rowptr,col": "random:n=40,row=3,seed=1"}}
    found = answer(nursery, root, "derive", made)
    assert any("random:n=40,row=3,seed=1 (40 x 40" in note for note in found["notes"])
    market = "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n3 3\n"
    (root / "a.mtx").write_text(market)
    (root.parent / "b.mtx").write_text(market)
    for how in ("", "+transposed", "+sigma=1"):
        one = answer(nursery, root, "simulate", {**made, "data": {"rowptr,col": f"a.mtx{how}"}, "cache": "1KiB"})
        assert one["schema"].startswith("roofdsl.simulate") and one["data"]
    for path in ("../b.mtx", str(root.parent / "b.mtx"), "x+y/../../b.mtx", "a.mtx/../../b.mtx+sigma=1"):
        refused = answer(nursery, root, "simulate", {**made, "data": {"rowptr,col": path}, "cache": "1KiB"})
        assert "root" in refused["error"]["message"], path
    for wrong in ({"rowptr;col": "a.mtx"}, {"rowptr": 3}, "a.mtx"):
        refused = answer(nursery, root, "derive", {**made, "data": wrong})
        assert "`data` must be an object" in refused["error"]["message"]
