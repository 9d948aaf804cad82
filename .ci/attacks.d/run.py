"""Runs each attack against a daemon of its own, and judges what it did to the daemon and to other clients.

Usage: run.py PROGRAM [NAME...]

Judged for each: the daemon lives, its resident memory stays below 1 GiB, and of 100 requests each for `/healthz`, the list and the approvals
the 99th percentile stays within a second while the attack goes on. Some attacks have a check of their own.
"""

import io
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from pathlib import Path

import wire
from daemon import BASE, Daemon, processes, until

HERE = Path(__file__).resolve().parent
MEMORY_MAX = 1 << 30
WAIT_MAX = 1.0
ROUTES = ["/healthz", "/api/v1/tools", "/api/v1/approvals"]
REQUESTS = 100
TOKEN = "an-operator-token-of-these-attacks"


def program(behaviour, count=1):
    """The configuration of so many servers of `server.py`."""
    command = json.dumps([str(HERE / "server.py"), behaviour])
    mark = '{ CALLSHEET_PEER = "attack" }'
    names = ["attack", *(f"attack-{number}" for number in range(1, count))]
    servers = [f'{{ name = "{name}", command = "{sys.executable}", args = {command}, env = {mark} }}' for name in names]
    return [f"scenarios = [{', '.join(servers)}]"]


def ready(daemon):
    """Waits until the server has been listed."""
    until("the server is live", lambda: daemon.scenarios().get("attack", {}).get("state") == "live")


class Watch:
    """The resident memory of the daemon, and the time of other clients' requests."""

    def __init__(self, daemon):
        self.daemon, self.peak, self.took, self.failed, self.on = daemon, 0, [], [], True
        self.threads = [threading.Thread(target=self.measure), threading.Thread(target=self.request)]
        for thread in self.threads:
            thread.start()

    def measure(self):
        while self.on:
            self.peak = max(self.peak, resident(self.daemon))
            time.sleep(0.02)

    def request(self):
        for number in range(REQUESTS):
            for route in ROUTES:
                began = time.monotonic()
                try:
                    status, _ = self.daemon.send("GET", route, patience=20)
                    if status >= 500:
                        self.failed.append(f"{route} {status}")
                except OSError as error:
                    self.failed.append(f"{route} {error}")
                self.took.append(time.monotonic() - began)
            time.sleep(0.05)

    def over(self):
        self.threads[1].join()
        self.on = False
        self.threads[0].join()
        took = sorted(self.took)
        return self.peak, took[int(len(took) * 0.99)], self.failed


def resident(daemon):
    """The bytes of the daemon that are in memory; 0 once it is gone."""
    try:
        status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    except OSError:
        return 0
    line = next((line for line in status.splitlines() if line.startswith("VmRSS:")), "VmRSS: 0 kB")
    return int(line.split()[1]) * 1024


def used(daemon):
    """The seconds of processor time that the daemon took."""
    fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def hold(open_ones, seconds=6):
    """Keeps connections as they are for a while."""
    time.sleep(seconds)
    for one in open_ones:
        one.close()


def answered_beside(daemon):
    """Requests on new connections, while the attack has opened more than the daemon keeps. A few of them are lost in the figures."""
    for _ in range(20):
        began = time.monotonic()
        daemon.send("GET", "/healthz", patience=20)
        if time.monotonic() - began > WAIT_MAX:
            raise AssertionError(f"beside a full table a request took {time.monotonic() - began:.2f} s")


def unread_answers(daemon):
    """Large pages on streams whose client takes no byte."""
    held = []
    for path in ["/docs", "/openapi.json", "/dashboard"]:
        for _ in range(14):
            connection = wire.drained(wire.http2(daemon.address, window=0))
            wire.begun(connection, 200, daemon.address, "GET", path)
            held.append(connection)
    hold(held)


