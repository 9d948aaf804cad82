//! Applies preferences to a tool, setting by setting.
//!
//! The order of precedence, for each setting on its own:
//!
//! 1. the narrower scope: chat, then profile, then global, then the manifest's default;
//! 2. within a scope the narrower target: tool, then tag, then category, then scenario (an alias
//!    only from a tool target);
//! 3. several tags of one tool that disagree within a scope: the safer value, which is
//!    `enabled = false`, `approval = require`, the lowest priority and `pinned = false`; tags that
//!    agree: the first of them bytewise is named as the source.
//!
//! A tool of an MCP server that gives no hint of what it does counts as having the tags of
//! `calls.unannotated`, for `approval` alone, and those of `permissions.unannotated` for every
//! setting.
//!
//! Never looks at names or at whether a scenario is published.

use std::sync::Arc;

use crate::model::{
    ApprovalPolicy, Effective, ParameterOverrides, PreferenceSet, PreferenceTarget, Provenance,
    PublishedName, ScenarioName, Scope, Settings, Tool, ToolId,
};
use imbl::OrdMap;

/// One preference. It is shared as the provenance of a value.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    /// Where it stands.
    pub(super) place: Arc<(Scope, PreferenceTarget)>,
    /// What it sets.
    pub(super) settings: Settings,
}

/// The preferences of one scope, by target. A changed clone shares the rules that did not change.
#[derive(Debug, Clone, Default)]
pub(super) struct RuleLayer {
    scenarios: OrdMap<ScenarioName, Rule>,
    categories: OrdMap<String, Rule>,
    tags: OrdMap<String, Rule>,
    tools: OrdMap<ToolId, Rule>,
}

/// The scopes that apply to a client, narrowest first.
#[derive(Debug, Clone, Default)]
pub(super) struct RuleStack {
    pub(super) layers: Vec<Arc<RuleLayer>>,
    /// The tags that tools without hints count as having when it is about approval.
    pub(super) unannotated: Arc<[String]>,
    /// The tags that tools without hints count as having for every setting.
    pub(super) assumed_tags: Arc<[String]>,
}

/// How narrow the place of a rule is: smaller ranks win. Rules of equal rank are tags of one scope.
pub(super) type Rank = usize;
/// The rank of a rule for a tag within its layer.
const TAG: Rank = 1;

/// The rule that decides one setting, and its value.
#[derive(Debug)]
pub(super) struct WinningRule<'a, T> {
    rank: Rank,
    /// The active value.
    pub(super) value: T,
    /// The source of the value.
    pub(super) rule: &'a Rule,
}

/// The rules that decide each setting of one tool; `None` where the manifest decides.
#[derive(Debug)]
pub(super) struct WinningRules<'a> {
    pub(super) enabled: Option<WinningRule<'a, bool>>,
    pub(super) approval: Option<WinningRule<'a, ApprovalPolicy>>,
    pub(super) priority: Option<WinningRule<'a, i32>>,
    pub(super) pinned: Option<WinningRule<'a, bool>>,
}

impl RuleLayer {
    /// The preferences of `scope`.
    pub(super) fn for_scope(preferences: &PreferenceSet, scope: &Scope) -> Self {
        let mut layer = Self::default();
        for (target, settings) in preferences.scope(scope) {
            layer.set(scope, target, Some(settings));
        }
        layer
    }

    /// Sets or removes the rule for a target.
    fn set(&mut self, scope: &Scope, target: &PreferenceTarget, settings: Option<&Settings>) {
        let rule = settings.map(|settings| Rule {
            place: Arc::new((scope.clone(), target.clone())),
            settings: settings.clone(),
        });
        match target {
            PreferenceTarget::Scenario(name) => set_rule(&mut self.scenarios, name, rule),
            PreferenceTarget::Category(id) => set_rule(&mut self.categories, id, rule),
            PreferenceTarget::Tag(tag) => set_rule(&mut self.tags, tag, rule),
            PreferenceTarget::Tool(id) => set_rule(&mut self.tools, id, rule),
        }
    }

    /// Whether the layer has no rules.
    pub(super) fn is_empty(&self) -> bool {
        self.rules().next().is_none()
    }

    /// Every rule, in a fixed order.
    pub(super) fn rules(&self) -> impl Iterator<Item = &Rule> {
        let wide = self.scenarios.values().chain(self.categories.values());
        wide.chain(self.tags.values()).chain(self.tools.values())
    }

