//! How the result of a poll changes a scenario. Pure except for the log; random numbers are
//! arguments.

use std::sync::Arc;
use std::time::Duration;

use url::Url;

use crate::config::Config;
use crate::engine::now::Now;
use crate::engine::poll_task::PollResult;
use crate::engine::scenario::backoff::Backoff;
use crate::engine::scenario::facts::{LastPoll, ManifestTerm, Obstacle, SourcePresence};
use crate::engine::scenario::lifecycle::RemovedBy;
use crate::engine::scenario::needs_authorization::needs_authorization;
use crate::engine::scenario::{AcceptedManifest, Scenario, log, restart, schedule, trust};
use crate::model::{
    Finding, FindingCode, Freshness, LastError, Manifest, ProgramEnd, SHOWN_NAME, Target,
};
use crate::protocols::{ListError, Listing, Protocol, Validity, module};
use crate::transports::TransportError;

/// Handles a result of the record's own generation. `absence_is_believed` says whether a source
/// that stopped naming it is believed once it does not answer; `random` is in `0.0..1.0`.
pub(in crate::engine) fn apply(
    record: &mut Scenario,
    answered: PollResult,
    config: &Config,
    absence_is_believed: bool,
    now: Now,
    random: f64,
) {
    record.polls.under_way = None;
    record.polls.confirms_wake = false;
    let awaited = record.take_wait();
    let followed = answered.followed;
    match answered.result {
        Ok((protocol, Listing::Unchanged(validity))) => {
            succeeded(record, protocol, &validity, followed, config, now, random);
            record.polls.note_listing();
        }
        Ok((
            protocol,
            Listing::Manifest {
                mut manifest,
                findings,
                quarantined,
                mut validity,
            },
        )) => {
            record.polls.rest = schedule::rest_after(manifest.tools.len(), &config.refresh);
            let foreign = refuse_foreign_base(record, &mut manifest);
            count_age(record, &manifest, &mut validity);
            let restarted = shows_restart(record, &manifest, &validity);
            let is_short = record.is_asleep() && record.lacks_tools(&manifest);
            let plan = succeeded(record, protocol, &validity, followed, config, now, random);
            confirm(record, restarted, config, now);
            let mut findings = named(findings, record, &manifest);
            findings.extend(foreign);
            accept_manifest(record, manifest, findings, quarantined, &validity, plan);
            // Also while another answer is to confirm it: this one is of the new process.
            record.polls.note_listing();
            if is_short {
                record.list_again_before_sleep(&config.refresh, now);
            }
        }
        Err(error) => {
            failed(record, &error, config, absence_is_believed, now, random);
            match (awaited, &error) {
                (Some(awaited), ListError::Transport(TransportError::Timeout { .. })) => {
                    // It says more than the time limit that has passed.
                    record.explain_wait(&awaited, now);
                }
                _ => record.silent_since = None,
            }
        }
    }
}

/// Takes the age that an answer has by its own time stamp off its lifetime, as far as the
/// connection has not done so by its `Age`.
fn count_age(record: &mut Scenario, manifest: &Manifest, fresh: &mut Validity) {
    let is_equal = record
        .offer
        .as_ref()
        .is_some_and(|held| held.manifest.digest == manifest.digest);
    let age = record.stamps.age(
        manifest.generated_at,
        is_equal,
        fresh.received,
        fresh.received_at,
    );
    fresh.fresh_for = fresh
        .fresh_for
        .saturating_sub(age.saturating_sub(fresh.age));
}

/// The changes that every good answer brings.
fn succeeded(
    record: &mut Scenario,
    protocol: Arc<dyn Protocol>,
    fresh: &Validity,
    followed: bool,
    config: &Config,
    now: Now,
    random: f64,
) -> schedule::PollPlan {
    if record.restarts.are_suspected() && record.answered {
        record.restarted(now);
    }
    record.end_sleep();
    record.protocol = Some(protocol);
    record.latency = Some(fresh.took);
    record.restarts.settle();
    record.answered = true;
    record.polls.unconditional = false;
    record.latest = LastPoll::Good;
    record.obstacle = None;
    record.failures = 0;
    record.polls.backoff = None;
    record.last_error = None;
    record.failure_finding = None;
    record.silent_since = None;
    record.grace_from = now.mono;
    (record.silenced, record.reprieve) = (None, None);
    record.last_success = Some(now.wall);
    if record.presence != SourcePresence::Named {
        record.presence = SourcePresence::Unnamed;
    }
    let plan = schedule::after_success(fresh, followed, &config.refresh, random);
    // A scenario that waits for approval may not say how often it is polled: its list only has to
    // be known.
    let next = if record.is_trusted() {
        plan.next_poll
    } else {
        now.mono + config.refresh.max_interval
    };
    record.plan_poll_at(next, now);
    if let Some(held) = &mut record.offer {
        held.term = ManifestTerm::Until(plan.live_until);
        held.fresh = Some(fresh.clone());
        held.validators = fresh.validators.clone();
        held.freshness = Freshness {
            generated_at: held.freshness.generated_at,
            ..shown(fresh)
        };
    }
    plan
}

