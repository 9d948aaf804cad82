//! The sessions of legacy clients, as far as the daemon has to remember something of them: the
//! level of log messages, the requests under way, the resources that it follows, and what is
//! awaited of the client.
//!
//! What a session *is* stands in its signed id. So a session that was forgotten here, or that
//! another run of the daemon began, is known all the same and begins with what is usual. A session
//! that its client ended is remembered as ended for as long as there is room.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::calls::CallSession;
use crate::json::rpc::RpcError;
use crate::model::JsonText;
use crate::protocols::LogLevel;
use crate::runtime::{Clock, Stop, StopTrigger};
use crate::server::mcp::era::single;
use crate::server::mcp::refusal::Refusal;
use crate::server::mcp::sealing::Sealer;
use crate::server::mcp::session_id::SessionClaims;
use crate::server::mcp::watched::{ResourceWatch, WatchKey};

/// The header with the id of a session.
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The most sessions that are remembered. A session that is kept only for a call (one that waits
/// for approval, say) does not count: the number of such calls has a limit of its own.
const MOST: usize = 4_096;
/// The most ended sessions that are remembered.
const MOST_ENDED: usize = 10_000;
/// The most requests of one session under way.
const MOST_RUNNING: usize = 1_000;

/// The most resources that one session follows.
const MOST_FOLLOWED: usize = 100;

/// For how long the client of a session counts as there that sends no request and never opened a
/// stream. Without a stream its connections say nothing of it.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// What a client answered to a request of the daemon.
pub(super) type ClientReply = Result<JsonText, RpcError>;

/// All sessions.
#[derive(Debug)]
pub(super) struct McpSessions {
    clock: Clock,
    table: Mutex<SessionTable>,
}

#[derive(Debug, Default)]
struct SessionTable {
    live: HashMap<String, Arc<LiveSession>>,
    ended: VecDeque<String>,
}

/// One session.
#[derive(Debug)]
pub(super) struct LiveSession {
    pub(super) claims: SessionClaims,
    clock: Clock,
    state: Mutex<SessionState>,
    next_request: AtomicU64,
    end: StopTrigger,
    ended: Stop,
}

#[derive(Debug)]
struct SessionState {
    used: Instant,
    /// The least severe log messages that the client wants.
    log_level: Option<LogLevel>,
    /// What cancels the requests under way, by the text of their id.
    running: HashMap<String, StopTrigger>,
    /// What the client still has to answer.
    awaited: HashMap<u64, oneshot::Sender<ClientReply>>,
    /// The streams of its GETs.
    streams: Vec<mpsc::Sender<Bytes>>,
    /// When the client last closed a stream.
    left: Option<Instant>,
    /// The resources that it follows.
    followed: Vec<Arc<ResourceWatch>>,
}

/// A request of a session under way. Dropping it ends that.
#[derive(Debug)]
pub(super) struct RunningRequest {
    session: Arc<LiveSession>,
    id: String,
    /// Completes when the client cancels it, or ends its session.
    pub(super) cancelled: Stop,
}

/// An answer of the client that is awaited. Dropping it forgets the request.
pub(super) struct AwaitedReply {
    session: Arc<LiveSession>,
    pub(super) id: u64,
    reply: oneshot::Receiver<ClientReply>,
}

impl McpSessions {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            table: Mutex::default(),
        }
    }

    fn table(&self) -> MutexGuard<'_, SessionTable> {
        self.table.lock()
    }

    /// The session that a message belongs to.
    pub(super) fn find(
        &self,
        headers: &HeaderMap,
        sealer: &Sealer,
    ) -> Result<Arc<LiveSession>, Refusal> {
        let Some(id) = single(headers, &SESSION_ID)? else {
            let why = "Mcp-Session-Id is missing: send `initialize` first, and its session id with every later message";
            return Err(Refusal::no_request(why));
        };
        let claims = SessionClaims::verify(id, sealer).ok_or_else(Refusal::unknown_session)?;
        let now = self.clock.now();
        let mut table = self.table();
        if let Some(live) = table.live.get(&claims.key) {
            live.state().used = now;
            return Ok(Arc::clone(live));
        }
        if table.ended.contains(&claims.key) {
            return Err(Refusal::unknown_session());
        }
        table.add(Arc::new(LiveSession::new(claims, self.clock)))
    }

    /// Ends a session: its streams end, and what it has under way is cancelled.
    pub(super) fn end(&self, session: &LiveSession) {
        let mut table = self.table();
        table.live.remove(&session.claims.key);
        table.ended.push_back(session.claims.key.clone());
        if table.ended.len() > MOST_ENDED {
            table.ended.pop_front();
        }
        session.state().followed.clear();
        session.end.stop();
    }
}

impl SessionTable {
    /// Adds a session, if there is room or an idle one can be forgotten.
    fn add(&mut self, live: Arc<LiveSession>) -> Result<Arc<LiveSession>, Refusal> {
        if self.is_full() {
            self.forget_idle();
        }
        if self.is_full() {
            return Err(Refusal::busy(format!(
                "{MOST} sessions have requests under way; try again later"
            )));
        }
        self.live.insert(live.claims.key.clone(), Arc::clone(&live));
        Ok(live)
    }

