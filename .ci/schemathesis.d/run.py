"""Runs Schemathesis against a real daemon with two small scenarios. Usage: run.py BINARY PLACE [ARGUMENT...].

All checks, in all phases, with a fixed seed. Ends with 1 when a check fails, or when the daemon counted a 5xx or does not live any more.
"""

import os
import subprocess
import sys
import tempfile
import urllib.request
from http.server import ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "validators.d"))

from daemon import Daemon  # noqa: E402 - found only now

# A daemon that is told to ask again lets go of the answer that it waits for; that is no news.
ThreadingHTTPServer.handle_error = lambda *_: None

SEED = "20261122"
# Test cases of each operation in the phases that invent them.
EXAMPLES = "40"


def tool(name, about, **metadata):
    parameters = {"type": "object", "properties": {"path": {"type": "string", "description": "Where it is"}}}
    return {
        "name": name, "description": about, "category": "disk", "parameters": parameters,
        "metadata": {"enabled_by_default": True, "tags": ["read"], **metadata},
    }


def manifest(name, *tools):
    categories = [{"id": "disk", "name": "Disk"}]
    return {
        "protocol_version": "1.0", "scenario": {"name": name, "version": "1.0.0", "description": "For tests"},
        "tools": list(tools), "categories": categories, "generated_at": "2026-03-01T09:30:00Z",
    }


MANIFESTS = [
    manifest("files", tool("read_text", "Reads a file"), tool("delete_file", "Deletes a file", requires_approval=True), tool("search_text", "Searches files")),
    manifest("notes", tool("add_note", "Writes a note down"), tool("search_text", "Searches notes"), tool("hidden", "For programs", internal_only=True)),
]


def failures(address):
    """The counters of requests that were answered with a 5xx, as the daemon itself counted them, and how many counters there are."""
    request = urllib.request.Request(f"http://{address}/metrics", headers={"Accept": "text/plain"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    requests = [line for line in lines if line.startswith("callsheet_http_requests_total{")]
    return [line for line in requests if 'status="5' in line and not line.endswith(" 0")], len(requests)


def main(binary, place, arguments):
    with tempfile.TemporaryDirectory() as home, Daemon(binary, home, MANIFESTS) as daemon:
        command = [
            str(Path(sys.executable).parent / "schemathesis"), "--config-file", str(HERE / "schemathesis.toml"),
            "run", f"http://{daemon.address}/openapi.json", "--checks", "all",
            "--phases", "examples,coverage,fuzzing,stateful", "--seed", SEED, "--max-examples", EXAMPLES,
            # One worker: Python 3.11 parses in one thread at a time only ("AST constructor recursion depth mismatch").
            "--workers", "1", "--request-timeout", "20", "--continue-on-failure", "--no-color", *arguments,
        ]
        environment = {**os.environ, "PYTHONPATH": str(HERE), "SCHEMATHESIS_HOOKS": "hooks"}
        ended = subprocess.run(command, cwd=place, env=environment, check=False).returncode
        failed, counted = failures(daemon.address)
        # Its authorization servers do not exist here.
        failed = [line for line in failed if '{name}/login"' not in line]
        if failed:
            print("answered with a 5xx:", *failed, sep="\n  ")
        if daemon.process.poll() is not None or counted == 0:
            print("the daemon does not live any more")
            failed.append("gone")
    sys.exit(1 if ended or failed else 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
