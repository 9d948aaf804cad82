//! Sends a model's response, whose tool calls the daemon runs.

use super::{DaemonAnswer, DaemonClient, QueryPairs};
use crate::cli::CommandError;

impl DaemonClient {
    /// Runs the tool calls in a body as `POST /api/v1/turns` takes it. They may take as long as the
    /// daemon allows.
    pub(in crate::cli) async fn turn(
        &self,
        query: QueryPairs<'_>,
        body: String,
    ) -> Result<DaemonAnswer, CommandError> {
        let mut url = self.address(&["turns"])?;
        url.query_pairs_mut().extend_pairs(query);
        let body = self.post_patiently(url, body).await?;
        let value = self.parse_json(&body)?;
        if value.get("messages").is_none() {
            return Err(self.unexpected_answer("its answer to a turn has no `messages`"));
        }
        Ok(DaemonAnswer::new(body, value))
    }
}
