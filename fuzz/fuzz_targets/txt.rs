//! The reader of announcements. The first line of the input is the instance name, the second the
//! host, the third an address; each further one is an entry of the TXT record.

#![no_main]

use std::collections::BTreeMap;

use callsheet::discovery::mdns::received::{ReceivedAddress, ReceivedAnnouncement};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut lines = text.lines();
    let mut next = || lines.next().unwrap_or_default().to_owned();
    let instance = next();
    let host = next();
    let address = next();
    let txt: BTreeMap<String, String> = lines
        .map(|line| line.split_once('=').unwrap_or((line, "")))
        .map(|(key, value)| (key.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let ip = address.parse().unwrap_or([10, 0, 0, 7].into());
    let announcement = ReceivedAnnouncement {
        fullname: format!("{instance}._agent-tools._tcp.local."),
        instance,
        host,
        port: 15_000,
        addresses: [ReceivedAddress { ip, scope: 2 }].into(),
        txt,
    };
    let Ok(claim) = announcement.claim() else {
        return;
    };
    assert_eq!(claim.address, ip);
    assert!(matches!(claim.url.scheme(), "http" | "https"));
    assert_eq!(
        (
            claim.url.username(),
            claim.url.password(),
            claim.url.query()
        ),
        ("", None, None)
    );
    assert_eq!(
        claim.url.port_or_known_default(),
        Some(15_000),
        "{}",
        claim.url
    );
    // A slash at the end is trimmed where paths are joined.
    let mut steps = claim.url.path().trim_end_matches('/').split('/').skip(1);
    assert!(
        steps.all(|step| !matches!(step, "" | "." | "..")),
        "{}",
        claim.url
    );
    // Whoever is asked is who was heard: an address stands in the URL, or it is dialled.
    let host = claim
        .url
        .host_str()
        .expect("a host")
        .trim_matches(['[', ']']);
    let named = host
        .parse()
        .is_ok_and(|named: std::net::IpAddr| named == ip);
    assert!(
        named || claim.dial.is_some_and(|dial| dial.ip() == ip),
        "{}",
        claim.url
    );
    for word in [&claim.id, &claim.boot].into_iter().flatten() {
        assert!(!word.is_empty() && word.len() <= 128 && !word.contains(char::is_control));
    }
});
