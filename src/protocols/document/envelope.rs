//! Splits the outer objects of a document into raw members, in one pass and without copies.
//!
//! This module never builds a list of all items of a list, because the sender chooses its length;
//! [`each_item`] visits them one by one.

use std::borrow::Cow;

use super::budget::{DecodeBudget, MEMBER, shared_text_bytes};
use super::flaw::Flaw;
use super::raw::Raw;
use crate::json::members::{self, each_member};
use crate::json::names::last_wins;
use crate::json::scan::{kind, string};
use crate::json::soundness::{ScanResult, scan};
use crate::model::{Extra, JsonText};

/// The most unknown members of one object, and the most items of a list that becomes more than its
/// text.
pub(in crate::protocols) const UNKNOWN_MEMBERS_MAX: usize = 1_000;
/// The most members of one object, known and unknown. Writing an object adds some known members,
/// and the result must be readable again.
const MEMBERS_MAX: usize = UNKNOWN_MEMBERS_MAX + 32;

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
    pub(in crate::protocols) fn parse(
        text: &'a str,
    ) -> Result<Result<Self, Flaw>, serde_json::Error> {
        let mut members = Vec::new();
        let mut is_within = true;
        // Reads the object to its end, because the check for valid JSON comes first.
        each_member(text, |member| {
            is_within &= members.len() < MEMBERS_MAX;
            if is_within {
                members.push((member.name, Raw::from_raw_value(member.value)));
            }
        })?;
        Ok(if is_within {
            Ok(Self::new(members))
        } else {
            Err(too_many())
        })
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
        self.0
            .iter()
            .map(|(name, raw)| name.len() + raw.get().len())
            .sum()
    }

    /// The first member with more than `most` bytes, and the bytes of its value, or of its name if
    /// the name alone is too long.
    pub(in crate::protocols) fn beyond(&self, most: usize) -> Option<(&str, usize)> {
        let sized = self
            .0
            .iter()
            .map(|(name, raw)| (name.as_ref(), raw.get().len().max(name.len())));
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
    pub(in crate::protocols) fn take_text(
        &mut self,
        name: &str,
    ) -> Result<Option<Cow<'a, str>>, Flaw> {
        let Some(raw) = self.take_set(name) else {
            return Ok(None);
        };
        let flaw = || match kind(raw.get()) {
            "a text" => {
                Flaw::new("", "is a text with a broken escape").hint("write surrogates in pairs")
            }
            found => Flaw::kind("", found, "a text"),
        };
        string(raw.get())
            .map(Some)
            .ok_or_else(|| flaw().within(name))
    }

    /// The members that are left, to be passed on.
    pub(in crate::protocols) fn into_extra(self, budget: &mut DecodeBudget) -> Result<Extra, Flaw> {
        if self.0.len() > UNKNOWN_MEMBERS_MAX {
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
    mut item: impl FnMut(usize, Raw<'a>),
) -> Result<usize, &'static str> {
    members::each_item(list.get(), |index, raw| {
        item(index, Raw::from_raw_value(raw));
    })
}

/// The text of an object's `member`, if it is an object with one. Of several the last one counts.
pub(in crate::protocols) fn own_text<'a>(object: Raw<'a>, member: &str) -> Option<Cow<'a, str>> {
    let mut found = None;
    let read = each_member(object.get(), |own| {
        if own.name == member {
            found = Some(own.value.get());
        }
    });
    read.ok()?;
    string(found?)
}

/// The shared text of a value of an unknown member, if other readers can read it.
pub(in crate::protocols) fn share_unknown(
    raw: Raw<'_>,
    budget: &mut DecodeBudget,
) -> Result<JsonText, Flaw> {
    let scanned = scan(raw.get(), |_| false, |_, _| {});
    let text = match scanned.0 {
        ScanResult::Plain => scanned.1,
        ScanResult::Odd => {
            drop(scanned);
            budget.tree(raw.get())?.text().into()
        }
        ScanResult::TooDeep => return Err(Flaw::too_deep()),
    };
    budget.take(MEMBER + shared_text_bytes(&text))?;
    Ok(JsonText::known(text))
}

fn too_many() -> Flaw {
    Flaw::new("", format!("has more than {UNKNOWN_MEMBERS_MAX} members"))
        .hint("leave out members that the protocol does not know")
}
