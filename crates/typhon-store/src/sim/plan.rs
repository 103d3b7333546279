//! What goes wrong on a simulated disk, and what is left after the power went.

/// Faults while the disk runs. The default is a disk that works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Writes that fail, per million calls. A part of the bytes may have arrived.
    pub write_error: u32,
    /// Syncs that fail, per million calls. Some bytes became durable; the others are taken for clean, so that a later
    /// sync succeeds without them, as operating systems do.
    pub sync_error: u32,
    /// Calls needing space that find none, per million.
    pub no_space: u32,
    /// Writes that write less than asked, per million calls.
    pub short_write: u32,
    /// Every sync succeeds and does nothing: the disk lies. For negative controls.
    pub lying_sync: bool,
}

/// How one call goes wrong that was chosen beforehand ([`SimIo::fail_at`](super::SimIo::fail_at)). Calls that cannot go
/// wrong in this way are not affected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// A write, sync or change of a name fails. Of a write a part may have arrived, of a sync a part may be durable.
    Error,
    /// A call that needs space finds none.
    NoSpace,
    /// A write writes less than asked.
    ShortWrite,
}

impl Failure {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Error, Self::NoSpace, Self::ShortWrite];
}

/// What a power cut leaves of the bytes that were written and not synced. Names that were not synced survive one by
/// one, by chance, except for [`Survival::Nothing`] and [`Survival::Everything`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survival {
    /// A clean cut: only what was synced.
    Nothing,
    /// All that was written, as if the process had been killed.
    Everything,
    /// Everything up to some sector of some write: the last write is torn.
    Torn,
    /// Any subset of the writes, each whole.
    Subset,
    /// The lengths, but zeros instead of the bytes: metadata reached the disk, data did not.
    Zeros,
    /// Each sector by itself: old, any version written since, or zeros.
    Mixed,
}

impl Survival {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Nothing, Self::Everything, Self::Torn, Self::Subset, Self::Zeros, Self::Mixed];
}
