"""Real servers behind a real daemon: taken over by `callsheet import`, listed, called, killed.

Usage: servers.py BINARY. Prints a line for each thing that does not hold, and exits 1. All traffic is on loopback.
"""

import json
import subprocess
import sys
import tempfile
import threading
import uuid
from pathlib import Path

import raw
from daemon import BASE, Daemon, Events, environment, processes, until
from peers import all_peers
from report import Report

# For calls that only end when they are cancelled, and for what no server signals.
CONFIGURATION = [*BASE, 'calls.max_timeout = "120s"', 'refresh.min_interval = "60s"']


def take_over(binary, home, peers):
    """Writes the file of a client, and lets the daemon's own command take it over."""
    client = home / "mcp.json"
    client.write_text(json.dumps({"mcpServers": {peer.name: peer.entry() for peer in peers}}))
    (home / "callsheet.toml").write_text("\n".join(CONFIGURATION) + "\n")
    done = subprocess.run(
        [binary, "import", "--write", "--config", str(home / "callsheet.toml"), str(client)], env=environment(home), cwd=home, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"import failed: {done.stdout}{done.stderr}")


def is_listed(daemon, peers):
    states = {name: one["state"] for name, one in daemon.scenarios().items()}
    waiting = [peer.name for peer in peers if states.get(peer.name) != "live"]
    return not waiting


def native(daemon, name):
    """The listed tools of a scenario by their own names, each with the texts of its members."""
    listed = raw.items(raw.members(daemon.get(f"/api/v1/tools?max_tools=0&scenario={name}"))["tools"])
    listed = [raw.members(tool) for tool in listed]
    return {json.loads(tool.get("original_name", tool["name"])): tool for tool in listed}


def same_bytes(daemon, peer, home):
    """Every tool is listed, with the bytes of its schema; one that is of 2020-12 also in the MCP format."""
    env = {"PATH": environment(home)["PATH"], "HOME": str(home), **peer.env}
    if peer.kind == "sse":
        return  # The same program as over HTTP; that its tools are the same is checked beside this.
    offered = raw.of_program(peer.command, env, home) if peer.is_program else raw.of_address(peer.url)
    # A tool that runs as a task only cannot be called, and is not listed.
    offered = {name: tool for name, tool in offered.items() if json.loads(tool.get("execution", "{}")).get("taskSupport") != "required"}
    listed = native(daemon, peer.name)
    assert offered.keys() == listed.keys(), f"offered {sorted(offered)}, listed {sorted(listed)}"
    exported = raw.tools(daemon.get(f"/api/v1/tools?format=mcp&max_tools=0&scenario={peer.name}"))
    for name, tool in offered.items():
        schema = tool["inputSchema"]
        assert listed[name]["parameters"] == schema, f"{name}: {listed[name]['parameters']} is not {schema}"
        if json.loads(schema).get("$schema", "2020-12").rstrip("#").endswith("2020-12") or "2020-12" in schema:
            published = json.loads(listed[name]["name"])
            assert exported[published]["inputSchema"] == schema, f"{name} in the MCP format: {exported[published]['inputSchema']}"


def a_call(daemon, peer):
    tool, arguments, part = peer.used["call"]
    status, answer = daemon.call(f"{peer.name}/{tool}", arguments)
    assert status == 200 and answer["success"] is True, answer
    assert part in json.dumps(answer["result"], ensure_ascii=False), answer
    assert isinstance(answer["content"]["content"], list), answer


def an_error(daemon, peer):
    tool, arguments, part = peer.used["error"]
    status, answer = daemon.call(f"{peer.name}/{tool}", arguments)
    assert status == 200 and answer["success"] is False, answer
    assert answer["code"] == "tool_error" and part in answer["error"] and answer["content"]["isError"] is True, answer


def progress(daemon, peer):
    """Each step of a call comes as an event, in order, and carries its id."""
    tool, arguments, steps = peer.used["progress"]
    call_id = str(uuid.uuid4())
    with Events(daemon, f"?kind=call&call_id={call_id}") as events:
        status, answer = daemon.call(f"{peer.name}/{tool}", arguments, call_id=call_id)
        assert status == 200 and answer["success"] is True, answer
        mine = [event for event in events.of("call") if event.get("call_id") == call_id]
        until(f"{steps} steps, came {mine}", lambda: len(seen(events, call_id)) >= steps, 5)
        numbers = [one["progress"] for one in seen(events, call_id)]
        assert numbers == sorted(set(numbers)), numbers


def seen(events, call_id):
    return [event for event in events.of("call") if event.get("call_id") == call_id and event.get("progress") is not None]


