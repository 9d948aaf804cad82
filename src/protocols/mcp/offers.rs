//! Lists what a server offers besides tools: prompts, resources and templates of resources.
//!
//! They are kept as they came. If a list fails, its last good version stays, with a finding; the
//! tools are not affected.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::connection::McpServer;
use super::decode::milliseconds;
use super::listing::{NextPage, Pages, ServerList, pages};
use super::server::ServerDescription;
use crate::model::finding::quoted_excerpt;
use crate::model::{
    Bounds, CappedFindings, Finding, FindingCode, JsonText, META, RelayedKind, RelayedOffer,
    RelayedOffers, client_member, refused_meta_keys,
};
use crate::protocols::ListError;
use crate::protocols::decoding::decode_manifest;
use crate::protocols::document::budget::DecodeBudget;
use crate::protocols::document::envelope::Members;
use crate::protocols::document::flaw::Flaw;
use crate::protocols::document::raw::Raw;
use crate::transports::Transports;

/// The most bytes of a name, a URI or a template.
const KEY_MAX: usize = 2_048;
/// The most templates that are taken from one scenario. The URI of a request that no list has is
/// compared with those of all scenarios.
const TEMPLATES_MAX: usize = 200;

/// What one listing found besides tools.
#[derive(Debug, Default)]
pub(super) struct ListedOffers {
    pub(super) offers: RelayedOffers,
    pub(super) findings: Vec<Finding>,
    /// The shortest lifetime of the lists that were read.
    pub(super) lifetime: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OffersPage<'a> {
    #[serde(borrow)]
    prompts: Option<&'a RawValue>,
    #[serde(borrow)]
    resources: Option<&'a RawValue>,
    #[serde(borrow)]
    resource_templates: Option<&'a RawValue>,
    next_cursor: Option<String>,
    #[serde(borrow)]
    ttl_ms: Option<&'a RawValue>,
}

impl<'a> OffersPage<'a> {
    fn parse(result: &'a JsonText) -> Result<Self, ListError> {
        serde_json::from_str(result.get())
            .map_err(|error| ListError::Malformed(format!("its answer cannot be read: {error}")))
    }

    fn items(&self, kind: RelayedKind) -> Option<&'a RawValue> {
        match kind {
            RelayedKind::Prompts => self.prompts,
            RelayedKind::Resources => self.resources,
            RelayedKind::Templates => self.resource_templates,
        }
    }
}

/// Whether a server declares that it offers this kind.
fn is_declared(server: &ServerDescription, kind: RelayedKind) -> bool {
    match kind {
        RelayedKind::Prompts => server.has_prompts,
        RelayedKind::Resources | RelayedKind::Templates => server.has_resources,
    }
}

fn list_of(kind: RelayedKind) -> ServerList {
    let next = |result: &JsonText| {
        let page = OffersPage::parse(result)?;
        Ok(NextPage {
            cursor: page.next_cursor,
            ttl_ms: milliseconds(page.ttl_ms),
        })
    };
    // Many servers of resources have no templates, and do not know that method.
    ServerList {
        method: kind.method(),
        next,
        unknown: Some("{}"),
    }
}

/// Requests all lists that the server declares, each within the time of a poll and all within
/// `max_bytes`. `known` are the last good ones.
pub(super) async fn list(
    server: &McpServer,
    known: &RelayedOffers,
    max_bytes: usize,
    bounds: Bounds,
    address: &str,
    transports: &Transports,
) -> ListedOffers {
    let limit = transports.poll_timeout();
    let clock = transports.clock();
    let mut listed = ListedOffers::default();
    let mut left = max_bytes;
    for kind in RelayedKind::ALL
        .into_iter()
        .filter(|kind| is_declared(&server.info, *kind))
    {
        match pages(server, list_of(kind), limit, left, address, clock).await {
            Ok(Pages {
                results, lifetime, ..
            }) => {
                let bytes: usize = results.iter().map(|page| page.get().len()).sum();
                left -= bytes.min(left);
                let results = Arc::new(results);
                let work = move || decode(kind, &results, bounds);
                match decode_manifest(transports.tasks(), bytes, work).await {
                    Ok((offers, findings)) => {
                        listed.offers.set(kind, offers);
                        listed.findings.extend(findings);
                        listed.lifetime = Some(
                            listed
                                .lifetime
                                .map_or(lifetime, |known| known.min(lifetime)),
                        );
                    }
                    Err(error) => listed.keep(kind, known, &error),
                }
            }
            Err(error) => listed.keep(kind, known, &ListError::from(error)),
        }
    }
    listed
}

impl ListedOffers {
    /// Keeps the last good list, since the new one failed.
    fn keep(&mut self, kind: RelayedKind, known: &RelayedOffers, error: &ListError) {
        self.offers.set(kind, Arc::clone(known.of(kind)));
        let message = format!(
            "its `{}` failed, so the last good list stays: {error}",
            kind.method()
        );
        self.findings
            .push(Finding::new(FindingCode::OfferLeftOut, message));
    }
}

