//! Reads secrets where the configuration says they are, at the time of a request.
//!
//! A file is read each time, so that a change takes effect with the next request. What was read is
//! kept nowhere.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::error::CredentialError;
use crate::model::{Secret, SecretSource};
use crate::runtime::Tasks;

/// Bytes of a file that holds one secret.
const MAX_FILE: u64 = 64 * 1024;

/// Reads secrets. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SecretReader {
    tasks: Tasks,
}

impl SecretReader {
    /// A reader that does on `tasks` what waits for a disk.
    pub fn new(tasks: Tasks) -> Self {
        Self { tasks }
    }

    /// Reads a secret. Fails with [`CredentialError::Unreadable`], which names the place.
    pub async fn read(&self, source: &SecretSource) -> Result<Secret, CredentialError> {
        match source {
            SecretSource::Text(secret) => Ok(secret.clone()),
            SecretSource::File { path, key } => {
                let (path, key): (PathBuf, Option<String>) = (path.clone(), key.clone());
                self.tasks.blocking(move || read_secret(&path, key.as_deref())).await
            }
        }
    }
}

/// The text of a file, without the line break at its end, or of a key in it. It waits for the disk.
/// Fails with [`CredentialError::Unreadable`], which names the file.
pub(crate) fn read_secret(path: &Path, key: Option<&str>) -> Result<Secret, CredentialError> {
    let unusable = |why: &str| CredentialError::Unreadable(format!("{} cannot be used: {why}", path.display()));
    let file = File::open(path).map_err(|error| unusable(&error.to_string()))?;
    // A pipe would be waited for.
    if !file.metadata().is_ok_and(|file| file.is_file()) {
        return Err(unusable("it is not a file"));
    }
    let mut text = String::new();
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(|error| unusable(&error.to_string()))?;
    if text.len() as u64 > MAX_FILE {
        return Err(unusable("it is larger than 65536 bytes"));
    }
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    let found = match key {
        Some(key) => from_toml(&text, key).ok_or_else(|| unusable(&format!("it has no text under `{key}`")))?,
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
