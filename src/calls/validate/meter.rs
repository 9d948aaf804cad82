//! What a check costs, paid while it is made.
//!
//! The validator reads arguments through [`Metered`], the form of JSON of this module, and each
//! read costs some units of a budget. A check whose budget is used up ends at that read, wherever
//! it is: reading unwinds the stack of the check to [`within`]. So whatever a schema says, its
//! check takes bounded time, memory and stack, without a second reader of its keywords.
//!
//! ```text
//! within(budget, prices, || validator.is_valid(Metered::node(&arguments)))
//!     Ok(fits) | Err(OutOfBudget::Work) | Err(OutOfBudget::Stack)
//! ```
//!
//! What a read costs depends on the schema only in its [`Prices`], which are found when it is
//! compiled (see [`super::compiling`]): a text is dearer where patterns are matched against it.
//! Schemas that read nothing are bounded there as well.
//!
//! The budget is one of the thread, because a check runs on one thread, and the names that
//! `propertyNames` checks are not part of any value.

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use jsonschema::JsonType;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object, SerdeJson, cmp, unique};
use serde_json::{Map, Number, Value};

/// Bytes of text that are read for one unit.
const TEXT_UNIT: usize = 8;
/// What a value costs that a reference which may lead back is applied to: it is looked for among
/// those under way, and what came of it is kept.
const IDENTITY_UNITS: u64 = 8;
/// Items that are compared each with each; more are compared by their hashes.
const COMPARED_ITEMS: u64 = 16;
/// What an error costs besides what it quotes: it takes some hundred bytes.
const ERROR_UNITS: u64 = 32;
/// Whole numbers beyond this have the hashes of their neighbours.
const EXACT_MAX: u64 = 1 << 53;

/// How much a check may take. A unit is about one value that is read, or eight bytes of text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// Units of work.
    pub(super) work: u64,
    /// Bytes of the stack.
    pub(super) stack: usize,
}

/// What reading costs in the checks against one schema, in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Prices {
    /// A member or an item that is taken out of its value.
    pub(super) child: u64,
    /// Four bytes of a text.
    pub(super) text: u64,
    /// Four bytes of the name of a member.
    pub(super) name: u64,
    /// A number.
    pub(super) number: u64,
    /// The paths of an error.
    pub(super) error: u64,
}

/// Why a check ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum OutOfBudget {
    /// Its work is used up.
    #[error("checking them takes more work than a check may")]
    Work,
    /// Its stack is.
    #[error("checking them leads through too many schemas, one within the other")]
    Stack,
}

/// The budget of the check that runs on a thread.
struct Meter {
    work_left: Cell<u64>,
    /// The lowest address that its stack may reach.
    stack_end: Cell<usize>,
    prices: Cell<Prices>,
}

impl Prices {
    /// Those of a schema without anything dear.
    pub(super) const LOW: Self = Self {
        child: 1,
        text: 0,
        name: 0,
        number: 1,
        error: 0,
    };
}

thread_local! {
    static METER: Meter = const {
        Meter {
            work_left: Cell::new(0),
            stack_end: Cell::new(0),
            prices: Cell::new(Prices::LOW),
        }
    };
}

/// Runs a check on this thread within a budget. A panic of the validator goes on.
pub(super) fn within<T>(
    budget: Budget,
    prices: Prices,
    check: impl FnOnce() -> T,
) -> Result<T, OutOfBudget> {
    METER.with(|meter| {
        meter.work_left.set(budget.work);
        meter
            .stack_end
            .set(stack_address().saturating_sub(budget.stack));
        meter.prices.set(prices);
    });
    catch_unwind(AssertUnwindSafe(check)).map_err(|panic| match panic.downcast::<OutOfBudget>() {
        Ok(out) => *out,
        Err(panic) => resume_unwind(panic),
    })
}

/// Where the stack ends now, nearly.
#[inline]
fn stack_address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}

/// What is left of the budget of the check on this thread.
fn work_left() -> u64 {
    METER.with(|meter| meter.work_left.get())
}

/// Takes units from the budget of the check on this thread, and ends it if there are too few.
#[inline]
fn pay(units: impl FnOnce(Prices) -> u64) {
    METER.with(|meter| {
        let Some(left) = meter.work_left.get().checked_sub(units(meter.prices.get())) else {
            end(OutOfBudget::Work)
        };
        meter.work_left.set(left);
        if stack_address() < meter.stack_end.get() {
            end(OutOfBudget::Stack)
        }
    });
}

