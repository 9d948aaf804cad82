//! What running programs cost: the memory and the processor time of their process groups.
//!
//! Read when a client wants to know it, for all programs at once and off the serving threads, and
//! kept for [`KEPT`]. No timer reads it, so that an idle daemon is not woken. On Linux it comes
//! from `/proc` (proc(5)); on other systems there are no figures.
//!
//! Never here: which scenario a program belongs to, and whether a cost is high.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::group::ProcessGroup;
use crate::model::ProgramCost;
use crate::runtime::{Clock, Tasks};

/// How long the figures of a reading are given out before they are read again.
const KEPT: Duration = Duration::from_secs(5);

/// How long a client waits for a reading at most: a process that hangs in the system may hold it
/// up.
const READING_WAIT: Duration = Duration::from_millis(500);

/// What programs cost, by the number of their start.
pub(super) type CostTable = BTreeMap<u64, ProgramCost>;

/// The groups of programs, by the number of their start.
pub(super) type ProgramGroups = BTreeMap<u64, ProcessGroup>;

/// Reads what programs cost, once for all clients that want it at the same time.
#[derive(Debug)]
pub(super) struct ProgramCosts {
    reading: watch::Sender<CostReading>,
    tasks: Tasks,
    clock: Clock,
}

/// The last figures, and whether newer ones are being read.
#[derive(Debug, Default)]
struct CostReading {
    table: Arc<CostTable>,
    read_at: Option<Instant>,
    under_way_since: Option<Instant>,
}

impl CostReading {
    /// Whether a reading has to begin; from then on it is under way.
    fn begin(&mut self, now: Instant) -> bool {
        let is_recent = self
            .read_at
            .is_some_and(|at| now.saturating_duration_since(at) < KEPT);
        if is_recent || self.under_way_since.is_some() {
            return false;
        }
        self.under_way_since = Some(now);
        true
    }

    /// Takes what was read. The processor time of a program never falls, also when a process ended
    /// whose parent did not wait for it, so that its time is in no other process.
    fn end(&mut self, mut table: CostTable, now: Instant) {
        for (number, cost) in &mut table {
            if let Some(before) = self.table.get(number) {
                cost.processor_time = cost.processor_time.max(before.processor_time);
            }
        }
        self.table = Arc::new(table);
        self.read_at = Some(now);
        self.under_way_since = None;
    }
}

impl ProgramCosts {
    /// No figures yet.
    pub(super) fn new(tasks: Tasks, clock: Clock) -> Self {
        Self {
            reading: watch::Sender::default(),
            tasks,
            clock,
        }
    }

    /// The figures of now, or those of a few seconds ago. After [`READING_WAIT`] those that were
    /// read last, however old.
    pub(super) async fn current(&self, groups: impl FnOnce() -> ProgramGroups) -> Arc<CostTable> {
        let now = self.clock.now();
        let begins = self.reading.send_if_modified(|reading| reading.begin(now));
        if begins {
            self.start(groups());
        }
        let mut reading = self.reading.subscribe();
        let since = reading.borrow().under_way_since;
        if let Some(since) = since {
            let ended = reading.wait_for(|reading| reading.under_way_since.is_none());
            // One that takes longer has no result yet, and goes on.
            let _ = tokio::time::timeout_at(since + READING_WAIT, ended).await;
        }
        Arc::clone(&self.reading.borrow().table)
    }

    /// Reads in a task of its own, so that a client that goes away does not end it.
    fn start(&self, groups: ProgramGroups) {
        let reading = self.reading.clone();
        let tasks = self.tasks.clone();
        let clock = self.clock;
        self.tasks.spawn(async move {
            let table = tasks.blocking(move || read(&groups)).await;
            reading.send_modify(|reading| reading.end(table, clock.now()));
        });
    }
}

/// Reads what the processes of these groups cost. Takes some milliseconds.
#[cfg(target_os = "linux")]
fn read(groups: &ProgramGroups) -> CostTable {
    let numbers: BTreeMap<ProcessGroup, u64> = groups
        .iter()
        .map(|(number, group)| (*group, *number))
        .collect();
    let mut table = CostTable::new();
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return table;
    };
    for process in processes.flatten() {
        let name = process.file_name();
        if !name.as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let folder = process.path();
        // One that has ended meanwhile costs no more.
        let Some(read) = proc_files::ProcessFiles::read(&folder) else {
            continue;
        };
        if let Some(number) = numbers.get(&read.group) {
            table.entry(*number).or_default().add(read.cost());
        }
    }
    table
}

#[cfg(not(target_os = "linux"))]
fn read(_: &ProgramGroups) -> CostTable {
    CostTable::new()
}

/// The files of one process below `/proc`.
#[cfg(target_os = "linux")]
mod proc_files {
    use std::path::Path;
    use std::time::Duration;

    use super::super::group::ProcessGroup;
    use crate::metrics::process::{TICKS_PER_SECOND, named_number, stat_field};
    use crate::model::{MemoryMeasure, ProgramCost};

