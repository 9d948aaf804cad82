"""FastMCP's client: lists, calls, and hears of a change. Standard input: {target, calls, grow, mode}; standard output:
{tools, results, changed}."""

import json
import sys

import anyio
from fastmcp import Client
from fastmcp.client.messages import MessageHandler

ASKED = json.load(sys.stdin)


class Ear(MessageHandler):
    def __init__(self):
        super().__init__()
        self.heard = anyio.Event()

    async def on_tool_list_changed(self, _):
        self.heard.set()


async def main():
    ear = Ear()
    async with Client(ASKED["target"], message_handler=ear, mode=ASKED["mode"]) as client:
        tools = [tool.name for tool in await client.list_tools()]
        results = [{"content": [{"text": block.text} for block in (await client.call_tool(name, arguments)).content]} for name, arguments in ASKED["calls"]]
        await client.call_tool(*ASKED["grow"])
        with anyio.fail_after(20):
            if ASKED["mode"] == "legacy":
                await ear.heard.wait()
            changed = [tool.name for tool in await client.list_tools()]
            # In 2026-07-28 this client does not listen: it lists again.
            while changed == tools:
                await anyio.sleep(0.1)
                changed = [tool.name for tool in await client.list_tools()]
        print(json.dumps({"tools": tools, "results": results, "changed": changed}))


anyio.run(main)