/// Makes a manifest the active one, unless its content equals that of the active one.
fn accept_manifest(
    record: &mut Scenario,
    manifest: Manifest,
    findings: Vec<Finding>,
    quarantined: usize,
    fresh: &Validity,
    plan: schedule::PollPlan,
) {
    let freshness = Freshness {
        generated_at: manifest.generated_at,
        ..shown(fresh)
    };
    if let Some(held) = &mut record.offer
        && held.manifest.digest == manifest.digest
    {
        // Real servers change the time stamp and the order in each answer: equal content is no
        // change.
        held.manifest.sent_findings.learn(&manifest.sent_findings);
        held.freshness = freshness;
        held.findings = findings;
        held.quarantined = quarantined;
        return;
    }
    log::known(record, manifest.tools.len());
    record.offer = Some(AcceptedManifest {
        manifest: Arc::new(manifest),
        quarantined,
        findings,
        fresh: Some(fresh.clone()),
        validators: fresh.validators.clone(),
        term: ManifestTerm::Until(plan.live_until),
        freshness,
    });
}

/// Whether the answer itself is the only sign of a restart; a restart that was suspected before is
/// counted as soon as an answer comes.
fn shows_restart(record: &Scenario, manifest: &Manifest, fresh: &Validity) -> bool {
    let before = record
        .offer
        .as_ref()
        .filter(|_| record.answered && !record.restarts.are_suspected());
    before.is_some_and(|held| {
        restart::sign(&held.manifest, manifest).is_some()
            || held.manifest.digest != manifest.digest
                && held
                    .fresh
                    .as_ref()
                    .is_some_and(|held| restart::went_back(held, fresh))
    })
}

/// Counts a restart that an answer showed, and polls once more without validators: a process that
/// has just started may not have all its tools yet. The answer to that poll is not checked again,
/// because two instances behind one address would cause a loop of polls. A scenario that waits for
/// approval may not say how often it is polled.
fn confirm(record: &mut Scenario, restarted: bool, config: &Config, now: Now) {
    let confirming = record.restarts.take_confirming();
    if !restarted {
        return;
    }
    record.restarted(now);
    if !confirming && record.is_trusted() {
        record.restarts.confirm();
        record.restart_poll(now.mono + config.refresh.forced_gap, now);
    }
}

/// Removes a foreign base URL. A scenario that was found on the network may not say that its API is
/// elsewhere, because clients would be led to a host that the announcer chose. A scenario that an
/// operator wrote into the configuration may.
fn refuse_foreign_base(record: &Scenario, manifest: &mut Manifest) -> Option<Finding> {
    let place = record.place.as_ref()?;
    let target = place.endpoint.target.as_ref()?;
    let base = manifest
        .scenario
        .base_url
        .as_deref()
        .filter(|base| !base.is_empty())?;
    if !trust::merely_found(place.source, place.endpoint.trust) {
        return None;
    }
    let own = Url::parse(base).is_ok_and(|base| {
        base.host_str() == target.url().host_str()
            || trust::host(&Target::at(base)) == trust::host(target)
    });
    if own {
        return None;
    }
    let shown: String = base.chars().take(SHOWN_NAME).collect();
    let message = format!(
        "its `base_url` is `{}`, but it was found at {}; `base_url` is ignored",
        shown.escape_debug(),
        target.origin()
    );
    manifest.scenario.base_url = None;
    manifest.digest = manifest.content_digest();
    let hint = "if that is right, name it as [[scenarios]] in the configuration";
    let finding = Finding::new(FindingCode::BaseUrlRefused, message).of_scenario(&record.name);
    Some(finding.at("/scenario/base_url").hint(hint))
}

