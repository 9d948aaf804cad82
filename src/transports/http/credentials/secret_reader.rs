//! Reads secrets where the configuration says they are, at the time of a request.
//!
//! A file is read each time, so that a change takes effect with the next request. What a program
//! printed is used for as long as it is configured; a program that fails is left alone for a while,
//! however many requests need it.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::error::CredentialError;
use crate::model::{Secret, SecretSource};
use crate::runtime::open_files::read_regular;
use crate::runtime::{Clock, Tasks};
use crate::transports::stdio::run_for_output;

/// Bytes of a file that holds one secret, and of what a program prints.
const MAX_SECRET: usize = 64 * 1024;

/// How long a program that failed is not run again, and how old a refused secret is at least before
/// its program is run again.
const RETRY: Duration = Duration::from_secs(30);

/// Reads secrets. Cheap to clone; clones share what programs printed.
#[derive(Clone)]
pub struct SecretReader {
    tasks: Tasks,
    clock: Clock,
    printed: Arc<Mutex<HashMap<Vec<String>, Arc<PrintedSecret>>>>,
}

/// What a program printed last, and when. The lock is held while it runs, so that it runs once for
/// all who wait.
type PrintedSecret = tokio::sync::Mutex<Option<(Instant, Result<Secret, CredentialError>)>>;

impl SecretReader {
    /// A reader that does on `tasks` what waits for a disk.
    pub fn new(clock: Clock, tasks: Tasks) -> Self {
        Self {
            tasks,
            clock,
            printed: Arc::default(),
        }
    }

    /// Reads a secret. Fails with [`CredentialError::Unreadable`], which names the place.
    pub async fn read(&self, source: &SecretSource) -> Result<Secret, CredentialError> {
        match source {
            SecretSource::Text(secret) => Ok(secret.clone()),
            SecretSource::File { path, key } => {
                let path: PathBuf = path.clone();
                let key: Option<String> = key.clone();
                self.tasks
                    .blocking(move || read_secret(&path, key.as_deref()))
                    .await
            }
            SecretSource::Command { command, every } => self.printed(command, *every).await,
        }
    }

    /// Called when what was read was refused: a program is run again for the next request, unless
    /// it ran a moment ago.
    pub(super) async fn refused(&self, source: &SecretSource) {
        let SecretSource::Command { command, .. } = source else {
            return;
        };
        let place = self.place(command);
        let mut printed = place.lock().await;
        if printed
            .as_ref()
            .is_some_and(|(at, _)| self.clock.now().saturating_duration_since(*at) >= RETRY)
        {
            *printed = None;
        }
    }

    fn place(&self, command: &[String]) -> Arc<PrintedSecret> {
        let mut all = self.printed.lock();
        Arc::clone(all.entry(command.to_vec()).or_default())
    }

    async fn printed(
        &self,
        command: &[String],
        every: Duration,
    ) -> Result<Secret, CredentialError> {
        let place = self.place(command);
        let mut printed = place.lock().await;
        if let Some((at, result)) = &*printed {
            let used = if result.is_ok() {
                every
            } else {
                RETRY.min(every)
            };
            if self.clock.now().saturating_duration_since(*at) < used {
                return result.clone();
            }
        }
        let result = run_for_output(command, MAX_SECRET).await;
        let result = result
            .map_err(|why| CredentialError::Unreadable(format!("`{}`: {why}", command.join(" "))));
        let result = result.and_then(|text| match trimmed(text) {
            text if text.is_empty() => Err(CredentialError::Unreadable(format!(
                "`{}` printed nothing",
                command.join(" ")
            ))),
            text => Ok(Secret::new(text)),
        });
        *printed = Some((self.clock.now(), result.clone()));
        result
    }
}

/// Nothing that was read.
impl fmt::Debug for SecretReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretReader").finish_non_exhaustive()
    }
}

/// A text without the line break at its end.
fn trimmed(mut text: String) -> String {
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    text
}

/// The text of a file, without the line break at its end, or of a key in it. It waits for the disk.
/// Fails with [`CredentialError::Unreadable`], which names the file.
pub(crate) fn read_secret(path: &Path, key: Option<&str>) -> Result<Secret, CredentialError> {
    let unusable = |why: &str| {
        CredentialError::Unreadable(format!("{} cannot be used: {why}", path.display()))
    };
    let text =
        read_regular(path, MAX_SECRET as u64).map_err(|error| unusable(&error.to_string()))?;
    let text = trimmed(text);
    let found = match key {
        Some(key) => from_toml(&text, key)
            .ok_or_else(|| unusable(&format!("it has no text under `{key}`")))?,
        None => text,
    };
    if found.is_empty() {
        return Err(unusable("it is empty"));
    }
    Ok(Secret::new(found))
}

/// The text of a key in a TOML file: `table.key`, where the name of the table may have dots itself.
fn from_toml(text: &str, key: &str) -> Option<String> {
    // The message of the parser may quote a secret.
    let document: toml::Table = toml::from_str(text).ok()?;
    let found = match key.rsplit_once('.') {
        Some((table, key)) => document.get(table)?.get(key)?,
        None => document.get(key)?,
    };
    found.as_str().map(str::to_owned)
}
