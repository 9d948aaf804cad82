"""A server on FastMCP 4, which speaks both eras over HTTP.

Usage: fast.py MARKS PORT. The folder MARKS gets an empty file for what a client cannot see: `cancelled`, once a call was cancelled.
"""

import sys
from pathlib import Path

import anyio
from fastmcp import Context, FastMCP

MARKS, PORT = Path(sys.argv[1]), int(sys.argv[2])

server = FastMCP("fast")


@server.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool
def fail(why: str) -> str:
    """Fails with this text."""
    raise ValueError(why)


@server.tool
async def count(to: int, context: Context) -> str:
    """Counts, and reports each number."""
    for number in range(1, to + 1):
        await context.report_progress(number, to, f"number {number}")
        await anyio.sleep(0.05)
    return f"counted to {to}"


@server.tool
async def wait(context: Context) -> str:
    """Waits until it is cancelled."""
    await context.report_progress(0, 1, "waiting")
    try:
        await anyio.sleep(120)
    except anyio.get_cancelled_exc_class():
        (MARKS / "cancelled").touch()
        raise
    return "waited"


if __name__ == "__main__":
    server.run("http", host="127.0.0.1", port=PORT, show_banner=False, log_level="error")