def cancel(daemon, peer):
    """A call that waits ends when it is cancelled, and its server hears of it."""
    tool, arguments, mark = peer.used["cancel"]
    call_id = str(uuid.uuid4())
    with Events(daemon, f"?kind=call&call_id={call_id}") as events:
        answers = []
        calling = threading.Thread(target=lambda: answers.append(daemon.call(f"{peer.name}/{tool}", arguments, call_id=call_id)), daemon=True)
        calling.start()
        until("the call runs", lambda: seen(events, call_id), 20)
        status, body = daemon.send("DELETE", f"/api/v1/calls/{call_id}")
        assert status in (200, 202, 204), (status, body)
        calling.join(20)
        assert answers, "the call goes on after it was cancelled"
        assert answers[0][1].get("success") is not True, answers
    until("the server heard of it", mark.exists, 20)


def grows(daemon, peer):
    """A tool that a server adds is listed within a moment: far sooner than it would be polled."""
    tool, arguments, name = peer.used["grow"]
    status, answer = daemon.call(f"{peer.name}/{tool}", arguments)
    assert status == 200 and answer["success"] is True, answer
    until(f"{name} is listed", lambda: name in native(daemon, peer.name), 5)
    status, answer = daemon.call(f"{peer.name}/{name}", {})
    assert status == 200 and name in json.dumps(answer["result"]), answer


def comes_back(daemon, peer, home):
    """A killed server says so, and its calls go through again after it came back."""
    if peer.is_program:
        before = daemon.child(peer.name)
        assert before, "no process has its mark"
        for process in processes(peer.name):
            subprocess.run(["kill", "-9", str(process)], check=False)
        until("the next process", lambda: daemon.child(peer.name) not in (None, before), 30)
    else:
        peer.stop()
        tool, arguments, _ = peer.used["call"]
        status, answer = daemon.call(f"{peer.name}/{tool}", arguments)
        assert status >= 500, (status, answer)
        until("its failure is shown", lambda: daemon.scenarios()[peer.name].get("last_error"), 30)
        peer.start(home)
        until("the server is there again", peer.is_reachable, 60)
        daemon.send("POST", f"/api/v1/scenarios/{peer.name}/refresh")
    until("live again", lambda: daemon.scenarios()[peer.name]["state"] == "live" and succeeds(daemon, peer), 60)


def succeeds(daemon, peer):
    tool, arguments, _ = peer.used["call"]
    if peer.name == "memory":
        tool, arguments = "read_graph", {}
    status, answer = daemon.call(f"{peer.name}/{tool}", arguments)
    return status == 200 and answer["success"]


def sse_is_the_same(daemon):
    over_http, over_sse = native(daemon, "everything-http"), native(daemon, "everything-sse")
    schemas = {name: tool["parameters"] for name, tool in over_http.items()}
    assert schemas == {name: tool["parameters"] for name, tool in over_sse.items()}


def no_orphans(daemon, peers):
    """A daemon that is killed leaves no process behind."""
    daemon.kill()
    programs = [peer.name for peer in peers if peer.is_program]
    until("no process is left", lambda: not [name for name in programs if processes(name)], 20)


def main(binary):
    report = Report("servers")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        peers = all_peers(home)
        served = [peer for peer in peers if not peer.is_program]
        try:
            for peer in served:
                peer.start(home)
            take_over(binary, home, peers)
            for peer in served:
                until(f"{peer.name} listens", peer.is_reachable)
            with Daemon(binary, home) as daemon:
                until("every server is live", lambda: is_listed(daemon, peers), 120)
                print(f"{len(json.loads(daemon.get('/api/v1/tools?max_tools=0'))['tools'])} tools of {len(peers)} servers are listed", flush=True)
                every(daemon, peers, home, report)
        except AssertionError:
            print(daemon.command("scenarios")[1], (home / "daemon.log").read_text()[-3000:], file=sys.stderr)
            raise
        finally:
            for peer in served:
                peer.stop()
    return report.end()


def every(daemon, peers, home, report):
    for peer in peers:
        report.check(f"{peer.name}: its tools and the bytes of their schemas", same_bytes, daemon, peer, home)
        report.check(f"{peer.name}: a call", a_call, daemon, peer)
        report.check(f"{peer.name}: an error of a tool", an_error, daemon, peer)
        for use, judge in (("progress", progress), ("cancel", cancel), ("grow", grows)):
            if use in peer.used:
                report.check(f"{peer.name}: {use}", judge, daemon, peer)
    report.check("everything over HTTP+SSE and over HTTP is the same", sse_is_the_same, daemon)
    for peer in peers:
        report.check(f"{peer.name}: killed and back", comes_back, daemon, peer, home)
    report.check("a killed daemon", no_orphans, daemon, peers)


if __name__ == "__main__":
    sys.exit(main(str(Path(sys.argv[1]).resolve())))
