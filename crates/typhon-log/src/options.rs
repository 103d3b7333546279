//! How a log is set up.

use crate::LogError;
use crate::format::{BLOCK_ALIGNMENT, BLOCK_HEADER_BYTES, SEGMENT_HEADER_BYTES};
use std::time::Duration;

/// The longest that a group may wait: whoever wants a group to wait longer does not want it to be written by itself, and
/// appends without one.
const GROUP_INTERVAL_MAX: Duration = Duration::from_secs(24 * 3600);

/// How a block becomes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncMode {
    /// Write, then sync the file.
    #[default]
    Flush,
    /// Each write is durable by itself (`RWF_DSYNC`), which drives with power-loss protection or fast forced unit
    /// access may do sooner.
    WriteThrough,
}

/// Options of a log. [`Options::default`] suits a server; [`Options::small`] a test or a small tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Memory between producers and disk: a power of two, 4 KiB to 512 MiB. The largest frame is half of it.
    pub ring_bytes: u64,
    /// Length of a segment file: a multiple of 4096, at least 8 KiB. A frame that is larger gets a segment of its own.
    pub segment_bytes: u64,
    /// Files kept ready to become segments. After a checkpoint there are as many more as it gave up.
    pub spare_segments: usize,
    /// Frames are written in blocks of at most so many bytes, unless a single frame is larger.
    pub block_bytes: u64,
    /// Oldest age of a frame of [`Log::group`](crate::Log::group) before it is written: above zero, at most 24 hours.
    pub group_interval: Duration,
    /// The total length of all segments, beyond which appends are refused until some were reclaimed: room for at least
    /// two, also of those that the largest frames get.
    pub max_bytes: u64,
    /// How blocks become durable.
    pub sync: SyncMode,
    /// Write past the cache of the operating system where the file system can do that.
    pub direct: bool,
    /// May a thread that waits for durability write the group itself? It saves two thread switches for each wait; but
    /// then a write that the device does not answer outlasts the wait's deadline.
    pub waiters_write: bool,
    /// Start the thread `Typhon-WAL-Writer`, which writes what nobody waits for: groups, flushes, a ring half full.
    pub writer_thread: bool,
    /// Layout of the record bodies, kept in segment headers; opaque to the log.
    pub schema_epoch: u32,
    /// Open a log only if there is one ([`Store::open`](crate::Store::open)): a path that was mistyped is an error, and
    /// no empty log.
    pub must_exist: bool,
    /// Open although durable frames are damaged or missing behind the first segment that is needed, and lose everything
    /// from there on.
    pub truncate_damage: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ring_bytes: 8 << 20,
            segment_bytes: 16 << 20,
            spare_segments: 2,
            block_bytes: 1 << 20,
            group_interval: Duration::from_millis(5),
            max_bytes: 4 << 30,
            sync: SyncMode::Flush,
            direct: true,
            waiters_write: true,
            writer_thread: true,
            schema_epoch: 0,
            must_exist: false,
            truncate_damage: false,
        }
    }
}

impl Options {
    /// A few hundred KiB on disk and in memory, and no thread: waiting threads write.
    pub fn small() -> Self {
        Self {
            ring_bytes: 64 << 10,
            segment_bytes: 256 << 10,
            spare_segments: 0,
            block_bytes: 64 << 10,
            writer_thread: false,
            ..Self::default()
        }
    }

    /// Length of a segment with room for a block of so many bytes of frames.
    pub(crate) fn segment_bytes_for(&self, frames_bytes: u64) -> u64 {
        let block_bytes = (BLOCK_HEADER_BYTES as u64 + frames_bytes).next_multiple_of(BLOCK_ALIGNMENT);
        (SEGMENT_HEADER_BYTES + block_bytes).max(self.segment_bytes)
    }

    /// Checks everything.
    ///
    /// # Errors
    /// All faults at once.
    pub(crate) fn validate(&self) -> Result<(), LogError> {
        // The newest segment is never reclaimed: beside the longest one there must be room for another.
        let max_bytes_least = self.segment_bytes_for(self.ring_bytes / 2).saturating_mul(2);
        let rules = [
            (
                self.ring_bytes.is_power_of_two() && (4 << 10..=512 << 20).contains(&self.ring_bytes),
                format!("ring_bytes is {}, not a power of two from 4 KiB to 512 MiB", self.ring_bytes),
            ),
            (
                self.segment_bytes.is_multiple_of(4096) && (8 << 10..=1 << 32).contains(&self.segment_bytes),
                format!(
                    "segment_bytes is {}, not a multiple of 4096 from 8 KiB to 4 GiB",
                    self.segment_bytes
                ),
            ),
            (
                (4096..=1 << 30).contains(&self.block_bytes),
                format!("block_bytes is {}, not from 4 KiB to 1 GiB", self.block_bytes),
            ),
            (
                !self.group_interval.is_zero() && self.group_interval <= GROUP_INTERVAL_MAX,
                format!(
                    "group_interval is {:?}, not above zero and at most {GROUP_INTERVAL_MAX:?} (24 hours)",
                    self.group_interval
                ),
            ),
            (
                self.max_bytes >= max_bytes_least,
                format!(
                    "max_bytes is {}, less than two segments with room for the largest frame, {max_bytes_least}",
                    self.max_bytes
                ),
            ),
            (
                self.waiters_write || self.writer_thread,
                "nobody writes: set waiters_write or writer_thread".to_owned(),
            ),
        ];
        let faults: Vec<String> =
            rules.into_iter().filter(|(holds, _)| !holds).map(|(_, fault)| fault).collect();
        if faults.is_empty() { Ok(()) } else { Err(LogError::Options(faults)) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_groups_has_limits_that_the_error_says() {
        let validate = |group_interval| Options { group_interval, ..Options::small() }.validate();
        for interval in [Duration::from_nanos(1), GROUP_INTERVAL_MAX] {
            assert!(validate(interval).is_ok(), "{interval:?}");
        }
        let beyond = GROUP_INTERVAL_MAX + Duration::from_nanos(1);
        // The third is -1 ns once it is cut to 64 bits.
        for interval in [Duration::ZERO, beyond, Duration::from_nanos(u64::MAX), Duration::MAX] {
            let Err(error) = validate(interval) else { panic!("{interval:?}") };
            assert!(error.to_string().contains("at most 86400s (24 hours)"), "{error}");
        }
    }
}
