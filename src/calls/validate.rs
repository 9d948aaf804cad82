//! Whether arguments fit the schema of their tool.
//!
//! Schemas are strangers' texts: nothing they refer to is fetched, from no network and no file, and their patterns run on an engine whose
//! time is linear. A schema that cannot be used (its reference leads outside, its pattern needs look-around) checks nothing: its own
//! scenario still does, and the checks of its manifest tell its author. Formats are notes, as the standard has it.
//!
//! Compiled schemas are kept by the digest of their text. What may take long runs beside the async threads.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

use super::{Refused, Violation};
use crate::model::JsonText;
use crate::runtime::Tasks;

/// Violations told at most.
pub const MOST_VIOLATIONS: usize = 50;
/// Characters of each message at most: it quotes what the asker wrote.
const LONGEST_MESSAGE: usize = 300;
/// Bytes of arguments that are checked on the thread that received them.
const AT_ONCE: usize = 16 * 1024;
/// Bytes of one compiled pattern: those of a schema's author are small, and a nest of repetitions is not.
const PATTERN_BYTES: usize = 1024 * 1024;

/// Compiled schemas.
#[derive(Debug, Default)]
pub(super) struct Validators(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    by_digest: HashMap<u128, (Arc<Schema>, u64)>,
    /// Grows with each use; the least is the one used longest ago.
    uses: u64,
}

/// A schema that was compiled once.
#[derive(Debug)]
enum Schema {
    Checks(Box<Validator>),
    /// It cannot be used.
    Nothing,
}

impl Validators {
    /// Refuses arguments that are no object or do not fit `schema`, which is that of `tool`. At most `most` schemas are kept.
    pub(super) async fn check(
        &self,
        tool: &str,
        schema: &JsonText,
        arguments: &JsonText,
        most: usize,
        tasks: &Tasks,
    ) -> Result<(), Refused> {
        let digest = xxh3_128(schema.get().as_bytes());
        let known = self.known(digest);
        let outcome = match known {
            Some(known) if arguments.get().len() <= AT_ONCE => known.violations(arguments),
            known => {
                let (schema, arguments) = (schema.clone(), arguments.clone());
                let (compiled, outcome) = tasks
                    .off_thread(move || {
                        let compiled = known.clone().unwrap_or_else(|| Arc::new(Schema::compile(&schema)));
                        let outcome = compiled.violations(&arguments);
                        (compiled, outcome)
                    })
                    .await;
                self.keep(digest, compiled, most);
                outcome
            }
        };
        match outcome {
            None => Ok(()),
            Some((violations, more)) => Err(Refused::Invalid { tool: tool.to_owned(), violations, more }),
        }
    }

    fn known(&self, digest: u128) -> Option<Arc<Schema>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        let uses = kept.uses;
        kept.by_digest.get_mut(&digest).map(|(schema, used)| {
            *used = uses;
            Arc::clone(schema)
        })
    }

    fn keep(&self, digest: u128, schema: Arc<Schema>, most: usize) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let uses = kept.uses;
        kept.by_digest.insert(digest, (schema, uses));
        if kept.by_digest.len() > most {
            // A quarter at a time, so that looking for the oldest is rare.
            let mut ages: Vec<u64> = kept.by_digest.values().map(|(_, used)| *used).collect();
            ages.sort_unstable();
            let limit = ages.get(ages.len().saturating_sub(most - most / 4)).copied().unwrap_or_default();
            kept.by_digest.retain(|_, (_, used)| *used >= limit);
        }
    }
}

impl Schema {
    fn compile(schema: &JsonText) -> Self {
        let Ok(schema) = serde_json::from_str::<Value>(schema.get()) else { return Self::Nothing };
        let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
        match jsonschema::options().offline().with_pattern_options(patterns).build(&schema) {
            Ok(validator) => Self::Checks(Box::new(validator)),
            Err(_) => Self::Nothing,
        }
    }

    /// What is wrong with the arguments, and whether there is more of it; nothing when they fit.
    fn violations(&self, arguments: &JsonText) -> Option<(Vec<Violation>, bool)> {
        let arguments: Value = match serde_json::from_str(arguments.get()) {
            Ok(arguments @ Value::Object(_)) => arguments,
            Ok(_) => return Some(whole("they must be one JSON object".to_owned())),
            // Nested too deep for any reader.
            Err(error) => return Some(whole(format!("they cannot be read: {error}"))),
        };
        let Self::Checks(validator) = self else { return None };
        // Nearly all fit, which is found out without a list of what does not.
        if validator.is_valid(&arguments) {
            return None;
        }
        let mut errors = validator.iter_errors(&arguments);
        let told: Vec<_> = errors.by_ref().take(MOST_VIOLATIONS).map(|error| violation(&error)).collect();
        (!told.is_empty()).then(|| (told, errors.next().is_some()))
    }
}

