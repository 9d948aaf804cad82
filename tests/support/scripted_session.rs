//! A protocol whose sessions the test plays: they list what it says, hint when it says so, talk to
//! their callers, and end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callsheet::model::{JsonText, Target};
use callsheet::protocols::{
    Call, CallError, CallIo, CallLog, CallProgress, Cancelled, ConnectError, EndReason, Fits, Hint,
    InputWanted, ListError, ListRequest, Listing, LogLevel, Outcome, Protocol, ProtocolId, Session,
    Validity, tool_discovery,
};
use callsheet::runtime::Clock;
use callsheet::transports::{TransportError, Transports};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use serde_json::json;
use tokio::sync::watch;

use super::callee::PATIENCE;

/// What is played. Clones play the same.
#[derive(Clone)]
pub(crate) struct Script(Arc<Inner>);

struct Inner {
    tools: Mutex<Vec<String>>,
    /// So many tools more are in the list of a scenario called `changing...`, others in each list.
    changing: Mutex<usize>,
    /// How long a list counts as fresh.
    fresh_for: Mutex<Duration>,
    /// Whether lists are refused for a second, as too many.
    busy: Mutex<bool>,
    /// Whether sessions cannot be made.
    refusing: Mutex<bool>,
    /// What happened, in order.
    happened: watch::Sender<Vec<String>>,
    hints: watch::Sender<Hints>,
    end: watch::Sender<Option<String>>,
    open: watch::Sender<usize>,
}

/// What the stream of hints does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hints {
    /// There is none, or it ends.
    Off,
    /// It stands, and this many changes were signalled.
    On(u64),
    /// It signals changes as fast as they are read.
    Flood,
}

/// The protocol that is registered.
pub(crate) struct ScriptedProtocol(Script);

/// One session.
struct ScriptedSession {
    script: Script,
    clock: Clock,
    end: watch::Receiver<Option<String>>,
    is_changing: bool,
}

impl Script {
    /// A scenario with these tools, whose list is fresh for an hour, without hints.
    pub(crate) fn of(tools: &[&str]) -> Self {
        let script = Self(Arc::new(Inner {
            tools: Mutex::default(),
            changing: Mutex::default(),
            fresh_for: Mutex::new(Duration::from_secs(3600)),
            busy: Mutex::default(),
            refusing: Mutex::default(),
            happened: watch::Sender::default(),
            hints: watch::Sender::new(Hints::Off),
            end: watch::Sender::default(),
            open: watch::Sender::default(),
        }));
        script.offer(tools);
        script
    }

    /// The protocol whose sessions play this.
    pub(crate) fn protocol(&self) -> ScriptedProtocol {
        ScriptedProtocol(self.clone())
    }

    /// It offers these tools from now on; no hint says so.
    pub(crate) fn offer(&self, tools: &[&str]) {
        *self.0.tools.lock().unwrap() = tools.iter().map(ToString::to_string).collect();
    }

    /// Scenarios called `changing...` offer so many other tools in each list.
    pub(crate) fn change_always(&self, tools: usize) {
        *self.0.changing.lock().unwrap() = tools;
    }

    /// Its lists are fresh for so long from now on.
    pub(crate) fn fresh_for(&self, time: Duration) {
        *self.0.fresh_for.lock().unwrap() = time;
    }

    /// Whether it is too busy to list, and wants the next request in a second.
    pub(crate) fn busy(&self, busy: bool) {
        *self.0.busy.lock().unwrap() = busy;
    }

    /// Whether connections to it are refused.
    pub(crate) fn refuse(&self, refusing: bool) {
        *self.0.refusing.lock().unwrap() = refusing;
    }

    /// Opens a stream of hints when it is wanted next.
    pub(crate) fn hints(&self) {
        self.0.hints.send_replace(Hints::On(0));
    }

    /// Signals a change.
    pub(crate) fn hint(&self) {
        self.0.hints.send_modify(|hints| {
            let Hints::On(count) = hints else {
                panic!("no stream of hints: {hints:?}")
            };
            *count += 1;
        });
    }

    /// Signals changes without end.
    pub(crate) fn flood(&self) {
        self.0.hints.send_replace(Hints::Flood);
    }

