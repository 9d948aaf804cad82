//! Scenarios that are told what to do and note what they did: what a checker compares the list
//! with.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use callsheet::runtime::{Clock, Stop, StopTrigger, Tasks};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::manifests;

/// Grace of the daemon that is watched.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// What is not the default in it, so that minutes hold many cycles; its grace is [`GRACE`].
pub(crate) const HASTE: &str = r#"
server.ready_timeout = "10s"
refresh.min_interval = "1s"
refresh.max_interval = "2s"
refresh.forced_gap = "200ms"
refresh.timeout = "2s"
refresh.backoff_base = "250ms"
refresh.backoff_max = "2s"
health.grace = "10s"
discovery.mdns.enabled = false
"#;

/// Tools of each.
pub(crate) const TOOLS: usize = 4;
/// Below the ports that the system gives to connections: one that is left for a while is not taken
/// by somebody else.
static PORTS: AtomicU16 = AtomicU16::new(0);

/// How it answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mode {
    Good,
    /// Good, after so long.
    Slow(Duration),
    /// Takes connections and says nothing.
    Hung,
    /// Answers 500.
    Failing,
    /// Says something that is no manifest.
    Broken,
    /// Closes the connection in the midst of a good answer.
    Cut,
    /// Sends a good answer byte by byte, one a second.
    Drip,
}

impl Mode {
    fn is_good(self) -> bool {
        matches!(self, Self::Good | Self::Slow(_))
    }
}

/// What a scenario did so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScenarioTruth {
    pub(crate) mode: Mode,
    /// Which manifest it offers now; it starts anew with another one.
    pub(crate) edition: u64,
    /// When it last gave a good answer, to the end.
    pub(crate) answered: Option<Instant>,
    /// The edition of that answer, and when it was answered first.
    pub(crate) served: Option<(u64, Instant)>,
    /// Its first good answer since it may last have been withdrawn.
    pub(crate) due: Option<Instant>,
    /// When it last began to give good answers.
    pub(crate) well: Instant,
    /// Since when it gives no good answers.
    pub(crate) broke: Option<Instant>,
    /// Since when its source does not name it.
    pub(crate) left: Option<Instant>,
}

/// A scenario on loopback.
pub(crate) struct FaultyScenario {
    pub(crate) at: usize,
    pub(crate) address: SocketAddr,
    stage: Arc<FaultyState>,
    running: Option<ServerTask>,
    /// Its process file, when it is found by one.
    file: Option<PathBuf>,
}

struct ServerTask {
    stop: StopTrigger,
    task: tokio::task::JoinHandle<()>,
}

struct FaultyState {
    at: usize,
    grace: Duration,
    clock: Clock,
    truth: Mutex<ScenarioTruth>,
}

impl FaultyScenario {
    /// Starts one; with a folder it is found by a process file there. `grace` is how long the
    /// daemon keeps it when it fails.
    pub(crate) async fn start(
        at: usize,
        grace: Duration,
        folder: Option<PathBuf>,
        tasks: &Tasks,
    ) -> Result<Self> {
        let clock = Clock::system();
        let truth = ScenarioTruth {
            mode: Mode::Good,
            edition: 0,
            answered: None,
            served: None,
            due: None,
            well: clock.now(),
            broke: None,
            left: None,
        };
        let stage = Arc::new(FaultyState {
            at,
            grace,
            clock,
            truth: Mutex::new(truth),
        });
        let file = folder.map(|folder| folder.join(manifests::name(at)).join("start-api.json"));
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut actor = Self {
            at,
            address,
            stage,
            running: None,
            file,
        };
        actor.run_elsewhere(tasks).await?;
        Ok(actor)
    }

    pub(crate) fn name(&self) -> String {
        manifests::name(self.at)
    }

    pub(crate) fn truth(&self) -> ScenarioTruth {
        *self.stage.lock()
    }

    /// A look at the truth that lives on beside it.
    pub(crate) fn watch(&self) -> impl Fn() -> ScenarioTruth + Send + Sync + use<> {
        let stage = Arc::clone(&self.stage);
        move || *stage.lock()
    }

    /// Answers like this from now on.
    pub(crate) fn set_mode(&self, mode: Mode) {
        let now = self.stage.clock.now();
        let mut truth = self.stage.lock();
        truth.mode = mode;
        if !mode.is_good() {
            truth.broke = truth.broke.or(Some(now));
        } else if truth.broke.take().is_some() {
            truth.well = now;
        }
    }

    /// Ends it, as a kill does: no word, all connections gone, its port refused.
    pub(crate) async fn kill(&mut self) {
        self.stage.lock().broke = Some(self.stage.clock.now());
        if let Some(ServerTask { stop, task }) = self.running.take() {
            stop.stop();
            // It only ends.
            let _ = task.await;
        }
    }

