//! Finding out which protocol an unknown endpoint speaks.

use std::sync::Arc;

use super::{ConnectError, Fits, ListError, ListRequest, Listing, Protocol, Protocols, Session};
use crate::model::Target;
use crate::transports::{TransportError, Transports};

/// What a probe found: the protocol that is spoken there, a session, and its first listing.
pub struct Probed {
    /// The protocol.
    pub protocol: Arc<dyn Protocol>,
    /// The session.
    pub session: Arc<dyn Session>,
    /// Its first listing.
    pub listing: Listing,
}

/// A protocol that was tried: its id, where, and what it met.
type Attempt = (&'static str, &'static str, ListError);

/// Tries every protocol that may be probed at the target, in order. `tries` is given each session
/// before it lists. Fails with what each attempt
/// met; a failure to reach the scenario at all ends it at once, and so does an answer that is of a
/// protocol but cannot be used.
pub async fn probe(
    protocols: &Protocols,
    target: &Target,
    transports: &Transports,
    request: &ListRequest,
    tries: &(dyn Fn(&Arc<dyn Session>) + Sync),
) -> Result<Probed, ListError> {
    let mut met: Vec<Attempt> = Vec::new();
    for (protocol, at) in in_order(protocols, target) {
        match attempt(protocol, target, transports, request, tries).await {
            Ok(probed) => return Ok(probed),
            // One that was met before by an answer of another kind may break off what it does not
            // know.
            Err(error) if goes_on(&error) || !met.is_empty() && broke(&error) => {
                met.push((protocol.id(), at, error));
            }
            Err(error) => return Err(error),
        }
    }
    Err(none_answered(&met, target))
}

/// The protocols to try: first those that the target looks like.
fn in_order<'a>(
    protocols: &'a Protocols,
    target: &Target,
) -> Vec<(&'a Arc<dyn Protocol>, &'static str)> {
    let mut first = Vec::new();
    let mut others = Vec::new();
    for protocol in protocols.iter() {
        match protocol.fits(target) {
            Fits::ProbeFirst { at } => first.push((protocol, at)),
            Fits::Probe { at } => others.push((protocol, at)),
            Fits::Never | Fits::Named => {}
        }
    }
    first.append(&mut others);
    first
}

async fn attempt(
    protocol: &Arc<dyn Protocol>,
    target: &Target,
    transports: &Transports,
    request: &ListRequest,
    tries: &(dyn Fn(&Arc<dyn Session>) + Sync),
) -> Result<Probed, ListError> {
    let session = protocol
        .connect(target, transports)
        .await
        .map_err(|error: ConnectError| ListError::from(error))?;
    tries(&session);
    let listing = session.list(request).await?;
    Ok(Probed {
        protocol: Arc::clone(protocol),
        session,
        listing,
    })
}

/// Whether an answer leaves room for another protocol: something answers there, but not this one.
fn goes_on(error: &ListError) -> bool {
    match error {
        ListError::NotThisProtocol(_)
        | ListError::Transport(TransportError::Status {
            status: 404 | 405, ..
        }) => true,
        ListError::Transport(_)
        | ListError::Malformed(_)
        | ListError::VersionUnreadable(_)
        | ListError::Incompatible { .. } => false,
    }
}

/// Whether the connection broke in the middle.
fn broke(error: &ListError) -> bool {
    matches!(error, ListError::Transport(TransportError::Broken { .. }))
}

fn none_answered(met: &[Attempt], target: &Target) -> ListError {
    if met.is_empty() {
        return ListError::NotThisProtocol(format!(
            "no known protocol can be found out at {target}; name its protocol"
        ));
    }
    let tried: Vec<_> = met
        .iter()
        .map(|(id, at, error)| format!("{id} on {at}: {error}"))
        .collect();
    ListError::NotThisProtocol(format!(
        "no known protocol is spoken there{}; tried {}",
        whole(target),
        tried.join("; ")
    ))
}

/// What people leave out most often: the path of an MCP server. It is said and not tried, since a
/// request there would reach another program of the host.
fn whole(target: &Target) -> String {
    match target.http().filter(|target| target.url.path() == "/") {
        Some(_) => {
            let base = target.to_string();
            format!(
                " (an MCP server's address is whole: it may be {}/mcp)",
                base.trim_end_matches('/')
            )
        }
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16) -> ListError {
        TransportError::Status {
            url: "http://127.0.0.1:1/".into(),
            status,
            retry_after: None,
            challenge: None,
            said: None,
        }
        .into()
    }

    #[test]
    fn goes_on_only_when_something_else_may_be_spoken_there() {
        assert!(goes_on(&ListError::NotThisProtocol("a web page".into())));
        assert!(goes_on(&status(404)));
        assert!(goes_on(&status(405)));
        assert!(!goes_on(&status(503)));
        assert!(!goes_on(
            &TransportError::Refused("http://127.0.0.1:1/".into()).into()
        ));
        assert!(!goes_on(&ListError::Malformed("cut off".into())));
        assert!(!goes_on(&ListError::Incompatible {
            seen: "2.0".into(),
            accepted: "^1".into()
        }));
    }

    #[test]
    fn tells_what_each_attempt_met_and_where() {
        let target = Target::at("local:dice".parse().unwrap());
        assert!(
            none_answered(&[], &target)
                .to_string()
                .contains("found out at local:dice")
        );
        let error = none_answered(&[("tool-discovery", "/api/v1/tools", status(404))], &target);
        assert_eq!(error.kind(), "unknown-protocol");
        let text = error.to_string();
        for part in ["tool-discovery on /api/v1/tools", "404", "127.0.0.1:1"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        let bare = Target::at("http://127.0.0.1:3001".parse().unwrap());
        let text = none_answered(&[("mcp", "its address", status(404))], &bare).to_string();
        assert!(
            text.contains("it may be http://127.0.0.1:3001/mcp)"),
            "{text}"
        );
    }
}
