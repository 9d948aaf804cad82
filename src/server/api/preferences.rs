//! Preferences by scope and target. Each setting has three values in a change: absent keeps it,
//! `null` makes it inherit, any other value sets it.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Number, Value};

use crate::catalog::{NameLookup, Snapshot, TargetMatches, ViewQuery, explain, find_in_scope};
use crate::model::{
    ApprovalPolicy, FindingCode, InvalidPreference, NameRef, ParameterOverrides, PinMode,
    PreferenceTarget, PublishedName, Scope, Settings, SettingsPatch, ToolId, override_description,
};
use crate::server::api::{lookup, shared_json};
use crate::server::auth::Access;
use crate::server::http::body::bad_member;
use crate::server::http::error::Problem;
use crate::server::http::params::{ParamType, grammar};
use crate::server::http::query::{NoQuery, Param, QueryParams, bad_value, many, once};
use crate::server::http::typed_body::ApiJson;
use crate::server::{ServerState, SharedState};

/// The most tools that a change names because it takes their name.
const MOST_DISPLACED: usize = 3;

const SCOPE: Param = once("scope")
    .takes(ParamType::Matching(grammar::SCOPE))
    .about(
        "Its scope: `global`, `profile:NAME` or `chat:ID`.",
        "chat:42",
    );
const TARGET: Param = once("target")
    .takes(ParamType::Matching(grammar::TARGET))
    .about(
        "Its target: `scenario:NAME`, `category:ID`, `tag:TAG` or `tool:SCENARIO/TOOL`.",
        "tool:files/read_text",
    );
/// The filters of the list of preferences.
pub(in crate::server) const FILTERS: &[Param] = &[SCOPE, TARGET];
/// The parameters of a reset.
pub(in crate::server) const RESET: &[Param] = &[
    SCOPE.required(),
    TARGET.required(),
    many("setting")
        .takes(ParamType::Word(|| Settings::NAMES.to_vec()))
        .about("Only these settings; all when not given.", "enabled"),
];

/// Changes settings: what is absent stays as it is, what is `null` inherits again, anything else is
/// set. At least one is to be given.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PreferenceChange", extend("minProperties" = 3))]
#[expect(
    clippy::option_option,
    reason = "absent, null and a value are three things here, as in the patch"
)]
pub(in crate::server) struct ChangeBody {
    /// Its scope: `global`, `profile:NAME` or `chat:ID`.
    #[schemars(regex(pattern = grammar::SCOPE))]
    scope: String,
    /// Its target: `scenario:NAME`, `category:ID`, `tag:TAG` or `tool:SCENARIO/TOOL`.
    #[schemars(regex(pattern = grammar::TARGET))]
    target: String,
    #[serde(default, deserialize_with = "given")]
    #[schemars(skip_serializing_if = "Option::is_none", with = "Option<bool>")]
    enabled: Option<Option<bool>>,
    #[serde(default, deserialize_with = "given")]
    #[schemars(
        skip_serializing_if = "Option::is_none",
        schema_with = "shared_json::approvals"
    )]
    approval: Option<Option<String>>,
    /// The name to publish a tool under. For single tools only.
    #[serde(default, deserialize_with = "given")]
    #[schemars(skip_serializing_if = "Option::is_none", schema_with = "aliases")]
    alias: Option<Option<String>>,
    /// Which tools stay when a limit allows only so many: highest first.
    #[serde(default, deserialize_with = "whole_number")]
    #[schemars(skip_serializing_if = "Option::is_none", with = "Option<i32>", range(min = i32::MIN, max = i32::MAX))]
    priority: Option<Option<i32>>,
    /// Whether it is always in the list, whatever the search or limits.
    #[serde(default, deserialize_with = "given")]
    #[schemars(skip_serializing_if = "Option::is_none", with = "Option<bool>")]
    pinned: Option<Option<bool>>,
    /// What happens with definitions of a scenario that were not accepted: `off`, `warn` or `hold`.
    #[serde(default, deserialize_with = "given")]
    #[schemars(skip_serializing_if = "Option::is_none", schema_with = "pin_modes")]
    pins: Option<Option<String>>,
    /// What models read in place of the tool's own description. For single tools only.
    #[serde(default, deserialize_with = "given")]
    #[schemars(skip_serializing_if = "Option::is_none", with = "Option<String>")]
    description: Option<Option<String>>,
    /// What replaces parts of its parameters, by their names: `description`, and `default` (sent if
    /// the caller leaves the parameter out) or `fixed` (always sent, and not shown). All of them
    /// are one setting. For single tools only.
    #[serde(default, deserialize_with = "given")]
    #[schemars(
        skip_serializing_if = "Option::is_none",
        schema_with = "shared_json::parameter_overrides"
    )]
    parameters: Option<Option<Value>>,
}

