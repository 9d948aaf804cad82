//! What the work on one schema may cost. All steps of a run pay into one account.
//!
//! A short schema can describe gigabytes through its references, and a careless step costs the
//! square of what it reads. So a step pays, in bytes, for what it reads, copies and writes before
//! it does so. The bounds follow the schema's own size, so that a hostile schema costs a small
//! multiple of a plain one of the same size. Beyond them the run ends with
//! [`TransformError::TooLarge`]. The budget never counts time, so the same schema always ends
//! alike.

use serde_json::Value;

use super::error::TransformError;

/// Bytes that a value takes in memory by itself.
pub(super) const VALUE: usize = 72;
/// Bytes that a member of an object takes beside its name and its value.
pub(super) const MEMBER: usize = 48;
/// Work for each byte of a pointer that is looked up: its steps are unescaped, hashed and compared.
pub(super) const LOOKUP: usize = 4;
/// How many times its size a schema may grow by, up to [`MOST_GROWTH`]. Forty properties that share
/// a definition of a kilobyte and a half grow by eleven times.
const GROWTH: usize = 12;
/// Growth of the largest schemas: about half a megabyte of text, which is more than language models
/// read.
const MOST_GROWTH: usize = 4 * 1024 * 1024;
/// Growth that a schema of any size may take.
const FREE_GROWTH: usize = 16 * 1024;
/// How many times all steps together may read, copy or write a schema that has grown as far as it
/// may. A run has at most 20 steps, each of which reads the whole schema once.
const PASSES: usize = 24;

/// What a run over one schema may still spend.
#[derive(Debug)]
pub struct TransformBudget {
    /// Bytes that the steps together may read, copy and write.
    whole: usize,
    left: usize,
    /// Bytes that a step may write, and that a schema may have after it.
    most: usize,
    written: usize,
}

impl TransformBudget {
    /// The budget of a schema that takes so many bytes, by [`weight`].
    pub fn for_size(size: usize) -> Self {
        let growth = size
            .saturating_mul(GROWTH)
            .min(MOST_GROWTH)
            .saturating_add(FREE_GROWTH);
        let most = size.saturating_add(growth);
        let whole = most.saturating_mul(PASSES);
        Self {
            whole,
            left: whole,
            most,
            written: 0,
        }
    }

    /// Bytes that were read, copied and written so far.
    pub fn spent(&self) -> usize {
        self.whole - self.left
    }

    /// Begins a step over a schema that takes so many bytes now, and pays for reading it once.
    pub(super) fn begin(&mut self, size: usize) -> Result<(), TransformError> {
        self.written = 0;
        if size > self.most {
            Err(TransformError::TooLarge)
        } else {
            self.charge(size)
        }
    }

    /// Pays for bytes that are read once more, or looked up.
    pub fn charge(&mut self, bytes: usize) -> Result<(), TransformError> {
        self.left = self
            .left
            .checked_sub(bytes)
            .ok_or(TransformError::TooLarge)?;
        Ok(())
    }

    /// Pays for bytes that are added to the schema, or to what will take its place.
    pub fn write(&mut self, bytes: usize) -> Result<(), TransformError> {
        self.written = self.written.saturating_add(bytes);
        if self.written > self.most {
            Err(TransformError::TooLarge)
        } else {
            self.charge(bytes)
        }
    }

    /// A copy of a value, which is paid for before it is made.
    pub fn copy(&mut self, value: &Value) -> Result<Value, TransformError> {
        self.write(weight(value))?;
        Ok(value.clone())
    }
}

/// What a value takes in memory, in bytes, roughly.
pub fn weight(value: &Value) -> usize {
    let held = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| MEMBER + name.len() + weight(value))
            .sum(),
        _ => 0,
    };
    VALUE + held
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_beyond_either_bound_is_refused() {
        let mut budget = TransformBudget::for_size(1_000);
        assert_eq!(budget.begin(1_000), Ok(()));
        let most = 1_000 + 1_000 * GROWTH + FREE_GROWTH;
        assert_eq!(budget.write(most), Ok(()));
        assert_eq!(
            budget.write(1),
            Err(TransformError::TooLarge),
            "more than a step may write"
        );
        assert_eq!(
            budget.begin(most + 1),
            Err(TransformError::TooLarge),
            "more than a schema may have"
        );
        assert_eq!(budget.begin(1_000), Ok(()));
        assert_eq!(budget.write(1), Ok(()), "the next step writes anew");
        let left = PASSES * most - budget.spent();
        assert_eq!(budget.charge(left), Ok(()));
        assert_eq!(
            budget.charge(1),
            Err(TransformError::TooLarge),
            "more than all steps may spend"
        );
        let large = 100 << 20;
        assert_eq!(
            TransformBudget::for_size(large).begin(large + MOST_GROWTH + FREE_GROWTH + 1),
            Err(TransformError::TooLarge)
        );
    }

    #[test]
    fn a_copy_is_paid_for_by_what_it_takes() {
        let value = json!({"enum": [1, "two"]});
        let mut budget = TransformBudget::for_size(weight(&value));
        assert_eq!(budget.copy(&value).as_ref(), Ok(&value));
        assert_eq!(
            budget.spent(),
            4 * VALUE + MEMBER + "enum".len() + "two".len()
        );
        let large = Value::from(vec![0; 10_000]);
        assert_eq!(budget.copy(&large), Err(TransformError::TooLarge));
    }
}
