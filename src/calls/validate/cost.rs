//! What a check would cost, counted before it is made.
//!
//! A JSON Schema validator applies a schema anew at every reference to it. Branches that refer to
//! the same definition therefore multiply: `n` levels of two branches cost `2^n`, both for a
//! hostile schema and for an honest recursive one with deeply nested arguments. [`Meter`] adds up
//! the same work without doing it: each pair of a referenced schema and a value is counted once and
//! remembered, and sums saturate. So counting is cheap where the check is not.
//!
//! The count is an upper bound: branches count even if an earlier one decides, and every member
//! counts for every pattern. Schemas are neither compiled nor applied here.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::pattern;
use super::references::{Outside, References};
use super::weight::{self, Weights};

/// How much a check may cost, and counting that.
#[derive(Debug, Clone, Copy)]
struct CheckBounds {
    /// A unit is about one keyword applied to one value, or a few bytes compared.
    work: u64,
    /// Pairs of a schema and a value that are looked at while counting.
    visits: u32,
    /// Schemas applied one within the other. Both the meter and the validator recurse.
    depth: u32,
}

/// The bounds of any check.
const ANY: CheckBounds = CheckBounds {
    work: 20_000_000,
    visits: 1_000_000,
    depth: 500,
};
/// The bounds of a check that takes no longer than handing it to another thread and back, which is
/// some 50 microseconds where the thread sleeps, and needs no larger stack than any thread has.
const BRIEF: CheckBounds = CheckBounds {
    work: 1_000,
    visits: 1_000,
    depth: 32,
};
/// The work of dividing two numbers of which one is a fraction.
const FRACTION: u64 = 100;
/// Schemas around a reference that are compared with its target in one unit of work, to see that it
/// does not lead back.
const COMPARED_AT_ONCE: u32 = 16;

/// Why a check is not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TooExpensive {
    /// More than a check may cost, or too much to count.
    #[error("its branches and references multiply to more than a check may cost")]
    Work,
    /// Deeper than schemas may be applied within each other.
    #[error("its references lead through more than {} schemas, one within the other", ANY.depth)]
    Depth,
    /// References that lead back to where they began without going on in the arguments.
    #[error("its references lead back to themselves on one value")]
    Circle,
    /// A reference to what is not within the schema.
    #[error(transparent)]
    Reference(#[from] Outside),
}

/// What a schema is applied to.
#[derive(Debug, Clone, Copy)]
enum CheckedValue<'a> {
    Value(&'a Value),
    /// The name of a member, which `propertyNames` checks.
    Name(&'a str),
}

/// What a meter adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CostKind {
    /// The work of a check.
    Work,
    /// The same, and for each keyword of a schema the weight of the value that it is applied to:
    /// what a list of errors may hold in memory, because the validator copies the value that does
    /// not fit into an error.
    Copies,
}

/// Counts the work of checks against one schema.
#[derive(Debug)]
pub(super) struct Meter<'a> {
    references: References<'a>,
    bounds: CheckBounds,
    counts: CostKind,
    /// The work of a referenced schema (its address) on a value (its address). `None` while it is
    /// being counted.
    counted: HashMap<(usize, usize), Option<u64>>,
    weights: Weights<'a>,
    visits: u32,
}

impl<'a> Meter<'a> {
    /// Counts for this schema.
    pub(super) fn new(schema: &'a Value) -> Self {
        let references = References::new(schema);
        let counts = CostKind::Work;
        let counted = HashMap::new();
        Self {
            references,
            bounds: ANY,
            counts,
            counted,
            weights: Weights::default(),
            visits: 0,
        }
    }

    /// Counts only up to the cost of a check that is made on the thread of the request.
    pub(super) fn of_brief(schema: &'a Value) -> Self {
        Self {
            bounds: BRIEF,
            ..Self::new(schema)
        }
    }

    /// Counts what the errors of a check may hold in memory, each unit at most some ten bytes.
    pub(super) fn for_errors(schema: &'a Value) -> Self {
        Self {
            counts: CostKind::Copies,
            ..Self::new(schema)
        }
    }

    /// The work of checking these arguments, at most what its bounds allow.
    pub(super) fn measure(mut self, arguments: &'a Value) -> Result<u64, TooExpensive> {
        self.schema(self.references.root(), CheckedValue::Value(arguments), 0)
    }

