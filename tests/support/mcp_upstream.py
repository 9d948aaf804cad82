"""An MCP server that behaves the same over every transport and in both eras.

Usage: mcp_upstream.py modern-http | legacy-http | sse | stdio-modern | stdio-legacy

Over HTTP it prints its port first. Tools: echo, fail, slow (reports progress), hang (until it is
cancelled), ask (needs the name of the user), cancelled (how many calls were, or with the argument count:
asked how many questions were), hanging (how many calls are), grow
(adds a tool).
"""

import json
import queue
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

kind = sys.argv[1]
modern = "modern" in kind
tools = ["ask", "cancelled", "echo", "fail", "grow", "hang", "hanging", "slow"]
lock = threading.Lock()
listeners, waiting, replies, counts = [], {}, {}, {"cancelled": 0, "asked": 0}
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
FORM = {"message": "Name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


def text(value, **more):
    return {"resultType": "complete", "content": [{"type": "text", "text": value}], **more}


def cancel(request_id):
    with lock:
        counts["cancelled"] += 1
        event = waiting.get(request_id)
    if event:
        event.set()


def ask(send):
    with lock:
        counts["asked"] += 1
        request_id = "q-" + str(counts["asked"])
        reply = replies[request_id] = queue.Queue()
    send({"jsonrpc": "2.0", "id": request_id, "method": "elicitation/create", "params": FORM})
    return reply.get(timeout=30).get("result", {})


def call(request, send, alive):
    """The result of a call; `alive` fails when the client of this call has gone."""
    params = request["params"]
    name, meta = params["name"], params.get("_meta", {})
    if name == "fail":
        return text("no such city", isError=True)
    if name == "slow":
        for step in (1, 2):
            send({"jsonrpc": "2.0", "method": "notifications/progress",
                  "params": {"progressToken": meta["progressToken"], "progress": step, "total": 2}})
        return text("done")
    if name == "hang":
        event = threading.Event()
        with lock:
            waiting[request["id"]] = event
        while not event.wait(0.02):
            alive()
        return None
    if name == "ask":
        if not modern:
            answer = ask(send)
        elif "inputResponses" in params:
            assert params["requestState"] == "inner"
            answer = params["inputResponses"]["who"]
        else:
            return {"resultType": "input_required", "requestState": "inner",
                    "inputRequests": {"who": {"method": "elicitation/create", "params": FORM}}}
        return text(answer.get("content", {}).get("name", answer.get("action", "none")))
    if name == "cancelled":
        return text(str(counts[params.get("arguments", {}).get("count", "cancelled")]))
    if name == "hanging":
        return text(str(len(waiting)))
    if name == "grow":
        tools.append("new")
        for listener in list(listeners):
            listener.put(CHANGED)
        return text("grown")
    return text(json.dumps(params["arguments"]), structuredContent=params["arguments"])


def answer(request, send, alive):
    """The answer to a request; `None` for none."""
    method = request["method"]
    reply = lambda result: {"jsonrpc": "2.0", "id": request["id"], "result": result}
    if method == "server/discover" and modern:
        return reply({"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                      "capabilities": {"tools": {"listChanged": True}}})
    if method == "initialize" and not modern:
        return reply({"protocolVersion": "2024-11-05" if kind == "sse" else "2025-11-25",
                      "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "old", "version": "1"}})
    if method == "ping":
        return reply({})
    if method == "tools/list":
        return reply({"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                      "tools": [{"name": name, "inputSchema": {"type": "object"}} for name in sorted(tools)]})
    if method == "tools/call":
        result = call(request, send, alive)
        return result and reply(result)
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "Method not found"}}


def without_answer(message):
    """Takes a notification or a reply. Returns whether it was one."""
    if "method" not in message:
        replies[message["id"]].put(message)
    elif message["method"] == "notifications/cancelled":
        cancel(message["params"]["requestId"])
    elif "id" in message:
        return False
    return True


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def empty(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, message, name="message"):
        data = message if isinstance(message, str) else json.dumps(message)
        with lock:
            self.wfile.write(f"event: {name}\ndata: {data}\n\n".encode())
            self.wfile.flush()

    def alive(self):
        self.wfile.write(b": alive\n\n")
        self.wfile.flush()

    def follow(self, own):
        try:
            while True:
                try:
                    self.event(own.get(timeout=0.1))
                except queue.Empty:
                    self.alive()
        except OSError:
            listeners.remove(own)

    def do_GET(self):
        if modern:
            return self.empty(405)
        self.stream()
        own = queue.Queue()
        if kind == "sse":
            self.event("/message", "endpoint")
        listeners.append(own)
        self.follow(own)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if kind == "sse":
            if self.path != "/message":
                return self.empty(405)
            self.empty(202)
            if not without_answer(message):
                # In a thread of its own: the connection takes the next message meanwhile.
                send = lambda sent: [listener.put(sent) for listener in list(listeners)]
                threading.Thread(target=respond, args=(message, send), daemon=True).start()
            return
        if without_answer(message):
            return self.empty(202)
        if message["method"] == "subscriptions/listen" and modern:
            self.stream()
            self.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}})
            own = queue.Queue()
            listeners.append(own)
            return self.follow(own)
        if message["method"] == "tools/call":
            self.stream()
            try:
                replied = answer(message, self.event, self.alive if modern else lambda: None)
                if replied:
                    self.event(replied)
            except OSError:
                cancel(message["id"])
            return
        body = json.dumps(answer(message, None, None)).encode()
        unknown = b'"error"' in body
        self.send_response(404 if unknown and modern else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def write(message):
    with lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


class Output:
    put = staticmethod(write)


def respond(message, send):
    replied = answer(message, send, lambda: None)
    if replied:
        send(replied)


if kind.startswith("stdio"):
    listeners.append(Output)
    for line in sys.stdin:
        message = json.loads(line)
        if without_answer(message):
            continue
        if message["method"] == "subscriptions/listen" and modern:
            write({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}})
            continue
        threading.Thread(target=respond, args=(message, write), daemon=True).start()
else:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()
