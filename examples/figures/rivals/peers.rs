//! Starting each of those who merge lists of tools, and asking it for its list.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child as Process, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use callsheet::runtime::Clock;
use serde_json::{Value, json};

use super::mcp_client::{self, McpClient, Wire};
use crate::child_process::Daemon;
use crate::{manifests, mcp};

/// Who it may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PeerKind {
    Callsheet,
    FastMcp,
    ContextForge,
    McpHub,
    McpProxy,
}

/// What callsheet asks the upstreams by; the others know one protocol.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Asked {
    ByManifest,
    ByMcp,
}

/// All of them; the first is ours.
pub(crate) const ALL: [PeerKind; 5] = [
    PeerKind::Callsheet,
    PeerKind::FastMcp,
    PeerKind::ContextForge,
    PeerKind::McpHub,
    PeerKind::McpProxy,
];
/// Nothing here takes this long unless it never comes.
const PATIENCE: Duration = Duration::from_secs(180);

impl PeerKind {
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Callsheet => "callsheet",
            Self::FastMcp => "fastmcp",
            Self::ContextForge => "contextforge",
            Self::McpHub => "mcp-hub",
            Self::McpProxy => "mcp-proxy",
        }
    }

    /// For people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Callsheet => "callsheet",
            Self::FastMcp => "FastMCP proxy 4.1.2",
            Self::ContextForge => "ContextForge 1.0.7",
            Self::McpHub => "mcp-hub 4.2.1",
            Self::McpProxy => "mcp-proxy 0.6.0",
        }
    }

    /// For people, with what it is asked for its list by.
    pub(crate) fn name_and_face(self) -> String {
        let face = if matches!(self, Self::FastMcp | Self::McpProxy) {
            "MCP"
        } else {
            "REST"
        };
        format!("{} ({face})", self.name())
    }

    /// Where it is an MCP server.
    fn mcp_path(self) -> &'static str {
        match self {
            Self::ContextForge => "/mcp/",
            Self::McpProxy => "/",
            _ => "/mcp",
        }
    }

    /// Its program, if the set-up script put it there; of ours nothing is missing.
    pub(crate) fn program(self) -> Option<PathBuf> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
            || Path::new(env!("CARGO_MANIFEST_DIR")).join("target"),
            PathBuf::from,
        );
        let place = target.join("rivals");
        let path = match self {
            Self::Callsheet => return Some(PathBuf::new()),
            Self::FastMcp => place.join("fastmcp/bin/python"),
            Self::ContextForge => place.join("contextforge/bin/mcpgateway"),
            Self::McpHub => place.join("mcp-hub/node_modules/mcp-hub/dist/cli.js"),
            Self::McpProxy => place.join("mcp-proxy/bin/mcp-proxy"),
        };
        path.exists().then_some(path)
    }
}

/// A running one.
pub(crate) struct Peer {
    kind: PeerKind,
    address: SocketAddr,
    client: reqwest::Client,
    running: PeerProcess,
    // Its files go when it has ended.
    folder: tempfile::TempDir,
}