    /// Ends the stream of hints.
    pub(crate) fn end_hints(&self) {
        self.0.hints.send_replace(Hints::Off);
    }

    /// Ends the session that there is.
    pub(crate) fn end(&self, reason: &str) {
        self.0.end.send_replace(Some(reason.to_owned()));
    }

    /// How many sessions are open.
    pub(crate) fn open(&self) -> usize {
        *self.0.open.borrow()
    }

    /// Waits until so many sessions are open.
    pub(crate) async fn until_open(&self, count: usize) {
        let mut open = self.0.open.subscribe();
        let reached = open.wait_for(|open| *open == count);
        tokio::time::timeout(PATIENCE, reached)
            .await
            .expect("so many sessions are open")
            .unwrap();
    }

    /// How often something happened: `connect`, `refuse`, `list`, `busy`, `hints`, or what a call
    /// met.
    pub(crate) fn count(&self, what: &str) -> usize {
        self.0
            .happened
            .borrow()
            .iter()
            .filter(|happened| *happened == what)
            .count()
    }

    /// Waits until something happened so often.
    pub(crate) async fn until(&self, what: &str, count: usize) {
        let mut happened = self.0.happened.subscribe();
        let often =
            |all: &Vec<String>| all.iter().filter(|happened| *happened == what).count() >= count;
        let reached = tokio::time::timeout(PATIENCE, happened.wait_for(often))
            .await
            .is_ok();
        assert!(
            reached,
            "never {count} times {what}: {:?}",
            self.0.happened.borrow()
        );
    }

    fn happens(&self, what: impl Into<String>) {
        self.0.happened.send_modify(|all| all.push(what.into()));
    }
}

impl Protocol for ScriptedProtocol {
    fn id(&self) -> ProtocolId {
        "scripted"
    }

    fn fits(&self, target: &Target) -> Fits {
        match target {
            Target::InProcess(_) => Fits::Probe { at: "the script" },
            Target::Http(_) | Target::Stdio(_) | Target::Bundle(_) => Fits::Never,
        }
    }

    fn connect<'a>(
        &'a self,
        target: &'a Target,
        transports: &'a Transports,
    ) -> BoxFuture<'a, Result<Arc<dyn Session>, ConnectError>> {
        Box::pin(async move {
            // Real ones exchange something first.
            tokio::task::yield_now().await;
            let script = self.0.clone();
            if *script.0.refusing.lock().unwrap() {
                script.happens("refuse");
                return Err(TransportError::Refused(target.to_string()).into());
            }
            script.happens("connect");
            script.0.open.send_modify(|open| *open += 1);
            script.0.end.send_replace(None);
            let end = script.0.end.subscribe();
            let is_changing = target.to_string().contains("changing");
            Ok(Arc::new(ScriptedSession {
                script,
                clock: transports.clock(),
                end,
                is_changing,
            }) as _)
        })
    }
}

impl Drop for ScriptedSession {
    fn drop(&mut self) {
        self.script.0.open.send_modify(|open| *open -= 1);
    }
}

