//! What a program costs that was started here.

use std::time::Duration;

/// What the processes of a program cost: the process that was started, and all others of its
/// process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProgramCost {
    /// How many processes there are.
    pub processes: usize,
    /// Their memory in RAM, in bytes.
    pub memory_bytes: u64,
    /// How that memory was counted.
    pub memory_measure: MemoryMeasure,
    /// The processor time that they took since the program was started, with that of their children
    /// that have ended.
    pub processor_time: Duration,
}

/// How the memory of several processes was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum MemoryMeasure {
    /// Memory that processes share is divided between them (proportional set size).
    #[default]
    Proportional,
    /// Memory that processes share is counted in each of them (resident set size), because the
    /// system does not show more.
    Resident,
}

impl MemoryMeasure {
    /// Every measure.
    pub const ALL: [Self; 2] = [Self::Proportional, Self::Resident];

    /// Its name for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Proportional => "proportional",
            Self::Resident => "resident",
        }
    }
}

impl ProgramCost {
    /// Adds what another process of the program costs.
    pub(crate) fn add(&mut self, other: Self) {
        self.processes += other.processes;
        self.memory_bytes = self.memory_bytes.saturating_add(other.memory_bytes);
        self.memory_measure = self.memory_measure.max(other.memory_measure);
        self.processor_time = self.processor_time.saturating_add(other.processor_time);
    }
}