def unread_lists(daemon):
    """Lists of 3 MB that all differ, on streams whose client takes no byte."""
    held = []
    for number in range(30):
        connection = wire.drained(wire.http2(daemon.address, window=0))
        for stream in range(32):
            path = f"/api/v1/tools?max_tools={2_999 - number * 32 - stream}"
            wire.begun(connection, 1, daemon.address, "GET", path, first=stream)
        held.append(connection)
    hold(held)


def flooded_pages(daemon):
    """300 clients request pages and tool sets, one after the other."""
    over = time.monotonic() + 8

    def flood(path):
        while time.monotonic() < over:
            try:
                daemon.send("GET", path, patience=20)
            except OSError:
                pass

    paths = ["/docs", "/dashboard/tools", "/dashboard/scenarios/attack/model", "/api/v1/tools/set"]
    clients = [threading.Thread(target=flood, args=(paths[number % 4],)) for number in range(300)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()


def many_filters(daemon):
    """900 subscribers, each with a filter of its own, while 3,000 tools change their names."""
    held = []
    for number in range(900):
        connection = wire.drained(wire.plain(daemon.address))
        target = f"/api/v1/events?max_tools={number + 1}"
        connection.sendall(f"GET {target} HTTP/1.1\r\nHost: {daemon.address}\r\n\r\n".encode())
        held.append(connection)
    for _ in range(8):
        daemon.send("POST", "/api/v1/scenarios/attack/refresh", {}, patience=20)
        time.sleep(1)
    hold(held, 1)


def unread_approvals(daemon):
    """Answers that are made for each request, on streams whose client takes no byte."""
    for number in range(33):
        arguments = {"number": number, "text": "z" * 900_000}
        daemon.call("wipe", arguments)
    held = []
    for _ in range(20):
        connection = wire.drained(wire.http2(daemon.address, window=0))
        wire.begun(connection, 200, daemon.address, "GET", "/api/v1/approvals")
        held.append(connection)
    hold(held)


def unended_bodies(daemon):
    """Bodies of HTTP/2 that lack their last byte: as many bytes as the windows allow, on 20 connections of 200 streams."""
    held = []
    for _ in range(20):
        connection = wire.drained(wire.http2(daemon.address))
        try:
            wire.begun(connection, 200, daemon.address, "POST", "/api/v1/tools/execute", "application/json", wire.END_HEADERS)
            for _ in range(60):
                for stream in range(200):
                    connection.sendall(wire.frame(wire.DATA, 0, 1 + 2 * stream, b"x" * 16_000))
        except OSError:
            pass
        held.append(connection)
    hold(held)


def unended_plain_bodies(daemon):
    """Bodies of HTTP/1.1 that lack their last byte."""
    held = []
    for _ in range(2_000):
        connection = wire.plain(daemon.address)
        held.append(connection)
        try:
            head = f"POST /api/v1/tools/execute HTTP/1.1\r\nHost: {daemon.address}\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"
            connection.sendall(head.encode() + b"x" * 999_999)
        except OSError:
            pass
    hold(held)


def on_all_connections(daemon, sent):
    """More connections than the daemon keeps, on each of which these bytes were sent."""
    held = []
    for _ in range(4_300):
        connection = quietly(wire.plain, daemon.address, 1)
        if connection:
            quietly(connection.sendall, sent)
            held.append(connection)
    return held


def half_heads(daemon):
    """More connections than the daemon keeps, each with half a head."""
    held = on_all_connections(daemon, b"GET / HTTP/1.1\r\nHost: loc")
    answered_beside(daemon)
    hold(held)


def half_bodies(daemon):
    """More connections than the daemon keeps, each with half of a small body."""
    head = f"POST /api/v1/tools/execute HTTP/1.1\r\nHost: {daemon.address}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    held = on_all_connections(daemon, head.encode() + b"{")
    answered_beside(daemon)
    hold(held)


def idle_connections(daemon):
    """More connections than the daemon keeps, each with one request from time to time."""
    request = f"GET /healthz HTTP/1.1\r\nHost: {daemon.address}\r\n\r\n".encode()
    held = on_all_connections(daemon, request)
    answered_beside(daemon)
    code, said = daemon.command("approvals")
    if code != 0:
        raise AssertionError(f"`callsheet approvals` ended with {code}: {said[:300]}")
    hold(held)


def large_heads(daemon):
    """More connections than the daemon keeps, each with 400 KB of a head that does not end."""
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"".join(b"X-%d: " % number + b"y" * 50_000 + b"\r\n" for number in range(8))
    held = on_all_connections(daemon, head)
    answered_beside(daemon)
    hold(held)


def waiting_turn(daemon):
    """The path that waits for a turn until a person approves its call, or for ten minutes."""
    calls = [{"type": "tool_use", "id": "t", "name": "wipe", "input": {}}]
    status, text = daemon.send("POST", "/api/v1/turns?format=anthropic", {"role": "assistant", "content": calls})
    if status != 202:
        raise AssertionError(f"the turn was answered {status}: {text[:300]}")
    return f"/api/v1/turns/{json.loads(text)['turn_id']}?wait=600"


def waiting_turns(daemon):
    """More connections than the daemon keeps, each with a request that waits for a turn."""
    request = f"GET {waiting_turn(daemon)} HTTP/1.1\r\nHost: {daemon.address}\r\n\r\n".encode()
    held = on_all_connections(daemon, request)
    answered_beside(daemon)
    hold(held)


def waiting_streams(daemon):
    """The same on 30 streams of each of 2,000 connections of HTTP/2."""
    path = waiting_turn(daemon)
    held = []
    for _ in range(2_000):
        connection = quietly(wire.http2, daemon.address)
        if connection:
            quietly(wire.begun, connection, 30, daemon.address, "GET", path)
            held.append(connection)
    answered_beside(daemon)
    hold(held)


def unread_pongs(daemon):
    """WebSockets whose clients send pings and read none of the answers."""
    ends = time.monotonic() + 8
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
    head = f"GET /api/v1/ws?kind=finding HTTP/1.1\r\nHost: {daemon.address}\r\n{upgrade}\r\n\r\n".encode()
    # 125 bytes, with a mask of zeros.
    pings = (bytes([0x89, 0xFD, 0, 0, 0, 0]) + b"p" * 125) * 1_000

    def send():
        while time.monotonic() < ends:
            try:
                connection = wire.plain(daemon.address, patience=1)
                connection.sendall(head)
                while time.monotonic() < ends:
                    connection.sendall(pings)
            except OSError:
                time.sleep(0.01)

    senders = [threading.Thread(target=send) for _ in range(4)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()


def frames(daemon):
    """Frames that cost their sender little and request no work: four connections of each kind."""
    ends = time.monotonic() + 6
    kinds = [
        wire.frame(wire.PING, 0, 0, b"12345678") * 500,
        wire.frame(wire.SETTINGS, 0, 0, bytes([0, 4, 0, 0, 255, 255])) * 300,
        wire.frame(wire.WINDOW_UPDATE, 0, 0, bytes([0, 0, 0, 1])) * 300,
    ]

    def send(kind):
        while time.monotonic() < ends:
            try:
                connection = wire.drained(wire.http2(daemon.address))
                while time.monotonic() < ends:
                    connection.sendall(kind)
            except OSError:
                time.sleep(0.01)

    senders = [threading.Thread(target=send, args=(kind,)) for kind in kinds for _ in range(4)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()


def large_turns(daemon):
    """Eight turns at once, each of 128 calls with results of 3.9 MB; one client reads its answer."""
    calls = [{"type": "tool_use", "id": f"t{number}", "name": "work", "input": {}} for number in range(128)]
    body = json.dumps({"role": "assistant", "content": calls}).encode()
    held = [wire.post(daemon.address, "/api/v1/turns?format=anthropic", body) for _ in range(7)]
    status, text = daemon.send("POST", "/api/v1/turns?format=anthropic", json.loads(body), patience=120)
    if status >= 500 and status != 503:
        raise AssertionError(f"a turn was answered {status}: {text[:300]}")
    hold(held)


def unread_turns(daemon):
    """One kept turn of some 15 MB, requested by 60 clients that read no byte of it."""
    calls = [{"type": "tool_use", "id": f"t{number}", "name": "work", "input": {}} for number in range(4)]
    status, text = daemon.send("POST", "/api/v1/turns?format=anthropic", {"role": "assistant", "content": calls}, patience=60)
    if status != 200:
        raise AssertionError(f"the turn was answered {status}: {text[:300]}")
    held = [wire.plain(daemon.address) for _ in range(60)]
    for connection in held:
        connection.sendall(f"GET /api/v1/turns/{json.loads(text)['turn_id']} HTTP/1.1\r\nHost: {daemon.address}\r\n\r\n".encode())
    hold(held)


def waiting_calls(daemon):
    """Calls of a tool that does not answer, with arguments of 900 KB, and their clients stay."""
    body = json.dumps({"tool_name": "work", "arguments": {"text": "y" * 900_000}}).encode()
    hold([sent for sent in (quietly(wire.post, daemon.address, "/api/v1/tools/execute", body) for _ in range(2_500)) if sent])


def dense_bodies(daemon):
    """Bodies of nearly 1 MB of empty arrays, which are large as trees, on every face."""
    dense = "[" + "[]," * 310_000 + "0]"
    call = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"work","arguments":{{"x":{dense}}}}}}}'
    bodies = {
        "/api/v1/tools/execute": f'{{"tool_name":"work","arguments":{{"x":{dense}}}}}',
        "/api/v1/turns?format=anthropic": f'{{"role":"assistant","content":[{{"type":"tool_use","id":"t","name":"work","input":{{"x":{dense}}}}}]}}',
        "/mcp": call,
        "/rpc": call,
    }
    held = []
    for path, body in bodies.items():
        held += [sent for sent in (quietly(wire.post, daemon.address, path, body.encode()) for _ in range(150)) if sent]
    hold(held)