enum PeerProcess {
    Ours(Daemon),
    Theirs(Process),
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        if let Self::Theirs(process) = self {
            // It may have ended already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Peer {
    /// Starts one before these upstreams.
    pub(crate) async fn start(
        kind: PeerKind,
        asked: Asked,
        upstreams: &[SocketAddr],
    ) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let client = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(120))
            .build()?;
        let (running, address) = if kind == PeerKind::Callsheet {
            let named = (0..).map(manifests::name).zip(upstreams.iter().copied());
            let daemon = match asked {
                Asked::ByManifest => Daemon::start(None, &named.collect::<Vec<_>>(), "1s", "")?,
                Asked::ByMcp => Daemon::with_tables(None, mcp::OFF, &mcp::tables(0, upstreams)?)?,
            };
            let address = daemon.address;
            (PeerProcess::Ours(daemon), address)
        } else {
            let port = free_port()?;
            let log = std::fs::File::create(folder.path().join("log"))?;
            let mut command = command(kind, folder.path(), upstreams, port)?;
            let process = command
                .stdout(log.try_clone()?)
                .stderr(log)
                .stdin(Stdio::null())
                .spawn();
            (
                PeerProcess::Theirs(process.context(kind.name())?),
                SocketAddr::from(([127, 0, 0, 1], port)),
            )
        };
        let peer = Self {
            kind,
            address,
            client,
            running,
            folder,
        };
        if kind == PeerKind::ContextForge {
            peer.register(upstreams).await?;
        }
        Ok(peer)
    }

    /// Tells a gateway that learns of upstreams one by one.
    async fn register(&self, upstreams: &[SocketAddr]) -> Result<()> {
        let clock = Clock::system();
        let end = clock.now() + PATIENCE;
        while self.get("/health").await.is_err() {
            ensure!(clock.now() < end, "it does not start: {}", self.log());
            clock.sleep(Duration::from_millis(100)).await;
        }
        for (at, upstream) in upstreams.iter().enumerate() {
            let body = json!({
                "name": name(at), "url": format!("http://{upstream}/mcp"), "transport": "STREAMABLEHTTP", "visibility": "public",
            });
            let asked = self
                .client
                .post(format!("http://{}/gateways", self.address));
            let answer = asked
                .header("content-type", "application/json")
                .body(body.to_string())
                .send()
                .await?;
            ensure!(
                answer.status().is_success(),
                "a gateway is answered {}: {}",
                answer.status(),
                self.log()
            );
        }
        Ok(())
    }

    /// How many tools it lists now.
    pub(crate) async fn count(&self) -> Result<usize> {
        self.tools(&self.list().await?)
    }

    /// The bytes of its list.
    pub(crate) async fn list(&self) -> Result<Bytes> {
        match self.kind {
            PeerKind::Callsheet => self.get("/api/v1/tools").await,
            PeerKind::ContextForge => self.get("/tools?limit=0").await,
            PeerKind::McpHub => self.get("/api/servers").await,
            PeerKind::FastMcp | PeerKind::McpProxy => {
                self.mcp().await?.request("tools/list", &json!({})).await
            }
        }
    }

    /// A client of its MCP server.
    pub(crate) async fn mcp(&self) -> Result<McpClient> {
        let wire = if self.kind == PeerKind::McpHub {
            Wire::Stream
        } else {
            Wire::Posts
        };
        McpClient::open(&self.client, self.address, self.kind.mcp_path(), wire).await
    }

    /// How many tools there are in its list.
    pub(crate) fn tools(&self, list: &[u8]) -> Result<usize> {
        if matches!(self.kind, PeerKind::FastMcp | PeerKind::McpProxy) {
            let list = mcp_client::answer(list)?;
            return Ok(list["result"]["tools"]
                .as_array()
                .with_context(|| list.to_string())?
                .len());
        }
        let list: Value = serde_json::from_slice(list)?;
        Ok(match self.kind {
            PeerKind::ContextForge => list.as_array().context("no list")?.len(),
            PeerKind::McpHub => {
                let servers = list["servers"].as_array().context("no servers")?;
                servers
                    .iter()
                    .filter_map(|server| server["capabilities"]["tools"].as_array())
                    .map(Vec::len)
                    .sum()
            }
            _ => list["tools"].as_array().context("no tools")?.len(),
        })
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "what is compared with is a known program on this machine"
    )]
    async fn get(&self, path: &str) -> Result<Bytes> {
        let answer = self
            .client
            .get(format!("http://{}{path}", self.address))
            .send()
            .await?
            .error_for_status()?;
        Ok(answer.bytes().await?)
    }

    /// Waits until it lists at least so many tools; none that answers sooner than it can is asked
    /// all the time.
    pub(crate) async fn until(&self, tools: usize, patience: Duration) -> Result<bool> {
        let clock = Clock::system();
        let end = clock.now() + patience;
        while clock.now() < end {
            if self.count().await.is_ok_and(|count| count >= tools) {
                return Ok(true);
            }
            clock.sleep(Duration::from_millis(20)).await;
        }
        Ok(false)
    }

    /// Asks ours to look at a scenario now.
    pub(crate) async fn refresh(&self, at: usize) -> Result<()> {
        let path = format!("/api/v1/scenarios/{}/refresh", manifests::name(at));
        let asked = crate::raw_http::once(self.address, "POST", &path).await?;
        ensure!(asked.status == 200, "{}", asked.status);
        Ok(())
    }

    /// Resident memory in MB, that of its children included.
    pub(crate) fn memory(&self) -> Result<f64> {
        let first = match &self.running {
            PeerProcess::Ours(daemon) => return daemon.child.memory("VmRSS"),
            PeerProcess::Theirs(process) => process.id(),
        };
        let mut family = vec![first];
        let mut total = 0.0;
        while let Some(id) = family.pop() {
            let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            let kib: Option<f64> = status.lines().find_map(|line| {
                line.strip_prefix("VmRSS:")?
                    .split_whitespace()
                    .next()?
                    .parse()
                    .ok()
            });
            total += kib.unwrap_or(0.0) * 1024.0 / 1e6;
            let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"))
                .unwrap_or_default();
            family.extend(
                children
                    .split_whitespace()
                    .filter_map(|id| id.parse::<u32>().ok()),
            );
        }
        Ok(total)
    }

    /// The end of what it wrote.
    pub(crate) fn log(&self) -> String {
        let text = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }
}

