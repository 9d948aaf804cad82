// A server on the TypeScript SDK 1.x behind OAuth, which is its own authorization server and approves by itself.
//
// Usage: guarded.mjs MARKS PORT. A token lives for a few seconds. The folder MARKS gets an empty file for each token that was given, `given-1`
// and so on, and for each that was revoked.
import { randomBytes } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

// The packages are installed outside of the source tree.
const require = createRequire(join(process.env.MCP_PLACE, 'node/package.json'));
const load = async (name) => import(pathToFileURL(require.resolve(name)));
const { McpServer } = await load('@modelcontextprotocol/sdk/server/mcp.js');
const { StreamableHTTPServerTransport } = await load('@modelcontextprotocol/sdk/server/streamableHttp.js');
const { createMcpExpressApp } = await load('@modelcontextprotocol/sdk/server/express.js');
const { getOAuthProtectedResourceMetadataUrl, mcpAuthRouter } = await load('@modelcontextprotocol/sdk/server/auth/router.js');
const { requireBearerAuth } = await load('@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js');
const { InvalidGrantError, InvalidTokenError } = await load('@modelcontextprotocol/sdk/server/auth/errors.js');
const { z } = await load('zod');

const [marks, port] = [process.argv[2], Number(process.argv[3])];
const issuer = new URL(`http://127.0.0.1:${port}`);
const resource = new URL('/mcp', issuer);
const LIFETIME = 3;
// Times are whole seconds here, and no call may meet a token that lapsed on its way.
const GRACE = 3;

const mark = (name) => closeSync(openSync(join(marks, name), 'a'));
const made = () => randomBytes(32).toString('base64url');

/** Everybody may have what they want. */
class Approving {
  clients = new Map();
  codes = new Map();
  access = new Map();
  refresh = new Map();
  given = 0;

  clientsStore = {
    getClient: (id) => this.clients.get(id),
    registerClient: (client) => {
      this.clients.set(client.client_id, client);
      return client;
    },
  };

  async authorize(client, wanted, response) {
    const code = made();
    this.codes.set(code, { client: client.client_id, ...wanted });
    const back = new URL(wanted.redirectUri);
    back.searchParams.set('code', code);
    if (wanted.state !== undefined) back.searchParams.set('state', wanted.state);
    response.redirect(back.href);
  }

  async challengeForAuthorizationCode(client, code) {
    const known = this.codes.get(code);
    if (known?.client !== client.client_id) throw new InvalidGrantError('no such code');
    return known.codeChallenge;
  }

  async exchangeAuthorizationCode(client, code, _verifier, _redirect, wanted) {
    const { scopes } = this.codes.get(code);
    this.codes.delete(code);
    return this.grant(client.client_id, scopes, wanted);
  }

  async exchangeRefreshToken(client, token, scopes, wanted) {
    const known = this.refresh.get(token);
    if (known?.client !== client.client_id) throw new InvalidGrantError('no such token');
    // Each renews once.
    this.refresh.delete(token);
    return this.grant(client.client_id, scopes ?? known.scopes, wanted);
  }

  grant(client, scopes, wanted) {
    const [access, refresh] = [made(), made()];
    const of = { client, scopes: scopes?.length > 0 ? scopes : ['tools'] };
    this.access.set(access, { ...of, resource: wanted, until: Math.floor(Date.now() / 1000) + LIFETIME + GRACE });
    this.refresh.set(refresh, of);
    this.given += 1;
    mark(`given-${this.given}`);
    return { access_token: access, token_type: 'bearer', expires_in: LIFETIME, refresh_token: refresh, scope: of.scopes.join(' ') };
  }

  async verifyAccessToken(token) {
    const known = this.access.get(token);
    if (known === undefined) throw new InvalidTokenError('no such token');
    return { token, clientId: known.client, scopes: known.scopes, expiresAt: known.until, resource: known.resource };
  }

  async revokeToken(_client, { token }) {
    if (this.refresh.delete(token)) mark('revoked-refresh');
    if (this.access.delete(token)) mark('revoked-access');
  }
}

const provider = new Approving();
const app = createMcpExpressApp();
app.use(mcpAuthRouter({ provider, issuerUrl: issuer, resourceServerUrl: resource, scopesSupported: ['tools'] }));
const guard = requireBearerAuth({
  verifier: provider,
  requiredScopes: ['tools'],
  resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource),
  expectedResource: resource,
});
app.post('/mcp', guard, async (request, response) => {
  const server = new McpServer({ name: 'guarded', version: '1.0.0' });
  server.registerTool('add', { description: 'Adds two numbers.', inputSchema: { a: z.number(), b: z.number() } }, ({ a, b }) => ({
    content: [{ type: 'text', text: String(a + b) }],
  }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on('close', () => server.close());
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});
app.all('/mcp', guard, (_request, response) => response.status(405).end());
app.listen(port, '127.0.0.1');
