//! What a user or operator wants of a tool or scenario, within a scope.
//!
//! Each setting is set or inherited on its own: changing one never touches another. Preferences
//! outlive the tools they are about.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use imbl::OrdMap;

use super::name::{InvalidName, PublishedName, ScenarioName, ToolId};
use super::next_step::WithNextStep;
use super::pins::PinMode;
use super::tool::TOOL_NAME_MAX;
use super::tool_override::{InvalidOverride, ParameterOverrides};

/// Where a preference holds. Chat beats profile beats global beats the manifest's default.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// For every client.
    Global,
    /// For clients with this profile (a persona, a role). Written `profile:<name>`.
    Profile(String),
    /// For one conversation. Written `chat:<id>`.
    Chat(String),
}

/// A scope, or with a `*` at its end all scopes that begin like that: `chat:*`.
#[derive(Debug, Clone)]
pub(crate) struct ScopePattern(String);

/// What a preference applies to, widest first. Within a scope the narrower one wins, setting by
/// setting.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PreferenceTarget {
    /// Every tool of a scenario. Written `scenario:<name>`.
    Scenario(ScenarioName),
    /// Every tool of a category, in whatever scenario. Written `category:<id>`.
    Category(String),
    /// Every tool with a tag, in whatever scenario. Written `tag:<tag>`.
    Tag(String),
    /// One tool. Written `tool:<scenario>/<tool>`.
    Tool(ToolId),
}

/// Who made a preference. Where no operator token is set, every caller counts as an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreferenceAuthor {
    /// A caller with the right `operate`, or one who changed it later.
    Operator,
    /// A caller without that right.
    Client,
}

/// Whether a human must approve each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApprovalPolicy {
    /// Must, whatever the manifest says.
    Require,
    /// Need not, whatever the manifest says.
    Skip,
}

/// The settings of one preference; `None` inherits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Whether the tool is in the list.
    pub enabled: Option<bool>,
    /// Whether calls need approval.
    pub approval: Option<ApprovalPolicy>,
    /// The name to publish it under. Only for a single tool.
    pub alias: Option<PublishedName>,
    /// Which tools stay when a limit allows only so many: highest first. 0 by default.
    pub priority: Option<i32>,
    /// Whether the tool stays in the list whatever the query and the limits are. `false` by
    /// default.
    pub pinned: Option<bool>,
    /// What happens with definitions that were not accepted. Only for a scenario, in the global
    /// scope.
    pub pins: Option<PinMode>,
    /// What models read in place of the tool's own description. Only for a single tool.
    pub description: Option<Arc<str>>,
    /// What replaces parts of its parameters. Only for a single tool.
    pub parameters: Option<ParameterOverrides>,
}

/// A change to some settings: `None` leaves a setting as it is, `Some(None)` makes it inherit
/// again, `Some(Some(v))` sets it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SettingsPatch {
    /// See [`Settings::enabled`].
    pub enabled: Option<Option<bool>>,
    /// See [`Settings::approval`].
    pub approval: Option<Option<ApprovalPolicy>>,
    /// See [`Settings::alias`].
    pub alias: Option<Option<PublishedName>>,
    /// See [`Settings::priority`].
    pub priority: Option<Option<i32>>,
    /// See [`Settings::pinned`].
    pub pinned: Option<Option<bool>>,
    /// See [`Settings::pins`].
    pub pins: Option<Option<PinMode>>,
    /// See [`Settings::description`].
    pub description: Option<Option<Arc<str>>>,
    /// See [`Settings::parameters`]. All of them are one setting.
    pub parameters: Option<Option<ParameterOverrides>>,
}

/// All preferences, by scope and target. Empty settings are never kept. Cheap to clone: a changed
/// clone shares what did not change, so the catalogs that are remembered do not hold a copy each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PreferenceSet {
    scopes: OrdMap<Scope, OrdMap<PreferenceTarget, Settings>>,
    /// See [`PreferenceSet::unannotated`].
    unannotated: Vec<String>,
    /// See [`PreferenceSet::assumed_tags`].
    assumed_tags: Vec<String>,
}

