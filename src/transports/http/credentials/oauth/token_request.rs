//! One request for a token without a person (RFC 6749 section 4.4), and its answer.

use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;
use url::form_urlencoded::{Serializer, byte_serialize};

use crate::model::{OAuthClient, Secret};
use crate::transports::http::credentials::error::CredentialError;
use crate::transports::http::credentials::token::Token;
use crate::transports::http::{CallLimits, Upstream};

/// How long the request may take, and the most bytes of its answer.
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_ANSWER: usize = 128 * 1024;
/// How long a token is used whose lifetime is not told.
const LIFETIME: Duration = Duration::from_secs(3600);

/// What the server sends (RFC 6749 section 5).
#[derive(Deserialize)]
struct TokenAnswer {
    access_token: Option<String>,
    token_type: Option<String>,
    expires_in: Option<u64>,
    error: Option<String>,
}

/// Requests a token: it, and how long it lives.
pub(super) async fn request(
    server: &Upstream,
    client: &OAuthClient,
    secret: &Secret,
    resource: &str,
) -> Result<(Token, Duration), CredentialError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    headers.insert(AUTHORIZATION, client_header(&client.client_id, secret)?);
    let limits = CallLimits { timeout: TIMEOUT, max_body: MAX_ANSWER, headers, repeatable: false };
    let unavailable = |why: String| CredentialError::Unavailable(format!("the authorization server {server}: {why}"));
    let answer =
        server.post("", form(client, resource), &limits).await.map_err(|error| unavailable(error.to_string()))?;
    let status = answer.head.status;
    // The message of the parser could quote the token.
    let told: Option<TokenAnswer> = serde_json::from_slice(&answer.body).ok();
    match told {
        Some(TokenAnswer { error: Some(code), .. }) if status.is_client_error() => Err(CredentialError::Unreadable(
            format!("the authorization server {server} refused the client: {}", shown(&code)),
        )),
        Some(TokenAnswer { access_token: Some(text), token_type, expires_in, .. }) if status.is_success() => {
            if token_type.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
                return Err(unavailable("its token is of another kind than bearer".to_owned()));
            }
            let lifetime = expires_in.map_or(LIFETIME, Duration::from_secs).min(24 * LIFETIME);
            Ok((Token::new(Secret::new(text))?, lifetime))
        }
        _ => Err(unavailable(format!("it answered {status}, and no token"))),
    }
}

/// The body of the request.
fn form(client: &OAuthClient, resource: &str) -> String {
    let mut form = Serializer::new(String::new());
    form.append_pair("grant_type", "client_credentials").append_pair("resource", resource);
    if !client.scopes.is_empty() {
        form.append_pair("scope", &client.scopes.join(" "));
    }
    form.finish()
}

/// The name and secret of the client, each encoded as in a form (RFC 6749 section 2.3.1).
fn client_header(id: &str, secret: &Secret) -> Result<HeaderValue, CredentialError> {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = BASE64_STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret.expose())));
    let value = HeaderValue::try_from(format!("Basic {pair}"));
    let mut value =
        value.map_err(|_| CredentialError::Unreadable("its client can be shown in no header".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// A code that a server sent, for people.
fn shown(code: &str) -> String {
    code.chars().take(60).filter(char::is_ascii_graphic).collect()
}
