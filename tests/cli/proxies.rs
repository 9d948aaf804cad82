//! A daemon whose environment or configuration names a proxy: what goes through it, and what shows
//! it.

use std::process::Command;

use serde_json::Value;
use tokio::runtime::Runtime;

use crate::support::command::{Home, Running, json, nobody, run, until};
use crate::support::proxy::{Behaviour, Proxy, Requested};
use crate::support::scripted::manifest;
use crate::support::tls_server::{self, TlsServer};

/// The password of the proxy, which nothing shows.
const PASSWORD: &str = "pr0xy-s3cr3t";
/// A provider whose name has no address here.
const HOSTED: &str = "[[scenarios]]\nname = \"hosted\"\nurl = \"https://tools.invalid\"\n";

/// A hosted provider, and a proxy that leads to it.
struct Network {
    server: TlsServer,
    proxy: Proxy,
    _runtime: Runtime,
}

impl Network {
    fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let list = manifest("hosted", &["find"]).to_string();
        let answer = move |_: &str, path: &str| match path {
            "/api/v1/tools" => tls_server::json(200, &list),
            _ => tls_server::json(404, "{}"),
        };
        let server = runtime.block_on(TlsServer::answering(answer));
        let proxy = runtime.block_on(Proxy::start(Behaviour::Tunnel(server.address)));
        Self {
            server,
            proxy,
            _runtime: runtime,
        }
    }

    /// The address of the proxy with its credentials.
    fn proxy_url(&self) -> String {
        format!("http://user:{PASSWORD}@{}", self.proxy.address)
    }
}

/// A command that trusts the certificate of the hosted provider.
fn trusting(home: &Home, args: &[&str]) -> Command {
    let mut command = home.command(args);
    command.env("SSL_CERT_FILE", tls_server::file("ca.pem"));
    command
}

fn serve(mut command: Command) -> Running {
    command.env("CALLSHEET_LOG", "debug");
    let running = Running::start(command, "callsheet listens on ");
    until("the daemon is ready", || running.get("/readyz").0 == 200);
    running
}

/// What the daemon knows of the hosted provider.
fn hosted(daemon: &Running) -> Value {
    let (_, body) = daemon.get("/api/v1/scenarios/hosted");
    serde_json::from_slice(&body).unwrap()
}

/// Has the hosted provider polled until it is in this state, or has this kind of error.
fn until_refreshed(daemon: &Running, expected: &str) {
    until(expected, || {
        daemon.send("POST /api/v1/scenarios/hosted/refresh", "", "");
        let hosted = hosted(daemon);
        hosted["state"] == expected || hosted["last_error"]["kind"] == expected
    });
}

/// What `doctor` says of the proxy, if it does.
fn diagnosis(command: &mut Command) -> Option<Value> {
    let report = json(&run(command).out);
    let checks = report["checks"].as_array().unwrap();
    checks
        .iter()
        .find(|check| check["check"] == "proxy")
        .cloned()
}

#[test]
fn a_hosted_provider_is_reached_through_the_proxy_of_the_environment() {
    let network = Network::start();
    let home = Home::with(HOSTED);
    let mut command = trusting(&home, &["serve"]);
    command.env("HTTPS_PROXY", network.proxy_url());
    let mut daemon = serve(command);
    until("its tools are listed", || {
        let (_, body) = daemon.get("/api/v1/tools");
        String::from_utf8(body).unwrap().contains("find")
    });
    let requested = network.proxy.requested();
    let expected = Requested {
        host: "tools.invalid:443".to_owned(),
        authorization: Some("Basic dXNlcjpwcjB4eS1zM2NyM3Q=".to_owned()),
    };
    assert!(
        requested.iter().all(|one| *one == expected),
        "{requested:?}"
    );
    assert!(
        network
            .server
            .seen()
            .contains(&"GET tools.invalid/api/v1/tools".to_owned())
    );
    let doctor =
        diagnosis(trusting(&home, &["doctor", "--json"]).env("HTTPS_PROXY", network.proxy_url()));
    let doctor = doctor.unwrap();
    assert_eq!(doctor["status"], "ok", "{doctor}");
    assert_eq!(
        doctor["subject"],
        format!("http://{}", network.proxy.address)
    );
    daemon.signal("TERM");
    let (_, log) = daemon.ended();
    assert!(log.contains("callsheet"), "{log}");
    for secret in [PASSWORD, "dXNlcjpwcjB4eS1zM2NyM3Q="] {
        assert!(!log.contains(secret), "{log}");
    }
}

#[test]
fn a_change_of_the_proxy_applies_without_a_restart() {
    let network = Network::start();
    let file = |proxy: &str| {
        format!(
            "server.listen = \"127.0.0.1:0\"\nrefresh.forced_gap = \"0s\"\nnetwork.proxy = \"{proxy}\"\n{HOSTED}"
        )
    };
    let home = Home::new();
    home.write("callsheet.toml", &file("none"));
    let daemon = serve(trusting(&home, &["serve"]));
    until_refreshed(&daemon, "unresolved");
    home.write("callsheet.toml", &file(&network.proxy_url()));
    until_refreshed(&daemon, "live");
    home.write("callsheet.toml", &file(&nobody()));
    until_refreshed(&daemon, "proxy");
    let scenario = hosted(&daemon);
    let message = scenario["last_error"]["message"].as_str().unwrap();
    assert!(message.contains("cannot be reached"), "{message}");
}