// What to do next: the ends of the texts below.
const OF_SCOPE: &str = "use `global`, `profile:<name>` or `chat:<id>`";
const OF_TARGET: &str =
    "use `scenario:<name>`, `tool:<scenario>/<tool>`, `category:<id>` or `tag:<tag>`";
const OF_APPROVAL: &str = "use `require` or `skip`, or leave it out to inherit";
const OF_TOOL: &str = "use `tool:<scenario>/<tool>`";
const OF_SCENARIO: &str = "use `scenario:<name>` in the scope `global`";

/// A scope, target or setting that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPreference {
    /// Not one of the three scopes.
    #[error("unknown scope `{0}`: {OF_SCOPE}")]
    Scope(String),
    /// Not one of the four targets.
    #[error("unknown target `{0}`: {OF_TARGET}")]
    Target(String),
    /// The value is not `require` or `skip`, and not empty.
    #[error("unknown approval `{0}`: {OF_APPROVAL}")]
    Approval(String),
    /// An alias for a target that is not a single tool.
    #[error("an alias needs a single tool, but `{0}` is not one: {OF_TOOL}")]
    AliasTarget(String),
    /// A mode of pins for something else than a whole scenario, or for some of its clients.
    #[error("pins are for a whole scenario and all clients, not for `{0}`: {OF_SCENARIO}")]
    PinsTarget(String),
    /// An override for a target that is not a single tool.
    #[error("a description or parameters need a single tool, but `{0}` is not one: {OF_TOOL}")]
    OverrideTarget(String),
    /// An override that cannot be.
    #[error(transparent)]
    Override(#[from] InvalidOverride),
    /// The name of a tool that no tool can have.
    #[error("no tool is called `{0}...`: names of tools have 1 to {TOOL_NAME_MAX} bytes")]
    Tool(String),
    /// A scope name, category or tag that is empty, too long, or holds control characters.
    #[error(
        "`{0}` cannot be used here: 1 to 200 characters without control characters are allowed"
    )]
    Text(String),
    /// A name inside a target or an alias that cannot be.
    #[error(transparent)]
    Name(#[from] InvalidName),
}

impl WithNextStep for InvalidPreference {
    fn next_step(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Scope(_) => Some(OF_SCOPE.into()),
            Self::Target(_) => Some(OF_TARGET.into()),
            Self::Approval(_) => Some(OF_APPROVAL.into()),
            Self::AliasTarget(_) | Self::OverrideTarget(_) => Some(OF_TOOL.into()),
            Self::Override(error) => error.next_step(),
            Self::PinsTarget(_) => Some(OF_SCENARIO.into()),
            Self::Name(error) => error.next_step(),
            Self::Tool(_) | Self::Text(_) => None,
        }
    }
}

impl Settings {
    /// The names of the settings, as they are written everywhere, in their order.
    pub const NAMES: [&'static str; 8] = [
        "enabled",
        "approval",
        "alias",
        "priority",
        "pinned",
        "pins",
        "description",
        "parameters",
    ];

    /// Whether everything is inherited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether they only say which tools are listed first: without them no tool is called that is
    /// not called with them, or without approval.
    pub fn is_hint_only(&self) -> bool {
        // All settings are named, so that a new one has to be considered here, too.
        let Self {
            enabled,
            approval,
            alias,
            priority: _,
            pinned: _,
            pins,
            description,
            parameters,
        } = self;
        enabled.is_none()
            && approval.is_none()
            && alias.is_none()
            && pins.is_none()
            && description.is_none()
            && parameters.is_none()
    }

