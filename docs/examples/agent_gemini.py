"""Answers a question with Google's library and every tool in callsheet's list.

    MODEL=... python3 agent_gemini.py "Note two lemons"

Needs the package `google-genai`, and callsheet.py from clients/python beside this file.
"""
import os, sys
from callsheet import Callsheet
from google import genai

llm, sheet = genai.Client(), Callsheet("gemini")
contents = [{"role": "user", "parts": [{"text": sys.argv[1]}]}]
while True:
    config = {"tools": sheet.tools(), "automatic_function_calling": {"disable": True}}
    reply = llm.models.generate_content(model=os.environ["MODEL"], contents=contents, config=config)
    contents.append(reply.candidates[0].content)
    turn = sheet.run(reply)
    if not turn.calls:
        break
    contents += turn.messages
print(reply.text)
