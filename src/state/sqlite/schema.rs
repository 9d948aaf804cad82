//! The tables, and the migration of an older file to the current version.
//!
//! Values are texts as operators write them (`global`, `tool:files/read`, `require`, RFC 3339
//! times); booleans are 0 and 1; NULL in a preference means that it is inherited.

use std::collections::BTreeSet;

use rusqlite::{Connection, TransactionBehavior};

/// Marks a file as callsheet's in its header (`PRAGMA application_id`): the letters `cshT`.
const APPLICATION: i32 = 0x6373_6854;

/// The steps from one version to the next. The version of a file (`PRAGMA user_version`) is the
/// number of steps it has seen, so new steps are only added at the end.
const STEPS: &[&str] = &["
    CREATE TABLE meta (
        key        TEXT NOT NULL PRIMARY KEY,
        value      TEXT NOT NULL,
        updated_at TEXT NOT NULL
    ) STRICT;
    CREATE TABLE manifests (
        scenario    TEXT NOT NULL PRIMARY KEY,
        url         TEXT NOT NULL,
        source      TEXT NOT NULL,
        trusted     INTEGER NOT NULL,
        protocol    TEXT NOT NULL,
        document    TEXT NOT NULL,
        received_at TEXT NOT NULL,
        quarantined INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE preferences (
        scope      TEXT NOT NULL,
        target     TEXT NOT NULL,
        enabled    INTEGER,
        approval   TEXT,
        alias      TEXT,
        priority   INTEGER,
        updated_at TEXT NOT NULL,
        PRIMARY KEY (scope, target)
    ) STRICT;
    CREATE TABLE decisions (
        scenario   TEXT NOT NULL PRIMARY KEY,
        decision   TEXT NOT NULL,
        updated_at TEXT NOT NULL
    ) STRICT;
    CREATE TABLE quarantine (
        id         INTEGER PRIMARY KEY,
        table_name TEXT NOT NULL,
        key        TEXT NOT NULL,
        content    TEXT NOT NULL,
        reason     TEXT NOT NULL,
        moved_at   TEXT NOT NULL
    ) STRICT;
", "
    -- Whom a decision was taken for. Rows from before know the name alone: a block holds by name, a yes counts for nobody any more.
    ALTER TABLE decisions ADD COLUMN identity TEXT;
    ALTER TABLE decisions ADD COLUMN origin TEXT;
    ALTER TABLE decisions ADD COLUMN source TEXT;
    ALTER TABLE manifests ADD COLUMN identity TEXT;
    ALTER TABLE manifests ADD COLUMN origin TEXT;
    CREATE TABLE claims (
        scenario   TEXT NOT NULL PRIMARY KEY,
        identity   TEXT,
        origin     TEXT,
        updated_at TEXT NOT NULL
    ) STRICT;
", "
    -- A later step drops this column again.
    ALTER TABLE manifests ADD COLUMN outline BLOB;
", "
    ALTER TABLE preferences ADD COLUMN pinned INTEGER;
", "
    -- Calls that need approval. `state` is durable before anything is sent: what is `started` when a daemon starts is not run again.
    CREATE TABLE approvals (
        id         TEXT NOT NULL PRIMARY KEY,
        tool       TEXT NOT NULL,
        name       TEXT NOT NULL,
        arguments  TEXT NOT NULL,
        chat       TEXT,
        profile    TEXT,
        user_id    TEXT,
        identity   TEXT,
        origin     TEXT,
        definition TEXT NOT NULL,
        digest     TEXT NOT NULL,
        idempotent INTEGER NOT NULL,
        asked_at   TEXT NOT NULL,
        expires_at TEXT NOT NULL,
        state      TEXT NOT NULL,
        decided_by TEXT,
        decided_at TEXT,
        reason     TEXT,
        ended_at   TEXT,
        success    INTEGER,
        result     TEXT,
        error      TEXT,
        code       TEXT,
        took_ms    INTEGER,
        operation  TEXT
    ) STRICT;
    CREATE TABLE operations (
        id               TEXT NOT NULL PRIMARY KEY,
        tool             TEXT NOT NULL,
        chat             TEXT,
        profile          TEXT,
        user_id          TEXT,
        identity         TEXT,
        origin           TEXT,
        behaviour        TEXT NOT NULL,
        reference        TEXT NOT NULL,
        state            TEXT NOT NULL,
        started_at       TEXT NOT NULL,
        deadline_at      TEXT NOT NULL,
        cancelling_since TEXT,
        ended_at         TEXT,
        status           TEXT,
        note             TEXT,
        result           TEXT,
        error            TEXT
    ) STRICT;
", "
    -- What was counted of tools. `failures` is an object of numbers by their words; durations are microseconds.
    CREATE TABLE usage (
        tool     TEXT NOT NULL PRIMARY KEY,
        calls    INTEGER NOT NULL,
        sent     INTEGER NOT NULL,
        failures TEXT NOT NULL,
        total    INTEGER NOT NULL,
        longest  INTEGER NOT NULL,
        first    TEXT NOT NULL,
        last     TEXT NOT NULL
    ) STRICT;
", "
    -- This step named what is stored, by triggers that the next step drops.
", "
    DROP TRIGGER IF EXISTS manifests_added;
    DROP TRIGGER IF EXISTS manifests_changed;
    DROP TRIGGER IF EXISTS manifests_removed;
    DROP TRIGGER IF EXISTS preferences_added;
    DROP TRIGGER IF EXISTS preferences_changed;
    DROP TRIGGER IF EXISTS preferences_removed;
    DROP TRIGGER IF EXISTS decisions_added;
    DROP TRIGGER IF EXISTS decisions_changed;
    DROP TRIGGER IF EXISTS decisions_removed;
    DELETE FROM meta WHERE key = 'content';
", "
    ALTER TABLE manifests DROP COLUMN outline;
", "
    -- What the protocol of a scenario wants to have back with the next request.
    ALTER TABLE manifests ADD COLUMN validators TEXT;
", "
    -- Turns: the tool calls of one response of a model. `document` has the calls with their outcomes. It is durable before the first call is sent.
    CREATE TABLE turns (
        id       TEXT NOT NULL PRIMARY KEY,
        owner    TEXT NOT NULL,
        digest   TEXT NOT NULL,
        format   TEXT NOT NULL,
        begun_at TEXT NOT NULL,
        document TEXT NOT NULL
    ) STRICT;
", "
    -- Calls that are over and changes of states. `number` gives the order, since a clock may be set back.
    CREATE TABLE log (
        number   INTEGER NOT NULL PRIMARY KEY,
        kind     TEXT NOT NULL,
        document TEXT NOT NULL
    ) STRICT;
", "
    -- The access that a call was requested with. Rows from before belong to every access.
    ALTER TABLE approvals ADD COLUMN access TEXT;
", "
    -- Whether a client without the right made it. Of earlier rows this is not known: in the scope of a chat, what needed no right counts as a client's.
    ALTER TABLE preferences ADD COLUMN by_client INTEGER NOT NULL DEFAULT 0;
    UPDATE preferences SET by_client = 1
        WHERE scope GLOB 'chat:*' AND enabled IS NOT 1 AND approval IS NOT 'skip' AND alias IS NULL;
", "
    -- The client that a call was requested by. Of earlier rows it is not known.
    ALTER TABLE approvals ADD COLUMN client TEXT;
", "
    -- The access of the call that began an operation. Rows from before belong to every access.
    ALTER TABLE operations ADD COLUMN access TEXT;
", "
    -- How the definitions of tools changed. `document` is an array of changes, the oldest first.
    CREATE TABLE histories (
        tool       TEXT NOT NULL PRIMARY KEY,
        changed_at TEXT NOT NULL,
        document   TEXT NOT NULL
    ) STRICT;
", "
    -- The definition that was called and its version, if the tool is its activity and the call named a version.
    ALTER TABLE approvals ADD COLUMN called TEXT;
    ALTER TABLE approvals ADD COLUMN called_version TEXT;
", "
    -- What was accepted of scenarios: versions of definitions, and texts of those that differ. `document` is one JSON object.
    CREATE TABLE pins (
        scenario   TEXT NOT NULL PRIMARY KEY,
        document   TEXT NOT NULL,
        updated_at TEXT NOT NULL
    ) STRICT;
    ALTER TABLE preferences ADD COLUMN pins TEXT;
", "
    -- What operators added while the daemon ran, besides the configuration. `kind` is `profile` or `definition`, `document` one JSON object.
    CREATE TABLE additions (
        kind       TEXT NOT NULL,
        name       TEXT NOT NULL,
        document   TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        PRIMARY KEY (kind, name)
    ) STRICT;
    -- The level that the caller of a call said it had.
    ALTER TABLE approvals ADD COLUMN permission TEXT;
", "
    -- What operators put in place of parts of a tool. `parameters` is one JSON object.
    ALTER TABLE preferences ADD COLUMN description TEXT;
    ALTER TABLE preferences ADD COLUMN parameters TEXT;
"];

/// The owner of a file, according to its header and tables.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FileOwner {
    /// The file is callsheet's or empty: it can be used once [`migrate`] has run.
    Us,
    /// The file belongs to a newer callsheet; holds its version.
    NewerVersion(i64),
    /// Another program's database.
    Stranger,
}

/// A table as it is read: how many of its first columns identify a row for operators, and
/// which rows are read.
pub(super) struct TableQuery {
    pub(super) name: &'static str,
    pub(super) key_columns: usize,
    pub(super) filter: &'static str,
}

/// The version that this program writes.
pub(super) fn current() -> i64 {
    i64::try_from(STEPS.len()).unwrap_or(i64::MAX)
}

/// Reads the owner of the file. Changes no data.
pub(super) fn owner(connection: &Connection) -> rusqlite::Result<FileOwner> {
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let application = number("application_id")?;
    let version = number("user_version")?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(if application == 0 && version == 0 && tables == 0 {
        FileOwner::Us
    } else if application != i64::from(APPLICATION) || version < 0 {
        FileOwner::Stranger
    } else if version > current() {
        FileOwner::NewerVersion(version)
    } else {
        FileOwner::Us
    })
}

/// The names of the columns of a table, in their order. Bytes that are no UTF-8 are replaced: a
/// damaged schema may have any.
pub(super) fn column_names(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement =
        connection.prepare("SELECT name FROM pragma_table_info(?1) ORDER BY cid")?;
    let names = statement.query_map([table], |row| {
        let name = row.get_ref(0)?;
        Ok(String::from_utf8_lossy(name.as_bytes().unwrap_or_default()).into_owned())
    })?;
    names.collect()
}

/// The first table, or column of a table, that the current version has and this file has not: its
/// schema is damaged.
pub(super) fn missing_part(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let mut sound = Connection::open_in_memory()?;
    migrate(&mut sound)?;
    let mut tables =
        sound.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
    let tables: Vec<String> = tables
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for table in tables {
        let found: BTreeSet<String> = column_names(connection, &table)?.into_iter().collect();
        if let Some(column) = column_names(&sound, &table)?
            .into_iter()
            .find(|column| !found.contains(column))
        {
            return Ok(Some(format!(
                "the table `{table}` has no column `{column}`"
            )));
        }
    }
    Ok(None)
}

/// Migrates the file to the current version, in all steps or none. Returns whether its version was
/// older.
pub(super) fn migrate(connection: &mut Connection) -> rusqlite::Result<bool> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version == current() {
        return Ok(false);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for step in STEPS.iter().skip(usize::try_from(version).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", current())?;
    transaction.commit()?;
    Ok(true)
}
