//! Rows of histories of tools' definitions.

use rusqlite::{Row, Transaction, params};

use super::columns::{column, parsed};
use crate::state::StoredHistory;

pub(super) fn put(
    transaction: &Transaction<'_>,
    history: &StoredHistory,
) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO histories (tool, changed_at, document) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![
            history.tool.to_string(),
            history.changed_at.to_string(),
            &*history.document
        ])
}

/// Deletes all but `most` rows, those that changed last; returns how many were deleted.
pub(super) fn trim(transaction: &Transaction<'_>, most: usize) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached(
            "DELETE FROM histories WHERE tool NOT IN (SELECT tool FROM histories ORDER BY changed_at DESC LIMIT ?1)",
        )?
        .execute([i64::try_from(most).unwrap_or(i64::MAX)])
}

pub(super) fn from_row(row: &Row<'_>) -> Result<StoredHistory, String> {
    let document: String = column(row, "document")?;
    Ok(StoredHistory {
        tool: parsed(row, "tool")?,
        changed_at: parsed(row, "changed_at")?,
        document: document.into(),
    })
}
