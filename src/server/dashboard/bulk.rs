//! Changes many tools at once on the page of the tools: the ticked ones, or all that match the
//! filter.
//!
//! All changes are stored and published together, or none is. Tools that are no longer offered are
//! left out, and the answer names them.

use std::fmt::Write as _;

use axum::extract::State;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::catalog::Catalog;
use crate::model::{ApprovalPolicy, PreferenceTarget, Scope, SettingsPatch, ToolId};
use crate::server::SharedState;
use crate::server::api::shared_json;
use crate::server::auth::Access;
use crate::server::dashboard::bulk_bar::CHANGES;
use crate::server::dashboard::text::count;
use crate::server::dashboard::tools::{FILTERS, ToolFilter};
use crate::server::http::body::bad_member;
use crate::server::http::error::{Problem, excerpt};
use crate::server::http::typed_body::ApiJson;
use crate::state::PREFERENCES_MAX;

/// At most this many of the left out tools are named.
const NAMES_SHOWN_MAX: usize = 5;

/// The form of the page: the filter, what is to be changed, and the tools.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BulkForm {
    scope: String,
    change: String,
    /// The ticked tools.
    tools: Option<Value>,
    /// The number of all tools that match the filter, if all of them are meant.
    matching: Option<Value>,
    q: Option<String>,
    scenario: Option<String>,
    category: Option<String>,
    tag: Option<String>,
    state: Option<String>,
    /// How many rows the page shows, which is of no importance here.
    #[serde(rename = "rows")]
    _rows: Option<Value>,
}

impl BulkForm {
    /// The filter as the query of the page.
    fn filter(&self) -> String {
        let values = [
            &self.q,
            &self.scenario,
            &self.category,
            &self.tag,
            &self.state,
        ];
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in FILTERS.iter().zip(values) {
            query.append_pair(name, value.as_deref().unwrap_or_default());
        }
        query.append_pair("scope", &self.scope).finish()
    }
}

fn patch(change: &str) -> SettingsPatch {
    let patch = SettingsPatch::default();
    match change {
        "enable" => SettingsPatch {
            enabled: Some(Some(true)),
            ..patch
        },
        "disable" => SettingsPatch {
            enabled: Some(Some(false)),
            ..patch
        },
        "ask-first" => SettingsPatch {
            approval: Some(Some(ApprovalPolicy::Require)),
            ..patch
        },
        "no-approval" => SettingsPatch {
            approval: Some(Some(ApprovalPolicy::Skip)),
            ..patch
        },
        // Resets only the settings with a control in the table; an alias or a priority stays.
        _ => SettingsPatch {
            enabled: Some(None),
            approval: Some(None),
            ..patch
        },
    }
}

/// `POST /dashboard/tools/preferences`: makes one of [`CHANGES`] in `scope` for `tools`, or with
/// `matching` for all tools that match the filter. `matching` is their number on the page; if it is
/// another one by now, the answer is 409. Answers with the number of changed tools and a sentence.
pub(super) async fn change(
    State(shared): State<SharedState>,
    access: Access,
    ApiJson(form): ApiJson<BulkForm>,
) -> Result<Response, Problem> {
    let scope: Scope = form.scope.parse()?;
    let Some((change, _, done)) = CHANGES.iter().find(|(change, ..)| *change == form.change) else {
        return Err(bad_member(
            "change",
            &form.change.into(),
            &CHANGES.map(|(change, ..)| change).join(", "),
        ));
    };
    let snapshot = shared.reader.snapshot();
    let (tools, gone) = match &form.matching {
        Some(told) => (matching(&snapshot.catalog, &form, told)?, Vec::new()),
        None => ticked(&snapshot.catalog, form.tools.as_ref())?,
    };
    let number = tools.len();
    let changes = tools
        .into_iter()
        .map(|tool| (scope.clone(), PreferenceTarget::Tool(tool), patch(change)))
        .collect();
    shared.set_preferences(access, changes).await?;
    let mut told = format!("{} {done} for {scope}.", count(number, "tool"));
    if !gone.is_empty() {
        let first: Vec<String> = gone
            .iter()
            .take(NAMES_SHOWN_MAX)
            .map(|name| excerpt(name))
            .collect();
        let first = first.join(", ");
        let more = if gone.len() > NAMES_SHOWN_MAX {
            ", ..."
        } else {
            ""
        };
        // Writing to a text cannot fail.
        let _ = write!(
            told,
            " {} left out (not offered any more): {first}{more}.",
            gone.len()
        );
    }
    shared_json::json(&json!({"changed": number, "left_out": gone, "told": told}))
}

/// The tools that match the filter, if their number is the one that the page showed.
fn matching(catalog: &Catalog, form: &BulkForm, told: &Value) -> Result<Vec<ToolId>, Problem> {
    let shown = ToolFilter::parse(Some(&form.filter())).ids(catalog);
    if told.as_str() != Some(shown.len().to_string().as_str()) {
        let detail = format!(
            "the filter shows {} now, so no preference was changed; look again",
            count(shown.len(), "tool")
        );
        return Err(Problem::new(http::StatusCode::CONFLICT, detail));
    }
    Ok(shown)
}

/// The named tools: those that are offered, and the names of the others.
fn ticked(catalog: &Catalog, named: Option<&Value>) -> Result<(Vec<ToolId>, Vec<String>), Problem> {
    let allowed = format!("a list of 1 to {PREFERENCES_MAX} texts `scenario/tool`");
    let named = named.unwrap_or(&Value::Null);
    let texts: Option<Vec<&str>> = named
        .as_array()
        .and_then(|all| all.iter().map(Value::as_str).collect());
    let Some(texts) = texts.filter(|texts| (1..=PREFERENCES_MAX).contains(&texts.len())) else {
        return Err(bad_member("tools", named, &allowed));
    };
    let mut tools = Vec::new();
    let mut gone = Vec::new();
    for text in texts {
        let Ok(PreferenceTarget::Tool(id)) = format!("tool:{text}").parse::<PreferenceTarget>()
        else {
            return Err(bad_member("tools", &text.into(), &allowed));
        };
        let entry = catalog.entry(&id.scenario);
        if entry.is_some_and(|entry| entry.tools.iter().any(|tool| tool.id == id)) {
            tools.push(id);
        } else {
            gone.push(text.to_owned());
        }
    }
    Ok((tools, gone))
}
