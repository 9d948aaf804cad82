//! The raw answer of a scenario, as it is sent now.
//!
//! Raw answers are not stored, so the scenario is polled once more for each view. This changes
//! neither the catalog nor the health of the scenario.

use axum::extract::{Path, State};
use axum::response::Response;
use http::header::{
    AGE, CACHE_CONTROL, CONTENT_TYPE, DATE, ETAG, HeaderName, LAST_MODIFIED, RETRY_AFTER,
};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use maud::{Markup, html};
use serde::de::IgnoredAny;

use crate::json::layout::indented;
use crate::server::SharedState;
use crate::server::api::scenarios::find;
use crate::server::dashboard::page::{ErrorPage, html_response};
use crate::server::dashboard::text::{count, foreign, minute, sentence};
use crate::server::http::error::Problem;

/// At most this many characters of an answer are shown.
const SHOWN: usize = 400_000;
/// At most this many answers are fetched at once, since each may be as large as `refresh.max_body`.
pub(super) const MAX_CONCURRENT: usize = 2;
/// The header fields that are shown: type and caching. Others may contain secrets that were not
/// sent from here, such as cookies.
const FIELDS: [HeaderName; 7] = [
    CONTENT_TYPE,
    CACHE_CONTROL,
    ETAG,
    LAST_MODIFIED,
    AGE,
    DATE,
    RETRY_AFTER,
];

/// `POST /dashboard/scenarios/{name}/raw`: polls it and shows the answer, whatever it is.
pub(super) async fn poll_raw(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = find(&shared.reader.snapshot(), &name)?.name.clone();
    let place = shared.dashboard.raw_polls.try_acquire();
    let _place = place.map_err(|_| {
        Problem::busy("too many raw answers are shown at the moment")
            .and_next("try again in a few seconds")
    })?;
    let markup = match shared.engine.fetch_raw_list(name).await? {
        Ok(came) => shown(
            came.head.status,
            &came.head.headers,
            &came.body,
            came.head.received_at,
        ),
        Err(error) => {
            html! { p class="bad" { "It gave no answer: " (sentence(&error.to_string(), 600)) } }
        }
    };
    html_response(&headers, markup).map_err(ErrorPage::into_problem)
}

fn shown(status: StatusCode, head: &HeaderMap, body: &[u8], received: Timestamp) -> Markup {
    let text = String::from_utf8_lossy(body);
    let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
    html! {
        p class=[(!status.is_success()).then_some("bad")] { strong { (status) } ", " (count(body.len(), "byte")) ", received " (minute(received)) }
        dl class="fields" { @for field in &FIELDS {
            @for value in head.get_all(field) { dt { (field) } dd { code { (foreign(&String::from_utf8_lossy(value.as_bytes()), 300)) } } }
        } }
        @if is_json {
            p class="quiet" { "Only the whitespace between the parts was changed." }
            pre tabindex="0" { code { (foreign(&indented(&text, SHOWN), SHOWN)) } }
        } @else {
            p class="bad" { "This is not JSON." }
            pre tabindex="0" { code { (foreign(&text, SHOWN)) } }
        }
    }
}
