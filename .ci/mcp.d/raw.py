"""JSON as it was written, and the list of a server's tools as the server itself wrote it.

What callsheet lists is compared byte for byte, so nothing here may parse a schema and write it anew.
"""

import http.client
import json
import subprocess
import threading
import urllib.parse
from json.decoder import scanstring

PATIENCE = 60.0
DECODER = json.JSONDecoder()
SPACE = " \t\r\n"
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "bare", "version": "1"},
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    "io.modelcontextprotocol/clientInfo": INITIALIZE["clientInfo"],
}


def members(text):
    """The members of an object, each with the text of its value."""
    found, at = {}, skip(text, skip(text, 0, "{"))
    while text[at] != "}":
        key, at = scanstring(text, at + 1, True)
        at = skip(text, skip(text, at, ":"))
        _, end = DECODER.raw_decode(text, at)
        found[key] = text[at:end]
        at = skip(text, end, ",")
        at = skip(text, at)
    return found


def items(text):
    """The items of a list, as text."""
    found, at = [], skip(text, skip(text, 0, "["))
    while text[at] != "]":
        _, end = DECODER.raw_decode(text, at)
        found.append(text[at:end])
        at = skip(text, skip(text, end, ","))
    return found


def skip(text, at, sign=""):
    """The place behind white space and, where it stands there, this sign."""
    while text[at] in SPACE:
        at += 1
    return at + 1 if sign and text[at] == sign else at


def tools(result):
    """The tools of the text of a list, by name: each with the texts of its members."""
    listed = (members(tool) for tool in items(members(result)["tools"]))
    return {json.loads(tool["name"]): tool for tool in listed}


def line(method, params, number=None):
    """A message, as text."""
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if number is None else {**message, "id": number})


def listed(ask, tell):
    """The tools of a server in the era that it prefers: a server may write the same schema in another order of members in each.

    `ask` sends a request and gives the text of its answer, `tell` sends a notification.
    """
    if "result" in members(ask(line("server/discover", {"_meta": META}, 0), 0, "server/discover")):
        return tools(members(ask(line("tools/list", {"_meta": META}, 1), 1, "tools/list"))["result"])
    ask(line("initialize", INITIALIZE, 2), 2, None)
    tell(line("notifications/initialized", {}))
    return tools(members(ask(line("tools/list", {}, 3), 3, None))["result"])


def of_program(command, environment, folder):
    """The tools of a server that is started for this."""
    process = subprocess.Popen(
        command, env=environment, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    timer = threading.Timer(PATIENCE, process.kill)
    timer.start()

    def ask(message, number, _):
        print(message, file=process.stdin, flush=True)
        for said in process.stdout:
            if members(said).get("id") == str(number):
                return said
        raise AssertionError(f"{command} ended and did not answer {message}")

    try:
        return listed(ask, lambda message: print(message, file=process.stdin, flush=True))
    finally:
        timer.cancel()
        process.kill()
        process.wait()


def of_address(url):
    """The tools of a server over Streamable HTTP."""
    parts = urllib.parse.urlsplit(url)
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def post(body, more):
        connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE)
        try:
            connection.request("POST", parts.path, body, {**headers, **more})
            answer = connection.getresponse()
            return answer, answer.read().decode()
        finally:
            connection.close()

    def ask(message, number, method):
        modern = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method} if method else {}
        answer, body = post(message, modern)
        if number == 2 and (session := answer.getheader("Mcp-Session-Id")):
            headers["Mcp-Session-Id"] = session
        if "text/event-stream" in answer.getheader("Content-Type", ""):
            data = (said.removeprefix("data:").strip() for said in body.splitlines() if said.startswith("data:"))
            body = next(said for said in data if said and members(said).get("id") == str(number))
        if number == 2:
            headers["MCP-Protocol-Version"] = INITIALIZE["protocolVersion"]
        return body

    return listed(ask, lambda message: post(message, {}))
