//! Compares the list with the truth, all the time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use callsheet::runtime::{Clock, Stop};
use serde::Deserialize;
use tokio::time::Instant;

use crate::faulty_scenario::{ScenarioTruth, TOOLS};
use crate::raw_http::{self, Connection};
use crate::{daemon_list, manifests};

/// How soon what was answered has to be in the list.
pub(crate) const SOON: Duration = Duration::from_secs(2);
/// How much later than at its end a grace may be seen to end: publishing, reading, and the share of
/// the processor that others take.
pub(crate) const LEEWAY: Duration = Duration::from_millis(500);
/// Wrong answers that are explained in full.
const EXPLAINED: usize = 5;

/// A tool as it is listed.
#[derive(Debug, Deserialize, PartialEq)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) scenario: String,
    pub(crate) description: String,
}

#[derive(Deserialize)]
struct ListedTools {
    tools: Vec<Listed>,
}

/// What is in a list, by scenario.
pub(crate) type Seen = BTreeMap<String, Vec<Listed>>;

/// Reads the list of a daemon again and again; an unchanged one is not sent again.
pub(crate) struct ListReader {
    address: SocketAddr,
    path: String,
    connection: Option<Connection>,
    tag: String,
    pub(crate) seen: Seen,
}

impl ListReader {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self::at(address, daemon_list::PATH.to_owned())
    }

    /// Looks at another list than the whole one.
    fn at(address: SocketAddr, path: String) -> Self {
        Self {
            address,
            path,
            connection: None,
            tag: String::new(),
            seen: Seen::new(),
        }
    }

    /// The list as it is now.
    pub(crate) async fn read(&mut self) -> Result<&Seen> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.address).await?,
        };
        let request = raw_http::request("GET", &self.path, &[("if-none-match", self.tag.as_str())]);
        let answer = connection.get(request.as_bytes()).await?;
        self.connection = Some(connection);
        if answer.status == 200 {
            answer
                .header("etag")
                .unwrap_or_default()
                .clone_into(&mut self.tag);
            let list: ListedTools =
                serde_json::from_slice(&answer.body).context("the list is not a list")?;
            self.seen.clear();
            for tool in list.tools {
                self.seen
                    .entry(tool.scenario.clone())
                    .or_default()
                    .push(tool);
            }
        } else {
            anyhow::ensure!(
                answer.status == 304,
                "the list was answered with {}",
                answer.status
            );
        }
        Ok(&self.seen)
    }
}

/// A scenario that is watched.
pub(crate) struct Watched {
    pub(crate) at: usize,
    /// Whether nothing ever happens to it.
    pub(crate) steady: bool,
    pub(crate) truth: Box<dyn Fn() -> ScenarioTruth + Send + Sync>,
}

/// How it is watched.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// The list that is looked at.
    pub(crate) path: String,
    /// How often.
    pub(crate) every: Duration,
    /// How long the daemon keeps the tools of one that fails.
    pub(crate) grace: Duration,
    /// How long one that is well may go without giving an answer: the longest time between two
    /// asks, one that times out, and some more.
    pub(crate) idle: Duration,
}

/// What was found.
#[derive(Default)]
pub(crate) struct Verdict {
    pub(crate) looks: usize,
    /// Wrong answers by kind: cases, and looks that saw them.
    pub(crate) wrong: BTreeMap<&'static str, (usize, usize)>,
    pub(crate) explained: Vec<String>,
}

impl Verdict {
    /// Adds what was found in another part of a run.
    pub(crate) fn add(&mut self, other: Self) {
        self.looks += other.looks;
        for (kind, (cases, looks)) in other.wrong {
            let count = self.wrong.entry(kind).or_default();
            *count = (count.0 + cases, count.1 + looks);
        }
        self.explained.extend(other.explained);
    }
}

