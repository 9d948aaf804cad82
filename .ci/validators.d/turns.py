"""What the vendors' own libraries say of turns: a response of each vendor, as its library reads it, goes to `POST /api/v1/turns`, and the
messages that come back go into the next request of that library.

The responses are written in the shapes that vendors answer with: one call, several, streamed and joined, arguments that are no JSON, a tool
that does not exist, two calls with one id.
"""

import http.client
import json

import anthropic
import cohere
import ollama
import openai
from google.genai import types
from pydantic import TypeAdapter

import vendors
from vendors import ANTHROPIC, BEDROCK, COHERE, GEMINI, OLLAMA, OPENAI, wire

# Unlike any name of the other scenarios.
MANIFEST = {
    "protocol_version": "1.0",
    "scenario": {"name": "turn-tools", "version": "1.0.0"},
    "tools": [
        {
            "name": "turn_read",
            "description": "Reads",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
            "metadata": {"enabled_by_default": True},
        }
    ],
}
GOOD, BAD = ("turn_read", {"path": "a.txt"}), ("turn_read", {})
# What the model did, what is expected of each call.
CASES = {
    "one call": ([("c1", *GOOD)], ["result"]),
    "several calls": ([("c1", *GOOD), ("c2", *BAD), ("c3", *GOOD)], ["result", "refused", "result"]),
    "a tool that does not exist": ([("c1", "turn_raed", {})], ["refused"]),
    "one id twice": ([("c1", *GOOD), ("c1", *GOOD)], ["result", "refused"]),
    "arguments that are no JSON": ([("c1", "turn_read", '{"path": ')], ["refused"]),
    "no call": ([], []),
}
USER = {"role": "user", "content": "hi"}


def text(arguments):
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def chat_calls(calls):
    return [{"id": i, "type": "function", "function": {"name": n, "arguments": text(a)}} for i, n, a in calls] or None


