//! The parameters of routes, as tables. The parser of queries and the `OpenAPI` document use the
//! same tables.

use serde_json::{Value, json};

use crate::model::{Permission, SCENARIO_NAME_MAX};

/// A parameter that a route knows.
#[derive(Debug, Clone, Copy)]
pub(in crate::server) struct Param {
    /// The name as in a query.
    pub(in crate::server) name: &'static str,
    /// Whether it may be repeated, and hold several values with commas between.
    pub(in crate::server) many: bool,
    /// Whether it must be given.
    pub(in crate::server) required: bool,
    /// The type of a value.
    pub(in crate::server) takes: ParamType,
    /// A description for people.
    pub(in crate::server) about: &'static str,
    /// An example of a value.
    pub(in crate::server) example: &'static str,
}

/// The type of a value.
#[derive(Debug, Clone, Copy)]
pub(in crate::server) enum ParamType {
    /// Any text.
    Any,
    /// A text of at most so many characters.
    Text(usize),
    /// A text that matches a regular expression (ECMA-262).
    Matching(&'static str),
    /// `true` or `false`.
    Flag,
    /// A whole number from the first to the second, both included.
    Count(u32, u32),
    /// The number of a line of the log or of a call, from 0 to [`MAX_NUMBER`].
    Number,
    /// A time (RFC 3339).
    Time,
    /// One of these words.
    Word(fn() -> Vec<&'static str>),
}

/// The largest number of a line: the largest one that every reader of JSON keeps exactly.
pub(in crate::server) const MAX_NUMBER: u64 = (1 << 53) - 1;

/// A parameter that may be given once.
pub(in crate::server) const fn once(name: &'static str) -> Param {
    Param {
        name,
        many: false,
        required: false,
        takes: ParamType::Any,
        about: "",
        example: "",
    }
}

/// A parameter that may be repeated; each may hold several values with commas between.
pub(in crate::server) const fn many(name: &'static str) -> Param {
    Param {
        many: true,
        ..once(name)
    }
}

impl Param {
    /// Sets the type of a value.
    pub(in crate::server) const fn takes(self, takes: ParamType) -> Self {
        Self { takes, ..self }
    }

    /// Sets the description and an example.
    pub(in crate::server) const fn about(self, about: &'static str, example: &'static str) -> Self {
        Self {
            about,
            example,
            ..self
        }
    }

    /// Makes the parameter required.
    pub(in crate::server) const fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    /// The schema of its value.
    pub(in crate::server) fn schema(&self) -> Value {
        let one = match self.takes {
            // A value of a list ends at a comma, and is not empty without its spaces.
            ParamType::Any if self.many => json!({"type": "string", "pattern": LISTED}),
            ParamType::Any => json!({"type": "string"}),
            ParamType::Text(most) => json!({"type": "string", "maxLength": most}),
            ParamType::Matching(pattern) => json!({"type": "string", "pattern": pattern}),
            ParamType::Flag => json!({"type": "boolean"}),
            ParamType::Count(least, most) => {
                json!({"type": "integer", "minimum": least, "maximum": most})
            }
            ParamType::Number => json!({"type": "integer", "minimum": 0, "maximum": MAX_NUMBER}),
            ParamType::Time => json!({"type": "string", "format": "date-time"}),
            ParamType::Word(words) => json!({"type": "string", "enum": words()}),
        };
        if self.many {
            json!({"type": "array", "items": one})
        } else {
            one
        }
    }

    /// The example as the schema requires it.
    pub(in crate::server) fn example(&self) -> Value {
        let one = match self.takes {
            ParamType::Flag => json!(self.example == "true"),
            ParamType::Count(..) | ParamType::Number => {
                self.example.parse::<u32>().map_or(Value::Null, Value::from)
            }
            _ => json!(self.example),
        };
        if self.many { json!([one]) } else { one }
    }
}

/// Texts with commas between them, none of which is only spaces. U+0085 is a space in Unicode, but
/// not in ECMA-262.
const LISTED: &str = r"^[^,]*[^,\s\u0085][^,]*(,[^,]*[^,\s\u0085][^,]*)*$";

/// The grammars of the model's texts as regular expressions. Tests compare each with the model's
/// parser.
pub(in crate::server) mod grammar {
    /// A UUID of version 7 (RFC 9562 section 5.7), with dashes.
    pub(in crate::server) const UUID_7: &str =
        "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-7[0-9a-fA-F]{3}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$";
    /// The registered name of a scenario.
    pub(in crate::server) const SCENARIO: &str = "^[a-zA-Z0-9][a-zA-Z0-9._-]{0,99}$";
    /// `scenario/tool`.
    pub(in crate::server) const TOOL: &str = r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,99}/[^,\s]+$";
    /// A profile or the id of a chat.
    pub(in crate::server) const FREE: &str = r"^[^\u0000-\u001f\u007f-\u009f]{1,200}$";
    /// A scope.
    pub(in crate::server) const SCOPE: &str =
        r"^(global|(profile|chat):[^\u0000-\u001f\u007f-\u009f]{1,200})$";
    /// The target of a preference.
    pub(in crate::server) const TARGET: &str = r"^(scenario:[a-zA-Z0-9][a-zA-Z0-9._-]{0,99}|(category|tag):[^\u0000-\u001f\u007f-\u009f]{1,200}|tool:[a-zA-Z0-9][a-zA-Z0-9._-]{0,99}/[\s\S]{1,256})$";
    /// A published name.
    pub(in crate::server) const PUBLISHED: &str = "^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$";
}

const _: () = assert!(
    SCENARIO_NAME_MAX == 100,
    "`grammar` says how long a scenario's name may be"
);

/// The shape of the tools.
pub(in crate::server) const FORMAT: Param = once("format")
    .takes(ParamType::Word(|| crate::formats::FORMATS.iter().map(|format| format.id()).collect()))
    .about("The shape of the tools: `native` is a Tool Discovery Protocol manifest, every other is what that vendor takes.", "anthropic");
/// The client's profile.
pub(in crate::server) const PROFILE: Param = once("profile")
    .takes(ParamType::Matching(grammar::FREE))
    .about(
        "The client's profile: its preferences and its limits apply.",
        "reviewer",
    );
/// The client's level.
pub(in crate::server) const PERMISSION: Param = once("permission")
    .takes(ParamType::Word(|| {
        Permission::NAMED.map(Permission::as_str).to_vec()
    }))
    .about(
        "The level of the client's user. It lowers that of the profile and never raises it.",
        "user",
    );
/// The client's conversation.
pub(in crate::server) const CHAT: Param = once("chat_id")
    .takes(ParamType::Matching(grammar::FREE))
    .about("The conversation, whose preferences apply.", "42");
/// Only tools of some scenarios.
pub(in crate::server) const SCENARIOS: Param = many("scenario")
    .takes(ParamType::Matching(grammar::SCENARIO))
    .about("Only tools of these scenarios.", "files");
/// Only tools of some categories.
pub(in crate::server) const CATEGORIES: Param =
    many("category").about("Only tools of these categories.", "disk");
/// Only tools with some tags.
pub(in crate::server) const TAGS: Param =
    many("tag").about("Only tools with one of these tags.", "read");
/// Adds the tools that are left out because they are disabled.
pub(in crate::server) const INCLUDE_DISABLED: Param =
    once("include_disabled").takes(ParamType::Flag).about(
        "Also tools that are switched off. With `format=native` only.",
        "false",
    );

/// A scenario in a path.
pub(in crate::server) const SCENARIO_NAME: Param = once("name")
    .takes(ParamType::Matching(grammar::SCENARIO))
    .about("The name that the scenario is filed under.", "files")
    .required();
/// The id of an approval, in a path.
pub(in crate::server) const APPROVAL_ID: Param = once("id")
    .about(
        "The `approval_id` that the caller got.",
        "8d3f5a0e-4c1b-4f7e-9a26-c5d7e8f90a1b",
    )
    .required();
/// An operation in a path.
pub(in crate::server) const OPERATION_ID: Param = once("id")
    .about(
        "The `operation_id` that the caller got.",
        "64c0e8a2-9d5f-4b17-83e6-0a1b2c3d4e5f",
    )
    .required();
/// A call in a path.
pub(in crate::server) const CALL_ID: Param = once("call_id")
    .about("The `call_id` that the caller gave or got.", "my-call-1")
    .required();
/// A turn in a path.
pub(in crate::server) const TURN_ID: Param = once("id")
    .about(
        "The `turn_id` that the caller gave or got.",
        "b85d1f37-0e6c-4a92-97f4-d8c7b6a59483",
    )
    .required();
/// A kept result in a path.
pub(in crate::server) const RESULT_ID: Param = once("id")
    .about(
        "The `call_id` of a call of a turn.",
        "b85d1f37-0e6c-4a92-97f4-d8c7b6a59483.0",
    )
    .required();
/// Input that a call waits for, in a path.
pub(in crate::server) const INTERACTION_ID: Param = once("id")
    .about(
        "The `id` of the `interaction` that the caller got.",
        "2c7b9e1d-5f3a-4860-b1d2-e3f4a5968778",
    )
    .required();
/// A module in a path.
pub(in crate::server) const MODULE: Param = once("module")
    .about("The name that the module is filed under.", "scheduler")
    .required();
/// A tool in a path.
pub(in crate::server) const TOOL_NAME: Param = once("name")
    .about(
        "The published name, `scenario/tool` (the slash may be written `%2F`), or a name that only one tool has.",
        "read_text",
    )
    .required();

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{PreferenceTarget, PublishedName, ScenarioName, Scope, ToolId};

