//! The arguments of a call as they are written. Numbers keep their digits, which may be more than
//! any number type holds.

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::members::{MemberVisitor, WrittenMember};

/// The body of a call.
#[derive(Debug, serde::Serialize)]
pub(super) struct SentCall<'a> {
    pub(super) tool_name: &'a str,
    pub(super) arguments: WrittenArguments,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scenario: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) chat_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) profile: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) permission: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) revision: Option<&'a str>,
    /// The version of the definition that the arguments were written for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) definition_version: Option<String>,
    /// By which the events of the call are found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) call_id: Option<String>,
}

/// The members of one JSON object, in their order. A name may stand there twice, which the daemon
/// refuses.
#[derive(Debug, Default)]
pub(super) struct WrittenArguments(Vec<(String, Box<RawValue>)>);

impl WrittenArguments {
    /// Adds these, each in place of what has its name.
    pub(super) fn extend(&mut self, further: Self) {
        for (name, value) in further.0 {
            self.0.retain(|(own, _)| *own != name);
            self.push(name, value);
        }
    }

    /// Adds one.
    pub(super) fn push(&mut self, name: String, value: Box<RawValue>) {
        self.0.push((name, value));
    }
}

impl Serialize for WrittenArguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for WrittenArguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut arguments = Self::default();
        let push = |member: WrittenMember<'de>| {
            arguments.push(member.name.into_owned(), member.value.to_owned());
        };
        deserializer.deserialize_map(MemberVisitor(push))?;
        Ok(arguments)
    }
}
