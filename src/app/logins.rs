//! Keeps logins in the daemon's store.

use std::fmt;
use std::sync::Weak;

use futures_util::future::BoxFuture;

use crate::model::{ScenarioName, Secret};
use crate::state::{StateStore, Write};
use crate::transports::http::credentials::oauth::LoginStore;

/// The store, as logins see it. The HTTP client holds it, and connections that end by themselves
/// hold that client: a strong reference would keep the store open after the daemon has ended.
pub(super) struct StoredLogins(pub(super) Weak<dyn StateStore>);

impl LoginStore for StoredLogins {
    fn save(
        &self,
        scenario: &ScenarioName,
        login: Option<Secret>,
    ) -> BoxFuture<'_, Result<(), String>> {
        let write = Write::Login(scenario.clone(), login);
        Box::pin(async move {
            let store = self
                .0
                .upgrade()
                .ok_or_else(|| "the daemon stops".to_owned())?;
            store
                .save(vec![write])
                .await
                .map_err(|error| error.to_string())
        })
    }
}

impl fmt::Debug for StoredLogins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredLogins").finish_non_exhaustive()
    }
}
