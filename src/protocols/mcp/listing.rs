//! Lists what a server offers: all pages of a list, or a failure.
//!
//! A part of a list is a failed listing. The pages of one list are bounded in number, bytes and
//! time, and a cursor that comes twice ends the listing.

use std::collections::HashSet;
use std::time::Duration;

use super::connection::McpServer;
use super::request::{McpRequest, RequestError};
use crate::json::rpc::{METHOD_NOT_FOUND, RpcError};
use crate::model::JsonText;
use crate::protocols::{ListError, NoCaller};
use crate::runtime::Clock;
use crate::transports::TransportError;

/// The most pages of one list.
const MAX_PAGES: usize = 1_000;
/// The longest lifetime of a list that is believed.
const LIST_LIFETIME_MAX: Duration = Duration::from_secs(24 * 3600);

/// A list of a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerList {
    /// The method that gives a page of it.
    pub(super) method: &'static str,
    /// Reads what follows a page.
    pub(super) next: fn(&JsonText) -> Result<NextPage, ListError>,
    /// The result in place of the first one, if the server does not know the method.
    pub(super) unknown: Option<&'static str>,
}

/// What a page says of the list.
#[derive(Debug)]
pub(super) struct NextPage {
    /// The cursor of the next page, if there is one.
    pub(super) cursor: Option<String>,
    /// How long the list may be used, in milliseconds; zero where the server does not say it.
    pub(super) ttl_ms: u64,
}

/// All pages of a list.
#[derive(Debug, Clone)]
pub(super) struct Pages {
    /// The results of the requests, in order.
    pub(super) results: Vec<JsonText>,
    /// How long the server says that the list may be used.
    pub(super) lifetime: Duration,
    pub(super) took: Duration,
}

/// Why a list was not read to its end.
#[derive(Debug)]
pub(super) enum PagesError {
    /// A request had no answer.
    Request(RequestError),
    /// The server answered an error to this method.
    Refused(&'static str, RpcError),
    /// The answers cannot be used.
    Unusable(ListError),
}

impl From<PagesError> for ListError {
    fn from(error: PagesError) -> Self {
        match error {
            PagesError::Request(error) => error.into_list_error(),
            PagesError::Refused(method, error) => {
                Self::Malformed(format!("it refused `{method}`: {error}"))
            }
            PagesError::Unusable(error) => error,
        }
    }
}

/// Requests all pages, in `limit` altogether and at most `max_bytes`.
pub(super) async fn pages(
    server: &McpServer,
    list: ServerList,
    limit: Duration,
    max_bytes: usize,
    address: &str,
    clock: Clock,
) -> Result<Pages, PagesError> {
    let began = clock.now();
    let malformed = |why: String| PagesError::Unusable(ListError::Malformed(why));
    let mut pages = Vec::new();
    let mut cursors = HashSet::new();
    let mut bytes = 0;
    let mut lifetime = u64::MAX;
    let mut params = String::new();
    loop {
        let left = limit.saturating_sub(clock.now() - began);
        if left.is_zero() {
            let timeout = TransportError::Timeout {
                url: address.to_owned(),
                limit,
            };
            return Err(PagesError::Request(RequestError::Unanswered(timeout)));
        }
        let request = McpRequest::new(list.method, params, left, max_bytes - bytes);
        let reply = server
            .send(&request, &NoCaller)
            .await
            .map_err(PagesError::Request)?;
        let result = match reply {
            Ok(result) => result,
            Err(error) => match list
                .unknown
                .filter(|_| error.code == METHOD_NOT_FOUND && pages.is_empty())
            {
                Some(empty) => JsonText::known(empty),
                None => return Err(PagesError::Refused(list.method, error)),
            },
        };
        bytes += result.get().len();
        if bytes > max_bytes {
            let too_large = TransportError::TooLarge {
                url: address.to_owned(),
                limit: max_bytes,
            };
            return Err(PagesError::Request(RequestError::Unanswered(too_large)));
        }
        let NextPage { cursor, ttl_ms } = (list.next)(&result).map_err(PagesError::Unusable)?;
        lifetime = lifetime.min(ttl_ms);
        pages.push(result);
        let Some(cursor) = cursor else { break };
        if pages.len() == MAX_PAGES {
            return Err(malformed(format!(
                "its answer to `{}` has more than {MAX_PAGES} pages",
                list.method
            )));
        }
        params = format!(r#""cursor":{}"#, serde_json::Value::from(&*cursor));
        if !cursors.insert(cursor) {
            return Err(malformed(format!(
                "its answer to `{}` has no end: a cursor came for the second time",
                list.method
            )));
        }
    }
    let lifetime = Duration::from_millis(lifetime).min(LIST_LIFETIME_MAX);
    Ok(Pages {
        results: pages,
        lifetime,
        took: clock.now() - began,
    })
}