def openai_response(calls):
    message = {"role": "assistant", "content": None, "tool_calls": chat_calls(calls)}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    return openai.types.chat.ChatCompletion.model_validate(
        {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    )


def openai_next(response, messages):
    TypeAdapter(list[openai.types.chat.ChatCompletionToolMessageParam]).validate_python(messages)
    said = [USER, response.choices[0].message, *messages]
    return wire(lambda: OPENAI.chat.completions.create(model="m", messages=said), "messages")[2:]


def responses_response(calls):
    items = [{"type": "function_call", "id": f"fc{n}", "call_id": i, "name": name, "arguments": text(a)} for n, (i, name, a) in enumerate(calls)]
    return openai.types.responses.Response.model_validate({**vendors.ANSWERS["/responses"], "output": items})


def responses_next(response, messages):
    TypeAdapter(list[openai.types.responses.response_input_item_param.FunctionCallOutput]).validate_python(messages)
    said = [USER, *response.output, *messages]
    return wire(lambda: OPENAI.responses.create(model="m", input=said), "input")[1 + len(response.output) :]


def anthropic_response(calls):
    blocks = [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in calls]
    return anthropic.types.Message.model_validate({**vendors.ANSWERS["/messages"], "content": blocks, "stop_reason": "tool_use"})


def anthropic_next(response, messages):
    TypeAdapter(list[anthropic.types.MessageParam]).validate_python(messages)
    said = [USER, {"role": "assistant", "content": response.content}, *messages]
    return wire(lambda: ANTHROPIC.messages.create(model="m", max_tokens=9, messages=said), "messages")[2:]


def gemini_response(calls):
    parts = [{"functionCall": {"id": i, "name": n, "args": a}} for i, n, a in calls]
    return types.GenerateContentResponse.model_validate({"candidates": [{"content": {"role": "model", "parts": parts}}], "modelVersion": "gemini-3-pro"})


def gemini_next(response, messages):
    contents = [types.Content.model_validate(message) for message in messages]
    said = [types.UserContent(parts=[types.Part(text="hi")]), response.candidates[0].content, *contents]
    return wire(lambda: GEMINI.models.generate_content(model="m", contents=said), "contents")[2:]


def bedrock_response(calls):
    content = [{"toolUse": {"toolUseId": i, "name": n, "input": a}} for i, n, a in calls] or [{"text": "done"}]
    vendors.ANSWERS["/converse"]["output"]["message"]["content"] = content
    said = [{"role": "user", "content": [{"text": "hi"}]}]
    return BEDROCK.converse(modelId="m", messages=said)


def bedrock_next(response, messages):
    said = [{"role": "user", "content": [{"text": "hi"}]}, response["output"]["message"], *messages]
    return wire(lambda: BEDROCK.converse(modelId="m", messages=said), "messages")[2:]


def cohere_response(calls):
    message = {"role": "assistant", "tool_calls": chat_calls(calls)}
    vendors.ANSWERS["/v2/chat"]["message"] = message if calls else {"role": "assistant", "content": [{"type": "text", "text": "ok"}]}
    return COHERE.chat(model="m", messages=[USER])


def cohere_next(response, messages):
    for message in messages:
        cohere.ToolChatMessageV2.model_validate(message)
    said = [USER, response.message, *messages]
    return wire(lambda: COHERE.chat(model="m", messages=said), "messages")[2:]


def ollama_response(calls):
    made = [{"function": {"name": n, "arguments": a}} for _, n, a in calls]
    message = {"role": "assistant", "content": "", "tool_calls": made or None}
    return ollama.ChatResponse.model_validate({"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": True, "message": message})


def ollama_next(response, messages):
    for message in messages:
        ollama.Message.model_validate(message)
    return wire(lambda: OLLAMA.chat(model="m", messages=[USER, response.message, *messages]), "messages")[2:]


# Of each format: makes a response of the library's own type, and sends the next request. Mistral's library is not installed: its messages
# are those of Chat Completions with a name.
VENDORS = {
    "openai": (openai_response, openai_next),
    "openai-responses": (responses_response, responses_next),
    "anthropic": (anthropic_response, anthropic_next),
    "gemini": (gemini_response, gemini_next),
    "bedrock": (bedrock_response, bedrock_next),
    "mistral": (openai_response, openai_next),
    "cohere": (cohere_response, cohere_next),
    "ollama": (ollama_response, ollama_next),
}
# Where arguments are objects and ids are none, a library cannot read these.
UNWRITABLE = {
    "anthropic": ["arguments that are no JSON"],
    "gemini": ["arguments that are no JSON"],
    "bedrock": ["arguments that are no JSON"],
    "ollama": ["arguments that are no JSON", "one id twice"],
}


def plain(response):
    return response.model_dump(mode="json", by_alias=True, exclude_none=True) if hasattr(response, "model_dump") else response


def post(daemon, format, response):
    connection = http.client.HTTPConnection(daemon.address, timeout=60)
    try:
        body = json.dumps({"response": response, "own_tools": []})
        connection.request("POST", f"/api/v1/turns?format={format}", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        told = json.loads(answer.read())
    finally:
        connection.close()
    if answer.status != 200:
        raise ValueError(f"answered {answer.status}: {told}")
    return told


def joined():
    """Responses that were streamed, joined by the libraries themselves."""
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "turn_read", "arguments": '{"path"'}}
    deltas = [{"role": "assistant", "tool_calls": [call]}, {"tool_calls": [{"index": 0, "function": {"arguments": ': "a.txt"}'}}]}]
    chunks = [{"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [{"index": 0, "delta": d}]} for d in deltas]
    chunks.append({**chunks[0], "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    vendors.STREAMS["/chat/completions"] = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    with OPENAI.chat.completions.stream(model="m", messages=[USER]) as stream:
        yield "openai", stream.get_final_completion()
    start = {**vendors.ANSWERS["/messages"], "content": [], "stop_reason": None}
    events = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c1", "name": "turn_read", "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"path": '}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '"a.txt"}'}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
    vendors.STREAMS["/messages"] = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    with ANTHROPIC.messages.stream(model="m", max_tokens=9, messages=[USER]) as stream:
        yield "anthropic", stream.get_final_message()


def check(daemon, format, response, expected):
    told = post(daemon, format, plain(response))
    statuses = [call["status"] for call in told["calls"]]
    if statuses != expected:
        raise ValueError(f"the calls are {statuses}, not {expected}: {told['calls']}")
    if format == "mistral":
        if any(message.pop("name", None) is None for message in told["messages"]):
            raise ValueError(f"a message without the name of its tool: {told['messages']}")
    sent = VENDORS[format][1](response, told["messages"])
    if sent != told["messages"]:
        raise ValueError(f"the library sent {sent} for {told['messages']}")


def judge(daemon, report):
    """Every response of every vendor."""
    for format, (make, _) in VENDORS.items():
        for label, (calls, expected) in CASES.items():
            if label not in UNWRITABLE.get(format, []):
                report.turn(f"turn {format}, {label}", lambda: check(daemon, format, make(calls), expected))
    for format, response in joined():
        report.turn(f"turn {format}, streamed and joined", lambda: check(daemon, format, response, ["result"]))