#[test]
fn check_and_doctor_use_the_proxy_that_the_daemon_would_use() {
    let network = Network::start();
    let home = Home::with(HOSTED);
    let mut check = trusting(&home, &["check", "https://tools.invalid", "--json"]);
    let checked = run(check.env("ALL_PROXY", network.proxy_url()));
    assert_ne!(checked.code, Some(2), "{checked:?}");
    let polls = network.proxy.requested().len();
    assert!(polls > 0, "{checked:?}");
    let mut doctor = trusting(&home, &["doctor", "--json"]);
    run(doctor.env("ALL_PROXY", network.proxy_url()));
    assert!(network.proxy.requested().len() > polls);
    let mut excepted = trusting(&home, &["check", "https://tools.invalid", "--json"]);
    excepted
        .env("ALL_PROXY", network.proxy_url())
        .env("NO_PROXY", "other.invalid, .invalid");
    let before = network.proxy.requested().len();
    assert_eq!(run(&mut excepted).code, Some(2));
    assert_eq!(network.proxy.requested().len(), before);
}

#[test]
fn config_show_says_which_proxy_is_used_and_where_it_is_named() {
    let home = Home::new();
    let shown = |variables: &[(&str, &str)]| {
        let mut command = home.command(&["config", "show", "--origin"]);
        let out = run(command
            .envs(variables.iter().copied())
            .env("COLUMNS", "300"))
        .ok();
        let lines = out.lines().filter(|line| line.starts_with("network."));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let default = [
        "network.proxy = \"environment\"  # default",
        "network.no_proxy = []  # default",
    ];
    assert_eq!(spaced(shown(&[])), default);
    assert_eq!(
        spaced(shown(&[("HTTP_PROXY", "http://proxy.example")])),
        default
    );
    let named = shown(&[
        ("HTTPS_PROXY", "user:pr0xy-s3cr3t@proxy.example:3128"),
        ("ALL_PROXY", "socks5://other.example"),
        ("no_proxy", "corp.example, 192.0.2.0/24"),
    ]);
    let expected = [
        "network.proxy = \"http://proxy.example:3128\"  # environment HTTPS_PROXY",
        "network.no_proxy = [\"corp.example\", \"192.0.2.0/24\"]  # environment NO_PROXY",
    ];
    assert_eq!(spaced(named), expected);
    let all = shown(&[("all_proxy", "socks5h://proxy.example")]);
    assert_eq!(
        spaced(all)[0],
        "network.proxy = \"socks5h://proxy.example:1080\"  # environment all_proxy"
    );
    let file = home.write(
        "callsheet.toml",
        "network.proxy = \"https://user:pr0xy-s3cr3t@proxy.example\"\n",
    );
    assert_eq!(
        spaced(shown(&[("HTTPS_PROXY", "http://other.example")]))[0],
        format!(
            "network.proxy = \"https://***@proxy.example\"  # file {}:1",
            file.display()
        )
    );
}

/// Lines with the blanks between value and origin made two.
fn spaced(lines: Vec<String>) -> Vec<String> {
    let spaced = |line: String| match line.split_once("  # ") {
        Some((value, origin)) => format!("{}  # {origin}", value.trim_end()),
        None => line,
    };
    lines.into_iter().map(spaced).collect()
}

#[test]
fn doctor_says_what_is_wrong_with_the_proxy() {
    let home = Home::with("");
    assert_eq!(diagnosis(&mut home.command(&["doctor", "--json"])), None);
    let gone = nobody();
    for (proxy, subject, expected) in [
        (gone.as_str(), gone.as_str(), "refused"),
        ("socks4://proxy.example", "of `HTTPS_PROXY`", "socks4"),
    ] {
        let mut command = home.command(&["doctor", "--json"]);
        let found = diagnosis(command.env("HTTPS_PROXY", proxy)).unwrap();
        assert_eq!(found["status"], "error", "{found}");
        assert_eq!(found["subject"], subject, "{found}");
        assert!(
            found["message"].as_str().unwrap().contains(expected),
            "{found}"
        );
        assert!(
            found["hint"].as_str().unwrap().contains("`HTTPS_PROXY`"),
            "{found}"
        );
    }
}

#[test]
fn a_proxy_in_the_configuration_that_cannot_be_used_is_refused() {
    let home = Home::new();
    for (line, expected) in [
        (
            "network.proxy = \"socks4://u:pr0xy-s3cr3t@p.example\"",
            "socks4",
        ),
        ("network.proxy = \"http://\"", "it is not an address"),
        ("network.no_proxy = [\"*.example.com\"]", "network.no_proxy"),
    ] {
        home.write("callsheet.toml", line);
        let error = home.run(&["config", "show"]).failed(4);
        assert!(error.contains(expected), "{line}: {error}");
        assert!(!error.contains("s3cr3t"), "{error}");
    }
    // A variable may be meant for other programs.
    home.write(
        "callsheet.toml",
        "network.no_proxy = [\"corp.example\", \".a.example\", \"10.0.0.0/8\", \"::1\", \"*\"]",
    );
    let mut command = home.command(&["config", "show", "--json"]);
    run(command.env("HTTPS_PROXY", "socks4://proxy.example")).ok();
}
