//! A scenario whose manifest is changed from here, and that knows when the last byte of it left.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, ensure};
use callsheet::runtime::{Clock, Tasks};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use crate::manifests;

/// A scenario in this process.
pub(crate) struct ChangingScenario {
    pub(crate) at: usize,
    pub(crate) address: SocketAddr,
    stage: Arc<Mutex<ChangingState>>,
}

struct ChangingState {
    answer: Vec<u8>,
    edition: u64,
    sent: Option<Instant>,
}

impl ChangingScenario {
    /// Starts so many, from number `first` on.
    pub(crate) async fn start(first: usize, count: usize, tasks: &Tasks) -> Result<Vec<Self>> {
        let mut movers = Vec::with_capacity(count);
        for at in first..first + count {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            let answer = answer(&manifests::manifest(at, 0));
            let stage = Arc::new(Mutex::new(ChangingState {
                answer,
                edition: 0,
                sent: None,
            }));
            tasks.spawn(serve(listener, Arc::clone(&stage), tasks.clone()));
            movers.push(Self { at, address, stage });
        }
        Ok(movers)
    }

    pub(crate) fn name(&self) -> String {
        manifests::name(self.at)
    }

    pub(crate) fn edition(&self) -> u64 {
        lock(&self.stage).edition
    }

    /// Offers the next edition from now on.
    pub(crate) fn change(&self) {
        let mut stage = lock(&self.stage);
        stage.edition += 1;
        stage.answer = answer(&manifests::manifest(self.at, stage.edition));
        stage.sent = None;
    }

    /// Says the same in other bytes: its tools in another order, made at another time.
    pub(crate) fn say_again(&self, turn: usize) {
        let mut stage = lock(&self.stage);
        stage.answer = answer(&manifests::reordered(self.at, stage.edition, turn));
        stage.sent = None;
    }

    /// When the last byte of what it offers now was first sent.
    pub(crate) fn sent(&self) -> Result<Instant> {
        lock(&self.stage).sent.context("it was not asked")
    }
}

fn lock(stage: &Mutex<ChangingState>) -> MutexGuard<'_, ChangingState> {
    stage.lock().unwrap_or_else(PoisonError::into_inner)
}

/// It may be kept for an hour: only who is told to asks again.
fn answer(body: &str) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: max-age=3600\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

async fn serve(listener: TcpListener, stage: Arc<Mutex<ChangingState>>, tasks: Tasks) {
    while let Ok((stream, _)) = listener.accept().await {
        let stage = Arc::clone(&stage);
        // Whoever asks may go away at any time.
        tasks.spawn(async move { tell(stream, &stage).await.ok() });
    }
}

async fn tell(mut stream: TcpStream, stage: &Mutex<ChangingState>) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        ensure!(stream.read_buf(&mut asked).await? > 0, "it went away");
    }
    let (answer, edition) = {
        let stage = lock(stage);
        (stage.answer.clone(), stage.edition)
    };
    let (most, last) = answer.split_at(answer.len() - 1);
    stream.write_all(most).await?;
    let now = Clock::system().now();
    stream.write_all(last).await?;
    {
        let mut stage = lock(stage);
        if stage.edition == edition {
            stage.sent.get_or_insert(now);
        }
    }
    Ok(stream.shutdown().await?)
}
