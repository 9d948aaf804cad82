//! `callsheet login` and `logout` with a daemon: over a restart and a renewal, with a marker in
//! every secret, which is searched in everything that the run wrote but the store itself.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::Value;
use url::Url;

use crate::login_server::{LoginServer, MARKER, say_yes};
use crate::support::command::{Home, Running, until};
use crate::support::serving::ask;

fn state(daemon: &Running) -> String {
    let (_, body) = daemon.get("/api/v1/scenarios/tickets");
    let answer: Value = serde_json::from_slice(&body).unwrap();
    answer["state"].as_str().unwrap_or_default().to_owned()
}

/// A daemon that logs all that it can.
fn serve(home: &Home) -> Running {
    let mut command = home.command(&["serve"]);
    command.env("CALLSHEET_LOG", "trace");
    let daemon = Running::start(command, "callsheet listens on ");
    until("the daemon is ready", || daemon.get("/readyz").0 == 200);
    daemon
}

/// Runs the command, and does what the person does: everything that it printed.
pub(crate) async fn login(home: &Home, daemon: &Running, name: &str) -> String {
    let mut command = home.command(&["login", name, "--no-browser", "--url", &daemon.url]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = notes
        .find_map(|line| Url::parse(line.unwrap().trim()).ok().filter(Url::has_host))
        .expect("an address");
    let query = say_yes(&address).await;
    let pairs: Vec<(String, String)> = address.query_pairs().into_owned().collect();
    let back = &pairs
        .iter()
        .find(|(key, _)| key == "redirect_uri")
        .unwrap()
        .1;
    let back = Url::parse(back).unwrap();
    // Other programs and web pages may try the port; they do not know the state.
    for other in [
        "/",
        "/callback",
        "/callback?code=x",
        "/callback?state=guessed&code=x",
    ] {
        let refused = ask(
            back.socket_addrs(|| None).unwrap()[0],
            "GET",
            other,
            &[],
            "",
        )
        .await;
        assert_eq!(refused.status, 404, "{other}");
    }
    let page = ask(
        back.socket_addrs(|| None).unwrap()[0],
        "GET",
        &format!("{}?{query}", back.path()),
        &[],
        "",
    )
    .await;
    assert_eq!(page.status, 200);
    let mut printed = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut printed)
        .unwrap();
    assert!(child.wait().unwrap().success(), "{printed}");
    printed
}

#[tokio::test(flavor = "multi_thread")]
async fn one_login_lasts_over_a_restart_and_a_renewal() {
    let server = LoginServer::start().await;
    let url = server.url().to_string();
    let home = Home::with(&format!(
        "discovery.vrooli.enabled = false\nstate.path = \"state.db\"\nrefresh.backoff_base = \"10ms\"\n\
         refresh.backoff_max = \"10ms\"\n[[scenarios]]\nname = \"tickets\"\nurl = \"{url}\"\n"
    ));
    let mut daemon = serve(&home);
    assert_eq!(state(&daemon), "needs-authorization");
    let findings = String::from_utf8(daemon.get("/api/v1/findings").1).unwrap();
    assert!(findings.contains("callsheet login tickets"), "{findings}");
    let printed = login(&home, &daemon, "tickets").await;
    assert!(
        printed.contains("tickets is logged in") && printed.contains("renews this by itself"),
        "{printed}"
    );
    assert_eq!(state(&daemon), "live");
    let mut written = vec![
        printed,
        String::from_utf8(daemon.get("/api/v1/scenarios/tickets/login").1).unwrap(),
    ];
    daemon.signal("TERM");
    written.push(daemon.ended().1);

    let mode = std::fs::metadata(home.path("state.db"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut daemon = serve(&home);
    assert_eq!(state(&daemon), "live", "the login was kept");
    assert_eq!(server.of("/token").len(), 1);

    // The server accepts its token no more, but renews it; then it does neither.
    server.set(|inner| inner.padding = 1);
    home.run(&["refresh", "tickets", "--url", &daemon.url]).ok();
    assert_eq!(server.of("/token").len(), 2, "it was renewed once");
    server.set(|inner| (inner.padding, inner.refuses_renewal) = (2, true));
    written.push(home.run(&["refresh", "tickets", "--url", &daemon.url]).err);
    assert_eq!(state(&daemon), "needs-authorization");
    for page in [
        "/api/v1/findings",
        "/api/v1/scenarios",
        "/dashboard/scenarios/tickets",
        "/metrics",
    ] {
        written.push(String::from_utf8_lossy(&daemon.get(page).1).into_owned());
    }
    let output = home.run(&["logout", "tickets", "--url", &daemon.url]).ok();
    assert!(
        output.contains("tickets is logged out") && output.contains("server revoked the tokens"),
        "{output}"
    );
    written.push(output);

    // A login outlives its scenario in the configuration, and can be ended all the same.
    server.set(|inner| inner.refuses_renewal = false);
    written.push(login(&home, &daemon, "tickets").await);
    daemon.signal("TERM");
    written.push(daemon.ended().1);
    let rest = "server.listen = \"127.0.0.1:0\"\ndiscovery.vrooli.enabled = false\nstate.path = \"state.db\"\n";
    home.write("callsheet.toml", rest);
    let mut daemon = home.serve(&[]);
    let output = home.run(&["logout", "tickets", "--url", &daemon.url]).ok();
    assert!(
        output.contains("its authorization server revoked the tokens"),
        "{output}"
    );
    home.run(&["logout", "tickets", "--url", &daemon.url])
        .failed(1);
    written.push(home.run(&["config", "show"]).ok());
    daemon.signal("TERM");
    written.push(daemon.ended().1);
    for text in written {
        assert!(!text.contains(MARKER), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_and_a_scenario_without_login_are_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let server = LoginServer::start().await;
    let home = Home::with(&format!(
        "discovery.vrooli.enabled = false\n[[scenarios]]\nname = \"keyed\"\nurl = \"{}\"\nauth = \"key\"\n",
        server.url()
    ));
    let daemon = home.serve(&[]);
    let error = home
        .run(&["login", "keyed", "--port", &port, "--url", &daemon.url])
        .failed(2);
    assert!(
        error.contains(&format!("cannot come back to port {port}")) && error.contains("--port"),
        "{error}"
    );
    let error = home
        .run(&["login", "keyed", "--no-browser", "--url", &daemon.url])
        .failed(1);
    assert!(error.contains("takes no login"), "{error}");
}
