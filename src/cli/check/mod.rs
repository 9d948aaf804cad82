//! `callsheet check`: what is wrong with a manifest and, at an address, with how it is served. Needs no daemon.

use std::io::Read;
use std::path::PathBuf;

use clap::Args;
use url::Url;

use super::CommandError;
use crate::config::Config;
use crate::model::{AcceptedVersions, HttpTarget, Severity};
use crate::protocols::module;
use crate::protocols::tool_discovery::{self, Inspected, PATH};

mod report;
pub(super) mod serving;

use report::CheckReport;

/// Bytes of a file or of standard input, far beyond what a daemon takes.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Address of a scenario (http or https, with or without /api/v1/tools or /manifest), a file with a manifest, or `-` for standard input.
    #[arg(value_name = "URL|FILE")]
    subject: String,
    /// Treat warnings as errors.
    #[arg(long)]
    strict: bool,
    /// Print JSON instead of a table.
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl CheckArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let (subject, inspected) = match address(&self.subject)? {
            Some(base) => serving::inspect_scenario(HttpTarget::at(base), &Config::for_state(PathBuf::new())).await?,
            None => (self.subject.clone(), self.read()?),
        };
        let report = CheckReport::new(subject, inspected, self.strict);
        if self.json {
            report.print_json();
        } else {
            report.print();
        }
        if report.worst() == Some(Severity::Error) { Err(CommandError::Found) } else { Ok(()) }
    }

    /// The manifest in a file or from standard input.
    fn read(&self) -> Result<Inspected, CommandError> {
        let mut body = Vec::new();
        let from = if self.subject == "-" { "standard input" } else { self.subject.as_str() };
        let read = if self.subject == "-" {
            std::io::stdin().lock().take(MAX_FILE + 1).read_to_end(&mut body)
        } else {
            std::fs::File::open(&self.subject).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut body))
        };
        read.map_err(|error| CommandError::Usage {
            message: format!("{from} cannot be read: {error}"),
            hint: "name a file with a manifest, an address like http://127.0.0.1:15000, or `-` for standard input"
                .into(),
        })?;
        if body.len() as u64 > MAX_FILE {
            let message = format!("{from} is larger than {} MiB", MAX_FILE >> 20);
            return Err(CommandError::Usage { message, hint: "no daemon would take such a manifest".into() });
        }
        Ok(inspect(&body, &AcceptedVersions::default()))
    }
}

/// Checks a document of either protocol.
fn inspect(body: &[u8], accept: &AcceptedVersions) -> Inspected {
    if module::is_module(body) { module::inspect(body) } else { tool_discovery::inspect(body, accept) }
}

/// The base address that `subject` names; `None` if it names a file.
fn address(subject: &str) -> Result<Option<Url>, CommandError> {
    if !subject.contains("://") {
        return Ok(None);
    }
    match Url::parse(subject) {
        Ok(mut url) if matches!(url.scheme(), "http" | "https") => {
            let path = url.path().trim_end_matches('/');
            let base =
                [PATH, module::PATH].iter().find_map(|route| path.strip_suffix(route)).unwrap_or(path).to_owned();
            url.set_path(&base);
            Ok(Some(url))
        }
        _ => Err(CommandError::Usage {
            // It may hold a password, so it is not repeated.
            message: "the address cannot be polled".into(),
            hint: "write it like http://127.0.0.1:15000".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_route_is_taken_off_an_address() {
        for (subject, base) in [
            ("http://h:1", Some("http://h:1/")),
            ("http://h:1/api/v1/tools", Some("http://h:1/")),
            ("https://h/x/api/v1/tools/", Some("https://h/x")),
            ("https://h/x", Some("https://h/x")),
            ("http://h:1/manifest", Some("http://h:1/")),
            ("manifest.json", None),
            ("-", None),
        ] {
            assert_eq!(address(subject).unwrap().as_ref().map(Url::as_str), base, "{subject}");
        }
        assert!(matches!(address("ftp://h/"), Err(CommandError::Usage { .. })));
    }
}
