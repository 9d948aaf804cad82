//! One compiled schema and the checks of arguments against it.
//!
//! What a check costs is paid from a budget while it is made (see [`super::meter`]), and so is what
//! a list of errors costs, which the validator keeps in memory whole. Runs on the threads of
//! [`super::pool`], but for [`CompiledSchema::plainly_fits`].

use std::fmt;
use std::sync::Arc;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::super::Violation;
use super::compiling::{self, SchemaSize};
use super::meter::{self, Budget, Metered, OutOfBudget, Prices};
use super::pattern::PatternSizes;
use super::pool::STACK_BYTES;
use crate::formats::schema::upgrade;
use crate::model::JsonText;
use crate::model::text::{Truncated, truncate_at_char_boundary};

/// Violations listed at most.
pub const MOST_VIOLATIONS: usize = 50;
/// Bytes of each message and of each pointer at most: both quote what the caller wrote.
const LONGEST_MESSAGE: usize = 300;
/// Bytes of all messages and pointers together.
const LONGEST_LIST: usize = 16 * 1024;
/// Bytes that cost one unit where an error keeps them.
const KEPT_BYTES_A_UNIT: u64 = 8;
/// The work of dividing two numbers of which one is a fraction.
const FRACTION_UNITS: u64 = 100;
/// The budget of any check. Half of the stack is left for what reads nothing.
const CHECK: Budget = Budget {
    work: 20_000_000,
    stack: STACK_BYTES / 2,
};
/// The budget of listing errors. Each unit may leave up to about 72 bytes in memory.
const EXPLANATION: Budget = Budget {
    work: 1_000_000,
    ..CHECK
};
/// The budget of a check that is made on the thread of the request: it takes no longer than handing
/// it to another thread and back, which is some 50 microseconds where that one sleeps.
const BRIEF_CHECK: Budget = Budget {
    work: 1_000,
    stack: 256 * 1024,
};
/// Bytes of one compiled pattern.
const PATTERN_BYTES: usize = 1024 * 1024;
/// Bytes of the tables that are filled while one pattern is matched, and then kept.
const TABLE_BYTES: usize = 128 * 1024;
/// Bytes of all compiled patterns of one schema.
const ALL_PATTERN_BYTES: u64 = 4 * 1024 * 1024;
/// The longest text, in bytes, that is checked on the thread of the request: reading that much
/// takes some ten microseconds. Nearly all are shorter.
const BRIEF_BYTES: usize = 8 * 1024;
/// Bytes in memory of a schema and its validator for each unit of its size (see [`compiling`]).
const BYTES_A_UNIT: u64 = 100;

/// A schema that was compiled, or why it cannot be used.
#[derive(Debug)]
pub(super) enum CompiledSchema {
    /// It checks arguments.
    Usable(Box<Usable>),
    /// It only checks that the arguments are an object. The reason is a sentence's end: "its schema
    /// ...".
    Unusable(Arc<str>),
}

/// A schema that checks arguments.
#[derive(Debug)]
pub(super) struct Usable {
    validator: Validator<Metered>,
    size: SchemaSize,
    prices: Prices,
    bytes: usize,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentVerdict {
    /// The arguments fit.
    Fits,
    /// They do not: how, at most [`MOST_VIOLATIONS`] ways, and whether there are more.
    Unfit(Vec<Violation>, bool),
    /// They were not checked. The reason is the end of a sentence about the schema: "its schema
    /// ...".
    Unchecked(Arc<str>),
}

impl CompiledSchema {
    /// Compiles a schema, unless using it could cost too much whatever the arguments.
    pub(super) fn compile(schema: &JsonText) -> Self {
        let text = schema.get();
        let Ok(mut source) = serde_json::from_str::<Value>(text) else {
            return Self::Unusable("nests too deeply to be read".into());
        };
        // As in lists, so that models read what calls are checked by.
        if let Err(error) = upgrade::number_all_strict_bounds(&mut source) {
            return Self::unusable(&error);
        }
        let size = match compiling::measure(&source) {
            Ok(size) => size,
            Err(error) => return Self::unusable(&error),
        };
        let Some(patterns) = PatternSizes::default().with(&source, ALL_PATTERN_BYTES) else {
            return Self::unusable(&"its patterns are too large together");
        };
        compiling::without_address(&mut source);
        let options = PatternOptions::regex()
            .size_limit(PATTERN_BYTES)
            .dfa_size_limit(TABLE_BYTES);
        let compile = jsonschema::options_for::<Metered>()
            .offline()
            .with_pattern_options(options)
            .should_validate_formats(false);
        match compile.build(&source) {
            Ok(validator) => {
                let bytes = size.units * BYTES_A_UNIT + patterns.bytes;
                Self::Usable(Box::new(Usable {
                    validator,
                    size,
                    prices: prices(size, patterns),
                    bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
                }))
            }
            Err(error) => Self::unusable(&error),
        }
    }

