//! Logging in on the page of a scenario, request by request: the buttons, where the browser is
//! sent, what it may come back with, and what other pages can do.

use std::net::SocketAddr;

use serde_json::Value;
use url::Url;

use crate::login_server::{LoginServer, MARKER, member, say_yes};
use crate::support::assert_empty;
use crate::support::command::{Home, Running};
use crate::support::serving::{Answer, ask};

const PAGE: &str = "/dashboard/scenarios/tickets";

/// A daemon in front of a scenario that takes a login, and of one that has a key.
struct Dashboard {
    server: LoginServer,
    daemon: Running,
    _home: Home,
}

impl Dashboard {
    async fn start() -> Self {
        Self::with("").await
    }

    /// The same with further keys.
    async fn with(keys: &str) -> Self {
        let server = LoginServer::start().await;
        let home = Home::with(&format!(
            "discovery.vrooli.enabled = false\nstate.path = \"state.db\"\nrefresh.backoff_base = \"10ms\"\n\
             refresh.backoff_max = \"10ms\"\n{keys}[[scenarios]]\nname = \"tickets\"\nurl = \"{0}\"\n\
             [[scenarios]]\nname = \"keyed\"\nurl = \"{0}keyed\"\nauth = \"key\"\n",
            server.url()
        ));
        let daemon = home.serve(&[]);
        Self {
            server,
            daemon,
            _home: home,
        }
    }

    fn address(&self) -> SocketAddr {
        self.daemon
            .url
            .strip_prefix("http://")
            .unwrap()
            .parse()
            .unwrap()
    }

