//! Definitions: tools that are defined by their schemas. Those of the configuration and of the
//! embedding program are shown and not changed here; others live in the store.

use axum::extract::{Path, State};
use axum::response::Response;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::{ActivityEntry, AdditionChange, DefinitionEntry};
use crate::engine::EngineError;
use crate::model::DEFINITIONS;
use crate::protocols::definitions::Definition;
use crate::server::api::profiles::is_configured;
use crate::server::api::shared_json;
use crate::server::http::error::Problem;
use crate::server::http::next_step::NextStep;
use crate::server::http::params::Param;
use crate::server::http::query::{NoQuery, once};
use crate::server::http::typed_body::ApiJson;
use crate::server::{ServerState, SharedState};

/// A definition in a path.
pub(in crate::server) const NAME: Param = once("name")
    .about("The name of the tool.", "summarize")
    .required();

/// A definition, as `[[definitions]]` has it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewDefinition")]
pub(in crate::server) struct DefinitionBody {
    /// The schema of the Tool Protocol: an object, or a text that holds one.
    #[schemars(schema_with = "schemas")]
    schema: Value,
    /// What runs it: one activity, or one for each of some profiles. Without it the tool with its
    /// name does, if there is one.
    #[schemars(skip_serializing_if = "Option::is_none", schema_with = "activities")]
    activity: Option<ActivityEntry>,
}

fn schemas(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["object", "string"]})
}

fn activities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "items": {
            "type": "object",
            "required": ["profile", "activity"],
            "properties": {"profile": {"type": "string"}, "activity": {"type": "string"}},
            "additionalProperties": false
        }},
        {"type": "null"}
    ]})
}

/// The definitions, in order of their names.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Definitions")]
pub(in crate::server) struct DefinitionList {
    definitions: Vec<DefinitionJson>,
}

/// A definition.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Definition")]
struct DefinitionJson {
    /// The name of its tool.
    name: String,
    /// What it does.
    description: String,
    /// Where it is: `configuration`, `store` or `program` (the embedding one).
    origin: &'static str,
    /// The schema as it was registered; `null` for one that is elsewhere.
    #[schemars(schema_with = "shown_schemas")]
    schema: Option<Value>,
    /// What runs it, as it was registered.
    #[schemars(schema_with = "activities")]
    activity: Option<ActivityEntry>,
    /// Whether it has no effect, because one of its name goes before it: of the configuration, then
    /// of the store.
    is_hidden: bool,
}

fn shown_schemas(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["object", "string", "null"]})
}

/// A definition that was registered.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RegisteredDefinition")]
pub(in crate::server) struct RegisteredDefinition {
    definition: DefinitionJson,
    /// Whether it took the place of an earlier one.
    replaced: bool,
}

/// A definition that was taken away.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RemovedDefinition")]
pub(in crate::server) struct RemovedDefinition {
    /// The name of its tool.
    name: String,
    /// What that means, for people.
    message: &'static str,
}

impl DefinitionJson {
    fn new(definition: &Definition, origin: &'static str) -> Self {
        Self {
            name: definition.name().to_owned(),
            description: definition.description().to_owned(),
            origin,
            schema: None,
            activity: None,
            is_hidden: false,
        }
    }
}

impl ServerState {
    /// Has the list show the definitions as they are now.
    async fn list_definitions(&self) -> Result<(), Problem> {
        let Ok(name) = DEFINITIONS.parse() else {
            return Ok(());
        };
        match self.engine.refresh(vec![name]).await {
            // With its first definition, or without its last one, the scenario is not known or has
            // no address: its source is about to say so.
            Ok(_) | Err(EngineError::UnknownScenario(_) | EngineError::NoAddress(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// `GET /api/v1/definitions`.
pub(in crate::server) async fn list(
    State(shared): State<SharedState>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let config = shared.config.borrow().clone();
    let additions = shared.engine.additions();
    let is_in_file = |name: &str| config.definitions.iter().any(|one| one.name() == name);
    let of_file = config
        .definitions
        .iter()
        .map(|one| DefinitionJson::new(one, "configuration"));
    let added = additions.definitions.values().map(|added| DefinitionJson {
        schema: Some(added.entry.schema.clone()),
        activity: added.entry.activity.clone(),
        is_hidden: is_in_file(added.definition.name()),
        ..DefinitionJson::new(&added.definition, "store")
    });
    let own = shared.definitions.own();
    let of_program = own.iter().map(|one| DefinitionJson {
        is_hidden: is_in_file(one.name()) || additions.definitions.contains_key(one.name()),
        ..DefinitionJson::new(one, "program")
    });
    let mut definitions: Vec<DefinitionJson> = of_file.chain(added).chain(of_program).collect();
    definitions.sort_by(|one, other| one.name.cmp(&other.name));
    shared_json::json(&DefinitionList { definitions })
}

/// `PUT /api/v1/definitions/{name}`: registers a definition or replaces it. Answers when it is
/// durable and listed.
pub(in crate::server) async fn put(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    _: NoQuery,
    ApiJson(body): ApiJson<DefinitionBody>,
) -> Result<Response, Problem> {
    let config = shared.config.borrow().clone();
    if config.definitions.iter().any(|one| one.name() == name) {
        return Err(is_configured("definition", "definitions", &name));
    }
    let entry = DefinitionEntry {
        schema: body.schema,
        activity: body.activity,
    };
    let additions = shared.engine.additions();
    let added = config.judge_definition(&name, entry, &additions)?;
    let shown = DefinitionJson {
        schema: Some(added.entry.schema.clone()),
        activity: added.entry.activity.clone(),
        ..DefinitionJson::new(&added.definition, "store")
    };
    let change = AdditionChange::Definition(name, Some(Box::new(added)));
    let replaced = shared.engine.add(change).await?;
    shared.list_definitions().await?;
    shared_json::json(&RegisteredDefinition {
        definition: shown,
        replaced,
    })
}

/// `DELETE /api/v1/definitions/{name}`: takes a definition of the store away.
pub(in crate::server) async fn remove(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let additions = shared.engine.additions();
    let is_in_file = |name: &str| {
        let config = shared.config.borrow();
        config.definitions.iter().any(|one| one.name() == name)
    };
    if !additions.definitions.contains_key(&name) {
        if is_in_file(&name) {
            return Err(is_configured("definition", "definitions", &name));
        }
        let known: Vec<String> = additions.definitions.keys().cloned().collect();
        let list = NextStep::request("GET", "/api/v1/definitions");
        let problem = Problem::not_found(format!("no definition `{name}` was registered"))
            .and_next(&format!("{list} lists them"))
            .with_next(list);
        return Err(problem.with_member("known", known));
    }
    shared
        .engine
        .add(AdditionChange::Definition(name.clone(), None))
        .await?;
    shared.list_definitions().await?;
    let message = if is_in_file(&name) {
        "the one of the configuration holds, as before"
    } else {
        "it is not listed any more; the tool that ran it is listed as itself again"
    };
    shared_json::json(&RemovedDefinition { name, message })
}