    /// Whether a rule may match tools of any scenario.
    pub(super) fn spans_scenarios(&self) -> bool {
        !(self.categories.is_empty() && self.tags.is_empty())
    }

    /// The scenarios that rules name.
    pub(super) fn scenarios(&self) -> impl Iterator<Item = &ScenarioName> {
        self.scenarios
            .keys()
            .chain(self.tools.keys().map(|id| &id.scenario))
    }

    /// The tools to which the layer gives an alias.
    pub(super) fn aliased(&self) -> impl Iterator<Item = &ToolId> {
        self.tools
            .iter()
            .filter(|(_, rule)| rule.settings.alias.is_some())
            .map(|(id, _)| id)
    }

    /// The rules that match a tool, narrowest first, with their rank within the layer (0 to 3).
    fn voices<'a>(&'a self, id: &ToolId, tool: &Tool) -> impl Iterator<Item = (Rank, &'a Rule)> {
        let tags = tool
            .facts
            .tags
            .iter()
            .filter_map(|tag| self.tags.get(tag.as_ref()));
        let category = tool
            .category
            .as_deref()
            .and_then(|category| self.categories.get(category));
        let narrow = self
            .tools
            .get(id)
            .map(|rule| (0, rule))
            .into_iter()
            .chain(tags.map(|rule| (TAG, rule)));
        let wide = category.map(|rule| (2, rule)).into_iter();
        narrow
            .chain(wide)
            .chain(self.scenarios.get(&id.scenario).map(|rule| (3, rule)))
    }
}

impl RuleStack {
    /// The global scope alone.
    pub(super) fn global(preferences: &PreferenceSet) -> Self {
        Self::of_global(
            RuleLayer::for_scope(preferences, &Scope::Global),
            preferences,
        )
    }

    /// This stack of the global scope after these targets changed in it.
    pub(super) fn changed_global(
        &self,
        preferences: &PreferenceSet,
        targets: &[&PreferenceTarget],
    ) -> Self {
        let mut layer = self
            .layers
            .first()
            .map(|layer| RuleLayer::clone(layer))
            .unwrap_or_default();
        for target in targets {
            layer.set(
                &Scope::Global,
                target,
                preferences.get(&Scope::Global, target),
            );
        }
        Self::of_global(layer, preferences)
    }

    fn of_global(layer: RuleLayer, preferences: &PreferenceSet) -> Self {
        let layers = vec![Arc::new(layer)];
        let assumed_tags = preferences.assumed_tags().into();
        Self {
            layers,
            unannotated: preferences.unannotated().into(),
            assumed_tags,
        }
    }

