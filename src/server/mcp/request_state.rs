//! `requestState`: what a modern client gives back unchanged when it sends a call again with input.
//!
//! It is encrypted, and good for one call (profile, tool and arguments) and a limited time.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{JsonText, Permission};
use crate::server::mcp::refusal::Refusal;
use crate::server::mcp::sealing::Sealer;

/// How long a state of an MCP server may be used.
pub(super) const LIFETIME: Duration = Duration::from_secs(3600);

/// What goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RequestState {
    /// The MCP server needs the call again, with this state of its own.
    #[serde(rename = "server")]
    Server(Option<String>),
    /// The call waits in this daemon under this handle.
    #[serde(rename = "held")]
    Held(String),
}

#[derive(Serialize, Deserialize)]
struct SealedState {
    #[serde(rename = "s")]
    state: RequestState,
    /// Seconds since 1970.
    #[serde(rename = "e")]
    expires: i64,
}

/// What a state is bound to.
pub(super) struct StateBinding {
    pub(super) profile: Option<String>,
    /// The level that the caller named.
    pub(super) permission: Option<Permission>,
    /// The tool, or what a relayed request is about.
    pub(super) tool: String,
    pub(super) arguments: JsonText,
}

impl StateBinding {
    /// The text for the seal: blanks between the values of the arguments do not matter. Made only
    /// where there is a state, because the arguments may be large.
    fn text(&self) -> String {
        let arguments = self.arguments.get();
        let plain = serde_json::from_str::<Value>(arguments)
            .map_or_else(|_| arguments.to_owned(), |value| value.to_string());
        match self.permission {
            None => serde_json::json!([self.profile, self.tool, plain]).to_string(),
            Some(level) => {
                serde_json::json!([self.profile, self.tool, plain, level.as_str()]).to_string()
            }
        }
    }
}

impl RequestState {
    /// The text for the client. `None` if it cannot be sealed.
    pub(super) fn seal(
        self,
        sealer: &Sealer,
        bound: &StateBinding,
        now: Timestamp,
        lifetime: Duration,
    ) -> Option<String> {
        let expires = now.saturating_add(lifetime).unwrap_or(now).as_second();
        let text = serde_json::to_string(&SealedState {
            state: self,
            expires,
        })
        .ok()?;
        sealer.seal(&text, &bound.text())
    }

    /// Reads the text of a client.
    pub(super) fn open(
        text: &str,
        sealer: &Sealer,
        bound: &StateBinding,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        let opened = sealer
            .open(text, &bound.text())
            .and_then(|text| serde_json::from_str::<SealedState>(&text).ok());
        match opened {
            Some(SealedState { state, expires }) if now.as_second() < expires => Ok(state),
            Some(_) => Err(Refusal::invalid(
                "the `requestState` is too old; make the call without it",
            )),
            None => Err(Refusal::invalid(
                "the `requestState` was not given for this call with these arguments; make the call without it",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(profile: Option<&str>, tool: &str, arguments: &str) -> StateBinding {
        let arguments = JsonText::parse(arguments).unwrap();
        StateBinding {
            profile: profile.map(str::to_owned),
            permission: None,
            tool: tool.to_owned(),
            arguments,
        }
    }

    #[test]
    fn a_state_is_good_for_one_call_and_a_limited_time() {
        let sealer = Sealer::new(None);
        let now = Timestamp::from_second(1_000).unwrap();
        let bound = binding(Some("p"), "files__read", r#"{"a": 1}"#);
        let same = binding(Some("p"), "files__read", r#"{ "a":1 }"#);
        let state = RequestState::Server(Some("inner".into()));
        let text = state
            .clone()
            .seal(&sealer, &bound, now, Duration::from_secs(60))
            .unwrap();
        assert_eq!(RequestState::open(&text, &sealer, &same, now), Ok(state));
        for other in [
            binding(None, "files__read", r#"{"a": 1}"#),
            binding(Some("p"), "files__write", r#"{"a": 1}"#),
            binding(Some("p"), "files__read", r#"{"a": 2}"#),
        ] {
            assert!(
                RequestState::open(&text, &sealer, &other, now).is_err(),
                "{}",
                other.text()
            );
        }
        let late = Timestamp::from_second(1_060).unwrap();
        let refused = RequestState::open(&text, &sealer, &bound, late).unwrap_err();
        assert!(refused.error.message.contains("too old"), "{refused:?}");
        assert!(RequestState::open("made up", &sealer, &bound, now).is_err());
    }
}
