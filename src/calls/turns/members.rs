//! The members of one JSON object as they were written, in their order.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object. A name may stand there twice.
#[derive(Debug, Default)]
pub(super) struct CallMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'a> CallMembers<'a> {
    /// Takes an object apart. Fails for anything else.
    pub(super) fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The text of the value of the first member with this name.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(own, _)| own == name).map(|(_, value)| value.get())
    }

    /// The text of the object with those members only that pass.
    pub(super) fn filtered(&self, passes: impl Fn(&str) -> bool) -> String {
        let members = self.0.iter().filter(|(name, _)| passes(name));
        let members: Vec<String> = members
            .map(|(name, value)| format!("{}:{}", serde_json::Value::from(name.as_str()), value.get()))
            .collect();
        format!("{{{}}}", members.join(","))
    }
}

struct CallMembersVisitor;

impl<'de> Visitor<'de> for CallMembersVisitor {
    type Value = CallMembers<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(CallMembers(members))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for CallMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CallMembersVisitor)
    }
}
