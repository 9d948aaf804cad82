//! HTTP itself: connections, the guard, bodies, queries, content codings and errors. Knows no
//! resource and no route.
//!
//! ```text
//! accept/ -> guard -> held (bytes) -> query, params | body, typed_body -> handler
//! client <- content_coding <- shared_body, sse, batch, response_cache <- answer, or error
//! ```
//!
//! What is kept true here:
//!
//! - Each connection, head, body and idle time has a limit. A new client always gets in: the
//!   connection that has rested longest gives way.
//! - What the guard refuses never reaches a handler: another host, a page of another site, a body
//!   of a type that a page may post.
//! - What `query.rs` or `typed_body.rs` refuses is explained with the table or the type that the
//!   description of the API is made from. So the refusal names what is allowed.
//! - `error.rs` is the only form of refusals. Its text for an unexpected failure is constant.
//!
//! Read in this order:
//!
//! 1. `accept.rs` with `accept/` (connections), `guard.rs` (web pages), `held.rs` (the bytes that a
//!    connection holds).
//! 2. `params.rs` and `query.rs` (parameters), `body.rs` and `typed_body.rs` (bodies).
//! 3. `error.rs` and `next_step.rs` (refusals).
//! 4. `content_coding.rs`, `response_cache.rs`, `shared_body.rs`, `batch.rs`, `sse.rs` (answers).

pub(super) mod accept;
pub(super) mod batch;
pub(super) mod body;
pub(super) mod content_coding;
pub(super) mod error;
pub(super) mod guard;
pub(super) mod held;
pub(super) mod next_step;
pub(super) mod params;
pub(super) mod query;
pub(super) mod response_cache;
pub(super) mod shared_body;
pub(super) mod sse;
pub(super) mod typed_body;
