//! The outer objects of a document, taken apart into raw members in one pass and without copies.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::flaw::Flaw;
use super::spelling::{rename, seed_name};
use super::text::{self, kind, last_wins};
use crate::model::Extra;

/// The text of one valid JSON value, without blanks around it.
#[derive(Debug, Clone, Copy)]
pub(in crate::protocols) struct Raw<'a>(&'a str);

/// The members of one object that have not been taken yet, names unique, in the order they came.
#[derive(Debug, Default)]
pub(in crate::protocols) struct Members<'a>(Vec<(Cow<'a, str>, Raw<'a>)>);

/// A value whose kind is not known before it is read.
#[derive(Debug)]
pub(in crate::protocols) enum Loose<'a> {
    Object(Members<'a>),
    List(Vec<Loose<'a>>),
    Null,
    /// Its kind, for people.
    Other(&'static str),
}

/// A whole document.
#[derive(Debug)]
pub(in crate::protocols) struct Document<'a> {
    /// All members but `tools`.
    pub(in crate::protocols) members: Members<'a>,
    /// `tools`, if it is there.
    pub(in crate::protocols) tools: Option<Loose<'a>>,
}

impl<'a> Raw<'a> {
    /// One that a parser found.
    pub(in crate::protocols) fn of(found: &'a RawValue) -> Self {
        Self(found.get())
    }

    /// The text.
    pub(in crate::protocols) fn get(self) -> &'a str {
        self.0
    }
}

impl<'a> Members<'a> {
    /// The members of an object, or what it is instead.
    pub(in crate::protocols) fn read(raw: Raw<'a>) -> Result<Self, &'static str> {
        match serde_json::Deserializer::from_str(raw.get()).deserialize_any(LooseVisitor) {
            Ok(Loose::Object(members)) => Ok(members),
            _ => Err(kind(raw.get())),
        }
    }

    /// Members as they came.
    pub(super) fn of(members: Vec<(Cow<'a, str>, Raw<'a>)>) -> Self {
        Self(last_wins(members))
    }

    pub(in crate::protocols) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(own, _)| own == name)
    }

    /// Gives the members the seed's names; see [`seed_name`].
    pub(in crate::protocols) fn rename(&mut self, known: &[(&str, &'static str)], protojson: bool) {
        rename(&mut self.0, |name| seed_name(name, known, protojson));
    }

    /// The same, after leaving out those of the known members that are not set, so that they take no name from what is: `null` and
    /// `""` say nothing in any spelling, `0` says nothing in protojson.
    pub(in crate::protocols) fn rename_set(&mut self, known: &[(&str, &'static str)], protojson: bool) {
        let is_known = |name: &str| known.iter().any(|(camel, seed)| *camel == name || *seed == name);
        let unset = |json: &str| matches!(json, "null" | "\"\"") || protojson && json == "0";
        self.0.retain(|(name, raw)| !(is_known(name) && unset(raw.get())));
        self.rename(known, protojson);
    }

    /// Bytes of what is in it, as written.
    pub(in crate::protocols) fn bytes(&self) -> usize {
        self.0.iter().map(|(name, raw)| name.len() + raw.get().len()).sum()
    }

    /// The first member with a value of more than `most` bytes, and its bytes.
    pub(in crate::protocols) fn beyond(&self, most: usize) -> Option<(&str, usize)> {
        let sized = self.0.iter().map(|(name, raw)| (name.as_ref(), raw.get().len()));
        sized.into_iter().find(|(_, bytes)| *bytes > most)
    }

    /// A member.
    pub(in crate::protocols) fn get(&self, name: &str) -> Option<Raw<'a>> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, raw)| *raw)
    }

    /// Takes a member out.
    pub(in crate::protocols) fn take(&mut self, name: &str) -> Option<Raw<'a>> {
        let at = self.0.iter().position(|(own, _)| own == name)?;
        Some(self.0.remove(at).1)
    }

    /// Takes a member out; `null` counts as absent.
    pub(in crate::protocols) fn take_set(&mut self, name: &str) -> Option<Raw<'a>> {
        self.take(name).filter(|raw| raw.get() != "null")
    }

    /// Takes a text out; `null` counts as absent.
    pub(in crate::protocols) fn take_text(&mut self, name: &str) -> Result<Option<Cow<'a, str>>, Flaw> {
        let Some(raw) = self.take_set(name) else { return Ok(None) };
        let flaw = || match kind(raw.get()) {
            "a text" => Flaw::new("", "is a text with a broken escape").hint("write surrogates in pairs"),
            found => Flaw::kind("", found, "a text"),
        };
        text::string(raw.get()).map(Some).ok_or_else(|| flaw().within(name))
    }

    /// What is left, to be passed on.
    pub(in crate::protocols) fn into_extra(self) -> Result<Extra, Flaw> {
        let share = |(name, raw): (Cow<'_, str>, Raw<'_>)| {
            let value = text::share_unknown(raw).map_err(|flaw| flaw.within(&name))?;
            Ok((name.as_ref().into(), value))
        };
        // Collecting straight from the members would keep their whole list alive, and mostly nothing is left in it.
        let mut extra = Vec::with_capacity(self.0.len());
        for member in self.0 {
            extra.push(share(member)?);
        }
        Ok(extra.into())
    }
}

impl<'a> Loose<'a> {
    /// The name that it gives itself, if it is an object with one.
    pub(in crate::protocols) fn name(&self) -> Option<Cow<'a, str>> {
        let Self::Object(Members(members)) = self else { return None };
        let (_, raw) = members.iter().find(|(name, _)| name == "name")?;
        text::string(raw.get())
    }

    /// What kind of value it is, for people.
    pub(in crate::protocols) fn kind(&self) -> &'static str {
        match self {
            Self::Object(_) => "an object",
            Self::List(_) => "a list",
            Self::Null => "null",
            Self::Other(kind) => kind,
        }
    }
}

impl<'a> Document<'a> {
    /// Reads a JSON text whose outermost value is an object.
    pub(in crate::protocols) fn read(text: &'a str) -> Result<Self, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let document = deserializer.deserialize_map(DocumentVisitor)?;
        deserializer.end()?;
        Ok(document)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document<'de>, A::Error> {
        let (mut members, mut tools) = (Vec::new(), None);
        while let Some(Name(name)) = map.next_key()? {
            if name == "tools" {
                tools = Some(map.next_value_seed(LooseVisitor)?);
            } else {
                members.push((name, Raw::of(map.next_value()?)));
            }
        }
        Ok(Document { members: Members::of(members), tools })
    }
}

/// A member name, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct LooseVisitor;

impl<'de> DeserializeSeed<'de> for LooseVisitor {
    type Value = Loose<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Loose<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Loose<'de>, A::Error> {
        // Tools and scenarios have five members and more.
        let mut members = Vec::with_capacity(8);
        while let Some(Name(name)) = map.next_key()? {
            members.push((name, Raw::of(map.next_value()?)));
        }
        Ok(Loose::Object(Members::of(members)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Loose<'de>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(LooseVisitor)? {
            items.push(item);
        }
        Ok(Loose::List(items))
    }

    fn visit_unit<E>(self) -> Result<Loose<'de>, E> {
        Ok(Loose::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Loose<'de>, E> {
        Ok(Loose::Other("a boolean"))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Loose<'de>, E> {
        Ok(Loose::Other("a number"))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Loose<'de>, E> {
        Ok(Loose::Other("a number"))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Loose<'de>, E> {
        Ok(Loose::Other("a number"))
    }

    fn visit_str<E>(self, _: &str) -> Result<Loose<'de>, E> {
        Ok(Loose::Other("a text"))
    }
}
