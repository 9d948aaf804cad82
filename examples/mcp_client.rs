//! An MCP client over callsheet's own client code: it lists the tools of a server and calls each of
//! them once.
//!
//! `cargo run --example mcp_client http://127.0.0.1:9000/mcp` prints what each call gave. Arguments
//! are made up from the schema, and questions are answered with their defaults. The public
//! conformance suite runs this program as the client; it may say in `MCP_CONFORMANCE_CONTEXT` which
//! calls it wants, `{"toolCalls": [{"name", "arguments"}]}`, and which client is registered:
//! `{"client_id", "client_secret"}`. A server that wants a login gets one: the authorization server
//! of the suite says yes by itself, so its address is followed without a browser.

#![allow(clippy::print_stdout, reason = "a program that prints what it found")]

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use callsheet::model::{
    Auth, CallerInfo, HttpTarget, JsonText, LoginCallback, OAuthClient, Secret, Target,
};
use callsheet::protocols::mcp::Mcp;
use callsheet::protocols::{
    Call, CallIo, CallLog, CallProgress, CallerOffers, InputMethod, InputWanted, ListRequest,
    Listing, Protocol, Session,
};
use callsheet::runtime::{Clock, Tasks};
use callsheet::transports::Transports;
use callsheet::transports::http::credentials::TokenSources;
use callsheet::transports::http::credentials::oauth::{
    CallbackAddress, LoginRedirect, LoginSettings, OAuthTokens,
};
use callsheet::transports::http::{self, ClientLimits};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::Url;

/// The longest time of a call.
const LONGEST: Duration = Duration::from_secs(25);
/// How long the stream of changes is waited for.
const FOLLOWING: Duration = Duration::from_secs(2);
/// The most bytes of an answer.
const MAX_BODY: usize = 16 * 1024 * 1024;
/// The name of the server, as the daemon would have it from its configuration.
const NAME: &str = "server";
/// Where the browser of a person would come back to.
const REDIRECT: &str = "http://127.0.0.1:3000/callback";
/// The document that describes this client; the suite knows it by its address alone.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";
/// How often it logs in.
const MAX_LOGINS: usize = 3;

/// A call that the suite wants.
#[derive(Deserialize)]
struct WantedCall {
    name: String,
    arguments: Value,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Wanted {
    tool_calls: Vec<WantedCall>,
    #[serde(rename = "client_id")]
    client_id: Option<String>,
    #[serde(rename = "client_secret")]
    client_secret: Option<String>,
}

/// A caller whose user accepts every question as it is offered.
struct Agreeable;

impl CallIo for Agreeable {
    fn offers(&self) -> CallerOffers {
        CallerOffers {
            elicitation_form: true,
            ..CallerOffers::default()
        }
    }

    fn progress(&self, progress: CallProgress) {
        println!("progress: {progress}");
    }

    fn log(&self, line: CallLog) {
        println!("log: {line:?}");
    }

    fn input<'a>(&'a self, wanted: &'a InputWanted) -> BoxFuture<'a, Option<JsonText>> {
        let given = match wanted.method {
            InputMethod::Elicitation => {
                let schema = wanted
                    .schema()
                    .and_then(|schema| serde_json::from_str(schema.get()).ok());
                let content = arguments(&schema.unwrap_or_default());
                JsonText::parse(&content.to_string())
                    .ok()
                    .map(|content| InputWanted::accepted(&content))
            }
            InputMethod::Sampling | InputMethod::Roots => None,
        };
        Box::pin(std::future::ready(given))
    }
}

/// Arguments for a schema: the default of each property, or else any value of its type.
fn arguments(schema: &Value) -> Value {
    let properties = schema["properties"].as_object();
    let made = properties
        .into_iter()
        .flatten()
        .filter_map(|(name, property)| Some((name.clone(), value(property)?)));
    Value::Object(made.collect::<Map<_, _>>())
}

fn value(schema: &Value) -> Option<Value> {
    if let Some(default) = schema.get("default") {
        return Some(default.clone());
    }
    match schema["type"].as_str()? {
        "string" => Some(
            schema["enum"]
                .get(0)
                .cloned()
                .unwrap_or_else(|| json!("text")),
        ),
        "integer" | "number" => Some(json!(7)),
        "boolean" => Some(json!(true)),
        "array" => Some(json!([])),
        "object" => Some(arguments(schema)),
        _ => None,
    }
}

async fn call(session: &dyn Session, name: &str, arguments: &Value) -> Result<()> {
    let call = Call {
        tool: Arc::from(name),
        arguments: JsonText::parse(&arguments.to_string())?,
        user_id: None,
        caller: CallerInfo::default(),
        timeout: None,
        longest: LONGEST,
        max_body: MAX_BODY,
        resumed: None,
    };
    let outcome = session
        .call(&call, &Agreeable)
        .await
        .with_context(|| format!("the call of {name}"))?;
    let text = outcome.result.map_or_else(
        || outcome.error.unwrap_or_default(),
        |result| result.get().to_owned(),
    );
    println!(
        "{name}: {}: {text}",
        if outcome.success {
            "succeeded"
        } else {
            "failed"
        }
    );
    Ok(())
}

/// Everything that is wanted of a server.
struct Client {
    target: Target,
    transports: Transports,
    tokens: Arc<OAuthTokens>,
    wanted: Wanted,
    tasks: Tasks,
}

impl Client {
    fn new(url: Url, wanted: Wanted) -> Result<Self> {
        let limits = ClientLimits {
            connect: LONGEST,
            whole: LONGEST,
            max_body: MAX_BODY,
            max_redirects: 4,
        };
        let http = http::Client::new(limits, 4, LONGEST, Clock::system(), Tasks::new());
        let tokens = Arc::new(OAuthTokens::new(&http));
        tokens.adjust(LoginSettings {
            client_metadata_url: Some(DOCUMENT.parse()?),
            hosts: Vec::new(),
        });
        http.set_token_sources(Arc::clone(&tokens) as Arc<dyn TokenSources>);
        let auth = wanted.client_id.clone().map(|client_id| {
            let client_secret = wanted
                .client_secret
                .clone()
                .map(|text| Secret::new(text).into());
            Auth::OAuth(Box::new(OAuthClient {
                token_url: None,
                client_id,
                client_secret,
                scopes: Vec::new(),
                resource: None,
                issuer: None,
                token_hosts: None,
                callback: LoginCallback::default(),
            }))
        });
        let target = HttpTarget {
            auth,
            login: Some(NAME.parse()?),
            ..HttpTarget::at(url)
        }
        .into();
        Ok(Self {
            target,
            transports: Transports::new(http),
            tokens,
            wanted,
            tasks: Tasks::new(),
        })
    }

