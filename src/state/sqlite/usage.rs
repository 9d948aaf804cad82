//! Rows of usage counts of tools.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::{Row, Transaction, params};

use super::columns::{bad, column, parsed};
use crate::model::{ToolId, ToolUsage};

pub(super) fn put(
    transaction: &Transaction<'_>,
    tool: &ToolId,
    usage: &ToolUsage,
) -> rusqlite::Result<usize> {
    // Texts and numbers can always be written.
    let failures = serde_json::to_string(&usage.failures).unwrap_or_default();
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO usage (tool, calls, sent, failures, total, longest, first, last)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            tool.to_string(),
            number(usage.calls),
            number(usage.sent),
            failures,
            microseconds(usage.total),
            microseconds(usage.longest),
            usage.first.to_string(),
            usage.last.to_string(),
        ])
}

/// Deletes all but `most` rows, those called last; returns how many were deleted.
pub(super) fn trim(transaction: &Transaction<'_>, most: usize) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached("DELETE FROM usage WHERE tool NOT IN (SELECT tool FROM usage ORDER BY last DESC LIMIT ?1)")?
        .execute([i64::try_from(most).unwrap_or(i64::MAX)])
}

pub(super) fn from_row(row: &Row<'_>) -> Result<(ToolId, ToolUsage), String> {
    let count =
        |name: &str| column::<i64>(row, name).map(|number| u64::try_from(number).unwrap_or(0));
    let failures: BTreeMap<String, u64> = serde_json::from_str(&column::<String>(row, "failures")?)
        .map_err(|error| bad("failures", error))?;
    let usage = ToolUsage {
        calls: count("calls")?,
        sent: count("sent")?,
        failures: failures
            .into_iter()
            .map(|(word, number)| (Cow::Owned(word), number))
            .collect(),
        total: Duration::from_micros(count("total")?),
        longest: Duration::from_micros(count("longest")?),
        first: parsed(row, "first")?,
        last: parsed(row, "last")?,
    };
    Ok((parsed(row, "tool")?, usage))
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn microseconds(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}
