"""Real clients in front of a real daemon: each lists the tools of three kinds of providers at once, calls one of each, and sees a change.

Usage: clients.py BINARY. The providers are one of the Tool Discovery Protocol, a module and an MCP server. All traffic is on loopback.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from daemon import BASE, Daemon, environment, until
from peers import HERE, MODULES, NODE, PLACE, PYTHON, PYTHON_1, Peer, free_port
from report import Report

ROOT = HERE.parent.parent
MODULE = {
    "module_name": "greeter",
    "tools": [
        {
            "name": "greeter.greet",
            "description": "Greets somebody.",
            "parameters": [{"name": "name", "type": "string", "description": "Whom", "required": True}],
            "required_permission": "guest",
        }
    ],
}


def module():
    """The address of a module that greets."""

    class Module(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def reply(self, status, value):
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            answers = {"/manifest": MODULE, "/health": {"status": "ok"}}
            self.reply(200 if self.path in answers else 404, answers.get(self.path, {}))

        def do_POST(self):
            call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.reply(200, {"success": True, "result": {"text": f"hello {call['arguments']['name']}"}})

    server = ThreadingHTTPServer(("127.0.0.1", 0), Module)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def published(daemon):
    """The names under which a client sees the tools, by the tools' own names."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    begun = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}}}
    headers = daemon.post_mcp(begun)[0]
    body = daemon.post_mcp(message, headers)[1]
    names = [tool["name"] for tool in json.loads(body)["result"]["tools"]]

    def of(own):
        found = [name for name in names if name == own or name.endswith(f"_{own}")]
        assert len(found) == 1, f"{own} in {names}"
        return found[0]

    return {own: of(own) for own in ("throw_dice", "greet", "add", "grow")}


def texts(result):
    return " ".join(block.get("text", "") for block in result["content"])


class Clients:
    """The daemon with its three providers, and what every client is to do."""

    def __init__(self, daemon, home):
        self.daemon, self.home, self.url, self.count = daemon, home, f"{daemon.url}/mcp", 0
        self.names = published(daemon)
        self.environment = {**environment(home), "CALLSHEET_URL": daemon.url}
        calls = {"throw_dice": {"count": 2}, "greet": {"name": "Ada"}, "add": {"a": 19, "b": 23}}
        self.calls = [[self.names[own], arguments] for own, arguments in calls.items()]

    def next(self):
        """What the MCP server is to add, which no client before has seen."""
        self.count += 1
        return f"came_{self.count}"

    def run(self, command, target, **more):
        """Runs a client and judges what it saw."""
        new = self.next()
        asked = {"target": target, "calls": self.calls, "grow": [self.names["grow"], {"name": new}], "environment": self.environment, **more}
        done = subprocess.run(
            [str(part) for part in command], input=json.dumps(asked), cwd=PLACE / "node", env={**os.environ, **self.environment}, capture_output=True, text=True, timeout=90, check=False
        )
        assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-1500:]}"
        said = json.loads(done.stdout.strip().splitlines()[-1])
        self.judge(said["tools"], said["results"])
        assert any(name.endswith(new) for name in said["changed"]), f"{new} is not in {said['changed']}"
        return said

    def judge(self, tools, results):
        assert set(self.names.values()) <= set(tools), f"{self.names} are not all in {tools}"
        dice, greeting, sum_ = (texts(result) for result in results)
        assert "shown" in dice and "hello Ada" in greeting and "42" in sum_, (dice, greeting, sum_)

    def modern(self, command, target, **more):
        """The same for a client that finds out the era."""
        said = self.run(command, target, **more)
        assert said["version"] == "2026-07-28", said["version"]

    def inspector(self):
        """The command line of the Inspector, which is a new client at each step."""

        def step(method, *arguments):
            command = [NODE, MODULES / ".bin/mcp-inspector", "--cli", self.url, "--transport", "http", "--method", method, *arguments]
            done = subprocess.run([str(part) for part in command], cwd=self.home, env=self.environment, capture_output=True, text=True, timeout=90, check=False)
            assert done.returncode == 0, f"{method}: exit code {done.returncode}: {done.stderr[-1500:]}"
            return json.loads(done.stdout)

        def call(name, arguments):
            pairs = [f"{key}={value}" for key, value in arguments.items()]
            return step("tools/call", "--tool-name", name, "--tool-arg", *pairs)

        tools = [tool["name"] for tool in step("tools/list")["tools"]]
        self.judge(tools, [call(name, arguments) for name, arguments in self.calls])
        new = self.next()
        call(self.names["grow"], {"name": new})
        until("the new tool", lambda: any(tool["name"].endswith(new) for tool in step("tools/list")["tools"]), 20)


def every(clients, report):
    here = HERE / "clients"
    front = [clients.daemon.binary, "mcp"]
    remote = [str(NODE), str(MODULES / ".bin/mcp-remote"), clients.url, "--allow-http"]
    report.check("MCP Inspector", clients.inspector)
    report.check("TypeScript SDK v1", clients.run, [NODE, here / "sdk_v1.mjs"], clients.url)
    report.check("TypeScript SDK v1 through `callsheet mcp`", clients.run, [NODE, here / "sdk_v1.mjs"], front)
    report.check("TypeScript SDK v1 through mcp-remote", clients.run, [NODE, here / "sdk_v1.mjs"], remote)
    report.check("TypeScript SDK v2", clients.modern, [NODE, here / "sdk_v2.mjs"], clients.url)
    report.check("Python SDK 1.x", clients.run, [PYTHON_1, here / "sdk1.py"], clients.url)
    report.check("Python SDK 2.x", clients.modern, [PYTHON, here / "sdk2.py"], clients.url)
    report.check("Python SDK 2.x through `callsheet mcp`", clients.modern, [PYTHON, here / "sdk2.py"], front)
    report.check("FastMCP, 2026-07-28", clients.run, [PYTHON, here / "fast.py"], clients.url, mode="auto")
    report.check("FastMCP, with a handshake", clients.run, [PYTHON, here / "fast.py"], clients.url, mode="legacy")


def main(binary):
    report = Report("clients")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        dice = Peer("dice", [sys.executable, ROOT / "docs/examples/provider.py", port := free_port()], port, path="")
        dice.start(home)
        try:
            until("the provider listens", dice.is_reachable)
            server = [str(PYTHON_1), str(HERE / "servers/sdk1.py"), str(home)]
            lines = [
                *BASE,
                "[[scenarios]]\nname = \"dice\"",
                f"url = {json.dumps(dice.url)}",
                "[[scenarios]]\nname = \"numbers\"",
                f"command = {json.dumps(server[0])}\nargs = {json.dumps(server[1:])}",
                f"[modules]\ngreeter = {json.dumps(module())}",
            ]
            (home / "callsheet.toml").write_text("\n".join(lines) + "\n")
            with Daemon(binary, home) as daemon:
                until("three providers are live", lambda: [one["state"] for one in daemon.scenarios().values()] == ["live"] * 3)
                every(Clients(daemon, home), report)
        finally:
            dice.stop()
    return report.end()


if __name__ == "__main__":
    sys.exit(main(str(Path(sys.argv[1]).resolve())))