    fn unusable(reason: &dyn fmt::Display) -> Self {
        Self::Unusable(format!("cannot be used to check arguments: {}", cut(reason)).into())
    }

    /// Why it cannot be used; `None` if it can.
    pub(super) fn unusable_reason(&self) -> Option<Arc<str>> {
        match self {
            Self::Usable(_) => None,
            Self::Unusable(reason) => Some(Arc::clone(reason)),
        }
    }

    /// Bytes that it takes in memory, roughly.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Usable(usable) => usable.bytes,
            Self::Unusable(reason) => reason.len(),
        }
    }

    /// Whether arguments fit, as far as that can be found out on any thread: in a time that is as
    /// short as that of handing the check to another one, and on a small stack. Otherwise `false`,
    /// which does not mean that they do not fit: [`Self::check`] finds out.
    pub(super) fn plainly_fits(&self, arguments: &JsonText) -> bool {
        arguments.get().starts_with('{') && self.fits_at_once(arguments)
    }

    /// The same for a value of any kind, such as a result.
    pub(super) fn fits_at_once(&self, value: &JsonText) -> bool {
        let Self::Usable(usable) = self else {
            return false;
        };
        if value.get().len() > BRIEF_BYTES {
            return false;
        }
        let Ok(value) = serde_json::from_str(value.get()) else {
            return false;
        };
        usable.fits(&value, BRIEF_CHECK) == Ok(true)
    }

    /// The place in the schema that a value of any kind breaks first, as a JSON pointer. `None` if
    /// it fits, or cannot be checked.
    pub(super) fn broken_at(&self, value: &JsonText) -> Option<String> {
        let Self::Usable(usable) = self else {
            return None;
        };
        let value: Value = serde_json::from_str(value.get()).ok()?;
        if usable.fits(&value, CHECK).ok()? {
            return None;
        }
        let validate = || usable.validator.validate(Metered::node(&value)).err();
        let error = usable.within(EXPLANATION, &value, validate).ok()?;
        Some(cut(&error?.schema_path()))
    }

    /// Checks arguments.
    pub(super) fn check(&self, arguments: &JsonText) -> ArgumentVerdict {
        match serde_json::from_str(arguments.get()) {
            Ok(arguments @ Value::Object(_)) => self.judge(&arguments),
            Ok(_) => ArgumentVerdict::whole("they must be one JSON object".to_owned()),
            // Nested too deep for any reader.
            Err(error) => ArgumentVerdict::whole(format!("they cannot be read: {error}")),
        }
    }

    /// Checks a result, which may be any JSON value.
    pub(super) fn check_result(&self, result: &JsonText) -> ArgumentVerdict {
        match serde_json::from_str(result.get()) {
            Ok(result) => self.judge(&result),
            Err(error) => ArgumentVerdict::whole(format!("it cannot be read: {error}")),
        }
    }

    fn judge(&self, arguments: &Value) -> ArgumentVerdict {
        let usable = match self {
            Self::Usable(usable) => usable,
            Self::Unusable(reason) => return ArgumentVerdict::Unchecked(Arc::clone(reason)),
        };
        match usable.fits(arguments, CHECK) {
            // Nearly all arguments fit, and finding that out needs no list of errors.
            Ok(true) => ArgumentVerdict::Fits,
            Ok(false) => usable.violations(arguments).unwrap_or_else(|_| {
                ArgumentVerdict::whole("they do not fit, and are too large to say where".to_owned())
            }),
            Err(out) => ArgumentVerdict::Unchecked(
                format!("cannot be used to check such arguments: {out}").into(),
            ),
        }
    }
}

impl Usable {
    fn fits(&self, value: &Value, budget: Budget) -> Result<bool, OutOfBudget> {
        meter::within(budget, self.prices, || {
            self.validator.is_valid(Metered::node(value))
        })
    }

