//! Secrets that are written into the configuration, or stand in a variable or a file that it names.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::shape::Shape;
use super::units::ValueError;
use super::value_reader::ValueReader;
use crate::model::Secret;

/// The keys of a table that says where a secret is.
pub(super) const REFERENCE: &[(&str, Shape)] = &[("env", Shape::Text), ("file", Shape::Text), ("key", Shape::Text)];

/// Bytes of a file that holds one secret.
const MAX_FILE: u64 = 64 * 1024;

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
                (None, Some(path)) => of_file(&path).and_then(|text| match &key {
                    Some(key) => of_key(&text, key, &path),
                    None => Ok(text),
                }),
                _ => Err(ValueError::new(
                    "write exactly one place where the text is",
                    "write a text, or one of `{ env = \"NAME\" }` and `{ file = \"path\" }`",
                )),
            };
            match read.and_then(|text| rule(Secret::new(text))) {
                Ok(read) => secret = Some(read),
                Err(wrong) => self.reject(wrong),
            }
        } else {
            self.secret(&mut secret, rule);
        }
        secret
    }

    fn of_variable(&self, name: &str) -> Result<String, ValueError> {
        (self.surroundings.variable)(name).ok_or_else(|| {
            let hint = "set it where the daemon is started, or write the value or `{ file = \"path\" }`";
            ValueError::new(format!("the variable `{name}` is not set"), hint)
        })
    }
}

/// The text of a key in a TOML file: `table.key`, where the name of the table may have dots itself.
fn of_key(text: &str, key: &str, path: &Path) -> Result<String, ValueError> {
    let missing = |why: String| {
        let hint = format!("write it in {} as text", path.display());
        ValueError::new(format!("{} has no text under `{key}`: {why}", path.display()), hint)
    };
    // The message of the parser may quote a secret.
    let document: toml::Table = toml::from_str(text).map_err(|_| missing("it is not TOML".to_owned()))?;
    let found = match key.rsplit_once('.') {
        Some((table, key)) => document.get(table).and_then(|table| table.get(key)),
        None => document.get(key),
    };
    let found = found.and_then(toml::Value::as_str);
    found.map(str::to_owned).ok_or_else(|| missing("there is no such key with a text".to_owned()))
}

/// The text of a file, without the line break at its end.
fn of_file(path: &Path) -> Result<String, ValueError> {
    let unusable = |why: String| {
        let hint = format!("put the text alone into it, of at most {MAX_FILE} bytes, readable by the daemon");
        ValueError::new(format!("{} cannot be used: {why}", path.display()), hint)
    };
    let mut text = String::new();
    let file = File::open(path).map_err(|error| unusable(error.to_string()))?;
    // A pipe would be waited for.
    if !file.metadata().is_ok_and(|file| file.is_file()) {
        return Err(unusable("it is not a file".to_owned()));
    }
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(|error| unusable(error.to_string()))?;
    if text.len() as u64 > MAX_FILE {
        return Err(unusable("it is too large".to_owned()));
    }
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(text)
}
