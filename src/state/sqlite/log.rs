//! Rows of the log of calls and states.

use std::ops::Range;

use rusqlite::{Row, Transaction, params};

use super::columns::{bad, column, parsed};
use crate::state::{EarlierLog, LogKind, LogNumbers, LogRow};

/// Stores lines; a line of the same number is replaced.
pub(super) fn put(transaction: &Transaction<'_>, rows: &[LogRow]) -> rusqlite::Result<usize> {
    let mut statement = transaction.prepare_cached(
        "INSERT OR REPLACE INTO log (number, kind, document) VALUES (?1, ?2, ?3)",
    )?;
    let mut stored = 0;
    for row in rows {
        stored += statement.execute(params![
            signed(row.number),
            row.kind.as_str(),
            &*row.document
        ])?;
    }
    Ok(stored)
}

/// Deletes the lines of a kind with these numbers; returns how many were deleted.
pub(super) fn trim(
    transaction: &Transaction<'_>,
    kind: LogKind,
    numbers: &Range<u64>,
) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached("DELETE FROM log WHERE number >= ?1 AND number < ?2 AND kind = ?3")?
        .execute(params![
            signed(numbers.start),
            signed(numbers.end),
            kind.as_str()
        ])
}

/// Deletes the member `payload` of calls; returns how many had one.
pub(super) fn forget_payloads(transaction: &Transaction<'_>) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached(
            "UPDATE log SET document = json_remove(document, '$.payload')
             WHERE kind = 'call' AND json_valid(document) AND json_type(document, '$.payload') IS NOT NULL",
        )?
        .execute([])
}

pub(super) fn from_row(row: &Row<'_>) -> Result<LogRow, String> {
    let number: i64 = column(row, "number")?;
    let document: String = column(row, "document")?;
    Ok(LogRow {
        number: u64::try_from(number).map_err(|_| format!("`number` is {number}"))?,
        kind: parsed(row, "kind")?,
        document: document.into(),
    })
}

/// The stored form of the numbers: that of lines, a space, and that of calls.
pub(super) fn numbers_text(numbers: LogNumbers) -> String {
    format!("{} {}", numbers.line, numbers.call)
}

pub(super) fn earlier_from_row(row: &Row<'_>) -> Result<EarlierLog, String> {
    let text: String = column(row, "value")?;
    let number = |text: &str| text.parse().map_err(|error| bad("value", error));
    let (line, call) = text
        .split_once(' ')
        .ok_or_else(|| bad("value", format!("`{text}` is not two numbers")))?;
    let numbers = LogNumbers {
        line: number(line)?,
        call: number(call)?,
    };
    Ok(EarlierLog {
        numbers,
        written: parsed(row, "updated_at")?,
    })
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