impl Session for ScriptedSession {
    fn list<'a>(&'a self, request: &'a ListRequest) -> BoxFuture<'a, Result<Listing, ListError>> {
        Box::pin(async move {
            if self.end.borrow().is_some() {
                return Err(TransportError::Broken {
                    url: "script".into(),
                    message: "it has ended".into(),
                }
                .into());
            }
            if *self.script.0.busy.lock().unwrap() {
                self.script.happens("busy");
                let retry_after = Some(Duration::from_secs(1));
                return Err(TransportError::Status {
                    url: "script".into(),
                    status: 429,
                    retry_after,
                    challenge: None,
                    said: None,
                }
                .into());
            }
            let mut tools: Vec<_> = self
                .script
                .0
                .tools
                .lock()
                .unwrap()
                .iter()
                .map(|name| listed(name))
                .collect();
            if self.is_changing {
                let begun = self.script.count("changed list");
                let count = *self.script.0.changing.lock().unwrap();
                tools.extend((0..count).map(|at| listed(&format!("t{begun}_{at}"))));
                self.script.happens("changed list");
            }
            let manifest =
                json!({"protocol_version": "1.0", "scenario": {"name": "script"}, "tools": tools});
            let decoded = tool_discovery::decode(manifest.to_string().as_bytes(), &request.accept)?;
            let validity =
                Validity::made_here(self.clock, *self.script.0.fresh_for.lock().unwrap());
            self.script.happens("list");
            let manifest = decoded.manifest;
            let findings = decoded.findings;
            let quarantined = decoded.quarantined;
            Ok(Listing::Manifest {
                manifest,
                findings,
                quarantined,
                validity,
            })
        })
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        io: &'a dyn CallIo,
    ) -> BoxFuture<'a, Result<Outcome, CallError>> {
        Box::pin(async move {
            if self.end.borrow().is_some() {
                self.script.happens("unsent");
                return Err(CallError::Unsent(TransportError::Refused(
                    "script".to_owned(),
                )));
            }
            match &*call.tool {
                "progress" => Ok(progress(io)),
                "input" => Ok(self.input(io).await),
                "inert" => Err(CallError::NotCallable(
                    "it offers no way to call its tools".to_owned(),
                )),
                "stuck" => {
                    self.script.happens("stuck");
                    std::future::pending().await
                }
                "breaks" => {
                    self.script.happens("sent");
                    io.cancelled().await;
                    let message = "it was closed".to_owned();
                    Err(CallError::Unanswered(TransportError::Broken {
                        url: "script".to_owned(),
                        message,
                    }))
                }
                "wait" => {
                    self.script.happens("waiting");
                    let why = io.cancelled().await;
                    self.script.happens(match why {
                        Cancelled::ByCaller => "cancelled",
                        Cancelled::CallerGone => "gone",
                    });
                    Ok(Outcome::failed(None, "it was cancelled".to_owned(), None))
                }
                _ => Ok(Outcome::done(call.arguments.clone())),
            }
        })
    }

    fn hints(&self) -> Option<BoxStream<'static, Hint>> {
        let mut hints = self.script.0.hints.subscribe();
        if *hints.borrow_and_update() == Hints::Off {
            return None;
        }
        self.script.happens("hints");
        let changes = stream::unfold(hints, |mut hints| async move {
            if *hints.borrow() != Hints::Flood {
                hints.changed().await.ok()?;
            }
            let goes_on = *hints.borrow() != Hints::Off;
            goes_on.then_some((Hint::Changed, hints))
        });
        Some(stream::iter([Hint::Following]).chain(changes).boxed())
    }

    fn ended(&self) -> Option<BoxFuture<'static, EndReason>> {
        let mut end = self.end.clone();
        Some(Box::pin(async move {
            let reason = end
                .wait_for(Option::is_some)
                .await
                .ok()
                .and_then(|reason| reason.clone());
            match reason {
                Some(reason) => EndReason::new(reason),
                None => std::future::pending().await,
            }
        }))
    }
}

impl ScriptedSession {
    async fn input(&self, io: &dyn CallIo) -> Outcome {
        let wanted = InputWanted::question("Which city?", &JsonText::parse("{}").unwrap());
        let is_offered = wanted.is_offered(io.offers());
        match io.input(&wanted).await {
            Some(answer) => Outcome::done(answer),
            None if is_offered => Outcome::failed(None, "declined".to_owned(), None),
            None => Outcome::failed(
                None,
                "this caller gives no input".to_owned(),
                Some("no_input".to_owned()),
            ),
        }
    }
}

fn progress(io: &dyn CallIo) -> Outcome {
    io.progress(CallProgress {
        done: 1.0,
        total: Some(2.0),
        message: Some("half".to_owned()),
    });
    io.log(CallLog::new(LogLevel::Info, "on the way"));
    io.progress(CallProgress {
        done: 2.0,
        total: Some(2.0),
        message: None,
    });
    Outcome::done(JsonText::parse("\"there\"").unwrap())
}

fn listed(name: &str) -> serde_json::Value {
    let idempotent = name == "breaks";
    json!({"name": name, "description": name, "metadata": {"enabled_by_default": true, "idempotent": idempotent}})
}
