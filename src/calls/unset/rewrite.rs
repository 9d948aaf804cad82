//! Writes arguments again without the members that were taken out. What stays keeps its text,
//! because numbers may be larger than any Rust number type.

use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// The text without the members that `kept`, the same value, does not have. `None` if they are not
/// the same value.
pub(super) fn without_removed(text: &str, kept: &Value) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut reader = serde_json::Deserializer::from_str(text);
    Copy {
        kept,
        out: &mut out,
    }
    .deserialize(&mut reader)
    .ok()?;
    Some(out)
}

/// Copies one value.
struct Copy<'k, 'o> {
    kept: &'k Value,
    out: &'o mut String,
}

impl<'de> DeserializeSeed<'de> for Copy<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.kept {
            Value::Object(_) => deserializer.deserialize_map(self),
            Value::Array(_) => deserializer.deserialize_seq(self),
            _ => {
                self.out
                    .push_str(<&RawValue>::deserialize(deserializer)?.get());
                Ok(())
            }
        }
    }
}

impl<'de> Visitor<'de> for Copy<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value that was read before")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.out.push('{');
        let mut is_first = true;
        while let Some(written) = map.next_key::<&RawValue>()? {
            let name: String = serde_json::from_str(written.get()).map_err(A::Error::custom)?;
            let Some(kept) = self.kept.get(&name) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if !std::mem::take(&mut is_first) {
                self.out.push(',');
            }
            self.out.push_str(written.get());
            self.out.push(':');
            map.next_value_seed(Copy {
                kept,
                out: &mut *self.out,
            })?;
        }
        self.out.push('}');
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.out.push('[');
        for (index, kept) in self.kept.as_array().into_iter().flatten().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            let copied = items.next_element_seed(Copy {
                kept,
                out: &mut *self.out,
            })?;
            copied.ok_or_else(|| {
                A::Error::invalid_length(index, &"the items that were read before")
            })?;
        }
        self.out.push(']');
        Ok(())
    }
}