/// Unwinds to [`within`], without a message: this is no fault.
#[cold]
fn end(out: OutOfBudget) -> ! {
    resume_unwind(Box::new(out))
}

/// The units of reading a text at a price for four bytes.
fn text_units(text: &str, price: u64) -> u64 {
    let bytes = text.len() as u64;
    1 + (text.len() / TEXT_UNIT) as u64 + bytes.saturating_mul(price) / 4
}

/// Pays for all that is in a value. Returns how many numbers are in it that have the hashes of
/// others.
fn pay_whole(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) => pay(|_| 1),
        Value::String(text) => pay(|_| text_units(text, 0)),
        Value::Number(number) => {
            pay(|_| 1);
            let is_exact = number.as_u64().is_none_or(|number| number <= EXACT_MAX)
                && number
                    .as_i64()
                    .is_none_or(|number| number.unsigned_abs() <= EXACT_MAX);
            return u64::from(!is_exact);
        }
        Value::Array(items) => {
            pay(|_| 1);
            return items.iter().map(pay_whole).sum();
        }
        Value::Object(members) => {
            pay(|_| 1);
            let member = |(name, member): (&String, &Value)| {
                pay(|_| text_units(name, 0));
                pay_whole(member)
            };
            return members.iter().map(member).sum();
        }
    }
    0
}

/// The form of JSON whose reads are paid for.
pub(super) struct Metered;

/// A value whose reads are paid for.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeteredNode<'a>(&'a Value);

impl Metered {
    /// A value, to be read within a budget.
    pub(super) fn node(value: &Value) -> MeteredNode<'_> {
        MeteredNode(value)
    }
}

impl Json for Metered {
    type Node<'a> = MeteredNode<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        buffer: &mut Value,
        string: &str,
        read: impl FnOnce(MeteredNode<'_>) -> T,
    ) -> T {
        SerdeJson::with_string_node(buffer, string, |name| read(MeteredNode(name)))
    }
}

impl<'a> Node<'a, Metered> for MeteredNode<'a> {
    type Object = MeteredObject<'a>;
    type Array = MeteredArray<'a>;
    type Number = &'a Number;

    fn as_object(&self) -> Option<MeteredObject<'a>> {
        pay(|_| 1);
        self.0.as_object().map(MeteredObject)
    }

    fn as_array(&self) -> Option<MeteredArray<'a>> {
        pay(|_| 1);
        self.0.as_array().map(|items| MeteredArray(items))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.0.as_str();
        pay(|prices| text.map_or(1, |text| text_units(text, prices.text)));
        text.map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a Number> {
        pay(|prices| prices.number);
        self.0.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        pay(|_| 1);
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        pay(|_| 1);
        self.0.is_null()
    }

    fn is_number(&self) -> bool {
        pay(|_| 1);
        self.0.is_number()
    }

    fn json_type(&self) -> JsonType {
        pay(|_| 1);
        self.0.json_type()
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.0.as_str();
        pay(|_| text.map_or(1, |text| text_units(text, 0)));
        text.and_then(|_| self.0.string_length())
    }

    fn equals_value(&self, expected: &Value) -> bool {
        pay_whole(self.0);
        cmp::equal(self.0, expected)
    }

    /// Errors quote values, and keep them.
    fn to_value(&self) -> Cow<'a, Value> {
        pay(|prices| ERROR_UNITS.saturating_add(prices.error));
        pay_whole(self.0);
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        pay(|_| IDENTITY_UNITS);
        self.0.identity()
    }
}

/// An object whose reads are paid for.
pub(super) struct MeteredObject<'a>(&'a Map<String, Value>);

impl<'a> Object<'a, Metered> for MeteredObject<'a> {
    type Node = MeteredNode<'a>;
    type MemberName = MeteredName<'a>;
    type MembersIter = MeteredMembers<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<MeteredNode<'a>> {
        pay(|prices| text_units(key, 0).saturating_add(prices.child));
        self.0.get(key).map(MeteredNode)
    }

    fn members(&self) -> MeteredMembers<'a> {
        pay(|_| 1);
        MeteredMembers(self.0.iter())
    }
}

/// The members of an object, each paid for as it comes.
pub(super) struct MeteredMembers<'a>(serde_json::map::Iter<'a>);

