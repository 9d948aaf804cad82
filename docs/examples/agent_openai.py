"""Answers a question with OpenAI's library (Responses) and every tool in callsheet's list.

    MODEL=... python3 agent_openai.py "Note two lemons"

Needs the package `openai`, and callsheet.py from clients/python beside this file.
"""
import os, sys
from callsheet import Callsheet
from openai import OpenAI

llm, sheet = OpenAI(), Callsheet("openai-responses")
items = [{"role": "user", "content": sys.argv[1]}]
while True:
    reply = llm.responses.create(model=os.environ["MODEL"], input=items, tools=sheet.tools())
    items += reply.output
    turn = sheet.run(reply)
    if not turn.calls:
        break
    items += turn.messages
print(reply.output_text)
