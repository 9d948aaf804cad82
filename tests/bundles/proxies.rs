//! Requests of stored tools where a proxy leads to public hosts.

use callsheet::config::{ConfiguredProxy, NetworkConfig};
use serde_json::json;

use crate::support::daemon::Home;
use crate::support::proxy::{Behaviour, Proxy};
use crate::{config, http_tool, invoke, with_tools};

/// The host of a request is judged here first. What no rule admits, and what has a private address,
/// is not requested of the proxy.
#[tokio::test]
async fn only_admitted_public_hosts_are_requested_of_the_proxy() {
    let proxy = Proxy::start(Behaviour::Answer(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")).await;
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let refusing = nowhere.local_addr().unwrap();
    drop(nowhere);
    let home = Home::new();
    let mut config = config(&home);
    config.network = NetworkConfig {
        proxy: Some(ConfiguredProxy {
            address: format!("http://user:secret@{}", proxy.address).parse(),
            variable: None,
        }),
        no_proxy: vec!["excepted.invalid".to_owned()],
        ..NetworkConfig::default()
    };
    config.bundles.allowed_hosts = ["tools.invalid", "excepted.invalid", "127.0.0.0/8"]
        .map(|host| host.parse().unwrap())
        .to_vec();
    let to = |url: &str| http_tool(&json!({"urlTemplate": url, "maxRetries": 0}));
    let tools = [
        ("public", to("https://tools.invalid/")),
        ("plain", to("http://tools.invalid/")),
        ("excepted", to("https://excepted.invalid/")),
        ("private", to(&format!("https://{refusing}/"))),
    ];
    let daemon = with_tools(config, &tools).await;
    for (slug, expected) in [
        ("public", "the proxy http://127.0.0.1:"),
        ("plain", "host not found"),
        ("excepted", "host not found"),
        ("private", "connection refused"),
    ] {
        let (_, answer) = invoke(&daemon, slug, &json!({})).await;
        let answer = answer.to_string();
        assert!(answer.contains(expected), "{slug}: {answer}");
        assert!(!answer.contains("secret"), "{slug}: {answer}");
    }
    assert_eq!(proxy.hosts(), ["tools.invalid:443"]);
    daemon.stop().await;
}
