//! Browses with mdns-sd. Makes no decisions.
//!
//! mdns-sd has one listener for each service type: browsing again replaces it and reports
//! everything that is known once more. A listener that is too slow is dropped without a message;
//! its events end.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use callsheet_provide::mdns::MdnsDaemon;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream, SelectAll};
use mdns_sd::{Error, Receiver, ResolvedService, ScopedIp, ServiceEvent};

use super::own_addresses;
use super::received::{ReceivedAddress, ReceivedAnnouncement};

/// The domain of everything here (RFC 6762 section 3).
const DOMAIN: &str = "local.";
/// What the browser reports.
pub(super) enum BrowseEvent {
    /// An announcement was resolved, for the first time or again.
    Resolved(ReceivedAnnouncement),
    /// The full name of an announcement that is gone.
    Removed(String),
    /// A query was sent, on any interface or on none.
    Asking {
        /// Whether there is an interface to receive answers on.
        reachable: bool,
    },
    /// The events of this service type broke off.
    Closed(Arc<str>),
}

/// An event of a listener (the service type and which of its listeners), or the end of its events.
type BrowserMessage = (Arc<str>, u64, Option<ServiceEvent>);

/// The events of all service types.
pub(super) struct Browser {
    events: SelectAll<BoxStream<'static, BrowserMessage>>,
    /// The number of the newest listener of each type. The end of an older one is expected.
    newest: BTreeMap<Arc<str>, u64>,
}

impl Browser {
    /// A browser without listeners.
    pub(super) fn new() -> Self {
        Self {
            events: SelectAll::new(),
            newest: BTreeMap::new(),
        }
    }

    /// Browses a service type (without domain), for the first time or again. Events that the last
    /// listener still holds are reported too.
    pub(super) async fn browse(
        &mut self,
        daemon: &MdnsDaemon,
        service_type: &Arc<str>,
    ) -> Result<(), Error> {
        let full = format!("{service_type}.{DOMAIN}");
        let receiver: Receiver<ServiceEvent> =
            daemon.command(|daemon| daemon.browse(&full)).await?;
        let generation = self.newest.get(service_type).map_or(0, |newest| newest + 1);
        self.newest.insert(Arc::clone(service_type), generation);
        let of = Arc::clone(service_type);
        let end = Arc::clone(service_type);
        let events = receiver
            .into_stream()
            .map(move |event| (Arc::clone(&of), generation, Some(event)));
        self.events.push(
            events
                .chain(stream::iter([(end, generation, None)]))
                .boxed(),
        );
        Ok(())
    }

    /// The next event. Waits for ever when there is no listener. Cancel-safe.
    pub(super) async fn next(&mut self) -> BrowseEvent {
        loop {
            let Some((service_type, generation, event)) = self.events.next().await else {
                return std::future::pending().await;
            };
            match event {
                Some(ServiceEvent::ServiceResolved(service)) => {
                    return BrowseEvent::Resolved(announcement(&service));
                }
                Some(ServiceEvent::ServiceRemoved(_, fullname)) => {
                    return BrowseEvent::Removed(fullname);
                }
                // The text is for people, but no other sign shows that there is no interface.
                Some(ServiceEvent::SearchStarted(what)) => {
                    return BrowseEvent::Asking {
                        reachable: !what.contains(" on 0 interfaces"),
                    };
                }
                None if self.newest.get(&service_type) == Some(&generation) => {
                    return BrowseEvent::Closed(service_type);
                }
                Some(_) | None => {}
            }
        }
    }
}

fn announcement(service: &ResolvedService) -> ReceivedAnnouncement {
    let any = service.addresses.iter().any(ScopedIp::is_loopback);
    let loopbacks = if any {
        own_addresses::loopback_interfaces()
    } else {
        BTreeSet::new()
    };
    let instance = service
        .fullname
        .strip_suffix(service.ty_domain.as_str())
        .unwrap_or(&service.fullname);
    let txt = service
        .txt_properties
        .iter()
        .map(|item| (item.key().to_lowercase(), item.val_str().to_owned()));
    ReceivedAnnouncement {
        fullname: service.fullname.clone(),
        instance: unescaped(instance.strip_suffix('.').unwrap_or(instance)),
        host: service.host.trim_end_matches('.').to_owned(),
        port: service.port,
        addresses: service
            .addresses
            .iter()
            .flat_map(|at| received_addresses(at, &loopbacks))
            .collect(),
        txt: first_of_each(txt),
    }
}

/// The first of equal keys counts (RFC 6763 section 6.4).
fn first_of_each(pairs: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let mut map = BTreeMap::new();
    for (key, value) in pairs {
        map.entry(key).or_insert(value);
    }
    map
}

/// An address, once for each interface over which it came. A loopback address counts only over a
/// loopback interface: from elsewhere it would mean another machine's own.
fn received_addresses(at: &ScopedIp, loopbacks: &BTreeSet<String>) -> Vec<ReceivedAddress> {
    let interfaces = match at {
        ScopedIp::V4(at) => at.interface_ids(),
        ScopedIp::V6(at) => std::slice::from_ref(at.scope_id()),
        _ => &[],
    };
    let ip: IpAddr = at.to_ip_addr();
    let counts = interfaces
        .iter()
        .filter(|id| !ip.is_loopback() || loopbacks.contains(&id.name));
    counts
        .map(|id| ReceivedAddress {
            ip,
            scope: id.index,
        })
        .collect()
}

/// An instance name without the backslashes before its dots and backslashes (RFC 6763 section 4.3).
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(if c == '\\' {
            chars.next().unwrap_or(c)
        } else {
            c
        });
    }
    plain
}
