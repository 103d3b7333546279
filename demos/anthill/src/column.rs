//! Columns of ants: one value per ant, cut into chunks that systems work on side by side.

use atomic_refcell::{AtomicRef, AtomicRefCell, AtomicRefMut};

/// Ants per chunk. One chunk of positions is 32 KiB: it stays in the first-level cache while a system works on it.
pub const ANTS_PER_CHUNK: usize = 4096;

/// One value of type `T` per ant.
///
/// Every chunk may be read by many or written by one. Nobody waits for that: the schedule's declarations already keep
/// a reader and a writer apart, and a borrow that fails here means that a declaration is missing. It panics, and the
/// runtime reports the system.
#[derive(Debug)]
pub struct Column<T> {
    chunks: Vec<AtomicRefCell<Vec<T>>>,
    len: usize,
}

impl<T> Column<T> {
    /// A column of `len` values, made in the order of the ants.
    pub fn new(len: usize, mut value_of: impl FnMut(usize) -> T) -> Self {
        let chunk = |first: usize| (first..len.min(first + ANTS_PER_CHUNK)).map(&mut value_of).collect();
        let chunks = (0..len).step_by(ANTS_PER_CHUNK).map(chunk).map(AtomicRefCell::new).collect();
        Self { chunks, len }
    }

    /// Number of ants.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Is there no ant?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of chunks.
    pub fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    /// The values of one chunk.
    pub fn read(&self, chunk: usize) -> AtomicRef<'_, Vec<T>> {
        self.chunks[chunk].borrow()
    }

    /// The values of one chunk, to change.
    pub fn write(&self, chunk: usize) -> AtomicRefMut<'_, Vec<T>> {
        self.chunks[chunk].borrow_mut()
    }

    /// Changes the value of one ant.
    pub fn update(&self, ant: u32, change: impl FnOnce(&mut T)) {
        let ant = ant as usize;
        change(&mut self.write(ant / ANTS_PER_CHUNK)[ant % ANTS_PER_CHUNK]);
    }
}

impl<T: Copy> Column<T> {
    /// The value of one ant.
    pub fn get(&self, ant: u32) -> T {
        let ant = ant as usize;
        self.read(ant / ANTS_PER_CHUNK)[ant % ANTS_PER_CHUNK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_holds_every_ant_once_and_in_order() {
        for len in [0, 1, ANTS_PER_CHUNK - 1, ANTS_PER_CHUNK, ANTS_PER_CHUNK + 1, 3 * ANTS_PER_CHUNK] {
            let column = Column::new(len, |ant| ant);
            let values: Vec<_> =
                (0..column.chunk_count()).flat_map(|chunk| column.read(chunk).clone()).collect();
            assert_eq!(values, (0..len).collect::<Vec<_>>());
            assert_eq!(column.len(), len);
        }
    }

    #[test]
    #[should_panic(expected = "already")]
    fn a_writer_beside_a_reader_is_found_out() {
        let column = Column::new(10, |ant| ant);
        let _reader = column.read(0);
        column.update(3, |value| *value = 0);
    }
}
