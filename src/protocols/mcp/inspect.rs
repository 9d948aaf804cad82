//! Inspects a server for its author: lists its tools several times, and gives what is wrong with
//! them and with how they are listed. Calls no tool.

use http::HeaderMap;
use serde_json::{Value, json};

use super::decode::{DecodedTools, decode};
use super::listing::Pages;
use super::offers::ListedOffers;
use super::server::ServerDescription;
use super::session::McpSession;
use crate::lint::serving::ListResponse;
use crate::lint::{McpServing, check_mcp, check_mcp_serving};
use crate::model::{Bounds, JsonText, RelayedOffers};
use crate::protocols::ListError;
use crate::protocols::sent_document::{left_out, tools};
use crate::protocols::tool_discovery::Inspected;
use crate::protocols::tool_discovery::inspect::renumbered;

/// How often the tools are listed, to see whether the answers agree.
const LISTINGS: usize = 3;

impl McpSession {
    /// Lists the tools several times and checks them. The findings about how they are listed come
    /// first; pointers count the tools of all pages as one list.
    ///
    /// # Errors
    /// The server cannot be greeted, or its list cannot be read.
    pub async fn inspect(&self) -> Result<Inspected, ListError> {
        let most = self.transports().max_body();
        let (server, first) = self.listed(most).await?;
        let mut listings = vec![first];
        for _ in 1..LISTINGS {
            listings.push(self.listed(most).await?.1);
        }
        let info = server.info.clone();
        let revision = server.revision().as_str();
        let noise = super::session::output_noise(&server);
        let ListedOffers {
            offers,
            findings: of_offers,
            ..
        } = self.offers(&server, most, Bounds::NONE).await;
        let work = move || examine(&listings, &info, revision, &offers);
        let mut inspected = self.transports().tasks().off_thread(work).await?;
        inspected.findings.splice(0..0, noise);
        inspected.findings.extend(of_offers);
        Ok(inspected)
    }
}

/// Checks the listings, the first one in detail.
fn examine(
    listings: &[Pages],
    info: &ServerDescription,
    revision: &'static str,
    offered: &RelayedOffers,
) -> Result<Inspected, ListError> {
    let mut answers = Vec::new();
    let mut first = None;
    for listing in listings {
        let decoded = decode(&listing.results, info, revision, Bounds::NONE, true)?;
        answers.push(ListResponse {
            headers: HeaderMap::new(),
            took: listing.took,
            digest: decoded.manifest.digest,
            stamp: None,
            order: names(&document(&listing.results)),
        });
        first.get_or_insert((decoded, listing));
    }
    let Some((
        DecodedTools {
            mut manifest,
            findings: of_decoding,
            ..
        },
        pages,
    )) = first
    else {
        return Err(ListError::Malformed("its tools were not listed".to_owned()));
    };
    manifest.relayed = offered.clone();
    let document = document(&pages.results);
    let empty = pages
        .results
        .iter()
        .filter(|page| tools(&value(page)).is_empty())
        .count();
    let serving = McpServing {
        answers,
        pages: (pages.results.len(), empty),
        list_changed: info.list_changed,
    };
    let mut findings = check_mcp_serving(&serving);
    let of_content = renumbered(
        &document,
        &manifest,
        &left_out(&of_decoding),
        check_mcp(&manifest),
    );
    findings.extend(of_decoding);
    findings.extend(of_content);
    Ok(Inspected::listed(manifest, findings, names(&document)))
}

/// The tools of all pages as one document.
fn document(pages: &[JsonText]) -> Value {
    let all: Vec<Value> = pages
        .iter()
        .flat_map(|page| tools(&value(page)).to_vec())
        .collect();
    json!({"tools": all})
}

fn value(page: &JsonText) -> Value {
    serde_json::from_str(page.get()).unwrap_or_default()
}

fn names(document: &Value) -> Vec<String> {
    tools(document)
        .iter()
        .filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned()))
        .collect()
}