impl<'a> Iterator for MeteredMembers<'a> {
    type Item = (MeteredName<'a>, MeteredNode<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.0.next()?;
        pay(|prices| prices.child);
        Some((MeteredName(name), MeteredNode(value)))
    }
}

/// The name of a member, paid for whenever it is read.
pub(super) struct MeteredName<'a>(&'a str);

impl AsRef<str> for MeteredName<'_> {
    fn as_ref(&self) -> &str {
        pay(|prices| text_units(self.0, prices.name));
        self.0
    }
}

impl<'a> From<MeteredName<'a>> for Cow<'a, str> {
    fn from(name: MeteredName<'a>) -> Self {
        pay(|_| text_units(name.0, 0));
        Cow::Borrowed(name.0)
    }
}

/// An array whose reads are paid for.
pub(super) struct MeteredArray<'a>(&'a [Value]);

impl<'a> Array<'a, Metered> for MeteredArray<'a> {
    type Node = MeteredNode<'a>;
    type ElementsIter = MeteredItems<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> MeteredItems<'a> {
        pay(|_| 1);
        MeteredItems(self.0.iter())
    }

    fn is_unique(&self) -> bool {
        let before = work_left();
        let alike: u64 = self.0.iter().map(pay_whole).sum();
        let once = before - work_left();
        let times = COMPARED_ITEMS.min(self.0.len() as u64);
        pay(|_| once * times + alike.saturating_mul(alike) / 8);
        unique::is_unique(self.0)
    }
}

/// The items of an array, each paid for as it comes.
pub(super) struct MeteredItems<'a>(std::slice::Iter<'a, Value>);

impl<'a> Iterator for MeteredItems<'a> {
    type Item = MeteredNode<'a>;

    fn next(&mut self) -> Option<MeteredNode<'a>> {
        let item = self.0.next()?;
        pay(|prices| prices.child);
        Some(MeteredNode(item))
    }
}

#[cfg(test)]
mod tests {
    use jsonschema::Validator;
    use serde_json::json;

    use super::*;

    const BUDGET: Budget = Budget {
        work: 1_000_000,
        stack: 8 * 1024 * 1024,
    };

    fn validator(schema: &Value) -> Validator<Metered> {
        jsonschema::options_for::<Metered>().build(schema).unwrap()
    }

    fn fits(schema: &Value, value: &Value, budget: Budget) -> Result<bool, OutOfBudget> {
        let validator = validator(schema);
        within(budget, Prices::LOW, || {
            validator.is_valid(Metered::node(value))
        })
    }

    /// Levels of lists, each of which may be meant in two ways.
    fn doubling(levels: usize) -> Value {
        let mut defs: Map<String, Value> = (0..levels)
            .map(|level| {
                let next =
                    json!({"type": "array", "items": {"$ref": format!("#/$defs/l{}", level + 1)}});
                (format!("l{level}"), json!({"anyOf": [next, next]}))
            })
            .collect();
        defs.insert(format!("l{levels}"), json!({"type": "string"}));
        json!({"$ref": "#/$defs/l0", "$defs": defs})
    }

    fn nested(levels: usize, innermost: Value) -> Value {
        (0..levels).fold(innermost, |inner, _| json!([inner]))
    }

    #[test]
    fn a_check_gives_what_the_validator_says_of_the_plain_value() {
        let schema = json!({"type": "object", "required": ["a", "b"], "maxProperties": 6, "properties": {
            "a": {"type": "string", "minLength": 2, "pattern": "^[a-zß]+$"}, "b": {"type": "integer", "multipleOf": 3},
            "c": {"type": ["array", "null"], "items": {"enum": [1, "x", [2], null]}, "uniqueItems": true},
            "d": {"const": {"k": 1.0}}, "e": {"type": "boolean"}},
            "patternProperties": {"^p": {"type": "number", "maximum": 2.5}}, "propertyNames": {"maxLength": 3}});
        let plain = jsonschema::validator_for(&schema).unwrap();
        let metered = validator(&schema);
        for value in [
            json!({"a": "aß", "b": 9, "c": [1, "x", [2], null], "d": {"k": 1}, "e": true, "p": 2}),
            json!({"a": "ß", "b": 4, "c": [1, 1.0], "d": {"k": 2}, "e": null, "p": 3}),
            json!({"a": 1, "b": "b", "c": null, "long": 1}),
            json!({"a": "ab", "b": 3.0, "1": 1, "2": 2, "3": 3, "4": 4, "5": 5}),
            json!([]),
        ] {
            let errors = within(BUDGET, Prices::LOW, || {
                metered.iter_errors(Metered::node(&value))
            });
            let errors: Vec<String> = errors.unwrap().map(|error| error.to_string()).collect();
            let plain_errors: Vec<String> = plain
                .iter_errors(&value)
                .map(|error| error.to_string())
                .collect();
            assert_eq!(errors, plain_errors, "{value}");
            assert_eq!(
                fits(&schema, &value, BUDGET),
                Ok(plain_errors.is_empty()),
                "{value}"
            );
        }
    }

