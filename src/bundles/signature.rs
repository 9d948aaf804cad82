//! `auth` of the type `hmac`: requests that are signed with a secret that both sides know.
//!
//! The secret is a key and never sent. What is signed is a text of parts of the request, as the API
//! wants it.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use jiff::Timestamp;
use ring::hmac;
use url::Url;

use super::document_members::{DocumentError, DocumentMembers};
use super::refused_value::RefusedValue;
use super::reserved_headers::is_reserved;
use super::template::{CallValues, Placeholder, TextTemplate, text_bytes};
use crate::model::text::hexadecimal;

/// The members of such an `auth`.
const KNOWN: [&str; 8] = [
    "type",
    "algorithm",
    "secret",
    "header",
    "prefix",
    "encoding",
    "signs",
    "timestampHeader",
];
/// Parts of what is signed at most.
const PARTS_MAX: usize = 50;
/// Characters of the prefix at most.
const PREFIX_MAX: usize = 100;

/// How the requests of a tool are signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    algorithm: SignatureAlgorithm,
    /// The placeholder of the secret.
    secret: TextTemplate,
    /// The header with the signature.
    header: HeaderName,
    /// What stands before the signature in its header.
    prefix: String,
    encoding: SignatureEncoding,
    /// What is signed.
    signs: Vec<SignedPart>,
    /// The header with the time that is signed.
    timestamp: Option<HeaderName>,
}

/// The hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SignatureAlgorithm {
    Sha256,
    Sha512,
}

/// How the signature is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SignatureEncoding {
    Hexadecimal,
    Base64,
}

/// A part of what is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SignedPart {
    Literal(String),
    Method,
    /// The whole address.
    Url,
    Host,
    /// The path without its query.
    Path,
    /// The query without `?`; empty without one.
    Query,
    Body,
    /// Seconds since 1970.
    Timestamp,
}

/// A request that is to be signed.
pub(super) struct SignedRequest<'a> {
    pub(super) method: &'a Method,
    pub(super) url: &'a Url,
    pub(super) body: &'a [u8],
}

impl Signature {
    /// Reads it.
    pub(super) fn read(members: DocumentMembers<'_>) -> Result<Self, DocumentError> {
        members.refuse_others(&KNOWN)?;
        let algorithm = match members.text("algorithm")?.unwrap_or("sha256") {
            "sha256" => SignatureAlgorithm::Sha256,
            "sha512" => SignatureAlgorithm::Sha512,
            _ => return Err(members.wrong("algorithm", "is neither `sha256` nor `sha512`")),
        };
        let encoding = match members.text("encoding")?.unwrap_or("hex") {
            "hex" => SignatureEncoding::Hexadecimal,
            "base64" => SignatureEncoding::Base64,
            _ => return Err(members.wrong("encoding", "is neither `hex` nor `base64`")),
        };
        let secret = TextTemplate::parse(members.required_text("secret")?).ok();
        let secret = secret.filter(|secret| secret.only_place().is_some());
        let secret = secret.ok_or_else(|| {
            members.wrong(
                "secret",
                "is not one placeholder for a secret, as `${NAME}`",
            )
        })?;
        let header = own_header(members, "header", members.required_text("header")?)?;
        let prefix = members.text("prefix")?.unwrap_or_default();
        let is_visible = prefix.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if prefix.len() > PREFIX_MAX || !is_visible {
            return Err(members.wrong("prefix", "is no short text of visible ASCII characters"));
        }
        let signs = parts(members.text("signs")?.unwrap_or("${body}"))
            .map_err(|why| members.wrong("signs", why))?;
        let timestamp = members
            .text("timestampHeader")?
            .map(|name| own_header(members, "timestampHeader", name))
            .transpose()?;
        if signs.contains(&SignedPart::Timestamp) && timestamp.is_none() {
            let why =
                "signs a timestamp, so `timestampHeader` has to name the header that sends it";
            return Err(members.wrong("signs", why));
        }
        if timestamp.as_ref() == Some(&header) {
            return Err(members.wrong("timestampHeader", "is the header of the signature, too"));
        }
        Ok(Self {
            algorithm,
            secret,
            header,
            prefix: prefix.to_owned(),
            encoding,
            signs,
            timestamp,
        })
    }

    /// The placeholder of the secret.
    pub(super) fn places(&self) -> impl Iterator<Item = &Placeholder> {
        self.secret.places()
    }

