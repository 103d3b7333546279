//! Which record is where.

use typhon_trace::block::BlockHeader;
use typhon_trace::reader::{BlockEntry, BlockSummary, Lead};

/// One block of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockPlace {
    pub(crate) offset: u64,
    pub(crate) header: BlockHeader,
    /// Records in the blocks before it.
    pub(crate) first_record: u64,
    /// Its events may be used.
    pub(crate) is_delivered: bool,
    /// Earliest start and latest end of its events, ticks; inverted without events.
    pub(crate) first_ticks: i64,
    pub(crate) last_ticks: i64,
}

/// All blocks in file order. Records are numbered through the file: record r of block b is
/// `blocks[b].first_record + r`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BlockTable {
    pub(crate) blocks: Vec<BlockPlace>,
    pub(crate) records: u64,
}

/// Identity of an event in its file (brief 11 §1): block ordinal and place in the block, markers included, as in the
/// `event` of `typhon trace dump`. It stays the same for as long as the file does.
///
/// As a number it is `block << 16 | record`. Foreign files may hold blocks of more than 65,536 records; the part of the
/// place that has no room there is in the bits from 48 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// Position in the sequence of blocks, from 0.
    pub block: u32,
    /// Position in the block, from 0.
    pub record: u32,
}

impl EventId {
    /// As a number.
    pub fn to_u64(self) -> u64 {
        let record = u64::from(self.record);
        (record >> 16) << 48 | u64::from(self.block) << 16 | record & 0xFFFF
    }

    /// From a number. Any number is an id, though there may be no such event.
    pub fn from_u64(id: u64) -> Self {
        Self { block: (id >> 16) as u32, record: ((id >> 48) << 16 | id & 0xFFFF) as u32 }
    }
}

impl BlockTable {
    /// Adds a block; gives the number of its first record.
    pub(crate) fn push(
        &mut self,
        summary: &BlockSummary,
        is_delivered: bool,
        extent: Option<(i64, i64)>,
    ) -> u64 {
        let first_record = self.records;
        let (first_ticks, last_ticks) = extent.unwrap_or((i64::MAX, i64::MIN));
        let BlockEntry { offset, header, .. } = summary.entry;
        self.records += u64::from(summary.walked_records);
        self.blocks.push(BlockPlace { offset, header, first_record, is_delivered, first_ticks, last_ticks });
        first_record
    }

    /// The event of a record number.
    pub(crate) fn event(&self, ordinal: u64) -> Option<EventId> {
        let after = self.blocks.partition_point(|block| block.first_record <= ordinal);
        let block = after.checked_sub(1)?;
        let record = ordinal - self.blocks[block].first_record;
        Some(EventId { block: u32::try_from(block).ok()?, record: u32::try_from(record).ok()? })
    }

    /// The record number of an event.
    pub(crate) fn ordinal(&self, event: EventId) -> Option<u64> {
        let first = self.blocks.get(event.block as usize)?.first_record;
        let after = self.blocks.get(event.block as usize + 1).map_or(self.records, |next| next.first_record);
        Some(first + u64::from(event.record)).filter(|ordinal| *ordinal < after)
    }

    /// How many records a block has.
    pub(crate) fn records_of(&self, block: u32) -> u64 {
        let first =
            |block: u32| self.blocks.get(block as usize).map_or(self.records, |block| block.first_record);
        first(block.saturating_add(1)) - first(block)
    }

    /// Where to read a block.
    pub(crate) fn entry(&self, block: u32) -> Option<BlockEntry> {
        let place = self.blocks.get(block as usize)?;
        Some(BlockEntry { index: block.into(), offset: place.offset, header: place.header, lead: Lead::Gap })
    }

    /// The time in which something at a file offset lies: from the end of the last readable block before it to the
    /// start of the first one after it, in ticks. `None` at the end that has no such block.
    pub(crate) fn around(&self, offset: u64) -> (Option<i64>, Option<i64>) {
        let at = self.blocks.partition_point(|block| block.offset < offset);
        let readable = |block: &&BlockPlace| block.is_delivered && block.first_ticks <= block.last_ticks;
        let before = self.blocks[..at].iter().rev().find(readable).map(|block| block.last_ticks);
        let from = if self.blocks.get(at).is_some_and(|block| block.offset == offset) { at + 1 } else { at };
        let after =
            self.blocks[from.min(self.blocks.len())..].iter().find(readable).map(|block| block.first_ticks);
        (before, after)
    }
}

#[cfg(test)]
mod tests {
    use super::EventId;

    #[test]
    fn ids_are_block_and_record_as_long_as_the_record_fits() {
        for (block, record, number) in [(0, 0, 0), (11, 204, 11 << 16 | 204), (3, 65_536, 1 << 48 | 3 << 16)]
        {
            let id = EventId { block, record };
            assert_eq!((id.to_u64(), EventId::from_u64(number)), (number, id));
        }
        let last = EventId { block: u32::MAX, record: 1_400_000 };
        assert_eq!(EventId::from_u64(last.to_u64()), last);
    }
}
