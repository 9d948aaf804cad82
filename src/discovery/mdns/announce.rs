//! Announces this daemon on the local network. How that is done is the provider crate's affair.

use std::future::Future;
use std::net::SocketAddr;

use callsheet_provide::Announcement;

use crate::config;

/// Announces this daemon, when that is switched on, until `until` completes. What stands in the way
/// is logged: a daemon that cannot be announced still serves clients that know its address.
pub(crate) async fn own(
    section: &config::MdnsConfig,
    listen: SocketAddr,
    until: impl Future<Output = ()>,
) {
    let (true, Some(id)) = (section.announce, &section.id) else {
        return;
    };
    if listen.ip().is_loopback() {
        tracing::info!(
            "announced on this machine only: no other machine can reach a loopback address"
        );
    }
    let announcement = Announcement::new(&section.name, listen, id)
        .port(section.port)
        .interfaces(section.interfaces.iter().cloned());
    match announcement.start().await {
        Ok(announced) => {
            until.await;
            announced.goodbye().await;
        }
        Err(error) => tracing::warn!("{error}"),
    }
}
