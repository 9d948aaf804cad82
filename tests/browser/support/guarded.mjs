// A scenario behind OAuth, and beside it its authorization server, which shows one page with two links: approve and refuse.
import { createServer } from 'node:http';

export class Guarded {
  constructor(name, tools) {
    this.name = name;
    this.tools = tools;
    /** Every request for a token, and every revocation. */
    this.tokens = [];
    this.revoked = [];
    this.access = undefined;
  }

  async start() {
    this.server = createServer((request, response) => this.answer(request, response));
    await new Promise((done, failed) => this.server.once('error', failed).listen(0, '127.0.0.1', done));
    this.origin = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  get url() {
    return this.origin;
  }

  async answer(request, response) {
    let body = '';
    for await (const part of request) body += part;
    const url = new URL(request.url, this.origin);
    const json = (status, value) => response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));
    switch (url.pathname) {
      case '/.well-known/oauth-protected-resource':
        return json(200, { resource: this.origin, authorization_servers: [`${this.origin}/as`] });
      case '/.well-known/oauth-authorization-server/as':
        return json(200, {
          issuer: `${this.origin}/as`,
          authorization_endpoint: `${this.origin}/authorize`,
          token_endpoint: `${this.origin}/token`,
          registration_endpoint: `${this.origin}/register`,
          revocation_endpoint: `${this.origin}/revoke`,
          code_challenge_methods_supported: ['S256'],
          token_endpoint_auth_methods_supported: ['none'],
          authorization_response_iss_parameter_supported: true,
        });
      case '/register':
        return json(201, { client_id: 'registered' });
      case '/authorize':
        return this.consent(url.searchParams, response);
      case '/token':
        this.tokens.push(new URLSearchParams(body));
        this.access = `token-${this.tokens.length}`;
        return json(200, { access_token: this.access, token_type: 'Bearer', expires_in: 3600, refresh_token: 'again' });
      case '/revoke':
        this.revoked.push(new URLSearchParams(body).get('token'));
        this.access = undefined;
        return json(200, {});
      case '/api/v1/tools':
        if (this.access === undefined || request.headers.authorization !== `Bearer ${this.access}`) {
          return response.writeHead(401, { 'WWW-Authenticate': 'Bearer scope="read"' }).end();
        }
        return json(200, { protocol_version: '1.0', scenario: { name: this.name, version: '1.0.0', description: 'Wants a login' }, tools: this.tools, categories: [], generated_at: new Date().toISOString() });
      default:
        return response.writeHead(404).end();
    }
  }

  /** The page of the authorization server. */
  consent(wanted, response) {
    const back = (more) => {
      const url = new URL(wanted.get('redirect_uri'));
      for (const [key, value] of Object.entries({ ...more, state: wanted.get('state'), iss: `${this.origin}/as` })) url.searchParams.set(key, value);
      return url.href.replaceAll('&', '&amp;');
    };
    const page = `<!doctype html><title>Login</title><h1>May callsheet use ${this.name}?</h1>
      <p><a id="approve" href="${back({ code: 'code-1' })}">Approve</a> <a id="refuse" href="${back({ error: 'access_denied' })}">Refuse</a></p>`;
    response.writeHead(200, { 'Content-Type': 'text/html' }).end(page);
  }

  async stop() {
    const closed = new Promise((done) => this.server.close(done));
    this.server.closeAllConnections();
    await closed;
  }
}
