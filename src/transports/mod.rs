//! How bytes reach a scenario.
//!
//! Each transport is one folder. None knows a protocol: what the bytes mean is decoded in
//! [`protocols`](crate::protocols).

use std::sync::Arc;
use std::time::Duration;

use crate::model::{HttpTarget, ProgramCost, Secret, SecretSource, StdioTarget, Target};
use crate::runtime::{Clock, Tasks};

pub mod error;
pub mod http;
mod mask;
pub mod stdio;

pub use error::TransportError;
pub(crate) use error::status_text;
pub(crate) use mask::Mask;

use http::credentials::CredentialError;
use http::{Client, ProxyRules, Upstream};
use stdio::{ChildProcess, Children};

/// Every way to reach a scenario. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Transports {
    client: Arc<Client>,
    children: Arc<Children>,
}

impl Transports {
    /// The ways of one daemon. Whatever needs time or tasks on them uses those of the client.
    pub fn new(client: Arc<Client>) -> Self {
        let children = Children::new(client.clock);
        Self { client, children }
    }

    /// The same with these child processes, which the caller waits for at its end.
    #[must_use]
    pub fn with_children(self, children: Arc<Children>) -> Self {
        Self { children, ..self }
    }

    /// The way to a server that speaks HTTP. Fails with [`TransportError::Address`] when no request
    /// can be sent there.
    pub fn http(&self, target: &HttpTarget) -> Result<Upstream, TransportError> {
        self.client.upstream_to(target)
    }

    /// Which requests to hosts that are judged by their callers take a proxy.
    pub fn proxies(&self) -> ProxyRules {
        self.client.proxies()
    }

    /// Reads a secret now.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub async fn secret(&self, source: &SecretSource) -> Result<Secret, CredentialError> {
        self.client.secrets.read(source).await
    }

    /// Starts a child process. Fails with [`TransportError::CommandNotFound`] or
    /// [`TransportError::NotStarted`].
    pub fn stdio(&self, target: &StdioTarget) -> Result<ChildProcess, TransportError> {
        self.children.start(target)
    }

    /// What the processes of a program cost that was started for this target; `None` if none runs,
    /// and where the system does not show it. Read at most every few seconds, and never waited for
    /// long.
    pub async fn program_cost(&self, target: &StdioTarget) -> Option<ProgramCost> {
        self.children.cost_of(target).await
    }

    /// A keyed digest of all that a program is started with; its variables cannot be read from it.
    /// `None` without a key.
    pub fn program_digest(&self, target: &StdioTarget) -> Option<Arc<str>> {
        self.children.digest_of(target)
    }

    /// Completes when no process runs of a program that is being ended, so that there are never two
    /// of it.
    pub async fn program_ended(&self, target: &StdioTarget) {
        self.children.ended(target).await;
    }

    /// Fails with [`TransportError::Address`] when there is no way to a target at all.
    pub fn check(&self, target: &Target) -> Result<(), TransportError> {
        match target {
            Target::Http(target) => http::Address::new(target.url.clone()).map(drop),
            Target::Stdio(_) | Target::InProcess(_) | Target::Bundle(_) => Ok(()),
        }
    }

    /// The id of this daemon, by which it recognises tools that came through itself.
    pub fn own_id(&self) -> Option<&str> {
        self.client.own_id.get().map(AsRef::as_ref)
    }

    /// The time that one poll of a scenario may take.
    pub fn poll_timeout(&self) -> Duration {
        self.client.limits().whole
    }

    /// The most bytes of the answer to a poll.
    pub fn max_body(&self) -> usize {
        self.client.limits().max_body
    }

    /// How long an answer is used that does not say so itself (`refresh.default_lifetime`).
    pub fn default_lifetime(&self) -> Duration {
        self.client.default_lifetime()
    }

    /// Reads time.
    pub fn clock(&self) -> Clock {
        self.client.clock
    }

    /// Runs what takes long beside the async threads.
    pub fn tasks(&self) -> &Tasks {
        &self.client.tasks
    }
}