fn shown(fresh: &Validity) -> Freshness {
    let fresh_until = fresh
        .received_at
        .saturating_add(fresh.fresh_for)
        .unwrap_or(fresh.received_at);
    Freshness {
        generated_at: None,
        fresh_until,
        received_at: fresh.received_at,
    }
}

/// Files the findings of a listing under the name of the scenario.
fn named(findings: Vec<Finding>, record: &Scenario, manifest: &Manifest) -> Vec<Finding> {
    let mut findings: Vec<_> = findings
        .into_iter()
        .map(|finding| finding.of_scenario(&record.name))
        .collect();
    let own = manifest.scenario.name.as_ref();
    // This was already reported when it could not get the name that its source gives it.
    let announced = record
        .place
        .as_ref()
        .and_then(|place| place.endpoint.name.as_ref());
    let counts = record
        .protocol
        .as_ref()
        .is_none_or(|protocol| protocol.names_scenarios());
    if counts
        && !own.is_empty()
        && own != record.name.as_str()
        && announced.is_none_or(|announced| announced.as_str() != own)
    {
        // The name may be as long as a manifest.
        let shown: String = own.chars().take(120).collect();
        let message = format!("it calls itself `{}`", shown.escape_debug());
        let hint = "its tools are filed under the name it was found by";
        let is_module = record
            .protocol
            .as_ref()
            .is_some_and(|protocol| protocol.id() == module::ID);
        let at = if is_module {
            "/module_name"
        } else {
            "/scenario/name"
        };
        findings.push(
            Finding::new(FindingCode::NameMismatch, message)
                .of_scenario(&record.name)
                .at(at)
                .hint(hint),
        );
    }
    findings
}

/// Records what went wrong, for operators and for the state. `unread` is the reason when an answer
/// was not read whole, which is not a failure.
fn noted(record: &mut Scenario, error: &ListError, unread: Option<&str>, now: Now) {
    let message = unread.map_or_else(|| error.to_string(), str::to_owned);
    let latest = latest(error);
    if counts(error) && unread.is_none() {
        record.latest = latest;
    }
    record.last_error = Some(LastError {
        kind: error.kind().into(),
        message: message.clone(),
        at: now.wall,
    });
    if latest != LastPoll::Failed {
        let since = record
            .obstacle
            .take()
            .map_or(now.mono, |obstacle| obstacle.since);
        record.obstacle = Some(Obstacle {
            since,
            message: message.clone(),
        });
    }
    if record.obstacle.is_none()
        || latest != LastPoll::Failed
        || !matches!(error, ListError::Transport(_))
    {
        // A poll without an answer does not remove the reason why its tools are not listed.
        record.failure_finding = finding(record, error, &message).map(Box::new);
    }
}

/// The changes that every failure brings. The active manifest stays.
fn failed(
    record: &mut Scenario,
    error: &ListError,
    config: &Config,
    absence_is_believed: bool,
    now: Now,
    random: f64,
) {
    let unread = unread_while_pending(record, error, config);
    record.wake_failed(now);
    record.limit_to_lifetime();
    noted(record, error, unread.as_deref(), now);
    let retry_after = match error {
        ListError::Transport(error) => error.retry_after(),
        _ => None,
    };
    if let ListError::Incompatible { .. } = error {
        // It answers, but in no known version: this is no failure, and it is polled slowly.
        record.failures = 0;
        record.polls.backoff = None;
        let pace = if record.is_trusted() {
            config.protocol.incompatible_interval
        } else {
            config.refresh.max_interval
        };
        record.plan_poll_at(now.mono + pace, now);
        return;
    }
    if unread.is_some() {
        // It answers with more than is read before approval: this is no failure, and it is polled
        // like others that wait.
        record.failures = 0;
        record.polls.backoff = None;
        record.plan_poll_at(now.mono + config.refresh.max_interval, now);
        return;
    }
    if counts(error) {
        if record.failures == 0 {
            log::fails(record, error);
        }
        record.failures += 1;
    }
    if matches!(error, ListError::Transport(TransportError::Refused(_))) {
        // No process listened: the next answer may come from another process, so a 304 would be
        // no proof.
        record.restarts.suspect();
        record.polls.unconditional = true;
    }
    if counts(error) && record.presence != SourcePresence::Named && absence_is_believed {
        record.mark_absent(RemovedBy::Source, now);
        return;
    }
    if !record.is_trusted() && record.failures >= config.health.failures {
        record.plan_poll_at(
            schedule::retry_at(now.mono, config.refresh.max_interval, retry_after),
            now,
        );
        return;
    }
    let backoff = Backoff::new(config.refresh.backoff_base, config.refresh.backoff_max);
    let refused = matches!(error, ListError::Transport(TransportError::Refused(_)));
    let wait = if matches!(record.target, Some(Target::Stdio(_))) {
        Backoff::of_programs().doubled(record.polls.backoff, random)
    } else if refused && record.answered {
        backoff.doubling(record.failures, random)
    } else {
        backoff.next(record.polls.backoff, random)
    };
    record.polls.backoff = Some(wait);
    record.plan_poll_at(
        schedule::retry_at(now.mono, wait.max(Duration::from_millis(1)), retry_after),
        now,
    );
}

