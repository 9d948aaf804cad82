//! `[bundles]`, as the rest of the program uses it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use url::Url;

use crate::model::{HostRule, SecretSource};

/// The settings of stored tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleSettings {
    /// `path`: the folder of bundles, absolute. Without it there are none.
    pub path: Option<PathBuf>,
    /// `allowed_hosts`: where HTTP tools may send requests. Empty: nowhere.
    pub allowed_hosts: Vec<HostRule>,
    /// `secrets`: what placeholders may stand for besides arguments, by name.
    pub secrets: BTreeMap<String, BundleSecret>,
    /// `built_in`: whether there are the built-in tools.
    pub built_in: bool,
    /// `folders`: what built-in tools may read, absolute.
    pub folders: Vec<PathBuf>,
    /// `max_tools`: tools of all bundles together.
    pub max_tools: usize,
    /// `max_bundles`: bundles at most.
    pub max_bundles: usize,
    /// `max_bytes`: bytes of memory that all bundles take together.
    pub max_bytes: usize,
    /// `max_request`: bytes of the body that an HTTP tool sends.
    pub max_request: usize,
}

impl BundleSettings {
    /// Whether HTTP tools may send requests to the host of an address.
    pub fn admits(&self, url: &Url) -> bool {
        url.host()
            .is_some_and(|host| HostRule::admits_host(&self.allowed_hosts, &host))
    }
}

/// A secret of stored tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleSecret {
    /// Where it is.
    pub source: SecretSource,
    /// `hosts`: the only ones that it is sent to.
    pub hosts: Vec<HostRule>,
}

impl Default for BundleSettings {
    fn default() -> Self {
        Self {
            path: None,
            allowed_hosts: Vec::new(),
            secrets: BTreeMap::new(),
            built_in: false,
            folders: Vec::new(),
            max_tools: 1_000,
            max_bundles: 1_000,
            max_bytes: 32 * 1024 * 1024,
            max_request: 1024 * 1024,
        }
    }
}