/// A setting that is in the body: `null` or a value.
#[expect(
    clippy::option_option,
    reason = "absent, null and a value are three things here, as in the patch"
)]
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// A whole number of 32 bits, or `null`. For JSON Schema `7.0` is a whole number, too.
#[expect(
    clippy::option_option,
    reason = "absent, null and a value are three things here, as in the patch"
)]
fn whole_number<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<i32>>, D::Error> {
    let Some(number) = Option::<Number>::deserialize(deserializer)? else {
        return Ok(Some(None));
    };
    let whole =
        parse_i32(&number).ok_or_else(|| D::Error::custom("it is no whole number of 32 bits"))?;
    Ok(Some(Some(whole)))
}

fn pin_modes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["off", "warn", "hold", null]})
}

fn aliases(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "pattern": grammar::PUBLISHED})
}

/// Which preferences inherit every setting again.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PreferencesReset")]
pub(in crate::server) struct ResetManyBody {
    /// The scope, or with a `*` at its end all scopes that begin like that: `chat:*`.
    #[schemars(regex(pattern = grammar::SCOPE))]
    scope: String,
    /// Whether they are only counted.
    #[schemars(skip_serializing_if = "Option::is_none")]
    preview: Option<bool>,
}

/// How many preferences a reset of scopes concerns.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PreferencesResetCount")]
pub(in crate::server) struct ResetCount {
    /// The scope as it was given.
    scope: String,
    /// How many stored preferences there were.
    preferences: usize,
    /// Whether they inherit every setting again, durable and published; else they were only
    /// counted.
    reset: bool,
}

/// What users and operators want, by scope and target.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct Preferences {
    preferences: Vec<shared_json::PreferenceJson>,
}

/// A preference as it is now.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ChangedPreference")]
pub(in crate::server) struct ChangedPreference {
    preference: shared_json::PreferenceJson,
    /// Set if no tool or scenario is this target now: the preference is kept until one is. Or if
    /// its alias is the name of another tool, which gets another name, or the alias of another
    /// tool, so that neither gets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// Of a reset: whether there was a stored preference of this target in this scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    was_set: Option<bool>,
    /// How many published tools the target matches now; absent if the preference sets nothing any
    /// more.
    #[serde(skip_serializing_if = "Option::is_none")]
    matched: Option<usize>,
    /// How many further tools it might match: it is a hint, and their servers give none. Absent
    /// like `matched`.
    #[serde(skip_serializing_if = "Option::is_none")]
    unjudged: Option<usize>,
    /// Both numbers for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
}

/// The numbers of matched tools as a sentence.
fn summary(counts: TargetMatches) -> String {
    let TargetMatches {
        tools,
        unjudged,
        unjudged_first,
    } = counts;
    let sentence = if tools == 1 {
        "1 tool matches".to_owned()
    } else {
        format!("{tools} tools match")
    };
    if unjudged == 0 {
        return sentence;
    }
    let named: Vec<String> = unjudged_first.iter().map(ToString::to_string).collect();
    let more = match unjudged - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = format!("{}{more}", named.join(", "));
    let servers = if unjudged == 1 {
        "its server gives"
    } else {
        "their servers give"
    };
    format!(
        "{sentence}; {unjudged} cannot be judged, because {servers} no hints (see `permissions.unannotated`): {named}"
    )
}

