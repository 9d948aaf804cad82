"""A server on the Python SDK 1.x, which speaks the revisions with a handshake.

Usage: sdk1.py MARKS [PORT]. Over standard input and output, or over Streamable HTTP on a port of loopback. The folder MARKS gets an empty
file for what a client cannot see: `cancelled`, once a call was cancelled.
"""

import sys
from pathlib import Path

import anyio
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.lowlevel import NotificationOptions

MARKS = Path(sys.argv[1])
PORT = int(sys.argv[2]) if len(sys.argv) > 2 else None

server = FastMCP("sdk1", host="127.0.0.1", port=PORT or 0, log_level="ERROR")
# The simple face of the SDK signals changes and does not say so.
options = server._mcp_server.create_initialization_options
server._mcp_server.create_initialization_options = lambda *_, **__: options(NotificationOptions(tools_changed=True))


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
def fail(why: str) -> str:
    """Fails with this text."""
    raise ValueError(why)


@server.tool()
async def count(to: int, context: Context) -> str:
    """Counts, and reports each number."""
    for number in range(1, to + 1):
        await context.report_progress(number, to, f"number {number}")
        await anyio.sleep(0.05)
    return f"counted to {to}"


@server.tool()
async def wait(context: Context) -> str:
    """Waits until it is cancelled."""
    await context.report_progress(0, 1, "waiting")
    try:
        await anyio.sleep(120)
    except anyio.get_cancelled_exc_class():
        (MARKS / "cancelled").touch()
        raise
    return "waited"


@server.tool()
async def grow(name: str, context: Context) -> str:
    """Adds a tool of this name, and signals it."""
    server.add_tool(lambda: f"this is {name}", name=name, description="Came later.")
    await context.session.send_tool_list_changed()
    return f"{name} was added"


if __name__ == "__main__":
    server.run("stdio" if PORT is None else "streamable-http")
