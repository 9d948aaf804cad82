//! Rows that cannot be read: they are moved to the table `quarantine` with all their columns, and
//! are reported at each start until an operator deletes them there.
//!
//! Never changes a row that can be read.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, Transaction, params};
use serde_json::{Map, Value, json};

use super::schema::TableQuery;
use crate::model::text::hexadecimal;
use crate::model::{Finding, FindingCode};

/// The largest number of quarantined rows with their own finding; the rest share one.
const REPORTED: i64 = 100;

/// A row that cannot be read, with all its columns.
pub(super) struct UnreadableRow {
    pub(super) table: &'static str,
    rowid: i64,
    pub(super) key: String,
    content: Value,
    pub(super) reason: String,
}

impl UnreadableRow {
    /// A row with its number before the columns of its table.
    pub(super) fn new(
        table: &TableQuery,
        columns: &[String],
        row: &Row<'_>,
        reason: String,
    ) -> rusqlite::Result<Self> {
        let mut content = Map::new();
        for (index, column) in columns.iter().enumerate() {
            content.insert(column.clone(), as_json(row.get_ref(index + 1)?));
        }
        let key: Vec<String> = content
            .values()
            .take(table.key_columns)
            .map(plain)
            .collect();
        Ok(Self {
            table: table.name,
            rowid: row.get(0)?,
            key: key.join(" "),
            content: content.into(),
            reason,
        })
    }

    /// Moves it to the table `quarantine`.
    pub(super) fn move_aside(
        &self,
        transaction: &Transaction<'_>,
        now: Timestamp,
    ) -> rusqlite::Result<()> {
        transaction.execute(
            "INSERT INTO quarantine (table_name, key, content, reason, moved_at) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![self.table, self.key, self.content.to_string(), self.reason, now.to_string()],
        )?;
        transaction.execute(
            &format!("DELETE FROM {} WHERE rowid = ?1", self.table),
            [self.rowid],
        )?;
        Ok(())
    }

    /// What operators see of it while it cannot be moved.
    pub(super) fn finding_in_place(&self, place: &Path, error: &rusqlite::Error) -> Finding {
        let message = format!(
            "row `{}` of table `{}` in `{}` cannot be read ({}) and could not be moved to table `quarantine`: {error}",
            self.key,
            self.table,
            place.display(),
            self.reason
        );
        Finding::new(FindingCode::StateRepaired, message)
            .hint("it is left as it is; make the file writable and restart the daemon")
    }
}

/// A finding for each row in quarantine, oldest first.
pub(super) fn findings(connection: &Connection, place: &Path) -> rusqlite::Result<Vec<Finding>> {
    let place = place.display();
    let total: i64 =
        connection.query_row("SELECT count(*) FROM quarantine", [], |row| row.get(0))?;
    let mut statement = connection
        .prepare("SELECT id, table_name, key, reason FROM quarantine ORDER BY id LIMIT ?1")?;
    let rows = statement.query_map([REPORTED], |row| {
        let id: i64 = row.get(0)?;
        let table: String = row.get(1)?;
        let key: String = row.get(2)?;
        let reason: String = row.get(3)?;
        let message = format!(
            "row `{key}` of table `{table}` in `{place}` cannot be read ({reason}) and was moved to table `quarantine`"
        );
        Ok(Finding::new(FindingCode::StateRepaired, message).hint(format!(
            "look at it with `sqlite3 '{place}' 'SELECT * FROM quarantine WHERE id = {id}'`, make the change anew, then delete it there"
        )))
    })?;
    let mut findings = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    if total > REPORTED {
        let message = format!(
            "{} further rows are in table `quarantine` of `{place}`",
            total - REPORTED
        );
        findings.push(
            Finding::new(FindingCode::StateRepaired, message).hint(format!(
                "look at them with `sqlite3 '{place}' 'SELECT * FROM quarantine'`"
            )),
        );
    }
    Ok(findings)
}

/// A value in a form that can be put back: a value that is not UTF-8 is written as hexadecimal
/// digits.
fn as_json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => json!({ "text": hexadecimal(bytes) }),
        },
        ValueRef::Blob(bytes) => json!({ "blob": hexadecimal(bytes) }),
    }
}

/// A value as findings show it.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
