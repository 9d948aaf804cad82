//! `callsheet login NAME` and `callsheet logout NAME`: a person's login for a scenario. The browser
//! comes back to a port of loopback that this command listens on while it runs.

use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use url::Url;

use super::client::{DaemonClient, QueryPairs};
use super::{CommandError, RemoteArgs, output};

/// Where the browser comes back to.
const CALLBACK: &str = "/callback";
/// Bytes of a request's head that are read; a code is far shorter.
const MAX_HEAD: usize = 16 * 1024;
/// How long one connection of the browser may take, and how many may be open.
const ONE: Duration = Duration::from_secs(10);
const MAX_OPEN: usize = 32;

/// Arguments of `login`.
#[derive(Debug, Args)]
pub(super) struct LoginArgs {
    /// Which scenario.
    name: String,
    /// The port of 127.0.0.1 that the browser comes back to, where the authorization server knows
    /// only that one; any free port by default.
    #[arg(
        long,
        default_value_t = 0,
        hide_default_value = true,
        value_name = "PORT"
    )]
    port: u16,
    /// Only print the address, and open no browser.
    #[arg(long)]
    no_browser: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// Arguments of `logout`.
#[derive(Debug, Args)]
pub(super) struct LogoutArgs {
    /// Which scenario.
    name: String,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl LoginArgs {
    /// Has a person log in, and prints what came of it.
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::for_operator(&self.remote)?;
        let listener = listen(self.port).await?;
        let port = listener
            .local_addr()
            .map_err(|error| CommandError::Daemon {
                error: error.into(),
                hint: None,
            })?
            .port();
        let body = json!({
            "redirect_uri": format!("http://127.0.0.1:{port}{CALLBACK}"),
            "takes_issuer_path": true,
        });
        let path = ["scenarios", self.name.as_str(), "login"];
        let begun = daemon
            .send(
                Method::POST,
                &path,
                QueryPairs::new(),
                Some(&body),
                "authorization_url",
            )
            .await;
        let begun = match begun {
            Ok(begun) => begun,
            Err(failure) => return Err(self.or_needless(&daemon, failure).await),
        };
        let address = begun.value["authorization_url"]
            .as_str()
            .and_then(|text| Url::parse(text).ok());
        let address = address
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| {
                let message = "the daemon names no address that a browser can open".to_owned();
                CommandError::Refused {
                    message,
                    hint: None,
                }
            })?;
        let state = address
            .query_pairs()
            .find(|(key, _)| key == "state")
            .map(|(_, state)| state.into_owned());
        // Standard output stays free for the answer.
        output::note(&format!(
            "open this address to log in for {}:\n  {address}",
            output::sanitize(&self.name)
        ));
        if !self.no_browser {
            open(&address);
        }
        let patience =
            Duration::from_millis(begun.value["expires_in_ms"].as_u64().unwrap_or(600_000));
        let came = tokio::time::timeout(patience, callback(&listener, state.as_deref())).await;
        let CameBack {
            path,
            query,
            browser,
        } = came.map_err(|_| CommandError::Refused {
            message: format!(
                "the login was not finished within {} minutes",
                patience.as_secs() / 60
            ),
            hint: Some(format!(
                "begin it anew with `callsheet login {}`",
                self.name
            )),
        })?;
        let body = json!({ "query": query, "path": path });
        let path = ["scenarios", self.name.as_str(), "login", "finish"];
        let finished = daemon
            .send(Method::POST, &path, QueryPairs::new(), Some(&body), "state")
            .await;
        answer(browser, finished.is_ok()).await;
        let finished = finished?;
        if self.remote.json {
            output::answer(&finished.body, &finished.value);
        } else {
            let text = |pointer| output::text(&finished.value, pointer);
            output::line(&format!(
                "{} is logged in at {}",
                text("/name"),
                text("/issuer")
            ));
            output::line(if finished.value["renews"] == true {
                "the daemon renews this by itself"
            } else {
                "this cannot be renewed: log in again when it has lapsed"
            });
        }
        Ok(())
    }
}

