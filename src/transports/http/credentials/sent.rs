//! The secrets that were sent to one origin, so that they are masked where they come back.

use std::collections::VecDeque;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::header::{ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName};
use percent_encoding::percent_decode;

use crate::model::Secret;
use crate::transports::Mask;
use crate::transports::mask::SHORTEST_SECRET;

/// How many credentials are remembered, the newest of which is in use.
const REMEMBERED: usize = 4;

/// Headers that may be configured and are no secrets; their values are words of many documents.
const NO_SECRETS: [HeaderName; 5] = [
    ACCEPT,
    ACCEPT_ENCODING,
    ACCEPT_LANGUAGE,
    CONTENT_TYPE,
    USER_AGENT,
];

/// What was sent, and the mask for it. The mask is made again only when something else is sent.
#[derive(Default)]
pub(super) struct SentSecrets {
    /// The newest is the last.
    headers: VecDeque<HeaderMap>,
    /// Secrets that are sent elsewhere than in these headers.
    others: Vec<Secret>,
    pub(super) mask: Mask,
}

impl SentSecrets {
    /// Adds the headers of a request.
    pub(super) fn add(&mut self, headers: &HeaderMap) {
        if headers.is_empty() || self.headers.back() == Some(headers) {
            return;
        }
        self.headers.retain(|known| known != headers);
        if self.headers.len() == REMEMBERED {
            self.headers.pop_front();
        }
        self.headers.push_back(headers.clone());
        self.make_mask();
    }

    /// Adds secrets that are sent elsewhere, such as in a body.
    pub(super) fn add_others<'a>(&mut self, secrets: impl Iterator<Item = &'a Secret>) {
        let known = self.others.len();
        self.others.extend(secrets.cloned());
        if self.others.len() > known {
            self.make_mask();
        }
    }

    fn make_mask(&mut self) {
        let mut secrets: Vec<Vec<u8>> = self
            .others
            .iter()
            .map(|secret| secret.expose().into())
            .collect();
        for (name, value) in self.headers.iter().flatten() {
            if !NO_SECRETS.contains(name) {
                add_header(value.as_bytes(), &mut secrets);
            }
        }
        self.mask = Mask::new(secrets.iter().map(Vec::as_slice), SHORTEST_SECRET);
    }
}

/// Adds the value of a header, what follows its scheme, and the password in that.
fn add_header(value: &[u8], secrets: &mut Vec<Vec<u8>>) {
    secrets.push(value.to_vec());
    let Some(space) = value.iter().position(|byte| *byte == b' ') else {
        return;
    };
    let credential = &value[space + 1..];
    secrets.push(credential.to_vec());
    if !value[..space].eq_ignore_ascii_case(b"basic") {
        return;
    }
    let Ok(pair) = BASE64_STANDARD.decode(credential) else {
        return;
    };
    if let Some(colon) = pair.iter().position(|byte| *byte == b':') {
        let password = &pair[colon + 1..];
        // A client of an authorization server writes it as in a form (RFC 6749 section 2.3.1), and
        // the server reads it decoded.
        let spaced: Vec<u8> = password
            .iter()
            .map(|byte| if *byte == b'+' { b' ' } else { *byte })
            .collect();
        secrets.extend([password.to_vec(), percent_decode(&spaced).collect()]);
    }
    secrets.push(pair);
}