    /// Whether there are as many sessions as may be. One that only kept calls hold does not count:
    /// otherwise a client with many such calls would keep all others out.
    fn is_full(&self) -> bool {
        let counts =
            |session: &&Arc<LiveSession>| Arc::strong_count(session) == 1 || session.is_in_use();
        self.live.len() >= MOST && self.live.values().filter(counts).count() >= MOST
    }

    /// Forgets the quarter of the sessions without requests, streams and kept calls that was used
    /// the longest time ago. Whatever goes on in a session holds it, also before it is noted there:
    /// otherwise there would be a second one under its key, without what the first one has begun.
    fn forget_idle(&mut self) {
        let used = |session: &Arc<LiveSession>| {
            (Arc::strong_count(session) == 1).then(|| session.state().used)
        };
        let mut idle: Vec<_> = self
            .live
            .iter()
            .filter_map(|(key, session)| Some((used(session)?, key.clone())))
            .collect();
        idle.sort_unstable();
        for (_, key) in idle.into_iter().take(MOST / 4) {
            self.live.remove(&key);
        }
    }
}

impl LiveSession {
    fn new(claims: SessionClaims, clock: Clock) -> Self {
        let (end, ended) = StopTrigger::new();
        let state = SessionState {
            used: clock.now(),
            log_level: None,
            running: HashMap::new(),
            awaited: HashMap::new(),
            streams: Vec::new(),
            left: None,
            followed: Vec::new(),
        };
        Self {
            claims,
            clock,
            state: Mutex::new(state),
            next_request: AtomicU64::new(1),
            end,
            ended,
        }
    }

    fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock()
    }

    /// Whether it has a request under way or an open stream.
    fn is_in_use(&self) -> bool {
        let state = self.state();
        !state.running.is_empty() || state.streams.iter().any(|stream| !stream.is_closed())
    }

    /// Completes its waits when the client ended the session.
    pub(super) fn ended(&self) -> Stop {
        self.ended.clone()
    }

    /// Sets the least severe log messages that the client wants.
    pub(super) fn set_log_level(&self, level: LogLevel) {
        self.state().log_level = Some(level);
    }

    /// The level that the client set.
    pub(super) fn log_level(&self) -> Option<LogLevel> {
        self.state().log_level
    }

    /// Notes a request that can be cancelled. Refuses an id that is in use.
    pub(super) fn begin(self: &Arc<Self>, id: &str) -> Result<RunningRequest, Refusal> {
        let (trigger, cancelled) = self.ended.child();
        let mut state = self.state();
        if state.running.len() >= MOST_RUNNING {
            return Err(Refusal::busy(format!(
                "the session has {MOST_RUNNING} requests under way"
            )));
        }
        if state.running.contains_key(id) {
            return Err(Refusal::no_request("another request under way has this id"));
        }
        state.running.insert(id.to_owned(), trigger);
        Ok(RunningRequest {
            session: Arc::clone(self),
            id: id.to_owned(),
            cancelled,
        })
    }

    /// The client does not want a request any more.
    pub(super) fn cancel(&self, id: &str) {
        if let Some(trigger) = self.state().running.get(id) {
            trigger.stop();
        }
    }

    /// Prepares a request of the daemon to the client.
    pub(super) fn expect_reply(self: &Arc<Self>) -> AwaitedReply {
        let id = self.next_request.fetch_add(1, Ordering::Relaxed);
        let (sender, reply) = oneshot::channel();
        self.state().awaited.insert(id, sender);
        AwaitedReply {
            session: Arc::clone(self),
            id,
            reply,
        }
    }

    /// Takes the client's answer to a request of the daemon. What was not requested is dropped.
    pub(super) fn answered(&self, id: u64, reply: ClientReply) {
        let awaited = self.state().awaited.remove(&id);
        if let Some(awaited) = awaited {
            let _ = awaited.send(reply);
        }
    }

    /// Follows a resource from now on.
    pub(super) fn follow(&self, watch: Arc<ResourceWatch>) -> Result<(), Refusal> {
        let mut state = self.state();
        if state
            .followed
            .iter()
            .any(|followed| followed.key == watch.key)
        {
            return Ok(());
        }
        if state.followed.len() >= MOST_FOLLOWED {
            return Err(Refusal::busy(format!(
                "the session follows {MOST_FOLLOWED} resources already"
            )));
        }
        state.followed.push(watch);
        Ok(())
    }

    /// Does not follow the resource with this URI any more.
    pub(super) fn unfollow(&self, uri: &str) {
        self.state().followed.retain(|watch| watch.key.uri != uri);
    }

    /// The resource with this key, if it is followed; without a key all that are.
    pub(super) fn followed(&self, key: Option<&WatchKey>) -> Vec<Arc<WatchKey>> {
        let state = self.state();
        let all = state.followed.iter().map(|watch| &watch.key);
        all.filter(|followed| key.is_none_or(|key| ***followed == *key))
            .cloned()
            .collect()
    }

    /// Adds the stream of a GET.
    pub(super) fn add_stream(&self, stream: mpsc::Sender<Bytes>) {
        let mut state = self.state();
        state.streams.retain(|open| !open.is_closed());
        state.streams.push(stream);
    }

    /// Notes that the client closed the stream of a GET.
    pub(super) fn stream_closed(&self) {
        self.state().left = Some(self.clock.now());
    }

    /// Sends a message on one of the streams of its GETs. Returns whether there is one.
    pub(super) fn send_on_stream(&self, message: &Bytes) -> bool {
        self.state()
            .streams
            .iter()
            .any(|stream| stream.try_send(message.clone()).is_ok())
    }
}

