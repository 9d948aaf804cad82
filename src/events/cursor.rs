//! The position of a reader in the events: `epoch.seq`.

use std::fmt;
use std::str::FromStr;

/// One run of the hub. It is random, so that a cursor of an earlier process never counts as one of
/// this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch(u64);

/// The position after one event. Written `epoch.seq`: 16 hexadecimal digits, a dot, and a decimal
/// number that grows with each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The run of the hub that published the event.
    pub epoch: Epoch,
    /// The number of the event in that run.
    pub seq: u64,
}

/// A text that is not a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a cursor is written as the `id` of an event: `epoch.seq`")]
pub struct InvalidCursor;

impl Epoch {
    /// A new random epoch.
    pub(super) fn random() -> Self {
        Self(fastrand::u64(..))
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}.{}", self.epoch.0, self.seq)
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (epoch, seq) = text.split_once('.').ok_or(InvalidCursor)?;
        let epoch = Some(epoch)
            .filter(|epoch| epoch.len() == 16 && epoch.bytes().all(|c| c.is_ascii_hexdigit()));
        let epoch = epoch
            .and_then(|epoch| u64::from_str_radix(epoch, 16).ok())
            .ok_or(InvalidCursor)?;
        let seq = Some(seq)
            .filter(|seq| seq.bytes().all(|c| c.is_ascii_digit()))
            .and_then(|seq| seq.parse().ok());
        Ok(Self {
            epoch: Epoch(epoch),
            seq: seq.ok_or(InvalidCursor)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_what_it_writes_and_nothing_else() {
        let cursor = Cursor {
            epoch: Epoch::random(),
            seq: 7,
        };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in [
            "",
            "7",
            ".",
            "0123456789abcdef.",
            "0123456789abcdef.+7",
            "123.7",
            "+123456789abcdef.7",
            "x.7",
        ] {
            assert_eq!(text.parse::<Cursor>(), Err(InvalidCursor), "{text}");
        }
    }
}