def quietly(function, *arguments):
    """What a function gives, or `None` if the daemon refused the connection."""
    try:
        return function(*arguments)
    except OSError:
        return None


def dense_archives(daemon):
    """Small archives of stored tools that are large as trees; a restart after them has to work."""
    made = "2026-01-05T10:00:00Z"
    statuses = []
    for number in range(3):
        bundle = f"01900000-0000-7000-8000-0000000000{number:02x}"
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            names = {"schemaVersion": "2025-07-01", "id": bundle, "slug": f"dense-{number}", "displayName": "Dense", "isEnabled": True}
            archive.writestr("bundle.json", json.dumps({**names, "createdAt": made, "modifiedAt": made}))
            for tool in range(250):
                document = {
                    "schemaVersion": "2025-07-01", "bundleID": bundle, "slug": f"tool-{tool}", "version": "v1", "displayName": "Tool", "type": "http",
                    "isEnabled": True, "argSchema": {"type": "object"}, "impl": {"method": "GET", "urlTemplate": "http://127.0.0.1:9/"}, "createdAt": made,
                }
                text = json.dumps(document)
                archive.writestr(f"tool-{tool}.json", text[:-1] + ',"x":[' + "[]," * 83_000 + "0]}")
        statuses.append(upload(daemon, packed.getvalue()))
    if not all(200 <= status < 500 for status in statuses):
        raise AssertionError(f"archives were answered {statuses}")
    daemon.kill()
    with Daemon(daemon.binary, daemon.home) as again:
        until("the daemon starts again", lambda: again.send("GET", "/healthz")[0] == 200)
        if resident(again) > MEMORY_MAX // 2:
            raise AssertionError(f"after a restart it takes {resident(again) >> 20} MiB")