    /// Every rule that matches a tool, narrowest first.
    pub(super) fn voices<'a>(
        &'a self,
        id: &ToolId,
        tool: &Tool,
    ) -> impl Iterator<Item = (Rank, &'a Rule)> {
        let layers = self.layers.iter().enumerate();
        let own = layers.flat_map(move |(depth, layer)| {
            layer
                .voices(id, tool)
                .map(move |(rank, rule)| (depth * 4 + rank, rule))
        });
        own.chain(self.of_tags(tool, &self.assumed_tags))
    }

    /// The rules for tags that a tool without hints counts as having, narrowest first. They decide
    /// about its approval only.
    pub(super) fn assumed<'a>(&'a self, tool: &Tool) -> impl Iterator<Item = (Rank, &'a Rule)> {
        let further = |(_, rule): &(Rank, &'a Rule)| match &rule.place.1 {
            PreferenceTarget::Tag(tag) => !self.assumed_tags.contains(tag),
            _ => true,
        };
        self.of_tags(tool, &self.unannotated).filter(further)
    }

    /// The rules for these tags, if the tool has no hints.
    fn of_tags<'a>(
        &'a self,
        tool: &Tool,
        tags: &'a [String],
    ) -> impl Iterator<Item = (Rank, &'a Rule)> {
        let is_meant = tool.facts.unannotated;
        let layers = self.layers.iter().enumerate().filter(move |_| is_meant);
        layers.flat_map(move |(depth, layer)| {
            tags.iter()
                .filter_map(move |tag| Some((depth * 4 + TAG, layer.tags.get(tag)?)))
        })
    }

    /// The rules that decide each setting of a tool.
    pub(super) fn choices<'a>(&'a self, id: &ToolId, tool: &Tool) -> WinningRules<'a> {
        let mut choices = WinningRules {
            enabled: None,
            approval: None,
            priority: None,
            pinned: None,
        };
        for (rank, rule) in self.voices(id, tool) {
            let Settings {
                enabled,
                approval,
                priority,
                pinned,
                ..
            } = rule.settings;
            // `false` and `Require` come first in their orders, so everywhere the smaller value is
            // the safer one.
            consider(&mut choices.enabled, rank, enabled, rule);
            consider(&mut choices.approval, rank, approval, rule);
            consider(&mut choices.priority, rank, priority, rule);
            consider(&mut choices.pinned, rank, pinned, rule);
        }
        for (rank, rule) in self.assumed(tool) {
            consider(&mut choices.approval, rank, rule.settings.approval, rule);
        }
        choices
    }

    /// The active settings of a tool.
    pub(super) fn effective(&self, id: &ToolId, tool: &Tool) -> Effective {
        let choices = self.choices(id, tool);
        Effective {
            enabled: choices
                .enabled
                .as_ref()
                .map_or(tool.facts.enabled_by_default, |choice| choice.value),
            enabled_source: provenance(choices.enabled.as_ref()),
            requires_approval: match &choices.approval {
                Some(choice) => choice.value == ApprovalPolicy::Require,
                None => tool.facts.requires_approval,
            },
            approval_source: provenance(choices.approval.as_ref()),
            priority: choices.priority.map_or(0, |choice| choice.value),
            pinned: choices.pinned.is_some_and(|choice| choice.value),
        }
    }

    /// The active alias of a tool, and its source.
    pub(super) fn alias(&self, id: &ToolId) -> Option<(&PublishedName, &Rule)> {
        self.layers.iter().find_map(|layer| {
            let rule = layer.tools.get(id)?;
            Some((rule.settings.alias.as_ref()?, rule))
        })
    }
}

/// What preferences replace of one tool.
#[derive(Debug, Default)]
pub(super) struct ActiveOverrides<'a> {
    /// The description, and where it is from.
    pub(super) description: Option<(&'a Arc<str>, &'a Rule)>,
    /// The narrowest of the preferences that replace parts of parameters, and all of them merged.
    pub(super) parameters: Option<(ParameterOverrides, &'a Rule)>,
}

impl RuleStack {
    /// What replaces parts of a tool. Each part of each parameter is decided by the narrowest
    /// scope that sets it.
    pub(super) fn overrides(&self, id: &ToolId) -> ActiveOverrides<'_> {
        let mut active = ActiveOverrides::default();
        for layer in &self.layers {
            let Some(rule) = layer.tools.get(id) else {
                continue;
            };
            if active.description.is_none() {
                active.description = rule.settings.description.as_ref().map(|text| (text, rule));
            }
            if let Some(parameters) = &rule.settings.parameters {
                active.parameters = Some(match active.parameters.take() {
                    Some((narrower, rule)) => (narrower.over(parameters), rule),
                    None => (parameters.clone(), rule),
                });
            }
        }
        active
    }
}

/// Sets or removes one rule.
fn set_rule<K: Ord + Clone>(rules: &mut OrdMap<K, Rule>, key: &K, rule: Option<Rule>) {
    match rule {
        Some(rule) => rules.insert(key.clone(), rule),
        None => rules.remove(key),
    };
}

/// Applies a rule to one setting. The module's head has the order of precedence.
fn consider<'a, T: Copy + Ord>(
    best: &mut Option<WinningRule<'a, T>>,
    rank: Rank,
    value: Option<T>,
    rule: &'a Rule,
) {
    let Some(value) = value else { return };
    let key = |rank: Rank, value: T, rule: &'a Rule| (rank, value, &rule.place.1);
    if best
        .as_ref()
        .is_none_or(|old| key(rank, value, rule) < key(old.rank, old.value, old.rule))
    {
        *best = Some(WinningRule { rank, value, rule });
    }
}

fn provenance<T>(choice: Option<&WinningRule<'_, T>>) -> Provenance {
    choice.map_or(Provenance::Manifest, |choice| {
        Provenance::Preference(Arc::clone(&choice.rule.place))
    })
}
