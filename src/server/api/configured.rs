//! Adds scenarios to the file of the configuration, and takes them out of it. The daemon follows
//! its file, so what is written here takes effect like any other change of it.
//!
//! Only addresses are added: a command never comes over HTTP.

use std::path::PathBuf;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::client_files::EntryTarget;
use crate::config::edit::{ConfigEdit, EditError, WrittenConfig};
use crate::config::web_address;
use crate::model::ScenarioName;
use crate::server::api::shared_json;
use crate::server::http::body::{RawBody, bad_member};
use crate::server::http::error::Problem;
use crate::server::http::next_step::NextStep;
use crate::server::http::query::NoQuery;
use crate::server::http::typed_body::{InvalidBody, parse_strict_body};
use crate::server::openapi::{RefusalSpec, refusal};
use crate::server::{ServerState, SharedState};

/// The members of an entry that starts a program.
const OF_COMMAND: [&str; 4] = ["command", "args", "env", "cwd"];

/// Without a file that can be changed.
pub(in crate::server) const NOT_WRITTEN: RefusalSpec =
    refusal(409, "The name is taken, another scenario is at the address, the file cannot be changed, or the daemon follows none. Nothing was changed.")
        .with_example(no_file);
/// Without such an entry.
pub(in crate::server) const NO_ENTRY: RefusalSpec = refusal(
    404,
    "The file has no scenario of this name; `candidates` holds the names that it has.",
)
.with_example(no_entry);

/// A scenario at an address.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewScenario")]
pub(in crate::server) struct NewScenarioBody {
    /// Its name, which no other scenario in the file has.
    name: String,
    /// Its address; that of an MCP server is whole.
    url: String,
}

/// A scenario that was added to the file or taken out of it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ConfiguredScenario")]
pub(in crate::server) struct ConfiguredJson {
    /// The scenario.
    name: String,
    /// The file.
    file: String,
    /// What happens next, for people.
    message: String,
}

/// A new scenario, for the description of the API.
pub(in crate::server) fn new_scenario() -> Value {
    json!({"name": "tickets", "url": "http://127.0.0.1:8080/mcp"})
}

/// A scenario that was added, for the description of the API.
pub(in crate::server) fn added() -> Value {
    described("added to")
}

/// A scenario that was taken out, for the description of the API.
pub(in crate::server) fn removed() -> Value {
    described("taken out of")
}

fn described(what: &str) -> Value {
    let file = "/home/ada/.config/callsheet/callsheet.toml";
    json!(configured("tickets", file, what))
}

fn configured(name: &str, file: &str, what: &str) -> ConfiguredJson {
    let message = format!("`{name}` was {what} {file}; the daemon follows within a second");
    ConfiguredJson {
        name: name.to_owned(),
        file: file.to_owned(),
        message,
    }
}

fn no_file() -> Problem {
    let problem = Problem::new(
        StatusCode::CONFLICT,
        "this daemon follows no configuration file",
    );
    problem.and_next("change the configuration of the program that it runs in")
}

fn no_entry() -> Problem {
    let path = PathBuf::from("/home/ada/.config/callsheet/callsheet.toml");
    EditError::NotThere {
        path,
        name: "ticket".to_owned(),
        known: vec!["tickets".to_owned()],
    }
    .into()
}

impl From<EditError> for Problem {
    fn from(error: EditError) -> Self {
        let status = match error {
            EditError::NotThere { .. } => StatusCode::NOT_FOUND,
            EditError::Invalid { .. } | EditError::OwnAddress { .. } => StatusCode::BAD_REQUEST,
            EditError::NameTaken { .. }
            | EditError::SameAddress { .. }
            | EditError::Changed { .. }
            | EditError::Unwritable { .. } => StatusCode::CONFLICT,
        };
        let problem = Self::new(status, error.to_string());
        match error {
            EditError::NameTaken { ref name, .. } => {
                let remove = removal(name);
                let next = format!("take another name, or take that one out first with {remove}");
                problem.and_next(&next).with_next(remove)
            }
            EditError::SameAddress {
                ref name,
                ref owner,
                ..
            } => {
                let remove = removal(owner);
                let problem = problem.and_next(&format!("{remove} makes room for `{name}`"));
                let alias =
                    "`PUT /api/v1/preferences` with an `alias` gives one of its tools another name";
                problem.and_next(alias).with_next(remove)
            }
            EditError::NotThere { ref known, .. } => problem
                .and_next_if(error.hint().as_deref())
                .with_member("candidates", known.clone()),
            _ => problem.and_next_if(error.hint().as_deref()),
        }
    }
}

