//! The merged events of a queue and how far each reader is.
//!
//! Events have absolute positions that never repeat: the first event ever merged is 0. `base` is the position of the
//! first one still stored, `end` is one past the last.

use super::counters::{QueueCounters, saturate};
use super::roles::Roles;
use crate::SystemIndex;
use std::sync::atomic::{AtomicU64, Ordering};
use typhon_sync::panics::drop_guarded;

pub(super) struct Store<T> {
    events: Vec<T>,
    base: u64,
    readers: Vec<Reader>,
    /// Position that all readers had passed when the tick began.
    passed_at_start: u64,
    peak_depth: u64,
    produced: u64,
    overflow: u64,
}

/// A system that reads or drains.
struct Reader {
    system: SystemIndex,
    drains: bool,
    /// Events before this position are behind the reader.
    cursor: u64,
    /// Where the cursor will be if the running system succeeds; written by any of its chunks.
    read_to: AtomicU64,
}

impl Reader {
    fn new(system: SystemIndex, drains: bool) -> Self {
        Self { system, drains, cursor: 0, read_to: AtomicU64::new(0) }
    }
}

impl<T> Drop for Store<T> {
    fn drop(&mut self) {
        drop_all(&mut self.events);
    }
}

impl<T> Store<T> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            events: Vec::with_capacity(capacity),
            base: 0,
            readers: Vec::new(),
            passed_at_start: 0,
            peak_depth: 0,
            produced: 0,
            overflow: 0,
        }
    }

    pub(super) fn set_readers(&mut self, roles: &Roles) {
        let only_read = roles.readers.iter().filter(|reader| !roles.drainers.contains(reader));
        let readers = only_read.map(|&system| (system, false));
        let all = readers.chain(roles.drainers.iter().map(|&system| (system, true)));
        self.readers = all.map(|(system, drains)| Reader::new(system, drains)).collect();
    }

    fn end(&self) -> u64 {
        self.base + self.events.len() as u64
    }

    /// Position that all readers have passed.
    fn passed(&self) -> u64 {
        self.readers.iter().map(|reader| reader.cursor).min().unwrap_or(self.passed_at_start)
    }

    pub(super) fn depth(&self) -> u64 {
        self.end() - self.passed()
    }

    pub(super) fn begin_tick(&mut self, carry_over: bool) {
        let keep_from = if carry_over { self.passed() } else { self.end() };
        drop_first(&mut self.events, (keep_from - self.base) as usize);
        self.base = keep_from;
        for reader in &mut self.readers {
            reader.cursor = reader.cursor.max(keep_from);
            *reader.read_to.get_mut() = reader.cursor;
        }
        self.passed_at_start = keep_from;
        (self.produced, self.overflow) = (0, 0);
        self.peak_depth = self.depth();
    }

    /// Appends a batch as far as `limit` allows; what is left in it found no room and is counted.
    pub(super) fn append(&mut self, batch: &mut Vec<T>, limit: usize) {
        let room = limit.saturating_sub(self.depth() as usize).min(batch.len());
        self.events.extend(batch.drain(..room));
        self.produced += room as u64;
        self.overflow += batch.len() as u64;
        self.peak_depth = self.peak_depth.max(self.depth());
    }

    pub(super) fn count_refused(&mut self, refused: u64) {
        self.overflow += refused;
    }

    /// Where in [`Store::events`] the events are that the system has before it; `None` if it is no reader.
    pub(super) fn unread(&self, system: SystemIndex) -> Option<std::ops::Range<usize>> {
        let reader = self.readers.iter().find(|reader| reader.system == system)?;
        // Events that a drainer only looks at stay before it.
        if !reader.drains {
            reader.read_to.store(self.end(), Ordering::Relaxed);
        }
        Some((reader.cursor - self.base) as usize..self.events.len())
    }

    /// Has the system nothing before it?
    pub(super) fn is_read_by(&self, system: SystemIndex) -> bool {
        self.readers.iter().filter(|reader| reader.system == system).all(|reader| reader.cursor == self.end())
    }

    pub(super) fn events(&self) -> &[T] {
        &self.events
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.events.capacity()
    }

    pub(super) fn may_drain(&self, system: SystemIndex) -> bool {
        self.readers.iter().any(|reader| reader.system == system && reader.drains)
    }

    /// Takes everything out. Every reader has then passed it.
    pub(super) fn take(&mut self) -> Vec<T> {
        self.base = self.end();
        for reader in &mut self.readers {
            reader.cursor = self.base;
            *reader.read_to.get_mut() = self.base;
        }
        std::mem::take(&mut self.events)
    }

    /// Returns memory that [`Store::take`] lent, for the next merge.
    pub(super) fn give_back(&mut self, buffer: Vec<T>) {
        if self.events.capacity() == 0 && buffer.is_empty() {
            self.events = buffer;
        }
    }

    pub(super) fn reader_done(&mut self, system: SystemIndex, succeeded: bool) {
        for reader in self.readers.iter_mut().filter(|reader| reader.system == system) {
            if succeeded {
                reader.cursor = reader.cursor.max(*reader.read_to.get_mut());
            }
            *reader.read_to.get_mut() = reader.cursor;
        }
    }

    pub(super) fn counters(&self) -> QueueCounters {
        QueueCounters {
            produced: saturate(self.produced),
            consumed: saturate(self.passed() - self.passed_at_start),
            peak_depth: saturate(self.peak_depth),
            overflow: saturate(self.overflow),
            end_depth: saturate(self.depth()),
        }
    }
}

/// Drops the first events. A panic in a destructor has been reported by the panic hook; it must not reach the
/// scheduler between two systems, and the other events are dropped all the same.
pub(super) fn drop_first<T>(events: &mut Vec<T>, count: usize) {
    events.drain(..count).for_each(drop_guarded);
}

/// As [`drop_first`], of all events.
pub(super) fn drop_all<T>(events: &mut Vec<T>) {
    drop_first(events, events.len());
}