    /// Lists the tools and calls them.
    async fn once(&self) -> Result<()> {
        let session = Mcp::default()
            .connect(&self.target, &self.transports)
            .await?;
        let Listing::Manifest {
            manifest, findings, ..
        } = session.list(&ListRequest::whole()).await?
        else {
            bail!("the server says that a list is unchanged which was never requested before")
        };
        // As the daemon does, it follows the server's own stream, on which a server may also request
        // input.
        if let Some(mut hints) = session.hints() {
            let following = tokio::time::timeout(FOLLOWING, hints.next()).await;
            println!("following: {following:?}");
            self.tasks
                .spawn(async move { while hints.next().await.is_some() {} });
        }
        for finding in &findings {
            println!("finding: {finding:?}");
        }
        if !self.wanted.tool_calls.is_empty() {
            for WantedCall { name, arguments } in &self.wanted.tool_calls {
                call(&*session, name, arguments).await?;
            }
            return Ok(());
        }
        let schemas = manifest
            .tools
            .iter()
            .map(|tool| serde_json::from_str(tool.parameters.get()));
        let schemas = schemas.collect::<Result<Vec<Value>, _>>()?;
        for (tool, schema) in manifest.tools.iter().zip(&schemas) {
            let mut arguments = arguments(schema);
            // A tool that wants a schema gets one as the server wrote it, so that it can see whether
            // that came through whole.
            if let Some(wanted) = arguments
                .get_mut("schema")
                .filter(|wanted| wanted.is_object())
            {
                wanted.clone_from(
                    schemas
                        .iter()
                        .max_by_key(|schema| schema.to_string().len())
                        .unwrap_or(schema),
                );
            }
            call(&*session, &tool.name, &arguments).await?;
        }
        Ok(())
    }

    /// Logs in as a person would, whose authorization server says yes.
    async fn login(&self) -> Result<()> {
        let callback = CallbackAddress {
            shared: REDIRECT.parse()?,
            takes_issuer_path: true,
        };
        let started = self.tokens.begin(&NAME.parse()?, &callback).await?;
        let back = redirected(&started.authorization_url).await?;
        let redirect = LoginRedirect::parse(back.query().unwrap_or_default());
        self.tokens.finish(&redirect.at(Some(back.path()))).await?;
        println!("logged in");
        Ok(())
    }
}

/// Where the authorization server of the suite, which speaks plain HTTP, sends the browser.
async fn redirected(url: &Url) -> Result<Url> {
    let host = url.host_str().context("no host")?;
    let port = url.port_or_known_default().context("no port")?;
    let mut stream = TcpStream::connect((host, port)).await?;
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let lines = answer.lines().filter_map(|line| line.split_once(": "));
    let location = lines
        .into_iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("location"));
    Ok(location
        .context("the authorization server does not redirect")?
        .1
        .trim()
        .parse()?)
}

#[tokio::main]
async fn main() -> Result<()> {
    let Some(url) = std::env::args().nth(1) else {
        bail!("no address was given")
    };
    let wanted = std::env::var("MCP_CONFORMANCE_CONTEXT").ok();
    let wanted: Wanted = wanted
        .map(|text| serde_json::from_str(&text))
        .transpose()?
        .unwrap_or_default();
    let client = Client::new(url.parse()?, wanted)?;
    for _ in 0..MAX_LOGINS {
        match client.once().await {
            Err(error) if wants_login(&error) => {
                println!("{error:#}");
                client.login().await?;
            }
            ended => return ended,
        }
    }
    client.once().await
}

/// Whether a login may help: the server refused what it was shown.
fn wants_login(error: &anyhow::Error) -> bool {
    let text = format!("{error:#}");
    ["401", "403", "callsheet login"]
        .iter()
        .any(|sign| text.contains(sign))
}
