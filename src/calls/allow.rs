//! Whether this asker may call this tool now. What cannot be told is refused.
//!
//! A tool marked as internal may be called: LLMs never see it, and a program that knows its name is what it is for.

use serde_json::Value;

use super::Refused;
use crate::catalog::{Catalog, Standing, ViewQuery, out_of_bounds};
use crate::model::{Permission, Scope, ViewTool};

/// Whether the scope's asker may call the tool, which is as `catalog` has it in that scope.
pub(super) fn check(catalog: &Catalog, scope: &ViewQuery, tool: &ViewTool) -> Result<(), Refused> {
    let id = || tool.id.clone();
    if let Some(profile) = &scope.profile
        && !catalog.knows_profile(profile)
    {
        return Err(Refused::UnknownProfile(profile.clone()));
    }
    match catalog.entry(&tool.id.scenario).map(|entry| &entry.standing) {
        Some(Standing::Published) => {}
        Some(Standing::Withdrawn(reason)) => return Err(Refused::Unavailable { id: id(), reason: reason.clone() }),
        Some(Standing::Hidden(reason)) => return Err(Refused::NotTrusted { id: id(), reason: reason.clone() }),
        None => return Err(Refused::Unknown(tool.id.to_string())),
    }
    if let Some(step) = out_of_bounds(catalog, scope, tool) {
        return Err(Refused::OutOfBounds { id: id(), reason: step.outcome });
    }
    if let Some(level) = unreadable_level(tool).filter(|_| catalog.has_level(scope)) {
        let reason = format!("it asks a permission that nobody knows, {level}");
        return Err(Refused::OutOfBounds { id: id(), reason });
    }
    if !tool.effective.enabled {
        let by = tool.effective.enabled_source.to_string();
        return Err(Refused::Disabled { id: id(), by });
    }
    Ok(())
}

impl Catalog {
    /// Whether anybody has said anything of this profile.
    fn knows_profile(&self, name: &str) -> bool {
        let spoken_of = || self.preferences().scope(&Scope::Profile(name.to_owned())).next().is_some();
        self.profile(name).is_some() || spoken_of()
    }

    /// Whether the asker's profile has a level of permission.
    fn has_level(&self, scope: &ViewQuery) -> bool {
        scope.profile.as_ref().and_then(|name| self.profile(name)).is_some_and(|bounds| bounds.permission.is_some())
    }
}

/// What a tool asks as its permission, where that is none of the known levels. In a list such a tool asks nothing, as its protocol has it;
/// a call is another matter.
fn unreadable_level(tool: &ViewTool) -> Option<String> {
    const MEMBER: &str = "required_permission";
    let metadata = tool.tool.metadata.get();
    if tool.tool.facts.required_permission != Permission::default() || !metadata.contains(MEMBER) {
        return None;
    }
    let metadata: Value = serde_json::from_str(metadata).ok()?;
    match metadata.get(MEMBER)? {
        Value::Null => None,
        Value::String(level) if level.is_empty() || level.parse::<Permission>().is_ok() => None,
        other => Some(other.to_string().chars().take(60).collect()),
    }
}
