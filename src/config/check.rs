//! From what was written to what was decided: every rule that a value must keep, beyond its shape.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::address::address;
use super::key::KeyPath;
use super::origin::masked;
use super::raw::{self, Raw};
use super::units::{Wrong, count, duration, positive, size};
use super::web::{host, web_origin};
use super::{
    Cache, Calls, Config, Discovery, Environment, Events, HealthRules, Mdns, MdnsTrust, ProtocolRules, Refresh, Server,
    State, StaticScenario,
};
use super::{modules, profiles};
use crate::catalog::NamingStyle;
use crate::model::{Accept, RenamedKey, ScenarioName, Secret};
use crate::protocols::PROTOCOLS;

/// More than anybody needs, and far below what makes a semaphore or a table of this size fail.
const MOST_AT_ONCE: u64 = 10_000;
const MOST_SCENARIOS: u64 = 1_000_000;
const MOST_EVENTS: u64 = 1_000_000;
const MOST_TOOLS: u64 = 1_000_000;
/// Characters of a token that makes its bearer an operator.
const SHORTEST_TOKEN: usize = 16;
/// Bodies are held in memory whole.
const LARGEST_BODY: u64 = 1024 * 1024 * 1024;

/// A rule that a value breaks.
#[derive(Debug)]
pub(super) struct Complaint {
    /// The value.
    pub(super) path: KeyPath,
    /// The other value, if the rule is about two.
    pub(super) other: Option<KeyPath>,
    /// What is wrong with it.
    pub(super) wrong: Wrong,
}

/// Turns a text into an absolute path, for the key it stands at.
pub(super) type ToPath<'a> = &'a dyn Fn(&KeyPath, &str) -> Option<PathBuf>;

/// Puts what was written over `config` wherever it keeps the rules, and complains of the rest.
pub(super) fn apply(raw: Raw, config: &mut Config, to_path: ToPath<'_>) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let all = &mut complaints;
    server(raw.server, &mut config.server, Section::at("server", all));
    config.scenarios = scenarios(raw.scenarios, &mut Section::at("scenarios", all));
    modules::services(raw.modules, &config.scenarios, &mut config.modules, Section::at("modules", all));
    modules::settings(raw.module_settings, &config.scenarios, &mut config.modules, Section::at("module_settings", all));
    Section::at("permissions", all).set_text(
        "unknown",
        raw.permissions.unknown,
        &mut config.unknown_level,
        profiles::unknown_level,
    );
    config.profiles = profiles::read(raw.profiles, config.unknown_level, &mut Section::at("profiles", all));
    vrooli(raw.discovery.vrooli, &mut config.discovery, to_path, Section::at("discovery.vrooli", all));
    environment(
        &raw.discovery.environment,
        &mut config.discovery.environment,
        Section::at("discovery.environment", all),
    );
    mdns(raw.discovery.mdns, &mut config.discovery.mdns, Section::at("discovery.mdns", all));
    refresh(raw.refresh, &mut config.refresh, Section::at("refresh", all));
    cache(raw.cache, &mut config.cache, Section::at("cache", all));
    protocol(raw.protocol, &mut config.protocol, Section::at("protocol", all));
    health(raw.health, &mut config.health, Section::at("health", all));
    Section::at("naming", all).set_text("style", raw.naming.style, &mut config.naming, naming_style);
    state(raw.state, &mut config.state, to_path, Section::at("state", all));
    let most = i64::MAX.unsigned_abs();
    Section::at("views", all).set("max_bytes", raw.views.max_bytes, &mut config.views.max_bytes, size(0..=most));
    events(raw.events, &mut config.events, Section::at("events", all));
    calls(raw.calls, &mut config.calls, to_path, Section::at("calls", all));
    complaints.extend(config.contradicting_keys().into_iter().map(contradiction));
    complaints
}

/// A key has one value under its old name and another one under its new name.
fn contradiction(key: RenamedKey) -> Complaint {
    let RenamedKey { old, new } = key;
    let wrong = Wrong::new(
        format!("it is the old name of `{new}`, which has another value"),
        format!("take `{old}` out, and keep `{new}`"),
    );
    Complaint { path: KeyPath::dotted(old), other: Some(KeyPath::dotted(new)), wrong }
}

