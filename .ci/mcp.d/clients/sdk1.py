"""The Python SDK 1.x as a client: lists, calls, and hears of a change. Standard input: {target, calls, grow}; standard output:
{tools, results, changed}."""

import json
import sys

import anyio
from mcp import ClientSession, types
from mcp.client.streamable_http import streamablehttp_client

ASKED = json.load(sys.stdin)


async def main():
    heard = anyio.Event()

    async def hear(message):
        if isinstance(message, types.ServerNotification) and isinstance(message.root, types.ToolListChangedNotification):
            heard.set()

    async with streamablehttp_client(ASKED["target"]) as (reader, writer, _), ClientSession(reader, writer, message_handler=hear) as session:
        await session.initialize()
        tools = [tool.name for tool in (await session.list_tools()).tools]
        results = [(await session.call_tool(name, arguments)).model_dump(mode="json") for name, arguments in ASKED["calls"]]
        await session.call_tool(*ASKED["grow"])
        with anyio.fail_after(20):
            await heard.wait()
        changed = [tool.name for tool in (await session.list_tools()).tools]
        print(json.dumps({"tools": tools, "results": results, "changed": changed}))


anyio.run(main)
