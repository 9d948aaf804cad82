//! Whether a URI fits a URI template (RFC 6570), as far as that tells which scenario it is for.
//!
//! An expression stands for any text; a simple one, such as `{id}`, for text without a slash. This
//! never reads the values of variables.

/// The most parts of a template that are looked at.
const PARTS: usize = 64;
/// The longest URI that is compared with templates, in bytes.
const URI_BYTES_MAX: usize = 2_048;

/// How many bytes of the URI the template gives literally, if the URI fits it.
pub(super) fn fit(template: &str, uri: &str) -> Option<usize> {
    let parts = parts(template).filter(|_| uri.len() <= URI_BYTES_MAX)?;
    let literal = parts.iter().map(|part| if let TemplatePart::Literal(text) = part { text.len() } else { 0 }).sum();
    fits(&parts, uri).then_some(literal)
}

enum TemplatePart<'a> {
    Literal(&'a str),
    /// An expression, and whether its values may have slashes.
    Expression(bool),
}

fn parts(template: &str) -> Option<Vec<TemplatePart<'_>>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        let (expression, after) = after.split_once('}')?;
        if !literal.is_empty() {
            parts.push(TemplatePart::Literal(literal));
        }
        parts.push(TemplatePart::Expression(expression.starts_with(['+', '#', '/', '?', '&', '.', ';'])));
        if parts.len() > PARTS {
            return None;
        }
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(TemplatePart::Literal(rest));
    }
    Some(parts)
}

/// The URI is read from the front; which places in it the parts so far may end at is all that is
/// remembered, so the work is bounded by the lengths of both.
fn fits(parts: &[TemplatePart<'_>], uri: &str) -> bool {
    let mut ends = vec![false; uri.len() + 1];
    ends[0] = true;
    for part in parts {
        let mut next = vec![false; uri.len() + 1];
        match part {
            TemplatePart::Literal(text) => {
                for at in (0..=uri.len()).filter(|at| ends[*at]) {
                    if uri.as_bytes()[at..].starts_with(text.as_bytes()) {
                        next[at + text.len()] = true;
                    }
                }
            }
            TemplatePart::Expression(with_slashes) => {
                let mut open = false;
                for at in 0..=uri.len() {
                    if at > 0 && uri.as_bytes()[at - 1] == b'/' && !with_slashes {
                        open = false;
                    }
                    open |= ends[at];
                    next[at] = open;
                }
            }
        }
        ends = next;
    }
    ends[uri.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_fits_the_templates_that_can_make_it() {
        for (template, uri, fits) in [
            ("test://template/{id}/data", "test://template/7/data", true),
            ("test://template/{id}/data", "test://template/7/8/data", false),
            ("test://template/{id}/data", "test://template/7/data/x", false),
            ("file:///{+path}", "file:///a/b.txt", true),
            ("file:///{path}", "file:///a/b.txt", false),
            ("db://{table}/{row}", "db://users/7", true),
            ("db://{table}/{row}", "db://users", false),
            ("x://{a}{?b,c}", "x://1?b=2&c=/3", true),
            ("x://plain", "x://plain", true),
            ("x://{open", "x://{open", false),
        ] {
            assert_eq!(fit(template, uri).is_some(), fits, "{template} {uri}");
        }
        assert!(fit("a://b/{x}", "a://b/c") > fit("a://{+x}", "a://b/c"));
        let many = "{a}b".repeat(30);
        assert_eq!(fit(&many, &"b".repeat(2_000)).map(|_| ()), Some(()));
    }
}