    /// Whether a text matches, as `jsonschema` applies the patterns of the document.
    fn matches(pattern: &str, text: &str) -> bool {
        let schema = json!({"type": "string", "pattern": pattern});
        jsonschema::validator_for(&schema)
            .unwrap()
            .is_valid(&json!(text))
    }

    #[test]
    fn the_grammars_are_those_of_the_model() {
        let long = "x".repeat(100);
        let longer = "x".repeat(101);
        let texts = [
            "",
            "a",
            "a/b",
            "a b",
            "1.x_y-z",
            "-a",
            ".a",
            "global",
            "global ",
            "profile:",
            "profile:x y",
            "chat:7",
            "chat:\u{7}",
            "chat:\u{85}",
            "scenario:a",
            "scenario:a b",
            "tool:a/b",
            "tool:a/",
            "tool:a",
            "tool:a/b c/d",
            "tag:x",
            "tag:",
            "category:к",
            "_x",
            "9x",
            "x-y",
            "a\n",
            "global\n",
            &long,
            &longer,
        ];
        for text in texts {
            assert_eq!(
                matches(grammar::SCENARIO, text),
                text.parse::<ScenarioName>().is_ok(),
                "scenario {text:?}"
            );
            assert_eq!(
                matches(grammar::SCOPE, text),
                text.parse::<Scope>().is_ok(),
                "scope {text:?}"
            );
            assert_eq!(
                matches(grammar::TARGET, text),
                text.parse::<PreferenceTarget>().is_ok(),
                "target {text:?}"
            );
            assert_eq!(
                matches(grammar::FREE, text),
                format!("chat:{text}").parse::<Scope>().is_ok(),
                "{text:?}"
            );
            assert_eq!(
                matches(grammar::PUBLISHED, text),
                PublishedName::alias(text).is_ok(),
                "alias {text:?}"
            );
            // In lists a value has no spaces around it, so a name with spaces within is only
            // possible elsewhere.
            if !text.contains(' ') && !text.ends_with('\n') {
                assert_eq!(
                    matches(grammar::TOOL, text),
                    text.parse::<ToolId>().is_ok(),
                    "tool {text:?}"
                );
            }
        }
    }

    #[test]
    fn values_of_lists_have_something_in_them() {
        for (text, expected) in [
            ("a", true),
            ("a b", true),
            ("", false),
            (" ", false),
            ("a,b", true),
            (" a", true),
            ("a,", false),
            ("\u{85}", false),
        ] {
            assert_eq!(matches(LISTED, text), expected, "{text:?}");
        }
    }
}
