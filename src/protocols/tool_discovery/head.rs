//! The parts of a manifest around the tools: the protocol version, the time stamp, and the check
//! whether the document is a manifest.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::value::RawValue;

use super::envelope::Members;
use super::flaw::{DocumentFindings, Flaw, quoted_excerpt};
use crate::json::scan::{kind, string};
use crate::model::{AcceptedVersions, Finding, FindingCode, ProtocolVersion, VersionVerdict};
use crate::protocols::ListError;
use crate::protocols::document::raw::Raw;

/// The version assumed for a manifest without one.
const ASSUMED: &str = "1.0";
/// The most characters of a refused version that a message quotes.
const SEEN: usize = 60;
/// The newest version that is fully known: major, minor.
const KNOWN: (u64, u64) = (1, 0);

/// The body as text that begins like a JSON object, or the reason why it cannot be a manifest.
pub(in crate::protocols) fn object_text(body: &[u8]) -> Result<&str, ListError> {
    // RFC 8259 section 8.1 lets a reader ignore a byte order mark.
    let body = body
        .strip_prefix(b"\xef\xbb\xbf")
        .unwrap_or(body)
        .trim_ascii();
    let Some(first) = body.first() else {
        return Err(no_manifest("the body is empty"));
    };
    if *first != b'{' {
        if *first == b'<' {
            return Err(no_manifest("it is a web page or XML"));
        }
        let begins = quoted_excerpt(&String::from_utf8_lossy(&body[..body.len().min(400)]));
        let looks = match first {
            b'[' => "a bare JSON list",
            b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n'
                if serde_json::from_slice::<&RawValue>(body).is_ok() =>
            {
                "a single JSON value"
            }
            _ => "a text that is not JSON",
        };
        return Err(no_manifest(&format!(
            "it looks like {looks} and begins with {begins}"
        )));
    }
    std::str::from_utf8(body)
        .map_err(|error| malformed(&format!("is not UTF-8 at byte {}", error.valid_up_to())))
}

/// Splits the document into its members.
pub(in crate::protocols) fn members(text: &str) -> Result<Members<'_>, ListError> {
    let members = Members::parse(text).map_err(|error| {
        if error.is_eof() {
            malformed(&format!("ends in the middle, after {} bytes", text.len()))
        } else {
            malformed(&format!("is not valid JSON: {error}"))
        }
    })?;
    members.map_err(|flaw| refuse(&flaw))
}

/// Refuses an object that is not a manifest. `members` have the seed's names already; `tools` was
/// taken out of them before.
pub(super) fn recognise(
    members: &Members<'_>,
    tools: Option<Raw<'_>>,
    text: &str,
) -> Result<(), ListError> {
    let named = members.has("scenario");
    if tools.is_none() && !named {
        return Err(no_manifest(&format!(
            "it is a JSON object with neither `tools` nor `scenario` and begins with {}",
            quoted_excerpt(text)
        )));
    }
    let versioned = members.has("protocol_version");
    let whole = named && tools.is_some_and(|tools| tools.get().starts_with('['));
    if !versioned && !whole {
        return Err(no_manifest(&format!(
            "it is a JSON object without `protocol_version` and without both `scenario` and a list of `tools`, and begins with {}",
            quoted_excerpt(text)
        )));
    }
    Ok(())
}

/// Takes out the version and checks it (the table of cases is in the tests). Returns it as written.
pub(super) fn version(
    members: &mut Members<'_>,
    accept: &AcceptedVersions,
    findings: &mut DocumentFindings,
) -> Result<Arc<str>, ListError> {
    let version_finding =
        |code, message: String| Finding::new(code, message).at("/protocol_version");
    let raw = members.take("protocol_version").map(Raw::get);
    let (written, is_text) = match raw {
        None => {
            let message = format!("the manifest has no protocol version and is read as {ASSUMED}");
            let hint = format!("add `\"protocol_version\": \"{ASSUMED}\"`");
            findings.push(version_finding(FindingCode::VersionAssumed, message).hint(hint));
            (ASSUMED.to_owned(), true)
        }
        Some(raw) => match kind(raw) {
            "a text" => (
                string(raw).ok_or_else(|| unreadable(raw))?.into_owned(),
                true,
            ),
            // The number `1.10` is 1.1 to most readers, but its author may mean 1.10: with more
            // than one decimal the meaning is not known.
            "a number"
                if raw
                    .split_once('.')
                    .is_none_or(|(_, decimals)| decimals.len() <= 1) =>
            {
                (raw.to_owned(), false)
            }
            _ => return Err(unreadable(raw)),
        },
    };
    let version = accepted(&written, raw.unwrap_or_default(), accept)?;
    remark(&version, &written, is_text, findings);
    Ok(written.into())
}

/// Checks a version that was accepted before and is kept in the model as written.
pub(super) fn version_again(
    written: &str,
    accept: &AcceptedVersions,
    findings: &mut DocumentFindings,
) -> Result<(), ListError> {
    let version = accepted(written, written, accept)?;
    remark(&version, written, true, findings);
    Ok(())
}