    fn schema(
        &mut self,
        schema: &'a Value,
        instance: CheckedValue<'a>,
        depth: u32,
    ) -> Result<u64, TooExpensive> {
        self.visits += 1;
        if self.visits > self.bounds.visits {
            return Err(TooExpensive::Work);
        }
        if depth > self.bounds.depth {
            return Err(TooExpensive::Depth);
        }
        let copies = match (self.counts, instance) {
            (CostKind::Work, _) => 0,
            (CostKind::Copies, CheckedValue::Value(value)) => self.weights.of(value),
            (CostKind::Copies, CheckedValue::Name(name)) => weight::text(name) + 1,
        };
        let Some(keywords) = schema.as_object() else {
            return Ok(copies.saturating_add(1));
        };
        let mut work = self.bounded(
            copies
                .saturating_mul(keywords.len() as u64)
                .saturating_add(1),
        )?;
        for (keyword, held) in keywords {
            let further = match keyword.as_str() {
                "$ref" => self.referenced(held, instance, depth)?,
                "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else"
                | "dependentSchemas" | "dependencies" => {
                    self.branches(keyword, held, instance, depth)?
                }
                _ => self.keyword(keyword, held, keywords, instance, depth)?,
            };
            work = self.bounded(work.saturating_add(further))?;
        }
        Ok(work)
    }

    /// Schemas that are applied to the same value: a list, those in a map, or one.
    fn branches(
        &mut self,
        keyword: &str,
        held: &'a Value,
        instance: CheckedValue<'a>,
        depth: u32,
    ) -> Result<u64, TooExpensive> {
        match (keyword, held) {
            (_, Value::Array(list)) => {
                self.sum(list.iter().map(|schema| (schema, instance)), depth)
            }
            ("dependentSchemas" | "dependencies", Value::Object(map)) => {
                let mut work = 0_u64;
                for dependency in map.values() {
                    // Up to draft 7 it may be a list of names, each of which is looked up.
                    let further = match dependency {
                        Value::Array(_) => self.weights.of(dependency),
                        schema => self.schema(schema, instance, depth + 1)?,
                    };
                    work = self.bounded(work.saturating_add(further))?;
                }
                Ok(work)
            }
            (_, schema) => self.schema(schema, instance, depth + 1),
        }
    }

    fn sum(
        &mut self,
        pairs: impl Iterator<Item = (&'a Value, CheckedValue<'a>)>,
        depth: u32,
    ) -> Result<u64, TooExpensive> {
        let mut work = 0_u64;
        for (schema, instance) in pairs {
            let further = self.schema(schema, instance, depth + 1)?;
            work = self.bounded(work.saturating_add(further))?;
        }
        Ok(work)
    }

    fn referenced(
        &mut self,
        reference: &'a Value,
        instance: CheckedValue<'a>,
        depth: u32,
    ) -> Result<u64, TooExpensive> {
        let Some(reference) = reference.as_str() else {
            return Ok(1);
        };
        let target = self.references.target(reference)?;
        let pair = (std::ptr::from_ref(target).addr(), instance.address());
        let counted = if let Some(counted) = self.counted.get(&pair) {
            // How often a validator goes around a circle depends on the way in, so that no sum
            // could be remembered.
            counted.ok_or(TooExpensive::Circle)?
        } else {
            self.counted.insert(pair, None);
            let counted = self.schema(target, instance, depth + 1)?;
            self.counted.insert(pair, Some(counted));
            counted
        };
        Ok(counted.saturating_add(u64::from(depth / COMPARED_AT_ONCE + 1)))
    }

    /// A keyword that is no branch: what it compares, and the schemas that it applies to members or
    /// items.
    fn keyword(
        &mut self,
        keyword: &str,
        held: &'a Value,
        beside: &'a Map<String, Value>,
        instance: CheckedValue<'a>,
        depth: u32,
    ) -> Result<u64, TooExpensive> {
        if let Some(work) = self.compared(keyword, held, instance) {
            return Ok(work);
        }
        let below = match instance {
            CheckedValue::Value(Value::Object(members)) => {
                self.members(keyword, held, beside, members, depth)?
            }
            CheckedValue::Value(Value::Array(items)) => self.items(keyword, held, items, depth)?,
            _ => 0,
        };
        Ok(below.saturating_add(1))
    }

