// A client of callsheet for agent loops. Copy this file; it needs `fetch` and no package.
//
//     const sheet = new Callsheet("anthropic");
//     while (true) {
//       const response = await llm.messages.create({ model, messages, tools: await sheet.tools(), max_tokens: 1000 });
//       messages.push({ role: "assistant", content: response.content });
//       const turn = await sheet.run(response);
//       if (turn.calls.length === 0) break;
//       messages.push(...turn.messages);
//     }

/** callsheet refused a request. `problem` is its answer, as problem details (RFC 9457). */
export class Refused extends Error {
  status;
  problem;

  constructor(status: any, problem: any) {
    super(`${status}: ${problem.detail ?? JSON.stringify(problem)}`);
    this.status = status;
    this.problem = problem;
  }
}

/** The tools of one callsheet daemon, for one vendor's LLM. */
export class Callsheet {
  #format;
  #url;
  #scope;
  #ownTools;
  #headers;
  #lists = new Map();
  #revision: any;

  /** `ownTools` are the names of your own tools. `token` is the operator's, if you have it. */
  constructor(format: string, { url, profile, chatId, ownTools, token }: any = {}) {
    this.#format = format;
    this.#url = (url ?? "http://127.0.0.1:7400").replace(/\/+$/, "");
    this.#scope = { ...(profile && { profile }), ...(chatId && { chat_id: chatId }) };
    this.#ownTools = ownTools ?? [];
    this.#headers = { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) };
  }

  /** The list for the next request. It is transferred again only when it has changed. */
  async tools(query: any = {}) {
    const target = this.#target("/api/v1/tools", query);
    const known = this.#lists.get(target);
    const answer = await this.#send("GET", target, undefined, known ? { "If-None-Match": known.etag } : {});
    if (answer.status !== 304) {
      const { headers } = answer;
      const tools = await answer.json();
      this.#lists.set(target, { etag: headers.get("ETag"), revision: headers.get("Callsheet-Revision"), tools });
    }
    const { revision, tools } = this.#lists.get(target);
    this.#revision = revision;
    return tools;
  }

  /**
   * Runs the tool calls in a response of the vendor. The answer has `messages`, which follow the assistant's message in the
   * next request; `calls`, each with its `status`; and `own`, the calls of your own tools, which you answer yourself.
   *
   * Waits while a call waits for a person's approval, and then calls `onWait` with the answer of the daemon first. `options`
   * are those of POST /api/v1/turns, such as `approvals: "tell"`.
   */
  async run(response: any, options: any = {}, onWait: any = undefined) {
    const body = { response, own_tools: this.#ownTools, wait: 20, revision: this.#revision, ...options };
    let answer = await this.#send("POST", this.#target("/api/v1/turns", {}), body);
    let turn: any = await answer.json();
    if (answer.status === 202) onWait?.(turn);
    while (answer.status === 202) {
      await new Promise((done) => setTimeout(done, 100));
      answer = await this.#send("GET", `/api/v1/turns/${turn.turn_id}?wait=20`);
      turn = await answer.json();
    }
    const own = turn.calls.filter((call: any) => call.status === "not_ours");
    return { id: turn.turn_id, messages: turn.messages, calls: turn.calls, own };
  }

  /** The whole result of a call that `is_cut`. */
  async result(call: any) {
    return (await this.#send("GET", `/api/v1/results/${encodeURIComponent(call.call_id)}`)).json();
  }

  #target(path: string, query: any) {
    return `${path}?${new URLSearchParams({ format: this.#format, ...this.#scope, ...query })}`;
  }

  async #send(method: string, target: string, body: any = undefined, headers: any = {}) {
    const all = { ...this.#headers, ...headers };
    const answer = await fetch(this.#url + target, { method, headers: all, body: body && JSON.stringify(body) });
    if (!answer.ok && answer.status !== 304) throw new Refused(answer.status, await answer.json());
    return answer;
  }
}
