//! The way to a daemon by its Unix socket.
//!
//! A daemon that hangs, or whose connections are all in use, may take a connection and give no
//! answer on it. So a request that is only read is sent first, with a short limit. What a command
//! wants is sent once, by the way that answers.

use std::time::Duration;

use tokio::sync::OnceCell;
use url::Url;

use crate::cli::output;

/// How long the first answer on the socket may take.
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(2);

/// A client of the socket.
#[derive(Debug)]
pub(super) struct SocketWay {
    http: reqwest::Client,
    /// Whether it answers, as soon as that is known.
    answers: OnceCell<bool>,
}

impl SocketWay {
    /// The way by the socket that this client connects to. It is used if it answers.
    pub(super) fn if_it_answers(http: reqwest::Client) -> Self {
        Self {
            http,
            answers: OnceCell::new(),
        }
    }

    /// The same, but it is used in any case.
    pub(super) fn always(http: reqwest::Client) -> Self {
        Self {
            http,
            answers: OnceCell::new_with(Some(true)),
        }
    }

    /// The client, if the daemon answers there. `probe` is the address of a brief answer.
    pub(super) async fn http(&self, probe: &Url) -> Option<&reqwest::Client> {
        let answers = self.answers.get_or_init(|| self.probe(probe)).await;
        answers.then_some(&self.http)
    }

    async fn probe(&self, probe: &Url) -> bool {
        let request = self.http.get(probe.clone()).timeout(FIRST_ANSWER_MAX);
        let answered = match request.send().await {
            Ok(response) => is_whole(response).await,
            Err(_) => false,
        };
        if !answered {
            output::note("the socket of the daemon does not answer; its address is used");
        }
        answered
    }
}

/// Reads an answer to its end, so that the next request has the same connection. The limit of the
/// request holds for all of it.
async fn is_whole(mut response: reqwest::Response) -> bool {
    loop {
        match response.chunk().await {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}
