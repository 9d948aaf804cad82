//! Converts rows to values and back.
//!
//! A row that cannot be read is moved aside (`quarantine.rs`). Documents are stored as text and are
//! not parsed.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};

use super::columns::{bad, column, flag, parsed, party};
use super::quarantine::{self, UnreadableRow};
use super::schema::{self, TableQuery};
use super::{additions, calls, history, log, pins, usage};
use crate::model::{
    ParameterOverrides, PeerIdentity, PinMode, PreferenceAuthor, PreferenceTarget, PublishedName,
    ScenarioName, Scope, Secret, Settings,
};
use crate::runtime::Clock;
use crate::state::{Decision, Restored, StateLoss, StoredManifest, TrustDecision, Write};

/// Makes one change inside the caller's transaction.
pub(super) fn apply(
    transaction: &Transaction<'_>,
    write: &Write,
    now: Timestamp,
) -> rusqlite::Result<()> {
    let sql = |text| transaction.prepare_cached(text);
    let now = now.to_string();
    match write {
        Write::Manifest(manifest) => put_manifest(transaction, manifest),
        Write::Claim(scenario, party) => {
            sql("DELETE FROM manifests WHERE scenario = ?1")?.execute([scenario.as_str()])?;
            sql("INSERT OR REPLACE INTO claims (scenario, identity, origin, updated_at) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![scenario.as_str(), party.identity.as_deref(), party.origin.as_deref(), now])
        }
        Write::AnswerTimes(times) => put_answer_times(transaction, times),
        Write::ForgetManifest(scenario) => {
            sql("DELETE FROM claims WHERE scenario = ?1")?.execute([scenario.as_str()])?;
            sql("DELETE FROM manifests WHERE scenario = ?1")?.execute([scenario.as_str()])
        }
        Write::Preference(scope, target, settings, _) if settings.is_empty() => {
            sql("DELETE FROM preferences WHERE scope = ?1 AND target = ?2")?
                .execute([scope.to_string(), target.to_string()])
        }
        Write::Preference(scope, target, settings, author) => {
            put_preference(transaction, (scope, target), settings, *author, &now)
        }
        Write::Decision(scenario, None) => {
            sql("DELETE FROM decisions WHERE scenario = ?1")?.execute([scenario.as_str()])
        }
        Write::Decision(scenario, Some(ruling)) => {
            sql("INSERT OR REPLACE INTO decisions (scenario, decision, updated_at, identity, origin, source)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
            .execute(params![
                scenario.as_str(),
                decision_text(ruling.decision),
                now,
                ruling.party.identity.as_deref(),
                ruling.party.origin.as_deref(),
                ruling.source.as_deref(),
            ])
        }
        Write::Approval(approval) => calls::put_approval(transaction, approval),
        Write::ForgetApproval(id) => sql("DELETE FROM approvals WHERE id = ?1")?.execute([&**id]),
        Write::Operation(operation) => calls::put_operation(transaction, operation),
        Write::ForgetOperation(id) => sql("DELETE FROM operations WHERE id = ?1")?.execute([&**id]),
        Write::Turn(turn) => calls::put_turn(transaction, turn),
        Write::ForgetTurn(id, begun_at) => {
            sql("DELETE FROM turns WHERE id = ?1 AND begun_at = ?2")?.execute([&**id, &begun_at.to_string()])
        }
        Write::Usage(tool, usage) => usage::put(transaction, tool, usage),
        Write::TrimUsage(most) => usage::trim(transaction, *most),
        Write::History(stored) => history::put(transaction, stored),
        Write::TrimHistory(most) => history::trim(transaction, *most),
        Write::Pins(stored) => pins::put(transaction, stored, &now),
        Write::ForgetPins(scenario) => pins::forget(transaction, scenario),
        Write::Addition(stored) => additions::put(transaction, stored, &now),
        Write::ForgetAddition(kind, name) => additions::forget(transaction, *kind, name),
        Write::Log(rows) => log::put(transaction, rows),
        Write::TrimLog(kind, numbers) => log::trim(transaction, *kind, numbers),
        Write::ForgetLogPayloads => log::forget_payloads(transaction),
        Write::LogNumbers(numbers) => put_meta(transaction, "log-numbers", &log::numbers_text(*numbers), &now),
        Write::Revision(revision, since) => put_meta(transaction, "revision", revision, &since.to_string()),
        Write::ServerKey(key) => put_meta(transaction, "server-key", key.expose(), &now),
        Write::Login(scenario, login) => put_login(transaction, scenario, login.as_ref(), &now),
        Write::AcceptLoss => sql("DELETE FROM meta WHERE key = 'loss'")?.execute([]),
    }
    .map(drop)
}

fn put_preference(
    transaction: &Transaction<'_>,
    key: (&Scope, &PreferenceTarget),
    settings: &Settings,
    author: PreferenceAuthor,
    now: &str,
) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO preferences (scope, target, enabled, approval, alias, priority, pinned, updated_at, by_client, pins, description, parameters)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            key.0.to_string(),
            key.1.to_string(),
            settings.enabled,
            settings.approval.map(crate::model::ApprovalPolicy::as_str),
            settings.alias.as_ref().map(PublishedName::as_str),
            settings.priority,
            settings.pinned,
            now,
            author == PreferenceAuthor::Client,
            settings.pins.map(PinMode::as_str),
            settings.description.as_deref(),
            settings
                .parameters
                .as_ref()
                .map(|parameters| parameters.to_json().to_string()),
        ])
}