    fn members(
        &mut self,
        keyword: &str,
        held: &'a Value,
        beside: &'a Map<String, Value>,
        members: &'a Map<String, Value>,
        depth: u32,
    ) -> Result<u64, TooExpensive> {
        let each = members.iter();
        // Every member is looked up by its whole name, also those that no schema is for.
        let looked_up = self.weights.names(members);
        let below = match (keyword, held) {
            ("properties", Value::Object(known)) if known.len() < members.len() => {
                let both = known.iter().filter_map(|(name, schema)| {
                    Some((schema, CheckedValue::Value(members.get(name)?)))
                });
                self.sum(both, depth)
            }
            ("properties", Value::Object(known)) => self.sum(
                each.filter_map(|(name, value)| {
                    Some((known.get(name)?, CheckedValue::Value(value)))
                }),
                depth,
            ),
            ("patternProperties", Value::Object(patterns)) => {
                let mut work = 0_u64;
                for (pattern, schema) in patterns {
                    let states = self.weights.states(pattern);
                    let names = each
                        .clone()
                        .map(|(name, _)| pattern::work(states, name))
                        .fold(1, u64::saturating_add);
                    work = self.bounded(work.saturating_add(names))?;
                    let values = self.sum(
                        each.clone()
                            .map(|(_, value)| (schema, CheckedValue::Value(value))),
                        depth,
                    )?;
                    work = self.bounded(work.saturating_add(values))?;
                }
                Ok(work)
            }
            ("additionalProperties", schema) => {
                let known = beside.get("properties").and_then(Value::as_object);
                let others =
                    each.filter(|(name, _)| known.is_none_or(|known| !known.contains_key(*name)));
                self.sum(
                    others.map(|(_, value)| (schema, CheckedValue::Value(value))),
                    depth,
                )
            }
            ("propertyNames", schema) => self.sum(
                each.map(|(name, _)| (schema, CheckedValue::Name(name))),
                depth,
            ),
            _ => return Ok(0),
        };
        Ok(below?.saturating_add(looked_up))
    }

    fn items(
        &mut self,
        keyword: &str,
        held: &'a Value,
        items: &'a [Value],
        depth: u32,
    ) -> Result<u64, TooExpensive> {
        let each = items.iter().map(CheckedValue::Value);
        match (keyword, held) {
            ("items" | "prefixItems", Value::Array(schemas)) => {
                self.sum(schemas.iter().zip(each), depth)
            }
            // Also with `minContains` and `maxContains` each item is looked at once.
            ("items" | "additionalItems" | "contains", schema) => {
                self.sum(each.map(|item| (schema, item)), depth)
            }
            _ => Ok(0),
        }
    }

    /// The work of a keyword that compares; `None` for any other.
    fn compared(
        &mut self,
        keyword: &str,
        held: &'a Value,
        instance: CheckedValue<'a>,
    ) -> Option<u64> {
        Some(match (keyword, held, instance) {
            ("enum" | "const" | "required" | "dependentRequired", _, _) => {
                self.weights.of(held).saturating_add(instance.text_weight())
            }
            // Each of them reads the whole text, the last two in drafts 6 and 7. Formats are not
            // checked.
            ("minLength" | "maxLength" | "contentMediaType" | "contentEncoding", _, _) => {
                instance.text_weight() + 1
            }
            // Few items are compared each with each, many by their hashes.
            ("uniqueItems", _, CheckedValue::Value(Value::Array(items))) => {
                let times = items.len().clamp(1, 16) as u64;
                items
                    .iter()
                    .map(|item| self.weights.of(item))
                    .fold(1, u64::saturating_add)
                    .saturating_mul(times)
            }
            ("pattern", Value::String(pattern), CheckedValue::Value(Value::String(text))) => {
                pattern::work(self.weights.states(pattern), text)
            }
            ("pattern", Value::String(pattern), CheckedValue::Name(name)) => {
                pattern::work(self.weights.states(pattern), name)
            }
            // A fraction may be computed with numbers of any length.
            ("multipleOf", Value::Number(step), CheckedValue::Value(Value::Number(_)))
                if !step.is_u64() =>
            {
                FRACTION
            }
            ("uniqueItems" | "pattern", _, _) => 1,
            _ => return None,
        })
    }

    /// A partial sum, unless it is more than a check may cost.
    fn bounded(&self, work: u64) -> Result<u64, TooExpensive> {
        if work > self.bounds.work {
            Err(TooExpensive::Work)
        } else {
            Ok(work)
        }
    }
}

