//! The template of an address. Values can fill a segment of the path, or the name or value of a
//! parameter, and never change what is around them.
//!
//! Scheme, host and port have no placeholders. Of a value everything but letters, digits and
//! `-._~` is percent-encoded. A segment that a value would make empty, `.` or `..` is refused.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::{Host, Url};

use super::refused_value::RefusedValue;
use super::template::{CallValues, NotFilled, Placeholder, TextTemplate, text_bytes};

/// Bytes of an address at most, as a template and as it is sent.
pub(super) const URL_MAX: usize = 8 * 1024;

/// What of a value is percent-encoded: all but the unreserved characters (RFC 3986 section 2.3).
const VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A template of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlTemplate {
    /// Scheme, host and port, with the path `/`.
    origin: Url,
    segments: Vec<TextTemplate>,
    /// The parameters as they stand in the template; one without `=` has no value.
    query: Vec<(TextTemplate, Option<TextTemplate>)>,
}

impl UrlTemplate {
    /// Parses it; the error is a sentence without its subject.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > URL_MAX {
            return Err(format!("is longer than {URL_MAX} bytes"));
        }
        let (scheme, rest) = ["http://", "https://"]
            .into_iter()
            .find_map(|scheme| Some((scheme, text.strip_prefix(scheme)?)))
            .ok_or("does not begin with `http://` or `https://`")?;
        if let Some(bad) = text
            .chars()
            .find(|c| c.is_whitespace() || c.is_control() || "\\<>\"^`|".contains(*c))
        {
            return Err(format!(
                "has the character {bad:?} in it; percent-encode it"
            ));
        }
        if text.contains('#') {
            return Err("has a fragment, which is never sent".to_owned());
        }
        let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains("${") {
            return Err(
                "has a placeholder before its path; scheme, host and port cannot be filled in"
                    .to_owned(),
            );
        }
        if authority.contains('@') {
            return Err("has a name or password in it; write them as `auth`".to_owned());
        }
        let origin = Url::parse(&format!("{scheme}{authority}/"))
            .map_err(|error| format!("is no address: {error}"))?;
        let (path, query) = rest
            .split_once('?')
            .map_or((rest, None), |(path, query)| (path, Some(query)));
        let segments = path
            .strip_prefix('/')
            .map_or_else(Vec::new, |path| path.split('/').collect());
        let segments: Vec<_> = segments.into_iter().map(part).collect::<Result<_, _>>()?;
        if segments
            .iter()
            .any(|segment| segment.is_literal() && is_dots(&segment.literals().collect::<String>()))
        {
            return Err("has `.` or `..` as a segment of its path".to_owned());
        }
        let pairs = query
            .into_iter()
            .flat_map(|query| query.split('&'))
            .filter(|pair| !pair.is_empty());
        let query = pairs.map(|pair| match pair.split_once('=') {
            Some((name, value)) => Ok((part(name)?, Some(part(value)?))),
            None => Ok((part(pair)?, None)),
        });
        Ok(Self {
            origin,
            segments,
            query: query.collect::<Result<_, String>>()?,
        })
    }

    /// Scheme, host and port, with the path `/`.
    pub fn origin(&self) -> &Url {
        &self.origin
    }

    /// The host that every request goes to.
    pub fn host(&self) -> Option<Host<&str>> {
        self.origin.host()
    }

    /// The bytes of memory that it takes, estimated from above.
    pub(super) fn held_bytes(&self) -> usize {
        let of_pair = |(name, value): &(TextTemplate, Option<TextTemplate>)| {
            name.held_bytes()
                + value
                    .as_ref()
                    .map_or(size_of::<TextTemplate>(), TextTemplate::held_bytes)
        };
        let segments = self.segments.iter().map(TextTemplate::held_bytes);
        text_bytes(self.origin.as_str())
            + segments
                .chain(self.query.iter().map(of_pair))
                .sum::<usize>()
    }

    /// The placeholders of the path.
    pub(super) fn path_places(&self) -> impl Iterator<Item = &Placeholder> {
        self.segments.iter().flat_map(TextTemplate::places)
    }

    /// All placeholders.
    pub(super) fn places(&self) -> impl Iterator<Item = &Placeholder> {
        let pairs = self.query.iter().flat_map(|(name, value)| {
            name.places()
                .chain(value.iter().flat_map(TextTemplate::places))
        });
        self.path_places().chain(pairs)
    }

    /// The address of one call, with these further parameters. A parameter with a placeholder that
    /// has no value is left out; a segment of the path needs its values.
    pub fn fill(
        &self,
        values: &CallValues<'_>,
        further: &[(String, TextTemplate)],
    ) -> Result<Url, RefusedValue> {
        let mut text = self.origin.as_str().trim_end_matches('/').to_owned();
        for segment in &self.segments {
            let filled = segment
                .fill(values, encode, URL_MAX)
                .map_err(|why| RefusedValue::unfilled(why, too_long))?;
            let place = || {
                segment
                    .places()
                    .next()
                    .map(|place| place.as_str().to_owned())
                    .unwrap_or_default()
            };
            if !segment.is_literal() && (filled.is_empty() || is_dots(&filled)) {
                return Err(RefusedValue::new(
                    place(),
                    "would leave its segment of the path empty, `.` or `..`",
                ));
            }
            text.push('/');
            text.push_str(&filled);
        }
        if self.segments.is_empty() {
            text.push('/');
        }
        let mut separator = '?';
        let mut add = |pair: &str| {
            text.push(separator);
            text.push_str(pair);
            separator = '&';
        };
        for (name, value) in &self.query {
            match (present(name.fill(values, encode, URL_MAX))?, value) {
                (Some(name), Some(value)) => {
                    if let Some(value) = present(value.fill(values, encode, URL_MAX))? {
                        add(&format!("{name}={value}"));
                    }
                }
                (Some(name), None) => add(&name),
                (None, _) => {}
            }
        }
        for (name, value) in further {
            if let Some(value) = present(value.fill(values, str::to_owned, URL_MAX))? {
                add(&format!("{}={}", encode(name), encode(&value)));
            }
        }
        self.checked(&text)
    }

    /// Parses what was put together, and compares it with the template once more.
    fn checked(&self, text: &str) -> Result<Url, RefusedValue> {
        if text.len() > URL_MAX {
            return Err(RefusedValue::new("", too_long()));
        }
        let url = Url::parse(text).ok().filter(|url| {
            let segments = url.path_segments().map_or(0, Iterator::count);
            url.origin() == self.origin.origin()
                && segments == self.segments.len().max(1)
                && url.username().is_empty()
                && url.fragment().is_none()
        });
        url.ok_or_else(|| {
            RefusedValue::new(String::new(), "the arguments would change the address")
        })
    }
}