    #[test]
    fn branches_that_double_with_each_level_of_the_arguments_end() {
        assert_eq!(fits(&doubling(4), &nested(4, json!("s")), BUDGET), Ok(true));
        assert_eq!(fits(&doubling(4), &nested(4, json!(5)), BUDGET), Ok(false));
        assert_eq!(
            fits(&doubling(60), &nested(60, json!(5)), BUDGET),
            Err(OutOfBudget::Work)
        );
    }

    #[test]
    fn what_is_compared_is_paid_for() {
        let options: Vec<Value> = (0..2_000).map(|n| json!([n])).collect();
        let listed = json!({"items": {"enum": options}});
        assert!(fits(&listed, &json!(vec![json!([-1]); 10]), BUDGET).is_ok());
        let many = json!(vec![json!([1_999]); 1_000]);
        assert_eq!(fits(&listed, &many, BUDGET), Err(OutOfBudget::Work));
        let unique = json!({"uniqueItems": true});
        let items: Vec<u64> = (0..30_000).collect();
        assert_eq!(fits(&unique, &json!(items), BUDGET), Ok(true));
        // Neighbours beyond the exact numbers have one hash, so each is compared with each.
        let neighbours: Vec<u64> = (0..30_000).map(|n| (1 << 60) + n).collect();
        assert_eq!(
            fits(&unique, &json!(neighbours), BUDGET),
            Err(OutOfBudget::Work)
        );
    }

    #[test]
    fn texts_and_names_cost_what_is_matched_against_them() {
        let prices = Prices {
            text: 1_000,
            name: 1_000,
            ..Prices::LOW
        };
        let schema = json!({"propertyNames": {"minLength": 1}, "patternProperties": {"^x": {"pattern": "^a"}}});
        let checked = |value: &Value| {
            let validator = validator(&schema);
            within(BUDGET, prices, || validator.is_valid(Metered::node(value)))
        };
        assert_eq!(checked(&json!({"x": "a".repeat(1_000)})), Ok(true));
        let long = "x".repeat(10_000);
        assert_eq!(checked(&json!({"x": long})), Err(OutOfBudget::Work));
        assert_eq!(checked(&json!({long: 1})), Err(OutOfBudget::Work));
    }

    #[test]
    fn errors_pay_for_what_they_keep() {
        let integers = validator(&json!({"items": {"type": "integer"}}));
        let listed = |value: &Value, error| {
            let prices = Prices {
                error,
                ..Prices::LOW
            };
            within(BUDGET, prices, || {
                integers.iter_errors(Metered::node(value)).count()
            })
        };
        assert_eq!(listed(&json!(vec!["x"; 100]), 0), Ok(100));
        assert_eq!(listed(&json!(vec!["x"; 40_000]), 0), Err(OutOfBudget::Work));
        assert_eq!(
            listed(&json!(vec!["x"; 100]), 10_000),
            Err(OutOfBudget::Work)
        );
        let long = "x".repeat(100_000);
        assert_eq!(listed(&json!(vec![long; 100]), 0), Err(OutOfBudget::Work));
    }

    #[test]
    fn a_check_ends_before_its_stack_does() {
        let tree = json!({"items": {"$ref": "#"}});
        let little = Budget {
            stack: 8 * 1024,
            ..BUDGET
        };
        let deep = nested(100, json!([]));
        assert_eq!(fits(&tree, &deep, BUDGET), Ok(true));
        assert_eq!(fits(&tree, &deep, little), Err(OutOfBudget::Stack));
    }

    #[test]
    fn a_panic_of_a_check_goes_on() {
        let panicked = catch_unwind(|| {
            within(BUDGET, Prices::LOW, || {
                assert!(std::hint::black_box(false), "as expected");
            })
        });
        let text = crate::runtime::tasks::panic_text(&*panicked.unwrap_err());
        assert_eq!(text, "panic: as expected");
    }
}
