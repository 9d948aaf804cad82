//! Rights: what an operation needs, and what the caller of a request may do.
//!
//! Every row of the tables of routes names its [`Right`].
//! [`require_right`](super::route_layer::require_right) puts one middleware in front of the
//! handler: it refuses a caller without the right before the handler runs or the body is read, and
//! gives the handler the caller's [`Access`]. Every caller has every right, unless
//! `server.operator_token` is configured: then some rights need that token (see
//! [`Right::reserved`]).
//!
//! Never identifies persons (all clients that know the token have the same rights), and never logs
//! or stores what a caller sends as a token.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::HeaderMap;
use http::request::Parts;
use tokio::sync::watch;

use self::token::TokenCheck;
use crate::calls::{FULL_ACCESS, Requester};
use crate::catalog::Catalog;
use crate::config::Config;
use crate::events::CallsSeen;
use crate::model::{ApprovalPolicy, PreferenceAuthor, Scope, SettingsPatch, belongs_to_access};
use crate::server::http::error::Problem;

mod token;

/// The ways to send the token, for error messages.
const HOW_TO_SEND_TOKEN: &str = "the command line takes it from its configuration or from `CALLSHEET_SERVER__OPERATOR_TOKEN`, the dashboard on its page \
                    Calls, and other clients send it as `Authorization: Bearer TOKEN`";

/// The active configuration: a reload may bring another token.
pub(super) type ConfigWatch = watch::Receiver<Arc<Config>>;

/// What a caller needs for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Right {
    /// To read what the daemon knows.
    Read,
    /// To call tools and to have scenarios polled.
    Call,
    /// To change preferences.
    Prefer,
    /// To approve and reject calls.
    Approve,
    /// To add and remove scenarios and to decide about them, to accept their definitions, to change
    /// stored tools, to reset all preferences of scopes, to cancel operations and to accept a loss
    /// of stored data.
    Operate,
}

impl Right {
    /// What of this right needs the token if one is configured, as the subject of a sentence;
    /// `None` if every caller has all of it.
    pub(super) fn reserved(self) -> Option<&'static str> {
        match self {
            Self::Read | Self::Call => None,
            Self::Prefer => Some(
                "enabling a tool, lifting its approval, changing its alias, changing the pins of a scenario or deciding which profiles are known",
            ),
            Self::Approve => Some("approving or rejecting a call"),
            Self::Operate => Some(
                "adding, removing or deciding about a scenario, accepting its definitions, changing stored tools, resetting all preferences of \
                     scopes, accepting a loss or cancelling an operation",
            ),
        }
    }

    /// Whether all operations with this right need the token. For [`Self::Prefer`] it depends on
    /// the change.
    pub(super) fn is_reserved(self) -> bool {
        matches!(self, Self::Approve | Self::Operate)
    }
}

/// What the caller of one request may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Everything: no token is configured, or the request has the right one.
    Full,
    /// Only what needs no token, because the request has none.
    WithoutToken,
    /// Only what needs no token, because the request has a wrong or malformed one.
    WrongToken,
}

impl Access {
    /// The access of a request with these headers, under the configuration of now, if it has this
    /// right; else the 401. Every face that calls tools judges its requests by this function:
    /// routes by [`require_right`](super::route_layer::require_right), and sockets, whose requests
    /// carry no headers, themselves.
    pub(super) fn judge(
        config: &ConfigWatch,
        headers: &HeaderMap,
        right: Right,
    ) -> Result<Self, Problem> {
        let access = Self::new(&config.borrow(), headers);
        if right.is_reserved() {
            access.check_reserved(right)?;
        }
        Ok(access)
    }

    /// Whether a request with these headers has the configured token. Without a configured one no
    /// request has it, though every caller may do everything.
    pub(super) fn has_token(config: &ConfigWatch, headers: &HeaderMap) -> bool {
        let config = config.borrow();
        config
            .operator_token()
            .is_some_and(|token| token::check_token(headers, token) == TokenCheck::Valid)
    }