/// One section: where it stands, and where its complaints go.
pub(super) struct Section<'a> {
    pub(super) path: KeyPath,
    pub(super) complaints: &'a mut Vec<Complaint>,
}

impl<'a> Section<'a> {
    fn at(key: &str, complaints: &'a mut Vec<Complaint>) -> Self {
        Self { path: KeyPath::dotted(key), complaints }
    }

    pub(super) fn complain(&mut self, key: &str, wrong: Wrong) {
        self.complaints.push(Complaint { path: self.path.key(key), other: None, wrong });
    }

    /// Sets the value of a key if it was written and can be read.
    pub(super) fn set<R, V>(
        &mut self,
        key: &str,
        raw: Option<R>,
        slot: &mut V,
        read: impl FnOnce(R) -> Result<V, Wrong>,
    ) {
        match raw.map(read) {
            Some(Ok(value)) => *slot = value,
            Some(Err(wrong)) => self.complain(key, wrong),
            None => {}
        }
    }

    /// The same for a text.
    pub(super) fn set_text<V>(
        &mut self,
        key: &str,
        raw: Option<String>,
        slot: &mut V,
        read: impl FnOnce(&str) -> Result<V, Wrong>,
    ) {
        self.set(key, raw, slot, |text| read(&text));
    }

    /// The same for a list, whose elements are complained of one by one.
    pub(super) fn set_list<V>(
        &mut self,
        key: &str,
        raw: Option<Vec<String>>,
        slot: &mut Vec<V>,
        read: impl Fn(&str) -> Result<V, Wrong>,
    ) {
        let Some(raw) = raw else { return };
        slot.clear();
        for (i, text) in raw.into_iter().enumerate() {
            match read(&text) {
                Ok(value) => slot.push(value),
                Err(wrong) => {
                    self.complaints.push(Complaint { path: self.path.key(key).index(i), other: None, wrong });
                }
            }
        }
    }

    /// Complains unless the first duration is at most the second. Silent about values that could not be read.
    fn ordered(&mut self, low: (&str, Duration), high: (&str, Duration)) {
        let (path, other) = (self.path.key(low.0), self.path.key(high.0));
        let unread = |path: &KeyPath| self.complaints.iter().any(|complaint| complaint.path == *path);
        if low.1 > high.1 && !unread(&path) && !unread(&other) {
            let message = format!("{} ({:?}) is longer than {} ({:?})", low.0, low.1, high.0, high.1);
            let wrong = Wrong::new(message, format!("lower {} or raise {}", low.0, high.0));
            self.complaints.push(Complaint { path, other: Some(other), wrong });
        }
    }
}

fn server(raw: raw::Server, server: &mut Server, mut at: Section<'_>) {
    at.set_text("listen", raw.listen, &mut server.listen, |text| {
        text.parse().map_err(|_| {
            Wrong::new(
                format!("{:?} is no address with a port", masked(text)),
                "write an IP address and a port, such as \"127.0.0.1:7400\" or \"[::1]:7400\"",
            )
        })
    });
    at.set_list("allowed_hosts", raw.allowed_hosts, &mut server.allowed_hosts, host);
    at.set_list("allowed_origins", raw.allowed_origins, &mut server.allowed_origins, web_origin);
    at.set("max_body", raw.max_body, &mut server.max_body, body_size);
    at.set("max_connections", raw.max_connections, &mut server.max_connections, count(1..=MOST_EVENTS));
    at.set_text("stop_timeout", raw.stop_timeout, &mut server.stop_timeout, duration);
    at.set_text("ready_timeout", raw.ready_timeout, &mut server.ready_timeout, duration);
    at.set("operator_token", raw.operator_token, &mut server.operator_token, |token| operator_token(token).map(Some));
}

