//! The name of every field in the log and in traces. Each name has one meaning everywhere, and
//! programs that read the JSON lines may rely on it.
//!
//! The names are a list here and not constants used by the code, because the macros of `tracing`
//! take names as tokens; `tests/log_fields.rs` reads the code and checks that both agree. No field
//! may hold a secret, a body or a query; addresses are logged without credentials.

/// Each field with what it holds, in order.
pub const FIELDS: &[(&str, &str)] = &[
    ("added", "entries that a reload of the configuration added"),
    (
        "address",
        "an address that the daemon listens on or sends requests to, without credentials",
    ),
    ("bundle", "the id of a bundle of stored tools"),
    ("bytes", "the length of a text"),
    (
        "changed",
        "entries that a reload of the configuration changed",
    ),
    ("coding", "a content coding"),
    ("configuration", "the configuration file, or `none`"),
    ("connections", "how many connections are kept at once"),
    ("done", "how far a call has come, in a unit of its tool"),
    ("error", "what went wrong, in words"),
    ("hint", "what to do next"),
    ("key", "a key of the configuration"),
    (
        "keys",
        "keys of the configuration, with a comma between them",
    ),
    ("lines", "lines of the audit log"),
    ("lost", "scenarios that were lost"),
    ("method", "the method of a request"),
    (
        "of",
        "scenarios that answered before some of them were lost",
    ),
    (
        "open_files",
        "how many files and connections may be open at once",
    ),
    ("origin", "a web origin"),
    ("outcome", "what came of it, as metrics count it"),
    ("path", "a file or folder"),
    ("readers", "readers of events"),
    (
        "removed",
        "entries that a reload of the configuration removed",
    ),
    (
        "route",
        "a route of the table, never a path that a client wrote",
    ),
    ("scenario", "the name that a scenario is filed under"),
    ("seconds", "a time span in seconds"),
    ("signal", "the name of a signal"),
    ("state", "the database file"),
    ("status", "the status of an answer"),
    (
        "still_lost",
        "scenarios that were lost and do not answer yet",
    ),
    ("tasks", "tasks that were still running"),
    ("tool", "the name of a tool"),
    ("tools", "how many tools"),
    ("total", "how far a call has to come, in the same unit"),
    (
        "trace",
        "the id of the trace that a call belongs to, as its client gave it",
    ),
    ("wait_ms", "how long is waited, in milliseconds"),
];
