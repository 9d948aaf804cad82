//! What every route refuses, and what those that change something refuse beside it, each with an example by the code that says so.

use serde_json::Value;

use crate::engine::EngineError;
use crate::server::auth;
use crate::server::auth::Right;
use crate::server::http::error::Problem;
use crate::server::http::query::Query;
use crate::server::openapi::{Operation, Verb};
use crate::state::Trouble;

/// A refusal that many routes have in common.
pub(super) struct Common {
    pub(super) status: u16,
    /// Its name among the parts of the document.
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Whether it may be the answer of an operation.
    pub(super) of: fn(&Operation) -> bool,
    made: fn() -> Problem,
}

impl Common {
    /// The document that a client gets.
    pub(super) fn example(&self) -> Value {
        serde_json::to_value((self.made)().document()).unwrap_or_default()
    }
}

/// All of them.
pub(super) const COMMON: &[Common] = &[
    Common {
        status: 400,
        name: "BadRequest",
        about: "Something that was written cannot be: an unknown or repeated parameter, a value that is not allowed, a body that is no JSON. \
                `detail` names it and what is allowed.",
        of: |_| true,
        made: || Query::read(Some("formt=openai"), &[]).err().unwrap_or_else(|| Problem::bad_request("unknown")),
    },
    Common {
        status: 401,
        name: "TokenNeeded",
        about: "A token is configured (`server.operator_token`), and this needs it. Nothing changed.",
        of: |operation| operation.right.is_reserved(),
        made: || auth::example(Right::Approve),
    },
    Common {
        status: 401,
        name: "TokenNeededToLoosen",
        about: "A token is configured (`server.operator_token`), and enabling a tool, lifting its approval or changing its alias needs it. \
                So does resetting whether a tool is enabled or needs approval. Nothing changed.",
        of: |operation| operation.right == Right::Prefer,
        made: || auth::example(Right::Prefer),
    },
    Common {
        status: 403,
        name: "Forbidden",
        about: "Asked for under a name that is not the daemon's, by a web page of another site, or with a `profile` that is not configured \
                while others are.",
        of: |_| true,
        made: || crate::server::http::guard::refused_host("tools.example"),
    },
    Common {
        status: 408,
        name: "BodyTimeout",
        about: "The body did not arrive in time.",
        of: |operation| operation.body.is_some(),
        made: crate::server::http::body::late,
    },
    Common {
        status: 413,
        name: "BodyTooLarge",
        about: "The body is larger than `server.max_body`.",
        of: |_| true,
        made: || Problem::too_large(1_048_576),
    },
    Common {
        status: 415,
        name: "NotJson",
        about: "A body that changes something must say that it is JSON.",
        of: |operation| operation.verb != Verb::Get,
        made: || crate::server::http::guard::not_json(Some("text/plain")),
    },
    Common {
        status: 500,
        name: "Failed",
        about: "Something unexpected. The text is always the same; the daemon's log says more.",
        of: |_| true,
        made: Problem::failed,
    },
    Common {
        status: 503,
        name: "Stopping",
        about: "The daemon is stopping, or what it stores cannot be written now. Nothing changed; `Retry-After` says when to try again.",
        of: |operation| operation.verb != Verb::Get,
        made: || EngineError::Stopping.into(),
    },
    Common {
        status: 507,
        name: "NoRoom",
        about: "There is no room on the disk to store the change. Nothing changed.",
        of: |operation| operation.stores,
        made: || Problem::unstored(Trouble::Full),
    },
];
