//! A hostile authorization server that sends the browser on to an honest one: the honest one's code
//! reaches no other server, whichever address the browser comes back to (RFC 9700 section 4.4.2).

use std::net::SocketAddr;
use std::sync::Arc;

use callsheet::model::{HttpTarget, ScenarioName};
use callsheet::transports::http::credentials::TokenSources;
use callsheet::transports::http::credentials::oauth::{LoginRedirect, LoginSettings, OAuthTokens};
use serde_json::{Value, json};
use url::{Position, Url};

use crate::login_server::{LoginServer, browse, callback, member};
use crate::support::assert_empty;
use crate::support::command::{Home, Running};
use crate::support::serving::{Answer, ask};
use crate::support::upstream_server::{client, limits};

/// Two scenarios with an authorization server each, and a daemon in front of both. Neither server
/// names itself in its answers, unless a test changes that.
struct Setting {
    good: LoginServer,
    evil: LoginServer,
    daemon: Running,
    home: Home,
}

impl Setting {
    /// With these further lines for each scenario.
    async fn start(good_lines: &str, evil_lines: &str) -> Self {
        let good = unnamed().await;
        let evil = unnamed().await;
        let home = Home::with(&format!(
            "discovery.vrooli.enabled = false\nrefresh.backoff_base = \"10ms\"\nrefresh.backoff_max = \"10ms\"\n\
             [[scenarios]]\nname = \"good\"\nurl = \"{}\"\n{}\n\
             [[scenarios]]\nname = \"evil\"\nurl = \"{}\"\n{}\n",
            good.url(),
            good_lines.replace("ISSUER", &issuer(&good)),
            evil.url(),
            evil_lines.replace("ISSUER", &issuer(&evil)),
        ));
        let daemon = home.serve(&[]);
        Self {
            good,
            evil,
            daemon,
            home,
        }
    }

    fn address(&self) -> SocketAddr {
        let address = self.daemon.url.strip_prefix("http://").unwrap();
        address.parse().unwrap()
    }

    async fn post(&self, target: &str, body: &Value) -> Answer {
        let json = [("content-type", "application/json")];
        ask(self.address(), "POST", target, &json, &body.to_string()).await
    }

    /// Presses "Log in" on the page of a scenario.
    async fn press(&self, name: &str) -> Answer {
        let target = format!("/dashboard/scenarios/{name}/login");
        ask(self.address(), "POST", &target, &[], "").await
    }

    /// The same, where that sends the browser to the authorization server.
    async fn begin(&self, name: &str) -> Url {
        let answer = self.press(name).await;
        assert_eq!(answer.status, 204, "{answer:?}");
        Url::parse(answer.header("hx-redirect")).unwrap()
    }

    /// Follows the browser to the page that it comes back to: its status and text.
    async fn come_back(&self, back: &Url) -> (u16, String) {
        let headers = [("accept", "text/html"), ("sec-fetch-mode", "navigate")];
        let target = &back[Position::BeforePath..];
        let answer = ask(self.address(), "GET", target, &headers, "").await;
        (answer.status, String::from_utf8(answer.body).unwrap())
    }

    /// Logs in for a scenario, and returns the path that the browser came back to.
    async fn log_in(&self, name: &str) -> String {
        let back = browse(&self.begin(name).await).await.unwrap();
        let page = self.come_back(&back).await;
        assert_eq!(page.0, 200, "{}", page.1);
        assert_eq!(self.state(name).await, "logged-in");
        back.path().to_owned()
    }

    async fn state(&self, name: &str) -> String {
        let target = format!("/api/v1/scenarios/{name}/login");
        let login: Value = ask(self.address(), "GET", &target, &[], "").await.json();
        login["state"].as_str().unwrap().to_owned()
    }

    /// Has the hostile server send the browser on to the honest one, as its client, with this
    /// redirect address instead of the one that callsheet gave.
    fn send_on(&self, client_id: &str, redirect: Option<String>) {
        let mut replaced = vec![("client_id", client_id.to_owned())];
        replaced.extend(redirect.map(|redirect| ("redirect_uri", redirect)));
        let to = self.good.url().join("authorize").unwrap();
        self.evil.set(|inner| inner.sends_on = Some((to, replaced)));
    }

    /// A login for the hostile scenario comes back with the honest server's code. It is refused,
    /// and no server gets the code.
    async fn expect_refusal(&self) {
        let codes = self.good.of("/token").len();
        let back = browse(&self.begin("evil").await).await.unwrap();
        assert!(back.query().unwrap().contains("code="), "{back}");
        let page = self.come_back(&back).await;
        assert_eq!(page.0, 409, "{back}: {}", page.1);
        assert!(
            page.1.contains("another authorization server"),
            "{}",
            page.1
        );
        assert!(page.1.contains("callsheet login evil"), "{}", page.1);
        assert_empty!(self.evil.of("/token"));
        assert_eq!(self.good.of("/token").len(), codes);
        assert_eq!(self.state("evil").await, "logged-out");
    }
}

