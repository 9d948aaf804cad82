//! The operator's token, and the programs at an address that may get it.
//!
//! While the daemon is down, every user of the machine can listen at its address. So a token that
//! goes to an address that was only configured or recorded goes to programs of trusted users alone.
//! An address that is named on purpose is used as it is.

use std::net::SocketAddr;

use url::Url;

use super::location;
use crate::cli::CommandError;
use crate::cli::instance::DaemonFiles;
use crate::cli::listeners::{self, ListeningSocket};
use crate::model::Secret;

/// The operator's token.
#[derive(Debug)]
pub(super) struct OperatorToken {
    /// The text of it.
    pub(super) secret: Secret,
    /// Which programs may get it at an address.
    pub(super) recipients: TokenRecipients,
}

/// Which programs may get the token at an address.
#[derive(Debug)]
pub(super) enum TokenRecipients {
    /// The one at the address that the operator named.
    AtNamedAddress,
    /// Those of the users that have this daemon.
    OfDaemon(DaemonFiles),
}

impl OperatorToken {
    /// Refuses to send the token to this address if a program of another user may get it there.
    /// `listen` is the same address as a number, if it is one.
    pub(super) fn check_address(
        &self,
        url: &Url,
        listen: Option<SocketAddr>,
    ) -> Result<(), CommandError> {
        match &self.recipients {
            TokenRecipients::AtNamedAddress => Ok(()),
            TokenRecipients::OfDaemon(files) => {
                let sockets = listen.and_then(listeners::reached);
                check_sockets(url, sockets.as_deref(), files)
            }
        }
    }
}

/// The same by the sockets that a connection ends at; `None` if the system does not show them.
fn check_sockets(
    url: &Url,
    sockets: Option<&[ListeningSocket]>,
    files: &DaemonFiles,
) -> Result<(), CommandError> {
    let Some(sockets) = sockets else {
        return if files.names_address(url) {
            Ok(())
        } else {
            Err(not_sent_to_unknown(url))
        };
    };
    if sockets.is_empty() {
        return Err(CommandError::Unreachable {
            message: format!(
                "no daemon answers at {}: no program listens there",
                shown(url)
            ),
            hint: location::without_daemon(false),
        });
    }
    let trusted = files.trusted_users();
    match sockets
        .iter()
        .find(|socket| !trusted.contains(&socket.user))
    {
        Some(socket) => Err(not_sent_to(url, socket.user)),
        None => Ok(()),
    }
}

/// The error where a program of another user listens.
fn not_sent_to(url: &Url, user: u32) -> CommandError {
    let url = shown(url);
    CommandError::Unreachable {
        message: format!(
            "the operator's token is not sent to {url}: a program of another user (number {user}) listens there"
        ),
        hint: format!(
            "set `server.listen` to a free address and start `callsheet serve`, or add `--url {url}` if that program may \
             have the token"
        ),
    }
}

/// The error where it is not known which program listens.
fn not_sent_to_unknown(url: &Url) -> CommandError {
    let url = shown(url);
    CommandError::Unreachable {
        message: format!(
            "the operator's token is not sent to {url}: this system does not show which user's program listens there, \
             and no running daemon of this user has recorded that address"
        ),
        hint: format!(
            "start one with `callsheet serve`, or add `--url {url}` if that program may have the token"
        ),
    }
}

/// An address as people write it.
fn shown(url: &Url) -> &str {
    url.as_str().trim_end_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, LoadOptions};

    #[test]
    fn without_a_table_of_sockets_only_a_recorded_address_gets_the_token() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::for_state(folder.path().join("state.db"));
        let files = DaemonFiles::new(&LoadOptions::default(), &config.state);
        let url = Url::parse("http://127.0.0.1:7400").unwrap();
        let error = check_sockets(&url, None, &files).unwrap_err();
        assert!(
            matches!(&error, CommandError::Unreachable { message, .. } if message.contains("does not show which user")),
            "{error:?}"
        );
        let record = format!(
            "{{\"url\":\"{url}\",\"pid\":{},\"config\":null}}",
            std::process::id()
        );
        std::fs::write(config.state.daemon_record(), record).unwrap();
        assert_eq!(check_sockets(&url, None, &files).is_ok(), cfg!(unix));
    }
}
