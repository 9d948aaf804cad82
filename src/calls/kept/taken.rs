//! How much room items take.

/// How much some items take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::calls) struct Taken {
    pub(in crate::calls) count: usize,
    pub(in crate::calls) bytes: usize,
}

impl Taken {
    /// What one item of so many bytes takes.
    pub(in crate::calls) fn by_one(bytes: usize) -> Self {
        Self { count: 1, bytes }
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            bytes: self.bytes + other.bytes,
        }
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_sub(other.count),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    pub(super) fn is_within(self, most: Self) -> bool {
        self.count <= most.count && self.bytes <= most.bytes
    }

    /// Its size by the limit that is exceeded.
    pub(super) fn size(self, by_count: bool) -> usize {
        if by_count { self.count } else { self.bytes }
    }
}