def upload(daemon, packed):
    """The status of an archive that was sent."""
    connection = wire.post(daemon.address, "/tools/bundles/archive", packed, "application/zip")
    connection.settimeout(60)
    first = connection.recv(4096)
    connection.close()
    return int(first.split(b" ")[1])


def approvals_of_one(daemon):
    """One caller requests more approvals than there are; another one still gets its own."""
    for number in range(1_100):
        daemon.call("wipe", {"number": number}, chat_id="flood")
    status, answer = daemon.call("work", {"number": 1}, chat_id="other")
    if status != 200:
        raise AssertionError(f"a call without approval was answered {status}: {answer}")
    status, answer = daemon.call("wipe", {"number": 1}, chat_id="other")
    if status != 202:
        raise AssertionError(f"another caller was answered {status}: {answer}")
    status, answer = daemon.call("wipe", {"number": -1}, chat_id="flood")
    if status != 202:
        raise AssertionError(f"the caller itself was answered {status}: {answer}")


def long_names(daemon):
    """Arguments with a name of nearly 1 MB, and many members below it that are taken out and named."""
    below = {"k" * 960_000: [{"a": None}] * 3_000}
    together([(daemon.call, "listed", below) for _ in range(32)])


def many_parts(daemon):
    """Arguments with many values for schemas with many parts."""
    members = {f"m{number}": 0 for number in range(70_000)}
    together([(daemon.call, "all", {"v": [{}] * 150_000 + [None]}), (daemon.call, "any", {"v": {**members, "none": None}})] * 2)


