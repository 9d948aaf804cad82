//! Profiles: what callers that name one may see and call at most. Those of the configuration are
//! shown and not changed here; others live in the store.

use axum::extract::{Path, State};
use axum::response::Response;
use http::StatusCode;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::config::{AdditionChange, Config, EntryError, ProfileEntry};
use crate::model::{Permission, Profile, Scope};
use crate::server::api::shared_json;
use crate::server::http::error::Problem;
use crate::server::http::next_step::NextStep;
use crate::server::http::params::{Param, ParamType, grammar};
use crate::server::http::query::{NoQuery, once};
use crate::server::http::typed_body::ApiJson;
use crate::server::openapi::{RefusalSpec, refusal};
use crate::server::{ServerState, SharedState};

/// A profile in a path.
pub(in crate::server) const NAME: Param = once("name")
    .takes(ParamType::Matching(grammar::FREE))
    .about("The name of the profile.", "reviewer")
    .required();

/// The entry is one of the configuration.
pub(in crate::server) const CONFIGURED: RefusalSpec = refusal(
    409,
    "The configuration has it, where it is changed; or as many are kept as may be.",
)
.with_example(configured_example);
/// There is none of this name in the store.
pub(in crate::server) const NOT_STORED: RefusalSpec =
    refusal(404, "None of this name was added; `known` names those.");

/// The bounds of a profile. What is left out allows all.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ProfileBounds")]
pub(in crate::server) struct ProfileBody {
    /// Only tools of these scenarios; none when it is empty.
    #[schemars(
        skip_serializing_if = "Option::is_none",
        schema_with = "scenario_names"
    )]
    scenarios: Option<Vec<String>>,
    /// Only tools that require at most this level.
    #[schemars(skip_serializing_if = "Option::is_none", schema_with = "levels")]
    permission: Option<String>,
    /// Whether MCP clients get tools that search in place of the whole list: `list` or `search`.
    #[schemars(skip_serializing_if = "Option::is_none", schema_with = "modes")]
    mcp_mode: Option<String>,
}

fn scenario_names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["array", "null"], "items": {"type": "string", "pattern": grammar::SCENARIO}})
}

fn levels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["guest", "user", "admin", "owner", null]})
}

fn modes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["list", "search", null]})
}

/// The profiles, in order of their names.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Profiles")]
pub(in crate::server) struct ProfileList {
    pub(in crate::server) profiles: Vec<ProfileJson>,
}

/// A profile.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Profile")]
pub(in crate::server) struct ProfileJson {
    /// Its name.
    pub(in crate::server) name: String,
    /// Where it is: `configuration` or `store`.
    pub(in crate::server) origin: &'static str,
    /// Only tools of these scenarios; `null` if all may be seen.
    pub(in crate::server) scenarios: Option<Vec<String>>,
    /// Only tools that require at most this level; `null` if all may be seen.
    pub(in crate::server) permission: Option<&'static str>,
    /// How MCP clients get the list; `null` if as all clients.
    pub(in crate::server) mcp_mode: Option<&'static str>,
    /// Whether it holds for clients that name no profile.
    pub(in crate::server) is_default: bool,
    /// Whether it has no effect, because the configuration has one of its name.
    pub(in crate::server) is_hidden: bool,
}

/// A profile that was changed.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ChangedProfile")]
pub(in crate::server) struct ChangedProfile {
    profile: ProfileJson,
    /// What else changed with it, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// A profile that was taken away.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RemovedProfile")]
pub(in crate::server) struct RemovedProfile {
    /// Its name.
    name: String,
    /// What that means for its callers, for people.
    message: &'static str,
}

impl ProfileJson {
    fn new(name: &str, profile: &Profile, origin: &'static str) -> Self {
        let scenarios = profile.scenarios.as_ref();
        let named =
            |names: &std::collections::BTreeSet<_>| names.iter().map(ToString::to_string).collect();
        Self {
            name: name.to_owned(),
            origin,
            scenarios: scenarios.map(named),
            permission: profile.permission.map(Permission::as_str),
            mcp_mode: profile
                .searches
                .map(|searches| if searches { "search" } else { "list" }),
            is_default: profile.is_default,
            is_hidden: false,
        }
    }
}

impl ProfileBody {
    fn into_entry(self) -> ProfileEntry {
        ProfileEntry {
            scenarios: self.scenarios,
            permission: self.permission,
            mcp_mode: self.mcp_mode,
        }
    }
}

impl ServerState {
    /// All profiles: those of the configuration, then those of the store.
    pub(in crate::server) fn profiles(&self) -> ProfileList {
        let configured = self.config.borrow().marked_profiles().known;
        let additions = self.engine.additions();
        let of_file = configured
            .iter()
            .map(|(name, profile)| ProfileJson::new(name, profile, "configuration"));
        let added = additions
            .profiles
            .iter()
            .map(|(name, profile)| ProfileJson {
                is_hidden: configured.contains_key(name),
                ..ProfileJson::new(name, profile, "store")
            });
        let mut profiles: Vec<ProfileJson> = of_file.chain(added).collect();
        profiles.sort_by(|one, other| one.name.cmp(&other.name));
        ProfileList { profiles }
    }

