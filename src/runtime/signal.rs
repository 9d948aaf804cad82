//! The signals with which operators and service managers end a process.

use std::future::Future;
use std::io;

/// Completes at the first such signal, with its name. Registered when this returns, so that no signal is missed after it.
#[cfg(unix)]
pub fn asked_to_stop() -> io::Result<impl Future<Output = &'static str> + Send + 'static> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
        }
    })
}

/// Completes at the first Ctrl-C.
#[cfg(not(unix))]
pub fn asked_to_stop() -> io::Result<impl Future<Output = &'static str> + Send + 'static> {
    Ok(async {
        // Without a handler nothing can ask to stop; the process then ends by Ctrl-C's default.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "Ctrl-C"
    })
}
