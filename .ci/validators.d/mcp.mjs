// Parses `tools/list` results with the MCP TypeScript SDK. Standard input: [{label, result}]; standard output: {passed, failures}.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";

// The SDK is installed in the working folder, away from this file.
const sdk = createRequire(`${process.cwd()}/`).resolve("@modelcontextprotocol/sdk/types.js");
const { ListToolsResultSchema, ToolSchema } = await import(pathToFileURL(sdk).href);

let text = "";
for await (const chunk of process.stdin.setEncoding("utf8")) text += chunk;

let passed = 0;
const failures = [];
// A property called `__proto__` is a name like any other in JSON; the SDK leaves it out, since in JavaScript it is a trap.
const safe = (key, value) => (key === "__proto__" ? undefined : value);
for (const { label, result } of JSON.parse(text, safe)) {
  const parsed = ListToolsResultSchema.safeParse(result);
  if (parsed.success && isDeepStrictEqual(parsed.data, result)) {
    passed += 1;
    continue;
  }
  const known = failures.length;
  for (const tool of result.tools) {
    const one = ToolSchema.safeParse(tool);
    if (!one.success) failures.push(`${label}, ListToolsResult, tool \`${tool.name}\`: ${one.error.message}`);
    else if (!isDeepStrictEqual(one.data, tool)) failures.push(`${label}, ListToolsResult, tool \`${tool.name}\`: read otherwise than written`);
  }
  if (failures.length === known) failures.push(`${label}, ListToolsResult: ${parsed.error?.message ?? "read otherwise than written"}`);
}
console.log(JSON.stringify({ passed, failures: failures.map((text) => text.replace(/\s+/g, " ").slice(0, 600)) }));
