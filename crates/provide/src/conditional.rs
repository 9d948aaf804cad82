//! Whether a client already has what it requests (RFC 9110 section 13.1.2). Pure.

use http::HeaderMap;
use http::header::IF_NONE_MATCH;

/// Whether `If-None-Match` names `etag` (with its quotes), so that 304 is the answer to a GET. Weak
/// comparison: `W/` does not count. `*` names anything.
pub fn is_known(headers: &HeaderMap, etag: impl AsRef<[u8]>) -> bool {
    headers
        .get_all(IF_NONE_MATCH)
        .iter()
        .any(|line| names(line.as_bytes(), etag.as_ref()))
}

/// Whether one field line names `etag` (with its quotes). What follows a malformed element is not
/// read.
fn names(line: &[u8], etag: &[u8]) -> bool {
    // What nearly every client sends: the one tag that it was given.
    if line == etag {
        return true;
    }
    let mut rest = line.trim_ascii();
    if rest == b"*" {
        return true;
    }
    loop {
        rest = match rest {
            [b',' | b' ' | b'\t', after @ ..] | [b'W', b'/', after @ ..] => after,
            // A tag may hold commas, so it ends at its quote only.
            [b'"', after @ ..] => {
                let Some(length) = after.iter().position(|c| *c == b'"') else {
                    return false;
                };
                let (tag, after) = rest.split_at(length + 2);
                if tag == etag {
                    return true;
                }
                after
            }
            _ => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn known(lines: &[&'static str]) -> bool {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(IF_NONE_MATCH, HeaderValue::from_static(line));
        }
        is_known(&headers, "\"a,b\"")
    }

    #[test]
    fn finds_the_tag_wherever_it_stands() {
        for lines in [
            &["\"a,b\""][..],
            &["W/\"a,b\""],
            &["*"],
            &["\"x\" , W/\"y\",\"a,b\""],
            &["\"x\"", "\"a,b\""],
        ] {
            assert!(known(lines), "{lines:?}");
        }
    }

    #[test]
    fn other_tags_and_noise_are_not_it() {
        for lines in [
            &[][..],
            &[""],
            &["\"a\""],
            &["a,b"],
            &["\"a,b"],
            &["\"a\",b\""],
            &["junk, \"a,b\""],
        ] {
            assert!(!known(lines), "{lines:?}");
        }
    }
}