impl CheckedValue<'_> {
    /// How much there is to read in a text; zero for anything else.
    fn text_weight(self) -> u64 {
        match self {
            Self::Value(Value::String(text)) => weight::text(text),
            Self::Name(name) => weight::text(name),
            Self::Value(_) => 0,
        }
    }

    fn address(self) -> usize {
        match self {
            Self::Value(value) => std::ptr::from_ref(value).addr(),
            Self::Name(name) => name.as_ptr().addr(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn measure(schema: &Value, arguments: &Value) -> Result<u64, TooExpensive> {
        Meter::new(schema).measure(arguments)
    }

    #[test]
    fn a_brief_check_is_counted_alike_and_bounded_in_work_and_depth() {
        let brief = |schema: &Value, arguments: &Value| Meter::of_brief(schema).measure(arguments);
        let each = json!({"properties": {"x": {"items": {"type": "integer", "minimum": 1}}}});
        let few = json!({"x": vec![1; 20]});
        let many = json!({"x": vec![1; 2_000]});
        assert_eq!(brief(&each, &few), measure(&each, &few));
        assert!(measure(&each, &many).is_ok());
        assert_eq!(brief(&each, &many), Err(TooExpensive::Work));
        let deep = (0..40).fold(json!({}), |inner, _| json!({"allOf": [inner]}));
        assert!(measure(&deep, &json!({})).unwrap() < BRIEF.work);
        assert_eq!(brief(&deep, &json!({})), Err(TooExpensive::Depth));
    }

    /// The grammar of expressions as a block editor has it: each level can be read in two ways.
    fn expression() -> Value {
        json!({"$defs": {"e": {"anyOf": [
            {"type": "object", "properties": {"c": {"$ref": "#/$defs/e"}}, "required": ["c", "not"]},
            {"type": "object", "properties": {"c": {"$ref": "#/$defs/e"}}, "required": ["c", "maybe"]},
            {"type": "string"}]}},
            "type": "object", "properties": {"c": {"$ref": "#/$defs/e"}}})
    }

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(5), |inner, _| json!({"c": inner}))
    }

    #[test]
    fn recursive_branches_double_with_each_level_of_the_arguments() {
        let schema = expression();
        let work = |levels| measure(&schema, &nested(levels));
        let three = work(3).unwrap();
        let four = work(4).unwrap();
        assert!(
            three < 200 && four > three * 3 / 2 && four < three * 3,
            "{three} {four}"
        );
        assert_eq!(work(60), Err(TooExpensive::Work));
        // One way back only costs as much as the arguments are deep.
        let chain = json!({"$defs": {"e": {"properties": {"c": {"$ref": "#/$defs/e"}}}}, "$ref": "#/$defs/e"});
        assert!(measure(&chain, &nested(60)).unwrap() < 1_000);
    }

    #[test]
    fn branches_on_one_value_multiply_whatever_the_arguments() {
        for branch in ["anyOf", "oneOf", "allOf"] {
            let mut defs = Map::new();
            for level in 0..60 {
                let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
                defs.insert(format!("l{level}"), json!({branch: [next, next]}));
            }
            defs.insert("l60".to_owned(), json!({"type": "string"}));
            let schema = json!({"$defs": defs, "properties": {"x": {"$ref": "#/$defs/l0"}}});
            assert_eq!(
                measure(&schema, &json!({"x": {}})),
                Err(TooExpensive::Work),
                "{branch}"
            );
            assert!(
                measure(&schema, &json!({"y": {}})).unwrap() < 10,
                "{branch}"
            );
        }
    }

    #[test]
    fn long_lists_of_values_are_compared_with_each_item() {
        let options: Vec<Value> = (0..20_000).map(|n| json!([n])).collect();
        let schema = json!({"properties": {"x": {"items": {"enum": options}}}});
        let items = |count: usize| json!({"x": vec![json!([]); count]});
        assert!(measure(&schema, &items(10)).is_ok());
        assert_eq!(measure(&schema, &items(80_000)), Err(TooExpensive::Work));
    }

    #[test]
    fn patterns_cost_their_size_times_the_text() {
        let schema = json!({"properties": {"x": {"pattern": "^(a|b){4000}$"}, "y": {"pattern": "^[a-z-]{1,64}$"}}});
        assert!(measure(&schema, &json!({"x": "ab", "y": "some-name"})).unwrap() < 10_000);
        assert_eq!(
            measure(&schema, &json!({"x": "a".repeat(500_000)})),
            Err(TooExpensive::Work)
        );
    }

    #[test]
    fn chains_and_circles_end() {
        let links = |count: usize| {
            let mut defs: Map<String, Value> = (0..count)
                .map(|n| {
                    (
                        format!("d{n}"),
                        json!({"$ref": format!("#/$defs/d{}", n + 1)}),
                    )
                })
                .collect();
            defs.insert(format!("d{count}"), json!({}));
            json!({"$ref": "#/$defs/d0", "$defs": defs})
        };
        assert!(measure(&links(100), &json!({})).is_ok());
        assert_eq!(measure(&links(5_000), &json!({})), Err(TooExpensive::Depth));
        // Every way through such a circle is another one for the validator.
        let circle = |size: usize| {
            let others = |own| {
                (0..size)
                    .filter(move |n| *n != own)
                    .map(|n| json!({"$ref": format!("#/$defs/d{n}")}))
            };
            let defs: Map<String, Value> = (0..size)
                .map(|n| {
                    (
                        format!("d{n}"),
                        json!({"allOf": others(n).collect::<Vec<_>>()}),
                    )
                })
                .collect();
            json!({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs})
        };
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            circle(14),
        ] {
            assert_eq!(
                measure(&schema, &json!({"x": "s"})),
                Err(TooExpensive::Circle),
                "{schema}"
            );
        }
    }

    #[test]
    fn texts_are_read_by_each_keyword_that_looks_at_them() {
        for keyword in [
            json!({"minLength": 1}),
            json!({"contentMediaType": "application/json"}),
            json!({"const": "a"}),
        ] {
            let mut defs: Map<String, Value> = (0..17)
                .map(|n| {
                    let next = json!({"$ref": format!("#/$defs/l{}", n + 1)});
                    (format!("l{n}"), json!({"allOf": [next, next]}))
                })
                .collect();
            defs.insert("l17".to_owned(), keyword);
            let schema = json!({"properties": {"x": {"$ref": "#/$defs/l0"}}, "$defs": defs});
            assert!(measure(&schema, &json!({"x": "a"})).is_ok());
            assert_eq!(
                measure(&schema, &json!({"x": "a".repeat(900_000)})),
                Err(TooExpensive::Work)
            );
        }
    }

    #[test]
    fn a_reference_that_leads_outside_cannot_be_counted() {
        let schema = json!({"$ref": "http://127.0.0.1:1/schema.json"});
        assert_eq!(
            measure(&schema, &json!({})),
            Err(TooExpensive::Reference(Outside::new(
                "http://127.0.0.1:1/schema.json"
            )))
        );
    }

    #[test]
    fn counting_ends_with_the_first_sum_that_is_too_large() {
        let patterns: Map<String, Value> = (0..500)
            .map(|n| (format!("^(a|b){{9}}{n}"), json!({})))
            .collect();
        let schema = json!({"properties": {"x": {"items": {"patternProperties": patterns}}}});
        let items = vec![json!({"a".repeat(2_000): 1}); 20_000];
        assert_eq!(
            measure(&schema, &json!({"x": items})),
            Err(TooExpensive::Work)
        );
        // Members that no schema is for are looked up as well.
        let known: Map<String, Value> = (0..15).map(|n| (format!("known{n}"), json!({}))).collect();
        let branches = json!({"allOf": vec![json!({"properties": known}); 2_000]});
        let members: Map<String, Value> =
            (0..20_000).map(|n| (format!("m{n}"), json!(1))).collect();
        assert_eq!(
            measure(&branches, &Value::Object(members)),
            Err(TooExpensive::Work)
        );
    }

    #[test]
    fn a_reference_is_resolved_once_however_often_it_is_followed() {
        let name = "a".repeat(100_000);
        let schema = json!({"items": {"$ref": format!("#/$defs/{name}")}, "$defs": {&name: {"type": "null"}}});
        assert!(measure(&schema, &json!(vec![0; 20_000])).is_ok());
    }

    #[test]
    fn names_of_members_are_counted_where_they_are_checked() {
        let schema = json!({"propertyNames": {"anyOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}]},
            "$defs": {"n": {"pattern": "^[a-z]+$"}}});
        let few = measure(&schema, &json!({"a": 1})).unwrap();
        let more = measure(&schema, &json!({"a": 1, "b": 2, "c": 3})).unwrap();
        assert!(more > 2 * few, "{few} {more}");
    }
}
