//! Replaces secrets in what comes back from a scenario.
//!
//! A server or program that quotes its caller's credential must not hand it to models, pages and
//! other clients. A secret is found as it is, with the escapes of JSON, percent-encoded (also more
//! than once), and in base64 wherever it begins there. What has no secret is not copied, and a
//! target without credentials costs no time.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton as _;
use aho_corasick::nfa::contiguous::NFA;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD, Engine as _};
use bytes::Bytes;

/// Bytes of the shortest secret that is masked in documents. A shorter one may well be a word of
/// other texts.
pub(super) const SHORTEST_SECRET: usize = 16;

/// Bytes of the shortest secret that is masked as it is after percent-decoding. A shorter one may
/// well be a word of other texts.
const SHORTEST_DECODED: usize = 8;

/// Bytes at the beginning of a longer secret that are masked. The memory for a secret is a multiple
/// of its length, and an authorization server chooses how long a token is.
const LONGEST_SECRET: usize = 4 * 1024;

/// What stands for a secret.
const SHOWN: &str = "***";

/// Secrets that are masked. Cheap to clone; the default has none.
#[derive(Clone, Default)]
pub(crate) struct Mask(Option<Arc<Secrets>>);

/// See [`Mask`].
struct Secrets {
    found_by: NFA,
    /// Bytes of the longest text that is searched.
    longest: usize,
    /// Whether a text that is searched begins with this byte. Most bytes need no further look.
    begins_with: [bool; 256],
}

impl Mask {
    /// Masks these secrets in every spelling, if they have at least `shortest` bytes.
    pub(super) fn new<'a>(secrets: impl IntoIterator<Item = &'a [u8]>, shortest: usize) -> Self {
        let mut spellings = Vec::new();
        for secret in secrets {
            if secret.len() >= shortest {
                add_spellings(&secret[..secret.len().min(LONGEST_SECRET)], &mut spellings);
            }
        }
        spellings.retain(|spelling| !spelling.is_empty());
        spellings.sort();
        spellings.dedup();
        let longest = spellings.iter().map(Vec::len).max();
        // Building fails for more states than any secrets of limited length have.
        let mut begins_with = [false; 256];
        for spelling in &spellings {
            begins_with[usize::from(spelling[0])] = true;
        }
        let built = longest.and_then(|longest| {
            Some(Secrets {
                found_by: NFA::new(&spellings).ok()?,
                longest,
                begins_with,
            })
        });
        Self(built.map(Arc::new))
    }

    /// Whether there is no secret.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Bytes of the longest text that is searched.
    pub(super) fn longest(&self) -> usize {
        self.0.as_ref().map_or(0, |secrets| secrets.longest)
    }

    /// A text for people with `***` for each secret.
    pub(crate) fn text(&self, text: String) -> String {
        match self.replaced(text.as_bytes(), |_| SHOWN.to_owned()) {
            Cow::Borrowed(_) => text,
            Cow::Owned(masked) => String::from_utf8_lossy(&masked).into_owned(),
        }
    }

    /// A document, such as a body: one that is JSON stays JSON. A secret that is, or may be a part
    /// of, a JSON number has `1` for each digit, because `***` is no number.
    pub(crate) fn document<'a>(&self, document: &'a [u8]) -> Cow<'a, [u8]> {
        self.replaced(document, |secret| {
            if !secret
                .iter()
                .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(byte))
            {
                return SHOWN.to_owned();
            }
            secret
                .iter()
                .map(|byte| {
                    if byte.is_ascii_digit() {
                        '1'
                    } else {
                        char::from(*byte)
                    }
                })
                .collect()
        })
    }

    /// A body; see [`Self::document`].
    pub(super) fn body(&self, body: Bytes) -> Bytes {
        let masked = match self.document(&body) {
            Cow::Borrowed(_) => None,
            Cow::Owned(masked) => Some(Bytes::from(masked.into_boxed_slice())),
        };
        masked.unwrap_or(body)
    }

    /// A text that is a document; see [`Self::document`].
    pub(crate) fn document_text(&self, document: String) -> String {
        match self.document(document.as_bytes()) {
            Cow::Borrowed(_) => document,
            Cow::Owned(masked) => String::from_utf8_lossy(&masked).into_owned(),
        }
    }

    fn replaced<'a>(&self, text: &'a [u8], shown: impl Fn(&[u8]) -> String) -> Cow<'a, [u8]> {
        let Some(secrets) = &self.0 else {
            return Cow::Borrowed(text);
        };
        let found = secrets.found(text);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut masked = Vec::with_capacity(text.len());
        let mut copied = 0;
        for place in found {
            masked.extend_from_slice(&text[copied..place.start]);
            masked.extend_from_slice(shown(&text[place.clone()]).as_bytes());
            copied = place.end;
        }
        masked.extend_from_slice(&text[copied..]);
        Cow::Owned(masked)
    }
}

/// Shows no secret.
impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mask").finish_non_exhaustive()
    }
}

