//! What of an answer is the value: a JSONPath (RFC 9535), or a regular expression that is searched
//! for in time proportional to the text.

use std::io;

use regex::{Regex, RegexBuilder};
use serde_json::Value;
use serde_json_path::JsonPath;

use super::path_work::{DocumentSize, PathWork};
use crate::json::write::quoted;

/// Bytes of an expression at most.
const EXPRESSION_MAX: usize = 4 * 1024;
/// Bytes of a compiled regular expression at most.
const COMPILED_MAX: usize = 1024 * 1024;
/// Before a regular expression that would otherwise be taken for a path.
const PATTERN: &str = "re:";
/// Steps of a path at most, which take about a second.
const WORK_MAX: u64 = 10_000_000;

/// An expression of `extractExpr`, kept as its text: what is made of it takes up to a megabyte, so
/// that exists only while one answer is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extraction(String);

/// What is made of an expression.
enum PreparedExtraction {
    /// A path. One that names a single place gives its value, every other one a list.
    Path {
        path: JsonPath,
        /// Whether it names a single place.
        single: bool,
        /// What its work depends on.
        work: PathWork,
    },
    /// An expression. It gives its first group, or all of what it fits where it has none.
    Pattern(Regex),
}

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotExtracted {
    /// It cannot be read, although it could when its tool was read.
    #[error("`extractExpr` {0}")]
    Unreadable(String),
    /// The expression fits no part of the answer.
    #[error("`extractExpr` finds nothing in the answer of the API")]
    NoMatch,
    /// A path would go too many ways through a document of this size.
    #[error(
        "the answer of the API is too large for its `extractExpr`; write a path with fewer `..`, filters and commas"
    )]
    TooMuchWork,
    /// What a path gives may be larger than what it is applied to.
    #[error("what `extractExpr` gives of the answer of the API is larger than {0} bytes")]
    TooLarge(usize),
}

impl Extraction {
    /// Parses `$...` as a path and everything else as a regular expression, with or without `re:`.
    pub fn parse(text: &str) -> Result<Self, String> {
        PreparedExtraction::new(text)?;
        Ok(Self(text.to_owned()))
    }

    /// Whether it is a path.
    pub fn is_path(&self) -> bool {
        self.0.starts_with('$')
    }

    /// The bytes of its text.
    pub(super) fn held_bytes(&self) -> usize {
        self.0.len()
    }

    /// The JSON of the value in a JSON document, of at most so many bytes; a pattern searches the
    /// document's compact text.
    pub fn in_json(&self, document: &Value, most: usize) -> Result<String, NotExtracted> {
        let (path, single, work) = match self.prepared()? {
            PreparedExtraction::Path { path, single, work } => (path, single, work),
            PreparedExtraction::Pattern(pattern) => return found(&pattern, &document.to_string()),
        };
        if work.in_document(DocumentSize::of(document)) > WORK_MAX {
            return Err(NotExtracted::TooMuchWork);
        }
        let nodes = path.query(document);
        let mut text = LimitedText {
            bytes: Vec::new(),
            left: most,
        };
        let written = match nodes.first() {
            None if single => return Err(NotExtracted::NoMatch),
            Some(node) if single => serde_json::to_writer(&mut text, node),
            _ => serde_json::to_writer(&mut text, &nodes.all()),
        };
        let text = written
            .ok()
            .and_then(|()| String::from_utf8(text.bytes).ok());
        text.ok_or(NotExtracted::TooLarge(most))
    }

    /// The JSON of the value in a text; a path has no value there.
    pub fn in_text(&self, text: &str) -> Result<String, NotExtracted> {
        match self.prepared()? {
            PreparedExtraction::Path { .. } => Err(NotExtracted::NoMatch),
            PreparedExtraction::Pattern(pattern) => found(&pattern, text),
        }
    }

    fn prepared(&self) -> Result<PreparedExtraction, NotExtracted> {
        PreparedExtraction::new(&self.0).map_err(NotExtracted::Unreadable)
    }
}

impl PreparedExtraction {
    fn new(text: &str) -> Result<Self, String> {
        if text.len() > EXPRESSION_MAX {
            return Err(format!("is longer than {EXPRESSION_MAX} bytes"));
        }
        if text.starts_with('$') {
            let work = PathWork::scan(text).map_err(|refused| refused.to_string())?;
            let path = JsonPath::parse(text).map_err(|error| format!("is no JSONPath: {error}"))?;
            return Ok(Self::Path {
                path,
                single: is_single(text),
                work,
            });
        }
        let pattern = RegexBuilder::new(text.strip_prefix(PATTERN).unwrap_or(text))
            .size_limit(COMPILED_MAX)
            .build();
        pattern
            .map(Self::Pattern)
            .map_err(|error| format!("is no regular expression: {error}"))
    }
}

/// The JSON of what a pattern finds in a text.
fn found(pattern: &Regex, text: &str) -> Result<String, NotExtracted> {
    let found = pattern.captures(text);
    let group = found.and_then(|found| {
        if found.len() > 1 {
            found.get(1)
        } else {
            found.get(0)
        }
    });
    group
        .map(|group| quoted(group.as_str()))
        .ok_or(NotExtracted::NoMatch)
}

/// A text that takes so many more bytes.
struct LimitedText {
    bytes: Vec<u8>,
    left: usize,
}

impl io::Write for LimitedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self
            .left
            .checked_sub(bytes.len())
            .ok_or(io::ErrorKind::FileTooLarge)?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a path is a singular query (RFC 9535 section 2.3.5.1): names and indices alone.
