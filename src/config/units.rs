//! Durations, sizes and counts as they are written.

use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::SignedDuration;

/// A year. Deadlines are sums of clock readings and durations, and a duration without bounds would
/// make such a sum overflow.
const MAX_DURATION: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const KIB: u64 = 1024;

/// The reason why a value cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValueError {
    /// What is wrong with it, in one clause.
    pub(super) message: String,
    /// What to write instead.
    pub(super) hint: String,
    /// Whether only this process lacks what the value names: another one may have it.
    pub(super) is_of_this_process: bool,
}

impl ValueError {
    pub(super) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
            is_of_this_process: false,
        }
    }

    /// The value names what this process lacks: a variable that is not set for it, or a file that
    /// it may not read.
    pub(super) fn of_this_process(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            is_of_this_process: true,
            ..Self::new(message, hint)
        }
    }
}

/// Reads a duration: numbers with units from milliseconds to hours, such as `1h 30m`; zero to a
/// year.
pub(super) fn duration(text: &str) -> Result<Duration, ValueError> {
    let units = "write a number and a unit, such as \"250ms\", \"60s\", \"5m\" or \"24h\"";
    let Ok(signed) = text.parse::<SignedDuration>() else {
        let number = text.trim();
        let hint = match number.parse::<u32>() {
            Ok(_) => format!("add the unit: \"{number}s\" is {number} seconds"),
            Err(_) => units.to_owned(),
        };
        return Err(ValueError::new(format!("{text:?} is not a duration"), hint));
    };
    match Duration::try_from(signed) {
        Ok(duration) if duration <= MAX_DURATION => Ok(duration),
        Ok(_) => Err(ValueError::new(
            format!("{text:?} is too long"),
            "write at most a year: \"8760h\"",
        )),
        Err(_) => Err(ValueError::new(format!("{text:?} is negative"), units)),
    }
}

/// Reads a duration that zero would make senseless.
pub(super) fn positive_duration(text: &str) -> Result<Duration, ValueError> {
    match duration(text)? {
        Duration::ZERO => Err(ValueError::new(
            "it must be longer than zero",
            "write at least \"1ms\"",
        )),
        duration => Ok(duration),
    }
}

/// Reads after how long a program that is not used is ended: `never`, or a duration.
pub(super) fn sleep_after(text: &str) -> Result<Option<Duration>, ValueError> {
    match text {
        "never" => Ok(None),
        _ => positive_duration(text).map(Some),
    }
}

/// Reads a size: a whole number with `B`, `KiB`, `MiB` or `GiB`; without a unit it is bytes.
pub(super) fn bytes(text: &str) -> Result<u64, ValueError> {
    in_bytes(text).ok_or_else(|| {
        ValueError::new(
            format!("{text:?} is not a size"),
            "write bytes as a number, or a whole number and one of B, KiB, MiB, GiB, such as \"8 MiB\"",
        )
    })
}

/// The number of bytes that a text means.
fn in_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, unit) = text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    );
    let unit = match unit.trim_start() {
        "" | "B" => 1,
        "KiB" => KIB,
        "MiB" => KIB * KIB,
        "GiB" => KIB * KIB * KIB,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// The number, if it is within `range`.
pub(super) fn within<V: TryFrom<u64>>(
    number: u64,
    range: &RangeInclusive<u64>,
    unit: &str,
) -> Result<V, ValueError> {
    let fits = if range.contains(&number) {
        V::try_from(number).ok()
    } else {
        None
    };
    fits.ok_or_else(|| {
        let hint = format!("write {} to {}{unit}", range.start(), range.end());
        ValueError::new(format!("{number}{unit} is out of range"), hint)
    })
}