impl LoginArgs {
    /// Why a login did not begin: most often the scenario answers without one.
    async fn or_needless(&self, daemon: &DaemonClient, failure: CommandError) -> CommandError {
        let CommandError::Problem {
            message,
            hint: None,
            document,
        } = failure
        else {
            return failure;
        };
        let health = daemon
            .require_scenario(&self.name)
            .await
            .unwrap_or_default();
        let name = output::sanitize(&self.name);
        let hint = match output::text(&health, "/state").as_str() {
            "live" => format!("{name} answers without a login"),
            _ => format!("`callsheet scenarios {name}` shows what it answers"),
        };
        CommandError::Problem {
            message,
            hint: Some(hint),
            document,
        }
    }
}

impl LogoutArgs {
    /// Has the login forgotten, and prints what came of it.
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::for_operator(&self.remote)?;
        let path = ["scenarios", self.name.as_str(), "login"];
        let answer = daemon
            .send(
                Method::DELETE,
                &path,
                QueryPairs::new(),
                None,
                "was_logged_in",
            )
            .await?;
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
        } else {
            let was = answer.value["was_logged_in"] == true;
            let name = output::text(&answer.value, "/name");
            output::line(&format!(
                "{name} {}",
                if was {
                    "is logged out"
                } else {
                    "was not logged in"
                }
            ));
            if answer.value["revoked"] == true {
                output::line("its authorization server revoked the tokens");
            } else if answer.value["reason"].is_string() {
                let reason = output::text(&answer.value, "/reason");
                output::line(&format!(
                    "the tokens are deleted here, but not revoked: {reason}"
                ));
            }
        }
        Ok(())
    }
}

async fn listen(port: u16) -> Result<TcpListener, CommandError> {
    TcpListener::bind(("127.0.0.1", port))
        .await
        .map_err(|error| CommandError::Usage {
            message: format!(
                "the browser cannot come back to port {port} of this machine: {error}"
            ),
            hint: "name another port with `--port`, or leave it out to take any free one"
                .to_owned(),
        })
}

/// Opens an address in the browser of this user. That it cannot be opened is no failure: it was
/// printed.
fn open(address: &Url) {
    let program = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let mut command = Command::new(program);
    let quiet = command
        .arg(address.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _ = quiet.spawn();
}

/// The browser, as it came back.
struct CameBack {
    path: String,
    query: String,
    /// Waits for an answer.
    browser: TcpStream,
}

/// Waits for the browser. Whatever else connects is refused: another program, or a web page that
/// tries the ports of this machine, does not know the `state` of this login.
async fn callback(listener: &TcpListener, state: Option<&str>) -> CameBack {
    let mut open = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if open.len() < MAX_OPEN => {
                if let Ok((stream, _)) = accepted {
                    open.push(tokio::time::timeout(ONE, came_back(stream, state)));
                }
            }
            Some(answered) = open.next() => {
                if let Ok(Some(came)) = answered {
                    return came;
                }
            }
        }
    }
}

/// Reads a request of the browser for the callback of the login with this `state`.
async fn came_back(mut stream: TcpStream, state: Option<&str>) -> Option<CameBack> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let read = stream
            .read(&mut part)
            .await
            .ok()
            .filter(|read| *read > 0 && head.len() < MAX_HEAD)?;
        head.extend_from_slice(part.get(..read)?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.strip_prefix("GET ")?.split(' ').next()?;
    let mut parts = target.splitn(2, '?');
    let path = parts.next().unwrap_or_default();
    // The daemon judges whether the address is that of the login.
    let is_callback = path == CALLBACK || path.starts_with(&format!("{CALLBACK}/"));
    let query = parts.next().filter(|_| is_callback);
    let is_ours = |query: &&str| {
        let named = url::form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == "state");
        named.map(|(_, value)| value).as_deref() == state
    };
    let Some(query) = query.filter(is_ours) else {
        let _ = stream
            .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .await;
        return None;
    };
    Some(CameBack {
        path: path.to_owned(),
        query: query.to_owned(),
        browser: stream,
    })
}

/// Shows the person what came of it.
async fn answer(mut browser: TcpStream, is_done: bool) {
    let text = if is_done {
        "You are logged in."
    } else {
        "The login did not succeed; the terminal says why."
    };
    let page =
        format!("<!doctype html><title>callsheet</title><p>{text} You can close this page.</p>");
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nReferrer-Policy: no-referrer";
    let answer = format!(
        "{head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    let _ = browser.write_all(answer.as_bytes()).await;
    let _ = browser.shutdown().await;
}
