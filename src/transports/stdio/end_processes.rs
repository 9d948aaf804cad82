//! Ends processes: those of groups, and those with a mark. Never waits longer than two steps of a
//! stop.

use std::time::Duration;

use super::group::{EndSignal, ProcessGroup};
use super::mark::ProgramMark;
use crate::runtime::{Clock, Tasks};

/// The time between the steps of a stop.
pub(super) const GRACE: Duration = Duration::from_secs(3);

/// How often groups are looked at while they end.
const GROUP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Ends all that is left in some groups, and all processes with the mark outside of them: SIGTERM,
/// and after [`GRACE`] SIGKILL.
pub(super) async fn end_processes(
    groups: &[ProcessGroup],
    mark: Option<&ProgramMark>,
    tasks: &Tasks,
    clock: Clock,
) {
    for signal in [EndSignal::Terminate, EndSignal::Kill] {
        let living: Vec<_> = groups
            .iter()
            .copied()
            .filter(|group| group.is_alive())
            .collect();
        for group in &living {
            group.signal(signal);
        }
        let deadline = clock.now() + GRACE;
        // A process may start others while it is ended, so killing is repeated.
        let again = Some(signal).filter(|signal| *signal == EndSignal::Kill);
        let mut is_marked_left = signal_marked(mark, Some(signal), groups, tasks).await;
        while (is_marked_left || living.iter().any(|group| group.is_alive()))
            && clock.now() < deadline
        {
            clock.sleep(GROUP_CHECK_INTERVAL).await;
            is_marked_left = is_marked_left && signal_marked(mark, again, groups, tasks).await;
        }
    }
}

/// Sends a signal, if one is given, to all processes with the mark outside of these groups. Returns
/// whether there is one.
async fn signal_marked(
    mark: Option<&ProgramMark>,
    signal: Option<EndSignal>,
    but: &[ProcessGroup],
    tasks: &Tasks,
) -> bool {
    let Some(mark) = mark.cloned() else {
        return false;
    };
    let but = but.to_vec();
    tasks.blocking(move || mark.signal(signal, &but)).await
}
