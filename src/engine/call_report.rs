//! What calls report to the loop about the scenarios that they are for.

/// What a call reports about its scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallReport {
    /// It answered: a sign of life.
    Answered,
    /// No process listens at its address.
    Refused,
    /// It cannot be sent before the scenario's tools are listed again.
    AwaitsListing,
}
