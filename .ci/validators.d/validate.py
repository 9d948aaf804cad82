"""Feeds every export of a real daemon to the vendors' own client libraries, to the MCP SDK and to the metaschema of JSON Schema; and
turns, the vendors' responses and the messages with their results.

Usage: validate.py BINARY. Wants nothing rejected; says which tool, format and library otherwise, and exits 1. The tools are those of
fixtures/validators/hostile.json, and the real ones of the corpus where it is there. All traffic is on loopback.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import agents
import rules
import turns
from daemon import Daemon

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VARIANTS = [
    *[(format, {}) for format in rules.FORMATS],
    *[(format, {"strict": "true"}) for format in ("openai", "openai-responses", "anthropic")],
    *[(format, {"cache": "true"}) for format in ("anthropic", "bedrock")],
    ("anthropic", {"strict": "true", "cache": "true"}),
]
# Failures shown one by one.
SHOWN = 40


def real_manifests():
    """The 527 tools of 70 MCP servers, each server as a scenario; nothing without the corpus."""
    corpus = Path(os.environ.get("CALLSHEET_CORPUS") or ROOT / "../shared/corpus", "schemas/livemcpbench.json")
    if not corpus.exists():
        return []
    manifests = []
    for number, server in enumerate(json.loads(corpus.read_text())):
        tools = [tool for part in server["tools"].values() for tool in part["tools"]]
        manifests.append(manifest(f"real-{number:02}", tools))
    return manifests


def manifest(name, tools):
    keys = {"name": "name", "description": "description", "inputSchema": "parameters"}
    tools = [{ours: tool[theirs] for theirs, ours in keys.items() if tool.get(theirs) is not None} for tool in tools]
    tools = [{**tool, "metadata": {"enabled_by_default": True}} for tool in tools]
    return {"protocol_version": "1.0", "scenario": {"name": name, "version": "1.0.0"}, "tools": tools}


class Report:
    """What passed and what was rejected."""

    def __init__(self):
        self.passed, self.failures, self.known = 0, [], set()

    def fail(self, what, said):
        """One rejection; what several lists show of the same tool is told once."""
        if what not in self.known:
            self.known.add(what)
            self.failures.append(f"{what}: {' '.join(said.split())[:600]}")

    def turn(self, label, judge):
        """One response, and whoever judges what it comes to by raising what they like."""
        said = raised(lambda _: judge(), None)
        if said is None:
            self.passed += 1
        else:
            self.fail(label, said)

    def list(self, format, label, library, export, judge):
        """A list and whoever judges it by raising what they like. One that is rejected is taken apart, to name the tool."""
        said = raised(judge, export)
        if said is None:
            self.passed += 1
            return
        alone = {rules.name(format, tool): raised(judge, rules.only(format, export, tool)) for tool in rules.tools(format, export)}
        blamed = {name: said for name, said in alone.items() if said is not None}
        for name, one in blamed.items():
            self.fail(f"{label}, {library}, tool `{name}`", one)
        if not blamed:
            self.fail(f"{label}, {library}, list of {len(alone)} tools", said)


def raised(judge, export):
    """What a library says against an export; nothing when it takes it."""
    try:
        judge(export)
    except Exception as error:  # noqa: BLE001 - libraries raise what they like
        return f"{type(error).__name__}: {error}"
    return None


def judges(format):
    """What looks at each list of a format, by name."""
    from vendors import CLIENTS

    found = {"rules": lambda export: rules.obeyed(format, export), "metaschema": lambda export: rules.schemas(format, export)}
    if client := CLIENTS.get(format):
        found[client.__name__] = lambda export: rules.same(format, client(export), export)
    return found


def mcp(results, report):
    """The MCP TypeScript SDK, in Node."""
    node = subprocess.run(
        ["node", HERE / "mcp.mjs"], input=json.dumps(results), capture_output=True, text=True, timeout=120, check=False,
        cwd=os.environ["VALIDATORS_NODE"],
    )
    if node.returncode != 0:
        raise SystemExit(f"the MCP SDK did not run: {node.stderr}")
    answer = json.loads(node.stdout)
    report.passed += answer["passed"]
    report.failures += answer["failures"]


def asks(daemon, options):
    """Which lists are asked for: all tools at once, and what one gets by default. Where strict places are few in one request, also the
    list of each scenario."""
    yield {"max_tools": 0}
    yield {}
    if "strict" in options:
        yield from ({"scenario": name} for name in daemon.names)


def main(binary):
    hostile = json.loads((ROOT / "fixtures/validators/hostile.json").read_text())
    report, lines, results = Report(), [], []
    with tempfile.TemporaryDirectory() as home, Daemon(binary, home, [*hostile, *real_manifests(), turns.MANIFEST, *agents.MANIFESTS]) as daemon:
        offered = len(daemon.export("native")["tools"])
        for format, options in VARIANTS:
            label, found, strict = " ".join([format, *options]), judges(format), set()
            for ask in asks(daemon, options):
                export = daemon.export(format, **options, **ask)
                listed = rules.tools(format, export)
                strict |= {rules.name(format, tool) for tool in listed if rules.is_strict(format, tool)}
                if "max_tools" in ask:
                    lines.append(f"{label:32} {len(listed):5} of {offered}")
                if format == "mcp":
                    results.append({"label": label, "result": export})
                for library, judge in found.items() if listed else ():
                    report.list(format, label, library, export, judge)
            if strict:
                lines[-1] += f", {len(strict)} strictly"
            report.list(format, label, "nothing", daemon.export(format, **options, scenario="nobody"), lambda e: rules.is_empty(format, e))
        turns.judge(daemon, report)
        agents.judge(daemon, report)
    mcp(results, report)
    print("\n".join(lines))
    for failure in report.failures[:SHOWN]:
        print(f"REJECTED {failure}", file=sys.stderr)
    if len(report.failures) > SHOWN:
        print(f"... and {len(report.failures) - SHOWN} more", file=sys.stderr)
    print(f"validators: {report.passed} passed, {len(report.failures)} failed")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