fn whole(message: String) -> (Vec<Violation>, bool) {
    (vec![Violation { pointer: String::new(), message }], false)
}

fn violation(error: &jsonschema::ValidationError<'_>) -> Violation {
    let message = error.to_string();
    let cut: String = match message.char_indices().nth(LONGEST_MESSAGE) {
        None => message,
        Some(_) => message.chars().take(LONGEST_MESSAGE - 1).chain(['…']).collect(),
    };
    Violation { pointer: error.instance_path().to_string(), message: cut }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("schemas", &self.by_digest.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(value: &Value) -> JsonText {
        JsonText::read(&value.to_string()).unwrap()
    }

    fn violations(schema: &Value, arguments: &Value) -> Vec<(String, String)> {
        let told = Schema::compile(&text(schema)).violations(&text(arguments));
        let told = told.map(|(violations, _)| violations).unwrap_or_default();
        told.into_iter().map(|violation| (violation.pointer, violation.message)).collect()
    }

    #[test]
    fn every_violation_is_told_with_its_place() {
        let schema = json!({"type": "object", "required": ["path"], "additionalProperties": false, "properties": {
            "path": {"type": "string"},
            "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}},
            "a/b": {"enum": ["x", "y"]},
        }});
        assert!(violations(&schema, &json!({"path": "p", "lines": [1, 2], "a/b": "x"})).is_empty());
        let told = violations(&schema, &json!({"lines": [1, 0, "two"], "a/b": "z", "other": 1}));
        let mut places: Vec<&str> = told.iter().map(|(pointer, _)| pointer.as_str()).collect();
        places.sort_unstable();
        assert_eq!(places, ["", "", "/a~1b", "/lines/1", "/lines/2"], "{told:?}");
    }

    #[test]
    fn violations_are_bounded_in_number_and_length() {
        let schema = json!({"type": "object", "additionalProperties": {"type": "integer"}});
        let long = "x".repeat(5000);
        let many: Value = (0..200).map(|n| (format!("m{n}"), json!(long))).collect::<serde_json::Map<_, _>>().into();
        let (told, more) = Schema::compile(&text(&schema)).violations(&text(&many)).unwrap();
        assert_eq!((told.len(), more), (MOST_VIOLATIONS, true));
        assert!(told.iter().all(|violation| violation.message.chars().count() <= LONGEST_MESSAGE));
    }

    #[test]
    fn a_schema_that_cannot_be_used_checks_nothing_but_that_there_is_an_object() {
        for schema in [
            json!({"$ref": "http://127.0.0.1:1/schema.json"}),
            json!({"$ref": "file:///etc/hostname"}),
            json!({"type": "object", "properties": {"a": {"pattern": "(?=x)y"}}}),
            json!({"type": 7}),
        ] {
            assert!(matches!(Schema::compile(&text(&schema)), Schema::Nothing), "{schema}");
            assert!(violations(&schema, &json!({"a": "z"})).is_empty());
            assert_eq!(violations(&schema, &json!([]))[0].1, "they must be one JSON object");
        }
    }

    #[test]
    fn patterns_take_no_more_than_linear_time() {
        let schema = json!({"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}});
        let hostile = format!("{}!", "a".repeat(10_000));
        assert_eq!(violations(&schema, &json!({"a": hostile})).len(), 1);
    }

    #[tokio::test]
    async fn only_so_many_schemas_are_kept_and_the_latest_of_them() {
        let (validators, tasks) = (Validators::default(), Tasks::new());
        let schema = |n: usize| text(&json!({"type": "object", "maxProperties": n}));
        for n in 0..20 {
            validators.check("t", &schema(n), &text(&json!({})), 8, &tasks).await.unwrap();
        }
        let kept = |n: usize| validators.known(xxh3_128(schema(n).get().as_bytes())).is_some();
        assert!(validators.0.lock().unwrap().by_digest.len() <= 8);
        assert!(kept(19) && !kept(0));
        let refused = validators.check("t", &schema(0), &text(&json!({"a": 1})), 8, &tasks).await.unwrap_err();
        assert_eq!(refused.kind(), "invalid_arguments");
    }
}