/// Says which other tools an alias takes their name from; `None` if it takes none.
fn displaced(
    snapshot: &Snapshot,
    target: &PreferenceTarget,
    settings: &Settings,
) -> Option<String> {
    let (PreferenceTarget::Tool(id), Some(alias)) = (target, &settings.alias) else {
        return None;
    };
    let query = ViewQuery::default();
    let others = snapshot
        .catalog
        .displaced_by(id, alias)
        .take(MOST_DISPLACED);
    let taken: Vec<String> = others
        .map(|other| published_as(snapshot, &query, other))
        .collect();
    (!taken.is_empty()).then(|| {
        format!(
            "`{alias}` is now the alias of `{id}`, so {}",
            taken.join(", and ")
        )
    })
}

/// Says that an alias is another tool's alias too, so that it is given to neither, and which names
/// they have; `None` if the tool has the alias.
fn refused_alias(
    snapshot: &Snapshot,
    scope: &Scope,
    target: &PreferenceTarget,
    settings: &Settings,
) -> Option<String> {
    let (PreferenceTarget::Tool(id), Some(alias)) = (target, &settings.alias) else {
        return None;
    };
    let query = match scope {
        Scope::Global => ViewQuery::default(),
        Scope::Profile(name) => ViewQuery {
            profile: Some(name.clone()),
            ..ViewQuery::default()
        },
        Scope::Chat(chat) => ViewQuery {
            chat: Some(chat.clone()),
            ..ViewQuery::default()
        },
    };
    let NameLookup::One(tool) = find_in_scope(&snapshot.catalog, &query, &NameRef::Id(id.clone()))
    else {
        return None;
    };
    let findings = explain(&snapshot.catalog, &query, &tool).findings;
    let refused = findings
        .into_iter()
        .find(|finding| finding.code == FindingCode::AliasRefused)?;
    let lacks_it = |other: &&ToolId| {
        let found = find_in_scope(&snapshot.catalog, &query, &NameRef::Id((*other).clone()));
        matches!(found, NameLookup::One(other) if other.name.as_str() != alias.as_str())
    };
    let others = refused.others.iter().filter(lacks_it);
    let others: Vec<String> = others
        .map(|other| published_as(snapshot, &query, other))
        .collect();
    let consequence = if others.is_empty() {
        String::new()
    } else {
        format!(", and {}", others.join(", and "))
    };
    Some(format!(
        "{}{consequence}; {}",
        refused.message,
        refused.hint.unwrap_or_default()
    ))
}

/// The name that a tool has in a scope.
fn published_as(snapshot: &Snapshot, query: &ViewQuery, id: &ToolId) -> String {
    match find_in_scope(&snapshot.catalog, query, &NameRef::Id(id.clone())) {
        NameLookup::One(tool) => format!("`{id}` is published as `{}`", tool.name),
        _ => format!("`{id}` is not published"),
    }
}

impl ChangedPreference {
    fn new(
        shared: &ServerState,
        scope: &Scope,
        target: &PreferenceTarget,
        settings: &Settings,
    ) -> Self {
        let preference = shared_json::preference(scope, target, settings);
        let is_kept = *settings != Settings::default();
        let snapshot = shared.reader.snapshot();
        let unmatched =
            || lookup::unmatched_target(&snapshot, target).map(lookup::UnmatchedTarget::kept);
        let of_alias = || {
            refused_alias(&snapshot, scope, target, settings)
                .or_else(|| displaced(&snapshot, target, settings))
        };
        let note = is_kept.then(|| unmatched().or_else(of_alias)).flatten();
        let counts = is_kept.then(|| snapshot.catalog.target_matches(target));
        let matched = counts.as_ref().map(|counts| counts.tools);
        let unjudged = counts.as_ref().map(|counts| counts.unjudged);
        Self {
            preference,
            note,
            was_set: None,
            matched,
            unjudged,
            summary: counts.map(summary),
        }
    }

    /// The same after a reset. If there was none and no tool or scenario is this target, it is
    /// probably not the one that was meant.
    fn after_reset(self, shared: &ServerState, target: &PreferenceTarget, was_set: bool) -> Self {
        let missing = || {
            lookup::unmatched_target(&shared.reader.snapshot(), target).map(|unmatched| unmatched.0)
        };
        let note = if was_set { self.note } else { missing() };
        Self {
            note,
            was_set: Some(was_set),
            ..self
        }
    }
}

