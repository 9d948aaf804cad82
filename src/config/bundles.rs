//! `[bundles]`: which hosts stored tools may reach, and which secrets they may use.

use std::path::PathBuf;

use super::Config;
use super::secret_value::FOLLOWED;
use super::shape::Shape;
use super::units::ValueError;
use super::value_reader::ValueReader;
use crate::bundles::BundleSecret;
use crate::model::{HostRule, Secret};

/// Secrets by their names.
pub(super) const SECRETS: Shape = Shape::Map(&Shape::Table(&[
    ("value", FOLLOWED),
    ("hosts", Shape::Words),
]));

/// Reads one host.
pub(super) fn host_rule(text: &str) -> Result<HostRule, ValueError> {
    text.parse().map_err(|error| {
        ValueError::new(
            format!("{text:?} cannot be allowed: {error}"),
            "write a host such as \"api.example.com\", \"*.example.com\" for those below it, or a network such as \"10.0.0.0/8\"",
        )
    })
}

/// Reads the folders that built-in tools may read.
pub(super) fn folders(written: &mut ValueReader<'_>, config: &mut Config) {
    let mut folders: Vec<PathBuf> = Vec::new();
    written.each(|_, mut at| {
        let mut folder = PathBuf::new();
        at.path(&mut folder);
        folders.extend(Some(folder).filter(|folder| !folder.as_os_str().is_empty()));
    });
    config.bundles.folders = folders;
}

/// Reads the secrets.
pub(super) fn secrets(written: &mut ValueReader<'_>, config: &mut Config) {
    written.each_key(|name, mut at| {
        if name.is_empty()
            || !name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        {
            let message = format!("{name:?} cannot be the name of a secret");
            at.reject(ValueError::new(
                message,
                "use letters, digits, `_` or `-`, as in `${API_KEY}`",
            ));
            return;
        }
        let hint = "write `{ value = { env = \"NAME\" }, hosts = [\"api.example.com\"] }`";
        at.require(
            "value",
            ValueError::new("it does not say where the secret is", hint),
        );
        at.require(
            "hosts",
            ValueError::new("it does not say which hosts it may be sent to", hint),
        );
        let mut hosts = Vec::new();
        at.key("hosts").words(&mut hosts, host_rule);
        let source = at.key("value").secret_source(not_empty);
        config
            .bundles
            .secrets
            .extend(source.map(|source| (name.to_owned(), BundleSecret { source, hosts })));
    });
}

fn not_empty(secret: Secret) -> Result<Secret, ValueError> {
    if secret.expose().is_empty() {
        return Err(ValueError::new(
            "the secret is empty",
            "write it, or take the entry out",
        ));
    }
    Ok(secret)
}
