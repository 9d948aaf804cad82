//! Addresses in the environment: `<NAME>_API_URL`, the variables that tell Vrooli's own consumers
//! the address of a scenario.
//!
//! The variables are read once, when the source is made; a process's environment does not change
//! under it. What a variable holds is never printed, since an address may carry a password.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use url::{Host, Url};

use crate::config::{Config, without_route};
use crate::discovery::{
    Endpoint, EndpointId, EndpointSet, Source, SourceError, SourceFactory, SourceTrust,
    publish_once,
};
use crate::model::{Finding, FindingCode, ScenarioName, SourceAbsence, SourceId, SourceSpec};
use crate::runtime::{Clock, Stop};

/// What ends the name of a variable that holds an address.
const SUFFIX: &str = "_API_URL";
/// Our own settings, which are no scenarios.
const OWN_PREFIX: &str = "CALLSHEET_";

/// The source of `<NAME>_API_URL`.
#[derive(Debug, Clone)]
pub struct EnvironmentSource {
    set: EndpointSet,
}

/// Why a variable was left out. None of the texts holds the value.
#[derive(Debug, thiserror::Error)]
enum VariableError {
    #[error(
        "its name before `_API_URL` makes no scenario name (use capitals, digits and `_`, beginning with a capital or digit)"
    )]
    Name,
    #[error("it is not UTF-8")]
    NotText,
    #[error("it is empty")]
    Empty,
    #[error("it is not an address: {0}")]
    NotUrl(#[from] url::ParseError),
    #[error("it is neither http nor https")]
    Scheme,
    #[error("it has a query or a fragment, which a base address cannot have")]
    QueryOrFragment,
    #[error("its port is 0")]
    Port,
    #[error("it is an address of another host, and `discovery.environment.remote` is off")]
    Remote,
}

impl SourceId {
    /// `<NAME>_API_URL` in the environment.
    pub const ENVIRONMENT: Self = Self::new(&SourceSpec {
        name: "environment",
        rank: 30,
        found: "in the environment",
        absence: SourceAbsence::Hint,
        is_announced: false,
        has_entries: false,
    });
}

/// How the source is made.
pub const FACTORY: SourceFactory = SourceFactory {
    id: SourceId::ENVIRONMENT,
    make,
    same_settings,
};

/// The source over this process's variables, when it is switched on.
fn make(config: &Config, _clock: Clock) -> Option<Box<dyn Source>> {
    let rules = &config.discovery.environment;
    rules.enabled.then(|| {
        Box::new(EnvironmentSource::new(std::env::vars_os(), rules.remote)) as Box<dyn Source>
    })
}

fn same_settings(one: &Config, other: &Config) -> bool {
    one.discovery.environment == other.discovery.environment
}

impl EnvironmentSource {
    /// The source over these variables (name, value). `AGENT_MANAGER_API_URL` names the scenario
    /// `agent-manager`; `CALLSHEET_*` and everything that does not end in `_API_URL` is passed
    /// over, and what cannot be used is a finding. Addresses of other hosts are taken only with
    /// `remote`: a variable like `GITHUB_API_URL` names no scenario, and must not cause a poll
    /// every minute.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>, remote: bool) -> Self {
        let mut endpoints = BTreeMap::new();
        let mut findings = Vec::new();
        for (variable, value) in variables {
            let variable = variable.to_string_lossy();
            let Some(stem) = variable
                .strip_suffix(SUFFIX)
                .filter(|_| !variable.starts_with(OWN_PREFIX))
            else {
                continue;
            };
            let name = scenario_name(stem);
            match name
                .clone()
                .ok_or(VariableError::Name)
                .and_then(|name| Ok((name, base_address(&value, remote)?)))
            {
                Ok((name, url)) => {
                    let id = EndpointId(name.as_str().into());
                    let name = Some(name);
                    endpoints.insert(
                        id,
                        Endpoint {
                            name,
                            ..Endpoint::at(url, SourceTrust::Trusted)
                        },
                    );
                }
                Err(problem) => findings.push(ignored(&variable, name.as_ref(), &problem)),
            }
        }
        findings.sort();
        Self {
            set: EndpointSet {
                initial_scan_done: true,
                endpoints,
                findings,
            },
        }
    }
}

impl Source for EnvironmentSource {
    fn id(&self) -> SourceId {
        SourceId::ENVIRONMENT
    }

    fn run(
        self: Box<Self>,
        out: watch::Sender<EndpointSet>,
        stop: Stop,
    ) -> BoxFuture<'static, Result<(), SourceError>> {
        publish_once(self.set, out, stop).boxed()
    }
}

/// The scenario that a variable names. Only capitals are accepted: that is how the names are
/// written, and it keeps two variables from naming the same scenario.
fn scenario_name(stem: &str) -> Option<ScenarioName> {
    let written = stem
        .bytes()
        .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == b'_');
    written
        .then(|| stem.to_ascii_lowercase().replace('_', "-").parse().ok())
        .flatten()
}

fn base_address(value: &OsStr, remote: bool) -> Result<Url, VariableError> {
    let text = value.to_str().ok_or(VariableError::NotText)?.trim();
    if text.is_empty() {
        return Err(VariableError::Empty);
    }
    let url = Url::parse(text)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(VariableError::Scheme);
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(VariableError::QueryOrFragment);
    }
    if url.port() == Some(0) {
        return Err(VariableError::Port);
    }
    if !remote && !is_loopback(&url) {
        return Err(VariableError::Remote);
    }
    Ok(without_route(url))
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(domain)) => domain == "localhost" || domain.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn ignored(variable: &str, name: Option<&ScenarioName>, problem: &VariableError) -> Finding {
    let variable = super::text::printable(variable);
    let finding = Finding::new(
        FindingCode::EntryIgnored,
        format!("the environment variable `{variable}` was left out: {problem}"),
    )
    .hint(format!(
        "set `{variable}` to an address like `http://127.0.0.1:15000`, or unset it, and start again"
    ));
    match name {
        Some(name) => finding.of_scenario(name),
        None => finding,
    }
}