/// A change of the settings of one target in one scope.
pub(in crate::server) type ScopedPatch = (Scope, PreferenceTarget, SettingsPatch);

impl ServerState {
    /// Changes preferences, all of them or none. Every request that changes one uses this function:
    /// it refuses a caller who may not loosen preferences or decide which profiles are known.
    /// Returns the settings after the change, in the order of the changes.
    pub(in crate::server) async fn set_preferences(
        &self,
        access: Access,
        changes: Vec<ScopedPatch>,
    ) -> Result<Vec<Settings>, Problem> {
        let snapshot = self.reader.snapshot();
        changes.iter().try_for_each(|(scope, _, patch)| {
            access.check_change(patch)?;
            access.check_profiles(&snapshot.catalog, scope, patch)
        })?;
        Ok(self
            .engine
            .prefer_all_as(access.preference_author(), changes)
            .await?)
    }

    /// Like [`Self::set_preferences`], for one change.
    pub(in crate::server) async fn set_preference(
        &self,
        access: Access,
        scope: Scope,
        target: PreferenceTarget,
        patch: SettingsPatch,
    ) -> Result<Settings, Problem> {
        let settings = self
            .set_preferences(access, vec![(scope, target, patch)])
            .await?;
        Ok(settings.into_iter().next().unwrap_or_default())
    }
}

/// `GET /api/v1/preferences`: `{"preferences": [...]}`, ordered by scope and target. Filters:
/// `scope`, `target`.
pub(in crate::server) async fn list(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = QueryParams::parse(raw.as_deref(), FILTERS)?;
    let scope = query
        .optional("scope")
        .map(str::parse::<Scope>)
        .transpose()?;
    let target = query
        .optional("target")
        .map(str::parse::<PreferenceTarget>)
        .transpose()?;
    let snapshot = shared.reader.snapshot();
    let wanted = |(s, t, _): &(&Scope, &PreferenceTarget, &Settings)| {
        scope.as_ref().is_none_or(|scope| scope == *s)
            && target.as_ref().is_none_or(|target| target == *t)
    };
    let preferences = snapshot.catalog.preferences().iter().filter(wanted);
    let shown = preferences
        .map(|(scope, target, settings)| shared_json::preference(scope, target, settings));
    shared_json::json(&Preferences {
        preferences: shown.collect(),
    })
}

/// `PUT /api/v1/preferences`: changes the settings that are in the body. Answers `{"preference":
/// {...}}` when the change is durable and published. The tool or scenario need not exist now.
pub(in crate::server) async fn change(
    State(shared): State<SharedState>,
    access: Access,
    _: NoQuery,
    ApiJson(body): ApiJson<ChangeBody>,
) -> Result<Response, Problem> {
    let (scope, target, patch) = body.into_patch()?;
    let settings = shared
        .set_preference(access, scope.clone(), target.clone(), patch)
        .await?;
    shared_json::json(&ChangedPreference::new(&shared, &scope, &target, &settings))
}

/// `DELETE /api/v1/preferences?scope=&target=`: makes every setting inherit again, or with
/// `setting=` only the named ones.
pub(in crate::server) async fn reset(
    State(shared): State<SharedState>,
    access: Access,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let (scope, target, patch) = parse_reset(raw.as_deref())?;
    let was_set = shared
        .reader
        .snapshot()
        .catalog
        .preferences()
        .get(&scope, &target)
        .is_some();
    let settings = shared
        .set_preference(access, scope.clone(), target.clone(), patch)
        .await?;
    let changed = ChangedPreference::new(&shared, &scope, &target, &settings);
    shared_json::json(&changed.after_reset(&shared, &target, was_set))
}

/// `POST /api/v1/preferences/reset`: makes every setting of all preferences of a scope, or of all
/// scopes that begin alike, inherit again. All of them or none. Only callers with the right
/// `operate` get here. Configured preferences are not stored, so they are neither reset nor
/// counted.
pub(in crate::server) async fn reset_many(
    State(shared): State<SharedState>,
    _: NoQuery,
    ApiJson(body): ApiJson<ResetManyBody>,
) -> Result<Response, Problem> {
    let ResetManyBody { scope, preview } = body;
    let preview = preview.unwrap_or_default();
    let preferences = shared
        .engine
        .reset_preferences(scope.parse()?, preview)
        .await?;
    shared_json::json(&ResetCount {
        scope,
        preferences,
        reset: !preview,
    })
}

