//! Keys that have another name now. The old name is still read; a finding and the log say that it
//! is old.

use super::Config;
use crate::model::{RenamedKey, Secret};

const OPERATOR_TOKEN: RenamedKey = RenamedKey {
    old: "calls.approval_token",
    new: "server.operator_token",
};

impl Config {
    /// The token that operators have to show, under whichever name it is given. Without one every
    /// caller is an operator.
    pub fn operator_token(&self) -> Option<&Secret> {
        self.server
            .operator_token
            .as_ref()
            .or(self.calls.approval_token.as_ref())
    }

    /// The keys that are given under an old name.
    pub fn renamed_keys(&self) -> Vec<RenamedKey> {
        self.calls
            .approval_token
            .iter()
            .map(|_| OPERATOR_TOKEN)
            .collect()
    }

    /// The keys that have different values under their old and their new name.
    pub(super) fn contradicting_keys(&self) -> Vec<RenamedKey> {
        let old = &self.calls.approval_token;
        let new = &self.server.operator_token;
        let contradicting = old.is_some() && new.is_some() && old != new;
        contradicting
            .then_some(OPERATOR_TOKEN)
            .into_iter()
            .collect()
    }
}
