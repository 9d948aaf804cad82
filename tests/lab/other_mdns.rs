//! Other implementations of mDNS on the other side: avahi and python-zeroconf.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::support::assert_empty;
use crate::support::lab::{Lab, Running, holds_for, python};

const ID: &str = "3f1c6f0e-4f0b-4a57-9f0b-6f8f6f1f2a11";
/// Asked every second, so that an end that is not announced is noticed soon.
const QUICK: &str = "[refresh]\nmin_interval = \"1s\"\nmax_interval = \"1s\"\nbackoff_base = \"200ms\"\nbackoff_max = \"1s\"\n";
/// How long what is told on the network takes to be heard: a goodbye a second, an announcement with
/// probing nearly as long.
const HEARD: Duration = Duration::from_secs(6);

fn reason(health: &Value) -> &str {
    health["reason"].as_str().unwrap_or_default()
}

#[test]
#[ignore = "needs root and network namespaces: run `.ci/lab`"]
fn what_avahi_announces_is_found_its_changes_followed_and_its_goodbye_heard() {
    let lab = Lab::new(2);
    let daemon = lab.daemon(
        &lab.hosts[0],
        &format!("{QUICK}[discovery.mdns]\ntrust = [\"10.78.0.0/24\"]\n"),
    );
    let library = lab.hosts[1].scenario("library", 15000, None);
    let file = "services/library.service";
    lab.write(file, &service_file("library", 15000, "first"));
    let _avahi = lab.avahi(&lab.hosts[1], &lab.path("services"));
    let health = daemon.until("library", "live");
    assert_eq!(health["restarts"], 0, "{health}");
    assert_eq!(daemon.tools(), ["library_find"]);

    // Another record for the same service: it says that it was started anew.
    lab.write(file, &service_file("library", 15000, "second"));
    let health = daemon.sees(HEARD, "library", "known to be restarted", |health| {
        health["restarts"] == 1
    });
    assert_eq!(daemon.tools(), ["library_find"], "{health}");

    // The word of avahi alone takes nothing away while the scenario answers.
    std::fs::rename(lab.path(file), lab.path("library.service")).unwrap();
    let left =
        |health: &Value| reason(health).contains("answers, although no source names it any more");
    daemon.sees(HEARD, "library", "known to have said goodbye", left);
    holds_for(Duration::from_secs(2), "its tools in the list", || {
        daemon.tools() == ["library_find"]
    });
    library.kill();
    daemon.within(HEARD, "library", "removed");
    assert_empty!(daemon.tools());

    // Announced before it runs, it is down until it answers.
    std::fs::rename(lab.path("library.service"), lab.path(file)).unwrap();
    let named = |health: &Value| reason(health).contains("a source names it again");
    daemon.sees(HEARD, "library", "named again", named);
    assert_empty!(daemon.tools());
    let _library = lab.hosts[1].scenario("library", 15000, None);
    daemon.within(HEARD, "library", "live");
    assert_eq!(daemon.tools(), ["library_find"]);
}

#[test]
#[ignore = "needs root and network namespaces: run `.ci/lab`"]
fn python_zeroconf_announces_changes_says_goodbye_and_hears() {
    let lab = Lab::new(2);
    let daemon = lab.daemon(
        &lab.hosts[0],
        "server.listen = \"10.78.0.1:7400\"\n[discovery.mdns]\ntrust = \"all\"\nannounce = true\n",
    );
    let _library = lab.hosts[1].scenario("library", 15000, None);
    let announcing = lab.zeroconf(&lab.hosts[1], "library", 15000, ID, 120);
    let health = daemon.until("library", "live");
    assert_eq!(health["identity"], ID, "{health}");
    assert_eq!(health["restarts"], 0, "{health}");
    announcing.signal("-USR1");
    daemon.sees(HEARD, "library", "known to be restarted", |health| {
        health["restarts"] == 1
    });

    let browser = lab.write("browse.py", BROWSE);
    let mut command = python(&lab.hosts[1]);
    command
        .arg(&browser)
        .arg("10.78.0.2")
        .stderr(Stdio::inherit());
    let (_browsing, heard) = Running::start(&mut command);
    assert!(
        heard.contains("callsheet") && heard.contains("10.78.0.1:7400/api/v1/tools"),
        "{heard}"
    );

    announcing.stop();
    let left =
        |health: &Value| reason(health).contains("answers, although no source names it any more");
    daemon.sees(HEARD, "library", "known to have said goodbye", left);
    assert_eq!(daemon.tools(), ["library_find"], "it answers, so it stays");
    assert!(
        daemon
            .scenarios()
            .iter()
            .all(|health| health["name"] != "callsheet"),
        "a daemon never lists itself"
    );
}

fn service_file(name: &str, port: u16, boot: &str) -> String {
    let record = [
        "txtvers=1",
        "path=/api/v1/tools",
        "proto=1.0",
        &format!("boot={boot}"),
    ]
    .map(|text| format!("<txt-record>{text}</txt-record>"));
    format!(
        "<?xml version=\"1.0\" standalone='no'?><!DOCTYPE service-group SYSTEM \"avahi-service.dtd\">\n<service-group><name>{name}</name><service><type>_agent-tools._tcp</type><port>{port}</port>{}</service></service-group>",
        record.concat()
    )
}

/// Prints the first daemon that it hears of.
const BROWSE: &str = r#"
import socket, sys, threading
from zeroconf import IPVersion, ServiceBrowser, Zeroconf

heard = threading.Event()

class Listener:
    def add_service(self, zeroconf, kind, name):
        info = zeroconf.get_service_info(kind, name, 5000)
        if info and name.startswith("callsheet"):
            where = f"{socket.inet_ntoa(info.addresses[0])}:{info.port}{info.properties[b'path'].decode()}"
            print(name, where, flush=True)
            heard.set()

    update_service = add_service

    def remove_service(self, zeroconf, kind, name):
        pass

zeroconf = Zeroconf(interfaces=[sys.argv[1]], ip_version=IPVersion.V4Only)
ServiceBrowser(zeroconf, "_agent-tools._tcp.local.", Listener())
heard.wait(30)
zeroconf.close()
"#;