    /// A process, as far as `/proc/PID/stat` says.
    pub(super) struct ProcessFiles<'a> {
        folder: &'a Path,
        pub(super) group: ProcessGroup,
        is_zombie: bool,
        ticks: u64,
    }

    impl<'a> ProcessFiles<'a> {
        /// The process with this folder; `None` if it has ended.
        pub(super) fn read(folder: &'a Path) -> Option<Self> {
            // The name of a program may be no UTF-8.
            let stat = std::fs::read(folder.join("stat")).ok()?;
            let stat = String::from_utf8_lossy(&stat);
            // Its own time and the kernel's for it, and both of its children that have ended.
            let ticks = (14..=17).filter_map(|field| stat_field::<u64>(&stat, field));
            Some(Self {
                folder,
                group: ProcessGroup::led_by(stat_field(&stat, 5)?),
                is_zombie: stat_field(&stat, 3) == Some('Z'),
                ticks: ticks.sum(),
            })
        }

        /// What it costs. One that has ended, and for which its parent has not waited yet, costs
        /// its time only.
        pub(super) fn cost(&self) -> ProgramCost {
            let memory = memory(self.folder).filter(|_| !self.is_zombie);
            let memory = memory.unwrap_or_default();
            ProgramCost {
                processes: usize::from(!self.is_zombie),
                memory_bytes: memory.bytes,
                memory_measure: memory.measure,
                processor_time: Duration::from_secs(self.ticks) / TICKS_PER_SECOND,
            }
        }
    }

    /// The memory of one process.
    #[derive(Debug, Default, PartialEq, Eq)]
    pub(super) struct ProcessMemory {
        pub(super) bytes: u64,
        pub(super) measure: MemoryMeasure,
    }

    /// The memory of the process with this folder: its proportional share, and where that may not
    /// be read (a program that changed its user, Linux before 4.14) all that is resident.
    pub(super) fn memory(folder: &Path) -> Option<ProcessMemory> {
        let kib = |file: &str, name: &str| -> Option<u64> {
            let text = std::fs::read_to_string(folder.join(file)).ok()?;
            named_number(&text, name)
        };
        let proportional = kib("smaps_rollup", "Pss:");
        let measure = match proportional {
            Some(_) => MemoryMeasure::Proportional,
            None => MemoryMeasure::Resident,
        };
        let kib = proportional.or_else(|| kib("status", "VmRSS:"))?;
        let bytes = kib.saturating_mul(1_024);
        Some(ProcessMemory { bytes, measure })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(number: u64, seconds: u64) -> CostTable {
        let cost = ProgramCost {
            processor_time: Duration::from_secs(seconds),
            ..ProgramCost::default()
        };
        CostTable::from([(number, cost)])
    }

    #[tokio::test(start_paused = true)]
    async fn figures_are_read_at_most_every_few_seconds() {
        let now = Clock::system().now();
        let mut reading = CostReading::default();
        assert!(reading.begin(now));
        assert!(!reading.begin(now + KEPT), "one is under way");
        reading.end(CostTable::new(), now);
        assert!(!reading.begin(now + KEPT / 2));
        assert!(reading.begin(now + KEPT));
    }

    #[tokio::test(start_paused = true)]
    async fn the_processor_time_of_a_program_never_falls() {
        let now = Clock::system().now();
        let mut reading = CostReading::default();
        let seconds = |reading: &CostReading, number: u64| {
            reading
                .table
                .get(&number)
                .map(|cost| cost.processor_time.as_secs())
        };
        reading.end(table(1, 9), now);
        reading.end(table(1, 7), now);
        assert_eq!(seconds(&reading, 1), Some(9));
        reading.end(table(2, 1), now);
        assert_eq!(seconds(&reading, 2), Some(1), "another run begins anew");
        assert_eq!(seconds(&reading, 1), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reading_that_hangs_holds_no_client_up() {
        let costs = ProgramCosts::new(Tasks::new(), Clock::system());
        let began = costs.clock.now();
        costs.reading.send_modify(|reading| {
            reading.table = Arc::new(table(1, 3));
            reading.under_way_since = Some(began);
        });
        for _ in 0..3 {
            let found = costs.current(ProgramGroups::new).await;
            assert_eq!(found.len(), 1, "what was read before");
        }
        assert_eq!(costs.clock.now() - began, READING_WAIT);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_is_the_proportional_share_where_that_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text);
        let measured =
            || proc_files::memory(folder.path()).map(|memory| (memory.bytes, memory.measure));
        assert_eq!(measured(), None);
        write("status", "Name:\tx\nVmRSS:\t     300 kB\nThreads:\t1\n").unwrap();
        let resident = Some((300 << 10, crate::model::MemoryMeasure::Resident));
        assert_eq!(measured(), resident);
        let rollup = "55d0-7ffd ---p 00000000 00:00 0 [rollup]\nRss:  300 kB\nPss:  120 kB\nPss_Dirty:  9 kB\n";
        write("smaps_rollup", rollup).unwrap();
        let proportional = Some((120 << 10, crate::model::MemoryMeasure::Proportional));
        assert_eq!(measured(), proportional);
    }
}
