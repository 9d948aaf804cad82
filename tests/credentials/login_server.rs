//! A scenario and its authorization server on one port of loopback, which says yes by itself.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use callsheet::transports::http::credentials::oauth::CallbackAddress;
use http::request::Parts;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use url::Url;
use url::form_urlencoded::parse;

use crate::support::scripted::manifest;

/// In every secret that it gives.
pub(crate) const MARKER: &str = "m4rk3r";

/// What the test says, and what came.
#[derive(Debug, Clone)]
pub(crate) struct Inner {
    pub(crate) url: Url,
    /// Members of both documents that are other than usual; `null` takes one out.
    pub(crate) wrong: Vec<(&'static str, Value)>,
    pub(crate) issuer: String,
    /// `iss` of the redirect.
    pub(crate) named: Option<String>,
    /// `expires_in`: seconds, or whatever else a server may write there.
    pub(crate) lifetime: Value,
    pub(crate) refuses_renewal: bool,
    /// What it answers to every request for a token instead.
    pub(crate) trouble: Option<(u16, Value)>,
    /// Whether it gives tokens that renew.
    pub(crate) renews: bool,
    /// What it answers to a revocation.
    pub(crate) revocation: Revocation,
    /// How many bytes a token has more than it needs.
    pub(crate) padding: usize,
    pub(crate) tokens: usize,
    /// The tools that it lists.
    pub(crate) tools: Vec<&'static str>,
    /// What a token has to allow; it is told when it does not.
    pub(crate) wants: Option<&'static str>,
    /// Where its page sends the browser on to, with these members of the query replaced.
    pub(crate) sends_on: Option<(Url, Vec<(&'static str, String)>)>,
    pub(crate) came: Vec<(String, String)>,
}

/// What a server does with a token that it has to revoke.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Revocation {
    Accepted,
    /// It knows no tokens of the kind access.
    RenewingOnly,
    Silence,
}

pub(crate) struct LoginServer {
    pub(crate) inner: Arc<Mutex<Inner>>,
    _serving: JoinSet<()>,
}

impl LoginServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let issuer = url.join("as").unwrap().to_string();
        let inner = Inner {
            named: Some(issuer.clone()),
            issuer,
            url,
            wrong: Vec::new(),
            lifetime: json!(3600),
            refuses_renewal: false,
            trouble: None,
            renews: true,
            revocation: Revocation::Accepted,
            padding: 0,
            tokens: 0,
            tools: vec!["find"],
            wants: None,
            sends_on: None,
            came: Vec::new(),
        };
        let inner = Arc::new(Mutex::new(inner));
        let router = Router::new()
            .fallback(handle)
            .with_state(Arc::clone(&inner));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            inner,
            _serving: serving,
        }
    }

    pub(crate) fn set(&self, change: impl FnOnce(&mut Inner)) {
        change(&mut self.inner.lock().unwrap());
    }

    pub(crate) fn url(&self) -> Url {
        self.inner.lock().unwrap().url.clone()
    }

    /// The bodies of the requests for this path.
    pub(crate) fn of(&self, path: &str) -> Vec<String> {
        let inner = self.inner.lock().unwrap();
        inner
            .came
            .iter()
            .filter(|(target, _)| target.split('?').next() == Some(path))
            .map(|(_, body)| body.clone())
            .collect()
    }
}