/// Why an address is refused that is too long.
pub(super) fn too_long() -> String {
    format!("the address would be longer than {URL_MAX} bytes")
}

/// What a part of the query was filled to; `None` where it has no value, so that it is left out.
fn present(filled: Result<String, NotFilled<'_>>) -> Result<Option<String>, RefusedValue> {
    match filled {
        Ok(text) => Ok(Some(text)),
        Err(NotFilled::Missing(_)) => Ok(None),
        Err(long @ NotFilled::TooLong) => Err(RefusedValue::unfilled(long, too_long)),
    }
}

/// A part of a template. Its own percent-encoding is whole, so that no value becomes a part of it.
fn part(text: &str) -> Result<TextTemplate, String> {
    let template = TextTemplate::parse(text).map_err(|error| format!("cannot be read: {error}"))?;
    for literal in template.literals() {
        let whole = literal.split('%').skip(1).all(|after| {
            after.len() >= 2 && after.bytes().take(2).all(|byte| byte.is_ascii_hexdigit())
        });
        if !whole || literal.contains(['{', '}']) {
            return Err(
                "has a `%`, `{` or `}` in it that is neither percent-encoding nor a placeholder"
                    .to_owned(),
            );
        }
    }
    Ok(template)
}

/// A value as a part of an address.
fn encode(value: &str) -> String {
    utf8_percent_encode(value, VALUE).to_string()
}

/// Whether a segment means this folder or the one above, however its dots are written.
fn is_dots(segment: &str) -> bool {
    let decoded: Vec<u8> = percent_decode_str(segment).collect();
    matches!(&decoded[..], b"." | b"..")
}
