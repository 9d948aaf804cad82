//! What each route takes and answers, as data. The table of routes holds it, so a route cannot be without; [`document`] makes the
//! `OpenAPI` description of it.
//!
//! Schemas come from the types that are written (`schemars`), query parameters from the tables that the parser reads, refusals that many
//! routes have in common from [`refusals`], examples from what a daemon answered ([`examples`]). Never done here: answering anything
//! else than `/openapi.json`.

use axum::routing::MethodRouter;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::server::SharedState;
use crate::server::auth::Right;
use crate::server::http::error::Problem;
use crate::server::http::params::Param;

pub(super) mod document;
mod examples;
pub(super) mod list_schemas;
mod refusals;
pub(super) mod serve;

/// What one method of one path does.
#[derive(Debug, Clone, Copy)]
pub(super) struct OperationSpec {
    pub(super) verb: Verb,
    /// What its caller needs.
    pub(super) right: Right,
    /// Unique among all; generated clients name their functions after it.
    pub(super) id: &'static str,
    pub(super) tag: Tag,
    /// In a few words.
    pub(super) summary: &'static str,
    /// What it answers when all is well.
    pub(super) answer: ResponseSpec,
    /// Nothing for what another operation of the same route answers, too.
    pub(super) handler: Option<fn() -> MethodRouter<SharedState>>,
    /// What the path has after that of its route.
    pub(super) path_suffix: &'static str,
    /// In whole sentences, what a reader of the summary may still want to know.
    pub(super) about: &'static str,
    /// The very table that the handler reads the query with.
    pub(super) query: &'static [Param],
    /// The headers that it looks at.
    pub(super) headers: &'static [Param],
    pub(super) body: Option<ContentSpec>,
    /// Further answers that are no refusals.
    pub(super) also: &'static [ResponseSpec],
    /// What it may refuse, beside what all of its kind do.
    pub(super) refuses: &'static [RefusalSpec],
    /// Whether what it changes is stored.
    pub(super) stores: bool,
    /// Whether it answers 304 to who has the content.
    pub(super) revalidates: bool,
}

/// The methods that routes have. `GET` stands for `HEAD`, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verb {
    Get,
    Put,
    Post,
    Delete,
}

/// What operations are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tag {
    Tools,
    Calls,
    Scenarios,
    Preferences,
    Events,
    Inbox,
    Modules,
    Daemon,
}

/// An answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResponseSpec {
    pub(super) status: u16,
    pub(super) about: &'static str,
    pub(super) content: Option<ContentSpec>,
    /// Headers beside those that every answer has: names with what they say.
    pub(super) headers: &'static [(&'static str, &'static str)],
}

/// Why it may not answer what was asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct RefusalSpec {
    pub(super) status: u16,
    pub(super) about: &'static str,
    /// An example, where none can be asked for in a test.
    pub(super) example: Option<fn() -> Problem>,
}

/// A refusal with its status, and when it comes.
pub(super) const fn refusal(status: u16, about: &'static str) -> RefusalSpec {
    RefusalSpec { status, about, example: None }
}

impl RefusalSpec {
    /// With an example by the code that says so.
    pub(super) const fn with_example(self, made: fn() -> Problem) -> Self {
        Self { example: Some(made), ..self }
    }
}

/// What a body is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContentSpec {
    pub(super) media: &'static str,
    pub(super) schema: fn(&mut SchemaGenerator) -> Schema,
}

/// 200 with what is written of `T` as JSON.
pub(super) const fn json<T: JsonSchema>(about: &'static str) -> ResponseSpec {
    ResponseSpec { status: 200, about, content: Some(json_body::<T>()), headers: &[] }
}

/// A JSON body of `T`.
pub(super) const fn json_body<T: JsonSchema>() -> ContentSpec {
    ContentSpec { media: "application/json", schema: |generator| generator.subschema_for::<T>() }
}

/// 200 with a text of this media type.
pub(super) const fn text(media: &'static str, about: &'static str) -> ResponseSpec {
    ResponseSpec {
        status: 200,
        about,
        content: Some(ContentSpec { media, schema: SchemaGenerator::subschema_for::<String> }),
        headers: &[],
    }
}

/// 200 with a stream of server-sent events, each of which is a `T`: `OpenAPI` 3.1 has no word of its own for that.
pub(super) const fn streamed<T: JsonSchema>(about: &'static str) -> ResponseSpec {
    ResponseSpec { content: Some(ContentSpec { media: "text/event-stream", ..json_body::<T>() }), ..json::<T>(about) }
}

