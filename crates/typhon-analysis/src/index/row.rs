//! One row: its entries in groups, and its levels of detail.

use super::group::{self, Entry, GROUP_ENTRIES, GroupHead, GroupReader};
use super::pyramid::{Pyramid, PyramidWriter};
use super::store::{Store, StoreWriter};
use super::time::TimeBase;
use std::io;

/// A row of a lane.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Row {
    /// Spans that overlap others without nesting.
    pub(crate) is_overflow: bool,
    /// Too many rows were needed: the spans of this one may overlap and are drawn as aggregates only.
    pub(crate) is_shared: bool,
    /// References are places in the row that this one is a part of, not record numbers.
    pub(crate) is_indexed: bool,
    pub(crate) groups: Vec<GroupHead>,
    /// Rows of a single group have none.
    pub(crate) pyramid: Option<Box<Pyramid>>,
}

impl Row {
    /// Number of entries.
    pub(crate) fn count(&self) -> u64 {
        self.groups.last().map_or(0, |last| last.first_index + u64::from(last.count))
    }

    /// The groups that may hold an entry that touches or begins in the ticks from `start` to before `end`.
    #[inline]
    pub(crate) fn touching(groups: &[GroupHead], start: i64, end: i64) -> &[GroupHead] {
        let first = groups.partition_point(|head| head.reach < start);
        let after = groups.partition_point(|head| head.first_start < end);
        &groups[first..after.max(first)]
    }

    /// The entry at a place.
    ///
    /// # Errors
    /// As [`GroupReader::read`].
    pub(crate) fn entry(
        &self,
        index: u64,
        store: &Store,
        reader: &mut GroupReader,
    ) -> io::Result<Option<Entry>> {
        let at = self.groups.partition_point(|head| head.first_index + u64::from(head.count) <= index);
        let Some(head) = self.groups.get(at) else { return Ok(None) };
        Ok(reader.read(store, head)?.get((index - head.first_index) as usize).copied())
    }

    /// The last entry that begins at or before `ticks`, with its place.
    ///
    /// # Errors
    /// As [`GroupReader::read`].
    pub(crate) fn last_at(
        &self,
        ticks: i64,
        store: &Store,
        reader: &mut GroupReader,
    ) -> io::Result<Option<(u64, Entry)>> {
        let after = self.groups.partition_point(|head| head.first_start <= ticks);
        let Some(head) = after.checked_sub(1).and_then(|at| self.groups.get(at)) else { return Ok(None) };
        let entries = reader.read(store, head)?;
        let at = entries.partition_point(|entry| entry.start <= ticks);
        Ok(at.checked_sub(1).map(|at| (head.first_index + at as u64, entries[at])))
    }

    /// Place of the first entry that begins at or after `ticks`; the number of entries when there is none.
    ///
    /// # Errors
    /// As [`GroupReader::read`].
    pub(crate) fn first_from(&self, ticks: i64, store: &Store, reader: &mut GroupReader) -> io::Result<u64> {
        let at = self.groups.partition_point(|head| head.last_start < ticks);
        let Some(head) = self.groups.get(at) else { return Ok(self.count()) };
        let entries = reader.read(store, head)?;
        Ok(head.first_index + entries.partition_point(|entry| entry.start < ticks) as u64)
    }
}

/// Collects the entries of a row in order of their starts.
#[derive(Debug, Default)]
pub(crate) struct RowWriter {
    pub(crate) row: Row,
    /// Levels are built from the groups in the end, which takes time, and not while entries come, which takes memory.
    pub(crate) builds_levels_late: bool,
    levels: Option<Box<PyramidWriter>>,
    waiting: Vec<Entry>,
}

/// Groups that show how dense a row is.
const GROUPS_BEFORE_LEVELS: usize = 8;

impl RowWriter {
    /// Adds an entry.
    ///
    /// # Errors
    /// As [`StoreWriter::append`].
    #[inline]
    pub(crate) fn push(&mut self, entry: Entry, time: TimeBase, store: &StoreWriter) -> io::Result<()> {
        self.waiting.push(entry);
        if self.waiting.len() == GROUP_ENTRIES { self.pack(time, store) } else { Ok(()) }
    }

    fn pack(&mut self, time: TimeBase, store: &StoreWriter) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let Row { groups, .. } = &mut self.row;
        groups.push(group::write(&self.waiting, groups.last(), time, store)?);
        if let Some(levels) = &mut self.levels {
            levels.add(&self.waiting, groups, time, store)?;
        } else if !self.builds_levels_late && groups.len() == GROUPS_BEFORE_LEVELS {
            let Row { is_shared, is_indexed, groups, .. } = &self.row;
            let levels = PyramidWriter::begin(groups, *is_shared, *is_indexed, time, store)?;
            self.levels = Some(Box::new(levels));
        }
        self.waiting.clear();
        Ok(())
    }

    /// Packs what waits and gives its memory back: there may be many rows.
    ///
    /// # Errors
    /// As [`StoreWriter::append`].
    pub(crate) fn flush(&mut self, time: TimeBase, store: &StoreWriter) -> io::Result<()> {
        self.pack(time, store)?;
        self.waiting = Vec::new();
        Ok(())
    }

    /// Packs what waits and builds the levels.
    ///
    /// # Errors
    /// As [`StoreWriter::append`].
    pub(crate) fn finish(mut self, time: TimeBase, store: &StoreWriter) -> io::Result<Row> {
        self.flush(time, store)?;
        let Row { is_shared, is_indexed, groups, .. } = &self.row;
        let levels = match self.levels.take() {
            None if groups.len() > 1 => {
                Some(Box::new(PyramidWriter::whole(groups, *is_shared, *is_indexed, time, store)?))
            }
            levels => levels,
        };
        if let Some(levels) = levels {
            self.row.pyramid = Some(Box::new(levels.finish(groups, time, store)?));
        }
        Ok(self.row)
    }
}
