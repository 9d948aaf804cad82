//! The endpoint that is assigned to a scenario, and comparisons with other endpoints. Pure.

use std::sync::Arc;

use crate::discovery::Endpoint;
use crate::model::{SourceId, Target};

/// Where a scenario is polled, and which source named that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assignment {
    /// The source that won.
    pub(super) source: SourceId,
    /// Its endpoint, shared with the scenario.
    pub(super) endpoint: Arc<Endpoint>,
}

/// One key for all spellings of the same address; `None` if the endpoint has none.
pub(super) fn address_key(endpoint: &Endpoint) -> Option<String> {
    Some(endpoint.target.as_ref()?.address_key())
}

/// Whether a scenario that was at `before` and is at `after` is another process: its address
/// changed, or its source saw it restart. Signs of a start from two different sources cannot be
/// compared.
pub(super) fn restarted(before: &Assignment, after: &Assignment) -> bool {
    let old = &before.endpoint;
    let new = &after.endpoint;
    let booted = before.source == after.source
        && old.boot.is_some()
        && new.boot.is_some()
        && old.boot != new.boot;
    booted || address_key(old) != address_key(new)
}

/// The address for display, without parts that may be secret.
pub(super) fn redacted_address(target: &Target) -> String {
    match target {
        // A slash at the end of a command belongs to its last argument.
        Target::Stdio(_) => format!("`{target}`"),
        Target::Http(_) | Target::InProcess(_) | Target::Bundle(_) => {
            target.to_string().trim_end_matches('/').to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::SourceTrust;

    #[test]
    fn a_restart_is_another_address_or_another_boot_of_one_source() {
        let place = |source, url: &str, boot: Option<&str>| {
            let endpoint = Endpoint::at(url.parse().unwrap(), SourceTrust::Trusted);
            Assignment {
                source,
                endpoint: Arc::new(Endpoint {
                    boot: boot.map(Into::into),
                    ..endpoint
                }),
            }
        };
        let here = "http://127.0.0.1:1";
        let before = place(SourceId::VROOLI, here, Some("41"));
        for (after, expected) in [
            (before.clone(), false),
            (place(SourceId::VROOLI, here, Some("42")), true),
            (place(SourceId::VROOLI, here, None), false),
            (place(SourceId::MDNS, here, Some("x")), false),
            (place(SourceId::STATIC, "http://localhost:1/", None), false),
            (
                place(SourceId::VROOLI, "http://127.0.0.1:2", Some("41")),
                true,
            ),
            (place(SourceId::STATIC, "http://127.0.0.1:2", None), true),
        ] {
            assert_eq!(restarted(&before, &after), expected, "{after:?}");
        }
    }
}
