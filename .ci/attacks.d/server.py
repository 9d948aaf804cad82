"""An MCP server over standard input and output for the attacks. It answers calls as its argument says.

Usage: server.py BEHAVIOUR

large: 3.9 MB of text; escaped: 1 MB of control characters, six bytes each in JSON; hang: no answer to a call; flood: lines without end after
the first list; errors: standard error without end; hints: notifications without end; leave: children in sessions of their own; many: 3,000
tools of 1 KB each, with other names in every second list.
"""

import json
import os
import sys
import time

behaviour = sys.argv[1]
TOOLS = [
    {"name": "work", "description": "Works.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "wipe", "description": "Wipes.", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": True}},
]



def tools(edition):
    if behaviour != "many":
        return TOOLS
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


def after_the_first_list():
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
        info = {"name": "attack", "version": "1"}
        send({"id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}})
    elif method == "tools/list":
        lists += 1
        send({"id": id, "result": {"tools": tools(lists % 2)}})
        after_the_first_list()
    elif method == "tools/call":
        if behaviour != "hang":
            send({"id": id, "result": {"content": [{"type": "text", "text": text()}]}})
    else:
        send({"id": id, "error": {"code": -32601, "message": "unknown method"}})
