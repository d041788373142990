"""roofdsl as a service on standard input and output: for agents by the Model Context Protocol, for editors by lines.

tools: the tools and their arguments, as tables. isolation: each call is answered in a process of its own, with limits
on time and memory, and without access to files outside a root. answers: the answer to a call, as a document.
mcp_server: the tools over MCP. json_lines: the tools as JSON lines.
"""
