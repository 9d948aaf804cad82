"""An MCP server over standard input and output for the attacks. It answers calls as its argument says.

Usage: server.py BEHAVIOUR

large: 3.9 MB of text; escaped: 1 MB of control characters, six bytes each in JSON; hang: no answer to a call; flood: lines without end after
the first list; errors: standard error without end; hints: notifications without end; leave: children in sessions of their own; many: 3,000
tools of 1 KB each, with other names in every second list; parts: tools whose schemas have many parts; offers: 4,000,000 resources that are none,
in each of lists that change without end; versions: 7 MB of further members of tools, and places: members below a long name, which change all
the time.
"""

import json
import os
import sys
import threading
import time

behaviour = sys.argv[1]
TOOLS = [
    {"name": "work", "description": "Works.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "wipe", "description": "Wipes.", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": True}},
]

PARTS = [
    {"name": "listed", "inputSchema": {"type": "object", "additionalProperties": {"type": "array", "items": {"properties": {"a": {"type": "string"}}}}}},
    *({"name": f"word_{number}", "inputSchema": {"type": "object", "properties": {f"p{at}": {"type": "string"} for at in range(8_000)}}} for number in range(20)),
    {"name": "all", "inputSchema": {"type": "object", "properties": {"v": {"items": {"allOf": [{}] * 60_000}}}}},
    {"name": "any", "inputSchema": {"type": "object", "properties": {"v": {"anyOf": [{"x": 0, "allOf": [False]}] * 6_000}}}},
]
CHANGING = ["offers", "versions", "places"]
RESOURCES = "0," * 4_000_000 + "0"


def tools(edition):
    if behaviour == "parts":
        return PARTS
    if behaviour == "versions":
        meta = {"example.com/x": f"{edition:06}" + "m" * 240_000}
        return [{"name": f"tool_{number}", "inputSchema": {"type": "object"}, "_meta": meta} for number in range(30)]
    if behaviour == "places":
        members = {"k" * 120_000: {f"m{number}": edition for number in range(9_000)}}
        return [{"name": f"tool_{number}", "inputSchema": {"type": "object", "x-more": members}} for number in range(30)]
    if behaviour != "many":
        return TOOLS
    edition %= 2
    about = "It does what its name says. " * 36
    return [{"name": f"tool_{edition}_{number}", "description": about, "inputSchema": {"type": "object"}} for number in range(3_000)]


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text():
    if behaviour == "large":
        return "y" * 3_900_000
    if behaviour == "escaped":
        return "\x01" * 650_000
    return "done"


def change():
    time.sleep(0.5)
    kind = "resources" if behaviour == "offers" else "tools"
    send({"method": f"notifications/{kind}/list_changed"})


def after_the_first_list():
    if behaviour in CHANGING:
        threading.Thread(target=change, daemon=True).start()
    if behaviour == "flood":
        while True:
            sys.stdout.write("no message at all\n" * 10_000)
    if behaviour == "errors":
        while True:
            sys.stderr.write("something is wrong\n" * 10_000)
    if behaviour == "hints":
        line = json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}) + "\n"
        while True:
            sys.stdout.write(line * 1_000)
    if behaviour == "leave":
        for _ in range(20):
            if os.fork() == 0:
                os.setsid()
                time.sleep(600)
                os._exit(0)


lists = 0
for line in sys.stdin:
    request = json.loads(line)
    method, id = request.get("method"), request.get("id")
    if id is None or method is None:
        continue
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        if behaviour == "offers":
            capabilities["resources"] = {"listChanged": True}
        info = {"name": "attack", "version": "1"}
        send({"id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}})
    elif method == "tools/list":
        lists += 1
        send({"id": id, "result": {"tools": tools(lists)}})
        after_the_first_list()
    elif method == "resources/list" and behaviour == "offers":
        sys.stdout.write(f'{{"jsonrpc":"2.0","id":{json.dumps(id)},"result":{{"resources":[{RESOURCES}]}}}}\n')
        sys.stdout.flush()
    elif method == "tools/call":
        if behaviour != "hang":
            send({"id": id, "result": {"content": [{"type": "text", "text": text()}]}})
    else:
        send({"id": id, "error": {"code": -32601, "message": "unknown method"}})