    /// The bytes of memory that it takes, estimated from above.
    pub(super) fn held_bytes(&self) -> usize {
        let of_part = |part: &SignedPart| match part {
            SignedPart::Literal(text) => size_of::<SignedPart>() + text_bytes(text),
            _ => size_of::<SignedPart>(),
        };
        self.secret.held_bytes()
            + text_bytes(&self.prefix)
            + self.signs.iter().map(of_part).sum::<usize>()
    }

    /// Adds the headers of a signature that is made now.
    ///
    /// The key is a secret of the configuration. An argument of its name is no key: the caller of
    /// the tool would sign.
    pub(super) fn sign(
        &self,
        request: &SignedRequest<'_>,
        values: &CallValues<'_>,
        now: Timestamp,
        headers: &mut HeaderMap,
    ) -> Result<(), RefusedValue> {
        let place = self.secret.only_place();
        let secret = place
            .filter(|place| !values.declared.contains(place.name()))
            .and_then(|place| values.secrets.get(place.name()));
        let Some(secret) = secret else {
            let why = "is no secret of `[bundles.secrets]`, and the signature needs one";
            return Err(RefusedValue::new(
                place.map(Placeholder::as_str).unwrap_or_default(),
                why,
            ));
        };
        let algorithm = match self.algorithm {
            SignatureAlgorithm::Sha256 => hmac::HMAC_SHA256,
            SignatureAlgorithm::Sha512 => hmac::HMAC_SHA512,
        };
        let key = hmac::Key::new(algorithm, secret.expose().as_bytes());
        let seconds = now.as_second().to_string();
        let mut signing = hmac::Context::with_key(&key);
        for part in &self.signs {
            signing.update(match part {
                SignedPart::Literal(text) => text.as_bytes(),
                SignedPart::Method => request.method.as_str().as_bytes(),
                SignedPart::Url => request.url.as_str().as_bytes(),
                SignedPart::Host => request.url.authority().as_bytes(),
                SignedPart::Path => request.url.path().as_bytes(),
                SignedPart::Query => request.url.query().unwrap_or_default().as_bytes(),
                SignedPart::Body => request.body,
                SignedPart::Timestamp => seconds.as_bytes(),
            });
        }
        let tag = signing.sign();
        let written = match self.encoding {
            SignatureEncoding::Hexadecimal => hexadecimal(tag.as_ref()),
            SignatureEncoding::Base64 => BASE64_STANDARD.encode(tag.as_ref()),
        };
        let mut value = HeaderValue::from_str(&format!("{}{written}", self.prefix))
            .map_err(|_| RefusedValue::new("", "the signature fits in no header"))?;
        value.set_sensitive(true);
        headers.insert(self.header.clone(), value);
        if let Some(name) = &self.timestamp {
            let value = HeaderValue::from_str(&seconds)
                .map_err(|_| RefusedValue::new("", "the time fits in no header"))?;
            headers.insert(name.clone(), value);
        }
        Ok(())
    }
}

/// A header that a tool may set.
fn own_header(
    members: DocumentMembers<'_>,
    member: &'static str,
    name: &str,
) -> Result<HeaderName, DocumentError> {
    let name = HeaderName::try_from(name).ok();
    // The content type decides how the values in a body are escaped.
    name.filter(|name| !is_reserved(name) && *name != CONTENT_TYPE)
        .ok_or_else(|| members.wrong(member, "is no header that a tool may set"))
}

/// The parts of what is signed, or why it cannot be read.
fn parts(text: &str) -> Result<Vec<SignedPart>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((literal, after)) = rest.split_once("${") {
        let (name, after) = after
            .split_once('}')
            .ok_or("has `${` without `}`".to_owned())?;
        if !literal.is_empty() {
            parts.push(SignedPart::Literal(literal.to_owned()));
        }
        parts.push(match name {
            "method" => SignedPart::Method,
            "url" => SignedPart::Url,
            "host" => SignedPart::Host,
            "path" => SignedPart::Path,
            "query" => SignedPart::Query,
            "body" => SignedPart::Body,
            "timestamp" => SignedPart::Timestamp,
            _ => {
                return Err(
                    "names no part of a request: write `${method}`, `${url}`, `${host}`, `${path}`, `${query}`, `${body}` or `${timestamp}`"
                        .to_owned(),
                );
            }
        });
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(SignedPart::Literal(rest.to_owned()));
    }
    let signs_any = parts
        .iter()
        .any(|part| !matches!(part, SignedPart::Literal(_) | SignedPart::Timestamp));
    if !signs_any || parts.len() > PARTS_MAX {
        return Err(format!(
            "has to name 1 to {PARTS_MAX} parts, and one that is not only the time"
        ));
    }
    Ok(parts)
}
