//! Groups: up to 4,096 consecutive entries of a row, packed column by column.
//!
//! | Column | Holds |
//! |---|---|
//! | gap | ticks from the start before, or from the head's first start; ≥ 0, rows are sorted |
//! | length | ticks; zigzag, since values of gauges have a sign |
//! | name | id |
//! | flags | `SPAN_…` bits |
//! | reference | difference to the one before, zigzag: record numbers, or places in the row |
//!
//! What decides whether a group must be read at all, and what stands for it as a whole, is in its head.

use super::packed::{Packer, Unpacker, unzigzag, zigzag};
use super::store::{Piece, Pieces, StoreWriter, damaged};
use super::time::TimeBase;
use std::io;

/// Entries of a group at most.
pub(crate) const GROUP_ENTRIES: usize = 4_096;

/// One entry of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Entry {
    pub(crate) start: i64,
    pub(crate) length: i64,
    /// Number of the record in the file, or place in the row, as the row says.
    pub(crate) reference: u64,
    pub(crate) name: u16,
    pub(crate) flags: u8,
}

impl Entry {
    #[inline]
    pub(crate) fn end(&self) -> i64 {
        self.start.saturating_add(self.length)
    }

    /// Start and end on the axis of the session. The end is converted, not the length: so neighbours stay neighbours.
    #[inline]
    pub(crate) fn extent_ns(&self, time: TimeBase) -> (u64, u64) {
        let start = time.ns(self.start);
        if self.length == 0 { (start, start) } else { (start, time.ns(self.end()).max(start)) }
    }
}

/// What is known of a group without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct GroupHead {
    pub(crate) piece: Piece,
    /// Entries before it in the row.
    pub(crate) first_index: u64,
    pub(crate) count: u32,
    pub(crate) first_start: i64,
    pub(crate) last_start: i64,
    /// The latest end in this group and those before it.
    pub(crate) reach: i64,
    /// Sum of durations.
    pub(crate) busy_ns: u64,
    /// The longest duration and its name.
    pub(crate) longest_ns: u64,
    pub(crate) longest_name: u16,
}

/// Packs entries, which are in order of their starts, into a group.
pub(crate) fn write(
    entries: &[Entry],
    before: Option<&GroupHead>,
    time: TimeBase,
    store: &StoreWriter,
) -> io::Result<GroupHead> {
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Err(damaged()) };
    let mut head = GroupHead {
        first_index: before.map_or(0, |before| before.first_index + u64::from(before.count)),
        count: entries.len() as u32,
        first_start: first.start,
        last_start: last.start,
        reach: before.map_or(i64::MIN, |before| before.reach),
        ..GroupHead::default()
    };
    for (at, entry) in entries.iter().enumerate() {
        let (start, end) = entry.extent_ns(time);
        let duration = end - start;
        head.busy_ns = head.busy_ns.saturating_add(duration);
        head.reach = head.reach.max(entry.end());
        if at == 0 || duration > head.longest_ns {
            (head.longest_ns, head.longest_name) = (duration, entry.name);
        }
    }
    let mut columns = Packer::new(entries, 8);
    let (mut start, mut reference) = (first.start, 0);
    columns.put(|entry| {
        let gap = entry.start.wrapping_sub(start) as u64;
        start = entry.start;
        gap
    });
    columns.put(|entry| zigzag(entry.length));
    columns.put(|entry| entry.name.into());
    columns.put(|entry| entry.flags.into());
    columns.put(|entry| {
        let step = entry.reference.wrapping_sub(reference) as i64;
        reference = entry.reference;
        zigzag(step)
    });
    head.piece = store.append(&columns.finish())?;
    Ok(head)
}

/// Reads groups of one store, keeping its buffers and the group it read last.
#[derive(Debug, Default)]
pub(crate) struct GroupReader {
    held: Option<Piece>,
    bytes: Vec<u8>,
    column: Vec<u64>,
    entries: Vec<Entry>,
}

impl GroupReader {
    /// The entries of a group.
    ///
    /// # Errors
    /// As [`Pieces::read`].
    pub(crate) fn read(&mut self, store: &impl Pieces, head: &GroupHead) -> io::Result<&[Entry]> {
        if head.count as usize > GROUP_ENTRIES {
            return Err(damaged());
        }
        if self.held == Some(head.piece) {
            return Ok(&self.entries);
        }
        self.held = None;
        store.read(head.piece, &mut self.bytes)?;
        self.entries.clear();
        self.entries.resize(head.count as usize, Entry::default());
        let (mut start, mut reference) = (head.first_start, 0u64);
        let (entries, mut columns) = (&mut self.entries, Unpacker::new(&self.bytes, &mut self.column));
        columns.take(entries, |entry, gap| {
            start = start.wrapping_add(gap as i64);
            entry.start = start;
        })?;
        columns.take(entries, |entry, length| entry.length = unzigzag(length))?;
        columns.take(entries, |entry, name| entry.name = name as u16)?;
        columns.take(entries, |entry, flags| entry.flags = flags as u8)?;
        columns.take(entries, |entry, step| {
            reference = reference.wrapping_add(unzigzag(step) as u64);
            entry.reference = reference;
        })?;
        self.held = Some(head.piece);
        Ok(&self.entries)
    }
}
