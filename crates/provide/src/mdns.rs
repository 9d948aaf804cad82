//! An mDNS daemon on a chosen port and chosen interfaces, for announcing and for browsing. Makes no
//! decisions.
//!
//! mdns-sd runs a thread of its own and takes commands through a short queue, which may be full for
//! a moment.

use std::time::Duration;

use mdns_sd::{Error, IfKind, ServiceDaemon};

/// How the loopback interface of IPv4 is named among interfaces.
pub const LOOPBACK: &str = "loopback";
/// How long a full queue of commands is waited for.
const QUEUE_WAIT: Duration = Duration::from_millis(20);
/// How often a command is tried in all.
const TRIES: u32 = 50;
/// How long closing may take.
const CLOSE: Duration = Duration::from_secs(1);

/// An open mDNS daemon; closed when dropped.
pub struct MdnsDaemon(ServiceDaemon);

/// Which interfaces are used: by name, where [`LOOPBACK`] is that of IPv4; none named means all.
pub fn interface_kinds(interfaces: &[String]) -> Vec<IfKind> {
    let kind = |name: &String| {
        if name == LOOPBACK {
            IfKind::LoopbackV4
        } else {
            IfKind::Name(name.clone())
        }
    };
    interfaces.iter().map(kind).collect()
}

impl MdnsDaemon {
    /// Opens it. Nothing is sent before the interfaces are chosen: commands are followed in order.
    ///
    /// # Errors
    /// The port cannot be opened, or the thread is gone.
    pub async fn open(port: u16, interfaces: Vec<IfKind>) -> Result<Self, Error> {
        let daemon = Self(ServiceDaemon::new_with_port(port)?);
        if !interfaces.is_empty() {
            daemon
                .command(|daemon| daemon.disable_interface(IfKind::All))
                .await?;
            for kind in interfaces {
                daemon
                    .command(|daemon| daemon.enable_interface(kind.clone()))
                    .await?;
            }
        }
        Ok(daemon)
    }

    /// Gives a command, again while the queue is full, for about a second.
    ///
    /// # Errors
    /// What the command fails with; [`Error::Again`] if the queue stays full.
    pub async fn command<T>(
        &self,
        give: impl Fn(&ServiceDaemon) -> Result<T, Error> + Send,
    ) -> Result<T, Error> {
        for _ in 1..TRIES {
            match give(&self.0) {
                Err(Error::Again) => tokio::time::sleep(QUEUE_WAIT).await,
                given => return given,
            }
        }
        give(&self.0)
    }

    /// How many records it keeps of what others announced, each as long as its announcer said.
    ///
    /// # Errors
    /// What the command fails with, or [`Error::Again`] if the thread is gone.
    pub async fn cached(&self) -> Result<u64, Error> {
        let counts = self.command(ServiceDaemon::get_metrics).await?;
        let counts = counts.recv_async().await.map_err(|_| Error::Again)?;
        let cached = counts
            .iter()
            .filter(|(name, _)| name.starts_with("cached-"))
            .map(|(_, count)| *count);
        Ok(u64::try_from(cached.sum::<i64>()).unwrap_or_default())
    }

    /// Closes it, and waits at most a second until its thread has ended. Services that are still
    /// registered say goodbye.
    pub async fn close(self) {
        let ended = async {
            if let Ok(ended) = self.command(ServiceDaemon::shutdown).await {
                // An error means that it ended without a word.
                let _ = ended.recv_async().await;
            }
        };
        tokio::select! {
            () = ended => {}
            () = tokio::time::sleep(CLOSE) => tracing::debug!("mDNS did not close in time"),
        }
    }
}

impl Drop for MdnsDaemon {
    fn drop(&mut self) {
        // Fails after `close`, when the thread is gone.
        let _ = self.0.shutdown();
    }
}