fn scenarios(raw: Vec<raw::Scenario>, list: &mut Section<'_>) -> Vec<StaticScenario> {
    let (mut scenarios, mut places) = (Vec::new(), BTreeMap::new());
    for (i, raw) in raw.into_iter().enumerate() {
        let mut at = Section { path: list.path.index(i), complaints: &mut *list.complaints };
        let (mut name, mut url, mut protocol) = (None, None, None);
        if raw.name.is_none() {
            at.complain("name", Wrong::new("this scenario has no name", "add `name = \"...\"` to it"));
        }
        if raw.url.is_none() {
            at.complain("url", Wrong::new("this scenario has no address", "add `url = \"http://...\"` to it"));
        }
        at.set_text("name", raw.name, &mut name, |text| {
            let name = scenario_name(text)?;
            match places.get(&name) {
                Some(first) => Err(Wrong::new(
                    format!("`{name}` is already the name of scenarios[{first}]"),
                    "give each scenario a name of its own",
                )),
                None => Ok(Some(name)),
            }
        });
        at.set_text("url", raw.url, &mut url, |text| address(text).map(Some));
        at.set_text("protocol", raw.protocol, &mut protocol, |text| known_protocol(text).map(Some));
        if let (Some(name), Some(url)) = (name, url) {
            places.insert(ScenarioName::clone(&name), i);
            scenarios.push(StaticScenario { name, url, protocol });
        }
    }
    scenarios
}

fn vrooli(raw: raw::Vrooli, discovery: &mut Discovery, to_path: ToPath<'_>, mut at: Section<'_>) {
    let vrooli = &mut discovery.vrooli;
    let place = at.path.key("path");
    at.set("enabled", raw.enabled, &mut vrooli.enabled, Ok);
    at.set_text("path", raw.path, &mut vrooli.path, |text| path(text, &place, to_path).map(Some));
    at.set("max_scenarios", raw.max_scenarios, &mut vrooli.max_scenarios, count(1..=MOST_SCENARIOS));
    at.set_text("rescan_interval", raw.rescan_interval, &mut vrooli.rescan_interval, positive);
}

fn mdns(raw: raw::Mdns, mdns: &mut Mdns, mut at: Section<'_>) {
    at.set("enabled", raw.enabled, &mut mdns.enabled, Ok);
    match raw.trust {
        Some(raw::Words::List(list)) => {
            let mut patterns = Vec::new();
            at.set_list("trust", Some(list), &mut patterns, super::mdns::pattern);
            mdns.trust = MdnsTrust::Listed(patterns);
        }
        Some(raw::Words::Text(text)) => at.set_text("trust", Some(text), &mut mdns.trust, super::mdns::trust),
        None => {}
    }
    at.set_list("types", raw.types, &mut mdns.types, super::mdns::service_type);
    at.set("max_instances", raw.max_instances, &mut mdns.max_instances, count(1..=MOST_AT_ONCE));
    at.set("port", raw.port, &mut mdns.port, count(1..=u64::from(u16::MAX)));
    at.set_list("interfaces", raw.interfaces, &mut mdns.interfaces, super::mdns::interface);
    at.set("announce", raw.announce, &mut mdns.announce, Ok);
    at.set_text("name", raw.name, &mut mdns.name, super::mdns::instance_name);
    at.set_text("id", raw.id, &mut mdns.id, |text| super::mdns::id(text).map(Some));
}

fn refresh(raw: raw::Refresh, refresh: &mut Refresh, mut at: Section<'_>) {
    at.set_text("min_interval", raw.min_interval, &mut refresh.min_interval, positive);
    at.set_text("max_interval", raw.max_interval, &mut refresh.max_interval, positive);
    at.set_text("default_lifetime", raw.default_lifetime, &mut refresh.default_lifetime, duration);
    at.set_text("forced_gap", raw.forced_gap, &mut refresh.forced_gap, duration);
    at.set_text("timeout", raw.timeout, &mut refresh.timeout, positive);
    at.set_text("connect_timeout", raw.connect_timeout, &mut refresh.connect_timeout, positive);
    at.set("concurrency", raw.concurrency, &mut refresh.concurrency, count(1..=MOST_AT_ONCE));
    at.set("max_body", raw.max_body, &mut refresh.max_body, body_size);
    at.set("max_pending_body", raw.max_pending_body, &mut refresh.max_pending_body, body_size);
    at.set("max_redirects", raw.max_redirects, &mut refresh.max_redirects, count(0..=20));
    at.set("max_tools", raw.max_tools, &mut refresh.max_tools, count(1..=MOST_TOOLS));
    at.set("max_tool", raw.max_tool, &mut refresh.max_tool, body_size);
    at.set_text("backoff_base", raw.backoff_base, &mut refresh.backoff_base, positive);
    at.set_text("backoff_max", raw.backoff_max, &mut refresh.backoff_max, positive);
    at.set("max_scenarios", raw.max_scenarios, &mut refresh.max_scenarios, count(1..=MOST_SCENARIOS));
    at.ordered(("min_interval", refresh.min_interval), ("max_interval", refresh.max_interval));
    at.ordered(("backoff_base", refresh.backoff_base), ("backoff_max", refresh.backoff_max));
}

