//! Describes what each route takes and answers, as data. The table of routes holds the
//! descriptions, so no route can be without one; [`document`] builds the `OpenAPI` document from
//! them.
//!
//! ```text
//! routes.rs: OperationSpec --+
//! types (schemars) ----------+--> document --> serve: GET /openapi.json, once per coding
//! tables of parameters ------+             `-> the dashboard's page of the API
//! refusals, examples.json ---+
//! ```
//!
//! What is kept true here:
//!
//! - Schemas come from the types that are read and serialized, query parameters from the tables
//!   that the parser uses. So neither can differ from what the daemon does.
//! - Examples are recorded answers of a daemon ([`examples`]), or made by the code that sends them.
//!   A test repeats the requests and compares.
//! - The lists of tools, whose JSON is written by hand, have types for the description only; tests
//!   compare real answers with them.
//!
//! Read in this order: this file (the words of a description), `document.rs` (how it is written),
//! `refusals.rs` (errors that many routes share), `examples.rs`, `list_schemas.rs`, `serve.rs`.
//!
//! This module answers no request but `/openapi.json`.

use axum::routing::MethodRouter;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use crate::server::SharedState;
use crate::server::auth::Right;
use crate::server::http::error::Problem;
use crate::server::http::params::Param;

pub(super) mod document;
mod examples;
pub(super) mod list_schemas;
mod refusals;
pub(super) mod serve;

/// The description of one method of one path.
#[derive(Debug, Clone, Copy)]
pub(super) struct OperationSpec {
    pub(super) verb: Verb,
    /// The right that its caller needs.
    pub(super) right: Right,
    /// Unique among all operations; client generators name their functions after it.
    pub(super) id: &'static str,
    pub(super) tag: Tag,
    /// A summary of a few words.
    pub(super) summary: &'static str,
    /// The answer on success.
    pub(super) answer: ResponseSpec,
    /// `None` if the handler of another operation of the same route answers this one, too.
    pub(super) handler: Option<fn() -> MethodRouter<SharedState>>,
    /// The part of the path that follows the path of its route.
    pub(super) path_suffix: &'static str,
    /// Whole sentences with what the summary leaves open.
    pub(super) about: &'static str,
    /// The same table that the handler parses the query with.
    pub(super) query: &'static [Param],
    /// The request headers that the handler reads.
    pub(super) headers: &'static [Param],
    pub(super) body: Option<ContentSpec>,
    /// The most bytes of its body, where that is not `server.max_body`.
    pub(super) body_max: Option<usize>,
    /// Further answers that are not errors.
    pub(super) also: &'static [ResponseSpec],
    /// Its errors, beside those that all operations of its kind share.
    pub(super) refuses: &'static [RefusalSpec],
    /// Whether it changes the state store.
    pub(super) stores: bool,
    /// Whether it answers 304 to a client that already has the content.
    pub(super) revalidates: bool,
}

/// The methods of routes. `GET` includes `HEAD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verb {
    Get,
    Put,
    Post,
    Patch,
    Delete,
}

/// The groups of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tag {
    Tools,
    Calls,
    Scenarios,
    Preferences,
    Events,
    Inbox,
    Modules,
    Bundles,
    Daemon,
}

/// One answer of an operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResponseSpec {
    pub(super) status: u16,
    pub(super) about: &'static str,
    pub(super) content: Option<ContentSpec>,
    /// Names and descriptions of headers, beside those that every answer has.
    pub(super) headers: &'static [(&'static str, &'static str)],
}

/// One error that an operation may answer with.
#[derive(Debug, Clone, Copy)]
pub(super) struct RefusalSpec {
    pub(super) status: u16,
    pub(super) about: &'static str,
    /// Makes an example, if no test can provoke the error over HTTP.
    pub(super) example: Option<fn() -> Problem>,
}

/// An error with its status and the condition under which it occurs.
pub(super) const fn refusal(status: u16, about: &'static str) -> RefusalSpec {
    RefusalSpec {
        status,
        about,
        example: None,
    }
}

impl RefusalSpec {
    /// Adds an example.
    pub(super) const fn with_example(self, made: fn() -> Problem) -> Self {
        Self {
            example: Some(made),
            ..self
        }
    }
}

/// The media type and the schema of a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct ContentSpec {
    pub(super) media: &'static str,
    pub(super) schema: fn(&mut SchemaGenerator) -> Schema,
    /// Makes an example, if none can be had over HTTP from the daemon of the examples.
    pub(super) example: Option<fn() -> Value>,
}

/// A 200 answer with a `T` as JSON.
pub(super) const fn json<T: JsonSchema>(about: &'static str) -> ResponseSpec {
    ResponseSpec {
        status: 200,
        about,
        content: Some(json_body::<T>()),
        headers: &[],
    }
}

/// A JSON body of `T`.
pub(super) const fn json_body<T: JsonSchema>() -> ContentSpec {
    ContentSpec {
        media: "application/json",
        schema: |generator| generator.subschema_for::<T>(),
        example: None,
    }
}

/// A 200 answer with a text of this media type.
pub(super) const fn text(media: &'static str, about: &'static str) -> ResponseSpec {
    ResponseSpec {
        status: 200,
        about,
        content: Some(ContentSpec {
            media,
            schema: SchemaGenerator::subschema_for::<String>,
            example: None,
        }),
        headers: &[],
    }
}