    async fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
        ask(self.address(), method, target, headers, "").await
    }

    async fn page(&self, target: &str) -> (u16, String) {
        let answer = self
            .ask(
                "GET",
                target,
                &[("accept", "text/html"), ("sec-fetch-mode", "navigate")],
            )
            .await;
        (answer.status, String::from_utf8(answer.body).unwrap())
    }

    /// Presses "Log in": where the browser is sent.
    async fn begin(&self) -> Url {
        let answer = self.ask("POST", &format!("{PAGE}/login"), &[]).await;
        assert_eq!(answer.status, 204, "{answer:?}");
        Url::parse(answer.header("hx-redirect")).unwrap()
    }

    /// Logs in, as a browser would do it.
    async fn log_in(&self) {
        let authorization = self.begin().await;
        let came = say_yes(&authorization).await;
        let (status, page) = self.page(&format!("/login/callback?{came}")).await;
        assert_eq!(status, 200, "{page}");
    }

    /// The tools that are listed.
    async fn tools(&self) -> Vec<String> {
        let list: Value = self.ask("GET", "/api/v1/tools", &[]).await.json();
        let tools = list["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["original_name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Polls the scenario twice, since the second listing of a process counts as a whole one.
    async fn refresh(&self) {
        for _ in 0..2 {
            let target = "/api/v1/scenarios/tickets/refresh";
            let polled = self.ask("POST", target, &[]).await;
            assert_eq!(polled.status, 200, "{polled:?}");
        }
    }

    async fn state(&self) -> String {
        let login: Value = self
            .ask("GET", "/api/v1/scenarios/tickets/login", &[])
            .await
            .json();
        login["state"].as_str().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_buttons_follow_the_login() {
    let dashboard = Dashboard::start().await;
    let (_, page) = dashboard.page(PAGE).await;
    assert!(
        page.contains("id=\"login-tickets\"")
            && page.contains(&format!("hx-post=\"{PAGE}/login\"")),
        "{page}"
    );
    assert!(
        !page.contains("id=\"logout-tickets\""),
        "there is nothing to forget: {page}"
    );
    assert!(page.contains("data-login=\"logged-out\""), "{page}");
    let (_, keyed) = dashboard.page("/dashboard/scenarios/keyed").await;
    assert!(
        !keyed.contains("id=\"login-keyed\"") && !keyed.contains("data-login"),
        "{keyed}"
    );
    let refused = dashboard
        .ask("POST", "/dashboard/scenarios/keyed/login", &[])
        .await;
    assert_eq!(refused.status, 409);
    assert!(refused.problem().contains("takes no login"));

    let authorization = dashboard.begin().await;
    assert_eq!(dashboard.state().await, "waiting");
    let query = authorization.query().unwrap();
    let back = format!("{}/login/callback", dashboard.daemon.url);
    assert_eq!(member(query, "redirect_uri"), Some(back));
    let came = say_yes(&authorization).await;
    let (status, page) = dashboard.page(&format!("/login/callback?{came}")).await;
    assert_eq!(status, 200, "{page}");
    assert!(
        page.contains("Logged in") && page.contains(&format!("href=\"{PAGE}\"")),
        "{page}"
    );
    assert!(
        page.contains("renews that by itself") && !page.contains(MARKER),
        "{page}"
    );

    let (_, page) = dashboard.page(PAGE).await;
    assert!(
        page.contains("id=\"logout-tickets\"") && page.contains("hx-delete"),
        "{page}"
    );
    assert!(
        page.contains("data-login=\"logged-in\"") && page.contains("renewed by itself"),
        "{page}"
    );
    assert!(
        page.contains("data-state=\"live\"") || page.contains("live"),
        "{page}"
    );
    let (status, page) = dashboard.page(&format!("/login/callback?{came}")).await;
    assert_eq!(status, 409, "a code is used once");
    assert!(page.contains("no such login is under way"), "{page}");

    let gone: Value = dashboard
        .ask("DELETE", "/api/v1/scenarios/tickets/login", &[])
        .await
        .json();
    assert_eq!(gone["was_logged_in"], true, "{gone}");
    assert_eq!(gone["revoked"], true, "{gone}");
    let (_, page) = dashboard.page(PAGE).await;
    assert!(
        page.contains("data-login=\"logged-out\"") && !page.contains("id=\"logout-tickets\""),
        "{page}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_browser_may_come_back_with_is_refused_by_name() {
    let dashboard = Dashboard::start().await;
    // Nothing of these belongs to a login: one that is under way goes on.
    let authorization = dashboard.begin().await;
    let good = say_yes(&authorization).await;
    let state = member(&good, "state").unwrap();
    for query in [
        "",
        "?",
        "?state=",
        "?state=unknown&code=x",
        "?code=x",
        "?state=unknown&error=access_denied",
    ] {
        let (status, page) = dashboard.page(&format!("/login/callback{query}")).await;
        assert_eq!(status, 409, "{query}: {page}");
        assert!(
            page.contains("no such login is under way") && page.contains("callsheet login"),
            "{query}: {page}"
        );
    }
    // The first of two states counts.
    let (status, _) = dashboard
        .page(&format!("/login/callback?state=unknown&{good}"))
        .await;
    assert_eq!(status, 409);
    assert_eq!(
        dashboard
            .ask("POST", &format!("/login/callback?{good}"), &[])
            .await
            .status,
        405
    );
    assert_eq!(dashboard.state().await, "waiting");

    // These end the login that they belong to, and no code is sent anywhere.
    let evil = "https%3A%2F%2Fevil.example";
    let issuer = member(&good, "iss").unwrap();
    for (rest, expected) in [
        (
            format!("error=access_denied&iss={issuer}"),
            "refused the login: access_denied",
        ),
        (
            format!("error=%3Cscript%3Ealert(1)%3C%2Fscript%3E&iss={issuer}"),
            "refused the login: &lt;script&gt;",
        ),
        (format!("iss={issuer}"), "answered without a code"),
        (
            format!("code=x&iss={evil}"),
            "of another authorization server",
        ),
        (
            format!("code=x&iss={issuer}%2F"),
            "of another authorization server",
        ),
        (
            format!("error=access_denied&iss={evil}"),
            "of another authorization server",
        ),
        ("code=x".to_owned(), "does not name"),
    ] {
        let state = member(dashboard.begin().await.query().unwrap(), "state").unwrap();
        let (status, page) = dashboard
            .page(&format!("/login/callback?state={state}&{rest}"))
            .await;
        assert_eq!(status, 409, "{rest}: {page}");
        assert!(
            page.contains(expected) && !page.contains("<script>alert"),
            "{rest}: {page}"
        );
        assert_eq!(dashboard.state().await, "logged-out", "{rest}");
    }
    assert_empty!(dashboard.server.of("/token"));
    let (status, page) = dashboard
        .page(&format!("/login/callback?state={state}&code=x"))
        .await;
    assert_eq!(status, 409, "a login that was replaced is over: {page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_pages_neither_begin_nor_finish_nor_end_a_login() {
    let dashboard = Dashboard::start().await;
    let begin = format!("{PAGE}/login");
    let login = "/api/v1/scenarios/tickets/login";
    for foreign in [
        &[("origin", "https://evil.example")][..],
        &[("origin", "null")],
        &[("sec-fetch-site", "cross-site")],
        &[("host", "evil.example")],
    ] {
        for (method, target) in [("POST", begin.as_str()), ("POST", login), ("DELETE", login)] {
            assert_eq!(
                dashboard.ask(method, target, foreign).await.status,
                403,
                "{method} {target} {foreign:?}"
            );
        }
    }
    assert_eq!(dashboard.state().await, "logged-out");
    // A picture on another page cannot come back in place of the browser; an address that leads
    // here from the authorization server can.
    let query = say_yes(&dashboard.begin().await).await;
    let callback = format!("/login/callback?{query}");
    let picture = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "no-cors"),
    ];
    assert_eq!(dashboard.ask("GET", &callback, &picture).await.status, 403);
    assert_eq!(
        dashboard
            .ask("GET", &callback, &[("host", "evil.example")])
            .await
            .status,
        403
    );
    assert_eq!(dashboard.state().await, "waiting");
    let follows = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("accept", "text/html"),
    ];
    let page = dashboard.ask("GET", &callback, &follows).await;
    assert_eq!(page.status, 200);
    // The address of the page has the code in it: it is given to nobody, and kept nowhere.
    assert_eq!(page.header("referrer-policy"), "no-referrer");
    assert_eq!(page.header("cache-control"), "no-store");
    assert_eq!(dashboard.state().await, "logged-in");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_browser_comes_back_the_way_it_came() {
    let dashboard = Dashboard::start().await;
    let begin = format!("{PAGE}/login");
    let secure = [("host", "localhost"), ("origin", "https://localhost")];
    for (headers, expected) in [
        (&secure[..], "https://localhost/login/callback"),
        (
            &[("host", "localhost:81"), ("origin", "http://localhost:81")],
            "http://localhost:81/login/callback",
        ),
        (&[("host", "[::1]:81")], "http://[::1]:81/login/callback"),
    ] {
        let answer = dashboard.ask("POST", &begin, headers).await;
        assert_eq!(answer.status, 204, "{answer:?}");
        let sent = Url::parse(answer.header("hx-redirect")).unwrap();
        assert_eq!(
            member(sent.query().unwrap(), "redirect_uri").as_deref(),
            Some(expected)
        );
    }
    // The API takes a program of this machine only.
    for redirect in [
        "https://evil.example/callback",
        "http://evil.example:80/",
        "http://127.0.0.1/",
        "http://u@127.0.0.1:9/",
    ] {
        let body = format!("{{\"redirect_uri\": \"{redirect}\"}}");
        let json = [("content-type", "application/json")];
        let answer = ask(
            dashboard.address(),
            "POST",
            "/api/v1/scenarios/tickets/login",
            &json,
            &body,
        )
        .await;
        assert_eq!(answer.status, 400, "{redirect}");
        assert!(answer.problem().contains("loopback"), "{redirect}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_that_a_login_brings_are_accepted_and_later_ones_are_held() {
    let dashboard =
        Dashboard::with("pins.default = \"hold\"\nrefresh.forced_gap = \"1ms\"\n").await;
    dashboard.log_in().await;
    dashboard.refresh().await;
    assert_eq!(dashboard.tools().await, ["find"]);
    // Another account of the same server has a tool more.
    let ended = dashboard
        .ask("DELETE", "/api/v1/scenarios/tickets/login", &[])
        .await;
    assert_eq!(ended.status, 200, "{ended:?}");
    dashboard.server.set(|server| server.tools.push("write"));
    dashboard.log_in().await;
    dashboard.refresh().await;
    assert_eq!(dashboard.tools().await, ["find", "write"]);
    // Nobody logged in for this one.
    dashboard.server.set(|server| server.tools.push("wipe"));
    dashboard.refresh().await;
    assert_eq!(dashboard.tools().await, ["find", "write"]);
}