fn accepted(
    written: &str,
    raw: &str,
    accept: &AcceptedVersions,
) -> Result<ProtocolVersion, ListError> {
    match accept.judge(written) {
        VersionVerdict::Accepted(version) => Ok(version),
        VersionVerdict::OutOfRange(_) => {
            // The version goes into messages, and a pre-release may be as long as a manifest.
            let seen = written.chars().take(SEEN).collect();
            Err(ListError::Incompatible {
                seen,
                accepted: accept.to_string(),
            })
        }
        VersionVerdict::Unreadable => Err(unreadable(raw)),
    }
}

fn remark(
    version: &ProtocolVersion,
    written: &str,
    is_text: bool,
    findings: &mut DocumentFindings,
) {
    let mut push = |code, message: String, hint: Option<&str>| {
        let mut finding = Finding::new(code, message).at("/protocol_version");
        finding.hint = hint.map(Into::into);
        findings.push(finding);
    };
    let seen = quoted_excerpt(written);
    if version.nonconforming || !is_text {
        let how = if is_text { "" } else { " as a number" };
        push(
            FindingCode::VersionNonconforming,
            format!(
                "the protocol version {seen} is written{how} in a way that the protocol does not know"
            ),
            Some("write it as a text of two or three numbers, such as `\"1.0\"`"),
        );
    }
    if version.prerelease.is_some() {
        push(
            FindingCode::VersionPrerelease,
            format!("the protocol version {seen} is a pre-release"),
            None,
        );
    }
    if (version.base.major, version.base.minor) > KNOWN {
        let message = format!(
            "the protocol version {seen} is newer than {}.{}; what is unknown in it is passed on",
            KNOWN.0, KNOWN.1
        );
        push(FindingCode::VersionNewer, message, None);
    }
}

/// Takes out the time stamp: RFC 3339, or `{seconds, nanos}` with numbers or texts. A bad time
/// stamp is left out with a finding; the rest is used.
pub(super) fn generated_at(
    members: &mut Members<'_>,
    findings: &mut DocumentFindings,
) -> Option<Timestamp> {
    // A document may hold both names; the second stamp must not be passed on as an unknown member.
    members.take("generatedAt");
    let raw = members
        .take("generated_at")
        .filter(|raw| !matches!(raw.get(), "null" | "\"\""));
    let stamp = raw.and_then(|raw| match kind(raw.get()) {
        "a text" => rfc3339(&string(raw.get())?),
        "an object" => seconds_and_nanos(raw),
        _ => None,
    });
    if stamp.is_none() {
        let what = raw.map_or_else(
            || MISSING.to_owned(),
            |raw| format!("{} is not a time", quoted_excerpt(raw.get())),
        );
        findings.push(unstamped(&what));
    }
    stamp
}

/// The text for an absent time stamp.
pub(super) const MISSING: &str = "is missing";

/// The finding for a manifest without a readable time stamp.
pub(super) fn unstamped(what: &str) -> Finding {
    let message = format!("`generated_at` {what}; the manifest is used without it");
    let hint = "write the time as RFC 3339, such as `2024-01-15T10:30:00Z`";
    Finding::new(FindingCode::GeneratedAt, message)
        .at("/generated_at")
        .hint(hint)
}

/// RFC 3339 with a fraction of any length; digits beyond nanoseconds are cut.
fn rfc3339(text: &str) -> Option<Timestamp> {
    const NANOSECONDS: usize = 9;
    let Some((whole, rest)) = text.split_once('.') else {
        return text.parse().ok();
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (fraction, zone) = rest.split_at(digits);
    format!("{whole}.{}{zone}", &fraction[..digits.min(NANOSECONDS)])
        .parse()
        .ok()
}

fn seconds_and_nanos(raw: Raw<'_>) -> Option<Timestamp> {
    let mut members = Members::from_raw(raw).ok()?;
    let mut part = |name: &str| {
        let Some(raw) = members.take_set(name) else {
            return Some(0);
        };
        raw.get().trim_matches('"').parse::<i64>().ok()
    };
    let seconds = part("seconds")?;
    let nanos = part("nanos")?;
    Timestamp::new(seconds, i32::try_from(nanos).ok()?).ok()
}

/// The error for a flaw that makes the whole document unusable.
pub(in crate::protocols) fn refuse(flaw: &Flaw) -> ListError {
    malformed(format!("{} {}", flaw.pointer, flaw.what).trim())
}

fn unreadable(raw: &str) -> ListError {
    ListError::VersionUnreadable(format!(
        "the manifest has the protocol version {}, which cannot be read",
        quoted_excerpt(raw)
    ))
}

fn malformed(what: &str) -> ListError {
    ListError::Malformed(
        format!("the manifest {what}").replace("the manifest /", "the manifest's /"),
    )
}

pub(in crate::protocols) fn no_manifest(what: &str) -> ListError {
    ListError::NotThisProtocol(format!("the answer is not a tool manifest: {what}"))
}
