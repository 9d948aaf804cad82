//! What the search mode of the MCP server saves: the tokens of a whole list against those of the
//! few tools that take its place and two searches, for three sets of real tools.
//!
//! The sets are in the corpus: the tools of 70 MCP servers, those of five scenarios, and those of
//! everyday services; without it there is nothing to tell. Tokens are estimated as everywhere for
//! lists of MCP clients: three bytes each.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::bare_server::BareServer;
use crate::child_process::Daemon;
use crate::mcp::{self, bare};
use crate::plan::{self, Plan};
use crate::raw_http::{self, Connection, RawAnswer};
use crate::report::Row;

/// Searches of each set.
const SEARCHES: usize = 50;
/// Searches in one conversation that still have to be cheaper than the list.
const TWICE: usize = 2;
/// Bytes of a token.
const TOKEN: usize = 3;

/// Tools of real programs.
struct RealSet {
    id: &'static str,
    name: &'static str,
    /// What each program says, as the Tool Discovery Protocol has it.
    manifests: Vec<Value>,
    /// What is searched for.
    queries: Vec<String>,
}

pub(crate) fn run(_: &Plan) -> Result<Vec<Row>> {
    let corpus = plan::corpus();
    if !corpus.is_dir() {
        println!(
            "search-mode: {} is not there, so there are no real tools to tell of",
            corpus.display()
        );
        return Ok(Vec::new());
    }
    let runtime = Runtime::new()?;
    let sets = [servers(&corpus)?, scenarios(&corpus)?, services(&corpus)?];
    sets.into_iter()
        .map(|set| runtime.block_on(measure(&set)))
        .collect()
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// A manifest with these tools.
fn manifest(name: &str, tools: &[Value]) -> Value {
    json!({"protocol_version": "1.0", "scenario": {"name": name}, "tools": tools})
}

/// The tools of 70 MCP servers; a server's is what it is searched for by.
fn servers(corpus: &Path) -> Result<RealSet> {
    let servers: Vec<Value> =
        serde_json::from_str(&read(&corpus.join("schemas/livemcpbench.json"))?)?;
    let mut manifests = Vec::new();
    for (at, server) in servers.iter().enumerate() {
        let parts = server["tools"]
            .as_object()
            .context("a server without tools")?
            .values();
        let tools = parts.filter_map(|part| part["tools"].as_array()).flatten().map(
            |tool| json!({"name": tool["name"], "description": tool["description"], "parameters": tool["inputSchema"]}),
        );
        manifests.push(manifest(
            &format!("server-{at:02}"),
            &tools.collect::<Vec<_>>(),
        ));
    }
    let queries = sentences(&manifests);
    Ok(RealSet {
        id: "servers",
        name: "70 MCP servers",
        manifests,
        queries,
    })
}

fn scenarios(corpus: &Path) -> Result<RealSet> {
    let files = std::fs::read_dir(corpus.join("vrooli/normalized"))?;
    let mut paths = files
        .map(|file| Ok(file?.path()))
        .collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    paths.sort();
    let manifests = paths
        .iter()
        .map(|path| Ok(serde_json::from_str(&read(path)?)?))
        .collect::<Result<Vec<Value>>>()?;
    let queries = sentences(&manifests);
    Ok(RealSet {
        id: "scenarios",
        name: "five scenarios",
        manifests,
        queries,
    })
}

/// Tools of everyday services, which have short descriptions and no parameters, and what people
/// asked them for.
fn services(corpus: &Path) -> Result<RealSet> {
    let lines = |name: &str| -> Result<Vec<Value>> {
        let text = read(&corpus.join("search").join(name))?;
        text.lines()
            .map(|line| Ok(serde_json::from_str(line)?))
            .collect()
    };
    let tools = lines("metatool-tools.jsonl")?.into_iter().map(|tool| {
        let parameters = json!({"type": "object", "properties": {}});
        json!({"name": tool["name"], "description": tool["description"], "parameters": parameters})
    });
    let manifests = vec![manifest("services", &tools.collect::<Vec<_>>())];
    let lines_of_queries = lines("metatool-queries.jsonl")?;
    let queries = lines_of_queries
        .iter()
        .filter_map(|line| line["query"].as_str().map(str::to_owned))
        .collect();
    Ok(RealSet {
        id: "services",
        name: "everyday services",
        manifests,
        queries,
    })
}

/// The first sentence of each tool's description.
fn sentences(manifests: &[Value]) -> Vec<String> {
    let tools = manifests
        .iter()
        .filter_map(|manifest| manifest["tools"].as_array())
        .flatten();
    let descriptions =
        tools.filter_map(|tool| tool["description"].as_str()?.split(['.', '\n']).next());
    descriptions
        .map(str::trim)
        .filter(|descriptions| !descriptions.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Lets a daemon list a set, and compares.
async fn measure(set: &RealSet) -> Result<Row> {
    let mut running = Vec::new();
    for manifest in &set.manifests {
        let mut manifest = manifest.clone();
        for tool in manifest["tools"].as_array_mut().into_iter().flatten() {
            // All are listed, whatever their programs say.
            tool["metadata"]["enabled_by_default"] = true.into();
        }
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        running.push(BareServer::start(
            1,
            &RawAnswer {
                status: 200,
                headers,
                body: manifest.to_string().into_bytes(),
            },
        )?);
    }
    let named = running
        .iter()
        .enumerate()
        .map(|(at, server)| (format!("set-{at:02}"), server.address));
    let daemon = Daemon::configured(None, &named.collect::<Vec<_>>(), mcp::OFF)?;
    crate::daemon_list::ready(&daemon).await?;
    let mut connection = Connection::open(daemon.address).await?;
    let whole = ask(&mut connection, "/mcp", "tools/list", None, "").await?;
    let count = whole["tools"].as_array().map_or(0, Vec::len);
    let offered: usize = set
        .manifests
        .iter()
        .filter_map(|manifest| manifest["tools"].as_array())
        .map(Vec::len)
        .sum();
    ensure!(
        count >= offered,
        "{count} tools are listed, {offered} offered"
    );
    let fixed = ask(&mut connection, "/mcp?mode=search", "tools/list", None, "").await?;
    let mut searches = Vec::new();
    for query in set
        .queries
        .iter()
        .step_by(set.queries.len().div_ceil(SEARCHES).max(1))
    {
        let members = format!(
            r#""name":"find_tools","arguments":{},"#,
            json!({"query": query})
        );
        let found = ask(
            &mut connection,
            "/mcp?mode=search",
            "tools/call",
            Some("find_tools"),
            &members,
        )
        .await?;
        searches.push(tokens(&found["structuredContent"]));
    }
    ensure!(!searches.is_empty(), "nothing is searched for");
    let list = tokens(&whole["tools"]);
    let fixed = tokens(&fixed["tools"]);
    let search = searches.iter().sum::<usize>() / searches.len();
    let note = format!(
        "{fixed} for the tools that search, {search} for a search of {}",
        searches.len()
    );
    println!("{}: {count} tools, {list} tokens; {note}", set.name);
    let name = format!(
        "{count} tools of {} in search mode: tokens of its list and of {TWICE} searches",
        set.name
    );
    #[expect(clippy::cast_precision_loss, reason = "counts of tokens")]
    let ours = (fixed + TWICE * search) as f64;
    #[expect(clippy::cast_precision_loss, reason = "counts of tokens")]
    let theirs = list as f64;
    let row = Row::new(format!("search-mode.{}", set.id), name, ours, "tokens")
        .against("the whole list", theirs);
    Ok(row.at_most(1.0).note(note))
}

/// The result of a request.
async fn ask(
    connection: &mut Connection,
    path: &str,
    method: &str,
    name: Option<&str>,
    members: &str,
) -> Result<Value> {
    let request = raw_http::post(
        path,
        &bare::headers(method, name),
        &bare::message(1, method, members),
    );
    let answer = connection.get(request.as_bytes()).await?;
    let mut message: Value = serde_json::from_slice(&answer.body)?;
    ensure!(
        answer.status == 200 && message["result"].is_object(),
        "{}: {message}",
        answer.status
    );
    Ok(message["result"].take())
}

fn tokens(value: &Value) -> usize {
    value.to_string().len().div_ceil(TOKEN)
}
