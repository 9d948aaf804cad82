//! Pages of lists: a size, and an opaque token that says where the next page begins.

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::server::http::error::Problem;
use crate::server::http::params::{Param, ParamType, once};
use crate::server::http::query::{QueryParams, bad_value};

/// Elements of one page where the client does not say it, and the most.
const PAGE_ELEMENTS_DEFAULT: usize = 25;
const PAGE_ELEMENTS_MAX: u32 = 256;

/// The token of a page.
pub(super) const PAGE_TOKEN: Param = once("pageToken").about(
    "The `nextPageToken` of the page before, with the same filters.",
    "",
);

/// The size of a page, under the name of a route.
pub(super) const fn page_size(name: &'static str) -> Param {
    once(name)
        .takes(ParamType::Count(1, PAGE_ELEMENTS_MAX))
        .about("Elements of one page at most; 25 by default.", "7")
}

/// What a token says.
#[derive(Serialize, Deserialize)]
struct TokenContent {
    /// The digest of the list and its filters.
    f: u64,
    /// The place behind which the page begins.
    a: String,
}

/// The page that a client wants.
pub(super) struct WantedPage {
    size: usize,
    filters: u64,
    after: Option<String>,
}

impl WantedPage {
    /// Parses size and token. `filters` is the list and its filters as a text: a token of another
    /// list is refused.
    pub(super) fn parse(query: &QueryParams, size: &str, filters: &str) -> Result<Self, Problem> {
        let filters = xxh3_64(filters.as_bytes());
        let wrong = |text: &str| {
            bad_value(
                size,
                text,
                &format!("a whole number from 1 to {PAGE_ELEMENTS_MAX}"),
            )
        };
        let size = query.optional(size).map(|text| {
            let size = text
                .parse::<u32>()
                .ok()
                .filter(|size| (1..=PAGE_ELEMENTS_MAX).contains(size));
            size.and_then(|size| usize::try_from(size).ok())
                .ok_or_else(|| wrong(text))
        });
        let token = query
            .optional("pageToken")
            .filter(|token| !token.is_empty());
        let after = token.map(|token| {
            let content = BASE64_URL_SAFE_NO_PAD.decode(token).ok();
            let content =
                content.and_then(|content| serde_json::from_slice::<TokenContent>(&content).ok());
            content
                .filter(|content| content.f == filters)
                .map(|content| content.a)
                .ok_or_else(|| {
                    bad_value(
                        "pageToken",
                        token,
                        "the `nextPageToken` of an answer to the same filters",
                    )
                })
        });
        Ok(Self {
            size: size.transpose()?.unwrap_or(PAGE_ELEMENTS_DEFAULT),
            filters,
            after: after.transpose()?,
        })
    }

    /// The elements of the page, of all in order, with the token of the next one. `key` is the
    /// place of an element: unique, and in the order of the list.
    pub(super) fn cut<T>(
        &self,
        all: impl Iterator<Item = T>,
        key: impl Fn(&T) -> String,
    ) -> (Vec<T>, Option<String>) {
        let begun = |element: &T| {
            self.after
                .as_ref()
                .is_none_or(|after| key(element) > *after)
        };
        let mut page: Vec<T> = all.filter(begun).take(self.size + 1).collect();
        let more = page.len() > self.size;
        page.truncate(self.size);
        let last = page.last().filter(|_| more).map(key);
        (page, last.map(|last| self.token(last)))
    }

    /// The token of the page behind a place.
    fn token(&self, after: String) -> String {
        let content = serde_json::to_vec(&TokenContent {
            f: self.filters,
            a: after,
        })
        .unwrap_or_default();
        BASE64_URL_SAFE_NO_PAD.encode(content)
    }
}
