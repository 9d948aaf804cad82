//! Makes endpoints and findings of the entries of client files. Pure.

use std::path::Path;

use super::{Endpoint, EndpointId, SourceTrust};
use crate::config::MCP;
use crate::config::client_files::{ClientServer, ClientServers, LeftOutEntry, LeftOutReason};
use crate::model::{CappedFindings, Finding, FindingCode, HttpTarget, Target};

/// The endpoint of a server, filed under its name. A server that no scenario can be made of was
/// left out before.
pub(super) fn endpoint(
    server: &ClientServer,
    trust: SourceTrust,
) -> Option<(EndpointId, Endpoint)> {
    let target = match server.entry.target.to_target().ok()? {
        // The operator named the file that it stands in.
        Target::Http(target) => HttpTarget {
            login: Some(server.name.clone()),
            may_use_proxy: true,
            ..HttpTarget::clone(&target)
        }
        .into(),
        other => other,
    };
    let name = Some(server.name.clone());
    let protocol = Some(MCP.to_owned());
    Some((
        EndpointId(server.name.as_str().into()),
        Endpoint {
            name,
            protocol,
            sleep_after: server.entry.sleep_after,
            ..Endpoint::new(target, trust)
        },
    ))
}

/// What was left out, and what is ignored of the others.
pub(super) fn findings(servers: &ClientServers) -> Vec<Finding> {
    let mut findings = CappedFindings::default();
    servers
        .left_out
        .iter()
        .map(left_out)
        .for_each(|finding| findings.push(finding));
    servers
        .taken
        .iter()
        .filter_map(ignored)
        .for_each(|finding| findings.push(finding));
    findings.finish()
}

fn left_out(entry: &LeftOutEntry) -> Finding {
    let message = format!(
        "the entry `{}` of {} is left out: {}",
        shown(&entry.name),
        entry.from.display(),
        entry.why
    );
    match entry.why {
        LeftOutReason::Unusable(_) | LeftOutReason::Unnamable | LeftOutReason::TooMany => {
            Finding::new(FindingCode::EntryIgnored, message)
                .hint("correct it there; the file is read again when it changes")
        }
        LeftOutReason::SwitchedOff | LeftOutReason::Itself | LeftOutReason::SameAs(..) => {
            Finding::new(FindingCode::EntryLeftOut, message)
        }
    }
}

fn ignored(server: &ClientServer) -> Option<Finding> {
    let members = &server.entry.ignored;
    if members.is_empty() {
        return None;
    }
    let message = format!(
        "{} of {} has no meaning here and is ignored",
        members.join(", "),
        server.from.display()
    );
    Some(Finding::new(FindingCode::MembersIgnored, message).of_scenario(&server.name))
}

/// A file that cannot be used now.
pub(super) fn unusable(file: &Path, why: &str, hint: &str) -> Finding {
    Finding::new(
        FindingCode::EntryIgnored,
        format!("{} cannot be used: {why}", file.display()),
    )
    .hint(hint)
}

fn shown(name: &str) -> String {
    name.chars()
        .take(crate::model::SHOWN_NAME)
        .flat_map(char::escape_debug)
        .collect()
}
