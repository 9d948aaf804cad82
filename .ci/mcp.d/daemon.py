"""A real daemon on loopback, with what a test asks of it: over HTTP, by its command line, and about its children."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
from pathlib import Path

PATIENCE = 60.0
BASE = [
    'server.listen = "127.0.0.1:0"',
    "discovery.mdns.enabled = false",
    "discovery.vrooli.enabled = false",
    "discovery.environment.enabled = false",
]


def until(what, condition, patience=PATIENCE):
    """Waits until the condition gives something, and gives that."""
    deadline = time.monotonic() + patience
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {patience:.0f} s: {what}")
        time.sleep(0.02)


def environment(home):
    """What the daemon and its commands see: a home of their own, and nothing of the machine's."""
    return {"HOME": str(home), "PATH": os.environ.get("PATH", ""), "CALLSHEET_LOG": "error"}


class Daemon:
    """`callsheet serve` in a home of its own, with the configuration that is there; `with` stops it."""

    def __init__(self, binary, home):
        self.binary, self.home = str(binary), Path(home)
        self.killed = False
        self.log = open(self.home / "daemon.log", "w")
        self.process = subprocess.Popen(
            [self.binary, "serve"], cwd=home, env=environment(home), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        said = self.process.stdout.readline().strip()
        if "http://" not in said:
            raise SystemExit(f"the daemon did not start: {said!r}\n{(self.home / 'daemon.log').read_text()}")
        self.address = urllib.parse.urlsplit(said[said.index("http://") :]).netloc
        self.url = f"http://{self.address}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        ended = self.process.poll()
        if ended is not None and not self.killed:
            print(f"the daemon ended by itself, with {ended}: {(self.home / 'daemon.log').read_text()[-3000:]}", file=sys.stderr)
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.close()

    def kill(self):
        """Ends the daemon so that it can do nothing about it."""
        self.killed = True
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def send(self, method, path, body=None, patience=PATIENCE):
        """The status and the body of an answer."""
        connection = http.client.HTTPConnection(self.address, timeout=patience)
        try:
            headers = {"Content-Type": "application/json"} if body is not None else {}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def post_mcp(self, message, more=None):
        """The headers that the next message needs, and the body of an answer of `/mcp`."""
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE)
        try:
            headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **(more or {})}
            connection.request("POST", "/mcp", json.dumps(message), headers)
            answer = connection.getresponse()
            session = answer.getheader("Mcp-Session-Id")
            return ({"Mcp-Session-Id": session} if session else {}), answer.read().decode()
        finally:
            connection.close()

    def get(self, path):
        """The text of a route that has to answer."""
        status, body = self.send("GET", path)
        if status != 200:
            raise AssertionError(f"{path} answered {status}: {body[:300]}")
        return body

    def scenarios(self):
        """The scenarios by name."""
        return {one["name"]: one for one in json.loads(self.get("/api/v1/scenarios"))["scenarios"]}

    def call(self, tool, arguments, **more):
        """The outcome of a call."""
        status, body = self.send("POST", "/api/v1/tools/execute", {"tool_name": tool, "arguments": arguments, **more})
        return status, json.loads(body)

    def command(self, *arguments):
        """What a command prints."""
        done = subprocess.run(
            [self.binary, *arguments, "--url", self.url], env=environment(self.home), cwd=self.home, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        return done.returncode, done.stdout + done.stderr

    def child(self, name):
        """The process of a scenario that the daemon started, by the mark in its environment."""
        found = processes(name)
        return min(found) if found else None


def processes(name):
    """The processes whose environment has the mark of a scenario."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"CALLSHEET_PEER={name}\0".encode() in (entry / "environ").read_bytes() and (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except (OSError, PermissionError):
                continue
    return found


class Events:
    """The events of the daemon while they are read."""

    def __init__(self, daemon, query=""):
        self.connection = http.client.HTTPConnection(daemon.address, timeout=PATIENCE)
        self.connection.request("GET", f"/api/v1/events{query}")
        self.answer = self.connection.getresponse()
        if self.answer.status != 200:
            raise AssertionError(f"events answered {self.answer.status}: {self.answer.read()[:300]}")
        self.came, self.kinds = [], []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.sock and self.connection.sock.close()

    def read(self):
        kind = None
        try:
            for said in self.answer:
                said = said.decode().rstrip("\r\n")
                if said.startswith("event:"):
                    kind = said.removeprefix("event:").strip()
                elif said.startswith("data:"):
                    self.came.append((kind, json.loads(said.removeprefix("data:"))))
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            return

    def of(self, kind):
        """The events of a kind so far."""
        return [data for was, data in list(self.came) if was == kind]
