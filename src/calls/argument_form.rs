//! The form that arguments must have before they are checked, shown or sent: no object in them has
//! two members with the same name, and they do not nest too deeply.
//!
//! Readers disagree about which of two members with the same name counts. The schema would be
//! checked, and a person would approve, with one of them, while the tool may use the other. So such
//! arguments are refused on every way in. The time is linear in the size of the text.

use std::borrow::Cow;

use super::Violation;
use crate::json::LEVELS_MAX;
use crate::json::names::NameSet;
use crate::json::scan::{JsonToken, Tokens, string};
use crate::model::JsonText;
use crate::model::finding::push_step;

/// The most bytes of a pointer in a violation.
const POINTER_BYTES_MAX: usize = 300;

/// What is wrong with the form of arguments, if anything is.
pub(crate) fn flaw(arguments: &JsonText) -> Option<Violation> {
    let mut levels = Levels::default();
    for token in Tokens::new(arguments.get()) {
        if let Err(message) = levels.enter(&token) {
            return Some(Violation {
                pointer: levels.pointer(),
                message,
            });
        }
    }
    None
}

/// The objects and lists that are open, the innermost one last.
#[derive(Default)]
struct Levels<'a> {
    open: Vec<Level<'a>>,
    /// Whether a string would be a name now: behind `{`, or behind a comma in an object.
    name_follows: bool,
}

/// One object or list that is open.
enum Level<'a> {
    Object(MemberNames<'a>),
    List(usize),
}

/// The names of the members of one object.
#[derive(Default)]
struct MemberNames<'a> {
    seen: NameSet<Cow<'a, str>>,
    /// The member that is read now.
    current: Cow<'a, str>,
}

impl<'a> Levels<'a> {
    /// Reads one token. The error is the rest of a sentence whose subject is the current position.
    fn enter(&mut self, token: &JsonToken<'a>) -> Result<(), String> {
        let is_name = std::mem::take(&mut self.name_follows) && token.first == b'"';
        match token.first {
            b'{' | b'[' if self.open.len() == LEVELS_MAX => {
                return Err(format!("nests deeper than {LEVELS_MAX} levels; flatten it"));
            }
            b'{' => {
                self.open.push(Level::Object(MemberNames::default()));
                self.name_follows = true;
            }
            b'[' => self.open.push(Level::List(0)),
            b'}' | b']' => {
                self.open.pop();
            }
            b',' => match self.open.last_mut() {
                Some(Level::List(index)) => *index += 1,
                _ => self.name_follows = true,
            },
            b'"' if is_name => self.name(token)?,
            _ => {}
        }
        Ok(())
    }

    /// Adds the name of a member of the innermost object.
    fn name(&mut self, written: &JsonToken<'a>) -> Result<(), String> {
        let Some(name) = string(written.text) else {
            return Err(
                "has a member whose name holds a broken escape; write surrogates in pairs"
                    .to_owned(),
            );
        };
        let Some(Level::Object(names)) = self.open.last_mut() else {
            return Ok(());
        };
        names.current.clone_from(&name);
        if names.seen.add(name) {
            return Ok(());
        }
        Err("is given more than once; give each member of an object once".to_owned())
    }

    /// Leads to what is read now, or to the nearest value around it that it has room for.
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for level in &self.open {
            let length = pointer.len();
            match level {
                Level::Object(names) => push_step(&mut pointer, &names.current),
                Level::List(index) => push_step(&mut pointer, &index.to_string()),
            }
            if pointer.len() > POINTER_BYTES_MAX {
                pointer.truncate(length);
                break;
            }
        }
        pointer
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
            (
                r#"{ "a" : {"x":1}, "b" : [0, {"x": {"y":1 , "z":[], "y":2}}] }"#,
                "/b/1/x/y",
            ),
            (r#"{"p\u0061th":1,"path":2}"#, "/path"),
            (r#"{"a/b~":1,"x":{},"a/b~":1}"#, "/a~1b~0"),
            (r#"[[],[{"":1,"":1}]]"#, "/1/0/"),
        ] {
            assert_eq!(pointer(text).as_deref(), Some(place), "{text}");
        }
        let many: Vec<String> = (0..40).map(|n| format!("\"m{n}\":{n}")).collect();
        assert_eq!(pointer(&format!("{{{}}}", many.join(","))), None);
        assert_eq!(
            pointer(&format!("{{{},\"m3\":0}}", many.join(","))).as_deref(),
            Some("/m3")
        );
        assert_eq!(
            pointer(&format!("{{{},\"m39\":0}}", many.join(","))).as_deref(),
            Some("/m39")
        );
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
        for (levels, deep) in [(LEVELS_MAX, false), (LEVELS_MAX + 1, true), (100_000, true)] {
            let text = JsonText::parse(&nested(levels)).unwrap();
            assert_eq!(flaw(&text).is_some(), deep, "{levels}");
            assert_eq!(text.nests_deeper_than(LEVELS_MAX), deep, "{levels}");
        }
    }

    #[test]
    fn a_pointer_is_as_long_as_a_person_reads() {
        let text = format!(
            r#"{{"a":{{"{}":1,"{}":2}}}}"#,
            "x".repeat(5_000),
            "x".repeat(5_000)
        );
        assert_eq!(pointer(&text).as_deref(), Some("/a"));
        assert!(
            pointer(r#"{"\ud800":1}"#).is_some(),
            "no reader agrees about that name"
        );
    }
}
