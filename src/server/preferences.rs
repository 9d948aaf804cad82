//! Preferences by scope and target. Each setting is three-valued: absent leaves it, `null` makes it inherit, a value sets it.

use axum::extract::{RawQuery, State};
use axum::response::Response;
use serde_json::{Value, json};

use super::body::{JsonBody, bad_member};
use super::error::Problem;
use super::query::{Query, bad_value, many, once};
use super::{App, wire};
use crate::model::{Approval, InvalidPreference, PublishedName, Scope, Settings, SettingsPatch, Target};

const SETTINGS: [&str; 5] = ["enabled", "approval", "alias", "priority", "pinned"];

/// `GET /api/v1/preferences`: `{"preferences": [...]}`, ordered by scope and target. Filters: `scope`, `target`.
pub(super) async fn all(State(shared): State<App>, RawQuery(raw): RawQuery) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &[once("scope"), once("target")])?;
    let scope = query.one("scope").map(str::parse::<Scope>).transpose()?;
    let target = query.one("target").map(str::parse::<Target>).transpose()?;
    let snapshot = shared.reader.snapshot();
    let wanted = |(s, t, _): &(&Scope, &Target, &Settings)| {
        scope.as_ref().is_none_or(|scope| scope == *s) && target.as_ref().is_none_or(|target| target == *t)
    };
    let preferences = snapshot.catalog.preferences().iter().filter(wanted);
    let shown: Vec<Value> = preferences.map(|(scope, target, s)| wire::preference(scope, target, s)).collect();
    wire::json(&json!({"preferences": shown}))
}

/// `PUT /api/v1/preferences`: changes the settings that the body speaks of; answers `{"preference": {...}}` when that is durable and
/// published. The tool or scenario need not exist now.
pub(super) async fn change(State(shared): State<App>, body: JsonBody) -> Result<Response, Problem> {
    let (scope, target, patch) = read_change(&body)?;
    let settings = shared.engine.prefer(scope.clone(), target.clone(), patch).await?;
    wire::json(&json!({"preference": wire::preference(&scope, &target, &settings)}))
}

/// `DELETE /api/v1/preferences?scope=&target=`: every setting inherits again, or with `setting=` only those named.
pub(super) async fn reset(State(shared): State<App>, RawQuery(raw): RawQuery) -> Result<Response, Problem> {
    let (scope, target, patch) = read_reset(raw.as_deref())?;
    let settings = shared.engine.prefer(scope.clone(), target.clone(), patch).await?;
    wire::json(&json!({"preference": wire::preference(&scope, &target, &settings)}))
}

fn read_reset(raw: Option<&str>) -> Result<(Scope, Target, SettingsPatch), Problem> {
    let query = Query::read(raw, &[once("scope"), once("target"), many("setting")])?;
    let (scope, target) = (query.required("scope")?.parse()?, query.required("target")?.parse()?);
    let settings = query.all("setting")?;
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
            other => return Err(bad_value("setting", other, &SETTINGS.join(", ")).with("known", SETTINGS.to_vec())),
        }
    }
    Ok((scope, target, patch))
}

/// What the body of a change asks for.
pub(super) fn read_change(body: &JsonBody) -> Result<(Scope, Target, SettingsPatch), Problem> {
    body.only(&["scope", "target", "enabled", "approval", "alias", "priority", "pinned"])?;
    let scope: Scope = body.text("scope")?.parse()?;
    let target: Target = body.text("target")?.parse()?;
    let patch = SettingsPatch {
        enabled: setting(body, "enabled", "true, false or null", Value::as_bool)?,
        approval: setting(body, "approval", "\"require\", \"skip\" or null", |value| value.as_str()?.parse().ok())?,
        alias: alias(body, &target)?,
        priority: setting(body, "priority", "a whole number of 32 bits or null", |value| {
            value.as_i64().and_then(|number| i32::try_from(number).ok())
        })?,
        pinned: setting(body, "pinned", "true, false or null", Value::as_bool)?,
    };
    if patch == SettingsPatch::default() {
        let detail = format!("the body changes nothing: give at least one of {}", SETTINGS.join(", "));
        return Err(Problem::bad_request(detail).with("known", SETTINGS.to_vec()));
    }
    Ok((scope, target, patch))
}

