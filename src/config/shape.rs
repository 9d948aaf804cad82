//! What kind of value may stand at a key: its shape. Rules on the value itself are not part of it.

use super::path::{KeyPath, PathStep};

/// What may stand at a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A table with these keys, in this order.
    Table(&'static [(&'static str, Shape)]),
    /// A table of these under keys of the user's own.
    Map(&'static Shape),
    /// A list of these.
    List(&'static Shape),
    /// A text.
    Text,
    /// A text that is always shown as it is, such as an argument of a command.
    Verbatim,
    /// A text that is never shown.
    Secret,
    /// The same, or a table with these keys that says where the text is, or what it is for.
    SecretOr(&'static [(&'static str, Shape)]),
    /// A whole number, 0 or more.
    Number,
    /// A whole number, also below 0.
    Integer,
    /// `true` or `false`.
    Switch,
    /// A number of bytes, or a text.
    Size,
    /// A text, or a list of texts.
    Words,
    /// A text, or a list of tables with these keys.
    TextOrList(&'static [(&'static str, Shape)]),
    /// What another program's configuration has there: anything, and perhaps a secret.
    Foreign,
}

impl Shape {
    /// A list of texts.
    pub(super) const TEXTS: Self = Self::List(&Self::Text);

    /// The shape at `path` below a value of this shape, if anything may stand there.
    pub(super) fn at(self, path: &KeyPath) -> Option<Self> {
        path.steps()
            .iter()
            .try_fold(self, |shape, step| match (shape, step) {
                (Self::Table(keys) | Self::SecretOr(keys), PathStep::Key(key)) => keys
                    .iter()
                    .find(|(name, _)| name == key)
                    .map(|(_, below)| *below),
                (Self::TextOrList(keys), PathStep::Index(_)) => Some(Self::Table(keys)),
                (Self::List(each), PathStep::Index(_)) | (Self::Map(each), PathStep::Key(_)) => {
                    Some(*each)
                }
                _ => None,
            })
    }

    /// Whether what stands there may be a secret, or something written in its place by mistake: of
    /// any table it may be.
    pub(super) fn may_hold_a_secret(self) -> bool {
        match self {
            Self::Table(_) | Self::Map(_) | Self::Secret | Self::SecretOr(_) | Self::Foreign => {
                true
            }
            Self::List(each) => each.may_hold_a_secret(),
            Self::Text
            | Self::Verbatim
            | Self::Number
            | Self::Integer
            | Self::Switch
            | Self::Size
            | Self::Words
            | Self::TextOrList(_) => false,
        }
    }

    /// What a value of this shape is called in a sentence.
    pub(super) fn described(self) -> &'static str {
        match self {
            Self::Table(_) | Self::Map(_) => "a table",
            Self::List(Self::Table(_)) => "a list of tables",
            Self::List(_) => "a list of texts",
            Self::Text | Self::Verbatim | Self::Secret => "a text",
            Self::SecretOr(_) => "a text, or where one is",
            Self::Number => "a whole number, 0 or more",
            Self::Integer => "a whole number",
            Self::Switch => "true or false",
            Self::Size => "a size",
            Self::Words => "a text or a list of texts",
            Self::TextOrList(_) => "a text or a list of tables",
            Self::Foreign => "an entry as its client writes it",
        }
    }
}
