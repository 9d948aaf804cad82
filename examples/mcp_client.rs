//! An MCP client over callsheet's own client code: it lists the tools of a server and calls each of
//! them once.
//!
//! `cargo run --example mcp_client http://127.0.0.1:9000/mcp` prints what each call gave. Arguments
//! are made up from the schema, and questions are answered with their defaults. The public
//! conformance suite runs this program as the client; it may say in `MCP_CONFORMANCE_CONTEXT` which
//! calls it wants: `{"toolCalls": [{"name", "arguments"}]}`.

#![allow(clippy::print_stdout, reason = "a program that prints what it found")]

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use callsheet::model::{JsonText, Target};
use callsheet::protocols::mcp::Mcp;
use callsheet::protocols::{
    Call, CallIo, CallLog, CallProgress, CallerOffers, Cancelled, InputMethod, InputRefused, InputReply, InputWanted,
    ListRequest, Listing, Protocol, Session,
};
use callsheet::runtime::{Clock, Tasks};
use callsheet::transports::Transports;
use callsheet::transports::http::{Client, ClientLimits};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The longest time of a call.
const LONGEST: Duration = Duration::from_secs(25);
/// How long the stream of changes is waited for.
const FOLLOWING: Duration = Duration::from_secs(2);
/// The most bytes of an answer.
const MAX_BODY: usize = 16 * 1024 * 1024;

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
}

/// A caller whose user accepts every question as it is offered.
struct Agreeable;

impl CallIo for Agreeable {
    fn offers(&self) -> CallerOffers {
        CallerOffers { elicitation_form: true, ..CallerOffers::default() }
    }

    fn progress(&mut self, progress: CallProgress) {
        println!("progress: {progress}");
    }

    fn log(&mut self, line: CallLog) {
        println!("log: {line:?}");
    }

    fn input<'a>(&'a mut self, wanted: &'a InputWanted) -> BoxFuture<'a, Result<InputReply, InputRefused>> {
        let reply = match wanted.method {
            InputMethod::Elicitation => {
                let schema = wanted.schema().and_then(|schema| serde_json::from_str(schema.get()).ok());
                let content = arguments(&schema.unwrap_or_default());
                JsonText::parse(&content.to_string())
                    .map(|content| InputReply::accepted(&content))
                    .map_err(|_| InputRefused)
            }
            InputMethod::Sampling | InputMethod::Roots => Err(InputRefused),
        };
        Box::pin(std::future::ready(reply))
    }

    fn cancelled(&self) -> BoxFuture<'static, Cancelled> {
        Box::pin(std::future::pending())
    }
}

/// Arguments for a schema: the default of each property, or else any value of its type.
fn arguments(schema: &Value) -> Value {
    let properties = schema["properties"].as_object();
    let made = properties.into_iter().flatten().filter_map(|(name, property)| Some((name.clone(), value(property)?)));
    Value::Object(made.collect::<Map<_, _>>())
}

fn value(schema: &Value) -> Option<Value> {
    if let Some(default) = schema.get("default") {
        return Some(default.clone());
    }
    match schema["type"].as_str()? {
        "string" => Some(schema["enum"].get(0).cloned().unwrap_or_else(|| json!("text"))),
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
        timeout: None,
        longest: LONGEST,
        max_body: MAX_BODY,
        resumed: None,
    };
    let outcome = session.call(&call, &mut Agreeable).await.with_context(|| format!("the call of {name}"))?;
    let said = outcome.result.map_or_else(|| outcome.error.unwrap_or_default(), |result| result.get().to_owned());
    println!("{name}: {}: {said}", if outcome.success { "succeeded" } else { "failed" });
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let Some(url) = std::env::args().nth(1) else { bail!("no address was given") };
    let wanted = std::env::var("MCP_CONFORMANCE_CONTEXT").ok();
    let wanted: Wanted = wanted.map(|text| serde_json::from_str(&text)).transpose()?.unwrap_or_default();
    let limits = ClientLimits { connect: LONGEST, whole: LONGEST, max_body: MAX_BODY, max_redirects: 4 };
    let client = Client::new(limits, 4, LONGEST, Clock::system(), Tasks::new());
    let transports = Transports::new(client);
    let target = Target::at(url.parse()?);
    let session = Mcp::default().connect(&target, &transports).await?;
    let Listing::Manifest { manifest, findings, .. } = session.list(&ListRequest::whole()).await? else {
        bail!("the server says that a list is unchanged which was never requested before")
    };
    // As the daemon does, it follows the server's own stream, on which a server may also request input.
    let tasks = Tasks::new();
    if let Some(mut hints) = session.hints() {
        let following = tokio::time::timeout(FOLLOWING, hints.next()).await;
        println!("following: {following:?}");
        tasks.spawn(async move { while hints.next().await.is_some() {} });
    }
    for finding in &findings {
        println!("finding: {finding:?}");
    }
    if !wanted.tool_calls.is_empty() {
        for WantedCall { name, arguments } in &wanted.tool_calls {
            call(&*session, name, arguments).await?;
        }
        return Ok(());
    }
    let schemas = manifest.tools.iter().map(|tool| serde_json::from_str(tool.parameters.get()));
    let schemas = schemas.collect::<Result<Vec<Value>, _>>()?;
    for (tool, schema) in manifest.tools.iter().zip(&schemas) {
        let mut arguments = arguments(schema);
        // A tool that wants a schema gets one as the server wrote it, so that it can see whether
        // that came through whole.
        if let Some(wanted) = arguments.get_mut("schema").filter(|wanted| wanted.is_object()) {
            wanted.clone_from(schemas.iter().max_by_key(|schema| schema.to_string().len()).unwrap_or(schema));
        }
        call(&*session, &tool.name, &arguments).await?;
    }
    Ok(())
}