/// Decodes the pages of one list.
fn decode(
    kind: RelayedKind,
    pages: &[JsonText],
    bounds: Bounds,
) -> Result<(Arc<[RelayedOffer]>, Vec<Finding>), ListError> {
    let mut offers = BTreeMap::new();
    let mut findings = CappedFindings::default();
    let mut index = 0_usize;
    let most = if kind == RelayedKind::Templates {
        bounds.tools.min(TEMPLATES_MAX)
    } else {
        bounds.tools
    };
    let mut budget = DecodeBudget::for_document(pages.iter().map(|page| page.get().len()).sum());
    for page in pages {
        let Some(items) = OffersPage::parse(page)?.items(kind) else {
            continue;
        };
        let items: Vec<&RawValue> = serde_json::from_str(items.get()).map_err(|error| {
            ListError::Malformed(format!("`{}` is not a list: {error}", kind.member()))
        })?;
        for item in items {
            let at = index;
            index += 1;
            let decoded = offer(kind, item, bounds, &mut budget).and_then(|offer| {
                if offers.contains_key(&offer.key) {
                    return Err(Flaw::new(
                        "",
                        format!("has the {} of another one", kind.key()),
                    ));
                }
                if offers.len() >= most {
                    return Err(Flaw::new(
                        "",
                        format!("is beyond the first {most} of the list"),
                    ));
                }
                Ok(offer)
            });
            match decoded {
                Ok(mut offer) => {
                    if let Some(keys) = take_refused_meta(&mut offer) {
                        findings.push_with(FindingCode::MetaKeyLeftOut, || {
                            meta_keys_left_out(kind, at, &offer, &keys)
                        });
                    }
                    offers.insert(Arc::clone(&offer.key), offer);
                }
                Err(flaw) => {
                    findings.push_with(FindingCode::OfferLeftOut, || left_out(kind, at, &flaw));
                }
            }
        }
    }
    Ok((offers.into_values().collect(), findings.finish()))
}

fn offer(
    kind: RelayedKind,
    item: &RawValue,
    bounds: Bounds,
    budget: &mut DecodeBudget,
) -> Result<RelayedOffer, Flaw> {
    let mut members = Members::from_raw(Raw::from_raw_value(item))?;
    let size = members.bytes();
    if size > bounds.part {
        return Err(Flaw::too_large(size, bounds));
    }
    let key = members
        .take_text(kind.key())?
        .filter(|key| !key.is_empty() && key.len() <= KEY_MAX);
    let key = key.ok_or_else(|| {
        Flaw::new(
            "",
            format!("needs a `{}` of 1 to {KEY_MAX} bytes", kind.key()),
        )
    })?;
    Ok(RelayedOffer {
        key: key.as_ref().into(),
        members: members.into_extra(budget)?,
    })
}

/// Takes keys that MCP does not allow out of the `_meta` of an offer, and gives them, if there are
/// any.
fn take_refused_meta(offer: &mut RelayedOffer) -> Option<Vec<String>> {
    let (_, meta) = offer.members.iter().find(|(name, _)| &**name == META)?;
    let refused = Some(refused_meta_keys(meta.get())).filter(|keys| !keys.is_empty())?;
    let allowed = |name: &Arc<str>, json: &JsonText| match client_member(name, json.get()) {
        Cow::Owned(changed) => JsonText::known(changed),
        Cow::Borrowed(_) => json.clone(),
    };
    offer.members = offer
        .members
        .iter()
        .map(|(name, json)| (Arc::clone(name), allowed(name, json)))
        .collect();
    Some(refused)
}

fn meta_keys_left_out(
    kind: RelayedKind,
    index: usize,
    offer: &RelayedOffer,
    keys: &[String],
) -> Finding {
    let first = keys
        .first()
        .map(|key| quoted_excerpt(key))
        .unwrap_or_default();
    let message = format!(
        "{} key(s) of `_meta` of {}, such as {first}, are outside the grammar of MCP and left out for clients",
        keys.len(),
        quoted_excerpt(&offer.key)
    );
    let hint = "begin and end each name with a letter or digit, as in `example.com/my-key`";
    Finding::new(FindingCode::MetaKeyLeftOut, message)
        .hint(hint)
        .at(format!("/{}/{index}/_meta", kind.member()))
}

fn left_out(kind: RelayedKind, index: usize, flaw: &Flaw) -> Finding {
    let pointer = &flaw.pointer;
    let what = &flaw.what;
    let at = if pointer.is_empty() {
        String::new()
    } else {
        format!("`{pointer}` ")
    };
    let message = format!("one of its `{}` is left out: {at}{what}", kind.member());
    Finding::new(FindingCode::OfferLeftOut, message)
        .at(format!("/{}/{index}{pointer}", kind.member()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(json: &str) -> JsonText {
        JsonText::parse(json).unwrap()
    }

    #[test]
    fn offers_of_all_pages_are_kept_as_they_came_and_malformed_ones_left_out() {
        let pages = [
            page(
                r#"{"resources":[{"uri":"b://2","name":"two","_meta":{"x": 1}},{"name":"none"},7],"nextCursor":"n"}"#,
            ),
            page(r#"{"resources":[{"uri":"a://1","name":"one"},{"uri":"b://2"}],"ttlMs":5}"#),
            page("{}"),
        ];
        let (offers, findings) = decode(RelayedKind::Resources, &pages, Bounds::NONE).unwrap();
        let keys: Vec<_> = offers.iter().map(|offer| &*offer.key).collect();
        assert_eq!(keys, vec!["a://1", "b://2"]);
        assert_eq!(findings.len(), 3);
        assert_eq!(&*offers[1].members[1].0, "_meta");
        assert_eq!(offers[1].members[1].1.get(), r#"{"x":1}"#);
        let (offers, findings) = decode(
            RelayedKind::Resources,
            &pages,
            Bounds { tools: 1, part: 40 },
        )
        .unwrap();
        assert_eq!(offers.len(), 1);
        assert_eq!(findings.len(), 4);
        assert!(
            decode(
                RelayedKind::Resources,
                &[page(r#"{"resources":{}}"#)],
                Bounds::NONE
            )
            .is_err()
        );
    }
}
