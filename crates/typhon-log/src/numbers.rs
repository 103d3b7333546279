//! The two numbers of the log.

use crate::format::POSITION_ALIGNMENT;
use std::fmt;

/// A byte position in the stream of frames; of a frame, the position where it ends. "Covered by a watermark" is
/// `lsn <= watermark`, everywhere. Never issued twice in the life of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Where the stream of a new database begins.
    pub const START: Self = Self(4096);

    /// The last position at which a frame can end. What ends up to here ends up to there, and what is on disk says only
    /// such positions: any other there is taken for damage.
    pub(crate) const fn of_frame_end(self) -> Self {
        Self(self.0 - self.0 % POSITION_ALIGNMENT)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The sequence number of a commit or of the end of a fence. Their order is that of the positions. Never issued twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tsn(pub u64);

impl fmt::Display for Tsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
