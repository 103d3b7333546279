//! How much a system matters.

/// How much a system matters when there is not enough time for all. The numbers are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Priority {
    /// Never throttled, never left out.
    Critical = 0,
    /// Never throttled, never left out.
    High = 1,
    /// Throttled under overload, if it has a throttled divisor.
    #[default]
    Normal = 2,
    /// As `Normal`; left out under overload, if it may be.
    Low = 3,
}
