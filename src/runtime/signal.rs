//! The signals with which operators and service managers end a process or make it reload its
//! configuration.

use std::future::Future;
use std::io;

/// Completes at the first such signal, with its name. Registered when this returns, so that no
/// signal is missed after it.
#[cfg(unix)]
pub fn stop_signal() -> io::Result<impl Future<Output = &'static str> + Send + 'static> {
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
pub fn stop_signal() -> io::Result<impl Future<Output = &'static str> + Send + 'static> {
    Ok(async {
        // Without a handler there is no request to stop; Ctrl-C then ends the process by default.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "Ctrl-C"
    })
}

/// Makes signals that end a process or a terminal's programs do nothing, as long as the runtime of
/// this call lives.
#[cfg(unix)]
pub fn ignore_stop_signals() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    for kind in [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
        SignalKind::quit(),
    ] {
        // What replaced the default action of the signal stays when the listener is dropped.
        drop(signal(kind)?);
    }
    Ok(())
}

/// There are no such signals.
#[cfg(not(unix))]
pub fn ignore_stop_signals() -> io::Result<()> {
    Ok(())
}

/// The signals that request a reload of the configuration (SIGHUP). While this exists, closing a
/// terminal does not end the process. On systems without that signal it never arrives.
#[derive(Debug)]
pub struct Hangups {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

impl Hangups {
    /// Registered when this returns, so that no signal is missed after it.
    #[cfg(unix)]
    pub fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            signal: signal(SignalKind::hangup())?,
        })
    }

    /// Never comes.
    #[cfg(not(unix))]
    pub fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Completes at the next signal. Cancel-safe.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        if self.signal.recv().await.is_some() {
            return;
        }
        std::future::pending::<()>().await;
    }
}
