//! What each target accepts, as data: one row for each format, and beside each number where it is
//! from.
//!
//! "Recorded" means an answer of the vendor's server as quoted in public issues; no client library
//! checks these rules, so a list that breaks one fails at the vendor, whole.

use serde_json::Value;

use super::schema::TransformError;
use super::schema::walk::{Role, each_object};
use crate::model::text::truncate_at_char_boundary;

/// What a target accepts; `None` and an empty list say that no limit is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormatLimits {
    /// Tools in one request.
    pub max_tools: Option<usize>,
    /// Names of tools.
    pub name: Option<NameRule>,
    /// Characters of a tool's description that every server of this shape is known to take. The
    /// vendor lifted the bound, so more are sent all the same, and a finding names the servers that
    /// may refuse it.
    pub described: Option<usize>,
    /// An empty description is refused, so none is sent then.
    pub empty_description: bool,
    /// Keywords refused at the root of a schema.
    pub root_barred: &'static [&'static str],
    /// Keywords refused or dropped anywhere in a schema.
    pub barred: &'static [&'static str],
    /// Names of properties.
    pub key: Option<NameRule>,
    /// Schemas one within the other.
    pub max_depth: Option<usize>,
    /// Which keywords for alternatives it takes.
    pub unions: Unions,
    /// Tenths of a byte of an encoded tool that make a token; see [`FormatLimits::tokens`].
    pub token_bytes: usize,
}

impl FormatLimits {
    /// Tokens of a prompt that a tool of so many encoded bytes takes, rounded up and rather too
    /// many than too few.
    ///
    /// An estimate, since the vendors' ways of showing tools to a model are not public, and most of
    /// their tokenizers neither. In the 527 real tools of a benchmark, as compact JSON, a token has
    /// 4.0 to 4.4 bytes on average with the tokenizers of GPT-4, GPT-4o, Claude 2 and Llama 3, and
    /// in 99 of 100 tools at least 2.9.
    pub fn tokens(&self, bytes: usize) -> usize {
        (bytes * 10).div_ceil(self.token_bytes.max(1))
    }
}

/// A rule for names: letters, digits and `_` always may be in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameRule {
    /// Characters at most.
    pub max: usize,
    /// What else may be in one.
    pub also: &'static str,
    /// Begins with a letter or `_`.
    pub leads_with_letter: bool,
}

/// Keywords for alternatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unions {
    /// `anyOf` and `oneOf`.
    All,
    /// `anyOf` alone.
    AnyOf,
}

impl NameRule {
    const fn plain(max: usize) -> Self {
        Self {
            max,
            also: "-",
            leads_with_letter: false,
        }
    }

    /// Whether this is such a name.
    pub fn allow(&self, name: &str) -> bool {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || self.also.contains(c);
        let leads = !self.leads_with_letter
            || name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        !name.is_empty() && name.len() <= self.max && leads && name.chars().all(fits)
    }
}

/// No refusals are known.
const OPEN: FormatLimits = FormatLimits {
    max_tools: None,
    name: None,
    described: None,
    empty_description: true,
    root_barred: &[],
    barred: &[],
    key: None,
    max_depth: None,
    unions: Unions::All,
    // A third more than those tokenizers need on average.
    token_bytes: 30,
};

/// Recorded by OpenAI: "schema must have type 'object' and not have
/// 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level".
const NO_ALTERNATIVES: &[&str] = &["oneOf", "anyOf", "allOf", "enum", "const", "not", "$ref"];

/// Programs read the native list, and they have no cap.
pub const NATIVE: FormatLimits = OPEN;

/// OpenAI Chat Completions.
pub const OPENAI: FormatLimits = FormatLimits {
    // Recorded November 2025: "Expected an array with maximum length 128" (zed #42393, opencode
    // #4909). Its openapi.json has none.
    max_tools: Some(128),
    // Its openapi.json, in prose: a-z, A-Z, 0-9, underscores and dashes, at most 64.
    name: Some(NameRule::plain(64)),
    // Recorded until April 2025 (sentry-mcp #106); lifted by May 2025 (llama_index #18784), but not
    // by all servers that use its shape.
    described: Some(1024),
    empty_description: false,
    root_barred: NO_ALTERNATIVES,
    ..OPEN
};

/// `OpenAI` Responses.
pub const OPENAI_RESPONSES: FormatLimits = FormatLimits {
    // Its openapi.json, FunctionToolParam.name: ^[a-zA-Z0-9_-]+$, maxLength 128.
    name: Some(NameRule::plain(128)),
    ..OPENAI
};

/// The same with deferred tools: the tool that searches them takes one place of the array.
pub const OPENAI_RESPONSES_DEFERRING: FormatLimits = FormatLimits {
    max_tools: Some(127),
    ..OPENAI_RESPONSES
};

/// Anthropic Messages.
pub const ANTHROPIC: FormatLimits = FormatLimits {
    // Recorded: ^[a-zA-Z0-9_-]{1,128}$ (older servers 64). No count is documented for tools that
    // are not deferred.
    name: Some(NameRule::plain(128)),
    empty_description: false,
    // Recorded: claude-code #27337, opencode #35516: "input_schema does not support oneOf, allOf,
    // or anyOf at the top level".
    root_barred: NO_ALTERNATIVES,
    // Recorded: property keys match ^[a-zA-Z0-9_.-]{1,64}$.
    key: Some(NameRule {
        max: 64,
        also: "-.",
        leads_with_letter: false,
    }),
    // The one tokenizer of the four that needs most is an old one of theirs; the present one is not
    // public, so some more is allowed for.
    token_bytes: 25,
    ..OPEN
};

