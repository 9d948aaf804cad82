//! The errors that all routes share, and those that all routes with changes share. Each has an
//! example that is made by the code that sends it.

use serde_json::Value;

use crate::engine::EngineError;
use crate::server::auth;
use crate::server::auth::Right;
use crate::server::http::error::Problem;
use crate::server::http::guard;
use crate::server::http::query::QueryParams;
use crate::server::openapi::{OperationSpec, Verb};
use crate::state::StateErrorKind;

/// An error that many routes share.
pub(super) struct CommonRefusal {
    pub(super) status: u16,
    /// Its name among the components of the document.
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Whether an operation may answer with it.
    pub(super) applies_to: fn(&OperationSpec) -> bool,
    make_example: fn() -> Problem,
}

impl CommonRefusal {
    /// The JSON document that a client gets.
    pub(super) fn example(&self) -> Value {
        serde_json::to_value((self.make_example)().document()).unwrap_or_default()
    }
}

/// All shared errors.
pub(super) const COMMON: &[CommonRefusal] = &[
    CommonRefusal {
        status: 400,
        name: "BadRequest",
        about: "Something that was written cannot be: an unknown or repeated parameter, a value that is not allowed, a body that is not JSON. \
                `detail` names it and what is allowed.",
        applies_to: |_| true,
        make_example: || {
            QueryParams::parse(Some("formt=openai"), &[])
                .err()
                .unwrap_or_else(|| Problem::bad_request("unknown"))
        },
    },
    CommonRefusal {
        status: 401,
        name: "TokenNeeded",
        about: "A token is configured (`server.operator_token`), and this needs it. Nothing changed.",
        applies_to: |operation| operation.right.is_reserved(),
        make_example: || auth::example(Right::Approve),
    },
    CommonRefusal {
        status: 401,
        name: "TokenNeededToLoosen",
        about: "A token is configured (`server.operator_token`), and enabling a tool, lifting its approval, changing its alias, changing the pins of a scenario or deciding which profiles are known needs it. \
                So does resetting whether a tool is enabled or needs approval. Nothing changed.",
        applies_to: |operation| operation.right == Right::Prefer,
        make_example: || auth::example(Right::Prefer),
    },
    CommonRefusal {
        status: 403,
        name: "Forbidden",
        about: "Asked for under a name that is not the daemon's, by a web page of another site, or with a `profile` that is not known \
                while others are.",
        applies_to: |_| true,
        make_example: || guard::refused_host("tools.example"),
    },
    CommonRefusal {
        status: 408,
        name: "BodyTimeout",
        about: "The body did not arrive in time.",
        applies_to: |operation| operation.body.is_some(),
        make_example: crate::server::http::body::body_timeout,
    },
    CommonRefusal {
        status: 413,
        name: "BodyTooLarge",
        about: "The body is larger than `server.max_body`.",
        applies_to: |_| true,
        make_example: || Problem::too_large(1_048_576),
    },
    CommonRefusal {
        status: 415,
        name: "NotJson",
        about: "A body that changes something must say that it is JSON, and be in no content coding.",
        applies_to: |operation| operation.verb != Verb::Get,
        make_example: || guard::other_media(guard::JSON, Some("text/plain")),
    },
    CommonRefusal {
        status: 500,
        name: "Failed",
        about: "Something unexpected. The text is always the same; see the daemon's log.",
        applies_to: |_| true,
        make_example: Problem::internal_logged,
    },
    CommonRefusal {
        status: 503,
        name: "Stopping",
        about: "The daemon is stopping, or what it stores cannot be written now. Nothing changed; `Retry-After` says when to try again.",
        applies_to: |operation| operation.verb != Verb::Get,
        make_example: || EngineError::Stopping.into(),
    },
    CommonRefusal {
        status: 507,
        name: "NoRoom",
        about: "There is no room on the disk to store the change. Nothing changed.",
        applies_to: |operation| operation.stores,
        make_example: || Problem::storage_failed(StateErrorKind::Full),
    },
];
