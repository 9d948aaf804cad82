"""The vendors' own clients, each pointed at a loopback server that keeps what arrives.

A client is a function from an export to what went over the wire in its place; it raises whatever the library raises.
"""

import json
from http.server import BaseHTTPRequestHandler

import anthropic
import boto3
import cohere
import ollama
import openai
from botocore.config import Config
from google import genai
from google.genai import types
from pydantic import TypeAdapter

from daemon import serve

# What each vendor's server would answer, so that the clients are content. Chosen by how the path ends.
ANSWERS = {
    "/chat/completions": {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}]},
    "/responses": {"id": "1", "object": "response", "created_at": 0, "model": "m", "output": [], "tools": [],
        "parallel_tool_calls": True, "tool_choice": "auto"},
    "/messages": {"id": "1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "ok"}], "usage": {"input_tokens": 1, "output_tokens": 1}},
    "/v2/chat": {"id": "1", "finish_reason": "COMPLETE",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "ok"}]}},
    "/api/chat": {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True,
        "message": {"role": "assistant", "content": "ok"}},
    ":generateContent": {"candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}]},
    "/converse": {"output": {"message": {"role": "assistant", "content": [{"text": "ok"}]}}, "stopReason": "end_turn",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": {"latencyMs": 1}},
}

# What is sent instead where a client wants a stream: server-sent events.
STREAMS = {}
# What is answered first, in order, where there is any.
SCRIPTS = {}

arrived = []


class Vendor(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        arrived.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        streams = bool(arrived[-1].get("stream"))
        answer = next(answer for end, answer in (STREAMS if streams else ANSWERS).items() if self.path.endswith(end))
        scripted = next((script for end, script in SCRIPTS.items() if self.path.endswith(end) and script), None)
        answer = scripted.pop(0) if scripted else answer
        body = (answer if streams else json.dumps(answer)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def wire(send, member="tools"):
    """What a client sends in a member of its request."""
    arrived.clear()
    send()
    (body,) = arrived
    return body[member]


BASE = f"http://127.0.0.1:{serve(Vendor)}"
SAID = [{"role": "user", "content": "hi"}]

OPENAI = openai.OpenAI(base_url=f"{BASE}/v1", api_key="none", max_retries=0)
ANTHROPIC = anthropic.Anthropic(base_url=BASE, api_key="none", max_retries=0)
COHERE = cohere.ClientV2(api_key="none", base_url=BASE)
OLLAMA = ollama.Client(host=BASE)
GEMINI = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=BASE))
VERTEX = genai.Client(vertexai=True, api_key="none", http_options=types.HttpOptions(base_url=BASE))
BEDROCK = boto3.client(
    "bedrock-runtime", region_name="us-east-1", endpoint_url=BASE, aws_access_key_id="none", aws_secret_access_key="none",
    config=Config(retries={"total_max_attempts": 1}),
)

# The clients take their parameters as they come; the types they publish are stricter.
CHAT_TOOLS = TypeAdapter(list[openai.types.chat.ChatCompletionFunctionToolParam])
RESPONSES_TOOLS = TypeAdapter(list[openai.types.responses.FunctionToolParam])
ANTHROPIC_TOOLS = TypeAdapter(list[anthropic.types.ToolParam])


def openai_chat(tools):
    CHAT_TOOLS.validate_python(tools)
    return wire(lambda: OPENAI.chat.completions.create(model="m", messages=SAID, tools=tools))


def openai_responses(tools):
    RESPONSES_TOOLS.validate_python([{"strict": None, **tool} for tool in tools])
    return wire(lambda: OPENAI.responses.create(model="m", input="hi", tools=tools))


def anthropic_messages(tools):
    ANTHROPIC_TOOLS.validate_python(tools)
    return wire(lambda: ANTHROPIC.messages.create(model="m", max_tokens=9, messages=SAID, tools=tools))


def gemini(tools):
    for tool in tools:
        types.Tool.model_validate(tool)
    sent = wire(lambda: GEMINI.models.generate_content(model="m", contents="hi", config={"tools": tools}))
    vertex = wire(lambda: VERTEX.models.generate_content(model="m", contents="hi", config={"tools": tools}))
    if vertex != sent:
        raise ValueError(f"the two Gemini services are sent different lists: {vertex} and {sent}")
    return sent


def bedrock(config):
    said = [{"role": "user", "content": [{"text": "hi"}]}]
    return wire(lambda: BEDROCK.converse(modelId="m", messages=said, toolConfig=config), "toolConfig")


def cohere_chat(tools):
    return wire(lambda: COHERE.chat(model="m", messages=SAID, tools=tools))


def ollama_chat(tools):
    return wire(lambda: OLLAMA.chat(model="m", messages=SAID, tools=tools))


# Mistral's own library is not installed (see requirements.in); it takes what Chat Completions takes.
CLIENTS = {
    "openai": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic_messages,
    "gemini": gemini,
    "bedrock": bedrock,
    "mistral": openai_chat,
    "cohere": cohere_chat,
    "ollama": ollama_chat,
}