def hold_still(daemon):
    """The servers alone."""
    time.sleep(12)


def searches(daemon):
    """Searches that want the definitions of large tools."""
    ends = time.monotonic() + 8

    def search(number):
        while time.monotonic() < ends:
            quietly(daemon.send, "GET", f"/api/v1/tools/search?q=word+{number}&limit=100&format=native")

    together([(search, number) for number in range(80)])


def changing_lists(daemon):
    """Lists that change all the time, for as long as many of them are remembered."""
    time.sleep(90)


def changing_places(daemon):
    """The same, while another client reads what changed."""
    ends = time.monotonic() + 12
    while time.monotonic() < ends:
        for path in ["/api/v1/pins", "/api/v1/tools/tool_0/history", "/api/v1/log"]:
            daemon.send("GET", path, patience=20)


def unread_lines(daemon):
    """Clients of the socket of JSON-RPC that take none of their answers; a further one gets its own."""
    path = str(daemon.home / "rpc.sock")
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "work", "arguments": {}}}).encode() + b"\n"
    held = []
    for _ in range(64):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(20)
        client.connect(path)
        client.sendall(call * 2)
        held.append(client)
    time.sleep(4)
    with socket.socket(socket.AF_UNIX) as other:
        other.settimeout(20)
        other.connect(path)
        other.sendall(b'{"jsonrpc":"2.0","id":1,"method":"server/identity"}\n')
        if not other.recv(4096).startswith(b"{"):
            raise AssertionError("another client of the socket got no answer")
    hold(held)


