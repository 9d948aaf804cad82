//! What an operator says about logins, and where they are kept.

use std::fmt;

use futures_util::future::BoxFuture;
use url::Url;

use crate::model::{ScenarioName, Secret};

/// Keeps logins over restarts. What they hold is secret.
pub trait LoginStore: fmt::Debug + Send + Sync {
    /// Replaces the login of a scenario, or deletes it, durably. Fails with a text for people.
    fn save(
        &self,
        scenario: &ScenarioName,
        login: Option<Secret>,
    ) -> BoxFuture<'_, Result<(), String>>;
}

/// What an operator says about logins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoginSettings {
    /// `login.client_metadata_url`: the address of a client metadata document, which is the id of
    /// the client at servers that take such ids.
    pub client_metadata_url: Option<Url>,
    /// `login.hosts`: hosts of authorization servers that may have private addresses or plain http.
    pub hosts: Vec<String>,
}