fn cache(raw: raw::Cache, cache: &mut Cache, mut at: Section<'_>) {
    at.set_text("scope", raw.scope, &mut cache.scope, super::cache::scope);
    at.set("last_good", raw.last_good, &mut cache.last_good, Ok);
}

fn protocol(raw: raw::Protocol, rules: &mut ProtocolRules, mut at: Section<'_>) {
    at.set_text("accept", raw.accept, &mut rules.accept, |text| {
        Accept::read(text).map_err(|error| {
            Wrong::new(
                format!("{text:?} is no version range: {error}"),
                "write conditions separated by commas, such as \">=1.0, <2.0\"",
            )
        })
    });
    at.set_text("incompatible_interval", raw.incompatible_interval, &mut rules.incompatible_interval, positive);
    at.set_text("incompatible_grace", raw.incompatible_grace, &mut rules.incompatible_grace, duration);
}

fn environment(raw: &raw::Environment, environment: &mut Environment, mut at: Section<'_>) {
    at.set("enabled", raw.enabled, &mut environment.enabled, Ok);
    at.set("remote", raw.remote, &mut environment.remote, Ok);
}

fn health(raw: raw::Health, rules: &mut HealthRules, mut at: Section<'_>) {
    at.set_text("grace", raw.grace, &mut rules.grace, duration);
    at.set("failures", raw.failures, &mut rules.failures, count(1..=1000));
    at.set_text("forget", raw.forget, &mut rules.forget, duration);
    at.set("isolation_count", raw.isolation_count, &mut rules.isolation_count, count(2..=MOST_SCENARIOS));
    at.set("isolation_share", raw.isolation_share, &mut rules.isolation_share, count(1..=99));
    at.set_text("isolation_window", raw.isolation_window, &mut rules.isolation_window, positive);
    at.set_text("isolation_max", raw.isolation_max, &mut rules.isolation_max, duration);
}

fn state(raw: raw::State, state: &mut State, to_path: ToPath<'_>, mut at: Section<'_>) {
    let place = at.path.key("path");
    match raw.path {
        None if state.path.as_os_str().is_empty() => at.complain(
            "path",
            Wrong::new(
                "there is no home folder to keep the database in",
                "set it, for example with `CALLSHEET_STATE__PATH=/var/lib/callsheet/state.db`",
            ),
        ),
        raw => at.set_text("path", raw, &mut state.path, |text| path(text, &place, to_path)),
    }
}

fn events(raw: raw::Events, events: &mut Events, mut at: Section<'_>) {
    at.set("ring", raw.ring, &mut events.ring, count(1..=MOST_EVENTS));
    at.set("ring_bytes", raw.ring_bytes, &mut events.ring_bytes, body_size);
    at.set("reader_queue", raw.reader_queue, &mut events.reader_queue, count(1..=MOST_EVENTS));
    at.set("max_subscribers", raw.max_subscribers, &mut events.max_subscribers, count(0..=MOST_EVENTS));
    at.set_text("keep_alive", raw.keep_alive, &mut events.keep_alive, positive);
    at.set_text("linger", raw.linger, &mut events.linger, duration);
}

