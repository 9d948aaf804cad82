"""The Python SDK 2.x as a client, which finds out the era: lists, calls, and hears of a change by listening. Standard input:
{target, calls, grow}, where the target is an address or a command; standard output: {tools, results, changed, version}."""

import json
import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.subscriptions import ToolsListChanged

ASKED = json.load(sys.stdin)


def target():
    wanted = ASKED["target"]
    if isinstance(wanted, str):
        return wanted
    return StdioServerParameters(command=wanted[0], args=wanted[1:], env=ASKED["environment"])


async def main():
    async with Client(target()) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        results = [(await client.call_tool(name, arguments)).model_dump(mode="json", by_alias=True) for name, arguments in ASKED["calls"]]
        with anyio.fail_after(20):
            async with client.listen(tools_list_changed=True) as changes:
                await client.call_tool(*ASKED["grow"])
                async for change in changes:
                    if isinstance(change, ToolsListChanged):
                        break
        changed = [tool.name for tool in (await client.list_tools()).tools]
        print(json.dumps({"tools": tools, "results": results, "changed": changed, "version": client.protocol_version}))


anyio.run(main)
