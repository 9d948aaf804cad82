"""A command line whose subcommands are the tools of a JSON-RPC server, callsheet or another one.

    RPC_URL=http://127.0.0.1:7400/rpc python3 rpc_client.py add_note --text "two lemons"

Needs Python 3.9 or later and no package. The list is kept, and requested again when the identity of
the server differs or a call was for an old definition. `--help` lists the tools, and `TOOL --help` its parameters.
"""
import argparse, json, os, pathlib, sys, urllib.request

URL = os.environ.get("RPC_URL", "http://127.0.0.1:7400/rpc")
CACHE = pathlib.Path(os.environ.get("RPC_CACHE", pathlib.Path.home() / ".rpc_client.json"))


def rpc(method, params={}):
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    sent = urllib.request.Request(URL, request, {"Content-Type": "application/json"})
    with urllib.request.urlopen(sent) as answer:
        answer = json.load(answer)
    if "result" in answer:
        return answer["result"]
    if "stale_definition" in json.dumps(answer["error"].get("data")):
        CACHE.unlink(missing_ok=True)
    sys.exit(f"refused: {json.dumps(answer['error'])}")


def known_tools():
    identity = [URL, rpc("server/identity")]
    kept = json.loads(CACHE.read_text()) if CACHE.exists() else {}
    if kept.get("identity") != identity:
        kept = {"identity": identity, "tools": rpc("tools/list")["tools"]}
        CACHE.write_text(json.dumps(kept))
    return kept["tools"]


parser = argparse.ArgumentParser(description="Runs a tool.")
commands = parser.add_subparsers(dest="", metavar="TOOL", required=True)
versions = {}
for tool in known_tools():
    # A server that gives definitions versions refuses a call of another one than the kept list has.
    versions[tool["name"]] = tool.get("definition_version")
    about, schema = tool["description"].replace("%", "%%"), tool["inputSchema"]
    command = commands.add_parser(tool["name"], help=about, description=about, conflict_handler="resolve")
    for name, value in schema.get("properties", {}).items():
        kind = str if value.get("type") == "string" else json.loads
        about, needed = value.get("description", "").replace("%", "%%"), name in schema.get("required", [])
        command.add_argument("--" + name, dest=name, type=kind, choices=value.get("enum"), required=needed, help=about)
given = vars(parser.parse_args())
call = {"name": given.pop(""), "arguments": {name: value for name, value in given.items() if value is not None}}
if versions[call["name"]]:
    call["definition_version"] = versions[call["name"]]
print(json.dumps(rpc("tools/call", call)))
