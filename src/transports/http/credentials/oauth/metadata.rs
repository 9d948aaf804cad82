//! What servers say of themselves: the scenario's (RFC 9728) and its authorization server's
//! (RFC 8414). A bounded part is read, and each member that is wrong is named.

use http::StatusCode;
use serde_json::{Map, Value};
use url::Url;

use super::guard::AddressGuard;
use crate::model::redacted_url;

/// Bytes of a document that are read.
const MAX_DOCUMENT: usize = 256 * 1024;
/// Authorization servers and scopes of a document that are read.
const MAX_LIST: usize = 200;
/// Bytes of a text in a document that is read.
const MAX_TEXT: usize = 2 * 1024;

/// What the scenario says of itself.
#[derive(Debug)]
pub(super) struct ResourceMetadata {
    /// What tokens are requested for, as it is written there.
    pub(super) resource: String,
    /// Its authorization server, as it is written there.
    pub(super) issuer: String,
    pub(super) scopes: Vec<String>,
}

/// What the authorization server says of itself.
#[derive(Debug)]
pub(super) struct ServerMetadata {
    pub(super) issuer: String,
    pub(super) authorization: Url,
    pub(super) token: Url,
    pub(super) registration: Option<Url>,
    /// Where tokens are revoked (RFC 7009), as it is written there. It is judged when it is needed:
    /// a login goes on without it.
    pub(super) revocation: Option<String>,
    /// `None` where it does not say how clients prove themselves.
    pub(super) auth_methods: Option<Vec<String>>,
    pub(super) scopes: Vec<String>,
    /// Whether an address may be the id of a client.
    pub(super) takes_documents: bool,
    /// Whether its redirects name it (RFC 9207).
    pub(super) sends_issuer: bool,
}

/// Finds what the scenario says of itself: at the address of its challenge, or else at the
/// well-known ones. A scenario without such a document is its own authorization server, as in the
/// revision 2025-03-26 of MCP.
pub(super) async fn of_resource(
    guard: &AddressGuard<'_>,
    named: Option<&str>,
) -> Result<ResourceMetadata, String> {
    let scenario = canonical(guard.scenario);
    let mut places = Vec::new();
    if let Some(named) = named {
        let read = scenario
            .join(named)
            .map_err(|_| format!("{} names no address as its metadata", scenario.as_str()));
        places.push(read?);
    }
    let path = scenario.path().trim_end_matches('/').to_owned();
    places.extend((!path.is_empty()).then(|| {
        at(
            &scenario,
            &format!("/.well-known/oauth-protected-resource{path}"),
        )
    }));
    places.push(at(&scenario, "/.well-known/oauth-protected-resource"));
    for place in places {
        let Some(document) = fetch(guard, &place).await? else {
            continue;
        };
        let document = Document {
            place: redacted_url(&place),
            members: document,
        };
        return document.resource(&scenario);
    }
    let issuer = scenario.origin().ascii_serialization();
    Ok(ResourceMetadata {
        resource: resource_of(&scenario),
        issuer,
        scopes: Vec::new(),
    })
}

/// Finds what an authorization server says of itself, in the order of MCP.
pub(super) async fn of_server(
    guard: &AddressGuard<'_>,
    issuer: &str,
) -> Result<ServerMetadata, String> {
    let unusable = || {
        format!(
            "the authorization server {:?} is not an address that can be used",
            shown(issuer)
        )
    };
    let url = Url::parse(issuer).map_err(|_| unusable())?;
    if url.query().is_some() || url.fragment().is_some() || !url.has_host() {
        return Err(unusable());
    }
    let path = url.path().trim_end_matches('/');
    let mut places = vec![
        at(
            &url,
            &format!("/.well-known/oauth-authorization-server{path}"),
        ),
        at(&url, &format!("/.well-known/openid-configuration{path}")),
    ];
    places.extend(
        (!path.is_empty()).then(|| at(&url, &format!("{path}/.well-known/openid-configuration"))),
    );
    for place in places {
        let Some(document) = fetch(guard, &place).await? else {
            continue;
        };
        let document = Document {
            place: redacted_url(&place),
            members: document,
        };
        let metadata = document.server(issuer)?;
        guard.check_scheme(&metadata.authorization)?;
        return Ok(metadata);
    }
    Err(format!(
        "the authorization server {} publishes no metadata",
        redacted_url(&url)
    ))
}

/// The address of a scenario as tokens are requested for it (RFC 8707 section 2).
pub(super) fn resource_of(scenario: &Url) -> String {
    canonical(scenario)
        .as_str()
        .trim_end_matches('/')
        .to_owned()
}

fn canonical(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_fragment(None);
    // Neither can fail for http and https.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}

fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url.set_path(path);
    url
}

/// Reads the document at an address. `None` where the server has none there.
async fn fetch(
    guard: &AddressGuard<'_>,
    place: &Url,
) -> Result<Option<Map<String, Value>>, String> {
    let upstream = guard
        .upstream(place)
        .await?
        .with_max_body(Some(MAX_DOCUMENT));
    let answer = upstream
        .get_any_status("", None)
        .await
        .map_err(|error| error.to_string())?;
    let status = answer.head.status;
    let shown = redacted_url(place);
    if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS {
        return Ok(None);
    }
    if !status.is_success() {
        return Err(format!("{shown} answered {status}"));
    }
    let document = serde_json::from_slice(&answer.body);
    document
        .map(Some)
        .map_err(|_| format!("{shown} has no JSON object"))
}