    /// The identity that calls and turns of this caller belong to.
    pub(super) fn owner(self) -> &'static str {
        match self {
            Self::Full => FULL_ACCESS,
            Self::WithoutToken | Self::WrongToken => "without-token",
        }
    }

    /// On whose behalf a call of this caller is made, in no session.
    pub(super) fn requester(self) -> Requester {
        Requester::with_access(self.owner())
    }

    /// Whether this caller may see and change what belongs to `owner`: its own, and with the right
    /// `operate` everything.
    pub(super) fn may_see(self, owner: &str) -> bool {
        self.may_see_outcome(Some(owner))
    }

    /// Whether this caller may see what came of a call that belongs to `owner`; `None` if an
    /// earlier version stored it, which did not say to whom it belongs.
    pub(super) fn may_see_outcome(self, owner: Option<&str>) -> bool {
        self == Self::Full || belongs_to_access(owner, self.owner())
    }

    fn new(config: &Config, headers: &HeaderMap) -> Self {
        match config
            .operator_token()
            .map(|token| token::check_token(headers, token))
        {
            None | Some(TokenCheck::Valid) => Self::Full,
            Some(TokenCheck::Missing) => Self::WithoutToken,
            Some(TokenCheck::Invalid) => Self::WrongToken,
        }
    }

    /// The calls whose events this caller gets, if it names these, and with them the operations.
    /// None named are all for an operator.
    pub(super) fn calls_seen(self, ids: BTreeSet<Arc<str>>) -> CallsSeen {
        match self {
            Self::Full if ids.is_empty() => CallsSeen::All,
            Self::Full => CallsSeen::WithIds(ids),
            Self::WithoutToken | Self::WrongToken => {
                CallsSeen::OwnWithIds(self.owner().into(), ids)
            }
        }
    }

    /// Who makes the preferences of this caller.
    pub(super) fn preference_author(self) -> PreferenceAuthor {
        match self {
            Self::Full => PreferenceAuthor::Operator,
            Self::WithoutToken | Self::WrongToken => PreferenceAuthor::Client,
        }
    }

    /// Refuses a caller who may not make this change of preferences: 401 if the change loosens a
    /// preference and the request has no valid token.
    pub(super) fn check_change(self, patch: &SettingsPatch) -> Result<(), Problem> {
        if loosens(patch) {
            self.check_reserved(Right::Prefer)
        } else {
            Ok(())
        }
    }

    /// Refuses a caller who may not decide which profiles are known, if a change of preferences
    /// does that: 401. A known profile has lists refuse all other names, so a first preference for
    /// one and what may take away its last one need the token.
    pub(super) fn check_profiles(
        self,
        catalog: &Catalog,
        scope: &Scope,
        patch: &SettingsPatch,
    ) -> Result<(), Problem> {
        let SettingsPatch {
            enabled,
            approval,
            alias,
            priority,
            pinned,
            pins,
            description,
            parameters,
        } = patch;
        let resets = *enabled == Some(None)
            || *approval == Some(None)
            || *alias == Some(None)
            || *priority == Some(None)
            || *pinned == Some(None)
            || *pins == Some(None)
            || *description == Some(None)
            || *parameters == Some(None);
        let decides = match scope {
            Scope::Profile(_) => resets || !catalog.knows_scope(scope),
            Scope::Global | Scope::Chat(_) => false,
        };
        if decides {
            self.check_reserved(Right::Prefer)
        } else {
            Ok(())
        }
    }

    fn check_reserved(self, right: Right) -> Result<(), Problem> {
        let what = right.reserved().unwrap_or("this");
        match self {
            Self::Full => Ok(()),
            Self::WithoutToken => Err(Problem::unauthorized(
                format!("{what} needs the token of `server.operator_token`"),
                "Bearer realm=\"callsheet\"",
            )
            .and_next(HOW_TO_SEND_TOKEN)),
            Self::WrongToken => Err(Problem::unauthorized(
                format!("this is not the token of `server.operator_token`, which {what} needs"),
                "Bearer realm=\"callsheet\", error=\"invalid_token\"",
            )
            .and_next(HOW_TO_SEND_TOKEN)),
        }
    }
}

/// The problem that a caller without the token gets, as an example.
pub(super) fn example(right: Right) -> Problem {
    Access::WithoutToken
        .check_reserved(right)
        .err()
        .unwrap_or_else(Problem::internal_logged)
}

/// Whether a change may let callers do more than before. A reset counts like the loosest value that
/// may be inherited, because that may change later. An alias changes which tool a name means. So
/// does its removal: another tool may get that name from then on. An override changes what a model
/// reads and what a tool gets, so each is an operator's.
fn loosens(patch: &SettingsPatch) -> bool {
    // All settings are named, so that a new one has to be considered here, too.
    let SettingsPatch {
        enabled,
        approval,
        alias,
        priority: _,
        pinned: _,
        pins,
        description,
        parameters,
    } = patch;
    matches!(enabled, Some(None | Some(true)))
        || matches!(approval, Some(None | Some(ApprovalPolicy::Skip)))
        || alias.is_some()
        || pins.is_some()
        || description.is_some()
        || parameters.is_some()
}

