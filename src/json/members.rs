//! The members of one object and the items of one list as they were written, in their order and
//! without copies. No value is read, so none has to fit a type of Rust.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

use super::scan::{kind, string};

/// One member of an object.
#[derive(Debug)]
pub(crate) struct WrittenMember<'a> {
    /// Its name. It borrows where it has no escapes.
    pub(crate) name: Cow<'a, str>,
    /// The name as it was written, with its quotes.
    pub(crate) written_name: &'a str,
    /// Its value as it was written.
    pub(crate) value: &'a RawValue,
}

/// Calls `member` with each member of an object, also with several of the same name. Fails for a
/// text that is not one object, and for a name with a broken escape.
pub(crate) fn each_member<'a>(
    text: &'a str,
    member: impl FnMut(WrittenMember<'a>),
) -> Result<(), serde_json::Error> {
    let mut deserializer = Deserializer::from_str(text);
    deserializer.deserialize_map(MemberVisitor(member))?;
    deserializer.end()
}

/// Calls `item` with the index and the text of each item of a list. Returns the number of items;
/// the error is the kind of a value that is not a list. The text is valid JSON.
pub(crate) fn each_item<'a>(
    list: &'a str,
    item: impl FnMut(usize, &'a RawValue),
) -> Result<usize, &'static str> {
    // The only possible error is another kind of value.
    Deserializer::from_str(list)
        .deserialize_seq(ItemVisitor(item))
        .map_err(|_| kind(list))
}

/// Visits the members of an object where a larger text is read.
pub(crate) struct MemberVisitor<F>(pub(crate) F);

impl<'de, F: FnMut(WrittenMember<'de>)> Visitor<'de> for MemberVisitor<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(written) = map.next_key::<&RawValue>()? {
            let written_name = written.get();
            let name = string(written_name)
                .ok_or_else(|| A::Error::custom("a name has a broken escape"))?;
            let value = map.next_value()?;
            (self.0)(WrittenMember {
                name,
                written_name,
                value,
            });
        }
        Ok(())
    }
}

struct ItemVisitor<F>(F);

impl<'de, F: FnMut(usize, &'de RawValue)> Visitor<'de> for ItemVisitor<F> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<usize, A::Error> {
        let mut count = 0;
        while let Some(item) = seq.next_element()? {
            (self.0)(count, item);
            count += 1;
        }
        Ok(count)
    }
}

/// The members of an object. A name may stand there twice.
#[derive(Debug, Default)]
pub(crate) struct MemberTexts<'a>(Vec<WrittenMember<'a>>);

impl<'a> MemberTexts<'a> {
    /// Takes an object apart. Fails for anything else.
    pub(crate) fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        let mut members = Vec::new();
        each_member(text, |member| members.push(member))?;
        Ok(Self(members))
    }

    /// Each name with the text of its value, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0
            .iter()
            .map(|member| (member.name.as_ref(), member.value.get()))
    }

    /// Their names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|member| member.name.as_ref())
    }

    /// The text of the value of the member with this name. Of several the last one counts, as where
    /// an object is read as a tree.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.0
            .iter()
            .rfind(|member| member.name == name)
            .map(|member| member.value.get())
    }

    /// The text of the object with those members only that pass.
    pub(crate) fn filtered(&self, passes: impl Fn(&str) -> bool) -> String {
        let members = self.0.iter().filter(|member| passes(&member.name));
        let members: Vec<String> = members
            .map(|member| format!("{}:{}", member.written_name, member.value.get()))
            .collect();
        format!("{{{}}}", members.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_text_and_their_order() {
        let text = r#"{ "b\u0061" : 1e999, "_x":{"y": [ 1 ]}, "b":2, "b":3 }"#;
        let members = MemberTexts::parse(text).unwrap();
        assert_eq!(members.names().collect::<Vec<_>>(), ["ba", "_x", "b", "b"]);
        assert_eq!(members.get("ba"), Some("1e999"));
        assert_eq!(members.get("b"), Some("3"));
        assert_eq!(
            members.filtered(|name| name != "_x"),
            r#"{"b\u0061":1e999,"b":2,"b":3}"#
        );
        assert_eq!(MemberTexts::parse("{}").unwrap().filtered(|_| true), "{}");
        for text in ["[]", "7", "{", "null", "{} {}", r#"{"\ud800":1}"#] {
            assert!(MemberTexts::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn items_are_visited_in_their_order_and_another_kind_is_named() {
        let mut items = Vec::new();
        assert_eq!(
            each_item("[1, {\"a\":2}]", |index, item| items
                .push((index, item.get().to_owned()))),
            Ok(2)
        );
        assert_eq!(items, [(0, "1".to_owned()), (1, "{\"a\":2}".to_owned())]);
        assert_eq!(each_item("{}", |_, _| {}), Err("an object"));
    }
}