/// A member of a form or query.
pub(crate) fn member(form: &str, name: &str) -> Option<String> {
    parse(form.as_bytes())
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

/// Where the browser can come back to.
pub(crate) fn callback() -> CallbackAddress {
    CallbackAddress {
        shared: "http://127.0.0.1:9/callback".parse().unwrap(),
        takes_issuer_path: true,
    }
}

/// Goes where a browser would: the query that it comes back with.
pub(crate) async fn say_yes(authorization: &Url) -> String {
    let back = browse(authorization).await.unwrap();
    back.query().unwrap().to_owned()
}

/// Goes where a browser would: the address that it comes back to, or the status with which an
/// authorization server refuses to send it anywhere.
pub(crate) async fn browse(authorization: &Url) -> Result<Url, u16> {
    let mut at = authorization.clone();
    while at.path() == "/authorize" {
        let address = at.socket_addrs(|| None).unwrap()[0];
        let target = &at[url::Position::BeforePath..];
        let answer = crate::support::serving::ask(address, "GET", target, &[], "").await;
        if answer.status != 302 {
            return Err(answer.status);
        }
        at = Url::parse(answer.header("location")).unwrap();
    }
    Ok(at)
}

async fn handle(State(inner): State<Arc<Mutex<Inner>>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    if let Some(answer) = prescribed_answer(&inner, &head, &body) {
        return answer;
    }
    std::future::pending().await
}

/// The answer to a request; `None` if there is none.
fn prescribed_answer(inner: &Mutex<Inner>, head: &Parts, body: &str) -> Option<Response> {
    let mut inner = inner.lock().unwrap();
    let target = head.uri.to_string();
    inner.came.push((target, body.to_owned()));
    let shown = head
        .headers
        .get("authorization")
        .map(|value| value.to_str().unwrap().to_owned());
    let metadata_of = |path: &str| {
        path.strip_prefix("/.well-known/oauth-authorization-server")
            .map(str::to_owned)
    };
    Some(match (&head.method, head.uri.path()) {
        (_, "/.well-known/oauth-protected-resource") => {
            let url = inner.url.as_str().trim_end_matches('/');
            let document = json!({"resource": url, "authorization_servers": [inner.issuer], "scopes_supported": ["read"]});
            said(200, &inner.with_wrong(document))
        }
        (_, path)
            if metadata_of(path)
                .is_some_and(|path| !path.is_empty() && inner.issuer.ends_with(&path)) =>
        {
            let url = inner.url.as_str();
            let document = json!({
                "issuer": inner.issuer,
                "authorization_endpoint": format!("{url}authorize"),
                "token_endpoint": format!("{url}token"),
                "registration_endpoint": format!("{url}register"),
                "revocation_endpoint": format!("{url}revoke"),
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "authorization_response_iss_parameter_supported": true,
                "client_id_metadata_document_supported": false,
            });
            said(200, &inner.with_wrong(document))
        }
        (&Method::POST, "/register") => said(201, &json!({"client_id": "registered"})),
        (_, "/authorize") => inner.authorize(head.uri.query().unwrap()),
        (&Method::POST, "/token") => inner.token(body),
        (&Method::POST, "/revoke") => {
            let is_renewing = member(body, "token_type_hint").as_deref() == Some("refresh_token");
            match inner.revocation {
                Revocation::Accepted => said(200, &json!({})),
                Revocation::RenewingOnly if is_renewing => said(200, &json!({})),
                Revocation::RenewingOnly => said(400, &json!({"error": "unsupported_token_type"})),
                Revocation::Silence => return None,
            }
        }
        (_, path) if path.starts_with("/.well-known/") => said(404, &json!({})),
        _ => inner.list(shown.as_deref()),
    })
}

impl Inner {
    fn with_wrong(&self, mut document: Value) -> Value {
        for (key, value) in &self.wrong {
            if document.get(*key).is_some() {
                document[*key] = value.clone();
            }
        }
        document
    }

    /// Sends the browser back, or on to another server.
    fn authorize(&self, query: &str) -> Response {
        let redirect = member(query, "redirect_uri").unwrap();
        let to = match &self.sends_on {
            Some((other, replaced)) => {
                let mut to = other.clone();
                for (key, value) in parse(query.as_bytes()) {
                    let own = replaced.iter().find(|(name, _)| **name == *key);
                    let value = own.map_or(&*value, |(_, own)| own.as_str());
                    to.query_pairs_mut().append_pair(&key, value);
                }
                to
            }
            None if !self.has_registered(query, &redirect) => {
                return said(400, &json!({"error": "invalid_request"}));
            }
            None => {
                let mut back = Url::parse(&redirect).unwrap();
                back.query_pairs_mut()
                    .append_pair("code", &format!("{MARKER}-code"))
                    .append_pair("state", &member(query, "state").unwrap());
                if let Some(issuer) = &self.named {
                    back.query_pairs_mut().append_pair("iss", issuer);
                }
                back
            }
        };
        Response::builder()
            .status(302)
            .header("location", to.as_str())
            .body(Body::empty())
            .unwrap()
    }

    /// Whether its own client was registered with this address. Clients that were registered by
    /// hand have the one that they come with.
    fn has_registered(&self, query: &str, redirect: &str) -> bool {
        if member(query, "client_id").as_deref() != Some("registered") {
            return true;
        }
        let registrations = self.came.iter().filter(|(path, _)| path == "/register");
        let mut bodies = registrations.map(|(_, body)| body);
        bodies.any(|body| {
            let registration: Value = serde_json::from_str(body).unwrap();
            registration["redirect_uris"] == json!([redirect])
        })
    }

    fn current(&self) -> String {
        format!("{MARKER}-a{}{}", self.tokens, "x".repeat(self.padding))
    }

    fn token(&mut self, form: &str) -> Response {
        if let Some((status, body)) = &self.trouble {
            return said(*status, body);
        }
        if member(form, "grant_type").as_deref() == Some("refresh_token") {
            let refresh = format!("{MARKER}-r{}", self.tokens);
            if self.refuses_renewal || member(form, "refresh_token") != Some(refresh) {
                return said(400, &json!({"error": "invalid_grant"}));
            }
        }
        self.tokens += 1;
        let refresh = format!("{MARKER}-r{}", self.tokens);
        let access = self.current();
        let expires = &self.lifetime;
        let refresh = self.renews.then_some(refresh);
        said(
            200,
            &json!({"access_token": access, "token_type": "Bearer", "expires_in": expires, "refresh_token": refresh}),
        )
    }

    fn list(&self, shown: Option<&str>) -> Response {
        let challenge = match self.wants {
            _ if shown != Some(&format!("Bearer {}", self.current())) => {
                "Bearer scope=\"read\"".to_owned()
            }
            Some(scope) => format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\""),
            None => return said(200, &manifest("tickets", &self.tools)),
        };
        let status = if self.wants.is_some() && !challenge.contains("read") {
            403
        } else {
            401
        };
        Response::builder()
            .status(status)
            .header("www-authenticate", challenge)
            .body(Body::empty())
            .unwrap()
    }
}

fn said(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    let answer = Response::builder()
        .status(status)
        .header("content-type", "application/json");
    answer.body(Body::from(body.to_string())).unwrap()
}
