//! Logins and tokens where a proxy leads to public hosts.

use serde_json::{Value, json};
use url::Url;

use crate::support::command::{Home, Running, until};
use crate::support::proxy::{Behaviour, Proxy};
use crate::support::scripted::manifest;
use crate::support::serving::ask;
use crate::support::tls_server::{self, TlsServer};

/// A provider that requires a login, one that takes tokens, and their authorization server.
async fn servers() -> TlsServer {
    TlsServer::answering(|host, path| match (host, path) {
        ("tools.invalid", "/.well-known/oauth-protected-resource") => document(&json!({
            "resource": "https://tools.invalid",
            "authorization_servers": ["https://login.invalid"],
        })),
        ("login.invalid", "/.well-known/oauth-authorization-server") => document(&json!({
            "issuer": "https://login.invalid",
            "authorization_endpoint": "https://login.invalid/authorize",
            "token_endpoint": "https://login.invalid/token",
            "registration_endpoint": "https://login.invalid/register",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": true,
        })),
        ("login.invalid", "/register") => document(&json!({"client_id": "registered"})),
        ("login.invalid", "/token") => {
            document(&json!({"access_token": "t0k3n", "token_type": "Bearer", "expires_in": 3600}))
        }
        ("tools.invalid", "/machine/api/v1/tools") => document(&manifest("machine", &["find"])),
        ("tools.invalid", "/api/v1/tools") => http::Response::builder()
            .status(401)
            .header("www-authenticate", "Bearer")
            .body(http_body_util::Full::default())
            .unwrap(),
        _ => tls_server::json(404, "{}"),
    })
    .await
}

fn document(value: &Value) -> http::Response<http_body_util::Full<bytes::Bytes>> {
    tls_server::json(200, &value.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_and_requests_for_tokens_go_through_the_proxy() {
    let servers = servers().await;
    let proxy = Proxy::start(Behaviour::Tunnel(servers.address)).await;
    let home = Home::with(
        "discovery.vrooli.enabled = false\n\
         [[scenarios]]\nname = \"person\"\nurl = \"https://tools.invalid\"\n\
         [[scenarios]]\nname = \"machine\"\nurl = \"https://tools.invalid/machine\"\n\
         auth = { oauth = { token_url = \"https://login.invalid/token\", client_id = \"c\", client_secret = \"cl13nt-s3cr3t\" } }\n",
    );
    let mut command = home.command(&["serve"]);
    command
        .env("HTTPS_PROXY", format!("http://{}", proxy.address))
        .env("SSL_CERT_FILE", tls_server::file("ca.pem"));
    let daemon = Running::start(command, "callsheet listens on ");
    until("the tokens of a client are requested", || {
        let (_, body) = daemon.get("/api/v1/tools");
        String::from_utf8(body).unwrap().contains("find")
    });
    assert!(
        servers
            .seen()
            .contains(&"POST login.invalid/token".to_owned()),
        "{:?}",
        servers.seen()
    );
    until("the login is required", || {
        let (_, body) = daemon.get("/api/v1/scenarios/person");
        let scenario: Value = serde_json::from_slice(&body).unwrap();
        scenario["state"] == "needs-authorization"
    });
    let address = daemon.url.strip_prefix("http://").unwrap().parse().unwrap();
    let pressed = ask(
        address,
        "POST",
        "/dashboard/scenarios/person/login",
        &[],
        "",
    )
    .await;
    assert_eq!(pressed.status, 204, "{pressed:?}");
    let page = Url::parse(pressed.header("hx-redirect")).unwrap();
    assert_eq!(page.host_str(), Some("login.invalid"), "{page}");
    let seen = servers.seen();
    for expected in [
        "GET tools.invalid/.well-known/oauth-protected-resource",
        "GET login.invalid/.well-known/oauth-authorization-server",
        "POST login.invalid/register",
    ] {
        assert!(
            seen.iter().any(|line| line == expected),
            "{expected}: {seen:?}"
        );
    }
    let hosts = proxy.hosts();
    assert!(hosts.contains(&"login.invalid:443".to_owned()), "{hosts:?}");
    assert!(hosts.contains(&"tools.invalid:443".to_owned()), "{hosts:?}");
}
