//! Scenarios on other hosts, found by mDNS: real hosts in network namespaces, with avahi and python-zeroconf as the other side.
//!
//! Ignored by default, since they need root: `.ci/lab` installs what they need and runs them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

#[path = "support/lab.rs"]
mod lab;

use std::process::Stdio;
use std::time::{Duration, Instant};

use lab::{Lab, Running, wait_for};

const NEEDS: &str = "needs root and network namespaces: run `.ci/lab`";
const ID: &str = "3f1c6f0e-4f0b-4a57-9f0b-6f8f6f1f2a11";

#[test]
#[ignore = "needs root and network namespaces: run `.ci/lab`"]
fn a_scenario_on_another_host_waits_for_a_yes_is_listed_and_leaves_truthfully() {
    let lab = Lab::new(2);
    let daemon = lab.daemon(&lab.hosts[0], "");
    let library = lab.scenario(&lab.hosts[1], "library", 15000, Some(ID));

    let health = daemon.until("library", "pending");
    assert_eq!(health["source"], "mdns", "{health}");
    assert!(health["url"].as_str().unwrap().contains("10.78.0.2:15000"), "{health}");
    assert!(daemon.tools().is_empty(), "a pending scenario's tools do not show");

    let yes = Instant::now();
    let said = daemon.run(&["trust", "library"]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    wait_for("its tools", || (daemon.tools() == ["library_find"]).then_some(()));
    assert!(yes.elapsed() < Duration::from_secs(2), "listed {:?} after the yes", yes.elapsed());
    daemon.until("library", "live");

    library.stop();
    let health = daemon.until("library", "down");
    assert!(daemon.tools().is_empty(), "withdrawn: {health}");
    let findings = daemon.json(&["scenarios", "library"]).to_string();
    assert!(findings.contains("library"), "{findings}");
    daemon.running.stop();
}

#[test]
#[ignore = "needs root and network namespaces: run `.ci/lab`"]
fn a_crash_and_a_restart_on_another_port_are_followed() {
    let lab = Lab::new(2);
    let daemon = lab.daemon(&lab.hosts[0], "[discovery.mdns]\ntrust = \"all\"\n");
    let library = lab.scenario(&lab.hosts[1], "library", 15000, Some(ID));
    daemon.until("library", "live");
    library.kill();
    let _library = lab.scenario(&lab.hosts[1], "library", 15001, Some(ID));
    let health = wait_for("the new port", || {
        let health = daemon.until("library", "live");
        health["url"].as_str().unwrap().contains(":15001").then_some(health)
    });
    assert_eq!(health["restarts"]["count"].as_u64().or(health["restarts"].as_u64()), Some(1), "{health}");
    assert_eq!(daemon.scenarios().len(), 1, "one scenario, wherever it runs");
}

#[test]
#[ignore = "needs root and network namespaces: run `.ci/lab`"]
fn what_avahi_announces_is_found_and_its_goodbye_heard() {
    let lab = Lab::new(2);
    let daemon = lab.daemon(&lab.hosts[0], "[discovery.mdns]\ntrust = [\"10.78.0.0/24\"]\n");
    let library = lab.scenario(&lab.hosts[1], "library", 15000, None);
    let file = "services/library.service";
    lab.write(file, &service_file("library", 15000));
    let _avahi = lab.avahi(&lab.hosts[1], &lab.path("services"));
    daemon.until("library", "live");
    assert_eq!(daemon.tools(), ["library_find"]);

    // The word of avahi alone takes nothing away while the scenario answers.
    std::fs::rename(lab.path(file), lab.path("library.service")).unwrap();
    wait_for("avahi's goodbye to be heard", || {
        let health = daemon.until("library", "live");
        health["departed"].as_bool().or(Some(true)).filter(|gone| *gone)
    });
    assert_eq!(daemon.tools(), ["library_find"]);
    library.kill();
    std::fs::rename(lab.path("library.service"), lab.path(file)).unwrap();
}

#[test]
#[ignore = "needs root and network namespaces: run `.ci/lab`"]
fn python_zeroconf_announces_and_hears() {
    let lab = Lab::new(2);
    let daemon = lab.daemon(
        &lab.hosts[0],
        "server.listen = \"10.78.0.1:7400\"\n[discovery.mdns]\ntrust = \"all\"\nannounce = true\n",
    );
    let _library = lab.scenario(&lab.hosts[1], "library", 15000, None);
    let publisher = lab.write("publish.py", PUBLISH);
    let python = std::env::var("LAB_PYTHON").expect(NEEDS);
    let mut command = lab.hosts[1].command(&python);
    command.arg(&publisher).args(["10.78.0.2", "library", "15000", ID]);
    let (publishing, _) = Running::start(&mut command);
    daemon.until("library", "live");

    let browser = lab.write("browse.py", BROWSE);
    let mut command = lab.hosts[1].command(&python);
    command.arg(&browser).arg("10.78.0.2").stderr(Stdio::inherit());
    let (_browsing, heard) = Running::start(&mut command);
    assert!(heard.contains("callsheet") && heard.contains("10.78.0.1:7400/api/v1/tools"), "{heard}");
    publishing.stop();
    assert!(daemon.scenarios().iter().all(|health| health["name"] != "callsheet"), "a daemon never lists itself");
}

fn service_file(name: &str, port: u16) -> String {
    let record =
        ["txtvers=1", "path=/api/v1/tools", "proto=1.0"].map(|text| format!("<txt-record>{text}</txt-record>"));
    format!(
        "<?xml version=\"1.0\" standalone='no'?><!DOCTYPE service-group SYSTEM \"avahi-service.dtd\">\n<service-group><name>{name}</name><service><type>_agent-tools._tcp</type><port>{port}</port>{}</service></service-group>",
        record.concat()
    )
}

/// Announces one scenario until it is asked to stop.
const PUBLISH: &str = r#"
import signal, socket, sys, threading
from zeroconf import IPVersion, ServiceInfo, Zeroconf

address, name, port, identity = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
zeroconf = Zeroconf(interfaces=[address], ip_version=IPVersion.V4Only)
info = ServiceInfo(
    "_agent-tools._tcp.local.",
    f"{name}._agent-tools._tcp.local.",
    addresses=[socket.inet_aton(address)],
    port=port,
    properties={"txtvers": "1", "path": "/api/v1/tools", "proto": "1.0", "id": identity},
    server=f"{name}-host.local.",
)
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
zeroconf.register_service(info)
print("announced", flush=True)
stop.wait(120)
zeroconf.unregister_service(info)
zeroconf.close()
"#;

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
