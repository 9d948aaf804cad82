//! `auth` of `[[scenarios]]`: the credential that is sent to a scenario.

use url::{Host, Url};

use super::address::address;
use super::header::{header_name, header_value};
use super::rules::bearer;
use super::secret_value::FOLLOWED;
use super::shape::Shape;
use super::units::ValueError;
use super::value_reader::ValueReader;
use crate::model::{Auth, LoginCallback, OAuthClient, Secret, SecretSource};

/// A bearer token, where it is, or one of the kinds. The first five keys are those of a secret.
pub(super) const SHAPE: Shape = Shape::SecretOr(&[
    ("env", Shape::Text),
    ("file", Shape::Text),
    ("key", Shape::Text),
    ("command", Shape::List(&Shape::Verbatim)),
    ("every", Shape::Text),
    ("bearer", FOLLOWED),
    ("header", Shape::Text),
    ("value", FOLLOWED),
    (
        "basic",
        Shape::Table(&[("user", Shape::Text), ("password", FOLLOWED)]),
    ),
    (
        "oauth",
        Shape::Table(&[
            ("token_url", Shape::Text),
            ("client_id", Shape::Text),
            ("client_secret", FOLLOWED),
            ("scopes", Shape::Words),
            ("resource", Shape::Text),
            ("issuer", Shape::Text),
            ("callback", Shape::Text),
        ]),
    ),
]);

/// The keys that each stand for a kind.
const KINDS: [&str; 4] = ["bearer", "header", "basic", "oauth"];

/// Reads it. `None` where it is not written, or breaks a rule.
pub(super) fn read(at: &mut ValueReader<'_>) -> Option<Auth> {
    let table = at.value.and_then(toml::Value::as_table);
    let kinds: Vec<&str> = KINDS
        .into_iter()
        .filter(|kind| table.is_some_and(|table| table.contains_key(*kind)))
        .collect();
    let others = table.map_or(0, toml::Table::len) - kinds.len();
    match (&kinds[..], others) {
        ([], _) => at.secret_source(bearer).map(Auth::Bearer),
        (["bearer"], 0) => at.key("bearer").secret_source(bearer).map(Auth::Bearer),
        (["header"], 1) if at.key("value").value.is_some() => header(at),
        (["basic"], 0) => basic(&mut at.key("basic")),
        (["oauth"], 0) => oauth(&mut at.key("oauth")).map(Box::new).map(Auth::OAuth),
        _ => {
            let hint = "write one of `{ bearer = ... }`, `{ header = \"X-Key\", value = ... }`, \
                        `{ basic = { user = \"...\", password = ... } }` and `{ oauth = { ... } }`";
            at.reject(ValueError::new("it is not one kind of credential", hint));
            None
        }
    }
}

fn header(at: &mut ValueReader<'_>) -> Option<Auth> {
    let mut name = None;
    at.key("header")
        .text(&mut name, |text| header_name(text, false));
    let value = at.key("value").secret_source(header_value)?;
    Some(Auth::Header(name?, value))
}

fn basic(at: &mut ValueReader<'_>) -> Option<Auth> {
    let mut user: Option<String> = None;
    at.require(
        "user",
        ValueError::new(
            "the name of the user is missing",
            "add `user = \"...\"` to it",
        ),
    );
    at.require(
        "password",
        ValueError::new("the password is missing", "add `password = ...` to it"),
    );
    at.key("user").text(&mut user, |text| {
        // A colon ends the name (RFC 7617 section 2).
        if text.contains(':') || text.chars().any(char::is_control) {
            return Err(ValueError::new(
                "it can be no name of a user",
                "write it without a colon",
            ));
        }
        Ok(text.to_owned())
    });
    let password = at.key("password").secret_source(Ok::<Secret, ValueError>)?;
    Some(Auth::Basic(user?, password))
}

/// The address at which tokens are requested, which gets the secret (RFC 6749 section 3.2).
fn token_address(text: &str) -> Result<Url, ValueError> {
    let url = address(text)?;
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    if url.scheme() == "https" || is_here {
        return Ok(url);
    }
    Err(ValueError::new(
        "the secret of the client would go out unencrypted",
        "write an address with https",
    ))
}

fn oauth(at: &mut ValueReader<'_>) -> Option<OAuthClient> {
    let mut token_url: Option<Url> = None;
    let mut resource: Option<Url> = None;
    let mut client_id: Option<String> = None;
    let mut scopes: Vec<String> = Vec::new();
    // Without an address for tokens a person logs in, which a client without a secret can do too.
    if at.key("token_url").value.is_some() {
        let no_secret = ValueError::new(
            "the secret of the client is missing",
            "add `client_secret = ...` to it",
        );
        at.require("client_secret", no_secret);
    }
    at.require(
        "client_id",
        ValueError::new(
            "the id of the client is missing",
            "add `client_id = \"...\"` to it",
        ),
    );
    at.key("token_url").text(&mut token_url, token_address);
    at.key("resource").text(&mut resource, address);
    at.key("client_id").text(&mut client_id, |text| {
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(ValueError::new(
                "it can be no id of a client",
                "write the id that was given to you",
            ));
        }
        Ok(text.to_owned())
    });
    at.key("scopes").words(&mut scopes, |text| {
        // RFC 6749 section 3.3.
        if text.is_empty()
            || !text
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
        {
            return Err(ValueError::new(
                format!("{text:?} is not a scope"),
                "write each scope as a text of its own",
            ));
        }
        Ok(text.to_owned())
    });
    let issuer = issuer(at);
    let callback = callback(at);
    let client_secret: Option<SecretSource> = at
        .key("client_secret")
        .secret_source(Ok::<Secret, ValueError>);
    Some(OAuthClient {
        token_url,
        client_id: client_id?,
        client_secret,
        scopes,
        resource,
        issuer,
        callback,
        token_hosts: None,
    })
}

/// The authorization server of a login. It is compared as it is written (RFC 8414 section 3.3).
fn issuer(at: &mut ValueReader<'_>) -> Option<String> {
    let mut issuer: Option<String> = None;
    let mut key = at.key("issuer");
    key.text(&mut issuer, |text| address(text).map(|_| text.to_owned()));
    refuse_without_login(at, "issuer");
    issuer
}

/// The address that is registered for a login with this client.
fn callback(at: &mut ValueReader<'_>) -> LoginCallback {
    let mut callback = LoginCallback::default();
    at.key("callback").text(&mut callback, |text| match text {
        "shared" => Ok(LoginCallback::Shared),
        "issuer" => Ok(LoginCallback::Issuer),
        _ => Err(ValueError::new(
            format!("{text:?} is no kind of callback address"),
            "write \"shared\" or \"issuer\"",
        )),
    });
    refuse_without_login(at, "callback");
    callback
}

/// Notes that a key is for a login, and that this client has none.
fn refuse_without_login(at: &mut ValueReader<'_>, key: &str) {
    let has_token_url = at.key("token_url").value.is_some();
    let mut at = at.key(key);
    if at.value.is_some() && has_token_url {
        let wrong = "it is for a login, and this client has a `token_url`";
        at.reject(ValueError::new(wrong, "take one of the two out"));
    }
}
