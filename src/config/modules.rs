//! `[modules]` and `[module_settings]`: the scenarios that speak the module protocol, as the original's settings name them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use url::Url;

use super::address::address;
use super::check::{Section, scenario_name};
use super::units::{Wrong, positive};
use super::{Config, StaticScenario, raw};
use crate::model::{ScenarioName, Secret};
use crate::protocols::module;

/// The id of the protocol that modules speak.
pub(crate) const MODULE: &str = module::ID;

/// The modules, and how modules are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modules {
    /// `[modules]`: where each answers, by name. No name is one of `[[scenarios]]` too.
    pub services: BTreeMap<ScenarioName, Url>,
    /// `slow_modules`: those whose tools may take `slow_timeout`.
    pub slow: BTreeSet<ScenarioName>,
    /// `tool_execution_timeout`: for one call of a tool of a slow module.
    pub slow_timeout: Duration,
    /// `default_timeout`: the same of all other modules.
    pub timeout: Duration,
    /// `token`: sent as bearer token to each module that has none of its own.
    pub token: Option<Secret>,
    /// `tokens`: those of single modules.
    pub tokens: BTreeMap<ScenarioName, Secret>,
}

impl Default for Modules {
    fn default() -> Self {
        Self {
            services: BTreeMap::new(),
            slow: BTreeSet::new(),
            slow_timeout: Duration::from_secs(120),
            timeout: Duration::from_secs(30),
            token: None,
            tokens: BTreeMap::new(),
        }
    }
}

impl Modules {
    /// How long one call of a tool of this module may take.
    pub fn timeout_of(&self, module: &ScenarioName) -> Duration {
        if self.slow.contains(module) { self.slow_timeout } else { self.timeout }
    }

    /// What this module is to be shown.
    pub fn token_of(&self, module: &ScenarioName) -> Option<&Secret> {
        self.tokens.get(module).or(self.token.as_ref())
    }
}

impl Config {
    /// Every scenario at a known address: those of `[[scenarios]]`, then those of `[modules]`.
    pub fn at_known_addresses(&self) -> Vec<StaticScenario> {
        let modules = self.modules.services.iter().map(|(name, url)| StaticScenario {
            name: name.clone(),
            url: url.clone(),
            protocol: Some(MODULE.to_owned()),
        });
        self.scenarios.iter().cloned().chain(modules).collect()
    }
}

/// Reads the map of modules.
pub(super) fn services(
    raw: BTreeMap<String, String>,
    scenarios: &[StaticScenario],
    modules: &mut Modules,
    mut at: Section<'_>,
) {
    for (text, url) in raw {
        let (name, mut read) = (scenario_name(&text), None);
        at.set_text(&text, Some(url), &mut read, |text| address(text).map(Some));
        match name {
            Err(wrong) => at.complain(&text, wrong),
            Ok(name) => match scenarios.iter().position(|scenario| scenario.name == name) {
                Some(first) => {
                    let message = format!("`{name}` is already the name of scenarios[{first}]");
                    at.complain(&text, Wrong::new(message, "give each scenario a name of its own"));
                }
                None => modules.services.extend(read.map(|url| (name, url))),
            },
        }
    }
}

/// Reads how modules are called.
pub(super) fn settings(
    raw: raw::ModuleSettings,
    scenarios: &[StaticScenario],
    modules: &mut Modules,
    mut at: Section<'_>,
) {
    // Those that are not configured are no slip: the original's list names every module that it ever had.
    let mut slow = Vec::new();
    at.set_list("slow_modules", raw.slow_modules.map(words), &mut slow, scenario_name);
    modules.slow = slow.into_iter().collect();
    at.set_text("tool_execution_timeout", raw.tool_execution_timeout, &mut modules.slow_timeout, positive);
    at.set_text("default_timeout", raw.default_timeout, &mut modules.timeout, positive);
    at.set("token", raw.token, &mut modules.token, |token| bearer(token).map(Some));
    let mut tokens = Section { path: at.path.key("tokens"), complaints: at.complaints };
    for (text, secret) in raw.tokens {
        let mut token = None;
        tokens.set(&text, Some(secret), &mut token, |token| bearer(token).map(Some));
        let spoken = |name: &ScenarioName| {
            let speaks = |scenario: &StaticScenario| scenario.protocol.as_deref() == Some(MODULE);
            modules.services.contains_key(name)
                || scenarios.iter().any(|scenario| scenario.name == *name && speaks(scenario))
        };
        match scenario_name(&text) {
            Err(wrong) => tokens.complain(&text, wrong),
            Ok(name) if !spoken(&name) => {
                let hint = "name it in `[modules]`, or take its token out";
                tokens.complain(&text, Wrong::new(format!("there is no module called `{name}`"), hint));
            }
            Ok(name) => modules.tokens.extend(token.map(|token| (name, token))),
        }
    }
}

/// The texts of a list, also of one that is written as one text: with commas between, or as a list in JSON.
pub(super) fn words(raw: raw::Words) -> Vec<String> {
    match raw {
        raw::Words::List(list) => list,
        raw::Words::Text(text) => serde_json::from_str(&text).unwrap_or_else(|_| {
            text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        }),
    }
}

/// A token that a header can hold (RFC 6750 section 2.1, and whatever else is visible).
pub(super) fn bearer(raw: raw::Secret) -> Result<Secret, Wrong> {
    let raw::Secret(token) = raw;
    if !token.expose().is_empty() && token.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(token);
    }
    Err(Wrong::new("it can be no bearer token", "write visible ASCII characters without blanks"))
}
