//! Secrets that are written into the configuration, or stand in a variable or a file that it names.

use std::path::{Path, PathBuf};

use super::shape::Shape;
use super::units::ValueError;
use super::value_reader::ValueReader;
use crate::model::Secret;
use crate::transports::http::credentials::read_secret;

/// The keys of a table that says where a secret is.
pub(super) const REFERENCE: &[(&str, Shape)] = &[("env", Shape::Text), ("file", Shape::Text), ("key", Shape::Text)];

impl ValueReader<'_> {
    /// A text that is never shown, or where it is. It is read now; a change of the variable or file
    /// takes effect with the next change of the configuration.
    pub(super) fn secret_value(&mut self, rule: impl FnOnce(Secret) -> Result<Secret, ValueError>) -> Option<Secret> {
        let mut secret = None;
        if self.value.is_some_and(toml::Value::is_table) {
            let (mut variable, mut file): (Option<String>, Option<PathBuf>) = (None, None);
            let mut key: Option<String> = None;
            self.key("key").text(&mut key, |name| Ok(name.to_owned()));
            self.key("env").text(&mut variable, |name| Ok(name.to_owned()));
            self.key("file").path(&mut file);
            let read = match (variable, file) {
                (Some(name), None) => self.of_variable(&name),
                (None, Some(path)) => from_file(&path, key.as_deref()),
                _ => Err(ValueError::new(
                    "write exactly one place where the text is",
                    "write a text, or one of `{ env = \"NAME\" }` and `{ file = \"path\" }`",
                )),
            };
            match read.and_then(rule) {
                Ok(read) => secret = Some(read),
                Err(wrong) => self.reject(wrong),
            }
        } else {
            self.secret(&mut secret, rule);
        }
        secret
    }

    fn of_variable(&self, name: &str) -> Result<Secret, ValueError> {
        (self.surroundings.variable)(name).map(Secret::new).ok_or_else(|| {
            let hint = "set it where the daemon is started, or write the value or `{ file = \"path\" }`";
            ValueError::new(format!("the variable `{name}` is not set"), hint)
        })
    }
}

/// The text of a file, or of a key in it.
fn from_file(path: &Path, key: Option<&str>) -> Result<Secret, ValueError> {
    read_secret(path, key).map_err(|error| {
        let hint = "put the text alone into it, of at most 65536 bytes, readable by the daemon";
        ValueError::new(error.to_string(), hint)
    })
}
