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

/// Which columns of a group are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Columns {
    /// All of them.
    All,
    /// Names, flags and references: starts and lengths stay 0. They are most of the bytes.
    WithoutTimes,
}

/// Reads groups of one store, keeping its buffers and the group it read last.
#[derive(Debug, Default)]
pub(crate) struct GroupReader {
    held: Option<(Piece, Columns)>,
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
        self.read_columns(store, head, Columns::All)
    }

    /// The entries of a group with these columns only.
    ///
    /// # Errors
    /// As [`Pieces::read`].
    pub(crate) fn read_columns(
        &mut self,
        store: &impl Pieces,
        head: &GroupHead,
        wanted: Columns,
    ) -> io::Result<&[Entry]> {
        if head.count as usize > GROUP_ENTRIES {
            return Err(damaged());
        }
        if self.held == Some((head.piece, wanted)) {
            return Ok(&self.entries);
        }
        self.held = None;
        store.read(head.piece, &mut self.bytes)?;
        self.entries.clear();
        self.entries.resize(head.count as usize, Entry::default());
        let (mut start, mut reference) = (head.first_start, 0u64);
        let (entries, mut columns) = (&mut self.entries, Unpacker::new(&self.bytes, &mut self.column));
        match wanted {
            Columns::All => {
                columns.take(entries, |entry, gap| {
                    start = start.wrapping_add(gap as i64);
                    entry.start = start;
                })?;
                columns.take(entries, |entry, length| entry.length = unzigzag(length))?;
            }
            Columns::WithoutTimes => {
                columns.skip(entries.len())?;
                columns.skip(entries.len())?;
            }
        }
        columns.take(entries, |entry, name| entry.name = name as u16)?;
        columns.take(entries, |entry, flags| entry.flags = flags as u8)?;
        columns.take(entries, |entry, step| {
            reference = reference.wrapping_add(unzigzag(step) as u64);
            entry.reference = reference;
        })?;
        self.held = Some((head.piece, wanted));
        Ok(&self.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn a_reader_does_not_take_a_part_of_a_group_for_all_of_it() {
        let entry =
            |at: i64| Entry { start: 7 * at, length: at % 5, reference: 3 * at as u64, name: 9, flags: 1 };
        let entries: Vec<Entry> = (0..100).map(entry).collect();
        let time = TimeBase::new(Clock::new(1_000_000_000), 0);
        let store = StoreWriter::in_memory();
        let head = write(&entries, None, time, &store).expect("memory");
        let (store, mut reader) = (store.finish().expect("memory").0, GroupReader::default());
        let without_times: Vec<Entry> =
            entries.iter().map(|entry| Entry { start: 0, length: 0, ..*entry }).collect();
        for _ in 0..2 {
            assert_eq!(
                reader.read_columns(&store, &head, Columns::WithoutTimes).expect("a group"),
                without_times
            );
            assert_eq!(reader.read(&store, &head).expect("a group"), entries);
        }
    }
}
