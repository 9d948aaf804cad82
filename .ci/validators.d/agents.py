"""The agents in docs/examples that use the vendors' own libraries: each has a conversation of three turns with tools of three scenarios,
against a scripted vendor.
"""

import os
import subprocess
import sys
from pathlib import Path

import vendors

ROOT = Path(__file__).resolve().parent.parent.parent
SCENARIOS = ["agent-notes", "agent-mails", "agent-files"]
TURNS = [("agent_note", {"text": "lemons"}), ("agent_mail", {"text": "lemons"}), ("agent_file", {"text": "lemons"})]


def manifest(scenario, tool):
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    tools = [{"name": tool, "description": "Takes a text", "parameters": parameters, "metadata": {"enabled_by_default": True}}]
    return {"protocol_version": "1.0", "scenario": {"name": scenario, "version": "1.0.0"}, "tools": tools}


MANIFESTS = [manifest(scenario, tool) for scenario, (tool, _) in zip(SCENARIOS, TURNS)]


def anthropic_script():
    answer = vendors.ANSWERS["/messages"]
    for number, (name, arguments) in enumerate(TURNS):
        block = {"type": "tool_use", "id": f"c{number}", "name": name, "input": arguments}
        yield {**answer, "stop_reason": "tool_use", "content": [block]}
    yield {**answer, "content": [{"type": "text", "text": "Noted."}]}


def openai_script():
    answer = vendors.ANSWERS["/responses"]
    for number, (name, arguments) in enumerate(TURNS):
        item = {"type": "function_call", "id": f"f{number}", "call_id": f"c{number}", "name": name, "arguments": vendors.json.dumps(arguments)}
        yield {**answer, "output": [item]}
    part = {"type": "output_text", "text": "Noted.", "annotations": []}
    yield {**answer, "output": [{"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [part]}]}


def gemini_script():
    for name, arguments in TURNS:
        parts = [{"functionCall": {"name": name, "args": arguments}}]
        yield {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    yield {"candidates": [{"content": {"role": "model", "parts": [{"text": "Noted."}]}, "finishReason": "STOP"}]}


# The program, how the path of its requests ends, what is answered, and the member that holds the conversation.
AGENTS = [
    ("agent_anthropic.py", "/messages", anthropic_script, "messages", {"ANTHROPIC_BASE_URL": vendors.BASE, "ANTHROPIC_API_KEY": "none"}),
    ("agent_openai.py", "/responses", openai_script, "input", {"OPENAI_BASE_URL": f"{vendors.BASE}/v1", "OPENAI_API_KEY": "none"}),
    ("agent_gemini.py", ":generateContent", gemini_script, "contents", {"GOOGLE_GEMINI_BASE_URL": vendors.BASE, "GOOGLE_API_KEY": "none"}),
]


def check(daemon, program, end, script, member, environment):
    vendors.arrived.clear()
    vendors.SCRIPTS[end] = list(script())
    environment = {
        **environment,
        "MODEL": "m",
        "CALLSHEET_URL": f"http://{daemon.address}",
        "PATH": os.environ.get("PATH", ""),
        "PYTHONPATH": str(ROOT / "clients/python"),
        "PYTHONPYCACHEPREFIX": os.environ.get("PYTHONPYCACHEPREFIX", ""),
    }
    run = [sys.executable, str(ROOT / "docs/examples" / program), "Note lemons"]
    ended = subprocess.run(run, env=environment, capture_output=True, text=True, timeout=60, check=False)
    if ended.returncode != 0 or ended.stdout != "Noted.\n":
        raise ValueError(f"ended with {ended.returncode}: {ended.stdout} {ended.stderr}")
    said = vendors.arrived[-1][member]
    # The question, and for each turn what the model said and what its call came to.
    if len(vendors.arrived) != 1 + len(TURNS) or len(said) != 1 + 2 * len(TURNS):
        raise ValueError(f"{len(vendors.arrived)} requests, the last one with {said}")
    told = [vendors.json.dumps(one) for one in said[2::2]]
    if not all("nothing" in one and "rror" not in one for one in told):
        raise ValueError(f"the results are {told}")


def judge(daemon, report):
    """Every agent."""
    for program, *rest in AGENTS:
        report.turn(f"docs/examples/{program}", lambda: check(daemon, program, *rest))
