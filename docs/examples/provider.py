"""A tool provider in one file: one tool, offered over the Tool Discovery Protocol.

    python3 provider.py 15000

Needs Python 3.8 or later and no package.
"""
import hashlib, json, random, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOL = {
    "name": "throw_dice",
    "description": "Throws dice and returns what each of them shows",
    "category": "games",
    "parameters": {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "description": "How many dice", "minimum": 1, "maximum": 20}
        },
        "required": ["count"],
    },
    "metadata": {"enabled_by_default": True},
}
MANIFEST = {
    "protocol_version": "1.0",
    "scenario": {"name": "dice", "version": "1.0.0", "description": "Throws dice"},
    "tools": [TOOL],
    "categories": [{"id": "games", "name": "Games"}],
    "generated_at": "2026-01-01T00:00:00Z",  # When the tools last changed.
}


class Provider(BaseHTTPRequestHandler):
    def do_GET(self):
        routes = {"/api/v1/tools": MANIFEST, "/api/v1/tools/throw_dice": TOOL}
        found = self.path in routes
        self.answer(200 if found else 404, routes.get(self.path, {"error": "no such tool"}))

    def do_POST(self):
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        shown = [random.randint(1, 6) for _ in range(call["arguments"]["count"])]
        self.answer(200, {"success": True, "result": {"shown": shown}})

    def answer(self, status, body):
        text = json.dumps(body).encode()
        tag = '"' + hashlib.sha256(text).hexdigest()[:16] + '"'
        known = self.command == "GET" and self.headers.get("If-None-Match") == tag
        self.send_response(304 if known else status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Cache-Control", "max-age=60")
        self.send_header("ETag", tag)
        if not known:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(b"" if known else text)


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Provider)
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