/// An authorization server that does not name itself in its answers.
async fn unnamed() -> LoginServer {
    let server = LoginServer::start().await;
    set_named(&server, false);
    server
}

/// Whether a server names itself, and promises so.
fn set_named(server: &LoginServer, is_named: bool) {
    server.set(|inner| {
        inner.wrong = vec![(
            "authorization_response_iss_parameter_supported",
            json!(is_named),
        )];
        inner.named = is_named.then(|| inner.issuer.clone());
    });
}

fn issuer(server: &LoginServer) -> String {
    server.inner.lock().unwrap().issuer.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_code_of_another_server_is_refused_by_the_address_it_came_to() {
    let setting = Setting::start("", "").await;
    let path = setting.log_in("good").await;
    let digest = path.strip_prefix("/login/callback/").unwrap();
    assert!(
        digest.len() == 24 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{path}"
    );
    let registered: Value = serde_json::from_str(&setting.good.of("/register")[0]).unwrap();
    let redirect = format!("{}{path}", setting.daemon.url);
    assert_eq!(registered["redirect_uris"], json!([redirect]));
    let own = member(setting.begin("evil").await.query().unwrap(), "redirect_uri").unwrap();
    assert_ne!(own, redirect, "each server has an address of its own");

    // The honest server has not registered the address of the hostile one.
    setting.send_on("registered", None);
    let begun = setting.begin("evil").await;
    assert_eq!(browse(&begun).await, Err(400));
    // The hostile server names the registered one; then one for all servers, which the honest
    // server takes of a client that was registered by hand.
    setting.send_on("registered", Some(redirect));
    setting.expect_refusal().await;
    let shared = format!("{}/login/callback", setting.daemon.url);
    setting.send_on("by-hand", Some(shared));
    setting.expect_refusal().await;
    // That it promises to name itself does not help it.
    set_named(&setting.evil, true);
    setting.send_on("by-hand", None);
    let back = browse(&setting.begin("evil").await).await.unwrap();
    let page = setting.come_back(&back).await;
    assert!(
        page.0 == 409 && page.1.contains("does not name"),
        "{}",
        page.1
    );
    assert_empty!(setting.evil.of("/token"));
    assert_eq!(setting.good.of("/token").len(), 1);

    // It can log its own people in all the same.
    set_named(&setting.evil, false);
    setting.evil.set(|inner| inner.sends_on = None);
    assert_ne!(setting.log_in("evil").await, path);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_was_registered_by_hand_goes_on_working() {
    let mine = "auth = { oauth = { client_id = \"mine\" } }";
    let setting = Setting::start(mine, "").await;
    assert_eq!(setting.log_in("good").await, "/login/callback");
    assert_empty!(setting.good.of("/register"));
    let shared = format!("{}/login/callback", setting.daemon.url);
    setting.send_on("mine", Some(shared));
    setting.expect_refusal().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clients_with_one_address_need_their_issuers() {
    let mine = "auth = { oauth = { client_id = \"mine\" } }";
    let setting = Setting::start(mine, mine).await;
    for name in ["good", "evil"] {
        let refused = setting.press(name).await;
        assert_eq!(refused.status, 409, "{refused:?}");
        let why = refused.problem();
        assert!(
            why.contains(name) && why.contains("add `issuer = \"http://"),
            "{why}"
        );
    }
    // A server that names itself in its answers needs none.
    set_named(&setting.good, true);
    assert_eq!(setting.log_in("good").await, "/login/callback");
    // From then on it is known where that client is registered.
    set_named(&setting.good, false);
    assert_eq!(setting.log_in("good").await, "/login/callback");
    assert_eq!(setting.press("evil").await.status, 409);

    let pinned = "auth = { oauth = { client_id = \"mine\", issuer = \"ISSUER\" } }";
    let setting = Setting::start(pinned, pinned).await;
    assert_eq!(setting.log_in("good").await, "/login/callback");
    assert_eq!(setting.log_in("evil").await, "/login/callback");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_may_be_registered_with_the_address_of_its_issuer() {
    let setting = Setting::start("", "").await;
    setting
        .good
        .set(|inner| inner.wrong.push(("registration_endpoint", Value::Null)));
    let refused = setting.press("good").await.problem();
    let address = refused
        .split("redirect address ")
        .nth(1)
        .and_then(|rest| rest.split(',').next());
    let address = Url::parse(address.unwrap()).unwrap();
    assert!(address.path().starts_with("/login/callback/"), "{refused}");
    assert!(refused.contains("callback = \"issuer\""), "{refused}");

    // As it says, and once more for the hostile server.
    let own =
        "auth = { oauth = { client_id = \"mine\", issuer = \"ISSUER\", callback = \"issuer\" } }";
    let setting = Setting::start(own, own).await;
    let path = setting.log_in("good").await;
    assert!(path.starts_with("/login/callback/"), "{path}");
    setting.send_on("mine", Some(format!("{}{path}", setting.daemon.url)));
    setting.expect_refusal().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_of_an_earlier_version_is_made_anew_once() {
    let setting = Setting::start("", "").await;
    set_named(&setting.good, true);
    assert_eq!(setting.log_in("good").await, "/login/callback");
    set_named(&setting.good, false);
    let path = setting.log_in("good").await;
    assert!(path.starts_with("/login/callback/"), "{path}");
    assert_eq!(setting.log_in("good").await, path);
    assert_eq!(setting.good.of("/register").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_say_whether_they_take_such_an_address() {
    let setting = Setting::start("", "").await;
    let login = "/api/v1/scenarios/good/login";
    let finish = "/api/v1/scenarios/good/login/finish";
    let before = json!({"redirect_uri": "http://127.0.0.1:9/back"});
    let refused = setting.post(login, &before).await;
    assert_eq!(refused.status, 409);
    let why = refused.problem();
    assert!(why.contains("callsheet login good"), "{why}");

    let now = json!({"redirect_uri": "http://127.0.0.1:9/back", "takes_issuer_path": true});
    for says_path in [false, true] {
        let begun: Value = setting.post(login, &now).await.json();
        let redirect = begun["redirect_uri"].as_str().unwrap();
        assert!(redirect.starts_with("http://127.0.0.1:9/back/"), "{begun}");
        let authorization = begun["authorization_url"].as_str().unwrap();
        let back = browse(&authorization.parse().unwrap()).await.unwrap();
        assert!(back.as_str().starts_with(redirect), "{back}");
        let mut came = json!({"query": back.query()});
        if says_path {
            came["path"] = json!(back.path());
        }
        let answer = setting.post(finish, &came).await;
        let expected = if says_path { 200 } else { 409 };
        assert_eq!(answer.status, expected, "{answer:?}");
        assert_eq!(setting.good.of("/token").len(), usize::from(says_path));
    }
    // A server that names itself needs neither.
    set_named(&setting.good, true);
    let begun: Value = setting.post(login, &before).await.json();
    assert_eq!(begun["redirect_uri"], "http://127.0.0.1:9/back");
    let authorization = begun["authorization_url"].as_str().unwrap();
    let back = browse(&authorization.parse().unwrap()).await.unwrap();
    let answer = setting.post(finish, &json!({"query": back.query()})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_takes_the_address_of_an_issuer() {
    let setting = Setting::start("", "").await;
    let printed = crate::login_command::login(&setting.home, &setting.daemon, "good").await;
    assert!(printed.contains("good is logged in"), "{printed}");
    let registered: Value = serde_json::from_str(&setting.good.of("/register")[0]).unwrap();
    let redirect = Url::parse(registered["redirect_uris"][0].as_str().unwrap()).unwrap();
    assert!(redirect.path().starts_with("/callback/"), "{redirect}");
}

/// A document is the same client at all servers, so its addresses do not tell them apart.
#[tokio::test]
async fn a_document_is_used_where_answers_name_their_server() {
    let name: ScenarioName = "tickets".parse().unwrap();
    for is_named in [false, true] {
        let server = LoginServer::start().await;
        set_named(&server, is_named);
        server.set(|inner| {
            let takes_documents = ("client_id_metadata_document_supported", json!(true));
            inner.wrong.push(takes_documents);
        });
        let client = client(limits(), 4);
        let tokens = Arc::new(OAuthTokens::new(&client));
        client.set_token_sources(Arc::clone(&tokens) as Arc<dyn TokenSources>);
        tokens.adjust(LoginSettings {
            client_metadata_url: Some("https://tools.example/callsheet.json".parse().unwrap()),
            hosts: Vec::new(),
        });
        let target = HttpTarget {
            login: Some(name.clone()),
            ..HttpTarget::at(server.url())
        };
        let _upstream = client.upstream_to(&target).unwrap();
        let started = tokens.begin(&name, &callback()).await.unwrap();
        let id = member(started.authorization_url.query().unwrap(), "client_id");
        let expected = if is_named {
            "https://tools.example/callsheet.json"
        } else {
            "registered"
        };
        assert_eq!(id.as_deref(), Some(expected));
        assert_eq!(started.redirect == callback().shared, is_named);
        let back = browse(&started.authorization_url).await.unwrap();
        let redirect = LoginRedirect::parse(back.query().unwrap());
        tokens
            .finish(&redirect.at(Some(back.path())))
            .await
            .unwrap();
    }
}