impl ResponseSpec {
    /// With another status than 200.
    pub(super) const fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// With headers of its own.
    pub(super) const fn headers(self, headers: &'static [(&'static str, &'static str)]) -> Self {
        Self { headers, ..self }
    }
}

/// What a method of a path does, answers and is answered by.
pub(super) const fn operation(
    verb: Verb,
    right: Right,
    tag: Tag,
    id: &'static str,
    summary: &'static str,
    answer: ResponseSpec,
    handler: fn() -> MethodRouter<SharedState>,
) -> OperationSpec {
    OperationSpec { handler: Some(handler), ..sub_operation("", right, tag, id, summary, answer).verb(verb) }
}

/// What a `GET` of a path below that of its route answers, when the handler of the route answers
/// that, too. The right that is checked is that of the handler; a test holds this one equal.
pub(super) const fn sub_operation(
    below: &'static str,
    right: Right,
    tag: Tag,
    id: &'static str,
    summary: &'static str,
    answer: ResponseSpec,
) -> OperationSpec {
    OperationSpec {
        verb: Verb::Get,
        right,
        id,
        tag,
        summary,
        answer,
        handler: None,
        path_suffix: below,
        about: "",
        query: &[],
        headers: &[],
        body: None,
        also: &[],
        refuses: &[],
        stores: false,
        revalidates: false,
    }
}

impl OperationSpec {
    const fn verb(self, verb: Verb) -> Self {
        Self { verb, ..self }
    }

    /// With what the summary leaves open.
    pub(super) const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// With the table that its handler reads the query with.
    pub(super) const fn query(self, query: &'static [Param]) -> Self {
        Self { query, ..self }
    }

    /// With the headers that it looks at.
    pub(super) const fn with_headers(self, headers: &'static [Param]) -> Self {
        Self { headers, ..self }
    }

    /// With a JSON body of `T`.
    pub(super) const fn body<T: JsonSchema>(self) -> Self {
        Self { body: Some(json_body::<T>()), ..self }
    }

    /// With further answers that are no refusals.
    pub(super) const fn also(self, also: &'static [ResponseSpec]) -> Self {
        Self { also, ..self }
    }

    /// With what it may refuse, and when.
    pub(super) const fn refuses(self, refuses: &'static [RefusalSpec]) -> Self {
        Self { refuses, ..self }
    }

    /// Is answered when the change is durable.
    pub(super) const fn stores(self) -> Self {
        Self { stores: true, ..self }
    }

    /// Has a strong `ETag`, and answers 304 to who names it.
    pub(super) const fn revalidates(self) -> Self {
        Self { revalidates: true, ..self }
    }

    /// The summary, for the table of routes.
    pub(super) fn answers(&self) -> String {
        match self.path_suffix {
            "" => self.summary.to_owned(),
            below => format!("with `{below}` {}", self.summary),
        }
    }

    /// Whether it promises to change nothing.
    pub(super) fn is_safe(&self) -> bool {
        self.verb == Verb::Get
    }
}

impl Verb {
    /// As in a request.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

impl Tag {
    /// Every group, in the order in which people read them.
    pub(super) const ALL: [Self; 8] = [
        Self::Tools,
        Self::Calls,
        Self::Scenarios,
        Self::Preferences,
        Self::Events,
        Self::Inbox,
        Self::Modules,
        Self::Daemon,
    ];

    /// The name of the group.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Calls => "calls",
            Self::Scenarios => "scenarios",
            Self::Preferences => "preferences",
            Self::Events => "events",
            Self::Inbox => "agent-inbox",
            Self::Modules => "modules",
            Self::Daemon => "daemon",
        }
    }

    /// What is in it.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Tools => "The one list of every tool that agents may call, in the shape that an LLM request carries.",
            Self::Calls => {
                "Calling tools, the calls that wait for a human's yes, and what long-running tools go on with."
            }
            Self::Scenarios => "How the programs that offer tools fare, and what operators do about them.",
            Self::Preferences => "What users and operators want of tools, by scope and target.",
            Self::Events => "Changes as they happen.",
            Self::Inbox => "The routes of the original agent-inbox, with its keys.",
            Self::Modules => "The routes that the first consumer of modules speaks of.",
            Self::Daemon => "The daemon itself.",
        }
    }
}
