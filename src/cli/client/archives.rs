//! Sends and fetches bundles of stored tools as archives.

use http::Method;
use http::header::CONTENT_TYPE;

use super::{DaemonAnswer, DaemonClient};
use crate::cli::CommandError;

/// The media type of an archive.
const ZIP: &str = "application/zip";

/// A bundle as the daemon exports it.
pub(in crate::cli) struct FetchedArchive {
    /// The ZIP.
    pub(in crate::cli) bytes: Vec<u8>,
    /// How many tools are in it.
    pub(in crate::cli) tools: usize,
}

impl DaemonClient {
    /// Fetches a bundle as an archive.
    pub(in crate::cli) async fn export_bundle(
        &self,
        id: &str,
    ) -> Result<FetchedArchive, CommandError> {
        let url = self.address_below(&["tools"], &["bundles", id, "archive"])?;
        let response = self
            .soon()
            .await
            .get(url)
            .send()
            .await
            .map_err(|error| self.unreachable(&error))?;
        let (headers, bytes) = self.receive(response).await?;
        if headers.get(CONTENT_TYPE).is_none_or(|kind| kind != ZIP) {
            return Err(self.unexpected_answer("its answer is not an archive"));
        }
        let tools = headers
            .get("callsheet-tools")
            .and_then(|count| count.to_str().ok()?.parse().ok());
        Ok(FetchedArchive {
            bytes,
            tools: tools.unwrap_or_default(),
        })
    }

    /// Has the daemon store an archive, as a new bundle or with the ids that are in it.
    pub(in crate::cli) async fn import_bundle(
        &self,
        archive: Vec<u8>,
        as_new: bool,
    ) -> Result<DaemonAnswer, CommandError> {
        let mut url = self.address_below(&["tools"], &["bundles", "archive"])?;
        if as_new {
            url.query_pairs_mut().append_pair("new", "true");
        }
        let request = self
            .request_with_token(Method::POST, url)
            .await?
            .header(CONTENT_TYPE, ZIP)
            .body(archive);
        let response = request
            .send()
            .await
            .map_err(|error| self.unreachable(&error))?;
        let (_, body) = self.receive(response).await?;
        let value = self.parse_json(&body)?;
        if value.get("bundle").is_none() {
            return Err(self.unexpected_answer("its answer has no `bundle`"));
        }
        Ok(DaemonAnswer::new(body, value))
    }
}
