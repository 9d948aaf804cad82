"""An MCP server over standard input and output whose list is full of faults, for `callsheet check`.

Usage: mcp_faults.py BEHAVIOUR

`listed` lists faulty tools in pages and in another order each time. `offers` fails to list its prompts, and lists too many templates. `endless` repeats a cursor. `mute` never answers and says why on
standard error. `gone` ends at once.
"""

import json
import sys

behaviour = sys.argv[1]
listings = 0

TOOLS = [
    {"name": "hidden", "description": "Reads\u200b a file", "inputSchema": {"type": "object"}},
    {"name": "silent", "inputSchema": {"type": "object", "properties": {"path": {"type": "txt"}}, "required": ["file"]}},
    {"name": "header", "description": "Sends a header",
     "inputSchema": {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}},
    {"name": "spaced name", "description": "Has a name that clients refuse", "inputSchema": {"type": "object"},
     "outputSchema": {"type": "object", "properties": {"rows": {"type": "array"}, "odd": {"type": "txt"}}}},
]


def answer(request, result):
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


def page(request):
    global listings
    cursor = request.get("params", {}).get("cursor")
    if behaviour == "endless":
        return {"tools": TOOLS[:1], "nextCursor": "again"}
    if cursor is None:
        listings += 1
        return {"tools": TOOLS[:2] if listings % 2 else TOOLS[1::-1], "nextCursor": "2"}
    if cursor == "2":
        return {"tools": TOOLS[2:], "nextCursor": "3"}
    return {"tools": []}


def offer(method):
    if behaviour == "offers" and method == "resources/list":
        return {"resources": []}
    if behaviour == "offers" and method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "f:{name}/%d" % number, "name": "n"} for number in range(201)]}
    return None


if behaviour == "gone":
    sys.exit("the key of the service is missing")
for line in sys.stdin:
    request = json.loads(line)
    if behaviour == "mute":
        print("waiting for the database", file=sys.stderr, flush=True)
    elif request.get("method") == "initialize":
        further = {"prompts": {}, "resources": {}} if behaviour == "offers" else {}
        answer(request, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, **further},
                         "serverInfo": {"name": "faults", "version": "1"}})
    elif request.get("method") == "tools/list":
        answer(request, page(request))
    elif behaviour == "offers" and request.get("method") == "prompts/list":
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32603, "message": "no"}}), flush=True)
    elif offer(request.get("method")) is not None:
        answer(request, offer(request["method"]))
    elif "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