    /// Starts it again where it was, with another edition.
    pub(crate) async fn run_again(&mut self, tasks: &Tasks) -> Result<()> {
        let end = self.stage.clock.now() + Duration::from_secs(5);
        let listener = loop {
            match TcpListener::bind(self.address).await {
                Ok(listener) => break listener,
                Err(error) if self.stage.clock.now() > end => {
                    return Err(error).context("its port is taken");
                }
                Err(_) => self.stage.clock.sleep(Duration::from_millis(5)).await,
            }
        };
        self.listen(listener, tasks)
    }

    /// Starts it again at another port, with another edition, and tells its source.
    pub(crate) async fn run_elsewhere(&mut self, tasks: &Tasks) -> Result<()> {
        self.listen(free().await?, tasks)
    }

    fn listen(&mut self, listener: TcpListener, tasks: &Tasks) -> Result<()> {
        self.address = listener.local_addr()?;
        {
            let mut truth = self.stage.lock();
            truth.edition += 1;
            (truth.mode, truth.broke, truth.well) = (Mode::Good, None, self.stage.clock.now());
        }
        let (stop, stopped) = StopTrigger::new();
        let task = tasks.spawn(accept(
            listener,
            Arc::clone(&self.stage),
            stopped,
            tasks.clone(),
        ));
        self.running = Some(ServerTask { stop, task });
        self.tell()
    }

    /// Writes its process file, as a lifecycle system does when it starts something.
    fn tell(&self) -> Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let folder = file.parent().context("a file in no folder")?;
        std::fs::create_dir_all(folder)?;
        let process = json!({
            "pid": std::process::id(), "phase": "develop", "scenario": self.name(), "step": "start-api",
            "port": self.address.port(), "status": "running", "started_at": self.stage.clock.wall().to_string(),
        });
        let fresh = file.with_extension("new");
        std::fs::write(&fresh, process.to_string())?;
        std::fs::rename(fresh, file)?;
        self.stage.lock().left = None;
        Ok(())
    }

    /// Takes its process file away.
    pub(crate) fn leave(&self) -> Result<()> {
        let Some(folder) = self.file.as_deref().and_then(std::path::Path::parent) else {
            return Ok(());
        };
        let mut truth = self.stage.lock();
        truth.left = Some(self.stage.clock.now());
        // Only an answer after this is a reason to list it.
        truth.due = None;
        drop(truth);
        std::fs::remove_dir_all(folder)?;
        Ok(())
    }
}

/// A port that nobody has and nobody had before.
async fn free() -> Result<TcpListener> {
    for _ in 0..2_000 {
        let first = 20_000 + u16::try_from(std::process::id() % 8_000)?;
        let port = first + PORTS.fetch_add(1, Ordering::Relaxed) % 4_000;
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)).await {
            return Ok(listener);
        }
    }
    anyhow::bail!("no port is free")
}

async fn accept(listener: TcpListener, stage: Arc<FaultyState>, stop: Stop, tasks: Tasks) {
    loop {
        let stream = tokio::select! {
            () = stop.wait() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => continue,
            },
        };
        let stage = Arc::clone(&stage);
        let stop = stop.clone();
        tasks.spawn(async move {
            tokio::select! {
                () = stop.wait() => {}
                // Whoever asks may go away at any time.
                _ = stage.answer(stream) => {}
            }
        });
    }
}

impl FaultyState {
    fn lock(&self) -> MutexGuard<'_, ScenarioTruth> {
        self.truth.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer(&self, mut stream: TcpStream) -> Result<()> {
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            anyhow::ensure!(stream.read_buf(&mut asked).await? > 0, "it went away");
        }
        let ScenarioTruth { mode, edition, .. } = *self.lock();
        let whole = ok(manifests::small(self.at, edition, TOOLS).as_bytes());
        match mode {
            Mode::Good => {}
            Mode::Slow(wait) => self.clock.sleep(wait).await,
            Mode::Hung => std::future::pending().await,
            Mode::Failing => {
                let said = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                return Ok(stream.write_all(said).await?);
            }
            Mode::Broken => {
                return Ok(stream
                    .write_all(&ok(br#"{"protocol_version":"1.0","tools":7}"#))
                    .await?);
            }
            Mode::Cut => return Ok(stream.write_all(&whole[..whole.len() / 2]).await?),
            Mode::Drip => {
                for byte in whole.chunks(1) {
                    stream.write_all(byte).await?;
                    self.clock.sleep(Duration::from_secs(1)).await;
                }
            }
        }
        stream.write_all(&whole).await?;
        stream.shutdown().await?;
        self.answered(edition);
        Ok(())
    }

    fn answered(&self, edition: u64) {
        let now = self.clock.now();
        let mut truth = self.lock();
        // Near the end of the grace it may have been withdrawn or not: from then on it only has to
        // be listed after the next answer.
        let kept = truth
            .answered
            .is_some_and(|before| now - before < self.grace.saturating_sub(Duration::from_secs(1)));
        if !kept || truth.due.is_none() {
            truth.due = Some(now);
        }
        truth.answered = Some(now);
        if truth
            .served
            .is_none_or(|(served_edition, _)| served_edition != edition)
        {
            truth.served = Some((edition, now));
        }
    }
}

/// A whole answer that may be kept for a second.
pub(crate) fn ok(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: max-age=1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}
