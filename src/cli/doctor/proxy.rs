//! The proxy to hosts on the public internet: which one it is, and whether a program listens there.
//! Requests no tunnel.

use std::time::Duration;

use tokio::net::TcpStream;

use super::report::{CheckArea, DoctorReport};
use crate::config::{ConfiguredProxy, NetworkConfig};

/// Reports the proxy, if there is one.
pub(super) async fn check(network: &NetworkConfig, limit: Duration, report: &mut DoctorReport) {
    let Some(proxy) = &network.proxy else { return };
    let subject = proxy.shown();
    let reached = match &proxy.address {
        Ok(address) => match address.host_and_port() {
            Some(place) => reach(place, limit).await,
            None => Err("it has no port".to_owned()),
        },
        Err(why) => Err(why.to_string()),
    };
    let named = named_by(proxy);
    match reached {
        Ok(()) => report.ok(
            CheckArea::Proxy,
            &subject,
            format!("leads to https hosts on the public internet ({named})"),
        ),
        Err(why) => report.error(
            CheckArea::Proxy,
            &subject,
            format!("https hosts on the public internet cannot be reached: {why}"),
            format!("start the proxy, correct {named}, or set `network.proxy` to \"none\""),
        ),
    }
}

/// Connects to the proxy.
async fn reach(place: (&str, u16), limit: Duration) -> Result<(), String> {
    match tokio::time::timeout(limit, TcpStream::connect(place)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no connection within {limit:?}")),
    }
}

/// Where it is named. A daemon may have been started with other variables than this command.
fn named_by(proxy: &ConfiguredProxy) -> String {
    match proxy.variable {
        Some(variable) => format!("`{variable}` of this command's environment"),
        None => "`network.proxy`".to_owned(),
    }
}