    /// Runs what makes errors about a value. Each keeps the way to its place in the value and in
    /// the schema.
    fn within<T>(
        &self,
        budget: Budget,
        value: &Value,
        explain: impl FnOnce() -> T,
    ) -> Result<T, OutOfBudget> {
        let path = LongestPath::of(value);
        let kept = self.size.error_bytes(path.depth).saturating_add(path.bytes);
        let prices = Prices {
            error: kept / KEPT_BYTES_A_UNIT,
            ..self.prices
        };
        meter::within(budget, prices, explain)
    }

    fn violations(&self, arguments: &Value) -> Result<ArgumentVerdict, OutOfBudget> {
        let list = || self.validator.iter_errors(Metered::node(arguments));
        let mut errors = self.within(EXPLANATION, arguments, list)?;
        let mut listed = Vec::new();
        let mut bytes = 0;
        for error in errors.by_ref().take(MOST_VIOLATIONS) {
            let violation = Violation {
                pointer: cut(&error.instance_path()),
                message: cut(&error),
            };
            bytes += violation.pointer.len() + violation.message.len();
            if bytes > LONGEST_LIST {
                return Ok(ArgumentVerdict::Unfit(listed, true));
            }
            listed.push(violation);
        }
        Ok(if listed.is_empty() {
            ArgumentVerdict::Fits
        } else {
            ArgumentVerdict::Unfit(listed, errors.next().is_some())
        })
    }
}

impl ArgumentVerdict {
    /// Something is wrong with the arguments as a whole.
    fn whole(message: String) -> Self {
        Self::Unfit(
            vec![Violation {
                pointer: String::new(),
                message,
            }],
            false,
        )
    }
}

/// The longest way to a place in a value.
#[derive(Debug, Clone, Copy, Default)]
struct LongestPath {
    bytes: u64,
    depth: u64,
}

impl LongestPath {
    fn of(value: &Value) -> Self {
        match value {
            Value::Array(items) => {
                let digits = u64::from(items.len().checked_ilog10().unwrap_or(0)) + 1;
                items
                    .iter()
                    .map(|item| Self::of(item).below(digits))
                    .fold(Self::default(), Self::or)
            }
            Value::Object(members) => members
                .iter()
                .map(|(name, member)| Self::of(member).below(name.len() as u64))
                .fold(Self::default(), Self::or),
            _ => Self::default(),
        }
    }

    /// The way from a step further up.
    fn below(self, step: u64) -> Self {
        Self {
            bytes: self.bytes + step + 1,
            depth: self.depth + 1,
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.max(other.bytes),
            depth: self.depth.max(other.depth),
        }
    }
}

/// What reading costs in checks against a schema of this size.
fn prices(size: SchemaSize, patterns: PatternSizes) -> Prices {
    Prices {
        child: size.price_of_child(),
        text: patterns.text_states,
        name: patterns.name_states,
        number: if size.has_fractions {
            FRACTION_UNITS
        } else {
            1
        },
        error: 0,
    }
}

