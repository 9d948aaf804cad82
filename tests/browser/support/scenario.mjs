// A scenario: a real little HTTP server that offers what it is given, and can go and come back at its port.
import { createServer } from 'node:http';

/** A tool as the Tool Discovery Protocol writes it; `more` overrides members and adds metadata. */
export function tool(name, description, { category = 'general', tags = [], properties, required, ...metadata } = {}) {
  properties ??= { text: { type: 'string', description: 'What to work on' } };
  return {
    name,
    description,
    category,
    parameters: { type: 'object', properties, required: required ?? Object.keys(properties).slice(0, 1) },
    metadata: { enabled_by_default: true, requires_approval: false, timeout_seconds: 30, tags, ...metadata },
  };
}

export class Scenario {
  constructor(name, tools, { description = 'Says what the test says', version = '1.0.0', protocol = '1.0', categories = [] } = {}) {
    this.name = name;
    this.tools = tools;
    this.about = { name, version, description };
    this.protocol = protocol;
    this.categories = categories;
    this.port = 0;
    this.asked = 0;
    /** What it was called with, in order. */
    this.ran = [];
    /** What a call gives back; a test may give another one. */
    this.run = async ({ tool_name, arguments: given }) => ({ success: true, result: { tool_name, given } });
  }

  /** Begins to answer, at the port it had before if it had one. */
  async start() {
    this.server = createServer((request, response) => {
      const path = request.url.split('?')[0];
      if (path === '/api/v1/tools/execute') {
        this.execute(request, response);
        return;
      }
      if (path !== '/api/v1/tools') {
        response.writeHead(404).end();
        return;
      }
      this.asked += 1;
      response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'max-age=60' });
      response.end(this.manifest());
    });
    await new Promise((done, failed) => this.server.once('error', failed).listen(this.port, '127.0.0.1', done));
    this.port = this.server.address().port;
    return this;
  }

  async execute(request, response) {
    let body = '';
    for await (const part of request) body += part;
    const call = JSON.parse(body);
    this.ran.push(call);
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(await this.run(call)));
  }

  manifest() {
    return JSON.stringify({
      protocol_version: this.protocol,
      scenario: this.about,
      tools: this.tools,
      categories: this.categories,
      generated_at: new Date().toISOString(),
    });
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Refuses connections from now on. */
  async stop() {
    if (!this.server?.listening) return;
    const closed = new Promise((done) => this.server.close(done));
    this.server.closeAllConnections();
    await closed;
  }
}
