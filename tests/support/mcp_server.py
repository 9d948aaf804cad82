"""An MCP server over standard input and output that behaves as its arguments say.

Usage: mcp_server.py BEHAVIOUR [FILE]

FILE holds the names of its tools, one a line; with it, a change of the file is signalled.
"""

import json
import os
import sys
import threading
import time

behaviour = sys.argv[1]
names_file = sys.argv[2] if len(sys.argv) > 2 else None
modern = behaviour == "modern"
offering = behaviour == "offering"
lock = threading.Lock()
asked = []


def send(message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")) + "\n")
        sys.stdout.flush()


def names():
    if names_file is None:
        return ["read", "write"]
    with open(names_file) as file:
        return file.read().split()


def watch():
    """Signals changes of the file."""
    before = names()
    while True:
        time.sleep(0.02)
        if names() != before:
            before = names()
            send({"method": "notifications/tools/list_changed"})


def result(request, value):
    send({"id": request["id"], "result": {"resultType": "complete", **value}})


def error(request, code, message):
    send({"id": request["id"], "error": {"code": code, "message": message}})


def call(request):
    name, meta = request["params"]["name"], request["params"].get("_meta", {})
    if name == "slow":
        for step in range(3):
            send({"method": "notifications/progress",
                  "params": {"progressToken": meta["progressToken"], "progress": step + 1, "total": 3}})
        return
    if name == "ask":
        schema = {"type": "object", "properties": {"city": {"type": "string"}}}
        asked.append(request)
        send({"id": "q-1", "method": "elicitation/create", "params": {"message": "Where?", "requestedSchema": schema}})
        return
    if name == "picture":
        image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
        return result(request, {"content": [{"type": "text", "text": "see"}, image]})
    if name == "die":
        print("it hurts", file=sys.stderr, flush=True)
        os._exit(3)
    if name == "large":
        return result(request, {"content": [{"type": "text", "text": "x" * (17 * 1024 * 1024)}]})
    if name == "long":
        return result(request, {"content": [{"type": "text", "text": "x" * 100_000}]})
    if name == "environment":
        return result(request, {"content": [], "structuredContent": dict(os.environ)})
    if name == "note":
        with open("noted", "a") as file:
            file.write("x")
        return result(request, {"content": []})
    if name == "pid":
        return result(request, {"content": [], "structuredContent": os.getpid()})
    result(request, {"content": [{"type": "text", "text": "done"}], "structuredContent": request["params"]["arguments"]})


def offered(request):
    """The answer about prompts and resources."""
    params = request.get("params", {})
    return {
        "prompts/list": {"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]},
        "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello"}}]},
        "resources/list": {"resources": [{"uri": "test://a", "name": "a"}]},
        "resources/read": {"contents": [{"uri": params.get("uri"), "text": "Content"}]},
        "resources/subscribe": {},
        "resources/unsubscribe": {},
        "completion/complete": {"completion": {"values": ["Ada"]}},
    }.get(request.get("method"))


def handle(request):
    method = request.get("method")
    if "result" in request and asked:
        given = request["result"].get("content", {})
        return result(asked.pop(), {"content": [{"type": "text", "text": given.get("city", "no city")}]})
    print("got " + str(method), file=sys.stderr, flush=True)
    if method == "server/discover":
        if behaviour == "strict":
            sys.exit("unexpected message before initialize")
        if behaviour == "silent":
            return
        if modern:
            return result(request, {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}},
                                    "ttlMs": 0, "cacheScope": "private"})
        return error(request, -32601, "Method not found")
    if method == "initialize":
        if modern:
            return error(request, -32022, "this connection is modern")
        more = {"prompts": {}, "resources": {"subscribe": True}, "completions": {}} if offering else {}
        return result(request, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}, **more},
                                "serverInfo": {"name": "child", "version": "1"}})
    if method == "tools/list":
        return result(request, {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names()]})
    if offering and (answer := offered(request)) is not None:
        result(request, answer)
        if method == "resources/subscribe":
            send({"method": "notifications/resources/updated", "params": request["params"]})
        return
    if method == "subscriptions/listen":
        return send({"method": "notifications/subscriptions/acknowledged", "params": {}})
    if method == "tools/call":
        return call(request)
    if method == "notifications/cancelled":
        print("cancelled " + str(request["params"]["requestId"]), file=sys.stderr, flush=True)
    elif "id" in request:
        error(request, -32601, "Method not found")


if behaviour == "exits":
    sys.exit("no configuration file")
if behaviour == "noisy":
    print("Starting up...\n{\"not\": \"a message\"}", flush=True)
    sys.stdout.buffer.write(b"\xff\xfe\n")
    sys.stderr.write("noise\n" * 200_000)
if names_file is not None:
    threading.Thread(target=watch, daemon=True).start()
for line in sys.stdin:
    handle(json.loads(line))