    /// Adds a profile to the store or replaces it. Returns when it is durable and holds.
    pub(in crate::server) async fn put_profile(
        &self,
        name: String,
        entry: ProfileEntry,
    ) -> Result<ChangedProfile, Problem> {
        checked_name(&name)?;
        let config = self.config.borrow().clone();
        if config.profiles.contains_key(&name) {
            return Err(is_configured("profile", "profiles", &name));
        }
        let profile = config.judge_profile(&name, &entry)?;
        let is_first = is_unbounded(&config, self);
        let shown = ProfileJson::new(&name, &profile, "store");
        self.engine
            .add(AdditionChange::Profile(name, Some((profile, entry))))
            .await?;
        let note = is_first.then_some(
            "it is the first profile: from now on a client that names another one sees and calls no tools",
        );
        Ok(ChangedProfile {
            profile: shown,
            note,
        })
    }

    /// Takes a profile of the store away.
    pub(in crate::server) async fn remove_profile(
        &self,
        name: String,
    ) -> Result<RemovedProfile, Problem> {
        checked_name(&name)?;
        let additions = self.engine.additions();
        if !additions.profiles.contains_key(&name) {
            if self.config.borrow().profiles.contains_key(&name) {
                return Err(is_configured("profile", "profiles", &name));
            }
            let known: Vec<String> = additions.profiles.keys().cloned().collect();
            let list = NextStep::request("GET", "/api/v1/profiles");
            let problem = Problem::not_found(format!("no profile is called `{name}`"))
                .and_next(&format!("{list} lists them"))
                .with_next(list);
            return Err(problem.with_member("known", known));
        }
        self.engine
            .add(AdditionChange::Profile(name.clone(), None))
            .await?;
        let config = self.config.borrow().clone();
        let message = if config.profiles.contains_key(&name) {
            "the one of the configuration holds, as before"
        } else if is_unbounded(&config, self) {
            "it was the last profile: no profile has bounds any more, and every name is accepted"
        } else {
            "callers that name it see and call no tools from now on"
        };
        Ok(RemovedProfile { name, message })
    }
}

/// The name of a profile, as a scope can hold it.
fn checked_name(name: &str) -> Result<(), Problem> {
    format!("profile:{name}").parse::<Scope>()?;
    Ok(())
}

/// 409 for an entry that the configuration has.
pub(in crate::server) fn is_configured(kind: &str, list: &str, name: &str) -> Problem {
    let detail = format!("the {kind} `{name}` is one of the configuration, and is changed there");
    Problem::new(StatusCode::CONFLICT, detail).and_next(&format!(
        "edit its `[[{list}]]` in the configuration file; the daemon follows within a second"
    ))
}

/// The same, as an example.
fn configured_example() -> Problem {
    is_configured("profile", "profiles", "reviewer")
}

impl From<EntryError> for Problem {
    fn from(error: EntryError) -> Self {
        Self::bad_request(error.to_string()).and_next(&error.hint)
    }
}

/// `GET /api/v1/profiles`.
pub(in crate::server) async fn list(
    State(shared): State<SharedState>,
    _: NoQuery,
) -> Result<Response, Problem> {
    shared_json::json(&shared.profiles())
}

/// `PUT /api/v1/profiles/{name}`: adds a profile or replaces it, with exactly these bounds. Answers
/// when it is durable and holds.
pub(in crate::server) async fn put(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    _: NoQuery,
    ApiJson(body): ApiJson<ProfileBody>,
) -> Result<Response, Problem> {
    shared_json::json(&shared.put_profile(name, body.into_entry()).await?)
}

/// Whether no profile has bounds, so that every name is accepted.
fn is_unbounded(config: &Config, shared: &ServerState) -> bool {
    config.profiles.is_empty() && shared.engine.additions().profiles.is_empty()
}

/// `DELETE /api/v1/profiles/{name}`: takes a profile of the store away.
pub(in crate::server) async fn remove(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    shared_json::json(&shared.remove_profile(name).await?)
}
