//! Whether a process lives.
//!
//! On Linux `/proc` tells (`proc_pid_stat(5)`). Elsewhere there is no way to ask without unsafe code or a child process per question, so
//! every process counts as alive there and a dead scenario is noticed by its address not answering.

/// Whether the process `pid` exists and is more than a zombie, as far as this system can tell.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn alive(pid: u32) -> bool {
    use std::io::ErrorKind;

    /// "No such process": the process ended between opening its file and reading it.
    const ESRCH: i32 = 3;

    match std::fs::read(format!("/proc/{pid}/stat")) {
        Ok(stat) => !is_over(&stat),
        Err(error) if error.raw_os_error() == Some(ESRCH) => false,
        // Where `/proc` is not mounted its silence means nothing.
        Err(error) if error.kind() == ErrorKind::NotFound => !std::path::Path::new("/proc/self").exists(),
        Err(_) => true,
    }
}

/// Whether the process `pid` lives: this system cannot tell, so yes.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn alive(_pid: u32) -> bool {
    true
}

/// Whether a `/proc/PID/stat` line shows a zombie (`Z`) or a dead process (`X`). The state is the first field after the program's name,
/// which stands in parentheses and may itself hold any character.
#[cfg(any(target_os = "linux", target_os = "android", test))]
fn is_over(stat: &[u8]) -> bool {
    let state = stat.iter().rposition(|c| *c == b')').and_then(|end| stat.get(end + 2));
    matches!(state, Some(b'Z' | b'X' | b'x'))
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
    fn this_process_lives() {
        assert!(alive(std::process::id()));
    }
}