fn calls(raw: raw::Calls, calls: &mut Calls, to_path: ToPath<'_>, mut at: Section<'_>) {
    at.set_text("max_timeout", raw.max_timeout, &mut calls.max_timeout, positive);
    at.set("max_body", raw.max_body, &mut calls.max_body, body_size);
    at.set("concurrency", raw.concurrency, &mut calls.concurrency, count(1..=MOST_AT_ONCE));
    at.set("queue", raw.queue, &mut calls.queue, count(0..=MOST_EVENTS));
    at.set_text("queue_timeout", raw.queue_timeout, &mut calls.queue_timeout, duration);
    at.set("retries", raw.retries, &mut calls.retries, count(0..=10));
    at.set_text("reroute_wait", raw.reroute_wait, &mut calls.reroute_wait, duration);
    at.set("breaker_failures", raw.breaker_failures, &mut calls.breaker_failures, count(1..=1000));
    at.set_text("breaker_open", raw.breaker_open, &mut calls.breaker_open, positive);
    at.set_text("check_timeout", raw.check_timeout, &mut calls.check_timeout, positive);
    at.set("check_queue", raw.check_queue, &mut calls.check_queue, count(1..=MOST_EVENTS));
    at.set("validators", raw.validators, &mut calls.validators, count(1..=MOST_TOOLS));
    at.set("validators_bytes", raw.validators_bytes, &mut calls.validators_bytes, body_size);
    at.set_text("approval_expiry", raw.approval_expiry, &mut calls.approval_expiry, positive);
    at.set("approval_token", raw.approval_token, &mut calls.approval_token, |token| operator_token(token).map(Some));
    at.set("approvals_max", raw.approvals_max, &mut calls.approvals_max, count(1..=MOST_AT_ONCE));
    at.set("operations_max", raw.operations_max, &mut calls.operations_max, count(1..=MOST_AT_ONCE));
    at.set("kept_bytes", raw.kept_bytes, &mut calls.kept_bytes, body_size);
    at.set_text("keep", raw.keep, &mut calls.keep, duration);
    at.set_text("poll_min", raw.poll_min, &mut calls.poll_min, positive);
    at.set_text("poll_max", raw.poll_max, &mut calls.poll_max, positive);
    at.set_text("poll_longest", raw.poll_longest, &mut calls.poll_longest, positive);
    at.ordered(("poll_min", calls.poll_min), ("poll_max", calls.poll_max));
    let place = at.path.key("audit");
    at.set_text("usage_interval", raw.usage_interval, &mut calls.usage_interval, positive);
    at.set("tool_metrics", raw.tool_metrics, &mut calls.tool_metrics, Ok);
    at.set_text("audit", raw.audit, &mut calls.audit, |text| match text {
        "" => Ok(None),
        text => path(text, &place, to_path).map(Some),
    });
    at.set("audit_arguments", raw.audit_arguments, &mut calls.audit_arguments, Ok);
    at.set("audit_max_size", raw.audit_max_size, &mut calls.audit_max_size, size(1..=i64::MAX.unsigned_abs()));
    at.set("audit_keep", raw.audit_keep, &mut calls.audit_keep, count(0..=1000));
}

/// A bearer token that nobody guesses.
fn operator_token(raw: raw::Secret) -> Result<Secret, Wrong> {
    let token = modules::bearer(raw)?;
    if token.expose().len() >= SHORTEST_TOKEN {
        return Ok(token);
    }
    let message = format!("it has less than {SHORTEST_TOKEN} characters, so it can be guessed");
    Err(Wrong::new(message, "make one, for example with `openssl rand -hex 32`"))
}

fn body_size(raw: raw::Size) -> Result<usize, Wrong> {
    size(1..=LARGEST_BODY)(raw).and_then(count(1..=LARGEST_BODY))
}

fn naming_style(text: &str) -> Result<NamingStyle, Wrong> {
    match text {
        "on-collision" => Ok(NamingStyle::OnCollision),
        "always" => Ok(NamingStyle::Always),
        _ => Err(Wrong::new(format!("{text:?} is no naming style"), "write \"on-collision\" or \"always\"")),
    }
}

fn path(text: &str, at: &KeyPath, to_path: ToPath<'_>) -> Result<PathBuf, Wrong> {
    if text.is_empty() {
        return Err(Wrong::new("the path is empty", "write a path, or leave the key out for its default"));
    }
    to_path(at, text)
        .ok_or_else(|| Wrong::new(format!("{text:?} needs a home folder, and none is known"), "write the whole path"))
}

pub(super) fn scenario_name(text: &str) -> Result<ScenarioName, Wrong> {
    text.parse().map_err(|_| {
        Wrong::new(
            format!("{text:?} is no scenario name"),
            "use 1 to 100 letters, digits, `.`, `_` or `-`, beginning with a letter or digit",
        )
    })
}

fn known_protocol(text: &str) -> Result<String, Wrong> {
    let known: Vec<&str> = PROTOCOLS.iter().map(|make| make().id()).collect();
    if known.contains(&text) {
        return Ok(text.to_owned());
    }
    let hint = format!("known are: {}; leave it out to find out by asking", known.join(", "));
    Err(Wrong::new(format!("{text:?} is no protocol"), hint))
}
