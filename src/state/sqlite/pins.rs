//! Rows of what was accepted of scenarios.

use rusqlite::{Row, Transaction, params};

use super::columns::{column, parsed};
use crate::model::ScenarioName;
use crate::state::StoredPins;

pub(super) fn put(
    transaction: &Transaction<'_>,
    pins: &StoredPins,
    now: &str,
) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO pins (scenario, document, updated_at) VALUES (?1, ?2, ?3)",
        )?
        .execute(params![pins.scenario.as_str(), &*pins.document, now])
}

pub(super) fn forget(
    transaction: &Transaction<'_>,
    scenario: &ScenarioName,
) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached("DELETE FROM pins WHERE scenario = ?1")?
        .execute([scenario.as_str()])
}

pub(super) fn from_row(row: &Row<'_>) -> Result<StoredPins, String> {
    let document: String = column(row, "document")?;
    Ok(StoredPins {
        scenario: parsed(row, "scenario")?,
        document: document.into(),
    })
}
