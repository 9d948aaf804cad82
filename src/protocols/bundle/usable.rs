//! Whether a stored tool can be run here: its host is allowed, its placeholders have a meaning, its
//! function is registered.

use std::collections::BTreeSet;

use url::{Host, Url};

use crate::bundles::{
    BundleSettings, BundleStore, Functions, HttpTool, StoredTool, ToolAuth, ToolImplementation,
};
use crate::model::{Finding, FindingCode, HostRule};

/// Facts of the tool itself that a placeholder may name.
const OWN: [&str; 2] = ["slug", "version"];

/// The reason why a tool cannot be run, as a sentence without its subject, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unusable {
    pub(super) why: String,
    pub(super) hint: String,
}

fn unusable<T>(why: String, hint: impl Into<String>) -> Result<T, Unusable> {
    Err(Unusable {
        why,
        hint: hint.into(),
    })
}

/// The finding by which a tool is left out of the list, if it cannot be run here.
pub fn left_out(tool: &StoredTool, store: &BundleStore) -> Option<Finding> {
    let Unusable { why, hint } = check(tool, &store.settings(), store.functions()).err()?;
    let finding = Finding::new(FindingCode::ToolUnavailable, format!("the tool {why}"));
    Some(finding.of_tool(tool.name()).hint(hint))
}

/// Checks a tool. An HTTP tool gives the names of the secrets that it uses.
pub(super) fn check<'a>(
    tool: &'a StoredTool,
    settings: &BundleSettings,
    functions: &Functions,
) -> Result<BTreeSet<&'a str>, Unusable> {
    match &tool.implementation {
        ToolImplementation::Function(name) if functions.get(name).is_some() => Ok(BTreeSet::new()),
        ToolImplementation::Function(name) => unusable(
            format!("needs the function `{name}`, which is not registered"),
            "register it with `Builder::function` in the program that embeds callsheet",
        ),
        ToolImplementation::BuiltIn(built_in) if built_in.is_usable(settings) => {
            Ok(BTreeSet::new())
        }
        ToolImplementation::BuiltIn(_) => unusable(
            "has nothing that it may read".to_owned(),
            "name folders in `bundles.folders`, or hosts in `bundles.allowed_hosts`",
        ),
        ToolImplementation::Http(http) => {
            host(http.url.origin(), settings)?;
            let secrets = secrets(tool, http, settings)?;
            for name in &secrets {
                shown_to("the secret", name, http.url.origin(), settings)?;
            }
            if let Some(ToolAuth::OAuth {
                token_url,
                client_secret,
                ..
            }) = &http.auth
            {
                host(token_url, settings)?;
                if let Some(name) = client_secret {
                    shown_to("the secret", name.as_str(), token_url, settings)?;
                    // A token gives the access of the secret that it was requested with.
                    shown_to(
                        "a token for the secret",
                        name.as_str(),
                        http.url.origin(),
                        settings,
                    )?;
                }
            }
            Ok(secrets)
        }
    }
}

/// The secrets that the placeholders of a tool name.
fn secrets<'a>(
    tool: &'a StoredTool,
    http: &'a HttpTool,
    settings: &BundleSettings,
) -> Result<BTreeSet<&'a str>, Unusable> {
    let is_closed = !tool.declared.is_empty() || tool.is_closed;
    let mut secrets = BTreeSet::new();
    for name in http
        .names()
        .into_iter()
        .filter(|name| !tool.declared.contains(*name))
    {
        if settings.secrets.contains_key(name) {
            secrets.insert(name);
        } else if is_closed && !OWN.contains(&name) {
            let why = format!("uses `${{{name}}}`, which is neither a parameter nor a secret");
            return unusable(
                why,
                format!("declare it in `argSchema`, or add `{name}` to `[bundles.secrets]`"),
            );
        }
    }
    if let Some(name) = http
        .path_names()
        .into_iter()
        .find(|name| secrets.contains(name))
    {
        let why =
            format!("has the secret `{name}` in the path of its address, which messages show");
        return unusable(why, "put it into `headers`, `query`, `auth` or the body");
    }
    Ok(secrets)
}

/// Refuses a host that is not allowed.
fn host(url: &Url, settings: &BundleSettings) -> Result<(), Unusable> {
    if settings.admits(url) {
        return Ok(());
    }
    let host = shown(url.host());
    unusable(
        format!("sends requests to `{host}`, which is not allowed"),
        format!("add \"{host}\" to `bundles.allowed_hosts`"),
    )
}

/// Refuses a secret, or what it is exchanged for, that may not be sent to a host.
fn shown_to(what: &str, name: &str, url: &Url, settings: &BundleSettings) -> Result<(), Unusable> {
    let Some(secret) = settings.secrets.get(name) else {
        return unusable(
            format!("uses the secret `{name}`, which is not configured"),
            "add it to `[bundles.secrets]`",
        );
    };
    match url.host() {
        Some(host) if HostRule::admits_host(&secret.hosts, &host) => Ok(()),
        host => {
            let host = shown(host);
            unusable(
                format!("would send {what} `{name}` to `{host}`, and it is not for that host"),
                format!("add \"{host}\" to `hosts` of `bundles.secrets.{name}`"),
            )
        }
    }
}

fn shown(host: Option<Host<&str>>) -> String {
    host.map(|host| host.to_string()).unwrap_or_default()
}