impl Secrets {
    /// Where secrets stand in a text, in order and apart from each other.
    fn found(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        self.search(text, plain, &mut found);
        if text.contains(&b'\\') {
            self.search(text, without_escapes, &mut found);
        }
        if text.contains(&b'%') {
            self.search(text, percent_decoded, &mut found);
            if text.windows(3).any(|escape| escape == b"%25") {
                self.search(text, percent_decoded_again, &mut found);
            }
        }
        found.sort_unstable_by_key(|place| place.start);
        let mut apart: Vec<Range<usize>> = Vec::with_capacity(found.len());
        for place in found {
            match apart.last_mut() {
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                _ => apart.push(place),
            }
        }
        apart
    }

    /// Adds where secrets stand in a text that is read with `read`: the byte at a position, and how
    /// many bytes of the text it takes.
    fn search(
        &self,
        text: &[u8],
        read: impl Fn(&[u8]) -> (u8, usize),
        found: &mut Vec<Range<usize>>,
    ) {
        let Ok(start) = self.found_by.start_state(Anchored::No) else {
            return;
        };
        let mut state = start;
        // Where each of the last bytes that were read begins.
        let mut begins = vec![0; self.longest];
        let mut count = 0;
        let mut at = 0;
        while at < text.len() {
            let (byte, taken) = read(&text[at..]);
            let begin = at;
            at += taken;
            if state == start && !self.begins_with[usize::from(byte)] {
                continue;
            }
            begins[count % self.longest] = begin;
            count += 1;
            state = self.found_by.next_state(Anchored::No, state, byte);
            if !self.found_by.is_special(state) || !self.found_by.is_match(state) {
                continue;
            }
            let matches = 0..self.found_by.match_len(state);
            let lengths = matches.map(|i| {
                self.found_by
                    .pattern_len(self.found_by.match_pattern(state, i))
            });
            if let Some(length) = lengths.max() {
                found.push(begins[(count - length) % self.longest]..at);
            }
        }
    }
}

/// Reads a byte as it is. The text is never empty, here and below.
fn plain(text: &[u8]) -> (u8, usize) {
    (text[0], 1)
}

/// Reads a byte that may be escaped as in JSON, or in JSON within JSON: a row of backslashes counts
/// as one escape.
fn without_escapes(text: &[u8]) -> (u8, usize) {
    if text[0] != b'\\' {
        return (text[0], 1);
    }
    let row = text.iter().take_while(|byte| **byte == b'\\').count();
    match &text[row..] {
        [byte @ (b'"' | b'/'), ..] => (*byte, row + 1),
        [b'u', b'0', b'0', high, low, ..] => {
            byte_of(*high, *low).map_or((b'\\', row), |byte| (byte, row + 5))
        }
        _ => (b'\\', row),
    }
}

/// Reads a byte that may be percent-encoded.
fn percent_decoded(text: &[u8]) -> (u8, usize) {
    match text {
        [b'%', high, low, ..] => byte_of(*high, *low).map_or((b'%', 1), |byte| (byte, 3)),
        _ => (text[0], 1),
    }
}

/// Reads a byte that may be percent-encoded more than once: `%25` is a percent sign itself.
fn percent_decoded_again(text: &[u8]) -> (u8, usize) {
    if text[0] != b'%' {
        return (text[0], 1);
    }
    let signs = text[1..]
        .chunks_exact(2)
        .take_while(|digits| *digits == b"25")
        .count();
    let end = 1 + 2 * signs;
    match text[end..] {
        [high, low, ..] => byte_of(high, low).map_or((b'%', end), |byte| (byte, end + 2)),
        _ => (b'%', end),
    }
}

/// The byte of two hexadecimal digits.
fn byte_of(high: u8, low: u8) -> Option<u8> {
    let digit = |letter: u8| char::from(letter).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

/// Adds the texts by which a secret is found.
fn add_spellings(secret: &[u8], spellings: &mut Vec<Vec<u8>>) {
    // A backslash at the end could be half of an escape, which has to stay whole.
    let end = secret
        .iter()
        .rposition(|byte| *byte != b'\\')
        .map_or(0, |last| last + 1);
    let secret = &secret[..end];
    spellings.push(secret.to_vec());
    if secret.contains(&b' ') {
        // As in a form.
        spellings.push(
            secret
                .iter()
                .map(|byte| if *byte == b' ' { b'+' } else { *byte })
                .collect(),
        );
    }
    if secret.contains(&b'\\') {
        spellings.push(read_whole(secret, without_escapes));
    }
    if secret.len() < SHORTEST_SECRET {
        return;
    }
    // One that has escapes itself loses them where a text is decoded more than once.
    let decoded = read_whole(secret, percent_decoded_again);
    if decoded != secret && decoded.len() >= SHORTEST_DECODED {
        spellings.push(decoded);
    }
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(secret);
        // Letters that other bytes have a part in are left out.
        let own = (before * 8).div_ceil(6)..bytes.len() * 8 / 6;
        for encoded in [
            BASE64_STANDARD_NO_PAD.encode(&bytes),
            BASE64_URL_SAFE_NO_PAD.encode(&bytes),
        ] {
            spellings.push(encoded.as_bytes()[own.clone()].to_vec());
        }
    }
}

