//! Whether a URI fits a URI template (RFC 6570), as far as that tells which scenario it is for.
//!
//! An expression stands for any text; a simple one, such as `{id}`, for text without a slash. This
//! never reads the values of variables.
//!
//! Providers write the templates and clients the URIs, and requests wait for the comparison. So it
//! makes no copies, and its steps are bounded. Most templates are refused by their literal end, or
//! at the first byte of their literal beginning that the URI does not have.

/// The longest URI that is compared with templates, in bytes.
const URI_BYTES_MAX: usize = 2_048;
/// The most steps of one comparison. Without a value that is tried again, a step is a byte of the
/// template or of the URI, so this is enough for the longest of both.
const STEPS_MAX: usize = 4_096;
/// What the expressions begin with whose values may have slashes.
const OPERATORS: &[u8] = b"+#/?&.;";

/// How many bytes of the URI the template gives literally, if the URI fits it. One that takes more
/// steps than are allowed does not fit.
pub(super) fn fit(template: &str, uri: &str) -> Option<usize> {
    let mut comparison = TemplateComparison::new(template, uri)?;
    comparison.fits().then(|| literal_bytes(template))
}

/// The length of a template without its expressions.
fn literal_bytes(template: &str) -> usize {
    let mut parts = template.split('{');
    let first = parts.next().map_or(0, str::len);
    let others = parts
        .filter_map(|part| part.split_once('}'))
        .map(|(_, literal)| literal.len());
    first + others.sum::<usize>()
}

/// Where a template and a URI are read on.
#[derive(Debug, Clone, Copy, Default)]
struct ReadPoint {
    template: usize,
    uri: usize,
}

/// A comparison reads both from the front, and first gives each expression as little as it can. If
/// what follows does not fit, the last expression takes one byte more; if a simple one cannot, the
/// last one before it does whose values may have slashes.
///
/// No other expression needs to be tried again: what follows it was found as early as it can be,
/// and finding it later leaves no more text to the expressions behind it.
#[derive(Debug)]
struct TemplateComparison<'a> {
    template: &'a [u8],
    uri: &'a [u8],
    at: ReadPoint,
    /// After the last expression whose values may have slashes.
    behind_any: Option<ReadPoint>,
    /// After the last simple expression, if it comes later.
    behind_simple: Option<ReadPoint>,
    steps_left: usize,
}

impl<'a> TemplateComparison<'a> {
    /// A comparison of what comes before the literal end of the template. `None` if that already
    /// tells that the URI does not fit.
    fn new(template: &'a str, uri: &'a str) -> Option<Self> {
        let end = template.rfind('}').map_or(0, |brace| brace + 1);
        let literal_end = &template[end..];
        if uri.len() > URI_BYTES_MAX || literal_end.contains('{') {
            return None;
        }
        Some(Self {
            template: &template.as_bytes()[..end],
            uri: uri.strip_suffix(literal_end)?.as_bytes(),
            at: ReadPoint::default(),
            behind_any: None,
            behind_simple: None,
            steps_left: STEPS_MAX,
        })
    }

    fn fits(&mut self) -> bool {
        while self.steps_left > 0 {
            self.steps_left -= 1;
            let next = self.uri.get(self.at.uri);
            let goes_on = match self.template.get(self.at.template) {
                None if next.is_none() => return true,
                Some(b'{') => self.enter_expression(),
                Some(literal) if next == Some(literal) => {
                    self.at.template += 1;
                    self.at.uri += 1;
                    true
                }
                _ => self.lengthen_value(),
            };
            if !goes_on {
                return false;
            }
        }
        false
    }

    /// Begins an expression with an empty value. One that has no end fits no URI.
    fn enter_expression(&mut self) -> bool {
        let inside = &self.template[self.at.template + 1..];
        let Some(length) = inside.iter().position(|byte| *byte == b'}') else {
            return false;
        };
        self.steps_left = self.steps_left.saturating_sub(length + 1);
        self.at.template += length + 2;
        if OPERATORS.contains(&inside[0]) {
            self.behind_any = Some(self.at);
            self.behind_simple = None;
        } else {
            self.behind_simple = Some(self.at);
        }
        true
    }

    /// Gives the last expression that can take it one more byte of the URI.
    fn lengthen_value(&mut self) -> bool {
        self.behind_simple = self
            .longer(self.behind_simple)
            .filter(|point| self.uri[point.uri - 1] != b'/');
        if self.behind_simple.is_none() {
            self.behind_any = self.longer(self.behind_any);
        }
        let Some(point) = self.behind_simple.or(self.behind_any) else {
            return false;
        };
        self.at = point;
        true
    }