/// A document and where it was.
struct Document {
    place: String,
    members: Map<String, Value>,
}

impl Document {
    fn resource(&self, scenario: &Url) -> Result<ResourceMetadata, String> {
        let resource = self
            .text("resource")?
            .ok_or_else(|| self.wrong("resource", "is missing"))?;
        let named =
            Url::parse(&resource).map_err(|_| self.wrong("resource", "is not an address"))?;
        let is_above = |above: &str| {
            let rest = scenario.path().strip_prefix(above.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if named.origin() != scenario.origin() || !is_above(named.path()) {
            let is = format!(
                "is {}, which is not {}",
                redacted_url(&named),
                redacted_url(scenario)
            );
            return Err(self.wrong("resource", &is));
        }
        let servers = self.texts("authorization_servers")?.unwrap_or_default();
        let issuer = servers.into_iter().next();
        let issuer =
            issuer.ok_or_else(|| self.wrong("authorization_servers", "names no server"))?;
        Ok(ResourceMetadata {
            resource,
            issuer,
            scopes: self.texts("scopes_supported")?.unwrap_or_default(),
        })
    }

    fn server(&self, wanted: &str) -> Result<ServerMetadata, String> {
        let issuer = self
            .text("issuer")?
            .ok_or_else(|| self.wrong("issuer", "is missing"))?;
        if issuer != wanted {
            let is = format!("is {:?}, which is not {:?}", shown(&issuer), shown(wanted));
            return Err(self.wrong("issuer", &is));
        }
        let required = |key| {
            self.address(key)?
                .ok_or_else(|| self.wrong(key, "is missing"))
        };
        let proofs = self
            .texts("code_challenge_methods_supported")?
            .unwrap_or_default();
        if !proofs.iter().any(|method| method == "S256") {
            return Err(self.wrong("code_challenge_methods_supported", "does not name S256"));
        }
        if self
            .texts("response_types_supported")?
            .is_some_and(|kinds| !kinds.iter().any(|kind| kind == "code"))
        {
            return Err(self.wrong("response_types_supported", "does not name code"));
        }
        let authorization = required("authorization_endpoint")?;
        if let Some(name) = authorization
            .query_pairs()
            .map(|pair| pair.0)
            .find(|name| is_of_request(name))
        {
            let is = format!(
                "has the parameter `{}`, which is callsheet's own",
                shown(&name)
            );
            return Err(self.wrong("authorization_endpoint", &is));
        }
        Ok(ServerMetadata {
            issuer,
            authorization,
            token: required("token_endpoint")?,
            registration: self.address("registration_endpoint")?,
            revocation: self.text("revocation_endpoint")?,
            auth_methods: self.texts("token_endpoint_auth_methods_supported")?,
            scopes: self.texts("scopes_supported")?.unwrap_or_default(),
            takes_documents: self.flag("client_id_metadata_document_supported")?,
            sends_issuer: self.flag("authorization_response_iss_parameter_supported")?,
        })
    }

    fn wrong(&self, key: &str, is: &str) -> String {
        format!("{}: its `{key}` {is}", self.place)
    }

    /// A member; `null` counts as none.
    fn member(&self, key: &str) -> Option<&Value> {
        self.members.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        let Some(value) = self.member(key) else {
            return Ok(None);
        };
        match value.as_str() {
            Some(text) if text.len() > MAX_TEXT => Err(self.wrong(key, "is too long")),
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(self.wrong(key, "is not a text")),
        }
    }

    fn address(&self, key: &str) -> Result<Option<Url>, String> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        let url = Url::parse(&text).ok().filter(Url::has_host);
        url.map(Some)
            .ok_or_else(|| self.wrong(key, "is not an address"))
    }

    fn texts(&self, key: &str) -> Result<Option<Vec<String>>, String> {
        let Some(value) = self.member(key) else {
            return Ok(None);
        };
        let all = value
            .as_array()
            .ok_or_else(|| self.wrong(key, "is not a list"))?;
        let texts = all
            .iter()
            .take(MAX_LIST)
            .map(|value| value.as_str().filter(|text| text.len() <= MAX_TEXT));
        let texts: Option<Vec<String>> = texts.map(|text| text.map(str::to_owned)).collect();
        texts
            .map(Some)
            .ok_or_else(|| self.wrong(key, "is not a list of texts"))
    }

    fn flag(&self, key: &str) -> Result<bool, String> {
        let Some(value) = self.member(key) else {
            return Ok(false);
        };
        value
            .as_bool()
            .ok_or_else(|| self.wrong(key, "is neither true nor false"))
    }
}

/// Whether a parameter is one of the authorization request, which must not be there twice (RFC 6749
/// section 3.1), or stands for the whole request (RFC 9101). An endpoint that brings one could send
/// a person to another server with a request of its own making.
fn is_of_request(name: &str) -> bool {
    const OWN: [&str; 11] = [
        "response_type",
        "response_mode",
        "client_id",
        "redirect_uri",
        "scope",
        "state",
        "code_challenge",
        "code_challenge_method",
        "resource",
        "request",
        "request_uri",
    ];
    OWN.contains(&name)
}

/// A text of a server, for people: a bounded part in visible ASCII.
pub(super) fn shown(text: &str) -> String {
    text.chars()
        .filter(|letter| *letter == ' ' || letter.is_ascii_graphic())
        .take(200)
        .collect()
}