fn is_single(path: &str) -> bool {
    let mut quote = None;
    let mut escaped = false;
    let mut last = ' ';
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
            let found = Extraction::parse(expression)
                .unwrap()
                .in_json(&document, 100);
            let expected = expected
                .map(|value: Value| value.to_string())
                .ok_or(NotExtracted::NoMatch);
            assert_eq!(found, expected, "{expression}");
        }
        assert_eq!(
            Extraction::parse("(b+)").unwrap().in_text("abbc"),
            Ok("\"bb\"".to_owned())
        );
        for bad in ["$.", "$[", "(", "re:[", r"\w{1000}{1000}"] {
            assert!(Extraction::parse(bad).is_err(), "{bad}");
        }
        for expression in [
            r"$[?search(@, '(\w{60}){60}')]",
            "$[?@.a && match(@.a,@.b)]",
            "$[?(!search (@,'x'))]",
        ] {
            let refused = Extraction::parse(expression).unwrap_err();
            assert!(
                refused.contains("`match` or `search`") || refused.contains("no JSONPath"),
                "{refused}"
            );
        }
        assert!(Extraction::parse("$['match(']").is_ok());
    }

    #[test]
    fn paths_that_nest_are_refused_before_they_are_read() {
        let nested = |open: &str, inner: &str, close: &str, count: usize| {
            format!("${}{inner}{}", open.repeat(count), close.repeat(count))
        };
        let filters = |count| nested("[?@", "", "]", count);
        let parentheses = |count| format!("$[?{}]", &nested("(", "@.a", ")", count)[1..]);
        let functions = |count| format!("$[?{}==1]", &nested("length(", "@.a", ")", count)[1..]);
        for text in [
            filters(3),
            parentheses(8),
            functions(8),
            "$['[?[?[?[?((((((((((']".to_owned(),
        ] {
            assert!(Extraction::parse(&text).is_ok(), "{text}");
        }
        for text in [
            filters(4),
            filters(1_000),
            parentheses(9),
            parentheses(1_900),
            functions(9),
        ] {
            assert!(
                Extraction::parse(&text)
                    .unwrap_err()
                    .contains("within each other"),
                "{text}"
            );
        }
    }

    /// A document within which a path goes as many ways as there are.
    #[test]
    fn a_path_does_and_gives_no_more_than_a_document_allows() {
        let chain = |levels: usize| -> Value {
            serde_json::from_str(&format!(
                "{}1{}",
                r#"{"a":["#.repeat(levels),
                "]}".repeat(levels)
            ))
            .unwrap()
        };
        let in_chain =
            |path: &str, most| Extraction::parse(path).unwrap().in_json(&chain(50), most);
        assert!(in_chain("$..a", 1 << 20).is_ok());
        assert_eq!(in_chain("$..a", 1_000), Err(NotExtracted::TooLarge(1_000)));
        for path in [
            "$..*..*..*..*..*",
            &format!("$.a{}", "[0,0]..[0,0]".repeat(12)),
            &"[*,*]".repeat(40).replacen('[', "$[", 1),
        ] {
            assert_eq!(
                in_chain(path, usize::MAX),
                Err(NotExtracted::TooMuchWork),
                "{path}"
            );
        }
        let flat = Value::from(vec![json!({"id": 1, "to": "x"}); 20_000]);
        let in_flat = |path: &str| Extraction::parse(path).unwrap().in_json(&flat, usize::MAX);
        for path in [
            "$[*].id",
            "$..id",
            "$[?@.id == 1 && @.to == 'x'].to",
            "$[?@.id == $[0].id]",
            "$[0,1,2]['id','to']",
        ] {
            assert!(in_flat(path).is_ok(), "{path}");
        }
        for path in [
            "$[?$..id]",
            "$[?$[?@.id]]",
            "$[?$ == $]",
            "$[?count($..*) > 1]",
            "$[?length($[0].to) > 1]",
        ] {
            assert_eq!(in_flat(path), Err(NotExtracted::TooMuchWork), "{path}");
        }
    }

    /// The compliance suite of JSONPath, where it is at hand.
    #[test]
    fn paths_are_those_of_the_standard() {
        let Ok(corpus) = std::env::var("CALLSHEET_CORPUS") else {
            return;
        };
        let text = std::fs::read_to_string(format!("{corpus}/schemas/jsonpath_cts.json")).unwrap();
        let suite: Value = serde_json::from_str(&text).unwrap();
        let tests = suite["tests"].as_array().unwrap();
        assert!(tests.len() > 600, "{}", tests.len());
        for test in tests {
            let selector = test["selector"].as_str().unwrap();
            // These two functions are refused.
            if selector.contains("match(") || selector.contains("search(") {
                continue;
            }
            let path = Extraction::parse(selector);
            if test["invalid_selector"] == true {
                // A text that does not begin with `$` is a regular expression here.
                assert!(!path.is_ok_and(|path| path.is_path()), "{test}");
                continue;
            }
            let Ok(PreparedExtraction::Path { path, .. }) =
                PreparedExtraction::new(&path.unwrap().0)
            else {
                panic!("{test}")
            };
            let found: Value = path.query(&test["document"]).into_iter().cloned().collect();
            let expected = test.get("results").and_then(Value::as_array).cloned();
            let expected = expected.unwrap_or_else(|| vec![test["result"].clone()]);
            assert!(expected.contains(&found), "{test}: {found}");
        }
    }
}