/// A port below those that the system gives to connections: nobody gets it while a rival takes its
/// time to start.
fn free_port() -> Result<u16> {
    let first = 29_000 + u16::try_from(std::process::id() % 2_000)?;
    let free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (first..first + 1_000).find(free).context("no port is free")
}

/// A name that all of them take as it is.
fn name(at: usize) -> String {
    format!("up{at:02}")
}

/// How one of theirs is started.
fn command(kind: PeerKind, folder: &Path, upstreams: &[SocketAddr], port: u16) -> Result<Command> {
    let program = kind.program().context("it is not installed")?;
    let servers = upstreams.iter().enumerate().map(|(at, upstream)| {
        let server = match kind {
            PeerKind::FastMcp => {
                json!({"url": format!("http://{upstream}/mcp"), "transport": "http"})
            }
            _ => json!({"url": format!("http://{upstream}/mcp")}),
        };
        (name(at), server)
    });
    let config = folder.join("servers.json");
    std::fs::write(
        &config,
        json!({"mcpServers": servers.collect::<serde_json::Map<_, _>>()}).to_string(),
    )?;
    let port = port.to_string();
    let mut command = match kind {
        PeerKind::McpHub => {
            let mut command = Command::new("node");
            command
                .arg(program)
                .args(["--port", &port, "--config"])
                .arg(config);
            command
        }
        PeerKind::McpProxy => {
            let config = folder.join("proxy.toml");
            std::fs::write(&config, proxy_config(upstreams, &port))?;
            let mut command = Command::new(program);
            command.arg("--config").arg(config);
            command
        }
        PeerKind::ContextForge => {
            let mut command = Command::new(program);
            command.args([
                "mcpgateway.main:app",
                "--host",
                "127.0.0.1",
                "--port",
                &port,
            ]);
            command.envs(contextforge(folder));
            command
        }
        _ => {
            let mut command = Command::new(program);
            command
                .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/rivals/fastmcp_proxy.py"));
            command
                .arg(config)
                .arg(&port)
                .env("FASTMCP_LOG_LEVEL", "WARNING");
            command
        }
    };
    // Neither their caches nor their settings are those of whoever measures.
    command
        .current_dir(folder)
        .env("HOME", folder)
        .env("XDG_STATE_HOME", folder)
        .env("XDG_DATA_HOME", folder);
    Ok(command)
}

/// The least that mcp-proxy starts with.
fn proxy_config(upstreams: &[SocketAddr], port: &str) -> String {
    let mut text =
        format!("[proxy]\nname = \"bench\"\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n");
    for (at, upstream) in upstreams.iter().enumerate() {
        let name = name(at);
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "[[backends]]\nname = \"{name}\"\ntransport = \"http\"\nurl = \"http://{upstream}/mcp\""
        );
    }
    text
}

/// The least that it starts with: a throw-away instance on loopback that asks nobody who he is.
fn contextforge(folder: &Path) -> Vec<(&'static str, String)> {
    let mut all = vec![(
        "DATABASE_URL",
        format!("sqlite:///{}", folder.join("gateway.db").display()),
    )];
    let fixed = [
        ("AUTH_REQUIRED", "false"),
        ("MCP_REQUIRE_AUTH", "false"),
        ("ALLOW_UNAUTHENTICATED_ADMIN", "true"),
        (
            "JWT_SECRET_KEY",
            "only-for-measuring-on-loopback-0123456789",
        ),
        (
            "AUTH_ENCRYPTION_SECRET",
            "only-for-measuring-on-loopback-9876543210",
        ),
        ("PLATFORM_ADMIN_EMAIL", "bench@example.com"),
        ("PLATFORM_ADMIN_PASSWORD", "Only-for-measuring-7"),
        ("MCPGATEWAY_ADMIN_API_ENABLED", "true"),
        ("CACHE_TYPE", "memory"),
        ("LOG_LEVEL", "WARNING"),
        ("PLUGINS_ENABLED", "false"),
        // It is asked far more often here than it lets one asker by default, and a refusal is not a
        // list.
        ("RATE_LIMITING_ENABLED", "false"),
        ("TOOL_RATE_LIMIT", "1000000"),
        ("SSRF_ALLOW_LOCALHOST", "true"),
        ("SSRF_ALLOW_PRIVATE_NETWORKS", "true"),
    ];
    all.extend(fixed.map(|(key, value)| (key, value.to_owned())));
    all
}
