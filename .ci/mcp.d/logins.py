"""Servers behind OAuth: listed and called after one `callsheet login`, over renewals of the token and a restart of the daemon.

Usage: logins.py BINARY. Prints a line for each thing that does not hold, and exits 1. All traffic is on loopback.
"""

import json
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

from daemon import BASE, Daemon, environment, until
from peers import HERE, NODE, PLACE, PYTHON, Peer, free_port
from report import Report

CONFIGURATION = [*BASE, 'state.path = "state.db"', 'refresh.backoff_base = "100ms"', 'refresh.backoff_max = "1s"']


class Guarded(Peer):
    """A server behind OAuth."""

    def __init__(self, name, interpreter, script, folder):
        self.marks = folder / f"{name}-marks"
        self.marks.mkdir()
        port = free_port()
        super().__init__(name, [interpreter, HERE / "servers" / script, self.marks, port], port, env={"MCP_PLACE": str(PLACE)})

    def given(self):
        """How many tokens it has given."""
        return len(list(self.marks.glob("given-*")))


def state(daemon, name):
    return daemon.scenarios()[name]["state"]


def adds(daemon, name):
    """Whether its tool can be called."""
    status, answer = daemon.call(f"{name}/add", {"a": 19, "b": 23})
    assert status == 200 and answer["success"] is True and "42" in json.dumps(answer["result"]), (status, answer)
    return True


def wants_a_login(daemon, peer):
    until("it wants a login", lambda: state(daemon, peer.name) == "needs-authorization")
    findings = json.loads(daemon.get("/api/v1/findings"))["findings"]
    mine = [one for one in findings if one.get("scenario") == peer.name]
    assert any(f"callsheet login {peer.name}" in json.dumps(one) for one in mine), mine


def log_in(daemon, peer):
    """What a person does: opens the address that the command prints, and is led back to the command."""
    command = [daemon.binary, "login", peer.name, "--no-browser", "--url", daemon.url]
    login = subprocess.Popen(command, env=environment(daemon.home), cwd=daemon.home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = next((line.strip() for line in login.stderr if line.strip().startswith("http://")), None)
        assert address, login.stderr.read()
        asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query))
        assert asked["resource"] == peer.url and asked["code_challenge_method"] == "S256" and asked["scope"] == "tools", asked
        with urllib.request.urlopen(address, timeout=30) as page:
            assert "You are logged in." in page.read().decode()
        said = login.stdout.read()
        assert login.wait(30) == 0 and "renews this by itself" in said, (said, login.stderr.read())
    finally:
        login.kill()
    until("live", lambda: state(daemon, peer.name) == "live")
    tools = [tool["name"] for tool in json.loads(daemon.get(f"/api/v1/tools?scenario={peer.name}"))["tools"]]
    assert len(tools) == 1, tools
    assert adds(daemon, peer.name) and peer.given() == 1, peer.given()


def renews(daemon, peer):
    """Calls go on while the token is renewed twice."""
    before = peer.given()
    until("two renewals", lambda: adds(daemon, peer.name) and peer.given() >= before + 2, 30)


def logs_out(daemon, peer):
    code, said = daemon.command("logout", peer.name)
    assert code == 0 and "revoked the tokens" in said, said
    for kind in ("refresh", "access"):
        assert (peer.marks / f"revoked-{kind}").exists(), kind
    until("it wants a login again", lambda: state(daemon, peer.name) == "needs-authorization")


def main(binary):
    report = Report("logins")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        peers = [Guarded("guarded-python", PYTHON, "guarded.py", home), Guarded("guarded-node", NODE, "guarded.mjs", home)]
        entries = [f'[[scenarios]]\nname = "{peer.name}"\nurl = "{peer.url}"' for peer in peers]
        (home / "callsheet.toml").write_text("\n".join([*CONFIGURATION, *entries]) + "\n")
        try:
            for peer in peers:
                peer.start(home)
            for peer in peers:
                until(f"{peer.name} listens", peer.is_reachable)
            with Daemon(binary, home) as daemon:
                for peer in peers:
                    report.check(f"{peer.name}: wants a login", wants_a_login, daemon, peer)
                    report.check(f"{peer.name}: one login", log_in, daemon, peer)
                    report.check(f"{peer.name}: renewals", renews, daemon, peer)
            # No login is needed: the one that was stored is renewed.
            with Daemon(binary, home) as daemon:
                for peer in peers:
                    report.check(f"{peer.name}: a restart", until, "live", lambda name=peer.name: state(daemon, name) == "live" and adds(daemon, name))
                    report.check(f"{peer.name}: renewals after the restart", renews, daemon, peer)
                    report.check(f"{peer.name}: logout", logs_out, daemon, peer)
        finally:
            for peer in peers:
                peer.stop()
    return report.end()


if __name__ == "__main__":
    sys.exit(main(str(Path(sys.argv[1]).resolve())))