/// The request that takes a scenario out of the file.
fn removal(name: &str) -> NextStep {
    NextStep::request("DELETE", format!("/api/v1/scenarios/{name}"))
}

/// `POST /api/v1/scenarios`: adds a scenario at an address. 201 when the file is written.
pub(in crate::server) async fn add(
    State(shared): State<SharedState>,
    _: NoQuery,
    RawBody(body): RawBody,
) -> Result<Response, Problem> {
    let body: NewScenarioBody = parse_strict_body(&body).map_err(refused)?;
    let name: ScenarioName = body.name.parse()?;
    let url = web_address(&body.url).ok_or_else(|| {
        bad_member(
            "url",
            &body.url.into(),
            "an address such as http://127.0.0.1:8080",
        )
    })?;
    let new = name.clone();
    let target = EntryTarget::Address {
        url,
        headers: Vec::new(),
    };
    let written = shared
        .edit(move |edit| edit.add_listed(new.as_str(), &target))
        .await?
        .map_err(|error| {
            let lines = if let EditError::Unwritable { lines, .. } = &error {
                Some(lines.clone())
            } else {
                None
            };
            lines
                .into_iter()
                .fold(Problem::from(error), |problem, lines| {
                    problem.with_member("lines", lines)
                })
        })?;
    let answer = configured(
        name.as_str(),
        &written.path.display().to_string(),
        "added to",
    );
    Ok((StatusCode::CREATED, shared_json::json(&answer)?).into_response())
}

/// The refusal of a body. What starts a program has a next step of its own.
fn refused(invalid: InvalidBody) -> Problem {
    if invalid
        .unknown()
        .iter()
        .any(|member| OF_COMMAND.contains(&member.as_str()))
    {
        let next = "run `callsheet add NAME -- COMMAND` in a terminal of that machine";
        return Problem::bad_request("a command is not added over HTTP").and_next(next);
    }
    invalid.into()
}

/// `DELETE /api/v1/scenarios/{name}`: takes a scenario out of the file. Its health stays known for
/// `health.forget`, as that of every removed scenario.
pub(in crate::server) async fn remove(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let name: ScenarioName = name.parse()?;
    let old = name.clone();
    // Without the lines of the entry: they may hold a secret.
    let written = shared.edit(move |edit| edit.remove(old.as_str())).await??;
    let answer = configured(
        name.as_str(),
        &written.path.display().to_string(),
        "taken out of",
    );
    shared_json::json(&answer)
}

impl ServerState {
    /// Changes the file of the configuration; the inner error says why it was not changed. One
    /// change at a time: two would each find that the file has changed meanwhile.
    async fn edit(
        &self,
        change: impl FnOnce(&mut ConfigEdit) -> Result<(), EditError> + Send + 'static,
    ) -> Result<Result<WrittenConfig, EditError>, Problem> {
        let Some(options) = self.load_options.clone() else {
            return Err(no_file());
        };
        let snapshot = self.reader.snapshot();
        let Some(state) = &snapshot.configuration else {
            return Err(
                Problem::busy("the daemon has not read its configuration yet")
                    .and_next("try again"),
            );
        };
        // A daemon without a file takes the one in the usual place as soon as it is there.
        let followed = state.file.as_ref().map(|file| PathBuf::from(&**file));
        let Some(path) = followed.or_else(|| options.user_file()) else {
            return Err(no_file());
        };
        let listens = self.listens;
        let _turn = self.config_edits.lock().await;
        let editing = self.tasks.spawn_blocking(move || {
            let mut edit = ConfigEdit::open(&path, &options);
            edit.for_daemon_at(listens);
            change(&mut edit)?;
            edit.write()
        });
        editing.await.map_err(|error| Problem::internal(&error))
    }
}
