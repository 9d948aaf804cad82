//! The client that callsheet is at an authorization server: one that the operator registered, the
//! one of a metadata document, or one that it registers itself (RFC 7591), in this order.

use std::time::Duration;

use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use super::callback::LoginAddress;
use super::guard::AddressGuard;
use super::metadata::{ServerMetadata, shown};
use crate::model::OAuthClient;
use crate::transports::http::CallLimits;

/// How long a registration may take, and the most bytes of its answer.
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_ANSWER: usize = 64 * 1024;
/// The longest id and secret of a client.
const MAX_ID: usize = 4 * 1024;

/// A client at one authorization server.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct LoginClient {
    pub(super) id: String,
    /// The secret of a registration; that of a configured client is read where it is.
    pub(super) secret: Option<String>,
    pub(super) method: ClientAuthMethod,
    /// The address that a registration is for.
    pub(super) redirect: Option<String>,
}

/// How a client proves itself where it requests tokens (RFC 7591 section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientAuthMethod {
    ClientSecretBasic,
    ClientSecretPost,
    None,
}

/// What there is to choose from.
pub(super) struct ClientChoice<'a> {
    pub(super) configured: Option<&'a OAuthClient>,
    /// `login.client_metadata_url`
    pub(super) document: Option<&'a Url>,
    /// The client of an earlier login at this server.
    pub(super) known: Option<LoginClient>,
    pub(super) address: &'a LoginAddress,
}

impl ClientChoice<'_> {
    /// The client for a login at this server. It is registered where that is the only way.
    pub(super) async fn take(
        self,
        guard: &AddressGuard<'_>,
        server: &ServerMetadata,
    ) -> Result<LoginClient, String> {
        let methods = server.auth_methods.as_deref();
        if let Some(configured) = self.configured {
            let method = method_of(configured.client_secret.is_some(), None, methods)?;
            return Ok(LoginClient {
                id: configured.client_id.clone(),
                secret: None,
                method,
                redirect: None,
            });
        }
        // A document is one client at all servers, with the same addresses at each of them, so that
        // only `iss` tells their answers apart.
        let is_apart = server.takes_documents && server.sends_issuer;
        if let Some(document) = self.document.filter(|_| is_apart) {
            let id = document.as_str().to_owned();
            return Ok(LoginClient {
                id,
                secret: None,
                method: ClientAuthMethod::None,
                redirect: None,
            });
        }
        if let Some(known) = self
            .known
            .filter(|known| known.redirect.as_deref() == Some(self.address.url.as_str()))
        {
            return Ok(known);
        }
        match &server.registration {
            Some(place) => register(guard, place, methods, &self.address.url).await,
            None => Err(format!(
                "the authorization server {} registers no clients by itself; register callsheet there with the redirect \
                 address {}, and write the id into `{}`",
                shown(&server.issuer),
                self.address.url,
                self.address.client_example(&server.issuer)
            )),
        }
    }
}

/// Registers callsheet (RFC 7591 section 3).
async fn register(
    guard: &AddressGuard<'_>,
    place: &Url,
    methods: Option<&[String]>,
    redirect: &Url,
) -> Result<LoginClient, String> {
    let supports =
        |name: &str| methods.is_some_and(|methods| methods.iter().any(|method| method == name));
    // The secret in the form before the header: servers that take both answer the first one to each
    // kind of request, and some only that one to a revocation.
    let wanted = ["none", "client_secret_post", "client_secret_basic"]
        .into_iter()
        .find(|name| supports(name));
    let is_native = redirect.scheme() == "http";
    let body = json!({
        "client_name": "callsheet",
        "redirect_uris": [redirect.as_str()],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted.unwrap_or("client_secret_basic"),
        "application_type": if is_native { "native" } else { "web" },
    });
    let upstream = guard.upstream(place).await?;
    let limits = CallLimits {
        timeout: TIMEOUT,
        max_body: MAX_ANSWER,
        headers: HeaderMap::new(),
        repeatable: false,
    };
    let answer = upstream
        .post("", body.to_string(), &limits)
        .await
        .map_err(|error| error.to_string())?;
    let registration: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if !answer.head.status.is_success() {
        let code = shown(registration["error"].as_str().unwrap_or("without a reason"));
        return Err(format!(
            "{upstream} did not register callsheet: {} ({code})",
            answer.head.status
        ));
    }
    let text = |key: &str| {
        registration[key]
            .as_str()
            .filter(|text| !text.is_empty() && text.len() <= MAX_ID)
    };
    let Some(id) = text("client_id") else {
        return Err(format!("{upstream} registered callsheet without an id"));
    };
    let secret = text("client_secret").map(str::to_owned);
    let method = method_of(
        secret.is_some(),
        registration["token_endpoint_auth_method"].as_str(),
        methods,
    )?;
    Ok(LoginClient {
        id: id.to_owned(),
        secret,
        method,
        redirect: Some(redirect.as_str().to_owned()),
    })
}

/// How a client proves itself, by what its registration says, or else by what its server takes.
fn method_of(
    has_secret: bool,
    given: Option<&str>,
    methods: Option<&[String]>,
) -> Result<ClientAuthMethod, String> {
    let supports =
        |name: &str| methods.is_some_and(|methods| methods.iter().any(|method| method == name));
    match given {
        _ if !has_secret => Ok(ClientAuthMethod::None),
        Some("none") => Ok(ClientAuthMethod::None),
        Some("client_secret_post") => Ok(ClientAuthMethod::ClientSecretPost),
        Some("client_secret_basic") => Ok(ClientAuthMethod::ClientSecretBasic),
        // RFC 8414 section 2: this one is the default.
        _ if methods.is_none() || supports("client_secret_basic") => {
            Ok(ClientAuthMethod::ClientSecretBasic)
        }
        _ if supports("client_secret_post") => Ok(ClientAuthMethod::ClientSecretPost),
        _ if supports("none") => Ok(ClientAuthMethod::None),
        _ => Err(
            "the authorization server takes the secret of a client in no way that callsheet knows"
                .to_owned(),
        ),
    }
}