fn put_login(
    transaction: &Transaction<'_>,
    scenario: &ScenarioName,
    login: Option<&Secret>,
    now: &str,
) -> rusqlite::Result<usize> {
    let key = format!("{LOGIN}{scenario}");
    match login {
        Some(login) => put_meta(transaction, &key, login.expose(), now),
        None => transaction
            .prepare_cached("DELETE FROM meta WHERE key = ?1")?
            .execute([key]),
    }
}

fn put_meta(
    transaction: &Transaction<'_>,
    key: &str,
    value: &str,
    at: &str,
) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached("INSERT OR REPLACE INTO meta (key, value, updated_at) VALUES (?1, ?2, ?3)")?
        .execute([key, value, at])
}

fn put_manifest(
    transaction: &Transaction<'_>,
    manifest: &StoredManifest,
) -> rusqlite::Result<usize> {
    transaction
        .prepare_cached("DELETE FROM claims WHERE scenario = ?1")?
        .execute([manifest.scenario.as_str()])?;
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO manifests
             (scenario, url, source, trusted, protocol, document, received_at, quarantined, identity, origin, validators)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        )?
        .execute(params![
            manifest.scenario.as_str(),
            manifest.url,
            &*manifest.source,
            manifest.trusted,
            manifest.protocol,
            &*manifest.document,
            manifest.received_at.to_string(),
            i64::try_from(manifest.quarantined).unwrap_or(i64::MAX),
            manifest.party.identity.as_deref(),
            manifest.party.origin.as_deref(),
            manifest.validators.as_deref(),
        ])
}

fn put_answer_times(
    transaction: &Transaction<'_>,
    times: &[(ScenarioName, Timestamp)],
) -> rusqlite::Result<usize> {
    let mut statement =
        transaction.prepare_cached("UPDATE manifests SET received_at = ?2 WHERE scenario = ?1")?;
    let mut changed = 0;
    for time in times {
        changed += statement.execute([time.0.as_str(), &time.1.to_string()])?;
    }
    Ok(changed)
}

