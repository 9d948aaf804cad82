//! Keys: where a value stands, and the shape that `raw` gives every key.
//!
//! The shape is read off the derived deserialisers of [`Raw`], so that there is no second list of keys to keep in step.

use std::fmt;

use serde::Deserialize;
use serde::de::value::{BorrowedStrDeserializer, Error};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::raw::{self, Raw};

/// The way from the root of a configuration to a value, written `scenarios[1].url`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeyPath(Vec<Step>);

/// One step of the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Into a table.
    Key(String),
    /// Into a list, counted from 0.
    Index(usize),
}

/// What may stand at a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shape {
    /// A table with these keys, in the order of `raw`.
    Section(Vec<(&'static str, Shape)>),
    /// A list of these.
    List(Box<Shape>),
    /// A table of these under keys of the user's own.
    Map(Box<Shape>),
    /// A text.
    Text,
    /// A text that is never shown.
    Secret,
    /// A whole number, 0 or more.
    Number,
    /// `true` or `false`.
    Switch,
    /// A number of bytes, or a text.
    Size,
    /// A text, or a list of texts.
    Words,
}

impl KeyPath {
    /// The path of a dotted key such as `server.listen`.
    pub(super) fn dotted(text: &str) -> Self {
        Self(text.split('.').map(|part| Step::Key(part.to_owned())).collect())
    }

    /// The path one key further.
    pub(super) fn key(&self, key: &str) -> Self {
        self.with(Step::Key(key.to_owned()))
    }

    /// The path one list index further.
    pub(super) fn index(&self, index: usize) -> Self {
        self.with(Step::Index(index))
    }

    fn with(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    /// The steps from the root.
    pub(super) fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether `self` is `other` or lies below it.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The key in a table at which the value stands, or the list stands that holds it.
    pub(super) fn tables(&self) -> Vec<&str> {
        self.0.iter().map_while(|step| if let Step::Key(key) = step { Some(key.as_str()) } else { None }).collect()
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) => {
                    let bare = !key.is_empty() && key.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c));
                    f.write_str(if i == 0 { "" } else { "." })?;
                    if bare { f.write_str(key)? } else { write!(f, "{key:?}")? }
                }
            }
        }
        Ok(())
    }
}

impl Shape {
    /// The shape of a whole configuration.
    pub(super) fn whole() -> Self {
        let mut shape = Self::Section(Vec::new());
        // Every answer of the probe is one that `Raw` takes, so this ends with the shape complete; were it not to, the missing keys
        // would be refused as unknown and the test over `default.toml` would fail.
        let _ = Raw::deserialize(Probe(&mut shape));
        shape
    }

    /// The shape at `path`, if there may be anything.
    pub(super) fn at(&self, path: &KeyPath) -> Option<&Self> {
        path.steps().iter().try_fold(self, |shape, step| match (shape, step) {
            (Self::Section(keys), Step::Key(key)) => keys.iter().find(|(name, _)| name == key).map(|(_, below)| below),
            (Self::List(each), Step::Index(_)) | (Self::Map(each), Step::Key(_)) => Some(each.as_ref()),
            (Self::Words, Step::Index(_)) => Some(&Self::Text),
            _ => None,
        })
    }

    /// Every key that holds a value, in order; a list counts as one, and so does a table with keys of the user's own.
    pub(super) fn leaves(&self) -> Vec<KeyPath> {
        fn collect(shape: &Shape, at: &KeyPath, into: &mut Vec<KeyPath>) {
            match shape {
                Shape::Section(keys) => keys.iter().for_each(|(key, below)| collect(below, &at.key(key), into)),
                _ => into.push(at.clone()),
            }
        }
        let mut leaves = Vec::new();
        collect(self, &KeyPath::default(), &mut leaves);
        leaves
    }

    /// The keys below, if this is a section.
    pub(super) fn names(&self) -> Vec<&'static str> {
        if let Self::Section(keys) = self { keys.iter().map(|(name, _)| *name).collect() } else { Vec::new() }
    }
}

/// Every key that may be written, in the order of `config/default.toml`: `server.listen`, `scenarios[].name`, `modules.*`, ...
pub fn keys() -> Vec<String> {
    let whole = Shape::whole();
    let mut keys = Vec::new();
    for leaf in whole.leaves() {
        match whole.at(&leaf) {
            Some(Shape::List(each)) if !each.names().is_empty() => {
                keys.extend(each.names().into_iter().map(|name| format!("{leaf}[].{name}")));
            }
            // A whole section of the user's own keys; further in such a table is written in braces, as one value.
            Some(Shape::Map(_)) if leaf.steps().len() == 1 => keys.push(format!("{leaf}.*")),
            _ => keys.push(leaf.to_string()),
        }
    }
    keys
}

/// Answers a derived deserialiser with empty values and notes what it asked for.
struct Probe<'a>(&'a mut Shape);

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    // Only an untagged enum asks without saying for what: a size.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        *self.0 = Shape::Size;
        visitor.visit_str("")
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        *self.0 = Shape::Switch;
        visitor.visit_bool(false)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        *self.0 = Shape::Number;
        visitor.visit_u64(0)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        *self.0 = Shape::Text;
        visitor.visit_str("")
    }

    // Only secrets, and texts that may be lists, ask like this.
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Error> {
        *self.0 = if name == raw::SECRET { Shape::Secret } else { Shape::Words };
        visitor.visit_str("")
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut each = Shape::Text;
        let value = visitor.visit_map(OneEntry { key: Some("any"), each: &mut each })?;
        *self.0 = Shape::Map(Box::new(each));
        Ok(value)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut each = Shape::Text;
        let value = visitor.visit_seq(One(Some(&mut each)))?;
        *self.0 = Shape::List(Box::new(each));
        Ok(value)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let mut keys = Vec::new();
        let value = visitor.visit_map(Fields { left: fields, keys: &mut keys })?;
        *self.0 = Shape::Section(keys);
        Ok(value)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char str bytes byte_buf unit unit_struct tuple tuple_struct enum identifier ignored_any
    }
}

/// A list of one element.
struct One<'a>(Option<&'a mut Shape>);

impl<'de> SeqAccess<'de> for One<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Error> {
        self.0.take().map(|shape| seed.deserialize(Probe(shape))).transpose()
    }
}

/// A table of one entry.
struct OneEntry<'a> {
    key: Option<&'static str>,
    each: &'a mut Shape,
}

impl<'de> MapAccess<'de> for OneEntry<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        self.key.take().map(|key| seed.deserialize(BorrowedStrDeserializer::new(key))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(Probe(self.each))
    }
}

/// A table with every field there is.
struct Fields<'a> {
    left: &'static [&'static str],
    keys: &'a mut Vec<(&'static str, Shape)>,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let Some(name) = self.left.first() else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let mut shape = Shape::Text;
        let value = seed.deserialize(Probe(&mut shape))?;
        if let Some((name, left)) = self.left.split_first() {
            self.keys.push((name, shape));
            self.left = left;
        }
        Ok(value)
    }
}