    /// These settings with a change applied; settings that the change does not name stay.
    #[must_use]
    pub fn patched(&self, patch: &SettingsPatch) -> Self {
        Self {
            enabled: patch.enabled.unwrap_or(self.enabled),
            approval: patch.approval.unwrap_or(self.approval),
            alias: patch.alias.clone().unwrap_or_else(|| self.alias.clone()),
            priority: patch.priority.unwrap_or(self.priority),
            pinned: patch.pinned.unwrap_or(self.pinned),
            pins: patch.pins.unwrap_or(self.pins),
            description: patch
                .description
                .clone()
                .unwrap_or_else(|| self.description.clone()),
            parameters: patch
                .parameters
                .clone()
                .unwrap_or_else(|| self.parameters.clone()),
        }
    }
}

impl Settings {
    /// These settings, and those of `lower` where these inherit.
    #[must_use]
    pub fn over(&self, lower: &Self) -> Self {
        Self {
            enabled: self.enabled.or(lower.enabled),
            approval: self.approval.or(lower.approval),
            alias: self.alias.clone().or_else(|| lower.alias.clone()),
            priority: self.priority.or(lower.priority),
            pinned: self.pinned.or(lower.pinned),
            pins: self.pins.or(lower.pins),
            description: self
                .description
                .clone()
                .or_else(|| lower.description.clone()),
            parameters: match (&self.parameters, &lower.parameters) {
                (Some(own), Some(below)) => Some(own.over(below)),
                (own, below) => own.as_ref().or(below.as_ref()).cloned(),
            },
        }
    }
}

impl SettingsPatch {
    /// The change that makes every setting inherit again.
    pub fn reset() -> Self {
        Self {
            enabled: Some(None),
            approval: Some(None),
            alias: Some(None),
            priority: Some(None),
            pinned: Some(None),
            pins: Some(None),
            description: Some(None),
            parameters: Some(None),
        }
    }
}

impl PreferenceSet {
    /// The settings of a target in a scope, if any is set.
    pub fn get(&self, scope: &Scope, target: &PreferenceTarget) -> Option<&Settings> {
        self.scopes.get(scope)?.get(target)
    }

    /// Every preference of a scope.
    pub fn scope(&self, scope: &Scope) -> impl Iterator<Item = (&PreferenceTarget, &Settings)> {
        self.scopes.get(scope).into_iter().flatten()
    }

    /// The profiles that have a preference, in order.
    pub fn profiles(&self) -> impl Iterator<Item = &str> {
        self.scopes.keys().filter_map(|scope| match scope {
            Scope::Profile(name) => Some(name.as_str()),
            Scope::Global | Scope::Chat(_) => None,
        })
    }

    /// Every preference, ordered by scope and target.
    pub fn iter(&self) -> impl Iterator<Item = (&Scope, &PreferenceTarget, &Settings)> {
        self.scopes
            .iter()
            .flat_map(|(scope, targets)| targets.iter().map(move |(target, s)| (scope, target, s)))
    }

    /// These preferences, and below them those of `lower`, setting by setting: they hold where
    /// these set nothing in the same scope for the same target.
    #[must_use]
    pub fn over(&self, lower: &Self) -> Self {
        let mut merged = self.clone();
        for (scope, target, settings) in lower.iter() {
            let own = self.get(scope, target).cloned().unwrap_or_default();
            merged.set(scope.clone(), target.clone(), own.over(settings));
        }
        merged
    }

    /// What happens with definitions of a scenario that were not accepted, if a preference says so.
    pub fn pins(&self, scenario: &ScenarioName) -> Option<PinMode> {
        let target = PreferenceTarget::Scenario(scenario.clone());
        self.get(&Scope::Global, &target)?.pins
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.scopes.is_empty()
    }

    /// The tags that a tool of an MCP server without hints counts as having, where a preference for
    /// a tag decides about approval.
    pub fn unannotated(&self) -> &[String] {
        &self.unannotated
    }

    /// The same preferences with these tags for tools without hints.
    #[must_use]
    pub fn with_unannotated(self, tags: &[String]) -> Self {
        Self {
            unannotated: tags.to_vec(),
            ..self
        }
    }