/// What is displayed, or its beginning and an ellipsis.
fn cut(shown: &dyn fmt::Display) -> String {
    let Truncated { mut text, is_cut } = truncate_at_char_boundary(shown, LONGEST_MESSAGE);
    if is_cut {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::runtime::tasks::start_detached_thread;

    fn text(value: &Value) -> JsonText {
        JsonText::parse(&value.to_string()).unwrap()
    }

    fn check(schema: &Value, arguments: &Value) -> ArgumentVerdict {
        CompiledSchema::compile(&text(schema)).check(&text(arguments))
    }

    fn unfit(schema: &Value, arguments: &Value) -> (Vec<Violation>, bool) {
        match check(schema, arguments) {
            ArgumentVerdict::Unfit(violations, more) => (violations, more),
            other => unreachable!("{other:?}"),
        }
    }

    #[test]
    fn every_violation_is_listed_with_its_pointer() {
        let schema = json!({"type": "object", "required": ["path"], "additionalProperties": false, "properties": {
            "path": {"type": "string"},
            "lines": {"type": "array", "items": {"type": "integer", "minimum": 1}},
            "a/b": {"enum": ["x", "y"]},
        }});
        assert_eq!(
            check(&schema, &json!({"path": "p", "lines": [1, 2], "a/b": "x"})),
            ArgumentVerdict::Fits
        );
        let (listed, _) = unfit(
            &schema,
            &json!({"lines": [1, 0, "two"], "a/b": "z", "other": 1}),
        );
        let mut pointers: Vec<&str> = listed
            .iter()
            .map(|violation| violation.pointer.as_str())
            .collect();
        pointers.sort_unstable();
        assert_eq!(
            pointers,
            ["", "", "/a~1b", "/lines/1", "/lines/2"],
            "{listed:?}"
        );
    }

    #[test]
    fn violations_are_bounded_in_number_and_length() {
        let schema = json!({"type": "object", "additionalProperties": {"type": "integer"}});
        let many: Value = (0..200)
            .map(|n| (format!("m{n}"), json!("é".repeat(300))))
            .collect::<Map<_, _>>()
            .into();
        let (listed, more) = unfit(&schema, &many);
        assert!(more && listed.len() <= MOST_VIOLATIONS);
        assert!(
            listed
                .iter()
                .all(|violation| violation.message.len() <= LONGEST_MESSAGE + '…'.len_utf8())
        );
        let short = json!({"type": "object", "additionalProperties": {"enum": [1]}});
        let many: Value = (0..200)
            .map(|n| (format!("m{n}"), json!(2)))
            .collect::<Map<_, _>>()
            .into();
        let (listed, more) = unfit(&short, &many);
        assert_eq!(listed.len(), MOST_VIOLATIONS);
        assert!(more);
    }

    #[test]
    fn long_names_do_not_make_the_list_long() {
        let schema =
            json!({"type": "object", "additionalProperties": {"items": {"type": "string"}}});
        let (listed, more) = unfit(&schema, &json!({"k".repeat(9_000): vec![1; 60]}));
        let bytes: usize = listed
            .iter()
            .map(|violation| violation.pointer.len() + violation.message.len())
            .sum();
        assert!(more && bytes <= LONGEST_LIST, "{bytes}");
        assert!(!listed.is_empty());
    }

    #[test]
    fn arguments_that_are_too_large_to_explain_are_refused_without_a_list() {
        let schema = json!({"type": "object", "properties": {"x": {"items": {"type": "string"}}}});
        let (listed, more) = unfit(&schema, &json!({"x": vec![1; 60_000]}));
        assert_eq!(listed.len(), 1);
        assert!(!more);
        assert!(
            listed[0].message.contains("too large to say where"),
            "{listed:?}"
        );
        // Each error would hold a copy of the value.
        let branches =
            json!({"properties": {"x": {"anyOf": vec![json!({"type": "integer"}); 200]}}});
        let (listed, _) = unfit(&branches, &json!({"x": "a".repeat(900_000)}));
        assert!(
            listed[0].message.contains("too large to say where"),
            "{listed:?}"
        );
    }

    #[test]
    fn an_unusable_schema_checks_only_that_there_is_an_object_and_says_why() {
        for (schema, reason) in [
            (
                json!({"$ref": "http://127.0.0.1:1/schema.json"}),
                "not within it",
            ),
            (json!({"$ref": "file:///etc/hostname"}), "not within it"),
            (
                json!({"type": "object", "properties": {"a": {"pattern": "(?=x)y"}}}),
                "(?=x)y",
            ),
            (json!({"type": 7}), "7"),
        ] {
            let ArgumentVerdict::Unchecked(message) = check(&schema, &json!({"a": "z"})) else {
                unreachable!("{schema}")
            };
            assert!(message.contains(reason), "{message}");
            assert_eq!(
                unfit(&schema, &json!([])).0[0].message,
                "they must be one JSON object"
            );
        }
    }

    #[test]
    fn formats_are_annotations_in_every_draft() {
        for draft in [
            "http://json-schema.org/draft-04/schema#",
            "http://json-schema.org/draft-06/schema#",
            "http://json-schema.org/draft-07/schema#",
            "https://json-schema.org/draft/2019-09/schema",
            "https://json-schema.org/draft/2020-12/schema",
        ] {
            let schema = json!({"$schema": draft, "properties": {"a": {"type": "string", "format": "ipv4"}}});
            assert_eq!(
                check(&schema, &json!({"a": "no address"})),
                ArgumentVerdict::Fits,
                "{draft}"
            );
            assert_eq!(unfit(&schema, &json!({"a": 1})).0.len(), 1, "{draft}");
        }
    }

    #[test]
    fn flags_for_strict_bounds_are_checked_in_every_draft() {
        let bounds = json!({"above": {"type": "number", "minimum": 0, "exclusiveMinimum": true},
            "below": {"items": {"maximum": 9, "exclusiveMaximum": true}}, "up_to": {"maximum": 9, "exclusiveMaximum": false}});
        for draft in [
            None,
            Some("http://json-schema.org/draft-04/schema#"),
            Some("http://json-schema.org/draft-07/schema#"),
        ] {
            let mut schema = json!({"type": "object", "properties": bounds});
            if let Some(draft) = draft {
                schema["$schema"] = draft.into();
            }
            assert_eq!(
                check(&schema, &json!({"above": 1, "below": [8], "up_to": 9})),
                ArgumentVerdict::Fits,
                "{draft:?}"
            );
            for unfit_one in [
                json!({"above": 0}),
                json!({"below": [9]}),
                json!({"up_to": 10}),
            ] {
                assert_eq!(
                    unfit(&schema, &unfit_one).0.len(),
                    1,
                    "{draft:?} {unfit_one}"
                );
            }
        }
    }

    #[test]
    fn the_address_of_a_schema_changes_nothing_and_its_references_stay_within() {
        for (id, draft) in [
            ("$id", "https://json-schema.org/draft/2020-12/schema"),
            ("id", "http://json-schema.org/draft-04/schema#"),
        ] {
            for address in ["https://example.com/a.json", draft] {
                let schema = json!({"$schema": draft, id: address, "definitions": {"a": {"type": "integer"}},
                    "properties": {"a": {"$ref": "#/definitions/a"}}});
                assert_eq!(
                    check(&schema, &json!({"a": 1})),
                    ArgumentVerdict::Fits,
                    "{address}"
                );
                assert_eq!(unfit(&schema, &json!({"a": "x"})).0.len(), 1, "{address}");
            }
        }
    }

    /// Compiles a schema and checks deep arguments on a stack as large as that of the threads that
    /// check. It is freed on a smaller one.
    fn compile_apart(schema: &Value) -> CompiledSchema {
        let schema = text(schema);
        let arguments = text(&(0..100).fold(json!({}), |inner, _| json!({"x": inner})));
        let (send, compiled) = std::sync::mpsc::sync_channel(1);
        start_detached_thread("test", STACK_BYTES, move || {
            let schema = CompiledSchema::compile(&schema);
            schema.check(&arguments);
            send.send(schema).unwrap();
        })
        .unwrap();
        compiled.recv().unwrap()
    }

    /// References to `d0` to `d{count}`, each of which holds the reference to the next one within
    /// `levels` others.
    fn nested_chain(count: usize, levels: usize, nest: impl Fn(Value) -> Value) -> Value {
        let link = |n| {
            (0..levels).fold(json!({"$ref": format!("#/$defs/d{n}")}), |inner, _| {
                nest(inner)
            })
        };
        let mut defs: Map<String, Value> =
            (0..count).map(|n| (format!("d{n}"), link(n + 1))).collect();
        defs.insert(format!("d{count}"), json!({"type": "string"}));
        json!({"$defs": defs, "properties": {"x": {"$ref": "#/$defs/d0"}}})
    }

    #[test]
    fn the_longest_chains_are_compiled_and_freed() {
        for (count, levels) in [(450, 0), (1_200, 1), (30, 60)] {
            let schema = compile_apart(&nested_chain(
                count,
                levels,
                |inner| json!({"properties": {"x": inner}}),
            ));
            assert!(
                matches!(schema, CompiledSchema::Usable(_)),
                "{count} {levels}: {schema:?}"
            );
        }
    }

    #[test]
    fn the_deepest_schemas_are_compiled_whatever_they_nest_in() {
        for (levels, nest) in [
            (50, (|inner| json!({"not": inner})) as fn(Value) -> Value),
            (110, |inner| json!({"items": inner})),
            (
                110,
                |inner| json!({"type": "array", "minItems": 1, "items": inner}),
            ),
            // Long names and what a draft may not know weigh more.
            (
                40,
                |inner| json!({"patternProperties": {"^b": {}}, "additionalProperties": inner}),
            ),
            (40, |inner| json!({"if": inner, "then": {}})),
            (
                40,
                |inner| json!({"contains": inner, "minContains": 1, "maxContains": 2}),
            ),
        ] {
            let schema = compile_apart(&nested_chain(9, levels, nest));
            assert!(
                matches!(schema, CompiledSchema::Usable(_)),
                "{}: {schema:?}",
                nest(json!({}))
            );
        }
    }

    #[test]
    fn patterns_take_linear_time_and_bounded_memory() {
        let schema = json!({"type": "object", "properties": {"a": {"pattern": "^(a+)+$"}}});
        assert_eq!(
            unfit(&schema, &json!({"a": format!("{}!", "a".repeat(10_000))}))
                .0
                .len(),
            1
        );
        let many: Map<String, Value> = (0..2_000)
            .map(|n| {
                (
                    format!("p{n}"),
                    json!({"pattern": format!("^[a-f]{{500}}{n}$")}),
                )
            })
            .collect();
        let ArgumentVerdict::Unchecked(message) = check(&json!({"properties": many}), &json!({}))
        else {
            unreachable!()
        };
        assert!(message.contains("too large together"), "{message}");
        let slow = json!({"properties": {"a": {"pattern": "a[ab]{1000}[c-z]"}}});
        assert!(matches!(
            check(&slow, &json!({"a": "ab".repeat(500_000)})),
            ArgumentVerdict::Unchecked(_)
        ));
        assert_eq!(unfit(&slow, &json!({"a": "ab"})).0.len(), 1);
    }

    #[test]
    fn an_honest_recursive_schema_checks_shallow_and_deep_arguments() {
        let schema = json!({"$defs": {"e": {"anyOf": [
            {"type": "object", "properties": {"c": {"$ref": "#/$defs/e"}}, "required": ["c", "not"]},
            {"type": "object", "properties": {"c": {"$ref": "#/$defs/e"}}, "required": ["c", "maybe"]},
            {"type": "string"}]}},
            "type": "object", "properties": {"c": {"$ref": "#/$defs/e"}}});
        let nested = |levels: usize| (0..levels).fold(json!(5), |inner, _| json!({"c": inner}));
        assert!(matches!(
            check(&schema, &nested(3)),
            ArgumentVerdict::Unfit(..)
        ));
        let (listed, _) = unfit(&schema, &nested(40));
        assert!(
            listed[0].message.contains("too large to say where"),
            "{listed:?}"
        );
    }

    #[test]
    fn what_is_found_out_at_once_is_what_the_check_finds() {
        let lines = json!({"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string", "minLength": 1}, "lines": {"type": "integer", "maximum": 9}}});
        let pattern = json!({"properties": {"path": {"pattern": "^[a-z]+$"}}});
        let any_path = json!({"properties": {"path": {"type": "string"}}});
        let names: Vec<_> = (0..600).map(|n| format!("n{n}")).collect();
        let members: serde_json::Map<_, _> =
            names.iter().map(|name| (name.clone(), json!(1))).collect();
        let dependencies = json!({"properties": {"x": {"allOf": vec![json!({"$ref": "#/d"}); 50]}},
            "d": {"dependencies": {"n0": names}}});
        let fractions = json!({"properties": {"x": {"items": {"multipleOf": 0.5}}}});
        let each = json!({"properties": {"x": {"items": {"type": "integer", "minimum": 1}}}});
        let idle = json!({"properties": {"x": {"allOf": vec![json!({}); 8_000]}}});
        let deep = |levels| (0..levels).fold(json!({}), |inner, _| json!({"c": inner}));
        let tree = json!({"properties": {"c": {"$ref": "#"}}});
        for (schema, arguments, at_once) in [
            (&lines, json!({"path": "a", "lines": 3}), true),
            (&lines, json!({"path": "a", "lines": 10}), false),
            (&lines, json!({}), false),
            (&lines, json!(["path"]), false),
            (&any_path, json!({"path": "a"}), true),
            (&any_path, json!({"path": "a".repeat(BRIEF_BYTES)}), false),
            (&pattern, json!({"path": "a"}), true),
            (&pattern, json!({"path": "a".repeat(5_000)}), false),
            (&dependencies, json!({"x": {"n": 1}}), true),
            (&dependencies, json!({"x": members}), false),
            (&fractions, json!({"x": [1e308]}), true),
            (&fractions, json!({"x": vec![1e308; 400]}), false),
            (&each, json!({"x": vec![1; 20]}), true),
            (&each, json!({"x": vec![1; 2_000]}), false),
            (&idle, json!({"y": 1}), false),
            (&tree, deep(3), true),
            (&json!({"type": 7}), json!({}), false),
        ] {
            let schema = CompiledSchema::compile(&text(schema));
            let arguments = text(&arguments);
            assert_eq!(schema.plainly_fits(&arguments), at_once, "{schema:?}");
            assert!(
                !at_once || schema.check(&arguments) == ArgumentVerdict::Fits,
                "{schema:?}"
            );
        }
    }
}
