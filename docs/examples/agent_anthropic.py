"""Answers a question with Anthropic's library and every tool in callsheet's list.

    MODEL=... python3 agent_anthropic.py "Note two lemons"

Needs the package `anthropic`, and callsheet.py from clients/python beside this file.
"""
import os, sys
from anthropic import Anthropic
from callsheet import Callsheet

llm, sheet = Anthropic(), Callsheet("anthropic")
messages = [{"role": "user", "content": sys.argv[1]}]
while True:
    reply = llm.messages.create(model=os.environ["MODEL"], max_tokens=1000, messages=messages, tools=sheet.tools())
    messages.append({"role": "assistant", "content": reply.content})
    turn = sheet.run(reply)
    if not turn.calls:
        break
    messages += turn.messages
print(reply.content[-1].text)
