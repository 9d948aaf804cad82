//! Checks the local network: whether mDNS is enabled, and on which interfaces listening works.
//! Sends no mDNS message.

use super::report::{CheckArea, DoctorReport};
use crate::config;
use crate::discovery::mdns::reach;

const OFF: &str = "without a local network, disable it with `discovery.mdns.enabled = false`";

/// Checks the interfaces that `[discovery.mdns]` selects.
pub(super) fn check(section: &config::MdnsConfig, report: &mut DoctorReport) {
    if !section.enabled && !section.announce {
        report.ok(CheckArea::Mdns, "", "switched off");
        return;
    }
    let subject = format!("UDP port {}", section.port);
    let reached = match reach::interfaces(section) {
        Ok(reached) => reached,
        Err(error) => {
            report.error(
                CheckArea::Mdns,
                &subject,
                format!("the interfaces are not known: {error}"),
                OFF,
            );
            return;
        }
    };
    let (well, lost): (Vec<_>, Vec<_>) = reached.iter().partition(|reach| reach.trouble.is_none());
    let failed = lost.iter().map(|reach| {
        let trouble = reach.trouble.as_deref().unwrap_or_default();
        format!("{}: {trouble}", reach.interface)
    });
    let failed = failed.collect::<Vec<_>>().join("; ");
    let names = well
        .iter()
        .map(|reach| reach.interface.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    if reached.is_empty() {
        let hint = format!("bring one up, or name some in `discovery.mdns.interfaces`; {OFF}");
        report.warning(
            CheckArea::Mdns,
            &subject,
            "there is no network interface to listen on",
            hint,
        );
    } else if well.is_empty() {
        report.error(
            CheckArea::Mdns,
            &subject,
            failed,
            format!("look at `discovery.mdns.interfaces`; {OFF}"),
        );
    } else if !failed.is_empty() && !section.interfaces.is_empty() {
        let hint = "bring it up, or take it out of `discovery.mdns.interfaces`";
        report.warning(
            CheckArea::Mdns,
            &subject,
            format!("listening works on {names}, but not on {failed}"),
            hint,
        );
    } else {
        report.ok(
            CheckArea::Mdns,
            &subject,
            format!("listening works on {names}"),
        );
    }
}
