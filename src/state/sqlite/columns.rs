//! Columns of a row as values; each error names its column.

use std::fmt::Display;
use std::str::FromStr;

use rusqlite::Row;
use rusqlite::types::FromSql;

use crate::model::PeerIdentity;

pub(super) fn party(row: &Row<'_>) -> Result<PeerIdentity, String> {
    let text = |name| column::<Option<String>>(row, name);
    Ok(PeerIdentity {
        identity: text("identity")?.map(Into::into),
        origin: text("origin")?.map(Into::into),
    })
}

pub(super) fn flag(value: i64, name: &str) -> Result<bool, String> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(bad(name, format!("`{value}` is neither 0 nor 1"))),
    }
}

pub(super) fn column<T: FromSql>(row: &Row<'_>, name: &str) -> Result<T, String> {
    row.get(name).map_err(|error| bad(name, error))
}

pub(super) fn parsed<T: FromStr<Err: Display>>(row: &Row<'_>, name: &str) -> Result<T, String> {
    column::<String>(row, name)?
        .parse()
        .map_err(|error| bad(name, error))
}

pub(super) fn bad(name: &str, reason: impl Display) -> String {
    format!("column `{name}`: {reason}")
}
