//! Metrics of the process, with the names that all Prometheus clients use. Read from `/proc`
//! (proc(5)); no metrics on systems without it.

use std::fs;
use std::str::FromStr;

use super::family::{Family, MetricKind};

/// Clock ticks per second in `/proc/self/stat`: the unit that the kernel shows to programs
/// (`USER_HZ`), whatever its internal unit is.
pub(crate) const TICKS_PER_SECOND: u32 = 100;
/// `/proc/self/status` counts memory in KiB.
const KIB: f64 = 1024.0;

/// The metrics of this process. Values that cannot be read are left out. Reads files, so it must
/// not run on async threads.
pub fn families() -> Vec<Family> {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let machine = fs::read_to_string("/proc/stat").unwrap_or_default();
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    // One of them is the folder itself, which is open during the read.
    let fds = fs::read_dir("/proc/self/fd")
        .ok()
        .map(|open| open.count().saturating_sub(1));
    let seconds = |ticks: f64| ticks / f64::from(TICKS_PER_SECOND);
    let cpu = stat_field::<f64>(&stat, 14)
        .zip(stat_field::<f64>(&stat, 15))
        .map(|(user, system)| seconds(user + system));
    let started = stat_field(&stat, 22)
        .zip(named_number::<f64>(&machine, "btime"))
        .map(|(ticks, boot)| boot + seconds(ticks));
    let memory = |name| named_number::<f64>(&status, name).map(|kib| kib * KIB);
    let counter = |name, help, value: Option<f64>| {
        Some(Family::new(MetricKind::Counter, name, help).value(value?))
    };
    let gauge = |name, help, value: Option<f64>| {
        Some(Family::new(MetricKind::Gauge, name, help).value(value?))
    };
    let fds = fds
        .and_then(|count| u32::try_from(count).ok())
        .map(f64::from);
    let all = [
        counter(
            "process_cpu_seconds",
            "Processor time of the process, its own and the kernel's for it.",
            cpu,
        ),
        gauge(
            "process_resident_memory_bytes",
            "Memory of the process that is in RAM.",
            memory("VmRSS:"),
        ),
        gauge(
            "process_virtual_memory_bytes",
            "Memory that the process has mapped.",
            memory("VmSize:"),
        ),
        gauge(
            "process_open_fds",
            "Open file descriptors, sockets included.",
            fds,
        ),
        gauge(
            "process_max_fds",
            "Limit of open file descriptors.",
            named_number(&limits, "Max open files"),
        ),
        gauge(
            "process_threads",
            "Threads of the process.",
            named_number(&status, "Threads:"),
        ),
        gauge(
            "process_start_time_seconds",
            "When the process started.",
            started,
        ),
    ];
    all.into_iter().flatten().collect()
}

/// A field of `/proc/PID/stat`, counted from 1 as in proc(5). The second is the program's name in
/// brackets, which may contain any characters.
pub(crate) fn stat_field<T: FromStr>(stat: &str, number: usize) -> Option<T> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace()
        .nth(number.checked_sub(3)?)?
        .parse()
        .ok()
}

/// The number after a name at the beginning of a line. `None` for `unlimited`.
pub(crate) fn named_number<T: FromStr>(text: &str, name: &str) -> Option<T> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 3 0 12345 1000 20";
        assert_eq!(stat_field::<f64>(stat, 14), Some(250.0));
        assert_eq!(stat_field::<f64>(stat, 15), Some(50.0));
        assert_eq!(stat_field::<f64>(stat, 22), Some(12345.0));
        assert_eq!(stat_field::<f64>("", 14), None);
        assert_eq!(stat_field::<f64>(stat, 1), None);
        assert_eq!(stat_field::<f64>(stat, 99), None);
        assert_eq!(
            named_number(
                "Max open files            1024                 4096   files",
                "Max open files"
            ),
            Some(1024.0)
        );
        assert_eq!(
            named_number("VmRSS:\t  12 kB\nThreads:\t3", "Threads:"),
            Some(3.0)
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_tells_all_of_it() {
        let names: Vec<_> = families().iter().map(|family| family.name).collect();
        assert_eq!(names.len(), 7, "{names:?}");
    }
}
