//! Takes from a damaged file what can still be read of what operators decided: preferences, trust
//! and blocks, and the definitions that were accepted. Changes nothing in the damaged file.
//!
//! A table is read from its beginning until a page cannot be read, and then from its end, so that
//! one bad page costs the rows on it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, Row, TransactionBehavior};

use super::failure::{OPEN, failed};
use super::file::{Damage, has_log};
use super::{additions, pins, read_only, rows};
use crate::model::{Finding, FindingCode};
use crate::state::{PREFERENCES_MAX, StateError, StateLoss, Write};

/// The most rows that are read of one table. More than are kept of any.
const TABLE_ROWS_MAX: usize = 2 * PREFERENCES_MAX;

/// The readable rows of a damaged file, as changes of an empty one.
#[derive(Debug, Default)]
struct Salvaged {
    preferences: Vec<Write>,
    decisions: Vec<Write>,
    pins: Vec<Write>,
    additions: Vec<Write>,
}

/// Takes over what can be read of the damaged file into the one in its place, at `path`. Returns
/// the finding that says so.
pub(super) fn take_over(
    connection: &mut Connection,
    path: &Path,
    damage: &Damage,
    now: Timestamp,
) -> Result<Finding, StateError> {
    let aside = damage.aside.display();
    let salvaged = read(&damage.aside);
    let what = format!(
        "the stored state in `{}` was damaged ({}) and is now `{aside}`; a fresh one took its place; of what operators \
         decided, {} preferences, {} decisions about scenarios, what was accepted of {} scenarios and {} added profiles and definitions could be read and were kept",
        path.display(),
        damage.what,
        salvaged.preferences.len(),
        salvaged.decisions.len(),
        salvaged.pins.len(),
        salvaged.additions.len()
    );
    let stored = salvaged.store(
        connection,
        &StateLoss {
            what: what.clone(),
            at: now,
        },
    );
    stored.map_err(|error| failed(OPEN, path, &error))?;
    Ok(Finding::new(FindingCode::StateRepaired, what).hint(format!(
        "save what can be read with `sqlite3 '{aside}' .recover`, or stop the daemon, put a backup at the old place and start again"
    )))
}

/// Reads what can be read in the damaged file at `path`.
fn read(path: &Path) -> Salvaged {
    // SQLite deletes the log of a database that is empty.
    if fs::metadata(path).map_or(true, |file| file.len() == 0 || file.is_dir()) {
        return Salvaged::default();
    }
    let ways = if has_log(path) {
        &[read_only::WITH_LOG, read_only::WITHOUT_LOG][..]
    } else {
        &[read_only::WITHOUT_LOG]
    };
    let all = |connection: &Connection| Salvaged {
        preferences: table(connection, "preferences", |row| {
            let rows::StoredPreference {
                scope,
                target,
                settings,
                author,
            } = rows::preference(row)?;
            Ok(Write::Preference(scope, target, settings, author))
        }),
        decisions: table(connection, "decisions", |row| {
            let (scenario, decision) = rows::decision(row)?;
            Ok(Write::Decision(scenario, Some(decision)))
        }),
        pins: table(connection, "pins", |row| {
            Ok(Write::Pins(pins::from_row(row)?))
        }),
        additions: table(connection, "additions", |row| {
            Ok(Write::Addition(additions::from_row(row)?))
        }),
    };
    let read = ways
        .iter()
        .filter_map(|way| read_only::connect(path, way).ok())
        .map(|connection| all(&connection));
    read.max_by_key(Salvaged::rows).unwrap_or_default()
}

/// The readable rows of one table, in the order of their numbers.
fn table(
    connection: &Connection,
    name: &str,
    decode: impl Fn(&Row<'_>) -> Result<Write, String>,
) -> Vec<Write> {
    let mut found = BTreeMap::new();
    for order in ["ASC", "DESC"] {
        let sql = format!(
            "SELECT rowid, * FROM {name} NOT INDEXED ORDER BY rowid {order} LIMIT {TABLE_ROWS_MAX}"
        );
        let Ok(mut statement) = connection.prepare(&sql) else {
            continue;
        };
        let Ok(mut rows) = statement.query([]) else {
            continue;
        };
        // It ends at the end of the table, or at the first page that cannot be read.
        while let Ok(Some(row)) = rows.next() {
            if let (Ok(number), Ok(write)) = (row.get::<_, i64>(0), decode(row)) {
                found.entry(number).or_insert(write);
            }
        }
    }
    found.into_values().take(TABLE_ROWS_MAX).collect()
}

impl Salvaged {
    fn rows(&self) -> usize {
        [
            &self.preferences,
            &self.decisions,
            &self.pins,
            &self.additions,
        ]
        .iter()
        .map(|writes| writes.len())
        .sum()
    }

    /// Stores it in the file that takes the place of the damaged one, and notes the loss there.
    fn store(self, connection: &mut Connection, loss: &StateLoss) -> rusqlite::Result<()> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let writes = self.preferences.iter().chain(&self.decisions);
        for write in writes.chain(&self.pins).chain(&self.additions) {
            rows::apply(&transaction, write, loss.at)?;
        }
        rows::note_loss(&transaction, loss)?;
        transaction.commit()
    }
}
