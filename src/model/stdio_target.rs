//! A program that offers tools when it is started as a child process.
//!
//! It is plain data: having one starts and looks up no program. The values of its environment are
//! secrets and are never shown; its command line is always shown whole, because an operator judges
//! by it what is run.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::text::hexadecimal;
use super::{Interaction, Secret};

/// The scheme of addresses of programs that are started here.
const SCHEME: &str = "stdio";

/// What is written as it is in the address of a program.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A program that is started as a child process and speaks over its standard input and output.
#[derive(Clone, PartialEq, Eq)]
pub struct StdioTarget {
    command: String,
    args: Vec<String>,
    env: BTreeMap<String, Secret>,
    cwd: Option<PathBuf>,
    call_timeout: Option<Duration>,
    interaction: Interaction,
    revision: Option<Arc<str>>,
    /// Follows from the other fields.
    url: Url,
}

impl StdioTarget {
    /// A program by its path, or by a name that is looked up in `PATH`.
    pub fn new(command: impl Into<String>) -> Self {
        let url = url("stdio:");
        let command = command.into();
        let args = Vec::new();
        let env = BTreeMap::new();
        let interaction = Interaction::default();
        Self {
            command,
            args,
            env,
            cwd: None,
            call_timeout: None,
            interaction,
            revision: None,
            url,
        }
        .located()
    }

    /// The same with these arguments.
    #[must_use]
    pub fn with_args<T: Into<String>>(self, args: impl IntoIterator<Item = T>) -> Self {
        Self {
            args: args.into_iter().map(Into::into).collect(),
            ..self
        }
        .located()
    }

    /// The same with these variables in its environment, beside the few that every child process
    /// is given.
    #[must_use]
    pub fn with_env<T: Into<String>>(self, env: impl IntoIterator<Item = (T, Secret)>) -> Self {
        Self {
            env: env
                .into_iter()
                .map(|(name, value)| (name.into(), value))
                .collect(),
            ..self
        }
        .located()
    }

    /// The same in this working folder instead of the one of this process.
    #[must_use]
    pub fn with_cwd(self, cwd: Option<PathBuf>) -> Self {
        Self { cwd, ..self }.located()
    }

    /// The same with this time for a call of one of its tools that does not say so itself.
    #[must_use]
    pub fn with_call_timeout(self, call_timeout: Option<Duration>) -> Self {
        Self {
            call_timeout,
            ..self
        }
        .located()
    }

    /// The same with these requests that it may send to its callers.
    #[must_use]
    pub fn with_interaction(self, interaction: Interaction) -> Self {
        Self {
            interaction,
            ..self
        }
        .located()
    }

    /// The same, greeted in this revision of MCP first.
    #[must_use]
    pub fn with_revision(self, revision: Option<Arc<str>>) -> Self {
        Self { revision, ..self }.located()
    }

    /// The program: a path, or a name that is looked up in `PATH`.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Its arguments.
    pub fn args(&self) -> &[String] {
        &self.args
    }

    /// The variables that are set for it.
    pub fn env(&self) -> &BTreeMap<String, Secret> {
        &self.env
    }

    /// Its working folder, if it is another one than that of this process.
    pub fn cwd(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }

    /// The time that a call of one of its tools may take which does not say so itself.
    pub fn call_timeout(&self) -> Option<Duration> {
        self.call_timeout
    }

    /// The revision of MCP that it is greeted in first, instead of the newest.
    pub fn revision(&self) -> Option<&str> {
        self.revision.as_deref()
    }

    /// What it may request of its callers.
    pub fn interaction(&self) -> &Interaction {
        &self.interaction
    }

    /// Its address: the command line, and a digest of all fields as fragment. Targets that differ
    /// in any field have different addresses.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Sets the address that follows from the other fields.
    fn located(mut self) -> Self {
        let line = self.to_string();
        // An address that begins with two slashes would have a host.
        let slashes = if line.starts_with("//") {
            line.len() - line.trim_start_matches('/').len()
        } else {
            0
        };
        let masked = "%2F".repeat(slashes);
        let rest = utf8_percent_encode(&line[slashes..], PLAIN);
        self.url = url(&format!("{SCHEME}:{masked}{rest}#{}", self.digest()));
        self
    }

