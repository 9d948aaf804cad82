"""The public conformance suite against callsheet: as a server, in front of a fixture of the project's own, and as a client.

Usage: conformance.py BINARY, beside which `examples/mcp_client` stands. A scenario that fails has to stand in the file of its run under `baseline/`, and one that stands
there has to fail: the files may only shrink. All traffic is on loopback.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from daemon import BASE, Daemon, environment, until
from peers import HERE, MODULES, NODE, Peer, free_port

SUITE = MODULES / "@modelcontextprotocol/conformance/dist/index.js"
# The suite wants bare names, and lets its server ask for everything that a client can give.
CONFIGURATION = [*BASE, 'mcp.naming = "on-collision"']
SCENARIO = 'interaction = ["elicitation", "sampling", "roots"]'
# Run beside those that count: of schemas, and of headers.
BESIDE = ["json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"]


class Failures(list):
    """What did not hold."""

    def run(self, label, arguments, output):
        """Runs the suite once, and prints how many scenarios passed."""
        done = subprocess.run(
            [NODE, SUITE, *arguments], env={**os.environ, "NO_COLOR": "1", "RUST_BACKTRACE": "0"}, capture_output=True, text=True, timeout=240, check=False, cwd=output
        )
        text = done.stdout + done.stderr
        lines = [re.sub(r"\x1b\[\d+m", "", line).strip() for line in text.splitlines()]
        heading = next((at for at, line in enumerate(lines) if line.endswith("SUMMARY ===")), 0)
        summary = lines[heading:]
        of = len(scored(arguments))
        print(f"conformance, {label}: {of - len(may_fail(label))} of {of} scenarios, {'as' if done.returncode == 0 else 'not as'} it has to be", flush=True)
        if done.returncode != 0:
            self.append(label)
            (output / f"{label}.txt").write_text(text)
            print("\n".join(summary[-100:]), file=sys.stderr, flush=True)


def scored(arguments):
    """The scenarios that count in a run: those that a revision requires of a server or a client, or the one that is named."""
    if "--requirements" not in arguments:
        return [arguments[arguments.index("--scenario") + 1]]
    revision = arguments[arguments.index("--requirements") + 1]
    text = (SUITE.parent.parent / "requirements" / f"{revision}.yaml").read_text()
    part = re.search(rf"^{arguments[0]}:\n((?:  - .*\n)+)", text, re.MULTILINE).group(1)
    return part.splitlines()


def file_of(name):
    return HERE / "baseline" / f"{name}.yaml"


def may_fail(name):
    """The scenarios that may fail, and have to."""
    file = file_of(name)
    return [line.strip("- \n") for line in file.read_text().splitlines() if line.startswith("  - ")] if file.exists() else []


def baseline(name):
    """The argument that names what may fail, where something may."""
    return ["--expected-failures", file_of(name)] if may_fail(name) else []


def as_server(binary, folder, failures):
    """Each era of the suite, with the fixture behind callsheet in the same era and in the other one."""
    for era in ("modern", "legacy"):
        home = folder / era
        home.mkdir()
        fixture = Peer("fixture", [sys.executable, HERE / "fixture/server.py", port := free_port(), era], port)
        fixture.start(home)
        try:
            until("the fixture listens", fixture.is_reachable)
            scenario = ["[[scenarios]]", 'name = "fixture"', f"url = {json.dumps(fixture.url)}", SCENARIO]
            (home / "callsheet.toml").write_text("\n".join([*CONFIGURATION, *scenario]) + "\n")
            with Daemon(binary, home) as daemon:
                until("the fixture is live", lambda: daemon.scenarios().get("fixture", {}).get("state") == "live")
                for revision in ("2026-07-28", "2025-11-25"):
                    name = f"server-{revision}-on-{era}"
                    url = ["server", "--url", f"{daemon.url}/mcp"]
                    failures.run(name, [*url, "--requirements", revision, *baseline(name)], home)
                if era == "modern":
                    for one in BESIDE:
                        failures.run(one, [*url, "--scenario", one, "--spec-version", "2026-07-28", *baseline(one)], home)
        finally:
            fixture.stop()


def as_client(client, folder, failures):
    """Callsheet's own client code, in a program that does what each scenario of the suite wants."""
    for revision in ("2026-07-28", "2025-11-25"):
        name = f"client-{revision}"
        failures.run(name, ["client", "--command", client, "--requirements", revision, *baseline(name)], folder)
        # Among those that do not count: whether schemas come through the client as they were sent.
        name = f"json-schema-2020-12-preservation-{revision}"
        one = ["--scenario", "json-schema-2020-12-preservation", "--spec-version", revision]
        failures.run(name, ["client", "--command", client, *one, *baseline(name)], folder)


def main(binary):
    failures = Failures()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        as_server(binary, folder, failures)
        as_client(str(Path(binary).parent / "examples/mcp_client"), folder, failures)
    for failure in failures:
        print(f"FAILED {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(str(Path(sys.argv[1]).resolve())))
