"""An MCP server on the official SDK, over streamable HTTP on a port of loopback: one endpoint, both eras."""

import sys

from mcp.server import MCPServer

server = MCPServer("peer")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Always fails."""
    raise ValueError("on purpose")


@server.resource("note://today")
def note() -> str:
    """A note."""
    return "what the note says"


server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
