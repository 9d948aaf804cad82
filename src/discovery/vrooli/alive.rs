//! Whether the process of a process file still runs, and whether it is the same process.
//!
//! On Linux `/proc` says so (`proc_pid_stat(5)`), and a process that began after its file was
//! written is another one under the same id. On other Unix systems only the existence of the id is
//! known. Elsewhere every process counts as running, and a scenario that ended is noticed by its
//! address not answering.

use std::fmt;

use jiff::Timestamp;

/// Whether a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Liveness {
    /// It runs, as far as this system can tell.
    Runs,
    /// It does not.
    Ended(ProcessEnding),
}

/// Why a process does not count as running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcessEnding {
    /// No process has this id.
    Gone,
    /// It ended, and its parent has not collected its result.
    Zombie,
    /// The id belongs to a process that began later than the file says.
    Reused,
}

impl fmt::Display for ProcessEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "has ended",
            Self::Zombie => "has ended and is a zombie: its parent did not collect it",
            Self::Reused => "has ended, and its id belongs to another process that began later",
        })
    }
}

/// Whether the process `pid` runs, and is the one that was started at `started`, as far as this
/// system can tell.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn liveness(pid: u32, started: Option<Timestamp>) -> Liveness {
    use std::io::ErrorKind;

    /// "No such process": the process ended between opening its file and reading it.
    const ESRCH: i32 = 3;

    match std::fs::read(format!("/proc/{pid}/stat")) {
        Ok(stat) if is_over(&stat) => Liveness::Ended(ProcessEnding::Zombie),
        Ok(stat) if started.is_some_and(|started| began_after(started, &stat)) => {
            Liveness::Ended(ProcessEnding::Reused)
        }
        Err(error) if error.raw_os_error() == Some(ESRCH) => Liveness::Ended(ProcessEnding::Gone),
        // Where `/proc` is not mounted, a missing entry has no meaning.
        Err(error)
            if error.kind() == ErrorKind::NotFound
                && std::path::Path::new("/proc/self").exists() =>
        {
            Liveness::Ended(ProcessEnding::Gone)
        }
        Ok(_) | Err(_) => Liveness::Runs,
    }
}

/// Whether a process has the id `pid`.
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
pub(super) fn liveness(pid: u32, _started: Option<Timestamp>) -> Liveness {
    let known = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    match known.map(rustix::process::test_kill_process) {
        None | Some(Err(rustix::io::Errno::SRCH)) => Liveness::Ended(ProcessEnding::Gone),
        // A process of another user may not be signalled, and so it exists.
        Some(Ok(()) | Err(_)) => Liveness::Runs,
    }
}

/// Whether the process `pid` runs: this system cannot tell, so it does.
#[cfg(not(unix))]
pub(super) fn liveness(_pid: u32, _started: Option<Timestamp>) -> Liveness {
    Liveness::Runs
}

/// The fields of a `/proc/PID/stat` line after the program's name, which stands in parentheses and
/// may itself hold any character. The first one is the state.
#[cfg(any(target_os = "linux", target_os = "android", test))]
fn fields(stat: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = stat
        .iter()
        .rposition(|c| *c == b')')
        .map_or(stat.len(), |end| end + 1);
    stat.get(end..)
        .unwrap_or_default()
        .split(u8::is_ascii_whitespace)
        .filter(|field| !field.is_empty())
}

/// Whether a `/proc/PID/stat` line shows a zombie (`Z`) or a dead process (`X`).
#[cfg(any(target_os = "linux", target_os = "android", test))]
fn is_over(stat: &[u8]) -> bool {
    matches!(fields(stat).next(), Some([b'Z' | b'X' | b'x', ..]))
}

/// Whether the process of a `/proc/PID/stat` line began clearly after `started`. A file is written
/// once its process has begun, so a later beginning shows another process.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn began_after(started: Timestamp, stat: &[u8]) -> bool {
    /// Both times are rounded, and clocks are corrected by some seconds while a system starts.
    const TOLERANCE: i64 = 60;

    let boot = std::fs::read("/proc/stat")
        .ok()
        .and_then(|text| boot_second(&text));
    let began = boot
        .zip(seconds_after_boot(stat))
        .map(|(boot, after)| boot.saturating_add(after));
    began.is_some_and(|began| began > started.as_second().saturating_add(TOLERANCE))
}

/// When a process began, in seconds after the system did: field 22 of the line, in ticks of which
/// Linux shows programs 100 a second.
#[cfg(any(target_os = "linux", target_os = "android", test))]
fn seconds_after_boot(stat: &[u8]) -> Option<i64> {
    let ticks: i64 = std::str::from_utf8(fields(stat).nth(19)?)
        .ok()?
        .parse()
        .ok()?;
    Some(ticks / 100)
}

/// When the system began: `btime` of `/proc/stat`.
#[cfg(any(target_os = "linux", target_os = "android", test))]
fn boot_second(stat: &[u8]) -> Option<i64> {
    let line = stat
        .split(|c| *c == b'\n')
        .find_map(|line| line.strip_prefix(b"btime "))?;
    std::str::from_utf8(line).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_read_behind_the_name() {
        for (stat, over) in [
            ("17 (sleep) S 1 17", false),
            ("17 (sleep) Z 1 17", true),
            ("17 (a) Z b) R 1 17", false),
            ("17 (a) R b) X 1 17", true),
            ("", false),
        ] {
            assert_eq!(is_over(stat.as_bytes()), over, "{stat}");
        }
    }

    #[test]
    fn the_beginning_is_read_behind_the_name() {
        let stat = b"17 (a) 1 2) S 1 17 17 0 -1 4194560 107 0 0 0 0 0 0 0 20 0 1 0 123456 5 6";
        assert_eq!(seconds_after_boot(stat), Some(1234));
        assert_eq!(seconds_after_boot(b"17 (sleep) S 1"), None);
        assert_eq!(
            boot_second(b"cpu 1 2\nbtime 1767606000\nprocesses 4\n"),
            Some(1_767_606_000)
        );
        assert_eq!(boot_second(b"cpu 1 2\n"), None);
    }

    #[test]
    fn this_process_runs() {
        assert_eq!(liveness(std::process::id(), None), Liveness::Runs);
    }
}
