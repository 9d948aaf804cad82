//! Other settings of the local network for a running daemon: who is trusted there, and whether it
//! announces itself. All of it on a port of the loopback interface.

use crate::support::assert_empty;
use crate::support::command::{Home, Running, until};
use crate::support::config_file::{Counted, Following, HEAD, replace};
use crate::support::mdns::Network;
use crate::support::sources;

#[tokio::test(flavor = "multi_thread")]
async fn trust_is_judged_anew_and_announcing_begins_and_ends() {
    let network = Network::new();
    let library = Counted::offering("library", &["find_book"]);
    let neighbour = network.neighbour();
    let port = library.url.rsplit(':').next().unwrap().parse().unwrap();
    let record = [
        ("txtvers", "1"),
        ("path", "/api/v1/tools"),
        ("proto", "1.0"),
        ("id", "id-1"),
        ("boot", "boot-1"),
    ];
    neighbour.announce("library", port, &record);
    let text = |trust: &str, announce: bool| {
        let network = format!("port = {}, interfaces = [\"loopback\"]", network.port);
        format!(
            "{HEAD}discovery.mdns = {{ {network}, trust = \"{trust}\", announce = {announce}, name = \"desk\" }}\n"
        )
    };
    let home = Home::new();
    let path = home.write("callsheet.toml", &text("none", false));
    let mut command = home.command(&["serve"]);
    command.env_remove("CALLSHEET_DISCOVERY__MDNS__ENABLED");
    let daemon = Running::start(command, "callsheet listens on ");
    let following = Following { home, path, daemon };

    until("it waits", || {
        following.health("library")["state"] == "pending"
    });
    replace(&following.path, &text("local", false));
    following.until_tools(&["find_book"]);
    replace(&following.path, &text("none", true));
    until("it waits again", || {
        following.health("library")["state"] == "pending"
    });
    assert_empty!(following.tools());

    let mut source = sources::Running::start(network.source());
    let is_listed = |set: &callsheet::discovery::EndpointSet| {
        set.endpoints.values().any(|endpoint| {
            endpoint
                .name
                .as_ref()
                .is_some_and(|name| name.as_str() == "desk")
        })
    };
    source.until("it is announced", is_listed).await;
    replace(&following.path, &text("none", false));
    source
        .until("its goodbye is heard", |set| !is_listed(set))
        .await;
    source.end().await;
}
