//! Notices that a daemon has no clients any more.

use std::sync::Arc;

use tokio::sync::watch;

use crate::config::Config;
use crate::runtime::Clock;

/// Completes when no connection was open for `mcp.linger`, counted from the start or from the end
/// of the last one.
pub(super) async fn wait(
    mut connections: watch::Receiver<usize>,
    config: watch::Receiver<Arc<Config>>,
    clock: Clock,
) {
    // The sender is a field of the daemon, so waiting fails only at its end.
    while connections.wait_for(|open| *open == 0).await.is_ok() {
        let linger = config.borrow().mcp.linger;
        tokio::select! {
            changed = connections.changed() => if changed.is_err() { return },
            () = clock.sleep(linger) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_counts_from_the_end_of_the_last_connection() {
        let mut config = Config::for_state("state.db");
        config.mcp.linger = Duration::from_secs(60);
        let open = watch::Sender::new(0);
        let config = watch::Sender::new(Arc::new(config));
        let clock = Clock::system();
        let connections = open.subscribe();
        let begun = clock.now();
        let ended = async {
            wait(connections, config.subscribe(), clock).await;
            clock.now() - begun
        };
        let clients = async {
            clock.sleep(Duration::from_secs(50)).await;
            open.send_replace(1);
            clock.sleep(Duration::from_secs(100)).await;
            open.send_replace(0);
            clock.sleep(Duration::from_secs(50)).await;
            // A short request counts too, also when it has ended before anything noticed it.
            open.send_replace(1);
            open.send_replace(0);
        };
        let (after, ()) = tokio::join!(ended, clients);
        assert_eq!(after.as_secs(), 50 + 100 + 50 + 60);
    }
}
