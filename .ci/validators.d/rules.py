"""What the exports are like, and the rules of vendors' servers that no client library checks.

The rules are stated here once more, apart from the daemon's own tables: from botocore's machine-readable model, and from answers of
servers as recorded in public issues.
"""

import copy
import functools
import json
import re

import botocore.session
from anthropic import transform_schema
from jsonschema import Draft202012Validator, FormatChecker
from openai.lib._pydantic import _ensure_strict_json_schema

FORMATS = ["native", "openai", "openai-responses", "anthropic", "gemini", "bedrock", "mistral", "cohere", "ollama", "mcp", "calls"]

BEDROCK_NAME = botocore.session.get_session().get_service_model("bedrock-runtime").shape_for("ToolName").metadata
NAMES = {
    "openai": r"[a-zA-Z0-9_-]{1,64}",
    "openai-responses": r"[a-zA-Z0-9_-]{1,128}",
    "anthropic": r"[a-zA-Z0-9_-]{1,128}",
    "gemini": r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}",
    "bedrock": BEDROCK_NAME["pattern"],
    "mistral": r"[a-zA-Z0-9_-]{1,64}",
    "cohere": r"[a-zA-Z0-9_-]{1,64}",
    "ollama": r"[a-zA-Z0-9_-]{1,64}",
    "mcp": r"[A-Za-z0-9_.-]{1,128}",
}
PROPERTY = {"anthropic": r"[a-zA-Z0-9_.-]{1,64}", "bedrock": r"[a-zA-Z0-9_.-]{1,64}", "gemini": r"[a-zA-Z_][a-zA-Z0-9_]{0,63}"}
AT_ROOT = {"oneOf", "anyOf", "allOf", "enum", "const", "not"}
# What the Python client of Ollama passes on: its model of a property has no other members.
OLLAMA_ROOT = {"type", "$defs", "items", "required", "properties"}
OLLAMA_PROPERTY = {"type", "items", "description", "enum"}


def tools(format, export):
    """The tools of a list, without what only marks its end."""
    if export is None:
        return []
    if format == "gemini":
        return [tool for part in export for tool in part["functionDeclarations"]]
    if format == "bedrock":
        return [tool for tool in export["tools"] if "toolSpec" in tool]
    if format == "calls":
        return export["properties"]["calls"]["items"].get("anyOf", [])
    return export["tools"] if isinstance(export, dict) else export


def only(format, export, tool):
    """The list with this tool alone."""
    if format == "gemini":
        return [{"functionDeclarations": [tool]}]
    if format == "calls":
        return {"type": "object", "properties": {"calls": {"type": "array", "items": {"anyOf": [tool]}}}}
    return {**export, "tools": [tool]} if isinstance(export, dict) else [tool]


def about(tool):
    """The object of a tool that has its name."""
    return tool.get("function") or tool.get("toolSpec") or tool


def name(format, tool):
    return tool["properties"]["_tool"]["const"] if format == "calls" else about(tool)["name"]


def schema(format, tool):
    """The schema of a tool's arguments; nothing where the format leaves it out."""
    if format == "calls":
        return tool
    if format == "bedrock":
        return tool["toolSpec"]["inputSchema"]["json"]
    held = about(tool)
    return next((held[key] for key in ("parameters", "input_schema", "parametersJsonSchema", "inputSchema") if key in held), None)


def is_strict(format, tool):
    return about(tool).get("strict") is True


def is_empty(format, export):
    """A list without tools says so in a way that a request can leave out."""
    if format == "calls":
        Draft202012Validator.check_schema(export)
        Draft202012Validator(export).validate({"calls": []})
    elif export not in ([], None) and tools(format, export) != [] or format == "bedrock" and export is not None:
        raise ValueError(f"no tools, but {export}")


def obeyed(format, export):
    """What servers are recorded to refuse."""
    found = tools(format, export)
    names = [name(format, tool) for tool in found]
    if len(set(names)) != len(names):
        raise ValueError("a name occurs twice")
    for tool, called in zip(found, names):
        if format in NAMES and not re.fullmatch(NAMES[format], called):
            raise ValueError(f"the name {called!r}")
        if format == "bedrock" and not BEDROCK_NAME["min"] <= len(called) <= BEDROCK_NAME["max"]:
            raise ValueError(f"a name of {len(called)} characters")
        described = about(tool).get("description")
        if format not in ("native", "mcp", "calls") and described is not None and not described.strip():
            raise ValueError("an empty description")
        held = schema(format, tool)
        if held is None or format == "native":
            continue
        if held.get("type") != "object" or not isinstance(held.get("properties"), dict):
            raise ValueError(f"a root that is not an object with properties: {json.dumps(held)[:200]}")
        if format not in ("mcp", "calls") and (barred := AT_ROOT & held.keys()):
            raise ValueError(f"{barred} at the root")
        unknown = set(held.get("required", [])) - held["properties"].keys()
        if unknown and format != "mcp" and "patternProperties" not in held:
            raise ValueError(f"`required` names {unknown}")
        for part in parts(held):
            if format in PROPERTY and (odd := [key for key in part.get("properties", {}) if not re.fullmatch(PROPERTY[format], key)]):
                raise ValueError(f"properties called {odd}")
            types = part.get("type")
            # MCP takes schemas of draft 2020-12 as they are, and that draft does not ask for `items`.
            if format != "mcp" and "array" in (types if isinstance(types, list) else [types]) and "items" not in part and "prefixItems" not in part:
                raise ValueError("an array without `items`")
        if is_strict(format, tool):
            strictly(format, held)


