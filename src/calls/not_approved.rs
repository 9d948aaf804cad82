//! The words about a call that needed approval and has no answer: it was rejected, no person
//! decided in time, it gave way to newer ones, or whether it ran is not known.
//!
//! Every face takes them from here. They differ in who reads them, and clients may rely on each.

use super::{Failure, FailureCode};
use crate::model::ApprovalRequest;

/// What a model reads about a call that may have run.
pub(super) const UNKNOWN_TO_MODEL: &str = "Whether the call ran to its end is not known, and it was not sent again. Check that before you call it again.";

/// Whom the words are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader<'a> {
    /// A program, which shows them as one clause of an error.
    Program,
    /// A person, or the model of a client, in sentences that say who decided.
    Person,
    /// A model that used this name for the tool, and has to know whether it ran.
    Model(&'a str),
}

impl Failure {
    /// Why a call that needed approval has no answer; `None` for every other failure.
    pub fn not_approved(&self, reader: Reader<'_>) -> Option<String> {
        let request = self.approval.as_deref()?;
        Some(match (self.code, request.gave_way()) {
            (FailureCode::Rejected, _) => rejected(request, reader),
            (FailureCode::ApprovalExpired, Some(why)) => gave_way(request, why, reader),
            (FailureCode::ApprovalExpired, None) => expired(request, reader),
            _ => unknown(request, reader),
        })
    }
}

fn rejected(request: &ApprovalRequest, reader: Reader<'_>) -> String {
    let tool = &request.tool;
    let decided = request.decided.as_ref();
    let reason = decided.and_then(|decided| decided.reason.as_deref());
    let reason = reason
        .map(|reason| format!(": {reason}"))
        .unwrap_or_default();
    match reader {
        Reader::Program => format!("the call of `{tool}` was rejected{reason}; it was not run"),
        Reader::Person => {
            let by = decided.map_or("a person", |decided| &*decided.by);
            format!("The call of `{tool}` was rejected by {by}{reason}. It was not run.")
        }
        Reader::Model(name) => {
            format!("A person rejected the call of `{name}`{reason}. The tool did not run.")
        }
    }
}

fn gave_way(request: &ApprovalRequest, why: &str, reader: Reader<'_>) -> String {
    let tool = &request.tool;
    match reader {
        Reader::Program => {
            format!("the call of `{tool}` gave way to newer ones: {why}; it was not run")
        }
        Reader::Person => {
            format!("The call of `{tool}` gave way to newer ones: {why}. It was not run.")
        }
        Reader::Model(name) => {
            format!(
                "The call of `{name}` does not wait for approval any more: {why}. The tool did not run."
            )
        }
    }
}

fn expired(request: &ApprovalRequest, reader: Reader<'_>) -> String {
    let tool = &request.tool;
    match reader {
        Reader::Program => format!("the call of `{tool}` was not approved in time; it was not run"),
        Reader::Person => format!("The call of `{tool}` was not approved in time. It was not run."),
        Reader::Model(name) => {
            format!("No person approved the call of `{name}` in time. The tool did not run.")
        }
    }
}

fn unknown(request: &ApprovalRequest, reader: Reader<'_>) -> String {
    let tool = &request.tool;
    match reader {
        Reader::Program => {
            format!("the call of `{tool}` was approved, and whether it ran to its end is not known")
        }
        Reader::Person => {
            let id = &request.id;
            format!(
                "The call of `{tool}` was approved under the id {id}, and whether it ran to its end is not known."
            )
        }
        Reader::Model(_) => UNKNOWN_TO_MODEL.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::calls::CallEnd;
    use crate::calls::approval::tests::request;
    use crate::model::{ApprovalDecision, ApprovalState};

    /// What each reader reads about a call that ended in this state.
    fn read(state: ApprovalState, reason: Option<&str>) -> [String; 3] {
        let decided = reason.map(|reason| ApprovalDecision {
            by: "kim".into(),
            at: jiff::Timestamp::UNIX_EPOCH,
            reason: Some(reason.into()),
        });
        let request = ApprovalRequest {
            state,
            decided,
            tool: "disks/wipe".parse().unwrap(),
            ..request("7")
        };
        let CallEnd::Failed(failure) = CallEnd::of_approval(Arc::new(request), Vec::new()) else {
            panic!("it failed")
        };
        let readers = [Reader::Program, Reader::Person, Reader::Model("wipe")];
        readers.map(|reader| failure.not_approved(reader).unwrap())
    }

    #[test]
    fn every_reader_gets_the_words_that_it_had() {
        let said = read(ApprovalState::Rejected, Some("not today"));
        assert_eq!(
            said[0],
            "the call of `disks/wipe` was rejected: not today; it was not run"
        );
        assert_eq!(
            said[1],
            "The call of `disks/wipe` was rejected by kim: not today. It was not run."
        );
        assert_eq!(
            said[2],
            "A person rejected the call of `wipe`: not today. The tool did not run."
        );
        let said = read(ApprovalState::Expired, None);
        assert_eq!(
            said[0],
            "the call of `disks/wipe` was not approved in time; it was not run"
        );
        assert_eq!(
            said[1],
            "The call of `disks/wipe` was not approved in time. It was not run."
        );
        assert_eq!(
            said[2],
            "No person approved the call of `wipe` in time. The tool did not run."
        );
        let said = read(ApprovalState::Expired, Some("too many wait"));
        assert_eq!(
            said[0],
            "the call of `disks/wipe` gave way to newer ones: too many wait; it was not run"
        );
        assert_eq!(
            said[1],
            "The call of `disks/wipe` gave way to newer ones: too many wait. It was not run."
        );
        assert_eq!(
            said[2],
            "The call of `wipe` does not wait for approval any more: too many wait. The tool did not run."
        );
        let said = read(ApprovalState::Unknown, None);
        assert_eq!(
            said[0],
            "the call of `disks/wipe` was approved, and whether it ran to its end is not known"
        );
        let person = "The call of `disks/wipe` was approved under the id 7, and whether it ran to its end is not known.";
        assert_eq!(said[1], person);
        assert_eq!(said[2], UNKNOWN_TO_MODEL);
    }
}