    /// The tags that a tool of an MCP server without hints counts as having, where a preference for
    /// a tag decides about any setting.
    pub fn assumed_tags(&self) -> &[String] {
        &self.assumed_tags
    }

    /// The same preferences with these assumed tags for tools without hints.
    #[must_use]
    pub fn with_assumed_tags(self, tags: &[String]) -> Self {
        Self {
            assumed_tags: tags.to_vec(),
            ..self
        }
    }

    /// Whether both treat tools without hints alike.
    pub fn assumes_like(&self, other: &Self) -> bool {
        self.unannotated == other.unannotated && self.assumed_tags == other.assumed_tags
    }

    /// Replaces the settings of a target in a scope; empty settings remove the preference.
    pub fn set(&mut self, scope: Scope, target: PreferenceTarget, settings: Settings) {
        if settings.is_empty() {
            if let Some(targets) = self.scopes.get_mut(&scope) {
                targets.remove(&target);
                if targets.is_empty() {
                    self.scopes.remove(&scope);
                }
            }
        } else {
            self.scopes
                .entry(scope)
                .or_default()
                .insert(target, settings);
        }
    }
}

impl FromStr for Scope {
    type Err = InvalidPreference;

    fn from_str(text: &str) -> Result<Self, InvalidPreference> {
        match text.split_once(':') {
            None if text == "global" => Ok(Self::Global),
            Some(("profile", name)) => Ok(Self::Profile(free_text(name)?)),
            Some(("chat", id)) => Ok(Self::Chat(free_text(id)?)),
            _ => Err(InvalidPreference::Scope(text.chars().take(120).collect())),
        }
    }
}

impl ScopePattern {
    /// Whether it is meant.
    pub(crate) fn matches(&self, scope: &Scope) -> bool {
        let scope = scope.to_string();
        self.0
            .strip_suffix('*')
            .map_or_else(|| scope == self.0, |beginning| scope.starts_with(beginning))
    }
}

impl FromStr for ScopePattern {
    type Err = InvalidPreference;

    fn from_str(text: &str) -> Result<Self, InvalidPreference> {
        text.parse::<Scope>()?;
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for PreferenceTarget {
    type Err = InvalidPreference;

    fn from_str(text: &str) -> Result<Self, InvalidPreference> {
        match text.split_once(':') {
            Some(("scenario", name)) => Ok(Self::Scenario(name.parse()?)),
            Some(("tool", id)) => Self::tool(id.parse()?),
            Some(("category", id)) => Ok(Self::Category(free_text(id)?)),
            Some(("tag", tag)) => Ok(Self::Tag(free_text(tag)?)),
            _ => Err(InvalidPreference::Target(text.chars().take(120).collect())),
        }
    }
}

impl PreferenceTarget {
    /// One tool. Refuses a name that no tool can have, being longer than [`TOOL_NAME_MAX`]:
    /// preferences are kept for good.
    pub fn tool(id: ToolId) -> Result<Self, InvalidPreference> {
        if id.tool.is_empty() || id.tool.len() > TOOL_NAME_MAX {
            return Err(InvalidPreference::Tool(id.tool.chars().take(120).collect()));
        }
        Ok(Self::Tool(id))
    }
}

impl Settings {
    /// Refuses settings that this target cannot have in this scope.
    ///
    /// # Errors
    ///
    /// The pins of something else than a whole scenario for all clients, and an override of
    /// something else than a single tool.
    pub fn check_place(
        &self,
        scope: &Scope,
        target: &PreferenceTarget,
    ) -> Result<(), InvalidPreference> {
        let may_have_pins = matches!(
            (scope, target),
            (Scope::Global, PreferenceTarget::Scenario(_))
        );
        if self.pins.is_some() && !may_have_pins {
            return Err(InvalidPreference::PinsTarget(format!("{scope} {target}")));
        }
        let overrides = self.description.is_some() || self.parameters.is_some();
        if overrides && !matches!(target, PreferenceTarget::Tool(_)) {
            return Err(InvalidPreference::OverrideTarget(target.to_string()));
        }
        Ok(())
    }
}

impl FromStr for ApprovalPolicy {
    type Err = InvalidPreference;

    fn from_str(text: &str) -> Result<Self, InvalidPreference> {
        match text {
            "require" => Ok(Self::Require),
            "skip" => Ok(Self::Skip),
            _ => Err(InvalidPreference::Approval(
                text.chars().take(120).collect(),
            )),
        }
    }
}

fn free_text(text: &str) -> Result<String, InvalidPreference> {
    let legal =
        !text.is_empty() && text.chars().count() <= 200 && !text.chars().any(char::is_control);
    if legal {
        Ok(text.to_owned())
    } else {
        Err(InvalidPreference::Text(text.chars().take(120).collect()))
    }
}

impl ApprovalPolicy {
    /// The setting as it is written in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Require => "require",
            Self::Skip => "skip",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("global"),
            Self::Profile(name) => write!(f, "profile:{name}"),
            Self::Chat(id) => write!(f, "chat:{id}"),
        }
    }
}

