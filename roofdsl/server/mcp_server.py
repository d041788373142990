"""The tools over the Model Context Protocol, on standard input and output (the official Python SDK, extra `mcp`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofdsl import __version__
from roofdsl.lang.diagnostics import CommandError
from roofdsl.server.answers import answer
from roofdsl.server.isolation import Nursery
from roofdsl.server.tools import TOOLS, schema

if TYPE_CHECKING:
    from mcp.server import Server

ABOUT = """\
roofdsl derives the work and the memory traffic of loop kernels as exact closed forms, and predicts their time on a
machine. Read roofdsl://language for the kernel language. `sol` gives the minimum time of any code, and `validate_claim`
judges a measured time.
"""

RESOURCES = {
    "roofdsl://language": "The kernel language.",
    "roofdsl://models": "The shipped kernels and programs, by name.",
    "roofdsl://machines": "The shipped machines, by name, with their highest peak and the bandwidth of their memory.",
}


def resource_text(address: str) -> str:
    """The text of a resource. Raises CommandError for an unknown address."""
    from roofdsl.machine.find import shipped_machines, shipped_models
    from roofdsl.tell.as_text import to_text
    from roofdsl.tell.machine import listed

    if address == "roofdsl://models":
        return "\n".join(sorted(shipped_models()))
    if address == "roofdsl://machines":
        return "\n".join(to_text(listed(shipped_machines().values())))
    if address == "roofdsl://language":
        return _language()
    raise CommandError(f"there is no resource `{address[:80]}`", f"there are {', '.join(RESOURCES)}")


def _language() -> str:
    """A reference short enough for a conversation: a kernel as an example, and the grammar."""
    from roofdsl.lang.grammar import text
    from roofdsl.machine.find import find_model

    example = Path(find_model("gemv").path).read_text(encoding="utf-8")
    return f"Example:\n\n{example}\n\nGrammar (lark):\n\n{text()}"


def server(nursery: Nursery, root: Path | None) -> Server[Any]:
    """The server of the SDK with all tools and resources."""
    import anyio.to_thread
    from mcp import types
    from mcp.server import Server

    from roofdsl.tell.schemas.commands import answer_schema

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        tools = [
            types.Tool(name=t.name, description=t.about, input_schema=schema(t), output_schema=answer_schema(t.command))
            for t in TOOLS
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(_: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        given = dict(asked.arguments or {})
        found = await anyio.to_thread.run_sync(answer, nursery, root, asked.name, given)
        text = types.TextContent(type="text", text=json.dumps(found))
        return types.CallToolResult(content=[text], structured_content=found, is_error="error" in found)

    async def list_resources(_: Any, __: Any) -> types.ListResourcesResult:
        found = [
            types.Resource(
                uri=address, name=address.removeprefix("roofdsl://"), description=about, mime_type="text/plain"
            )
            for address, about in RESOURCES.items()
        ]
        return types.ListResourcesResult(resources=found)

    async def read_resource(_: Any, asked: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        address = str(asked.uri)
        content = types.TextResourceContents(uri=address, mime_type="text/plain", text=resource_text(address))
        return types.ReadResourceResult(contents=[content])

    return Server(
        "roofdsl", version=__version__, instructions=ABOUT, on_list_tools=list_tools, on_call_tool=call_tool,
        on_list_resources=list_resources, on_read_resource=read_resource,
    )  # fmt: skip


def run(nursery: Nursery, root: Path | None) -> None:
    """Serve on standard input and output until the client closes them."""
    import anyio
    from mcp.server.stdio import stdio_server

    async def serve() -> None:
        made = server(nursery, root)
        async with stdio_server() as (reading, writing):
            await made.run(reading, writing, made.create_initialization_options())

    anyio.run(serve)
