"""Answers a question with an LLM that may call every tool in callsheet's list.

    OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_MODEL=... python3 agent.py "Note two lemons"

Needs Python 3.9 or later and no package. Any server with OpenAI's chat completions will do;
OPENAI_API_KEY is sent if it is set.
"""
import json, os, sys, urllib.request

CALLSHEET = os.environ.get("CALLSHEET_URL", "http://127.0.0.1:7400")
LLM = os.environ["OPENAI_BASE_URL"]
KEY = {"Authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "none")}


def send(url, body=None, headers={}):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", **headers}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as answer:
        return json.load(answer), answer.headers


messages, reply = [{"role": "user", "content": sys.argv[1]}], None
while reply is None or reply.get("tool_calls"):
    tools, headers = send(f"{CALLSHEET}/api/v1/tools?format=openai")
    chat = {"model": os.environ["OPENAI_MODEL"], "messages": messages}
    if tools:  # OpenAI refuses an empty list.
        chat["tools"] = tools
    reply = send(f"{LLM}/chat/completions", chat, KEY)[0]["choices"][0]["message"]
    messages.append(reply)
    turn = {"response": reply, "revision": headers["Callsheet-Revision"], "own_tools": [], "approvals": "tell"}
    messages += send(f"{CALLSHEET}/api/v1/turns?format=openai", turn)[0]["messages"]
print(reply["content"])