fn parse_reset(raw: Option<&str>) -> Result<(Scope, PreferenceTarget, SettingsPatch), Problem> {
    let query = QueryParams::parse(raw, RESET)?;
    let scope = query.required("scope")?.parse()?;
    let target = query.required("target")?.parse()?;
    let settings = query.list("setting")?;
    if settings.is_empty() {
        return Ok((scope, target, SettingsPatch::reset()));
    }
    let mut patch = SettingsPatch::default();
    for setting in settings {
        match setting {
            "enabled" => patch.enabled = Some(None),
            "approval" => patch.approval = Some(None),
            "alias" => patch.alias = Some(None),
            "priority" => patch.priority = Some(None),
            "pinned" => patch.pinned = Some(None),
            "pins" => patch.pins = Some(None),
            "description" => patch.description = Some(None),
            "parameters" => patch.parameters = Some(None),
            other => {
                return Err(bad_value("setting", other, &Settings::NAMES.join(", "))
                    .with_member("known", Settings::NAMES.to_vec()));
            }
        }
    }
    Ok((scope, target, patch))
}

impl ChangeBody {
    /// The change that the body describes.
    pub(in crate::server) fn into_patch(self) -> Result<ScopedPatch, Problem> {
        let scope: Scope = self.scope.parse()?;
        let target: PreferenceTarget = self.target.parse()?;
        let patch = SettingsPatch {
            enabled: self.enabled,
            approval: self.approval.map(approval).transpose()?,
            alias: self.alias.map(|name| alias(name, &target)).transpose()?,
            priority: self.priority,
            pinned: self.pinned,
            pins: self.pins.map(pins).transpose()?,
            description: self.description.map(description).transpose()?,
            parameters: self.parameters.map(parameters).transpose()?,
        };
        Settings::default()
            .patched(&patch)
            .check_place(&scope, &target)?;
        if patch == SettingsPatch::default() {
            let detail = format!(
                "the body has no setting: give at least one of {}",
                Settings::NAMES.join(", ")
            );
            return Err(Problem::bad_request(detail).with_member("known", Settings::NAMES.to_vec()));
        }
        Ok((scope, target, patch))
    }
}

fn parse_i32(number: &Number) -> Option<i32> {
    if let Some(number) = number.as_i64() {
        return i32::try_from(number).ok();
    }
    let number = number.as_f64().filter(|number| number.fract() == 0.0)?;
    let fits = (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number);
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
    fits.then_some(number as i32)
}

fn approval(given: Option<String>) -> Result<Option<ApprovalPolicy>, Problem> {
    let Some(text) = given else { return Ok(None) };
    let refused = |_| {
        bad_member(
            "approval",
            &Value::from(text.as_str()),
            "\"require\", \"skip\" or null",
        )
    };
    text.parse().map(Some).map_err(refused)
}

fn pins(given: Option<String>) -> Result<Option<PinMode>, Problem> {
    let Some(text) = given else { return Ok(None) };
    let refused = |_| {
        bad_member(
            "pins",
            &Value::from(text.as_str()),
            "\"off\", \"warn\", \"hold\" or null",
        )
    };
    text.parse().map(Some).map_err(refused)
}

fn description(given: Option<String>) -> Result<Option<Arc<str>>, InvalidPreference> {
    let text = given.map(|text| override_description(&text));
    text.transpose().map_err(InvalidPreference::from)
}

fn parameters(given: Option<Value>) -> Result<Option<ParameterOverrides>, InvalidPreference> {
    let parsed = given.map(|value| ParameterOverrides::parse(&value.to_string()));
    parsed.transpose().map_err(InvalidPreference::from)
}

fn alias(
    given: Option<String>,
    target: &PreferenceTarget,
) -> Result<Option<PublishedName>, Problem> {
    let Some(text) = given else { return Ok(None) };
    if !matches!(target, PreferenceTarget::Tool(_)) {
        return Err(InvalidPreference::AliasTarget(target.to_string()).into());
    }
    let alias = PublishedName::alias(&text);
    alias
        .map(Some)
        .map_err(|error| Problem::bad_request(format!("`alias`: {error}")))
}

