//! Secrets that are written into the configuration, or stand in a variable or a file that it names,
//! or are printed by a program. None is run here.

use std::path::PathBuf;
use std::time::Duration;

use super::shape::Shape;
use super::units::{ValueError, positive_duration};
use super::value_reader::ValueReader;
use crate::model::{Secret, SecretSource};
use crate::transports::http::credentials::read_secret;

/// A text that is never shown, or a table that says where it is, for what is read once.
pub(super) const READ_ONCE: Shape = Shape::SecretOr(&[
    ("env", Shape::Text),
    ("file", Shape::Text),
    ("key", Shape::Text),
]);

/// The same for what is read for each request: it may be what a program prints, too.
pub(super) const FOLLOWED: Shape = Shape::SecretOr(&[
    ("env", Shape::Text),
    ("file", Shape::Text),
    ("key", Shape::Text),
    ("command", Shape::List(&Shape::Verbatim)),
    ("every", Shape::Text),
]);

/// How long what a program printed is used, unless that is configured, and the least.
const EVERY: Duration = Duration::from_secs(3600);
const EVERY_MIN: Duration = Duration::from_secs(1);

/// A rule for a secret.
pub(super) type SecretRule = fn(Secret) -> Result<Secret, ValueError>;

impl ValueReader<'_> {
    /// A text that is never shown, or where it is. It is read now; a change of the variable or file
    /// takes effect with the next change of the configuration.
    pub(super) fn secret_value(&mut self, rule: SecretRule) -> Option<Secret> {
        let source = self.secret_source(rule)?;
        match source {
            SecretSource::Text(secret) => Some(secret),
            SecretSource::File { path, key } => {
                let hint = if key.is_some() {
                    "write the text under that key into this file of TOML, readable by the daemon"
                } else {
                    "put the text alone into it, of at most 65536 bytes, readable by the daemon"
                };
                let read = read_secret(&path, key.as_deref());
                let read = read
                    .map_err(|error| ValueError::of_this_process(error.to_string(), hint))
                    .and_then(rule);
                read.map_err(|wrong| self.reject(wrong)).ok()
            }
            // No shape of what is read once has it.
            SecretSource::Command { .. } => None,
        }
    }

    /// The same for what is read for each request. The text and the variable are read now; a file
    /// or program is not looked at before a request needs it, so the rule is not applied to it.
    pub(super) fn secret_source(&mut self, rule: SecretRule) -> Option<SecretSource> {
        if !self.value.is_some_and(toml::Value::is_table) {
            let mut secret: Option<Secret> = None;
            self.secret(&mut secret, rule);
            return secret.map(SecretSource::Text);
        }
        let mut variable: Option<String> = None;
        let mut file: Option<PathBuf> = None;
        let mut key: Option<String> = None;
        self.key("key").text(&mut key, |name| Ok(name.to_owned()));
        self.key("env")
            .text(&mut variable, |name| Ok(name.to_owned()));
        self.key("file").path(&mut file);
        let has_command = self.key("command").value.is_some();
        let source = match (variable, file, has_command) {
            (Some(name), None, false) => self
                .of_variable(&name)
                .and_then(rule)
                .map(SecretSource::Text),
            (None, Some(path), false) => Ok(SecretSource::File { path, key }),
            (None, None, true) => return self.command(),
            _ => Err(ValueError::new(
                "write exactly one place where the text is",
                "write a text, or one of `{ env = \"NAME\" }` and `{ file = \"path\" }`",
            )),
        };
        source.map_err(|wrong| self.reject(wrong)).ok()
    }

    /// A program that prints the secret.
    fn command(&mut self) -> Option<SecretSource> {
        let mut command: Vec<String> = Vec::new();
        let mut every: Duration = EVERY;
        let mut at = self.key("command");
        at.texts(&mut command, without_nul);
        match command.first_mut() {
            None => at.reject(ValueError::new(
                "it names no program",
                "write `[\"program\", \"argument\"]`",
            )),
            // A path counts from the folder of the file it is written in.
            Some(program) if program.contains('/') => {
                let path = (at.surroundings.to_path)(&at.path.index(0), program);
                *program = path.map_or_else(
                    || program.clone(),
                    |path| path.to_string_lossy().into_owned(),
                );
            }
            Some(_) => {}
        }
        self.key("every").text(&mut every, |text| {
            let every = positive_duration(text)?;
            if every < EVERY_MIN {
                return Err(ValueError::new(
                    "a program is not run more often than each second",
                    "write \"1s\" or more",
                ));
            }
            Ok(every)
        });
        (!command.is_empty()).then_some(SecretSource::Command { command, every })
    }

    fn of_variable(&self, name: &str) -> Result<Secret, ValueError> {
        (self.surroundings.variable)(name).map(Secret::new).ok_or_else(|| {
            let hint = "set it where the daemon is started, or write the value or `{ file = \"path\" }`";
            ValueError::of_this_process(format!("the variable `{name}` is not set"), hint)
        })
    }
}

/// A text that the system can hand to a program.
pub(super) fn without_nul(text: &str) -> Result<String, ValueError> {
    if text.contains('\0') {
        return Err(ValueError::new(
            "it has a NUL character in it",
            "take the character out",
        ));
    }
    Ok(text.to_owned())
}

/// A name that the system takes for a variable.
pub(super) fn variable_name(name: &str) -> Result<(), ValueError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(ValueError::new(
            "it is not a name of a variable",
            "use letters, digits and `_`",
        ));
    }
    Ok(())
}

/// A value that the system can hand to a program.
pub(super) fn variable_value(secret: Secret) -> Result<Secret, ValueError> {
    without_nul(secret.expose()).map(|_| secret)
}
