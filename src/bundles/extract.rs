//! What of an answer is the value: a JSONPath (RFC 9535), or a regular expression that is searched
//! for in time proportional to the text.

use regex::{Regex, RegexBuilder};
use serde_json::Value;
use serde_json_path::JsonPath;

/// Bytes of an expression at most.
const EXPRESSION_MAX: usize = 4 * 1024;
/// Bytes of a compiled regular expression at most.
const COMPILED_MAX: usize = 1024 * 1024;
/// Before a regular expression that would otherwise be taken for a path.
const PATTERN: &str = "re:";

/// An expression of `extractExpr`.
#[derive(Debug, Clone)]
pub enum Extraction {
    /// A path. One that names a single place gives its value, every other one a list.
    Path {
        /// The path.
        path: JsonPath,
        /// Whether it names a single place.
        single: bool,
    },
    /// An expression. It gives its first group, or all of what it fits where it has none.
    Pattern(Regex),
}

impl Extraction {
    /// Parses `$...` as a path and everything else as a regular expression, with or without `re:`.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > EXPRESSION_MAX {
            return Err(format!("is longer than {EXPRESSION_MAX} bytes"));
        }
        if text.starts_with('$') {
            let path = JsonPath::parse(text).map_err(|error| format!("is no JSONPath: {error}"))?;
            return Ok(Self::Path { path, single: is_single(text) });
        }
        let pattern = RegexBuilder::new(text.strip_prefix(PATTERN).unwrap_or(text)).size_limit(COMPILED_MAX).build();
        pattern.map(Self::Pattern).map_err(|error| format!("is no regular expression: {error}"))
    }

    /// The value in a JSON document; a pattern searches its compact text. `None` if there is none.
    pub fn in_json(&self, document: &Value) -> Option<Value> {
        match self {
            Self::Path { path, single: true } => path.query(document).first().cloned(),
            Self::Path { path, single: false } => Some(path.query(document).into_iter().cloned().collect()),
            Self::Pattern(_) => self.in_text(&document.to_string()),
        }
    }

    /// The value in a text; a path finds nothing there.
    pub fn in_text(&self, text: &str) -> Option<Value> {
        match self {
            Self::Path { .. } => None,
            Self::Pattern(pattern) => {
                let found = pattern.captures(text)?;
                let group = if found.len() > 1 { found.get(1) } else { found.get(0) };
                group.map(|group| Value::from(group.as_str()))
            }
        }
    }
}

/// Whether a path is a singular query (RFC 9535 section 2.3.5.1): names and indices alone.
fn is_single(path: &str) -> bool {
    let (mut quote, mut escaped, mut last) = (None, false, ' ');
    for c in path.chars() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(end) => quote = Some(end).filter(|end| *end != c),
            None if matches!(c, '\'' | '"') => quote = Some(c),
            None if matches!(c, '*' | '?' | ',' | ':') || c == '.' && last == '.' => return false,
            None => {}
        }
        last = c;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_place_gives_its_value_and_a_search_a_list() {
        let document = json!({"a": {"b": [1, 2], "x*": "y", "q'": 7}, "t": "temp 21 C"});
        for (expression, expected) in [
            ("$.a.b[1]", Some(json!(2))),
            ("$['a']['x*']", Some(json!("y"))),
            (r"$.a['q\'']", Some(json!(7))),
            ("$.a.b[*]", Some(json!([1, 2]))),
            ("$..b", Some(json!([[1, 2]]))),
            ("$.a.b[0,1]", Some(json!([1, 2]))),
            ("$.nope", None),
            ("$.nope[*]", Some(json!([]))),
            (r"temp (\d+)", Some(json!("21"))),
            (r"re:temp \d+", Some(json!("temp 21"))),
            ("nope", None),
        ] {
            assert_eq!(Extraction::parse(expression).unwrap().in_json(&document), expected, "{expression}");
        }
        assert_eq!(Extraction::parse("(b+)").unwrap().in_text("abbc"), Some(json!("bb")));
        for bad in ["$.", "$[", "(", "re:[", r"\w{1000}{1000}"] {
            assert!(Extraction::parse(bad).is_err(), "{bad}");
        }
    }

    /// The compliance suite of JSONPath, where it is at hand.
    #[test]
    fn paths_are_those_of_the_standard() {
        let Ok(corpus) = std::env::var("CALLSHEET_CORPUS") else { return };
        let text = std::fs::read_to_string(format!("{corpus}/schemas/jsonpath_cts.json")).unwrap();
        let suite: Value = serde_json::from_str(&text).unwrap();
        let tests = suite["tests"].as_array().unwrap();
        assert!(tests.len() > 600, "{}", tests.len());
        for test in tests {
            let path = Extraction::parse(test["selector"].as_str().unwrap());
            if test["invalid_selector"] == true {
                // A text that does not begin with `$` is a regular expression here.
                assert!(!matches!(path, Ok(Extraction::Path { .. })), "{test}");
                continue;
            }
            let Ok(Extraction::Path { path, .. }) = path else { panic!("{test}") };
            let found: Value = path.query(&test["document"]).into_iter().cloned().collect();
            let expected = test.get("results").and_then(Value::as_array).cloned();
            let expected = expected.unwrap_or_else(|| vec![test["result"].clone()]);
            assert!(expected.contains(&found), "{test}: {found}");
        }
    }
}
