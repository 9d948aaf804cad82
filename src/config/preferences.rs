//! `[[preferences]]`: preferences that the configuration file sets. They survive whatever becomes
//! of the stored state.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::rules::pin_mode;
use super::shape::Shape;
use super::units::ValueError;
use super::value_reader::ValueReader;
use super::{CallsConfig, Config};
use crate::model::{
    ApprovalPolicy, InvalidOverride, ParameterOverrides, PreferenceSet, PreferenceTarget,
    PublishedName, Scope, Settings, WithNextStep as _, override_description,
};

/// The shape of the list.
pub(super) const SHAPE: Shape = Shape::List(&Shape::Table(&[
    ("scope", Shape::Text),
    ("target", Shape::Text),
    ("enabled", Shape::Switch),
    ("approval", Shape::Text),
    ("alias", Shape::Text),
    ("priority", Shape::Integer),
    ("pinned", Shape::Switch),
    ("description", Shape::Text),
    ("parameters", Shape::Text),
    ("pins", Shape::Text),
]));

impl Config {
    /// The stored preferences, below them those of the configuration, and below these the approval
    /// that `calls.require_approval` wants.
    pub(crate) fn effective_preferences(&self, stored: &Arc<PreferenceSet>) -> Arc<PreferenceSet> {
        let CallsConfig {
            require_approval,
            unannotated,
            ..
        } = &self.calls;
        let is_plain =
            require_approval.is_empty() && unannotated.is_empty() && self.assumed_tags.is_empty();
        if self.preferences.is_empty() && is_plain {
            return Arc::clone(stored);
        }
        let mut required = PreferenceSet::default();
        for tag in require_approval {
            let settings = Settings {
                approval: Some(ApprovalPolicy::Require),
                ..Settings::default()
            };
            required.set(Scope::Global, PreferenceTarget::Tag(tag.clone()), settings);
        }
        let all = stored.over(&self.preferences).over(&required);
        Arc::new(
            all.with_unannotated(unannotated)
                .with_assumed_tags(&self.assumed_tags),
        )
    }

    /// Whether two configurations have the same effect on preferences.
    pub(crate) fn prefers_like(&self, other: &Self) -> bool {
        let of_calls = |config: &Self| {
            (
                config.calls.require_approval.clone(),
                config.calls.unannotated.clone(),
            )
        };
        self.preferences == other.preferences
            && self.assumed_tags == other.assumed_tags
            && of_calls(self) == of_calls(other)
    }
}

/// A tag of tools, such as `hint:destructive`.
pub(super) fn tag(text: &str) -> Result<String, ValueError> {
    match format!("tag:{text}").parse::<PreferenceTarget>() {
        Ok(PreferenceTarget::Tag(tag)) => Ok(tag),
        Ok(_) | Err(_) => Err(ValueError::new(
            format!("{text:?} is not a tag"),
            "write 1 to 200 characters without control characters, such as \"hint:destructive\"",
        )),
    }
}

/// An override that cannot be, at its key.
fn of_override(wrong: &InvalidOverride) -> ValueError {
    let next = wrong.next_step().unwrap_or_default();
    ValueError::new(wrong.what_is_wrong(), next)
}

/// An override, which needs a single tool.
fn of_tool<T>(is_tool: bool, value: T) -> Result<T, ValueError> {
    if is_tool {
        Ok(value)
    } else {
        Err(ValueError::new(
            "an override needs a single tool",
            "write `target = \"tool:SCENARIO/TOOL\"`",
        ))
    }
}

/// Reads the preferences, and takes those that keep the rules.
pub(super) fn read(written: &mut ValueReader<'_>, config: &mut Config) {
    let mut seen = BTreeSet::new();
    written.each(|_, mut at| {
        let mut scope: Scope = Scope::Global;
        let mut target: Option<PreferenceTarget> = None;
        let missing = "this preference has no target";
        at.require(
            "target",
            ValueError::new(missing, "add `target = \"tool:SCENARIO/TOOL\"` to it"),
        );
        at.key("scope").text(&mut scope, |text| {
            let hint =
                "write \"global\", \"profile:NAME\" or \"chat:ID\", or leave it out for \"global\"";
            text.parse::<Scope>()
                .map_err(|wrong| ValueError::new(wrong.to_string(), hint))
        });
        at.key("target").text(&mut target, |text| {
            let hint =
                "write \"scenario:NAME\", \"category:ID\", \"tag:TAG\" or \"tool:SCENARIO/TOOL\"";
            text.parse::<PreferenceTarget>()
                .map_err(|wrong| ValueError::new(wrong.to_string(), hint))
        });
        let settings = settings(&mut at, &scope, target.as_ref());
        let Some(target) = target else { return };
        if settings.is_empty() {
            // What was written and is wrong was complained of.
            if Settings::NAMES
                .iter()
                .any(|key| at.key(key).value.is_some())
            {
                return;
            }
            let hint = format!("add one of `{}` to it", Settings::NAMES.join("`, `"));
            at.reject(ValueError::new("this preference sets nothing", hint));
        } else if !seen.insert((scope.clone(), target.clone())) {
            let message = format!("`{target}` has a preference in the scope `{scope}` already");
            at.key("target")
                .reject(ValueError::new(message, "make one preference of the two"));
        } else {
            // The entry of the scenario may set its pins.
            let own = config.preferences.get(&scope, &target);
            let settings = own.map_or_else(|| settings.clone(), |own| settings.over(own));
            config.preferences.set(scope, target, settings);
        }
    });
}

fn settings(
    at: &mut ValueReader<'_>,
    scope: &Scope,
    target: Option<&PreferenceTarget>,
) -> Settings {
    let mut settings = Settings::default();
    at.key("pins").text(&mut settings.pins, |text| {
        let mode = pin_mode(text)?;
        let placed = Settings {
            pins: Some(mode),
            ..Settings::default()
        };
        match target.map(|target| placed.check_place(scope, target)) {
            Some(Err(wrong)) => Err(ValueError::new(
                wrong.to_string(),
                "write `scope = \"global\"` and `target = \"scenario:NAME\"`",
            )),
            Some(Ok(())) | None => Ok(mode),
        }
    });
    let is_tool = matches!(target, Some(PreferenceTarget::Tool(_)));
    at.key("description")
        .text(&mut settings.description, |text| {
            override_description(text)
                .map_err(|wrong| of_override(&wrong))
                .and_then(|text| of_tool(is_tool, text))
        });
    at.key("parameters").text(&mut settings.parameters, |text| {
        ParameterOverrides::parse(text)
            .map_err(|wrong| of_override(&wrong))
            .and_then(|parameters| of_tool(is_tool, parameters))
    });
    at.key("enabled").optional_switch(&mut settings.enabled);
    at.key("pinned").optional_switch(&mut settings.pinned);
    at.key("priority").integer(&mut settings.priority);
    at.key("approval").text(&mut settings.approval, |text| {
        let parsed = text.parse::<ApprovalPolicy>();
        parsed.map_err(|wrong| ValueError::new(wrong.to_string(), "write \"require\" or \"skip\""))
    });
    at.key("alias")
        .text(&mut settings.alias, |text| match target {
            Some(PreferenceTarget::Tool(_)) => PublishedName::alias(text).map_err(|wrong| {
                ValueError::new(wrong.to_string(), "use letters, digits, `_` and `-`")
            }),
            _ => Err(ValueError::new(
                "an alias needs a single tool",
                "write `target = \"tool:SCENARIO/TOOL\"`",
            )),
        });
    settings
}
