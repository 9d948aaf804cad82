//! Rows of what operators added besides the configuration.

use rusqlite::{Row, Transaction, params};

use super::columns::{column, parsed};
use crate::model::AdditionKind;
use crate::state::StoredAddition;

pub(super) fn put(
    transaction: &Transaction<'_>,
    addition: &StoredAddition,
    now: &str,
) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO additions (kind, name, document, updated_at) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![
            addition.kind.as_str(),
            addition.name,
            &*addition.document,
            now
        ])
}

pub(super) fn forget(
    transaction: &Transaction<'_>,
    kind: AdditionKind,
    name: &str,
) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached("DELETE FROM additions WHERE kind = ?1 AND name = ?2")?
        .execute([kind.as_str(), name])
}

pub(super) fn from_row(row: &Row<'_>) -> Result<StoredAddition, String> {
    let document: String = column(row, "document")?;
    Ok(StoredAddition {
        kind: parsed(row, "kind")?,
        name: column(row, "name")?,
        document: document.into(),
    })
}
