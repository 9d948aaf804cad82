// The TypeScript SDK v1 as a client: lists, calls, and hears of a change. Standard input: {target, calls, grow}, where the target is an
// address or a command; standard output: {tools, results, changed}.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

// The SDK is installed in the working folder, away from this file.
const require = createRequire(`${process.cwd()}/`);
const load = async (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}.js`)).href);
const { Client } = await load("client/index");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp");
const { StdioClientTransport } = await load("client/stdio");
const { ToolListChangedNotificationSchema } = await load("types");

let text = "";
for await (const chunk of process.stdin.setEncoding("utf8")) text += chunk;
const { target, calls, grow, environment } = JSON.parse(text);

const transport = Array.isArray(target)
  ? new StdioClientTransport({ command: target[0], args: target.slice(1), env: environment, stderr: "inherit" })
  : new StreamableHTTPClientTransport(new URL(target));
const client = new Client({ name: "sdk-v1", version: "1.0.0" });
const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
let heard;
const changed = new Promise((resolve) => (heard = resolve));
client.setNotificationHandler(ToolListChangedNotificationSchema, async () => heard());
await client.connect(transport);

const tools = await names();
const results = [];
for (const [name, args] of calls) results.push(await client.callTool({ name, arguments: args }));
await client.callTool({ name: grow[0], arguments: grow[1] });
await Promise.race([changed, new Promise((_, fail) => setTimeout(() => fail(new Error("no list_changed within 20 s")), 20_000))]);
console.log(JSON.stringify({ tools, results, changed: await names() }));
await client.close();
process.exit(0);
