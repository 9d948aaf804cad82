//! The texts of a tool that are searched, each with the field it belongs to.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::model::{JsonText, Manifest, PublishedName, Tool};

/// How tags begin that stand for hints of MCP servers.
const HINT: &str = "hint:";

/// A part of a tool in which words are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Field {
    /// Its name, as the scenario gave it and as it is published.
    Name,
    /// A title for people, where it has one.
    Title,
    /// What it says of itself.
    Description,
    /// The names of its parameters, at every depth.
    Parameter,
    /// What it says of them.
    ParameterText,
    /// Its tags.
    Tag,
    /// Id and name of its category.
    Category,
    /// The name of its scenario.
    Scenario,
}

impl Field {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Name,
        Self::Title,
        Self::Description,
        Self::Parameter,
        Self::ParameterText,
        Self::Tag,
        Self::Category,
        Self::Scenario,
    ];

    /// As it is written for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Title => "title",
            Self::Description => "description",
            Self::Parameter => "parameter",
            Self::ParameterText => "parameter_text",
            Self::Tag => "tag",
            Self::Category => "category",
            Self::Scenario => "scenario",
        }
    }

    pub(super) fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The fields in which a search found a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fields(pub(super) u8);

impl Fields {
    /// One after another.
    pub fn iter(self) -> impl Iterator<Item = Field> {
        Field::ALL
            .into_iter()
            .filter(move |field| self.0 & field.bit() != 0)
    }

    /// Whether a term was found there.
    pub fn contains(self, field: Field) -> bool {
        self.0 & field.bit() != 0
    }
}

/// Hands on every text of a tool but the name of its scenario, with its field.
pub(super) fn each_text(
    manifest: &Manifest,
    tool: &Tool,
    published: &PublishedName,
    mut each: impl FnMut(Field, &str),
) {
    each(Field::Name, &tool.name);
    if *published.as_str() != *tool.name {
        each(Field::Name, published.as_str());
    }
    for (_, title) in tool
        .extra
        .iter()
        .filter(|(name, _)| matches!(&**name, "title" | "display_name" | "displayName"))
    {
        // What is no text is no title.
        if let Ok(title) = serde_json::from_str::<String>(title.get()) {
            each(Field::Title, &title);
        }
    }
    each(Field::Description, &tool.description);
    // The hints of MCP servers are no words for what a tool does: nearly every tool would be found
    // by `read` in `hint:read-only`.
    let tags = tool.facts.tags.iter().filter(|tag| !tag.starts_with(HINT));
    tags.for_each(|tag| each(Field::Tag, tag));
    if let Some(id) = &tool.category {
        each(Field::Category, id);
        let known = manifest
            .categories
            .binary_search_by(|category| category.id.cmp(id))
            .ok();
        if let Some(category) = known
            .and_then(|at| manifest.categories.get(at))
            .filter(|known| known.name != *id)
        {
            each(Field::Category, &category.name);
        }
    }
    parameters(&tool.parameters, &mut each);
}

/// Walks a schema as text: a tree of it would cost ten times what is read here.
fn parameters(schema: &JsonText, each: &mut dyn FnMut(Field, &str)) {
    let mut reader = serde_json::Deserializer::from_str(schema.get());
    // A schema that is nested too deeply for the reader is searched as far as it was read.
    let _ = SchemaVisitor { each }.deserialize(&mut reader);
}

/// A schema, or another value in its place.
struct SchemaVisitor<'a> {
    each: &'a mut dyn FnMut(Field, &str),
}

/// The object that maps names to schemas.
struct NamedSchemasVisitor<'a> {
    each: &'a mut dyn FnMut(Field, &str),
}

/// A text of a schema, or another value in its place.
struct SchemaTextVisitor<'a> {
    each: &'a mut dyn FnMut(Field, &str),
}

/// What a member of a schema is to the search.
enum Member {
    Named,
    Text,
    Schema,
    Other,
}

macro_rules! ignoring {
    ($($take:ident: $kind:ty),*) => {$(
        fn $take<E>(self, _: $kind) -> Result<(), E> {
            Ok(())
        }
    )*
        fn visit_unit<E>(self) -> Result<(), E> {
            Ok(())
        }
    };
}

impl<'de> DeserializeSeed<'de> for SchemaVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SchemaVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a schema")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(member) = members.next_key_seed(MemberName)? {
            match member {
                Member::Named => {
                    members.next_value_seed(NamedSchemasVisitor { each: self.each })?;
                }
                Member::Text => members.next_value_seed(SchemaTextVisitor { each: self.each })?,
                Member::Schema => members.next_value_seed(SchemaVisitor { each: self.each })?,
                Member::Other => _ = members.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut schemas: A) -> Result<(), A::Error> {
        while schemas
            .next_element_seed(SchemaVisitor { each: self.each })?
            .is_some()
        {}
        Ok(())
    }

    ignoring!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);
}

impl<'de> DeserializeSeed<'de> for NamedSchemasVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NamedSchemasVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("schemas by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while members
            .next_key_seed(ParameterName { each: self.each })?
            .is_some()
        {
            members.next_value_seed(SchemaVisitor { each: self.each })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    ignoring!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);
}

impl<'de> DeserializeSeed<'de> for SchemaTextVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for SchemaTextVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        (self.each)(Field::ParameterText, text);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    ignoring!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);
}

/// The name of a parameter.
struct ParameterName<'a> {
    each: &'a mut dyn FnMut(Field, &str),
}

impl<'de> DeserializeSeed<'de> for ParameterName<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for ParameterName<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<(), E> {
        (self.each)(Field::Parameter, name);
        Ok(())
    }
}

/// The name of a member of a schema.
struct MemberName;

impl<'de> DeserializeSeed<'de> for MemberName {
    type Value = Member;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Member, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for MemberName {
    type Value = Member;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Member, E> {
        Ok(match name {
            "properties" => Member::Named,
            "description" | "title" => Member::Text,
            "items" | "additionalProperties" | "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                Member::Schema
            }
            _ => Member::Other,
        })
    }
}
