//! `[modules]` and `[module_settings]`: the scenarios that speak the module protocol, as the
//! original's settings name them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use url::Url;

use super::address::{address, without_route};
use super::path::{KeyPath, PathStep};
use super::rules::{bearer, scenario_name};
use super::secret_value::FOLLOWED;
use super::shape::Shape;
use super::units::ValueError;
use super::value_reader::ValueReader;
use super::{Config, StaticScenario};
use crate::model::{HttpTarget, ScenarioName, SecretSource};
use crate::protocols::module;

/// A token of modules; `module_settings.tokens` has one of these for each name.
pub(super) const TOKEN: Shape = FOLLOWED;

/// The id of the protocol that modules speak.
pub(crate) const MODULE: &str = module::ID;

/// The modules, and how modules are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModulesConfig {
    /// `[modules]`: where each answers, by name. No name is one of `[[scenarios]]` too.
    pub services: BTreeMap<ScenarioName, Url>,
    /// `slow_modules`: those whose tools may take `slow_timeout`.
    pub slow: BTreeSet<ScenarioName>,
    /// `tool_execution_timeout`: for one call of a tool of a slow module.
    pub slow_timeout: Duration,
    /// `default_timeout`: the same of all other modules.
    pub timeout: Duration,
    /// `token`: sent as bearer token to each module that has none of its own.
    pub token: Option<SecretSource>,
    /// `tokens`: those of single modules.
    pub tokens: BTreeMap<ScenarioName, SecretSource>,
}

impl Default for ModulesConfig {
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

impl ModulesConfig {
    /// How long one call of a tool of this module may take.
    pub fn timeout_of(&self, module: &ScenarioName) -> Duration {
        if self.slow.contains(module) {
            self.slow_timeout
        } else {
            self.timeout
        }
    }

    /// Where the bearer token for this module is.
    pub fn token_of(&self, module: &ScenarioName) -> Option<&SecretSource> {
        self.tokens.get(module).or(self.token.as_ref())
    }
}

impl Config {
    /// Every scenario at a known address: those of `[[scenarios]]`, then those of `[modules]`.
    pub fn static_scenarios(&self) -> Vec<StaticScenario> {
        let modules = self
            .modules
            .services
            .iter()
            .map(|(name, url)| StaticScenario {
                name: name.clone(),
                target: HttpTarget {
                    may_use_proxy: true,
                    ..HttpTarget::at(url.clone())
                }
                .into(),
                protocol: Some(MODULE.to_owned()),
                sleep_after: None,
            });
        self.scenarios.iter().cloned().chain(modules).collect()
    }
}

/// Whether a program that prints a token stands at this path.
pub(super) fn names_program(path: &KeyPath) -> bool {
    let [
        PathStep::Key(section),
        PathStep::Key(key),
        ..,
        PathStep::Key(last),
    ] = path.steps()
    else {
        return false;
    };
    section == "module_settings"
        && last == "command"
        && (key == "token" || key == "tokens" && path.steps().len() > 3)
}

/// Reads the map of modules.
pub(super) fn services(written: &mut ValueReader<'_>, config: &mut Config) {
    written.each_key(|text, mut at| {
        let mut url: Option<Url> = None;
        at.text(&mut url, address);
        match scenario_name(text) {
            Err(wrong) => at.reject(wrong),
            Ok(name) => match config
                .scenarios
                .iter()
                .position(|scenario| scenario.name == name)
            {
                Some(first) => {
                    let message = format!("`{name}` is already the name of scenarios[{first}]");
                    at.reject(ValueError::new(
                        message,
                        "give each scenario a name of its own",
                    ));
                }
                None => config
                    .modules
                    .services
                    .extend(url.map(|url| (name, without_route(url)))),
            },
        }
    });
}

/// Reads the token of all modules.
pub(super) fn token(written: &mut ValueReader<'_>, config: &mut Config) {
    config.modules.token = written.secret_source(bearer);
}

/// Reads the tokens of single modules.
pub(super) fn tokens(written: &mut ValueReader<'_>, config: &mut Config) {
    written.each_key(|text, mut at| {
        let token = at.secret_source(bearer);
        match scenario_name(text) {
            Err(wrong) => at.reject(wrong),
            Ok(name) if !is_module(&name, config) => {
                let hint = "name it in `[modules]`, or take its token out";
                at.reject(ValueError::new(
                    format!("there is no module called `{name}`"),
                    hint,
                ));
            }
            Ok(name) => config
                .modules
                .tokens
                .extend(token.map(|token| (name, token))),
        }
    });
}

/// Whether a scenario of this name is configured that speaks the module protocol.
fn is_module(name: &ScenarioName, config: &Config) -> bool {
    let is_module = |scenario: &StaticScenario| {
        scenario.name == *name && scenario.protocol.as_deref() == Some(MODULE)
    };
    config.modules.services.contains_key(name) || config.scenarios.iter().any(is_module)
}