/// A 200 answer with a file of this media type.
pub(super) const fn file(media: &'static str, about: &'static str) -> ResponseSpec {
    ResponseSpec {
        status: 200,
        about,
        content: Some(file_content(media)),
        headers: &[],
    }
}

/// The bytes of a file.
const fn file_content(media: &'static str) -> ContentSpec {
    let schema =
        |_: &mut SchemaGenerator| schemars::json_schema!({"type": "string", "format": "binary"});
    ContentSpec {
        media,
        schema,
        example: Some(|| "the bytes of the file".into()),
    }
}

/// A 200 answer with a stream of server-sent events, each of which is a `T`. `OpenAPI` 3.1 cannot
/// say that itself.
pub(super) const fn streamed<T: JsonSchema>(about: &'static str) -> ResponseSpec {
    ResponseSpec {
        content: Some(ContentSpec {
            media: "text/event-stream",
            ..json_body::<T>()
        }),
        ..json::<T>(about)
    }
}

impl ResponseSpec {
    /// Replaces the status 200.
    pub(super) const fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Adds an example to a JSON answer.
    pub(super) const fn with_example(self, made: fn() -> Value) -> Self {
        match self.content {
            Some(content) => Self {
                content: Some(ContentSpec {
                    example: Some(made),
                    ..content
                }),
                ..self
            },
            None => self,
        }
    }

    /// Adds headers of its own.
    pub(super) const fn headers(self, headers: &'static [(&'static str, &'static str)]) -> Self {
        Self { headers, ..self }
    }
}

/// An operation with its summary and its answer on success.
pub(super) const fn operation(
    verb: Verb,
    right: Right,
    tag: Tag,
    id: &'static str,
    summary: &'static str,
    answer: ResponseSpec,
    handler: fn() -> MethodRouter<SharedState>,
) -> OperationSpec {
    OperationSpec {
        handler: Some(handler),
        ..sub_operation("", right, tag, id, summary, answer).verb(verb)
    }
}

/// A `GET` of a path below that of its route that is answered by the handler of the route. The
/// right of that handler is checked; a test ensures that the one named here is the same.
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
        body_max: None,
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

    /// Adds the text that the summary leaves open.
    pub(super) const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// Adds the table that the handler parses the query with.
    pub(super) const fn query(self, query: &'static [Param]) -> Self {
        Self { query, ..self }
    }

    /// Adds the headers that the handler reads.
    pub(super) const fn with_headers(self, headers: &'static [Param]) -> Self {
        Self { headers, ..self }
    }

    /// Takes a JSON body of `T`.
    pub(super) const fn body<T: JsonSchema>(self) -> Self {
        Self {
            body: Some(json_body::<T>()),
            ..self
        }
    }

    /// Takes a JSON body of `T`, with an example.
    pub(super) const fn body_like<T: JsonSchema>(self, made: fn() -> Value) -> Self {
        Self {
            body: Some(ContentSpec {
                example: Some(made),
                ..json_body::<T>()
            }),
            ..self
        }
    }

    /// Takes a file of this media type, of at most so many bytes.
    pub(super) const fn takes_file(self, media: &'static str, max: usize) -> Self {
        Self {
            body: Some(file_content(media)),
            body_max: Some(max),
            ..self
        }
    }

    /// Adds further answers that are not errors.
    pub(super) const fn also(self, also: &'static [ResponseSpec]) -> Self {
        Self { also, ..self }
    }

    /// Adds its errors.
    pub(super) const fn refuses(self, refuses: &'static [RefusalSpec]) -> Self {
        Self { refuses, ..self }
    }

    /// Marks an operation that answers only when its change is durable.
    pub(super) const fn stores(self) -> Self {
        Self {
            stores: true,
            ..self
        }
    }

    /// Marks an operation that sends a strong `ETag` and answers 304 to a client that has the
    /// content.
    pub(super) const fn revalidates(self) -> Self {
        Self {
            revalidates: true,
            ..self
        }
    }

    /// The summary, for the table of routes.
    pub(super) fn answers(&self) -> String {
        match self.path_suffix {
            "" => self.summary.to_owned(),
            below => format!("with `{below}` {}", self.summary),
        }
    }

    /// Whether the method is safe: it changes no state (RFC 9110 section 9.2.1).
    pub(super) fn is_safe(&self) -> bool {
        self.verb == Verb::Get
    }
}

impl Verb {
    /// The method as in a request line.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl Tag {
    /// All groups, in reading order.
    pub(super) const ALL: [Self; 9] = [
        Self::Tools,
        Self::Calls,
        Self::Scenarios,
        Self::Preferences,
        Self::Events,
        Self::Inbox,
        Self::Modules,
        Self::Bundles,
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
            Self::Bundles => "bundles",
            Self::Daemon => "daemon",
        }
    }

    /// The description of the group.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::Tools => {
                "The one list of every tool that agents may call, in the shape that an LLM request carries."
            }
            Self::Calls => {
                "Calling tools, calls that wait for approval, and the progress of long-running tools."
            }
            Self::Scenarios => {
                "How the programs that offer tools fare, and what operators do about them."
            }
            Self::Preferences => "What users and operators want of tools, by scope and target.",
            Self::Events => "Changes as they happen.",
            Self::Inbox => "The routes of the original agent-inbox, with its keys.",
            Self::Modules => "The routes that the first consumer of modules uses.",
            Self::Bundles => {
                "Tools that are stored as files, in bundles: requests over HTTP, and functions of the program."
            }
            Self::Daemon => "The daemon itself.",
        }
    }
}
