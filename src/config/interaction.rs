//! What an MCP server may request of its callers and give to their models, and the revision that it
//! is greeted in, as written in `[[scenarios]]`.

use std::path::PathBuf;
use std::sync::Arc;

use url::Url;

use super::units::ValueError;
use super::value_reader::ValueReader;
use crate::model::Interaction;
use crate::protocols::mcp;

/// The kinds of requests.
const KINDS: [&str; 3] = ["elicitation", "sampling", "roots"];

/// Reads `interaction`, `roots`, `instructions` and `revision` of one scenario.
pub(super) fn interaction(at: &mut ValueReader<'_>) -> (Interaction, Option<Arc<str>>) {
    let mut interaction = Interaction::default();
    if at.key("interaction").value.is_some() {
        let mut kinds: Vec<&'static str> = Vec::new();
        at.key("interaction").texts(&mut kinds, known_kind);
        interaction.elicitation = kinds.contains(&"elicitation");
        interaction.sampling = kinds.contains(&"sampling");
        interaction.roots = kinds.contains(&"roots");
    }
    let mut folders: Vec<Url> = Vec::new();
    at.key("roots").each(|_, mut at| {
        let mut path: Option<PathBuf> = None;
        at.path(&mut path);
        match path.map(|path| Url::from_file_path(&path)) {
            Some(Ok(folder)) => folders.push(folder),
            Some(Err(())) => at.reject(ValueError::new(
                "it is no absolute path",
                "write the whole path of a folder",
            )),
            None => {}
        }
    });
    if !folders.is_empty() && !interaction.roots {
        let hint = "add `interaction = [\"elicitation\", \"roots\"]`, or take `roots` out";
        at.key("roots").reject(ValueError::new(
            "this scenario may not request folders",
            hint,
        ));
    }
    interaction.folders = folders;
    at.key("instructions").switch(&mut interaction.instructions);
    let mut revision: Option<Arc<str>> = None;
    at.key("revision").text(&mut revision, known_revision);
    (interaction, revision)
}

fn known_kind(text: &str) -> Result<&'static str, ValueError> {
    KINDS.into_iter().find(|kind| *kind == text).ok_or_else(|| {
        ValueError::new(
            format!("{text:?} is not a kind of input that a scenario can request"),
            format!("known are: {}", KINDS.join(", ")),
        )
    })
}

fn known_revision(text: &str) -> Result<Arc<str>, ValueError> {
    if mcp::REVISIONS.contains(&text) {
        return Ok(text.into());
    }
    let hint = format!(
        "known are: {}; leave it out to find out by probing",
        mcp::REVISIONS.join(", ")
    );
    Err(ValueError::new(
        format!("{text:?} is no revision of MCP"),
        hint,
    ))
}
