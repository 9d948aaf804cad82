//! The numbers in the navigation: what waits for a person. Pages are rendered with them, and the
//! page's stream sends those that change, so no page requests them.

use std::sync::Arc;

use maud::{Markup, html};
use tokio::sync::Mutex;

use crate::calls::approval::Approvals;
use crate::catalog::Snapshot;
use crate::model::{ApprovalState, ScenarioState, Severity};
use crate::server::ServerState;
use crate::server::api::findings::{FindingFilter, FindingSources, UnusedFormats};
use crate::server::dashboard::text::count;

/// A larger number is shown as this one with a plus.
const SHOWN_NUMBER_MAX: usize = 99;

/// One of the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NavNumber {
    /// Scenarios that need a login or a credential.
    Scenarios,
    /// Calls that wait for approval or input.
    Calls,
    /// Errors among the findings.
    Findings,
}

/// All of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct NavNumbers {
    scenarios: usize,
    calls: usize,
    findings: usize,
}

/// The calls that wait for a person.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitingCalls {
    /// Those that wait for approval.
    pub(super) approvals: usize,
    /// Those whose tools wait for input.
    pub(super) inputs: usize,
}

impl WaitingCalls {
    pub(super) fn now(shared: &ServerState) -> Self {
        let approvals = shared
            .calls
            .approvals()
            .map(Approvals::all)
            .unwrap_or_default();
        let approvals = approvals
            .iter()
            .filter(|request| request.state == ApprovalState::Waiting)
            .count();
        Self {
            approvals,
            inputs: shared.calls.active().waiting().len(),
        }
    }
}

impl NavNumber {
    pub(super) const ALL: [Self; 3] = [Self::Scenarios, Self::Calls, Self::Findings];

    /// The name of its event on the page's stream.
    pub(super) fn event(self) -> &'static str {
        match self {
            Self::Scenarios => "number-scenarios",
            Self::Calls => "number-calls",
            Self::Findings => "number-findings",
        }
    }

    /// What it counts, in words.
    fn words(self, number: usize) -> String {
        match (self, number) {
            (Self::Scenarios, 1) => "1 needs authorization".to_owned(),
            (Self::Scenarios, _) => format!("{number} need authorization"),
            (Self::Calls, 1) => "1 waits for a decision".to_owned(),
            (Self::Calls, _) => format!("{number} wait for a decision"),
            (Self::Findings, _) => count(number, "error"),
        }
    }
}

impl NavNumbers {
    /// The numbers as far as they are known without work. Until a stream has counted the errors of
    /// this catalog, there is no number of them.
    pub(super) fn at_hand(shared: &ServerState, snapshot: &Snapshot) -> Self {
        Self::new(
            shared,
            snapshot,
            shared.dashboard.errors.known(snapshot).unwrap_or_default(),
        )
    }

    /// The numbers, with the errors counted if they may have changed.
    pub(super) async fn counted(shared: &ServerState, snapshot: &Arc<Snapshot>) -> Self {
        Self::new(
            shared,
            snapshot,
            shared.dashboard.errors.count(shared, snapshot).await,
        )
    }

    fn new(shared: &ServerState, snapshot: &Snapshot, findings: usize) -> Self {
        let WaitingCalls { approvals, inputs } = WaitingCalls::now(shared);
        let scenarios = snapshot.health.values();
        let scenarios = scenarios
            .filter(|health| health.state == ScenarioState::NeedsAuthorization)
            .count();
        Self {
            scenarios,
            calls: approvals + inputs,
            findings,
        }
    }

    pub(super) fn get(self, number: NavNumber) -> usize {
        match number {
            NavNumber::Scenarios => self.scenarios,
            NavNumber::Calls => self.calls,
            NavNumber::Findings => self.findings,
        }
    }

    /// A number behind the name of its page, with a text for those who do not see it. Empty for
    /// zero.
    pub(super) fn shown(self, number: NavNumber) -> Markup {
        let value = self.get(number);
        html! {
            @if value > 0 {
                span class="tally" aria-hidden="true" { (value.min(SHOWN_NUMBER_MAX)) @if value > SHOWN_NUMBER_MAX { "+" } }
                span class="hidden" { " (" (number.words(value)) ")" }
            }
        }
    }
}

/// The number of errors among the findings, counted once for each change of them.
#[derive(Debug, Default)]
pub(super) struct ErrorCount(Mutex<Option<(Arc<Snapshot>, usize)>>);

impl ErrorCount {
    /// The number, if it was counted and nothing has changed since.
    fn known(&self, snapshot: &Snapshot) -> Option<usize> {
        counted(self.0.try_lock().ok()?.as_ref(), snapshot)
    }

    /// The number. Formats that no client uses do not count, as on the page of the findings.
    async fn count(&self, shared: &ServerState, snapshot: &Arc<Snapshot>) -> usize {
        // Held while it counts, so that several pages count once.
        let mut known = self.0.lock().await;
        if let Some(errors) = counted(known.as_ref(), snapshot) {
            return errors;
        }
        let wanted = FindingFilter {
            severities: vec![Severity::Error],
            unused: UnusedFormats::Skipped,
            ..FindingFilter::default()
        };
        let sources = Arc::new(FindingSources::gather(shared, snapshot, wanted).await);
        let count = move || {
            let found = sources.collect();
            found.general.len() + found.of_formats.len()
        };
        let errors = shared.tasks.off_thread(count).await;
        *known = Some((Arc::clone(snapshot), errors));
        errors
    }
}

fn counted(known: Option<&(Arc<Snapshot>, usize)>, snapshot: &Snapshot) -> Option<usize> {
    known
        .filter(|(before, _)| !offer_differs(before, snapshot))
        .map(|(_, errors)| *errors)
}

/// Whether the tools, preferences, findings or states of two snapshots differ.
pub(super) fn offer_differs(before: &Snapshot, after: &Snapshot) -> bool {
    let findings =
        !Arc::ptr_eq(&before.findings, &after.findings) && before.findings != after.findings;
    let preferences = !std::ptr::eq(before.catalog.preferences(), after.catalog.preferences());
    let moved = after
        .transitions
        .since(&before.transitions)
        .is_none_or(|turns| !turns.is_empty());
    before.catalog.revision() != after.catalog.revision() || findings || preferences || moved
}
