"""A client of callsheet for agent loops. Copy this file; it needs Python 3.9 or later and no package.

    sheet = Callsheet("anthropic")
    while True:
        response = llm.messages.create(model=..., messages=messages, tools=sheet.tools(), max_tokens=1000)
        messages.append({"role": "assistant", "content": response.content})
        turn = sheet.run(response)
        if not turn.calls:
            break
        messages += turn.messages
"""

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request


class Refused(Exception):
    """callsheet refused a request. `problem` is its answer, as problem details (RFC 9457)."""

    def __init__(self, status, problem):
        super().__init__(f"{status}: {problem.get('detail', problem)}")
        self.status, self.problem = status, problem


class Turn:
    """What became of the tool calls in one response."""

    def __init__(self, answer):
        self.id = answer["turn_id"]
        # What follows the assistant's message in the next request, in the vendor's shape.
        self.messages = answer["messages"]
        # Every call with its `status`.
        self.calls = answer["calls"]
        # The calls of your own tools. Answer them yourself, beside `messages`.
        self.own = [call for call in self.calls if call["status"] == "not_ours"]


class Callsheet:
    """The tools of one callsheet daemon, for one vendor's LLM.

    `scope` may have `profile` and `chat_id`; `own_tools` are the names of your own tools.
    """

    def __init__(self, format, url=None, own_tools=(), token=None, **scope):
        self.url = (url or os.environ.get("CALLSHEET_URL") or "http://127.0.0.1:7400").rstrip("/")
        self.format, self.own_tools, self.scope, self.token = format, list(own_tools), scope, token
        self._lists, self._revision = {}, None

    def tools(self, **query):
        """The list for the next request. It is transferred again only when it has changed."""
        target = self._target("/api/v1/tools", {"format": self.format, **self.scope, **query})
        etag, known, revision = self._lists.get(target, (None, None, None))
        headers = {"If-None-Match": etag} if etag else {}
        status, answer, got = self._send("GET", target, None, headers)
        if status == 304:
            self._revision = revision
            return known
        self._revision = got["Callsheet-Revision"]
        self._lists[target] = (got["ETag"], answer, self._revision)
        return answer

    def run(self, response, on_wait=None, **options):
        """Runs the tool calls in a response: the vendor's object, or its JSON as a dictionary.

        Waits while a call waits for a person's approval, and then calls `on_wait` with the answer of
        the daemon first. `options` are those of POST /api/v1/turns, such as `approvals="tell"`.
        """
        body = {"response": _plain(response), "own_tools": self.own_tools, "wait": 20, **options}
        if self._revision:
            body.setdefault("revision", self._revision)
        status, answer, _ = self._send("POST", self._target("/api/v1/turns", {"format": self.format, **self.scope}), body)
        if status == 202 and on_wait:
            on_wait(answer)
        while status == 202:
            time.sleep(0.1)
            status, answer, _ = self._send("GET", f"/api/v1/turns/{answer['turn_id']}?wait=20")
        return Turn(answer)

    def result(self, call):
        """The whole result of a call that `is_cut`."""
        return self._send("GET", f"/api/v1/results/{urllib.parse.quote(call['call_id'])}")[1]

    def _target(self, path, query):
        return path + "?" + urllib.parse.urlencode({name: value for name, value in query.items() if value is not None})

    def _send(self, method, target, body=None, headers=()):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **dict(headers)}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(self.url + target, data, headers, method=method)
        # No proxy: the daemon is on this machine or near it.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request) as answer:
                return answer.status, json.load(answer), answer.headers
        except urllib.error.HTTPError as refused:
            if refused.code == 304:
                return 304, None, refused.headers
            raise Refused(refused.code, json.load(refused)) from None


def _plain(value):
    """The JSON of a vendor's object."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value