/// Gemini `functionDeclarations`, with `parametersJsonSchema`.
pub const GEMINI: FormatLimits = FormatLimits {
    // Vertex documentation of function calling: 512 declarations.
    max_tools: Some(512),
    // google-genai FunctionDeclaration.name: a letter or `_` first; it says 128, the server
    // (recorded) 64.
    name: Some(NameRule {
        max: 64,
        also: ".:-",
        leads_with_letter: true,
    }),
    empty_description: false,
    root_barred: NO_ALTERNATIVES,
    // The documentation of JSON Schema support lists what is taken; these are common and not in it.
    barred: &[
        "const",
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "patternProperties",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "pattern",
        "minLength",
        "maxLength",
        "uniqueItems",
        "default",
        "examples",
        "dependentRequired",
        "$schema",
    ],
    // Documentation of Schema.properties: ^[a-zA-Z_][a-zA-Z0-9_]{0,63}$.
    key: Some(NameRule {
        max: 64,
        also: "",
        leads_with_letter: true,
    }),
    unions: Unions::AnyOf,
    ..OPEN
};

/// Bedrock Converse `toolConfig`.
pub const BEDROCK: FormatLimits = FormatLimits {
    // botocore service-2.json, ToolName: [a-zA-Z0-9_-]+, 1 to 64.
    name: Some(NameRule::plain(64)),
    // The same, ToolSpecification.description: min 1.
    empty_description: false,
    // It hands the schema to models whose rules differ; Anthropic's are the strictest recorded.
    root_barred: NO_ALTERNATIVES,
    key: ANTHROPIC.key,
    token_bytes: ANTHROPIC.token_bytes,
    ..OPEN
};

/// Mistral.
pub const MISTRAL: FormatLimits = FormatLimits {
    // Recorded: "must be a-z, A-Z, 0-9, or contain underscores and dashes, with a maximum length of
    // 64".
    name: Some(NameRule::plain(64)),
    empty_description: false,
    // Nothing is recorded; the shape is that of Chat Completions.
    root_barred: NO_ALTERNATIVES,
    ..OPEN
};

/// Cohere v2.
pub const COHERE: FormatLimits = FormatLimits {
    // No rule is documented: the strictest of the others, which every published name meets.
    name: Some(NameRule::plain(64)),
    empty_description: false,
    root_barred: NO_ALTERNATIVES,
    ..OPEN
};

/// Ollama.
pub const OLLAMA: FormatLimits = FormatLimits {
    name: Some(NameRule::plain(64)),
    empty_description: false,
    root_barred: NO_ALTERNATIVES,
    // api/types.go of August 2026, ToolProperty: all but anyOf, type, items, description, enum,
    // properties and required is dropped.
    barred: &[
        "$ref",
        "allOf",
        "not",
        "const",
        "format",
        "pattern",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "uniqueItems",
        "default",
        "title",
        "additionalProperties",
        "prefixItems",
        "patternProperties",
        "examples",
        "$schema",
    ],
    unions: Unions::AnyOf,
    ..OPEN
};

/// MCP `tools/list`.
pub const MCP: FormatLimits = FormatLimits {
    // Revision 2026-07-28, tools: 1 to 128 of A-Z, a-z, 0-9, `_`, `-` and `.`.
    name: Some(NameRule {
        max: 128,
        also: "-.",
        leads_with_letter: false,
    }),
    ..OPEN
};

/// The composition of the Tool Protocol; its reader is any LLM that takes a schema.
pub const CALLS: FormatLimits = FormatLimits {
    root_barred: NO_ALTERNATIVES,
    barred: &["$ref", "$defs"],
    ..OPEN
};

/// Whether a schema that was made for a target is within its limits.
pub(super) fn check(schema: &mut Value, limits: &FormatLimits) -> Result<(), TransformError> {
    if let Some(keyword) = limits
        .root_barred
        .iter()
        .find(|keyword| schema.get(**keyword).is_some())
    {
        return Err(TransformError::Unsupported(format!(
            "`{keyword}` at its root"
        )));
    }
    if limits.key.is_none() && limits.max_depth.is_none() && limits.barred.is_empty() {
        return Ok(());
    }
    each_object(schema, |members, place| {
        let fault = |what: String| Err(TransformError::Unsupported(what));
        let mut named = members
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|names| names.keys());
        if let Some(name) = named.find(|name| limits.key.is_some_and(|rule| !rule.allow(name))) {
            return fault(format!(
                "a property called `{}`",
                truncate_at_char_boundary(name, 60).text
            ));
        }
        if limits.unions == Unions::AnyOf && members.contains_key("oneOf") {
            return fault("`oneOf` in its schema".to_owned());
        }
        if let Some(keyword) = members
            .keys()
            .find(|keyword| limits.barred.contains(&keyword.as_str()))
        {
            return fault(format!("`{keyword}` in its schema"));
        }
        let depth = place.depth;
        if place.role != Role::Root && limits.max_depth.is_some_and(|most| depth > most) {
            return fault(format!("a schema nested {depth} levels deep"));
        }
        Ok(())
    })
}