/// The approval in the notation of the original agent-inbox: an empty text inherits.
pub(in crate::server) fn approval_override(
    text: &str,
) -> Result<Option<ApprovalPolicy>, InvalidPreference> {
    if text.is_empty() {
        Ok(None)
    } else {
        text.parse().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::http::typed_body::parse_strict_body;
    use serde_json::json;

    fn change(body: &Value) -> Result<ScopedPatch, Problem> {
        parse_strict_body::<ChangeBody>(body.to_string().as_bytes())?.into_patch()
    }

    #[test]
    fn absent_leaves_null_resets_and_a_value_sets() {
        let body = json!({"scope": "chat:7", "target": "tool:files/read", "enabled": false, "approval": null, "priority": -3});
        let (scope, target, patch) = change(&body).unwrap();
        assert_eq!(scope.to_string(), "chat:7");
        assert_eq!(target.to_string(), "tool:files/read");
        let expected = SettingsPatch {
            enabled: Some(Some(false)),
            approval: Some(None),
            alias: None,
            priority: Some(Some(-3)),
            pinned: None,
            pins: None,
            description: None,
            parameters: None,
        };
        assert_eq!(patch, expected);
    }

    #[tokio::test]
    async fn what_cannot_be_is_refused_by_name() {
        use http_body_util::BodyExt;
        let base = json!({"scope": "global", "target": "scenario:files"});
        for (member, value, named) in [
            ("scope", json!("user"), "`user`"),
            ("scope", json!(7), "`scope`"),
            ("target", json!("files"), "`files`"),
            (
                "enabled",
                json!("yes"),
                "`enabled` cannot be `\"yes\"`: allowed is true, false or null",
            ),
            ("approval", json!("maybe"), "`approval`"),
            ("priority", json!(3_000_000_000_i64), "`priority`"),
            (
                "priority",
                json!(1.5),
                "`priority` cannot be `1.5`: allowed is a whole number from -2147483648",
            ),
            ("alias", json!("read"), "single tool"),
            ("alias", json!(1), "`alias`"),
            ("enable", json!(true), "unknown member `enable`"),
        ] {
            let mut body = base.clone();
            body["priority"] = json!(1);
            body[member] = value;
            let answer = change(&body).expect_err(member).into_full_response();
            assert_eq!(answer.status(), 400);
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            let problem: Value = serde_json::from_slice(&body).unwrap();
            assert!(
                problem["error"].as_str().unwrap().contains(named),
                "{member}: {problem}"
            );
        }
        assert!(change(&base).is_err(), "nothing to change");
        assert!(
            change(&json!({"target": "tag:x", "enabled": true})).is_err(),
            "no scope"
        );
        assert!(
            change(&json!({"scope": "global", "target": "tool:a/b", "alias": "not legal"}))
                .is_err()
        );
    }

    #[test]
    fn a_whole_number_may_be_written_with_a_point() {
        for (value, expected) in [
            ("7", Some(7)),
            ("-7.0", Some(-7)),
            ("7.5", None),
            ("1e10", None),
        ] {
            let number = value.parse::<Number>().unwrap();
            assert_eq!(parse_i32(&number), expected, "{value}");
        }
    }

    #[test]
    fn a_reset_is_whole_or_by_setting() {
        let reset = |raw| parse_reset(Some(raw)).map(|(_, _, patch)| patch);
        assert_eq!(
            reset("scope=global&target=tag:x").unwrap(),
            SettingsPatch::reset()
        );
        let some = reset("scope=global&target=tag:x&setting=enabled,priority").unwrap();
        assert_eq!(
            some,
            SettingsPatch {
                enabled: Some(None),
                priority: Some(None),
                ..SettingsPatch::default()
            }
        );
        for raw in [
            "",
            "scope=global",
            "scope=global&target=tag:x&setting=colour",
            "scope=global&target=tag:x&x=1",
        ] {
            assert_eq!(
                reset(raw).unwrap_err().into_full_response().status(),
                400,
                "{raw}"
            );
        }
    }
}