    /// Over every field but the address, in hexadecimal digits.
    fn digest(&self) -> String {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update(bytes.len().to_be_bytes());
            hash.update(bytes);
        };
        part(self.command.as_bytes());
        part(&self.args.len().to_be_bytes());
        self.args.iter().for_each(|arg| part(arg.as_bytes()));
        part(&self.env.len().to_be_bytes());
        for (name, value) in &self.env {
            part(name.as_bytes());
            part(value.expose().as_bytes());
        }
        part(
            self.cwd
                .as_ref()
                .map_or(&[][..], |cwd| cwd.as_os_str().as_encoded_bytes()),
        );
        part(format!("{:?}", self.call_timeout).as_bytes());
        if let Some(revision) = &self.revision {
            part(revision.as_bytes());
        }
        if self.interaction != Interaction::default() {
            part(format!("{:?}", self.interaction).as_bytes());
        }
        hexadecimal(&hash.finalize()[..16])
    }
}

/// An address of the scheme `stdio`.
#[expect(
    clippy::unwrap_used,
    reason = "an address of a scheme and encoded text is always one"
)]
fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

/// The exact command line, as a POSIX shell would take it.
impl fmt::Display for StdioTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quoted(&self.command, f)?;
        for arg in &self.args {
            f.write_char(' ')?;
            quoted(arg, f)?;
        }
        Ok(())
    }
}

impl fmt::Debug for StdioTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let env: Vec<&String> = self.env.keys().collect();
        let line = self.to_string();
        f.debug_struct("StdioTarget")
            .field("line", &line)
            .field("env", &env)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// Writes one word of a command line. What a person would not see on a screen is written as
/// escapes (`$'\x1b'`, POSIX.1-2024 section 2.2.4).
fn quoted(word: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return f.write_str(word);
    }
    if !word.chars().any(is_invisible) {
        return write!(f, "'{}'", word.replace('\'', r"'\''"));
    }
    f.write_str("$'")?;
    for c in word.chars() {
        match c {
            '\'' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            // Octal escapes end after three digits, so no digit behind them is taken for a part.
            _ if is_invisible(c) => {
                c.encode_utf8(&mut [0; 4])
                    .bytes()
                    .try_for_each(|byte| write!(f, "\\{byte:03o}"))?;
            }
            _ => f.write_char(c)?,
        }
    }
    f.write_str("'")
}

/// Whether a screen does not show a character as what it is: control, width-less and
/// direction-changing ones.
fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Target;

    fn secret(text: &str) -> Secret {
        Secret::new(text)
    }

    #[test]
    fn the_command_line_is_shown_exactly_and_the_environment_never() {
        let target = StdioTarget::new("/opt/my tools/npx").with_args([
            "-y",
            "it's",
            "",
            "a\nb",
            "plain=1",
            "x\u{200b}1",
        ]);
        let target = target.with_env([("TOKEN", secret("topsecret"))]);
        let line = r"'/opt/my tools/npx' -y 'it'\''s' '' $'a\nb' plain=1 $'x\342\200\2131'";
        assert_eq!(target.to_string(), line);
        assert_eq!(Target::from(target.clone()).to_string(), line);
        let debug = format!(
            "{target:?} {:?} {}",
            Target::from(target.clone()),
            target.url()
        );
        assert!(
            debug.contains("TOKEN") && !debug.contains("topsecret"),
            "{debug}"
        );
        let url = target.url();
        assert!(
            url.path().starts_with("%27/opt/my%20tools/npx%27%20-y%20"),
            "{url}"
        );
    }

    #[test]
    fn targets_that_differ_anywhere_have_different_addresses() {
        let base = || StdioTarget::new("/usr/bin/srv").with_args(["a", "b"]);
        let all = [
            base(),
            StdioTarget::new("/usr/bin/srv a b"),
            base().with_args(["a b"]),
            base().with_args(["a", "b", ""]),
            base().with_env([("A", secret("1"))]),
            base().with_env([("A", secret("2"))]),
            base().with_env([("A1", secret(""))]),
            base().with_cwd(Some("/tmp".into())),
            base().with_call_timeout(Some(Duration::from_secs(1))),
            base().with_interaction(Interaction {
                sampling: true,
                ..Interaction::default()
            }),
            base().with_revision(Some("2025-06-18".into())),
            StdioTarget::new("//usr/bin/srv").with_args(["a", "b"]),
            StdioTarget::new("srv"),
            StdioTarget::new("./../srv"),
            StdioTarget::new(""),
        ];
        for (i, one) in all.iter().enumerate() {
            for (k, other) in all.iter().enumerate() {
                assert_eq!(one.url() == other.url(), i == k, "{one:?} {other:?}");
            }
            assert!(one.url().host().is_none(), "{}", one.url());
        }
        assert_eq!(base().url(), base().url());
    }
}
