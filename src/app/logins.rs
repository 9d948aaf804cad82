//! Keeps logins in the daemon's store.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::model::{ScenarioName, Secret};
use crate::state::{StateStore, Write};
use crate::transports::http::credentials::oauth::LoginStore;

/// The store, as logins see it.
pub(super) struct StoredLogins(pub(super) Arc<dyn StateStore>);

impl LoginStore for StoredLogins {
    fn save(&self, scenario: &ScenarioName, login: Option<Secret>) -> BoxFuture<'_, Result<(), String>> {
        let write = Write::Login(scenario.clone(), login);
        Box::pin(async move { self.0.save(vec![write]).await.map_err(|error| error.to_string()) })
    }
}

impl fmt::Debug for StoredLogins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredLogins").finish_non_exhaustive()
    }
}
