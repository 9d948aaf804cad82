//! The form that arguments must have before they are checked, shown or sent: no object in them has
//! two members with the same name, and they do not nest too deeply.
//!
//! Readers disagree about which of two members with the same name counts. The schema would be
//! checked, and a person would approve, with one of them, while the tool may use the other. So such
//! arguments are refused on every way in. The time is linear in the size of the text.

use std::borrow::Cow;
use std::collections::HashSet;

use super::Violation;
use crate::model::JsonText;
use crate::model::finding::push_step;

/// The deepest nesting of arguments, and of results: with all that is put around them, readers that
/// stop at 128 levels can still read them.
pub(super) const MAX_DEPTH: usize = 100;
/// Up to this many names are compared one by one; more are hashed.
const FEW: usize = 12;
/// The most bytes of a pointer in a violation.
const POINTER_MAX: usize = 300;

/// What is wrong with the form of arguments; `None` if nothing is.
pub(crate) fn flaw(arguments: &JsonText) -> Option<Violation> {
    Scan { text: arguments.get(), at: 0, levels: Vec::new() }.run()
}

/// One object or list that is open.
enum Level<'a> {
    Object(MemberNames<'a>),
    List(usize),
}

/// The names of the members of one object, in their order.
#[derive(Default)]
struct MemberNames<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
    /// The member that is read now.
    current: Cow<'a, str>,
}

impl<'a> MemberNames<'a> {
    /// Adds a name. Returns whether it is a new one.
    fn add(&mut self, name: Cow<'a, str>) -> bool {
        self.current.clone_from(&name);
        if self.many.is_empty() {
            if self.few.contains(&name) {
                return false;
            }
            if self.few.len() < FEW {
                self.few.push(name);
                return true;
            }
            self.many.extend(self.few.drain(..));
        }
        self.many.insert(name)
    }
}

/// A pass over a valid JSON text.
struct Scan<'a> {
    text: &'a str,
    at: usize,
    levels: Vec<Level<'a>>,
}

impl<'a> Scan<'a> {
    fn run(mut self) -> Option<Violation> {
        // A string is a name if it follows `{` or a comma in an object.
        let mut name_follows = false;
        while let Some(byte) = self.text.as_bytes().get(self.at) {
            self.at += 1;
            match byte {
                b'{' | b'[' if self.levels.len() == MAX_DEPTH => {
                    return Some(self.violation(format!("nests deeper than {MAX_DEPTH} levels; flatten it")));
                }
                b'{' => {
                    self.levels.push(Level::Object(MemberNames::default()));
                    name_follows = true;
                }
                b'[' => {
                    self.levels.push(Level::List(0));
                    name_follows = false;
                }
                b'}' | b']' => {
                    self.levels.pop();
                    name_follows = false;
                }
                b',' => match self.levels.last_mut() {
                    Some(Level::List(index)) => *index += 1,
                    _ => name_follows = true,
                },
                b'"' => {
                    let written = self.string();
                    if name_follows {
                        name_follows = false;
                        if let Err(what) = self.name(written) {
                            return Some(self.violation(what.to_owned()));
                        }
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Skips the rest of a string. Returns what is between its quotes.
    fn string(&mut self) -> &'a str {
        let (bytes, begin) = (self.text.as_bytes(), self.at);
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'\\' => self.at += 2,
                b'"' => break,
                _ => self.at += 1,
            }
        }
        let written = self.text.get(begin..self.at).unwrap_or_default();
        self.at += 1;
        written
    }

    /// Adds the name of a member of the innermost object.
    fn name(&mut self, written: &'a str) -> Result<(), &'static str> {
        let name = if written.contains('\\') {
            let read = serde_json::from_str::<String>(&format!("\"{written}\""));
            Cow::Owned(read.map_err(|_| "has a member whose name holds a broken escape; write surrogates in pairs")?)
        } else {
            Cow::Borrowed(written)
        };
        let is_new = match self.levels.last_mut() {
            Some(Level::Object(names)) => names.add(name),
            _ => true,
        };
        if is_new { Ok(()) } else { Err("is given more than once; give each member of an object once") }
    }

    /// A violation at the place that is read now.
    fn violation(&self, message: String) -> Violation {
        let mut pointer = String::new();
        for level in &self.levels {
            let length = pointer.len();
            match level {
                Level::Object(names) => push_step(&mut pointer, &names.current),
                Level::List(index) => push_step(&mut pointer, &index.to_string()),
            }
            if pointer.len() > POINTER_MAX {
                // The pointer leads to the nearest place around it that it has room for.
                pointer.truncate(length);
                break;
            }
        }
        Violation { pointer, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer(text: &str) -> Option<String> {
        flaw(&JsonText::parse(text).unwrap()).map(|violation| violation.pointer)
    }

    #[test]
    fn equal_members_are_found_at_every_depth_and_however_they_are_written() {
        for (text, place) in [
            (r#"{"path":1,"path":2}"#, "/path"),
            (r#"{ "a" : {"x":1}, "b" : [0, {"x": {"y":1 , "z":[], "y":2}}] }"#, "/b/1/x/y"),
            (r#"{"p\u0061th":1,"path":2}"#, "/path"),
            (r#"{"a/b~":1,"x":{},"a/b~":1}"#, "/a~1b~0"),
            (r#"[[],[{"":1,"":1}]]"#, "/1/0/"),
        ] {
            assert_eq!(pointer(text).as_deref(), Some(place), "{text}");
        }
        let many: Vec<String> = (0..40).map(|n| format!("\"m{n}\":{n}")).collect();
        assert_eq!(pointer(&format!("{{{}}}", many.join(","))), None);
        assert_eq!(pointer(&format!("{{{},\"m3\":0}}", many.join(","))).as_deref(), Some("/m3"));
        assert_eq!(pointer(&format!("{{{},\"m39\":0}}", many.join(","))).as_deref(), Some("/m39"));
    }

    #[test]
    fn equal_names_of_different_objects_and_equal_texts_are_no_flaw() {
        for text in [
            r#"{"a":{"a":{"a":"a"}},"b":["a","a",{"a":1},{"a":1}],"c":"{\"a\":1,\"a\":2}"}"#,
            r#"{"a":"\\","b":"\"","c":",\"a\":"}"#,
            "{}",
            "7",
        ] {
            assert_eq!(pointer(text), None, "{text}");
        }
    }

    #[test]
    fn as_deep_as_readers_go_is_no_flaw_and_deeper_is() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        for (levels, deep) in [(MAX_DEPTH, false), (MAX_DEPTH + 1, true), (100_000, true)] {
            let text = JsonText::parse(&nested(levels)).unwrap();
            assert_eq!(flaw(&text).is_some(), deep, "{levels}");
            assert_eq!(text.nests_deeper_than(MAX_DEPTH), deep, "{levels}");
        }
        let brackets = format!("\"{}\\\"{}\"", "[".repeat(200), "{".repeat(200));
        assert!(!JsonText::parse(&brackets).unwrap().nests_deeper_than(MAX_DEPTH), "they are within a text");
    }

    #[test]
    fn a_pointer_is_as_long_as_a_person_reads() {
        let text = format!(r#"{{"a":{{"{}":1,"{}":2}}}}"#, "x".repeat(5_000), "x".repeat(5_000));
        assert_eq!(pointer(&text).as_deref(), Some("/a"));
        assert!(pointer(r#"{"\ud800":1}"#).is_some(), "no reader agrees about that name");
    }
}