/// Reads everything; unreadable rows are moved to `quarantine`.
pub(super) fn load(
    connection: &mut Connection,
    place: &Path,
    clock: Clock,
) -> rusqlite::Result<Restored> {
    let mut torn = Vec::new();
    let mut restored = Restored {
        manifests: read(connection, &MANIFESTS, manifest, &mut torn)?,
        decisions: read(connection, &DECISIONS, decision, &mut torn)?,
        claims: read(connection, &CLAIMS, claim, &mut torn)?,
        logins: read(connection, &LOGINS, login, &mut torn)?,
        approvals: read(connection, &APPROVALS, calls::approval, &mut torn)?,
        operations: read(connection, &OPERATIONS, calls::operation, &mut torn)?,
        turns: read(connection, &TURNS, calls::turn, &mut torn)?,
        usage: read(connection, &USAGE, usage::from_row, &mut torn)?,
        histories: read(connection, &HISTORIES, history::from_row, &mut torn)?,
        pins: read(connection, &PINS, pins::from_row, &mut torn)?,
        additions: read(connection, &ADDITIONS, additions::from_row, &mut torn)?,
        log: read(connection, &LOG, log::from_row, &mut torn)?,
        earlier_log: read(connection, &LOG_NUMBERS, log::earlier_from_row, &mut torn)?.pop(),
        revision: read(connection, &REVISION, revision, &mut torn)?.pop(),
        server_key: read(connection, &SERVER_KEY, server_key, &mut torn)?.pop(),
        loss: read(connection, &LOSS, loss, &mut torn)?.pop(),
        ..Restored::default()
    };
    for stored in read(connection, &PREFERENCES, preference, &mut torn)? {
        let StoredPreference {
            scope,
            target,
            settings,
            author,
        } = stored;
        if author == PreferenceAuthor::Client {
            restored
                .client_preferences
                .push((scope.clone(), target.clone()));
        }
        restored.preferences.set(scope, target, settings);
    }
    let now = clock.wall();
    restored.loss = restored.loss.or_else(|| lost_decisions(&torn, place, now));
    if let Err(error) = move_aside(connection, &torn, restored.loss.as_ref(), now) {
        // They stay where they are and are tried again at the next start; all other rows are used.
        restored
            .findings
            .extend(torn.iter().map(|row| row.finding_in_place(place, &error)));
    }
    restored
        .findings
        .extend(quarantine::findings(connection, place)?);
    Ok(restored)
}

const MANIFESTS: TableQuery = TableQuery {
    name: "manifests",
    key_columns: 1,
    filter: "ORDER BY scenario",
};
/// A row that is written again gets a new number, so they come in the order in which they were
/// written.
const PREFERENCES: TableQuery = TableQuery {
    name: "preferences",
    key_columns: 2,
    filter: "ORDER BY rowid",
};
const DECISIONS: TableQuery = TableQuery {
    name: "decisions",
    key_columns: 1,
    filter: "ORDER BY scenario",
};
const CLAIMS: TableQuery = TableQuery {
    name: "claims",
    key_columns: 1,
    filter: "ORDER BY scenario",
};
const LOGINS: TableQuery = TableQuery {
    name: "meta",
    key_columns: 1,
    filter: "WHERE key GLOB 'login:*' ORDER BY key",
};
/// What keys of logins begin with.
const LOGIN: &str = "login:";
const APPROVALS: TableQuery = TableQuery {
    name: "approvals",
    key_columns: 1,
    filter: "ORDER BY rowid",
};
const OPERATIONS: TableQuery = TableQuery {
    name: "operations",
    key_columns: 1,
    filter: "ORDER BY rowid",
};
const TURNS: TableQuery = TableQuery {
    name: "turns",
    key_columns: 1,
    filter: "ORDER BY rowid",
};
const USAGE: TableQuery = TableQuery {
    name: "usage",
    key_columns: 1,
    filter: "ORDER BY last DESC",
};
const HISTORIES: TableQuery = TableQuery {
    name: "histories",
    key_columns: 1,
    filter: "ORDER BY changed_at DESC",
};
const ADDITIONS: TableQuery = TableQuery {
    name: "additions",
    key_columns: 2,
    filter: "ORDER BY kind, name",
};
const PINS: TableQuery = TableQuery {
    name: "pins",
    key_columns: 1,
    filter: "ORDER BY scenario",
};
const LOG: TableQuery = TableQuery {
    name: "log",
    key_columns: 1,
    filter: "ORDER BY number",
};
const LOG_NUMBERS: TableQuery = TableQuery {
    name: "meta",
    key_columns: 1,
    filter: "WHERE key = 'log-numbers'",
};
const REVISION: TableQuery = TableQuery {
    name: "meta",
    key_columns: 1,
    filter: "WHERE key = 'revision'",
};
const SERVER_KEY: TableQuery = TableQuery {
    name: "meta",
    key_columns: 1,
    filter: "WHERE key = 'server-key'",
};

