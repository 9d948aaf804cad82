//! The strict modes of OpenAI and Anthropic: the vendor holds the LLM to the schema, and in return
//! takes fewer schemas.
//!
//! A tool that cannot be said strictly, or has no place within the limits of one request, is
//! offered as without `strict`, and a finding says so. Tools get their places in the order of the
//! list, so that one behind never takes the place of one before.

use serde_json::Value;

use super::schema::keywords::{self, Vocabulary};
use super::schema::walk::each_object;
use super::schema::{Context, SIMPLE, Transform, TransformError, close, join, required, steps};

/// What the strict tools of one request use up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Strict tools.
    pub tools: usize,
    /// Parameters that are not required.
    pub optional: usize,
    /// Parameters with alternatives.
    pub unions: usize,
}

/// A strict mode.
pub(super) struct Strict {
    pub(super) steps: &'static [Transform],
    /// What one request may use up.
    pub(super) request: Option<Spent>,
    /// What one schema may have.
    pub(super) schema: Option<Size>,
}

/// How large a schema may be.
pub(super) struct Size {
    properties: usize,
    depth: usize,
    /// Characters of names and values of enums.
    characters: usize,
    /// Values of enums.
    values: usize,
}

const OPENAI_STEPS: [Transform; SIMPLE.len() + 4] = join(
    SIMPLE,
    &steps![
        openai_said,
        required::known_required,
        close::close_objects,
        close::require_all
    ],
);
const ANTHROPIC_STEPS: [Transform; SIMPLE.len() + 4] = join(
    SIMPLE,
    &steps![
        anthropic_said,
        required::known_required,
        close::one_type_each,
        close::close_objects
    ],
);

/// `OpenAI`: the numbers are those of its documentation of structured outputs.
pub(super) static OPENAI: Strict = Strict {
    steps: &OPENAI_STEPS,
    request: None,
    schema: Some(Size {
        properties: 5_000,
        depth: 10,
        characters: 120_000,
        values: 1_000,
    }),
};

/// Anthropic: limits of one request as pydantic-ai states them (verified there against the server).
pub(super) static ANTHROPIC: Strict = Strict {
    steps: &ANTHROPIC_STEPS,
    request: Some(Spent {
        tools: 20,
        optional: 24,
        unions: 16,
    }),
    schema: None,
};

/// Documentation of structured outputs, without what pydantic-ai's profile for `OpenAI` strips.
const OPENAI_WORDS: Vocabulary = Vocabulary {
    target: "openai strict",
    at_root: &[
        "type",
        "title",
        "description",
        "properties",
        "required",
        "additionalProperties",
    ],
    elsewhere: &[
        "type",
        "title",
        "description",
        "enum",
        "items",
        "anyOf",
        "properties",
        "required",
        "additionalProperties",
        "format",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
    ],
    takes,
};

/// What `transform_schema` of Anthropic's client keeps.
const ANTHROPIC_WORDS: Vocabulary = Vocabulary {
    target: "anthropic strict",
    at_root: &[
        "type",
        "title",
        "description",
        "properties",
        "required",
        "additionalProperties",
    ],
    elsewhere: &[
        "type",
        "title",
        "description",
        "enum",
        "items",
        "anyOf",
        "properties",
        "required",
        "additionalProperties",
        "format",
    ],
    takes,
};

/// The largest whole number up to which every reader of JSON counts exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The formats that both vendors take, an `enum` of plain values (of lists and objects Anthropic's
/// client takes none), and bounds that can be compiled: beyond what a double counts exactly,
/// readers disagree about a number.
fn takes(keyword: &str, value: &Value) -> bool {
    const FORMATS: [&str; 9] = [
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "uuid",
    ];
    match keyword {
        "format" => value
            .as_str()
            .is_some_and(|format| FORMATS.contains(&format)),
        "enum" => value.as_array().is_some_and(|values| {
            !values
                .iter()
                .any(|held| held.is_array() || held.is_object())
        }),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
            value.as_f64().is_some_and(|bound| bound.abs() <= EXACT)
        }
        _ => true,
    }
}

fn openai_said(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    keywords::keep(schema, context, &OPENAI_WORDS)
}

fn anthropic_said(schema: &mut Value, context: &mut Context) -> Result<(), TransformError> {
    keywords::keep(schema, context, &ANTHROPIC_WORDS)
}

impl Strict {
    /// Whether a schema after the steps is within the limits; what the request has used up grows if
    /// so.
    pub(super) fn admit(
        &self,
        schema: &mut Value,
        spent: &mut Spent,
    ) -> Result<(), TransformError> {
        if let Some(size) = &self.schema {
            size.check(schema)?;
        }
        let Some(most) = self.request else {
            return Ok(());
        };
        let cost = cost(schema)?;
        let tools = spent.tools + 1;
        let optional = spent.optional + cost.optional;
        let unions = spent.unions + cost.unions;
        if tools > most.tools || optional > most.optional || unions > most.unions {
            return Err(TransformError::Unsupported(
                "no place left among the strict tools of one request".into(),
            ));
        }
        *spent = Spent {
            tools,
            optional,
            unions,
        };
        Ok(())
    }
}

/// What one tool uses up.
fn cost(schema: &mut Value) -> Result<Spent, TransformError> {
    let mut cost = Spent {
        tools: 1,
        ..Spent::default()
    };
    each_object(schema, |members, _| {
        let count = |keyword: &str| match members.get(keyword) {
            Some(Value::Object(members)) => members.len(),
            Some(Value::Array(list)) => list.len(),
            _ => 0,
        };
        cost.optional += count("properties").saturating_sub(count("required"));
        cost.unions += usize::from(count("anyOf") > 0 || count("type") > 1);
        Ok(())
    })?;
    Ok(cost)
}

impl Size {
    fn check(&self, schema: &mut Value) -> Result<(), TransformError> {
        let mut properties = 0;
        let mut depth = 0;
        let mut characters = 0;
        let mut values = 0;
        each_object(schema, |members, place| {
            depth = depth.max(place.depth);
            if let Some(known) = members.get("properties").and_then(Value::as_object) {
                properties += known.len();
                characters += known.keys().map(String::len).sum::<usize>();
            }
            for value in members
                .get("enum")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                values += 1;
                characters += value.as_str().map_or(0, str::len);
            }
            Ok(())
        })?;
        // More than 250 values of one enum may have 15,000 characters at most; all together is
        // stricter and simpler.
        let texts = if values > 250 {
            15_000
        } else {
            self.characters
        };
        let within = properties <= self.properties
            && depth <= self.depth
            && values <= self.values
            && characters <= texts;
        if within {
            Ok(())
        } else {
            Err(TransformError::Unsupported(
                "more properties, levels or values than a strict schema".into(),
            ))
        }
    }
}