def strictly(format, held):
    """The vendors' own rewriting for their strict modes finds nothing left to change."""
    if format == "anthropic":
        rewritten = transform_schema(copy.deepcopy(held))
    else:
        rewritten = _ensure_strict_json_schema(copy.deepcopy(held), path=(), root=held)
    if plain(rewritten) != plain(held):
        raise ValueError(f"the vendor's own strict form is {json.dumps(rewritten)[:300]} and ours {json.dumps(held)[:300]}")
    for part in parts(held):
        if "properties" in part and part.get("additionalProperties") is not False:
            raise ValueError("an open object in a strict schema")


def plain(held):
    """A schema without what the rewriting takes for implied: the type beside an `enum`, and in which order names are required."""
    if isinstance(held, dict):
        said = {key: plain(value) for key, value in held.items() if not (key == "type" and "enum" in held)}
        return {**said, "required": sorted(said["required"])} if isinstance(said.get("required"), list) else said
    return [plain(value) for value in held] if isinstance(held, list) else held


def parts(held):
    """Every schema within a schema, itself first."""
    if not isinstance(held, dict):
        return
    yield held
    for key, value in held.items():
        if key in ("properties", "$defs", "patternProperties", "dependentSchemas") and isinstance(value, dict):
            for inner in value.values():
                yield from parts(inner)
        elif key in ("anyOf", "allOf", "oneOf", "prefixItems") and isinstance(value, list):
            for inner in value:
                yield from parts(inner)
        elif key in ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"):
            yield from parts(value)


# OpenAI's server checks patterns with Python's engine (recorded: "is not a 'regex'"). What Anthropic's takes is not known beyond that
# its own programs send it patterns that Python does not read, and MCP passes on what scenarios wrote.
NO_PATTERNS = FormatChecker(formats=())
ANY_PATTERN = ("anthropic", "bedrock", "mcp")


@functools.cache
def is_schema(text, patterns):
    """Many formats give the same schema, and each check takes a while."""
    checker = {} if patterns else {"format_checker": NO_PATTERNS}
    Draft202012Validator.check_schema(json.loads(text), **checker)


def schemas(format, export):
    """Each schema is one of JSON Schema 2020-12; the native list passes on what scenarios wrote."""
    if format != "native":
        for tool in tools(format, export):
            if (held := schema(format, tool)) is not None:
                is_schema(json.dumps(held), format not in ANY_PATTERN)


def same(format, sent, export):
    """What a client sent is the export, byte for byte in the same order; what a client is known to change is told here."""
    if format == "gemini":
        # It writes the member as protocol buffers name it, which the service takes too, and sorts the members of a declaration.
        sent = [{"functionDeclarations": [renamed(tool) for tool in part["functionDeclarations"]]} for part in sent]
        by_key = lambda tool: dict(sorted(tool.items()))  # noqa: E731
        sent, export = ([{"functionDeclarations": [by_key(t) for t in tools(format, one)]}] for one in (sent, export))
    if format == "ollama":
        export = [{**tool, "function": {**tool["function"], "parameters": known(tool["function"]["parameters"])}} for tool in export]
        if sent != export:
            raise ValueError(difference(sent, export))
        return
    ours, theirs = json.dumps(export), json.dumps(sent)
    if ours != theirs:
        raise ValueError(difference(sent, export))


def difference(sent, export):
    ours, theirs = json.dumps(export), json.dumps(sent)
    at = next((at for at, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
    return f"on the wire is ...{theirs[max(0, at - 80) : at + 120]}, exported was ...{ours[max(0, at - 80) : at + 120]}"


def renamed(tool):
    return {"parametersJsonSchema" if key == "parameters_json_schema" else key: value for key, value in tool.items()}


def known(parameters):
    """A schema as far as Ollama's Python client knows it."""
    root = {key: value for key, value in parameters.items() if key in OLLAMA_ROOT}
    properties = parameters.get("properties", {})
    root["properties"] = {
        called: {key: value for key, value in held.items() if key in OLLAMA_PROPERTY} for called, held in properties.items()
    }
    return root
