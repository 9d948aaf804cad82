"""A small MCP server over standard input and output, without any package.

Usage: mcp_server.py units|text
"""

import json
import sys

METRES = {"centimetre": 0.01, "metre": 1, "kilometre": 1000, "inch": 0.0254, "foot": 0.3048, "mile": 1609.344}


def convert_length(value, **units):
    """Converts a length from one unit to another"""
    return value * METRES[units["from"]] / METRES[units["to"]]


def count_words(text):
    """Counts the words of a text"""
    return len(text.split())


UNIT = {"type": "string", "enum": list(METRES)}
TOOLS = {
    "units": (convert_length, {"value": {"type": "number"}, "from": UNIT, "to": UNIT}),
    "text": (count_words, {"text": {"type": "string"}}),
}
RUN, PROPERTIES = TOOLS[sys.argv[1]]


def answer(method, params):
    if method == "initialize":
        info = {"name": sys.argv[1], "version": "1.0.0"}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        schema = {"type": "object", "properties": PROPERTIES, "required": list(PROPERTIES)}
        return {"tools": [{"name": RUN.__name__, "description": RUN.__doc__, "inputSchema": schema}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": str(RUN(**params["arguments"]))}]}
    if method == "ping":
        return {}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params", {}))
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None:
        reply["error"] = {"code": -32601, "message": f"there is no method {message['method']}"}
    else:
        reply["result"] = result
    print(json.dumps(reply), flush=True)