const LOSS: TableQuery = TableQuery {
    name: "meta",
    key_columns: 1,
    filter: "WHERE key = 'loss'",
};

/// Notes that something was lost, until an operator accepts it.
pub(super) fn note_loss(
    transaction: &Transaction<'_>,
    loss: &StateLoss,
) -> rusqlite::Result<usize> {
    put_meta(transaction, "loss", &loss.what, &loss.at.to_string())
}

/// Moves rows that cannot be read aside, and keeps the loss until an operator accepts it.
fn move_aside(
    connection: &mut Connection,
    torn: &[UnreadableRow],
    loss: Option<&StateLoss>,
    now: Timestamp,
) -> rusqlite::Result<()> {
    if torn.is_empty() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Some(loss) = loss {
        note_loss(&transaction, loss)?;
    }
    for row in torn {
        row.move_aside(&transaction, now)?;
    }
    transaction.commit()
}

fn read<T>(
    connection: &Connection,
    table: &TableQuery,
    decode: fn(&Row<'_>) -> Result<T, String>,
    torn: &mut Vec<UnreadableRow>,
) -> rusqlite::Result<Vec<T>> {
    // A file that cannot be written may be older than this table.
    let known = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    if connection.query_row(known, [table.name], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(Vec::new());
    }
    let columns = schema::column_names(connection, table.name)?;
    let mut statement = connection.prepare(&format!(
        "SELECT rowid, * FROM {} {}",
        table.name, table.filter
    ))?;
    let mut rows = statement.query([])?;
    let mut values = Vec::new();
    while let Some(row) = rows.next()? {
        match decode(row) {
            Ok(value) => values.push(value),
            Err(reason) => {
                torn.push(UnreadableRow::new(table, &columns, row, reason)?);
            }
        }
    }
    Ok(values)
}

/// What operators decided and cannot be read: without it, a tool could run that they disabled or
/// blocked, or that needs an approval.
fn lost_decisions(torn: &[UnreadableRow], place: &Path, now: Timestamp) -> Option<StateLoss> {
    let decided = [
        PREFERENCES.name,
        DECISIONS.name,
        PINS.name,
        // The bounds of a profile.
        ADDITIONS.name,
    ];
    let mut lost = torn.iter().filter(|row| decided.contains(&row.table));
    let first = lost.next()?;
    let others = match lost.count() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let what = format!(
        "row `{}` of table `{}`{others} in `{}` cannot be read ({})",
        first.key,
        first.table,
        place.display(),
        first.reason
    );
    Some(StateLoss { what, at: now })
}

fn manifest(row: &Row<'_>) -> Result<StoredManifest, String> {
    // A file that cannot be written may be older than this column.
    let has_validators = row.as_ref().column_index("validators").is_ok();
    let validators: Option<String> = if has_validators {
        column(row, "validators")?
    } else {
        None
    };
    Ok(StoredManifest {
        scenario: parsed(row, "scenario")?,
        url: column(row, "url")?,
        source: column::<String>(row, "source")?.into(),
        party: party(row)?,
        trusted: flag(column(row, "trusted")?, "trusted")?,
        protocol: column(row, "protocol")?,
        document: column(row, "document")?,
        received_at: parsed(row, "received_at")?,
        quarantined: count(column(row, "quarantined")?, "quarantined")?,
        validators: validators.map(Into::into),
    })
}

/// A stored preference.
pub(super) struct StoredPreference {
    pub(super) scope: Scope,
    pub(super) target: PreferenceTarget,
    pub(super) settings: Settings,
    pub(super) author: PreferenceAuthor,
}

pub(super) fn preference(row: &Row<'_>) -> Result<StoredPreference, String> {
    let enabled: Option<i64> = column(row, "enabled")?;
    let approval: Option<String> = column(row, "approval")?;
    let alias: Option<String> = column(row, "alias")?;
    // A file that cannot be written may be older than these columns.
    let has_pins = row.as_ref().column_index("pinned").is_ok();
    let pinned: Option<i64> = if has_pins {
        column(row, "pinned")?
    } else {
        None
    };
    let has_pin_modes = row.as_ref().column_index("pins").is_ok();
    let pins: Option<String> = if has_pin_modes {
        column(row, "pins")?
    } else {
        None
    };
    let has_overrides = row.as_ref().column_index("parameters").is_ok();
    let description: Option<String> = if has_overrides {
        column(row, "description")?
    } else {
        None
    };
    let parameters: Option<String> = if has_overrides {
        column(row, "parameters")?
    } else {
        None
    };
    let settings = Settings {
        enabled: enabled.map(|value| flag(value, "enabled")).transpose()?,
        approval: approval
            .map(|text| text.parse())
            .transpose()
            .map_err(|error| bad("approval", error))?,
        alias: alias
            .map(|text| PublishedName::alias(&text))
            .transpose()
            .map_err(|error| bad("alias", error))?,
        priority: column(row, "priority")?,
        pinned: pinned.map(|value| flag(value, "pinned")).transpose()?,
        pins: pins
            .map(|text| text.parse())
            .transpose()
            .map_err(|error| bad("pins", error))?,
        description: description.map(Into::into),
        parameters: parameters
            .map(|text| ParameterOverrides::parse(&text))
            .transpose()
            .map_err(|error| bad("parameters", error))?,
    };
    let has_authors = row.as_ref().column_index("by_client").is_ok();
    let is_clients = has_authors && flag(column(row, "by_client")?, "by_client")?;
    let author = if is_clients {
        PreferenceAuthor::Client
    } else {
        PreferenceAuthor::Operator
    };
    Ok(StoredPreference {
        scope: parsed(row, "scope")?,
        target: parsed(row, "target")?,
        settings,
        author,
    })
}

pub(super) fn decision(row: &Row<'_>) -> Result<(ScenarioName, TrustDecision), String> {
    let text: String = column(row, "decision")?;
    let decision = [Decision::Trusted, Decision::Blocked]
        .into_iter()
        .find(|known| decision_text(*known) == text);
    let source = column::<Option<String>>(row, "source")?.map(Into::into);
    let decision = decision.ok_or_else(|| {
        bad(
            "decision",
            format!("`{text}` is neither `trusted` nor `blocked`"),
        )
    })?;
    Ok((
        parsed(row, "scenario")?,
        TrustDecision {
            decision,
            party: party(row)?,
            source,
        },
    ))
}

fn claim(row: &Row<'_>) -> Result<(ScenarioName, PeerIdentity), String> {
    Ok((parsed(row, "scenario")?, party(row)?))
}

fn decision_text(decision: Decision) -> &'static str {
    match decision {
        Decision::Trusted => "trusted",
        Decision::Blocked => "blocked",
    }
}

fn loss(row: &Row<'_>) -> Result<StateLoss, String> {
    Ok(StateLoss {
        what: column(row, "value")?,
        at: parsed(row, "updated_at")?,
    })
}

fn revision(row: &Row<'_>) -> Result<(String, Timestamp), String> {
    Ok((column(row, "value")?, parsed(row, "updated_at")?))
}

fn login(row: &Row<'_>) -> Result<(ScenarioName, Secret), String> {
    let key = column::<String>(row, "key")?;
    let name = key
        .strip_prefix(LOGIN)
        .unwrap_or(&key)
        .parse()
        .map_err(|error| bad("key", error))?;
    Ok((name, Secret::new(column::<String>(row, "value")?)))
}

fn server_key(row: &Row<'_>) -> Result<Secret, String> {
    column::<String>(row, "value").map(Secret::new)
}

fn count(value: i64, name: &str) -> Result<usize, String> {
    usize::try_from(value).map_err(|_| bad(name, format!("`{value}` is not a count")))
}
