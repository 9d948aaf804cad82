//! Numbers of HTTP statuses for ends that are no failure: the records of calls promise one for
//! every face.

/// A call that was answered and goes on, or waits for approval.
pub(super) const GOES_ON: u16 = 202;
/// A call that was answered.
pub(super) const ANSWERED: u16 = 200;