impl<S: Sync> FromRequestParts<S> for Access {
    type Rejection = Problem;

    /// Fails for a handler that is in no table of routes: the access of its caller is not known.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let access = parts.extensions.get::<Self>().copied();
        access.ok_or_else(|| {
            Problem::internal(&"a handler without a right asks what its caller may do")
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::Callsheet;
    use crate::model::{PublishedName, Secret};
    use crate::runtime::Clock;
    use crate::server::dashboard::PAGE_ROUTES;
    use crate::server::routes::ROUTES;

    const TOKEN: &str = "0123456789abcdef-topsecret";

    /// What is reserved where a token is configured, by the ids of the operations.
    const RESERVED: [&str; 29] = [
        "acceptPins",
        "acceptStateLoss",
        "addScenario",
        "approveCall",
        "beginLogin",
        "blockScenario",
        "cancelOperation",
        "deleteBundle",
        "deleteStoredTool",
        "finishLogin",
        "forgetScenario",
        "forgetUnreachable",
        "importBundle",
        "logout",
        "putBundle",
        "putDefinition",
        "putProfile",
        "putStoredTool",
        "rejectCall",
        "removeDefinition",
        "removeProfile",
        "removeScenario",
        "resetPreferences",
        "restoreBundle",
        "switchBundle",
        "switchStoredTool",
        "trustScenario",
        "unblockScenario",
        "untrustScenario",
    ];

    /// A path of the tables with a value in place of each parameter.
    fn target(path: &str) -> String {
        let filled = |part: &str| {
            if part.starts_with('{') {
                "x".to_owned()
            } else {
                part.to_owned()
            }
        };
        path.split('/').map(filled).collect::<Vec<_>>().join("/")
    }

    /// The head of an answer; the body of some never ends.
    async fn head(address: SocketAddr, method: &str, target: &str, shown: &[&str]) -> String {
        let lines: Vec<String> = shown
            .iter()
            .map(|line| format!("Authorization: {line}\r\n"))
            .collect();
        let body = if method == "GET" { "" } else { "{}" };
        // The guard stands before the rights.
        let media = if target.ends_with("/archive") {
            "application/zip"
        } else {
            "application/json"
        };
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {media}\r\nContent-Length: {}\r\n{}\r\n{body}",
            body.len(),
            lines.concat(),
        );
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        String::from_utf8(head).unwrap()
    }

    async fn status(address: SocketAddr, method: &str, target: &str, shown: &[&str]) -> u16 {
        head(address, method, target, shown)
            .await
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap()
    }

    /// Runs a check against a daemon with this token.
    async fn with_daemon(token: Option<&str>, check: impl AsyncFnOnce(SocketAddr)) {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::for_state(folder.path().join("state.db"));
        config.discovery.vrooli.enabled = false;
        config.discovery.environment.enabled = false;
        config.server.operator_token = token.map(Secret::new);
        let app = Callsheet::start(config, Clock::system()).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::select! {
            served = app.serve(listener) => panic!("it ended: {served:?}"),
            () = check(address) => {}
        }
        app.finish().await;
    }

    /// Every method and target of both tables, with its right.
    async fn operations(address: SocketAddr) -> Vec<(String, String, Right)> {
        let mut all = Vec::new();
        for route in ROUTES {
            for operation in route.operations {
                let target = format!("{}{}", target(route.path), operation.path_suffix);
                all.push((operation.verb.as_str().to_owned(), target, operation.right));
            }
        }
        for entry in PAGE_ROUTES {
            let target = target(entry.path);
            let answer = head(address, "PATCH", &target, &[]).await.to_lowercase();
            let allowed = answer
                .lines()
                .find_map(|line| line.strip_prefix("allow: "))
                .unwrap()
                .to_uppercase();
            let methods = allowed
                .split(',')
                .map(str::trim)
                .filter(|method| *method != "HEAD");
            all.extend(methods.map(|method| (method.to_owned(), target.clone(), entry.right)));
        }
        all
    }

    #[tokio::test]
    async fn with_a_token_exactly_what_is_reserved_needs_it() {
        let right = &*format!("Bearer {TOKEN}");
        let wrong = &*format!("Bearer {TOKEN}!");
        with_daemon(Some(TOKEN), async |address| {
            let operations = operations(address).await;
            assert!(operations.len() > 50, "both tables: {}", operations.len());
            for (method, target, needed) in operations {
                for shown in [&[][..], &[wrong], &[TOKEN], &[right, right]] {
                    let refused = status(address, &method, &target, shown).await == 401;
                    assert_eq!(refused, needed.is_reserved(), "{method} {target} {shown:?}");
                }
                assert_ne!(
                    status(address, &method, &target, &[right]).await,
                    401,
                    "{method} {target}"
                );
            }
        })
        .await;
    }

    #[tokio::test]
    async fn without_a_token_every_caller_has_every_right() {
        with_daemon(None, async |address| {
            for (method, target, _) in operations(address).await {
                for shown in [&[][..], &["Bearer some-other-token"]] {
                    assert_ne!(
                        status(address, &method, &target, shown).await,
                        401,
                        "{method} {target}"
                    );
                }
            }
        })
        .await;
    }

    #[test]
    fn the_reserved_operations_are_the_known_ones() {
        let operations = ROUTES.iter().flat_map(|route| route.operations);
        let reserved: BTreeSet<&str> = operations
            .filter(|operation| operation.right.is_reserved())
            .map(|operation| operation.id)
            .collect();
        assert_eq!(reserved, BTreeSet::from(RESERVED));
    }

    #[test]
    fn reading_takes_no_more_than_the_right_to_read_and_changing_takes_another() {
        for route in ROUTES {
            for operation in route.operations {
                assert_eq!(
                    operation.right == Right::Read,
                    operation.is_safe(),
                    "{}",
                    operation.id
                );
            }
        }
    }

    /// One handler answers for several operations, and is behind one right.
    #[test]
    fn operations_of_one_handler_have_one_right() {
        for route in ROUTES {
            for within in route
                .operations
                .iter()
                .filter(|operation| operation.handler.is_none())
            {
                let handler = route
                    .operations
                    .iter()
                    .find(|other| other.handler.is_some() && other.verb == within.verb);
                assert_eq!(handler.unwrap().right, within.right, "{}", within.id);
            }
        }
    }

    /// These are answered in front of the router, where no right is checked.
    #[test]
    fn what_passes_by_the_router_is_open_to_every_caller() {
        let operations = ROUTES.iter().flat_map(|route| route.operations);
        let short: Vec<_> = operations
            .filter(|operation| ["listTools", "getTool", "callTool"].contains(&operation.id))
            .map(|operation| operation.right.reserved())
            .collect();
        assert_eq!(short, [None; 3]);
    }

    #[test]
    fn preference_changes_that_loosen_are_distinguished() {
        let patch = SettingsPatch::default;
        let alias = || Some(PublishedName::alias("reader").unwrap());
        for loosening in [
            SettingsPatch {
                enabled: Some(Some(true)),
                ..patch()
            },
            SettingsPatch {
                enabled: Some(None),
                ..patch()
            },
            SettingsPatch {
                approval: Some(Some(ApprovalPolicy::Skip)),
                ..patch()
            },
            SettingsPatch {
                approval: Some(None),
                ..patch()
            },
            SettingsPatch {
                alias: Some(alias()),
                ..patch()
            },
            SettingsPatch {
                alias: Some(None),
                ..patch()
            },
            SettingsPatch {
                enabled: Some(Some(false)),
                approval: Some(None),
                ..patch()
            },
            SettingsPatch::reset(),
        ] {
            assert!(loosens(&loosening), "{loosening:?}");
            assert!(Access::Full.check_change(&loosening).is_ok());
            assert!(Access::WithoutToken.check_change(&loosening).is_err());
            assert!(Access::WrongToken.check_change(&loosening).is_err());
        }
        for other in [
            patch(),
            SettingsPatch {
                enabled: Some(Some(false)),
                ..patch()
            },
            SettingsPatch {
                approval: Some(Some(ApprovalPolicy::Require)),
                ..patch()
            },
            SettingsPatch {
                priority: Some(Some(9)),
                pinned: Some(Some(true)),
                ..patch()
            },
        ] {
            assert!(!loosens(&other), "{other:?}");
            assert!(Access::WithoutToken.check_change(&other).is_ok());
        }
    }
}