/// Goes on until `stop`. Scenarios that are not `watched` and list tools must be among `others`.
pub(crate) async fn check(
    address: SocketAddr,
    watched: Vec<Watched>,
    others: BTreeSet<String>,
    rules: Rules,
    stop: Stop,
) -> Verdict {
    let clock = Clock::system();
    let start = clock.now();
    let mut looker = ListReader::at(address, rules.path.clone());
    let mut verdict = Verdict::default();
    let mut open = BTreeSet::new();
    let names: BTreeSet<String> = watched
        .iter()
        .map(|each| manifests::name(each.at))
        .collect();
    while !stop.is_stopped() {
        let before: Vec<ScenarioTruth> = watched.iter().map(|each| (each.truth)()).collect();
        let asked = clock.now();
        let failure = looker.read().await.err();
        let now = clock.now();
        verdict.looks += 1;
        let mut found: Vec<(&'static str, String, String)> = Vec::new();
        if let Some(error) = failure {
            found.push((
                "the list was not answered",
                "-".into(),
                format!("{error:#}"),
            ));
        } else {
            for (each, before) in watched.iter().zip(&before) {
                let listed = looker
                    .seen
                    .get(&manifests::name(each.at))
                    .map_or(&[][..], Vec::as_slice);
                let case = Comparison {
                    before,
                    after: &(each.truth)(),
                    listed,
                    asked,
                    now,
                    rules: &rules,
                };
                let wrong = case.wrong(each);
                found.extend(
                    wrong.map(|kind| (kind, manifests::name(each.at), format!("{case:?}"))),
                );
            }
            let strangers = looker
                .seen
                .keys()
                .filter(|name| !names.contains(*name) && !others.contains(*name));
            let problem = "a scenario that offers nothing is listed";
            found.extend(strangers.map(|name| (problem, name.clone(), String::new())));
        }
        let cases: BTreeSet<_> = found
            .iter()
            .map(|(kind, name, _)| (*kind, name.clone()))
            .collect();
        for (kind, name, why) in found {
            let count = verdict.wrong.entry(kind).or_default();
            count.1 += 1;
            if !open.contains(&(kind, name.clone())) {
                count.0 += 1;
                if verdict.explained.len() < EXPLAINED {
                    let health =
                        raw_http::once(address, "GET", &format!("/api/v1/scenarios/{name}")).await;
                    let health =
                        health.map(|answer| String::from_utf8_lossy(&answer.body).into_owned());
                    verdict.explained.push(format!(
                        "after {:.1} s: {kind}: {name}\n  {why}\n  health {}",
                        (now - start).as_secs_f64(),
                        health.unwrap_or_else(|error| error.to_string())
                    ));
                }
            }
        }
        open = cases;
        clock.sleep_until((asked + rules.every).max(now)).await;
    }
    verdict
}

/// One scenario in one look: what was true before and after it, and what it saw.
struct Comparison<'a> {
    before: &'a ScenarioTruth,
    after: &'a ScenarioTruth,
    listed: &'a [Listed],
    asked: Instant,
    now: Instant,
    rules: &'a Rules,
}

impl Comparison<'_> {
    /// What is wrong, if anything is. Only what held before the look and after it counts.
    fn wrong(&self, each: &Watched) -> Option<&'static str> {
        let before = self.before;
        let after = self.after;
        let idle = after
            .answered
            .map_or(before.well, |answered| answered.max(before.well));
        if before.broke.is_none()
            && after.broke.is_none()
            && before.left.is_none()
            && self.now > idle + self.rules.idle
        {
            return Some("not asked for long though it is well");
        }
        if self.listed.is_empty() {
            let due = before.due.filter(|due| after.due == Some(*due))?;
            let soon = self.asked > due + SOON;
            let kept = after
                .answered
                .is_some_and(|answered| self.now + LEEWAY < answered + self.rules.grace);
            let kept = each.steady || kept && after.left.is_none();
            return (soon && kept).then_some(match (each.steady, after.broke) {
                (true, _) => "a healthy scenario is missing",
                (false, None) => "missing 2 s after it answered",
                (false, Some(_)) => "missing before its grace ended",
            });
        }
        let Some((edition, first)) = before.served else {
            return Some("listed though it never answered");
        };
        if let (Some(broke), true) = (before.broke, before.broke == after.broke) {
            let died = after.answered.map_or(broke, |answered| answered.max(broke));
            if self.asked > died + self.rules.grace + LEEWAY {
                return Some("listed longer than grace");
            }
        }
        if before.served == after.served && self.asked > first + SOON && !self.is(each.at, edition)
        {
            return Some("listed otherwise than it says");
        }
        None
    }

    /// Whether these tools are listed, all and unchanged.
    fn is(&self, at: usize, edition: u64) -> bool {
        self.listed.len() == TOOLS
            && self.listed.iter().enumerate().all(|(tool, listed)| {
                listed.name == manifests::tool(at, tool)
                    && listed.description == manifests::description(at, tool, edition)
            })
    }
}

impl std::fmt::Debug for Comparison<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ago = |at: Option<Instant>| match at {
            Some(at) => format!(
                "{:.2} s ago",
                self.now.saturating_duration_since(at).as_secs_f64()
            ),
            None => "never".to_owned(),
        };
        let ScenarioTruth {
            mode,
            edition,
            answered,
            served,
            due,
            well,
            broke,
            left,
        } = *self.after;
        write!(
            f,
            "{mode:?} at edition {edition}; last good answer {}, its edition {} first told {}; to be listed since an answer {}; well since {}; broke {}; \
             left {}; {} tools listed, asked for {:.3} s: {:.40}",
            ago(answered),
            served.map_or(0, |(edition, _)| edition),
            ago(served.map(|(_, at)| at)),
            ago(due),
            ago(Some(well)),
            ago(broke),
            ago(left),
            self.listed.len(),
            (self.now - self.asked).as_secs_f64(),
            self.listed
                .first()
                .map_or("", |tool| tool.description.as_str())
        )
    }
}
