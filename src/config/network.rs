//! `[network]`: which proxy leads to hosts on the public internet. No connection is made here.

use url::Host;

use super::units::ValueError;
use super::value_reader::ValueReader;
use super::{Config, LoadOptions, Subnet};
use crate::transports::http::{InvalidProxy, ProxyAddress, ProxyRules};

/// The variables that may name the proxy, as other programs read them: the first that is not empty
/// counts. `HTTP_PROXY` is not among them, because http never goes through a proxy.
const PROXY_VARIABLES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// The same for what is reached without it.
const EXCEPTION_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// How scenarios, logins and stored tools reach the network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkConfig {
    /// `proxy`: the one for public hosts with https. Without one they are reached directly.
    pub proxy: Option<ConfiguredProxy>,
    /// `no_proxy`: hosts, domains and networks that are reached without it.
    pub no_proxy: Vec<String>,
    /// The same from `NO_PROXY`.
    pub environment_no_proxy: Vec<String>,
}

/// The proxy that the configuration or the environment names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredProxy {
    /// Its address, or why it cannot be used. Only that of a variable may be unusable: it may be
    /// meant for other programs, and does not keep the daemon from starting.
    pub address: Result<ProxyAddress, InvalidProxy>,
    /// The variable that names it; `None` if the configuration does.
    pub variable: Option<&'static str>,
}

impl ConfiguredProxy {
    /// Its address without name and password, or where one is that cannot be used.
    pub fn shown(&self) -> String {
        match (&self.address, self.variable) {
            (Ok(address), _) => address.to_string(),
            (Err(_), variable) => format!("of `{}`", variable.unwrap_or("network.proxy")),
        }
    }
}

impl NetworkConfig {
    /// What the environment of these options says, as the default of `network.proxy` has it.
    pub(crate) fn from_environment(options: &LoadOptions) -> Self {
        let variable = |name: &str| options.set_variable(name);
        Self {
            proxy: proxy_of_environment(&variable),
            no_proxy: Vec::new(),
            environment_no_proxy: exceptions_of_environment(&variable),
        }
    }

    /// All that is reached without the proxy.
    pub(crate) fn exceptions(&self) -> Vec<String> {
        [&self.no_proxy[..], &self.environment_no_proxy].concat()
    }

    /// Which connections take a proxy.
    pub fn proxy_rules(&self) -> ProxyRules {
        let Some(proxy) = &self.proxy else {
            return ProxyRules::default();
        };
        match &proxy.address {
            Ok(address) => ProxyRules::new(address, &self.exceptions()),
            Err(why) => ProxyRules::unusable(&proxy.shown(), why.to_string(), &self.exceptions()),
        }
    }
}

/// The rule of `network.proxy`.
pub(super) fn proxy(written: &mut ValueReader<'_>, config: &mut Config) {
    let variable = written.surroundings.variable;
    written.text(&mut config.network.proxy, |text| match text {
        "none" => Ok(None),
        "environment" => Ok(proxy_of_environment(variable)),
        address => {
            let read = address.parse::<ProxyAddress>().map_err(|error| {
                ValueError::new(
                    error.to_string(),
                    "write \"environment\", \"none\", or an address such as \"http://proxy.example:3128\" or \"socks5://proxy.example:1080\"",
                )
            })?;
            Ok(Some(ConfiguredProxy {
                address: Ok(read),
                variable: None,
            }))
        }
    });
}

/// The rule of `network.no_proxy`.
pub(super) fn no_proxy(written: &mut ValueReader<'_>, config: &mut Config) {
    let network = &mut config.network;
    network.environment_no_proxy = exceptions_of_environment(written.surroundings.variable);
    written.texts(&mut network.no_proxy, exception);
}

/// A host with all below it, an address, a network, or `*` for everything.
fn exception(text: &str) -> Result<String, ValueError> {
    let is_host = || {
        let name = text.strip_prefix('.').unwrap_or(text);
        !name.contains('*') && Host::parse(name).is_ok()
    };
    if text == "*" || text.parse::<Subnet>().is_ok() || is_host() {
        return Ok(text.to_owned());
    }
    Err(ValueError::new(
        format!("{text:?} is no host, address or network"),
        "write \"example.com\" for a host and all below it, \"192.0.2.0/24\" for a network, or \"*\"",
    ))
}

fn proxy_of_environment(variable: &dyn Fn(&str) -> Option<String>) -> Option<ConfiguredProxy> {
    let (name, text) = first_set(&PROXY_VARIABLES, variable)?;
    Some(ConfiguredProxy {
        address: text.trim().parse(),
        variable: Some(name),
    })
}

/// The elements of `NO_PROXY`. What other programs read in another way is no mistake here.
fn exceptions_of_environment(variable: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let Some((_, text)) = first_set(&EXCEPTION_VARIABLES, variable) else {
        return Vec::new();
    };
    text.split(',')
        .map(str::trim)
        .filter(|host| !host.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The first of these variables that is not empty, with its value.
fn first_set(
    names: &[&'static str],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<(&'static str, String)> {
    names.iter().find_map(|name| {
        let value = variable(name).filter(|value| !value.trim().is_empty())?;
        Some((*name, value))
    })
}
