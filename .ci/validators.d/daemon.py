"""A real daemon on loopback that lists given manifests: each is served by a scenario of its own, over HTTP."""

import http.client
import json
import os
import subprocess
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PATIENCE = 60.0


def serve(handler):
    """Starts a server on a free port of loopback; it ends with this process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def scenario(manifest):
    """The port of a scenario that offers this manifest. Its tools do nothing, and say so."""
    body = json.dumps(manifest).encode()

    class Manifest(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            known = self.path == "/api/v1/tools"
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body) if known else 0))
            self.end_headers()
            self.wfile.write(body if known else b"")

        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            known = self.path == "/api/v1/tools/execute"
            answer = json.dumps({"success": True, "result": {"done": "nothing"}}).encode() if known else b""
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    return serve(Manifest)


class Daemon:
    """`callsheet serve` in a home of its own; `with` stops it."""

    def __init__(self, binary, home, manifests):
        self.names = [manifest["scenario"]["name"] for manifest in manifests]
        lines = ['server.listen = "127.0.0.1:0"', "discovery.mdns.enabled = false"]
        lines += ["discovery.vrooli.enabled = false", "discovery.environment.enabled = false"]
        for name, manifest in zip(self.names, manifests):
            lines += ["[[scenarios]]", f"name = {json.dumps(name)}", f'url = "http://127.0.0.1:{scenario(manifest)}"']
        Path(home, "callsheet.toml").write_text("\n".join(lines) + "\n")
        environment = {"HOME": str(home), "PATH": os.environ.get("PATH", ""), "CALLSHEET_LOG": "error"}
        self.process = subprocess.Popen(
            [str(binary), "serve"], cwd=home, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        said = self.process.stdout.readline().strip()
        if "http://" not in said:
            raise SystemExit(f"the daemon did not start: {said!r}")
        self.address = urllib.parse.urlsplit(said[said.index("http://") :]).netloc

    def __enter__(self):
        deadline = time.monotonic() + PATIENCE
        while True:
            listed = self.get("/api/v1/scenarios")["scenarios"]
            states = {one["name"]: one["state"] for one in listed}
            waiting = [name for name in self.names if states.get(name) != "live"]
            if not waiting:
                return self
            if time.monotonic() > deadline:
                raise SystemExit(f"not live after {PATIENCE:.0f} s: {waiting}")
            time.sleep(0.05)

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def get(self, path):
        """The JSON answer of a route."""
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise SystemExit(f"{path} answered {answer.status}: {body[:300]!r}")
        return json.loads(body)

    def export(self, format, **options):
        """A list in a format."""
        return self.get("/api/v1/tools?" + urllib.parse.urlencode({"format": format, **options}))
