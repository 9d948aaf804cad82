// Answers a question with an LLM that may call every tool in callsheet's list.
//
//     OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_MODEL=... node agent.ts "Note two lemons"
//
// Needs Node 22.18 or later and no package. Any server with OpenAI's chat completions will do;
// OPENAI_API_KEY is sent if it is set.
const { CALLSHEET_URL = "http://127.0.0.1:7400", OPENAI_BASE_URL, OPENAI_MODEL } = process.env;

const KEY = { Authorization: `Bearer ${process.env.OPENAI_API_KEY ?? "none"}` };

function send(url: string, body: any, credentials: any = {}) {
  const headers = { "Content-Type": "application/json", ...credentials };
  return fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
}

const messages: any[] = [{ role: "user", content: process.argv[2] }];
let reply: any;
do {
  const list = await fetch(`${CALLSHEET_URL}/api/v1/tools?format=openai`);
  const revision = list.headers.get("Callsheet-Revision");
  const tools: any[] = await list.json();
  // OpenAI refuses an empty list.
  const chat = { model: OPENAI_MODEL, messages, ...(tools.length > 0 && { tools }) };
  const response = await send(`${OPENAI_BASE_URL}/chat/completions`, chat, KEY);
  if (!response.ok) throw new Error(`the LLM server: ${response.status} ${await response.text()}`);
  reply = (await response.json()).choices[0].message;
  messages.push(reply);
  const turn = { response: reply, revision, own_tools: [], approvals: "tell" };
  const answer = await (await send(`${CALLSHEET_URL}/api/v1/turns?format=openai`, turn)).json();
  messages.push(...answer.messages);
} while (reply.tool_calls?.length);
console.log(reply.content);
export {}; // A module may await outside of functions.
