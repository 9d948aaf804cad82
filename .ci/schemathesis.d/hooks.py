"""What a schema of one parameter cannot say: rules between parameters, and bounds in bytes.

Requests that break one of them are well formed by the letter of the description and refused with 400 as its texts say. They are left out
where Schemathesis means to send what is accepted, so that `positive_data_acceptance` holds for all others; what it means to be refused is
sent as it is.
"""

import json
from urllib.parse import urlencode

import schemathesis

# Formats for LLMs, by what else they have.
STRICT = {"openai", "openai-responses", "anthropic"}
CACHE = {"anthropic", "bedrock"}
TOOL_NAME = 256
HEAD = 12_000


def text(value):
    return "" if value is None else str(value)


def list_rules(query):
    """Whether the parameters of a list go with each other."""
    format = query.get("format", "native")
    given = {name for name, value in query.items() if text(value).lower() == "true"}
    if format != "native" and given & {"include_disabled", "include_internal"}:
        return False
    if ("strict" in given and format not in STRICT) or ("cache" in given and format not in CACHE):
        return False
    words = text(query.get("q")).strip()
    if query.get("defer") == "relevance":
        return bool(words)
    return query.get("defer") != "preference" or not words


def search_rules(query):
    """Whether the parameters of a search go with each other."""
    palette = query.get("mode") == "palette"
    if not palette and (not text(query.get("q")).strip() or query.get("recent")):
        return False
    if len(query.get("recent") or []) > 100:
        return False
    if query.get("detail") == "signature" and query.get("format") is not None:
        return False
    return query.get("format", "native") == "native" or text(query.get("include_disabled")).lower() != "true"


def preference_rules(body):
    """Whether what is for a single tool is given to one, whose name has a bound in bytes, and pins to a scenario for all."""
    target = text(body.get("target"))
    if body.get("pins") is not None and not (target.startswith("scenario:") and body.get("scope") == "global"):
        return False
    of_tool = ("alias", "description", "parameters")
    if any(body.get(member) is not None for member in of_tool) and not target.startswith("tool:"):
        return False
    return named(target.partition("/")[2])


def named(tool):
    return len(text(tool).encode()) <= TOOL_NAME


def call_rules(body, known):
    """Whether a text of arguments holds an object, and whether the arguments of a tool that is there fit it."""
    arguments = body.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except ValueError:
            return False
        if not isinstance(arguments, dict):
            return False
    return not known or not isinstance(arguments, dict) or isinstance(arguments.get("path", ""), str)


def accepted(operation, query, body):
    if operation in ("listTools", "followEvents", "followEventsBySocket"):
        return list_rules(query)
    if operation == "searchTools":
        return search_rules(query)
    if operation == "setPreference":
        return preference_rules(body)
    if operation in ("listPreferences", "resetPreference"):
        return named(text(query.get("target")).partition("/")[2])
    if operation in ("setToolEnabled", "setToolApproval"):
        return named(body.get("tool_name"))
    if operation in ("callTool", "callModule"):
        return call_rules(body, operation == "callTool")
    if operation == "resetTool":
        return named(query.get("tool_name"))
    return True


@schemathesis.hook
def filter_case(context, case):
    # The head of a request has at most 16 KiB; a longer one is refused with 431 before its route is known (`tests/http/connections.rs`).
    if len(urlencode(case.query or {}, doseq=True)) + len(text(case.headers)) > HEAD:
        return False
    meta = case.meta
    if meta is None or not meta.generation.mode.is_positive:
        return True
    body = case.body if isinstance(case.body, dict) else {}
    operation = case.operation.definition.raw.get("operationId")
    return accepted(operation, case.query or {}, body)
