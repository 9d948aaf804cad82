//! HTTP itself: connections, the guard, bodies, queries, content codings and errors. Knows no
//! resource and no route.

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
