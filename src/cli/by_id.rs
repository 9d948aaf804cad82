//! What the commands for approvals and operations have in common: things with long ids, of which
//! few are known at a time.

use serde_json::Value;

use super::client::{DaemonClient, QueryPairs};
use super::{CommandError, output};

/// Characters of an id that a table shows.
const SHOWN: usize = 12;

/// The id that begins so; ids are long, and only few wait at a time.
pub(super) async fn complete_id(
    daemon: &DaemonClient,
    kind: &'static str,
    id: &str,
) -> Result<String, CommandError> {
    let is_of_id = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if id.is_empty() || !id.chars().all(is_of_id) {
        let message = format!("`{}` is not the beginning of an id", output::sanitize(id));
        let hint = format!(
            "an id has letters, digits and `-` only; `callsheet {kind}` lists those that are known"
        );
        return Err(CommandError::Usage { message, hint });
    }
    let listed = daemon.get(&[kind], QueryPairs::new(), kind).await?;
    let ids = output::list(&listed.value, kind)
        .iter()
        .filter_map(|one| one["id"].as_str());
    let mut meant: Vec<&str> = ids.filter(|known| known.starts_with(id)).collect();
    match meant[..] {
        [one] => Ok(one.to_owned()),
        // The daemon says that there is none.
        [] => Ok(id.to_owned()),
        _ => {
            meant.truncate(5);
            let message = format!("several of the {kind} have ids that begin with `{id}`");
            Err(CommandError::Usage {
                message,
                hint: format!("write more of it: {}", meant.join(", ")),
            })
        }
    }
}

/// The beginning of its id, enough to name it by.
pub(super) fn short_id(row: &Value) -> String {
    output::text(row, "/id").chars().take(SHOWN).collect()
}

/// Its tool, as `scenario/tool`.
pub(super) fn tool(row: &Value) -> String {
    format!(
        "{}/{}",
        output::text(row, "/scenario"),
        output::text(row, "/tool")
    )
}

/// The caller, in a few words, its client first.
pub(super) fn caller(row: &Value) -> String {
    let part = |name: &str, pointer| match output::text(row, pointer) {
        text if text.is_empty() => None,
        text => Some(format!("{name}{text}")),
    };
    let parts = [
        part("", "/client"),
        part("user ", "/user_id"),
        part("profile ", "/profile"),
        part("chat ", "/chat_id"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A foreign value as JSON; `None` if there is none.
pub(super) fn json_text(row: &Value, pointer: &str) -> String {
    match row.pointer(pointer) {
        None | Some(Value::Null) => String::new(),
        Some(value) => output::sanitize(&value.to_string()),
    }
}