/// The reason shown in health for an answer that is too large only because its scenario waits for
/// approval.
fn unread_while_pending(record: &Scenario, error: &ListError, config: &Config) -> Option<String> {
    let ListError::Transport(TransportError::TooLarge { limit, .. }) = error else {
        return None;
    };
    let unread = !record.is_trusted() && *limit < config.refresh.max_body;
    unread.then(|| {
        format!(
            "{error}, and no more is read of a scenario that is not trusted (`refresh.max_pending_body`); \
             `callsheet trust {}` has all of it read",
            record.name
        )
    })
}

/// Whether the error counts as a failure. 429 means "alive but busy", so it is no step towards
/// `down`.
fn counts(error: &ListError) -> bool {
    !matches!(
        error,
        ListError::Transport(TransportError::Status { status: 429, .. })
    )
}

/// What a failed poll counts as.
fn latest(error: &ListError) -> LastPoll {
    match error {
        ListError::Incompatible { .. } => LastPoll::OutOfRange,
        ListError::Transport(TransportError::Status {
            status: 401 | 403, ..
        }) => LastPoll::Unauthorized,
        ListError::Transport(TransportError::Credential { error, .. })
            if error.needs_operator() =>
        {
            LastPoll::Unauthorized
        }
        _ => LastPoll::Failed,
    }
}

fn finding(record: &Scenario, error: &ListError, message: &str) -> Option<Finding> {
    let (code, hint) = match error {
        ListError::Transport(_) if latest(error) == LastPoll::Unauthorized => {
            return Some(needs_authorization(record, error, message));
        }
        ListError::Transport(TransportError::TooLarge { .. }) if record.is_trusted() => (
            FindingCode::ManifestRefused,
            "offer fewer or shorter tools, or raise `refresh.max_body`; the last good manifest stays active",
        ),
        // Health already shows it; a finding would repeat it.
        ListError::Transport(_) => return None,
        ListError::Incompatible { .. } => (
            FindingCode::VersionRefused,
            "update the scenario, or widen `protocol.accept` in the configuration",
        ),
        ListError::NotThisProtocol(_) => (
            FindingCode::ManifestRefused,
            "check the address: its answer is not a tool manifest",
        ),
        ListError::VersionUnreadable(_) => (
            FindingCode::VersionUnreadable,
            "write `protocol_version` as a text such as \"1.0\"; until then the last good manifest stays",
        ),
        ListError::Malformed(_) => {
            let hint =
                "fix the scenario's manifest; its last good one stays active within `health.grace`";
            (FindingCode::ManifestRefused, hint)
        }
    };
    Some(
        Finding::new(code, message)
            .of_scenario(&record.name)
            .hint(hint),
    )
}

/// How the program ended that the poll spoke to, if that is why it failed.
pub(in crate::engine) fn program_end<T>(result: &Result<T, ListError>) -> Option<Arc<ProgramEnd>> {
    match result {
        Err(ListError::Transport(TransportError::ProcessEnded { end, .. })) => end.clone(),
        _ => None,
    }
}

/// Whether the poll reached a server, whatever it answered.
pub(in crate::engine) fn reached<T>(result: &Result<T, ListError>) -> bool {
    !matches!(
        result,
        Err(ListError::Transport(
            TransportError::Refused(_)
                | TransportError::Unresolved(_)
                | TransportError::Timeout { .. }
                | TransportError::Broken { .. }
                | TransportError::Proxy { .. }
                | TransportError::Credential { .. }
                | TransportError::CommandNotFound { .. }
                | TransportError::NotStarted { .. }
                | TransportError::ProcessEnded { .. }
        ))
    )
}
