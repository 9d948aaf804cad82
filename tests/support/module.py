"""A module as its authors write them, with nothing but the standard library.

    module.py MANIFEST [--port N] [--token TOKEN]

Answers GET /manifest, GET /health and POST /execute, and prints the port it listens at. What goes wrong in a tool is an answer like
any other: status 200 with `success` false. With a token, /manifest and /execute want it.

Every tool gives back what it was given. Arguments make it do otherwise: `fail` raises that text, `status` answers that status with the
text `say`, `hang` never answers.
"""

import argparse
import hashlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Module(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    manifest_path = ""
    token = None
    runs = 0
    lock = threading.Lock()

    def log_message(self, *_):
        pass

    def answer(self, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def let_in(self):
        if self.token is None:
            return True
        shown = self.headers.get("Authorization")
        if shown is None:
            self.answer(401, {"detail": "Missing service auth token"})
        elif shown != f"Bearer {self.token}":
            self.answer(401, {"detail": "Invalid service auth token"})
        else:
            return True
        return False

    def do_GET(self):
        if self.path == "/health":
            self.answer(200, {"status": "ok"})
        elif self.path != "/manifest":
            self.answer(404, {"detail": "Not Found"})
        elif self.let_in():
            with open(self.manifest_path, "rb") as file:
                manifest = file.read()
            tag = '"' + hashlib.sha1(manifest).hexdigest() + '"'
            if self.headers.get("If-None-Match") == tag:
                self.send_response(304)
                self.send_header("ETag", tag)
                self.end_headers()
            else:
                self.answer(200, manifest, [("ETag", tag)])

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/execute":
            self.answer(404, {"detail": "Not Found"})
            return
        if not self.let_in():
            return
        try:
            call = json.loads(body)
            name, arguments = call["tool_name"], call["arguments"]
        except (ValueError, KeyError, TypeError):
            self.answer(422, {"detail": "a call has a tool_name and arguments"})
            return
        with Module.lock:
            Module.runs += 1
        if arguments.get("hang"):
            threading.Event().wait()
        if "status" in arguments:
            self.answer(arguments["status"], arguments.get("say", "").encode())
            return
        outcome = {"tool_name": name, "success": True, "result": None, "error": None}
        try:
            outcome["result"] = self.run(name, arguments, call)
        except Exception as problem:
            outcome.update(success=False, error=str(problem))
        self.answer(200, outcome)

    def run(self, name, arguments, call):
        with open(self.manifest_path, "rb") as file:
            known = [tool["name"] for tool in json.load(file)["tools"]]
        if name not in known:
            raise LookupError(f"Unknown tool: {name}")
        if "fail" in arguments:
            raise RuntimeError(arguments["fail"])
        return {"received": call, "runs": Module.runs}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("manifest")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--token")
    given = options.parse_args()
    Module.manifest_path, Module.token = given.manifest, given.token
    server = ThreadingHTTPServer(("127.0.0.1", given.port), Module)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    # Ends with whoever started it: its standard input is closed then.
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