/// A secret as it is read with `read`: the byte at a position, and how many bytes of it that takes.
fn read_whole(secret: &[u8], read: impl Fn(&[u8]) -> (u8, usize)) -> Vec<u8> {
    let mut whole = Vec::with_capacity(secret.len());
    let mut at = 0;
    while at < secret.len() {
        let (byte, taken) = read(&secret[at..]);
        whole.push(byte);
        at += taken;
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "k/y+\"7 f0?a>b~c\u{f6}d-e";

    fn mask(secrets: &[&str]) -> Mask {
        Mask::new(
            secrets.iter().map(|secret| secret.as_bytes()),
            SHORTEST_SECRET,
        )
    }

    fn masked(secrets: &[&str], text: &str) -> String {
        mask(secrets).document_text(text.to_owned())
    }

    #[test]
    fn every_spelling_is_found() {
        let json = serde_json::to_string(SECRET).unwrap();
        let twice = serde_json::to_string(&json).unwrap();
        let upper = SECRET.bytes().fold(String::new(), |escaped, byte| {
            escaped + &format!("%{byte:02X}")
        });
        let form: String = url::form_urlencoded::byte_serialize(SECRET.as_bytes()).collect();
        let inner = |json: &str| {
            json.replace('/', "\\/")
                .replace('k', "\\u006B")
                .replace('y', "\\u0079")
        };
        for text in [
            SECRET,
            &upper,
            &upper.to_lowercase(),
            &form,
            &form.to_lowercase(),
        ] {
            assert_eq!(masked(&[SECRET], &format!("<{text}>")), "<***>", "{text}");
        }
        let again = |text: &str| text.replace('%', "%25");
        for text in [
            again(&upper),
            again(&again(&upper)),
            again(&form),
            again(&form).to_lowercase(),
        ] {
            assert_eq!(
                masked(&[SECRET], &format!("%25<{text}>%")),
                "%25<***>%",
                "{text}"
            );
        }
        assert_eq!(masked(&[SECRET], &json), "\"***\"");
        assert_eq!(masked(&[SECRET], &inner(&json)), "\"***\"");
        assert_eq!(masked(&[SECRET], &twice), "\"\\\"***\\\"\"");
        for before in ["", "a", "me", "you", "user:"] {
            let pair = format!("{before}{SECRET}!");
            for encoded in [
                BASE64_STANDARD_NO_PAD.encode(&pair),
                BASE64_URL_SAFE_NO_PAD.encode(&pair),
            ] {
                let rest = masked(&[SECRET], &encoded);
                assert!(
                    rest.contains("***") && rest.len() < pair.len() / 2 + 7,
                    "{encoded}: {rest}"
                );
                assert!(
                    masked(&[SECRET], &encoded.replace('/', "\\/")).contains("***"),
                    "{encoded}"
                );
                assert!(
                    masked(&[SECRET], &encoded.replace('+', "%2b").replace('/', "%2F"))
                        .contains("***")
                );
            }
        }
    }

    #[test]
    fn a_secret_with_escapes_is_found_however_often_it_is_encoded() {
        let secret = "ab%41cd%2fef%25gh%zz%";
        let mut text = secret.to_owned();
        for times in 0..4 {
            assert_eq!(masked(&[secret], &format!("<{text}>")), "<***>", "{times}");
            text = text.replace('%', "%25");
        }
        // What is left of it without its escapes would be a word.
        let short = "%61%62%63%64%65%66";
        assert_eq!(masked(&[short], "abcdef"), "abcdef");
    }

    #[test]
    fn secrets_that_overlap_are_masked_whole_and_others_stay() {
        let long = "0123456789abcdefghij";
        assert_eq!(
            masked(&[&long[..16], long, &long[4..]], &format!("x{long}y")),
            "x***y"
        );
        assert_eq!(masked(&["short"], "short"), "short");
        assert_eq!(masked(&[long], "0123456789abcdef"), "0123456789abcdef");
        assert!(mask(&["short"]).is_empty() && Mask::default().is_empty());
        let back = "\\a secret of \"slashes\\";
        let json = serde_json::to_string(&[back]).unwrap();
        serde_json::from_str::<Vec<String>>(&masked(&[back], &json)).unwrap();
        assert!(!masked(&[back], &json).contains("slashes"));
    }

    #[test]
    fn a_number_stays_a_number() {
        let digits = "1234567890123456";
        assert_eq!(
            masked(&[digits], &format!("[{digits}0.5]")),
            "[11111111111111110.5]"
        );
        assert_eq!(mask(&[digits]).text(format!("[{digits}]")), "[***]");
    }
}
