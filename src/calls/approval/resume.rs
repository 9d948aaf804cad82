//! Approved calls that were under way when an earlier daemon ended.

use std::sync::Arc;
use std::time::Duration;

use super::{Approvals, ApprovedCallRunner, changed};
use crate::model::{ApprovalRequest, ApprovalState};

/// How long a call that may be repeated waits for its tool.
const WAIT: Duration = Duration::from_secs(60);

impl Approvals {
    /// Resolves the calls that an earlier daemon had started. It is not known whether they were
    /// sent or answered. A call whose tool is idempotent is run again; the others become
    /// `unknown-outcome`.
    pub async fn resume<R: ApprovedCallRunner>(&self, runner: &R) {
        let started: Vec<_> = self
            .all()
            .into_iter()
            .filter(|request| request.state == ApprovalState::Started)
            .collect();
        for request in started {
            if request.idempotent {
                self.0
                    .parts
                    .tasks
                    .spawn(self.clone().repeat(runner.clone(), request));
            } else {
                self.lose(&request).await;
            }
        }
    }

    async fn repeat<R: ApprovedCallRunner>(self, runner: R, request: Arc<ApprovalRequest>) {
        let clock = self.0.parts.clock;
        let mut reader = self.0.parts.reader.clone();
        let deadline = clock.now() + WAIT;
        while changed(&request, runner.current_tool(&request).as_ref()).is_some() {
            let goes_on = tokio::select! {
                () = self.0.parts.stop.wait() => return,
                () = clock.sleep_until(deadline) => false,
                changed = reader.changed() => changed.is_some(),
            };
            if !goes_on {
                return self.lose(&request).await;
            }
        }
        self.run(runner, request).await;
    }

    async fn lose(&self, request: &ApprovalRequest) {
        self.end(ApprovalRequest {
            state: ApprovalState::Unknown,
            ..request.clone()
        })
        .await;
    }
}
