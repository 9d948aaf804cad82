//! One request for a token (RFC 6749 section 4), or about one, and its answer.

use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::scopes;
use crate::model::Secret;
use crate::transports::http::credentials::error::CredentialError;
use crate::transports::http::credentials::sent::SentSecrets;
use crate::transports::http::credentials::token::Token;
use crate::transports::http::{CallLimits, HttpResponse, Upstream};

/// How long the request may take, and the most bytes of its answer.
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_ANSWER: usize = 128 * 1024;
/// The longest lifetime of a token that is believed: a year.
const LIFETIME_SECONDS_MAX: f64 = 365.0 * 24.0 * 3600.0;

/// The fields of forms that are secrets.
const SECRET_FIELDS: [&str; 5] = [
    "client_secret",
    "code",
    "code_verifier",
    "refresh_token",
    "token",
];

/// What the server sends (RFC 6749 section 5).
#[derive(Deserialize)]
struct TokenAnswer {
    access_token: Option<String>,
    refresh_token: Option<String>,
    token_type: Option<String>,
    /// A number; some servers send it as text.
    expires_in: Option<Value>,
    scope: Option<String>,
    error: Option<String>,
}

/// The form of a request, in order.
pub(super) type TokenForm = Vec<(&'static str, String)>;

/// A token that was given.
pub(super) struct GrantedToken {
    pub(super) token: Token,
    /// What renews it.
    pub(super) refresh: Option<Token>,
    /// How long it lives, if the server says so.
    pub(super) lifetime: Option<Duration>,
    /// What it allows, if the server says so.
    pub(super) scopes: Option<Vec<String>>,
}

/// Why no token was given.
pub(super) enum TokenRefusal {
    /// The server refuses it, with this code.
    Refused(String),
    /// Anything else.
    Failed(CredentialError),
}

/// Sends a form. `client` is the header with the client's credential. Fails with a text for people.
pub(super) async fn post(
    server: &Upstream,
    client: Option<HeaderValue>,
    form: &TokenForm,
) -> Result<HttpResponse, String> {
    let mut headers = HeaderMap::new();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/x-www-form-urlencoded"),
    );
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.extend(client.map(|value| (AUTHORIZATION, value)));
    let mut sent = SentSecrets::default();
    let secrets = form
        .iter()
        .filter(|(field, _)| SECRET_FIELDS.contains(field));
    let secrets: Vec<Secret> = secrets
        .map(|(_, value)| Secret::new(value.as_str()))
        .collect();
    sent.add_others(secrets.iter());
    sent.add(&headers);
    let limits = CallLimits {
        timeout: TIMEOUT,
        max_body: MAX_ANSWER,
        headers,
        repeatable: false,
    };
    let form = Serializer::new(String::new()).extend_pairs(form).finish();
    let mut answer = server
        .post("", form, &limits)
        .await
        .map_err(|error| error.to_string())?;
    // A success may repeat a token that is still good; only what refuses is shown.
    if !answer.head.status.is_success() {
        answer.body = sent.mask.body(answer.body);
    }
    Ok(answer)
}

/// The code of an answer that refuses (RFC 6749 section 5.2), for people.
pub(super) fn error_code(body: &[u8]) -> Option<String> {
    let parsed: TokenAnswer = serde_json::from_slice(body).ok()?;
    parsed.error.map(|code| shown(&code))
}

/// Requests a token with this form. `client` is the header with the client's credential.
pub(super) async fn request(
    server: &Upstream,
    client: Option<HeaderValue>,
    form: &TokenForm,
) -> Result<GrantedToken, TokenRefusal> {
    let failed = |why: String| {
        TokenRefusal::Failed(CredentialError::Unavailable(format!(
            "the authorization server {server}: {why}"
        )))
    };
    let answer = post(server, client, form).await.map_err(failed)?;
    let status = answer.head.status;
    // The message of the parser could quote the token.
    let parsed: Option<TokenAnswer> = serde_json::from_slice(&answer.body).ok();
    match parsed {
        // A server that is busy refuses no token.
        Some(TokenAnswer {
            error: Some(code), ..
        }) if status.is_client_error() && !is_busy(status) => {
            Err(TokenRefusal::Refused(shown(&code)))
        }
        Some(TokenAnswer {
            access_token: Some(text),
            token_type,
            refresh_token,
            expires_in,
            scope,
            ..
        }) if status.is_success() => {
            if token_type.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
                return Err(failed(
                    "its token is of another kind than bearer".to_owned(),
                ));
            }
            let token = |text| Token::new(Secret::new(text)).map_err(TokenRefusal::Failed);
            Ok(GrantedToken {
                token: token(text)?,
                refresh: refresh_token.map(token).transpose()?,
                lifetime: expires_in.as_ref().and_then(lifetime),
                scopes: scope.map(|scope| scopes::usable(scope.split(' ').map(str::to_owned))),
            })
        }
        _ => Err(failed(format!("it answered {status}, and no token"))),
    }
}

fn is_busy(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::REQUEST_TIMEOUT
}

fn lifetime(expires_in: &Value) -> Option<Duration> {
    let seconds = expires_in
        .as_f64()
        .or_else(|| expires_in.as_str()?.parse().ok())?;
    Some(Duration::from_secs_f64(if seconds.is_nan() {
        0.0
    } else {
        seconds.clamp(0.0, LIFETIME_SECONDS_MAX)
    }))
}

/// The name and secret of the client, each encoded as in a form (RFC 6749 section 2.3.1).
pub(super) fn client_header(id: &str, secret: &Secret) -> Result<HeaderValue, CredentialError> {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = BASE64_STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret.expose())));
    let value = HeaderValue::try_from(format!("Basic {pair}"));
    let mut value = value.map_err(|_| {
        CredentialError::Unreadable("its client can be shown in no header".to_owned())
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// A code that a server sent, for people.
pub(super) fn shown(code: &str) -> String {
    code.chars()
        .take(60)
        .filter(char::is_ascii_graphic)
        .collect()
}
