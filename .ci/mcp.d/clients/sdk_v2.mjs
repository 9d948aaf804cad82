// The TypeScript SDK v2 as a client, which finds out the era: lists, calls, and hears of a change by listening. Standard input:
// {target, calls, grow}; standard output: {tools, results, changed, version}.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The SDK is installed in the working folder, away from this file.
const require = createRequire(`${process.cwd()}/`);
const sdk = await import(pathToFileURL(require.resolve("@modelcontextprotocol/client")).href);
const { Client, StreamableHTTPClientTransport } = sdk.default ?? sdk;

let text = "";
for await (const chunk of process.stdin.setEncoding("utf8")) text += chunk;
const { target, calls, grow } = JSON.parse(text);

let heard;
const changed = new Promise((resolve) => (heard = resolve));
const onChanged = (error, tools) => (error ? heard(Promise.reject(error)) : heard(tools.map((tool) => tool.name)));
const options = { versionNegotiation: { mode: "auto" }, listChanged: { tools: { onChanged } } };
const client = new Client({ name: "sdk-v2", version: "1.0.0" }, options);
await client.connect(new StreamableHTTPClientTransport(new URL(target)));

const tools = (await client.listTools()).tools.map((tool) => tool.name);
const results = [];
for (const [name, args] of calls) results.push(await client.callTool({ name, arguments: args }));
await client.callTool({ name: grow[0], arguments: grow[1] });
const late = new Promise((_, fail) => setTimeout(() => fail(new Error("no list_changed within 20 s")), 20_000));
const after = await Promise.race([changed, late]);
console.log(JSON.stringify({ tools, results, changed: after, version: client.getNegotiatedProtocolVersion?.() }));
await client.close();
process.exit(0);
