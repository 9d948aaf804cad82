//! Splits the outer objects of a document into raw members, in one pass and without copies.
//!
//! This module never builds a list of all items of a list, because the sender chooses its length;
//! [`each_item`] visits them one by one.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;

use super::budget::{DecodeBudget, shared_text_bytes};
use super::flaw::Flaw;
use super::node::{last_wins, share_unknown};
use super::raw::Raw;
use super::text::{self, kind};
use crate::model::Extra;

/// The most unknown members of one object, and the most items of a list that becomes more than its
/// text.
pub(in crate::protocols) const MOST: usize = 1_000;
/// The most members of one object, known and unknown. Writing an object adds some known members,
/// and the result must be readable again.
const MEMBERS: usize = MOST + 32;

/// The members of one object that have not been taken yet, in the order sent. Names are unique.
#[derive(Debug, Default)]
pub(in crate::protocols) struct Members<'a>(Vec<(Cow<'a, str>, Raw<'a>)>);

impl<'a> Members<'a> {
    /// The members of an object.
    pub(in crate::protocols) fn from_raw(raw: Raw<'a>) -> Result<Self, Flaw> {
        Self::parse(raw.get()).unwrap_or_else(|_| {
            Err(match kind(raw.get()) {
                "an object" => Flaw::new("", "has a member whose name has a broken escape"),
                found => Flaw::kind("", found, "an object"),
            })
        })
    }

    /// The members of an object in a text that has not been parsed yet. The outer error means that
    /// the text is not a JSON object.
    pub(in crate::protocols) fn parse(text: &'a str) -> Result<Result<Self, Flaw>, serde_json::Error> {
        let mut deserializer = Deserializer::from_str(text);
        let members = deserializer.deserialize_map(MembersVisitor)?;
        deserializer.end()?;
        Ok(members.map(Self::new))
    }

    /// Members in the order sent. Of members with the same name the last one counts.
    pub(in crate::protocols) fn new(members: Vec<(Cow<'a, str>, Raw<'a>)>) -> Self {
        Self(last_wins(members))
    }

    pub(in crate::protocols) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(own, _)| own == name)
    }

    /// The members by name.
    pub(in crate::protocols) fn iter(&self) -> impl Iterator<Item = (&str, Raw<'a>)> {
        self.0.iter().map(|(name, raw)| (name.as_ref(), *raw))
    }

    /// The members, for a protocol that renames some of them.
    pub(in crate::protocols) fn all_mut(&mut self) -> &mut Vec<(Cow<'a, str>, Raw<'a>)> {
        &mut self.0
    }

    /// Bytes of names and values, as written.
    pub(in crate::protocols) fn bytes(&self) -> usize {
        self.0.iter().map(|(name, raw)| name.len() + raw.get().len()).sum()
    }

    /// The first member with more than `most` bytes, and the bytes of its value, or of its name if
    /// the name alone is too long.
    pub(in crate::protocols) fn beyond(&self, most: usize) -> Option<(&str, usize)> {
        let sized = self.0.iter().map(|(name, raw)| (name.as_ref(), raw.get().len().max(name.len())));
        sized.into_iter().find(|(_, bytes)| *bytes > most)
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

    /// The members that are left, to be passed on.
    pub(in crate::protocols) fn into_extra(self, budget: &mut DecodeBudget) -> Result<Extra, Flaw> {
        if self.0.len() > MOST {
            return Err(too_many());
        }
        let mut share = |(name, raw): (Cow<'_, str>, Raw<'_>)| {
            let value = share_unknown(raw, budget).map_err(|flaw| flaw.within(&name))?;
            budget.take(shared_text_bytes(&name))?;
            Ok((name.as_ref().into(), value))
        };
        // Collecting straight from the members would keep their whole list allocated, and mostly no
        // member is left in it.
        let mut extra = Vec::with_capacity(self.0.len());
        for member in self.0 {
            extra.push(share(member)?);
        }
        Ok(extra.into())
    }
}

/// Calls `item` with the index and the text of each item of a list. Returns the number of items;
/// the error is the kind of a value that is not a list.
pub(in crate::protocols) fn each_item<'a>(
    list: Raw<'a>,
    item: impl FnMut(usize, Raw<'a>),
) -> Result<usize, &'static str> {
    // The text is valid JSON, so the only possible error is another kind of value.
    Deserializer::from_str(list.get()).deserialize_seq(ItemsVisitor(item)).map_err(|_| kind(list.get()))
}

/// The text of an object's `member`, if it is an object with one. Of several the last one counts.
pub(in crate::protocols) fn own_text<'a>(object: Raw<'a>, member: &str) -> Option<Cow<'a, str>> {
    if !object.get().starts_with('{') {
        return None;
    }
    let found = Deserializer::from_str(object.get()).deserialize_map(MemberVisitor(member)).ok()?;
    text::string(found?.get())
}

fn too_many() -> Flaw {
    Flaw::new("", format!("has more than {MOST} members")).hint("leave out members that the protocol does not know")
}

/// A member name, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct ObjectKey<'a>(#[serde(borrow)] Cow<'a, str>);

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Result<Vec<(Cow<'de, str>, Raw<'de>)>, Flaw>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(ObjectKey(name)) = map.next_key()? {
            if members.len() == MEMBERS {
                // Reads the object to its end, because the check for valid JSON comes first.
                map.next_value::<IgnoredAny>()?;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return Ok(Err(too_many()));
            }
            members.push((name, Raw::from_raw_value(map.next_value()?)));
        }
        Ok(Ok(members))
    }
}

struct MemberVisitor<'n>(&'n str);

impl<'de> Visitor<'de> for MemberVisitor<'_> {
    type Value = Option<Raw<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(ObjectKey(name)) = map.next_key()? {
            if name == self.0 {
                found = Some(Raw::from_raw_value(map.next_value()?));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

struct ItemsVisitor<F>(F);

impl<'de, F: FnMut(usize, Raw<'de>)> Visitor<'de> for ItemsVisitor<F> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<usize, A::Error> {
        let mut count = 0;
        while let Some(item) = seq.next_element()? {
            (self.0)(count, Raw::from_raw_value(item));
            count += 1;
        }
        Ok(count)
    }
}
