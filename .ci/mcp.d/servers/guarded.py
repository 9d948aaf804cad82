"""A server on the Python SDK 2.x behind OAuth, which is its own authorization server and approves by itself.

Usage: guarded.py MARKS PORT. A token lives for a few seconds. The folder MARKS gets an empty file for each token that was given, `given-1` and
so on, and for each that was revoked.
"""

import secrets
import sys
import time
from pathlib import Path

from mcp.server.auth.provider import AccessToken, AuthorizationCode, RefreshToken, construct_redirect_uri
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken

MARKS, PORT = Path(sys.argv[1]), int(sys.argv[2])
URL = f"http://127.0.0.1:{PORT}"
LIFETIME = 3
# Times are whole seconds here, and no call may meet a token that lapsed on its way.
GRACE = 3


class Approving:
    """Everybody may have what they want."""

    def __init__(self):
        self.clients, self.codes, self.access, self.refresh = {}, {}, {}, {}
        self.given = 0

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client):
        self.clients[client.client_id] = client

    async def authorize(self, client, wanted):
        code = secrets.token_urlsafe(32)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=wanted.scopes or ["tools"],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=wanted.code_challenge,
            redirect_uri=wanted.redirect_uri,
            redirect_uri_provided_explicitly=wanted.redirect_uri_provided_explicitly,
            resource=wanted.resource,
        )
        return construct_redirect_uri(str(wanted.redirect_uri), code=code, state=wanted.state)

    async def load_authorization_code(self, client, code):
        return self.codes.get(code)

    async def exchange_authorization_code(self, client, code):
        del self.codes[code.code]
        return self.grant(client, code.scopes, code.resource)

    async def load_refresh_token(self, client, token):
        return self.refresh.get(token)

    async def exchange_refresh_token(self, client, token, scopes):
        # Each renews once.
        del self.refresh[token.token]
        return self.grant(client, scopes or token.scopes, token.resource)

    def grant(self, client, scopes, resource):
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        of = {"client_id": client.client_id, "scopes": scopes, "resource": resource}
        self.access[access] = AccessToken(token=access, expires_at=int(time.time()) + LIFETIME + GRACE, **of)
        self.refresh[refresh] = RefreshToken(token=refresh, **of)
        self.given += 1
        (MARKS / f"given-{self.given}").touch()
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=LIFETIME, scope=" ".join(scopes))

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        kind = "refresh" if isinstance(token, RefreshToken) else "access"
        (self.refresh if kind == "refresh" else self.access).pop(token.token, None)
        (MARKS / f"revoked-{kind}").touch()


server = MCPServer(
    "guarded",
    log_level="ERROR",
    auth_server_provider=Approving(),
    auth=AuthSettings(
        issuer_url=URL,
        resource_server_url=f"{URL}/mcp",
        validate_token_resource=True,
        required_scopes=["tools"],
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["tools"], default_scopes=["tools"]),
        revocation_options=RevocationOptions(enabled=True),
    ),
)


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


if __name__ == "__main__":
    server.run("streamable-http", host="127.0.0.1", port=PORT)
