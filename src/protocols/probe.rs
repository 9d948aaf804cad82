//! Finding out which protocol an unknown endpoint speaks.

use std::sync::Arc;

use http::StatusCode;

use super::{Known, ListError, Listing, Protocol, Protocols};
use crate::model::Accept;
use crate::transports::http::{AskError, Upstream};

/// What a probe found: the protocol that answered and its listing.
pub struct Probed {
    /// The protocol.
    pub protocol: Arc<dyn Protocol>,
    /// Its first listing.
    pub listing: Listing,
}

/// Tries every protocol in order. Fails with what each attempt met; a failure to reach the scenario at all ends it at once, and so does
/// an answer that is of a protocol but cannot be used.
pub async fn probe(
    protocols: &Protocols,
    upstream: &Upstream,
    accept: &Accept,
    known: Option<&Known>,
) -> Result<Probed, ListError> {
    let mut met = Vec::new();
    for protocol in protocols.iter() {
        match protocol.list(upstream, accept, known).await {
            Ok(listing) => return Ok(Probed { protocol: Arc::clone(protocol), listing }),
            Err(error) if goes_on(&error) => met.push((&**protocol, error)),
            Err(error) => return Err(error),
        }
    }
    Err(none_answered(&met))
}

/// Whether an answer leaves room for another protocol: something answers there, but not this one.
fn goes_on(error: &ListError) -> bool {
    match error {
        ListError::NotThisProtocol(_) => true,
        ListError::Ask(AskError::Status { status, .. }) => {
            matches!(*status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED)
        }
        ListError::Ask(_)
        | ListError::Malformed(_)
        | ListError::VersionUnreadable(_)
        | ListError::Incompatible { .. } => false,
    }
}

fn none_answered(met: &[(&dyn Protocol, ListError)]) -> ListError {
    let tried: Vec<_> =
        met.iter().map(|(protocol, error)| format!("{} on {}: {error}", protocol.id(), protocol.path())).collect();
    ListError::NotThisProtocol(format!("no known protocol is spoken there; tried {}", tried.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocols::tool_discovery::ToolDiscovery;

    fn status(status: StatusCode) -> ListError {
        AskError::Status { url: "http://127.0.0.1:1/".into(), status, retry_after: None }.into()
    }

    #[test]
    fn goes_on_only_when_something_else_may_be_spoken_there() {
        assert!(goes_on(&ListError::NotThisProtocol("a web page".into())));
        assert!(goes_on(&status(StatusCode::NOT_FOUND)));
        assert!(goes_on(&status(StatusCode::METHOD_NOT_ALLOWED)));
        assert!(!goes_on(&status(StatusCode::SERVICE_UNAVAILABLE)));
        assert!(!goes_on(&AskError::Refused("http://127.0.0.1:1/".into()).into()));
        assert!(!goes_on(&ListError::Malformed("cut off".into())));
        assert!(!goes_on(&ListError::Incompatible { seen: "2.0".into(), accepted: "^1".into() }));
    }

    #[test]
    fn tells_what_each_attempt_met_and_where() {
        let error = none_answered(&[(&ToolDiscovery, status(StatusCode::NOT_FOUND))]);
        assert_eq!(error.kind(), "unknown-protocol");
        let text = error.to_string();
        for part in ["tool-discovery on /api/v1/tools", "404", "127.0.0.1:1"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }
}