impl fmt::Display for PreferenceTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scenario(name) => write!(f, "scenario:{name}"),
            Self::Category(id) => write!(f, "category:{id}"),
            Self::Tag(tag) => write!(f, "tag:{tag}"),
            Self::Tool(id) => write!(f, "tool:{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_and_targets_read_what_they_write() {
        for text in ["global", "profile:coder", "chat:7f:2"] {
            assert_eq!(text.parse::<Scope>().unwrap().to_string(), text);
        }
        for text in [
            "scenario:files",
            "tool:files/read",
            "category:agent lifecycle",
            "tag:a:b",
        ] {
            assert_eq!(text.parse::<PreferenceTarget>().unwrap().to_string(), text);
        }
        for text in ["", "user", "chat:", "profile", "global:x"] {
            assert!(text.parse::<Scope>().is_err(), "{text}");
        }
        let long = format!("tool:files/{}", "x".repeat(TOOL_NAME_MAX + 1));
        for text in [
            "",
            "files",
            "tool:files",
            "tool:files/",
            "scenario:",
            "scenario:a/b",
            "group:x",
            &long,
        ] {
            assert!(text.parse::<PreferenceTarget>().is_err(), "{text}");
        }
    }

    #[test]
    fn empty_settings_remove_the_preference() {
        let scope = Scope::Global;
        let target = "tag:x".parse::<PreferenceTarget>().unwrap();
        let mut set = PreferenceSet::default();
        set.set(
            scope.clone(),
            target.clone(),
            Settings {
                enabled: Some(false),
                ..Settings::default()
            },
        );
        assert_eq!(set.get(&scope, &target).unwrap().enabled, Some(false));
        set.set(scope, target, Settings::default());
        assert_eq!(set, PreferenceSet::default());
    }

    #[test]
    fn lower_preferences_hold_where_the_upper_ones_set_nothing() {
        let target: PreferenceTarget = "tool:disks/wipe".parse().unwrap();
        let mut upper = PreferenceSet::default();
        let mut lower = PreferenceSet::default();
        let off = Settings {
            enabled: Some(false),
            approval: Some(ApprovalPolicy::Require),
            ..Settings::default()
        };
        lower.set(Scope::Global, target.clone(), off.clone());
        assert_eq!(upper.over(&lower), lower);
        upper.set(
            Scope::Global,
            target.clone(),
            Settings {
                enabled: Some(true),
                ..Settings::default()
            },
        );
        let merged = upper.over(&lower);
        assert_eq!(
            merged.get(&Scope::Global, &target),
            Some(&Settings {
                enabled: Some(true),
                ..off
            })
        );
        assert_eq!(merged.iter().count(), 1);
    }
}