    fn longer(&self, point: Option<ReadPoint>) -> Option<ReadPoint> {
        let longer = point.map(|point| ReadPoint {
            uri: point.uri + 1,
            ..point
        });
        longer.filter(|longer| longer.uri <= self.uri.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_fits_the_templates_that_can_make_it() {
        for (template, uri, fits) in [
            ("test://template/{id}/data", "test://template/7/data", true),
            (
                "test://template/{id}/data",
                "test://template/7/8/data",
                false,
            ),
            (
                "test://template/{id}/data",
                "test://template/7/data/x",
                false,
            ),
            ("file:///{+path}", "file:///a/b.txt", true),
            ("file:///{path}", "file:///a/b.txt", false),
            ("file:///{+path}/{name}.txt", "file:///a.txt/b/c.txt", true),
            ("db://{table}/{row}", "db://users/7", true),
            ("db://{table}/{row}", "db://users", false),
            ("x://{a}{?b,c}", "x://1?b=2&c=/3", true),
            ("x://plain", "x://plain", true),
            ("x://plain", "x://plai", false),
            ("x://{open", "x://{open", false),
            ("x://{a}/{open", "x://1/{open", false),
            ("x://{}", "x://any", true),
            ("x://{a}é", "x://éé", true),
            ("", "", true),
        ] {
            assert_eq!(fit(template, uri).is_some(), fits, "{template} {uri}");
        }
        assert!(fit("a://b/{x}", "a://b/c") > fit("a://{+x}", "a://b/c"));
        assert_eq!(fit("a}://{x}/b}{+y}", "a}://1/b}2"), Some(8));
        let many = "{a}b".repeat(30);
        assert_eq!(fit(&many, &"b".repeat(2_000)), Some(30));
        assert_eq!(fit("{+a}", &"b".repeat(2_048)), Some(0));
        assert_eq!(fit("{+a}", &"b".repeat(2_049)), None);
    }

    /// All texts of at most so many of these parts.
    fn texts(parts: &[&str], most: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut longest = all.clone();
        for _ in 0..most {
            longest = longest
                .iter()
                .flat_map(|text| parts.iter().map(move |part| format!("{text}{part}")))
                .collect();
            all.extend_from_slice(&longest);
        }
        all
    }

    /// The same by trying every value of every expression.
    fn fits_plainly(template: &str, uri: &str) -> bool {
        if let Some((expression, rest)) = template
            .strip_prefix('{')
            .and_then(|inside| inside.split_once('}'))
        {
            let may_be = |value: &str| expression.starts_with('+') || !value.contains('/');
            return (0..=uri.len())
                .any(|end| may_be(&uri[..end]) && fits_plainly(rest, &uri[end..]));
        }
        match template.chars().next() {
            Some(first) => uri.starts_with(first) && fits_plainly(&template[1..], &uri[1..]),
            None => uri.is_empty(),
        }
    }

    #[test]
    fn every_short_uri_fits_the_same_templates_as_by_trying_all_values() {
        let uris = texts(&["a", "b", "/"], 5);
        for template in texts(&["a", "/", "{x}", "{+x}"], 5) {
            for uri in &uris {
                assert_eq!(
                    fit(&template, uri).is_some(),
                    fits_plainly(&template, uri),
                    "{template} {uri}"
                );
            }
        }
    }

    /// The steps after which it is known whether the URI fits, which is as expected.
    fn steps(template: &str, uri: &str, is_fitting: bool) -> usize {
        let mut comparison = TemplateComparison::new(template, uri).expect("the literal end fits");
        assert_eq!(comparison.fits(), is_fitting, "{template} {uri}");
        STEPS_MAX - comparison.steps_left
    }

    #[test]
    fn the_steps_of_a_comparison_are_bounded() {
        assert!(TemplateComparison::new("file:///{+path}.txt", "file:///a.md").is_none());
        assert_eq!(
            steps("note://{+path}", "file:///a", false),
            1,
            "refused by its literal beginning"
        );
        assert_eq!(steps("file:///b/{+path}", "file:///a", false), 9);
        // About the bytes of both, where no value has to be tried again.
        let uri = format!("f:{}7", "xb".repeat(1_000));
        let template = format!("f:{}7", "{+a}b".repeat(400));
        assert!(steps(&template, &uri, true) < STEPS_MAX);
        let template = format!("f:{}c{{+b}}", "{+a}b".repeat(300));
        assert!(steps(&template, &uri, false) < STEPS_MAX);
        // Each byte of the URI may begin what is behind the first expression, which is long.
        let template = format!("{{+x}}{}b{{+y}}", "a".repeat(1_000));
        assert_eq!(steps(&template, &"a".repeat(2_000), false), STEPS_MAX);
        let template = format!("{{+x}}a{{{}}}b{{+z}}", "y".repeat(2_000));
        assert_eq!(steps(&template, &"a/".repeat(1_000), false), STEPS_MAX);
    }
}