impl CallSession for LiveSession {
    fn key(&self) -> &str {
        &self.claims.key
    }

    /// Until its client ends it, closes its streams and sends no further request, or is silent for
    /// long without a stream. A stream that the daemon ended says no more than none does.
    fn is_there(&self) -> bool {
        if self.ended.is_stopped() {
            return false;
        }
        if self.is_in_use() {
            return true;
        }
        let state = self.state();
        let has_left = state.left.is_some_and(|left| left >= state.used);
        let is_silent = self.clock.now().saturating_duration_since(state.used) >= SILENCE_MAX;
        !has_left && !is_silent
    }
}

impl AwaitedReply {
    /// Waits for it. `None` if it cannot come any more.
    pub(super) async fn reply(mut self) -> Option<ClientReply> {
        (&mut self.reply).await.ok()
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.session.state().running.remove(&self.id);
    }
}

impl Drop for AwaitedReply {
    fn drop(&mut self) {
        self.session.state().awaited.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::mcp::capabilities::ClientCapabilities;

    impl LiveSession {
        /// A session of a client that declared no capability.
        pub(in crate::server::mcp) fn for_tests() -> Arc<Self> {
            let claims = SessionClaims::new("2025-11-25", ClientCapabilities::default(), None);
            Arc::new(Self::new(claims, Clock::system()))
        }
    }

    /// A proxy that closes idle streams must not let another session have the outcomes of this one.
    #[tokio::test(start_paused = true)]
    async fn a_client_whose_stream_was_closed_is_there_as_soon_as_it_sends_a_request() {
        let session = LiveSession::for_tests();
        assert!(session.is_there());
        let (stream, open) = mpsc::channel(1);
        session.add_stream(stream);
        session.clock.sleep(SILENCE_MAX).await;
        assert!(session.is_there(), "its stream is open");
        drop(open);
        session.state().used = session.clock.now();
        session.stream_closed();
        assert!(!session.is_there());
        session.clock.sleep(std::time::Duration::from_secs(1)).await;
        session.state().used = session.clock.now();
        assert!(session.is_there());
        session.clock.sleep(SILENCE_MAX).await;
        assert!(!session.is_there(), "it is silent");
    }

    /// A cancelled id has to mean one request.
    #[test]
    fn an_id_belongs_to_one_request_at_a_time() {
        let session = LiveSession::for_tests();
        let first = session.begin("1").unwrap();
        let other = session.begin("2").unwrap();
        let refused = session.begin("1").unwrap_err();
        assert!(refused.error.message.contains("has this id"), "{refused:?}");
        session.cancel("1");
        assert!(first.cancelled.is_stopped());
        assert!(!other.cancelled.is_stopped());
        drop(first);
        let again = session.begin("1").unwrap();
        assert!(!again.cancelled.is_stopped());
    }

    #[test]
    fn calls_that_are_kept_leave_room_for_sessions_of_other_clients() {
        let mut table = SessionTable::default();
        let kept: Vec<_> = (0..MOST + 10)
            .map(|_| table.add(LiveSession::for_tests()).unwrap())
            .collect();
        assert_eq!(
            table.live.len(),
            kept.len(),
            "none is forgotten while a kept call holds it"
        );
        let others: Vec<_> = (0..MOST)
            .map(|_| table.add(LiveSession::for_tests()).unwrap())
            .collect();
        let running: Vec<_> = others
            .iter()
            .map(|session| session.begin("1").unwrap())
            .collect();
        assert!(
            table.add(LiveSession::for_tests()).is_err(),
            "all others have requests under way"
        );
        drop((running, others));
        table.add(LiveSession::for_tests()).unwrap();
        assert!(
            table.live.len() < kept.len() + MOST,
            "idle ones are forgotten"
        );
    }

    #[test]
    fn a_session_has_a_limited_number_of_requests_under_way() {
        let session = LiveSession::for_tests();
        let mut running: Vec<_> = (0..MOST_RUNNING)
            .map(|id| session.begin(&id.to_string()).unwrap())
            .collect();
        assert!(session.begin("more").is_err());
        running.pop();
        assert!(session.begin("more").is_ok());
    }
}
