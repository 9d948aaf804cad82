//! The finding about a scenario that wants a credential: which one is missing, and the next step.

use crate::engine::scenario::Scenario;
use crate::model::{Auth, Finding, FindingCode, HttpTarget, Target};
use crate::protocols::{ListError, module};
use crate::transports::TransportError;
use crate::transports::http::credentials::{Challenge, CredentialError};

/// What is said where the configuration has no credential at all.
const NONE: &str = "set its `auth` or `headers`, write its `url` as `http://name:password@host` if it takes these, or let it list its \
                    tools without a credential";

/// What is said where the server refused the host name that it was called by.
const OTHER_HOST: &str = "use an address that it allows, such as `http://localhost:PORT` if it runs on this host, or add \
                          the host name in its `url` to those that it allows";

/// The finding for a scenario that answered 401 or 403, or whose credential cannot be had.
/// `message` is what the poll met.
pub(super) fn needs_authorization(record: &Scenario, error: &ListError, message: &str) -> Finding {
    let name = &record.name;
    let (missing, hint) = match error {
        ListError::Transport(TransportError::Credential { error: CredentialError::LoginNeeded(_), .. }) => {
            (None, login(record))
        }
        ListError::Transport(TransportError::Credential { .. }) => (
            None,
            "correct it there, or where the configuration says that it is; it is read again for each request"
                .to_owned(),
        ),
        ListError::Transport(refusal) if refusal.refuses_host() => (
            Some("it refuses the host name in its address, and allows others only, such as localhost"),
            OTHER_HOST.to_owned(),
        ),
        ListError::Transport(TransportError::Status { challenge, .. }) => {
            let (missing, hint) = refused(record, challenge.as_deref());
            (Some(missing), hint)
        }
        _ => (None, NONE.to_owned()),
    };
    let message = missing.map_or_else(
        || message.to_owned(),
        |missing| format!("{message}: {missing}"),
    );
    Finding::new(FindingCode::NeedsAuthorization, message)
        .of_scenario(name)
        .hint(hint)
}

/// What is wrong with the credential that it was shown, or that it was shown none.
fn refused(record: &Scenario, challenge: Option<&Challenge>) -> (&'static str, String) {
    let name = &record.name;
    let endpoint = record.place.as_ref().map(|place| &place.endpoint);
    let is_module =
        endpoint.is_some_and(|endpoint| endpoint.protocol.as_deref() == Some(module::ID));
    let Some(target) = endpoint
        .and_then(|endpoint| endpoint.target.as_ref())
        .and_then(Target::http)
    else {
        return ("no credential is configured for it", NONE.to_owned());
    };
    let lacks_scope = challenge.is_some_and(Challenge::lacks_scope);
    match &target.auth {
        Some(Auth::OAuth(client)) if client.token_url.is_none() => ("not logged in", login(record)),
        Some(Auth::OAuth(_)) if lacks_scope => (
            "its token does not allow enough",
            "add the scopes that it wants to its `auth.oauth.scopes`".to_owned(),
        ),
        Some(_) => {
            let key = if is_module {
                format!("module_settings.tokens.{name}")
            } else {
                "auth".to_owned()
            };
            (
                "it does not accept the credential that it is shown",
                format!("correct its `{key}`"),
            )
        }
        None if !target.headers.is_empty() => (
            "it does not accept the headers that it is shown",
            "correct its `headers`, or set its `auth`".to_owned(),
        ),
        None if has_password(target) => (
            "it does not accept the name and password of its address",
            "correct its `url`".to_owned(),
        ),
        None if is_module => (
            "no bearer token is configured for it",
            format!("set `module_settings.tokens.{name}`"),
        ),
        None if target.login.is_some() && challenge.is_some_and(Challenge::is_bearer) => (
            "it wants a bearer token, and none is configured for it",
            format!("{}; or set its `auth` to a token", login(record)),
        ),
        None if challenge.is_some_and(Challenge::is_bearer) => (
            "it wants a bearer token, and none is configured for it",
            "set its `auth` to a token, or to `{ oauth = ... }`".to_owned(),
        ),
        None if challenge
            .is_some_and(|challenge| challenge.status == 403 && challenge.scheme.is_empty()) =>
        {
            (
                "it refuses this client, and no credential is configured for it",
                NONE.to_owned(),
            )
        }
        None => ("no credential is configured for it", NONE.to_owned()),
    }
}

/// How a person logs in.
fn login(record: &Scenario) -> String {
    format!(
        "log in with `callsheet login {}`, or on its page",
        record.name
    )
}

fn has_password(target: &HttpTarget) -> bool {
    !target.url.username().is_empty() || target.url.password().is_some()
}
