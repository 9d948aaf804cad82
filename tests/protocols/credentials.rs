//! What is sent with requests because it is configured for an address.

use callsheet::model::{Auth, HttpTarget, Secret};
use callsheet::transports::Transports;

use crate::support::assert_empty;
use crate::support::upstream_server::{UpstreamServer, answer, client, limits};

/// The target with a token and a header.
fn target(server: &UpstreamServer) -> HttpTarget {
    let headers = vec![("x-team".parse().unwrap(), Secret::new("tools").into())];
    HttpTarget {
        auth: Some(Auth::Bearer(Secret::new("topsecret").into())),
        headers,
        ..HttpTarget::at(server.url())
    }
}

#[tokio::test]
async fn configured_headers_go_with_every_request_within_the_origin_and_never_elsewhere() {
    let elsewhere = UpstreamServer::answering(|_| answer("200 OK", &[], b"elsewhere")).await;
    let away = format!("{}taken", elsewhere.url());
    let server = UpstreamServer::answering(move |request| match request.target() {
        "/moved" => answer("302 Found", &["Location: /here"], b""),
        "/away" => answer("302 Found", &[&format!("Location: {away}")], b""),
        _ => answer("200 OK", &[], b"here"),
    })
    .await;
    let upstream = Transports::new(client(limits(), 1))
        .http(&target(&server))
        .unwrap();
    assert_eq!(
        &upstream.get("/moved", None).await.unwrap().body[..],
        b"here"
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        let sent = (request.header("authorization"), request.header("x-team"));
        assert_eq!(
            sent,
            (Some("Bearer topsecret"), Some("tools")),
            "{}",
            request.target()
        );
    }
    assert_eq!(
        upstream.get("/away", None).await.unwrap_err().kind(),
        "redirect"
    );
    assert_empty!(elsewhere.requests());
}