/// A three-valued setting of the body, as [`SettingsPatch`] has it.
#[expect(clippy::option_option, reason = "absent, null and a value are three things here, as in the patch")]
fn setting<T>(
    body: &JsonBody,
    name: &str,
    allowed: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<Option<T>>, Problem> {
    match body.0.get(name) {
        None => Ok(None),
        Some(Value::Null) => Ok(Some(None)),
        Some(value) => match read(value) {
            Some(read) => Ok(Some(Some(read))),
            None => Err(bad_member(name, value, allowed)),
        },
    }
}

#[expect(clippy::option_option, reason = "absent, null and a value are three things here, as in the patch")]
fn alias(body: &JsonBody, target: &Target) -> Result<Option<Option<PublishedName>>, Problem> {
    let alias = setting(body, "alias", "a text or null", |value| value.as_str().map(str::to_owned))?;
    match alias {
        Some(Some(text)) => {
            if !matches!(target, Target::Tool(_)) {
                return Err(InvalidPreference::AliasTarget(target.to_string()).into());
            }
            let alias = PublishedName::alias(&text);
            alias.map(|alias| Some(Some(alias))).map_err(|error| Problem::bad_request(format!("`alias`: {error}")))
        }
        Some(None) => Ok(Some(None)),
        None => Ok(None),
    }
}

/// The approval as the original agent-inbox writes it: empty inherits.
pub(super) fn approval_override(text: &str) -> Result<Option<Approval>, InvalidPreference> {
    if text.is_empty() { Ok(None) } else { text.parse().map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(body: Value) -> Result<(Scope, Target, SettingsPatch), Problem> {
        let Value::Object(members) = body else { panic!("not an object") };
        read_change(&JsonBody(members))
    }

    #[test]
    fn absent_leaves_null_resets_and_a_value_sets() {
        let body =
            json!({"scope": "chat:7", "target": "tool:files/read", "enabled": false, "approval": null, "priority": -3});
        let (scope, target, patch) = change(body).unwrap();
        assert_eq!((scope.to_string(), target.to_string()), ("chat:7".into(), "tool:files/read".into()));
        let expected = SettingsPatch {
            enabled: Some(Some(false)),
            approval: Some(None),
            alias: None,
            priority: Some(Some(-3)),
            pinned: None,
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
            ("enabled", json!("yes"), "`enabled` cannot be `\"yes\"`: allowed is true, false or null"),
            ("approval", json!("maybe"), "`approval`"),
            ("priority", json!(3_000_000_000_i64), "`priority`"),
            ("priority", json!(1.5), "`priority`"),
            ("alias", json!("read"), "single tool"),
            ("alias", json!(1), "`alias`"),
            ("enable", json!(true), "unknown member `enable`"),
        ] {
            let mut body = base.clone();
            body["priority"] = json!(1);
            body[member] = value;
            let answer = change(body).expect_err(member).into_answer();
            assert_eq!(answer.status(), 400);
            let told = answer.into_body().collect().await.unwrap().to_bytes();
            let told: Value = serde_json::from_slice(&told).unwrap();
            assert!(told["error"].as_str().unwrap().contains(named), "{member}: {told}");
        }
        assert!(change(base).is_err(), "nothing to change");
        assert!(change(json!({"target": "tag:x", "enabled": true})).is_err(), "no scope");
        assert!(change(json!({"scope": "global", "target": "tool:a/b", "alias": "not legal"})).is_err());
    }

    #[test]
    fn a_reset_is_whole_or_by_setting() {
        let reset = |raw| read_reset(Some(raw)).map(|(_, _, patch)| patch);
        assert_eq!(reset("scope=global&target=tag:x").unwrap(), SettingsPatch::reset());
        let some = reset("scope=global&target=tag:x&setting=enabled,priority").unwrap();
        assert_eq!(some, SettingsPatch { enabled: Some(None), priority: Some(None), ..SettingsPatch::default() });
        for raw in ["", "scope=global", "scope=global&target=tag:x&setting=colour", "scope=global&target=tag:x&x=1"] {
            assert_eq!(reset(raw).unwrap_err().into_answer().status(), 400, "{raw}");
        }
    }
}