def together(calls):
    """Calls at the same time, until all are answered."""
    threads = [threading.Thread(target=quietly, args=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def sessions(daemon):
    """Sessions of MCP with large capabilities, without end."""
    ends = time.monotonic() + 6
    params = {"protocolVersion": "2025-06-18", "capabilities": {"x" * 50: {"y": "z" * 50_000}}, "clientInfo": {"name": "n" * 200, "version": "1"}}
    while time.monotonic() < ends:
        daemon.post_mcp({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})


def program_flood(daemon):
    """A program that writes without end takes at most half of one processor of the daemon."""
    time.sleep(2)
    before = used(daemon)
    time.sleep(8)
    share = (used(daemon) - before) / 8
    if share > 0.5:
        raise AssertionError(f"the daemon used {share:.2f} of a processor")


def left_children(daemon):
    """Children of a program in sessions of their own end with the daemon."""
    until("the children are there", lambda: len(processes("attack")) > 20)
    daemon.process.terminate()
    daemon.killed = True
    daemon.process.wait(30)
    until("no child is left", lambda: not processes("attack"), patience=10)


APPROVALS = ['calls.require_approval = ["hint:destructive"]']
# The server of each attack, further configuration, and what it does.
ATTACKS = {
    "unread-answers": (None, [], unread_answers),
    "unread-lists": ("many", [], unread_lists),
    "flooded-pages": ("many", [], flooded_pages),
    "many-filters": ("many", [], many_filters),
    "unread-approvals": ("large", APPROVALS, unread_approvals),
    "unended-bodies": (None, [], unended_bodies),
    "unended-plain-bodies": (None, [], unended_plain_bodies),
    "half-heads": (None, [], half_heads),
    "half-bodies": (None, [], half_bodies),
    "idle-connections": (None, [], idle_connections),
    "frames": (None, [], frames),
    "large-heads": (None, [], large_heads),
    "waiting-turns": ("large", APPROVALS, waiting_turns),
    "waiting-streams": ("large", APPROVALS, waiting_streams),
    "unread-pongs": (None, [], unread_pongs),
    "large-turns": ("large", [], large_turns),
    "escaped-turns": ("escaped", [], large_turns),
    "unread-turns": ("large", [], unread_turns),
    "waiting-calls": ("hang", [], waiting_calls),
    "dense-bodies": ("hang", [], dense_bodies),
    "dense-archives": (None, ['bundles.path = "stored"', 'bundles.allowed_hosts = ["127.0.0.1"]'], dense_archives),
    "approvals-of-one": ("large", APPROVALS, approvals_of_one),
    "sessions": (None, [], sessions),
    "long-names": ("parts", [], long_names),
    "many-parts": ("parts", [], many_parts),
    "searches": ("parts", [], searches),
    "dense-offers": ("offers", [], hold_still),
    "changing-lists": ("versions", [], changing_lists),
    "changing-places": ("places", [], changing_places),
    "unread-lines": ("large", ['server.rpc_socket = "rpc.sock"'], unread_lines),
    "program-lines": ("flood", [], program_flood),
    "program-errors": ("errors", [], program_flood),
    "program-hints": ("hints", [], program_flood),
    "program-children": ("leave", [], left_children),
}
# So many servers of these attack together.
SEVERAL = {"dense-offers": 2, "changing-lists": 6}
# The daemon is gone or killed in these, so requests of others are not judged.
WITHOUT_OTHERS = {"dense-archives", "program-children"}


def judge(binary, name):
    """The findings of one attack, and a line about what it did."""
    server, settings, attack = ATTACKS[name]
    with tempfile.TemporaryDirectory() as home:
        lines = BASE + settings + (program(server, SEVERAL.get(name, 1)) if server else [])
        Path(home, "callsheet.toml").write_text("\n".join(lines) + "\n")
        with Daemon(binary, home) as daemon:
            if server:
                ready(daemon)
            problems = []
            watch = None if name in WITHOUT_OTHERS else Watch(daemon)
            try:
                attack(daemon)
            except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
                problems.append(str(error))
            if watch is None:
                return problems, ""
            peak, wait, failed = watch.over()
            if daemon.process.poll() is not None:
                problems.append("the daemon ended")
            if peak > MEMORY_MAX:
                problems.append(f"it took {peak >> 20} MiB")
            if wait > WAIT_MAX:
                problems.append(f"other clients waited {wait:.2f} s")
            if failed:
                problems.append(f"{len(failed)} requests of others failed, such as {failed[0]}")
            return problems, f"{peak >> 20:>6} MiB  p99 {wait * 1000:>7.1f} ms"


def main():
    binary, names = str(Path(sys.argv[1]).resolve()), sys.argv[2:] or list(ATTACKS)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    bad = 0
    for name in names:
        problems, figures = judge(binary, name)
        print(f"{name:<22} {figures:<32} {'; '.join(problems) or 'held'}", flush=True)
        bad += bool(problems)
    print(f"{len(names) - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)


main()
