//! Memory for answers that are made or wait to be written, of all connections together: a page that does not read what it
//! asked for keeps others waiting for a while, but cannot fill the memory.

use axum::body::Bytes;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory is given out in units of so much.
const UNIT_BYTES: usize = 64 << 10;
/// Part of the whole memory, as a divisor.
const SHARE: usize = 4;

/// All of it.
#[derive(Debug)]
pub(crate) struct Answers {
    units: Arc<Semaphore>,
    all: u32,
}

/// Memory for one answer.
#[derive(Debug)]
pub(crate) struct Room(Option<OwnedSemaphorePermit>);

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

impl Answers {
    /// A part of the server's memory.
    pub(crate) fn new(memory_bytes: usize) -> Self {
        let all = units(memory_bytes / SHARE).clamp(1, 1 << 20);
        Self { units: Arc::new(Semaphore::new(all as usize)), all }
    }

    /// Waits for room for an answer of so many bytes at most.
    pub(crate) async fn room(&self, bytes: usize) -> Room {
        let wanted = units(bytes).min(self.all);
        // The semaphore is never closed.
        Room(self.units.clone().acquire_many_owned(wanted).await.ok())
    }
}

impl Room {
    /// Gives back what the answer did not take.
    pub(crate) fn shrunk_to(mut self, bytes: usize) -> Self {
        if let Some(permit) = &mut self.0 {
            let spare = permit.num_permits().saturating_sub(units(bytes) as usize);
            drop(permit.split(spare));
        }
        self
    }

    /// Bytes that hold on to their memory until nobody has them any more.
    pub(crate) fn filled(self, bytes: Vec<u8>) -> Bytes {
        let room = self.shrunk_to(bytes.len());
        Bytes::from_owner(Filled { bytes, _room: room })
    }
}

struct Filled {
    bytes: Vec<u8>,
    _room: Room,
}

impl AsRef<[u8]> for Filled {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_its_memory_until_it_is_gone() {
        let answers = Answers::new(SHARE * 4 * UNIT_BYTES);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let free = || answers.units.available_permits();
        let room = runtime.block_on(answers.room(3 * UNIT_BYTES));
        assert_eq!(free(), 1);
        let bytes = room.filled(vec![7; UNIT_BYTES + 1]);
        assert_eq!((free(), bytes[0]), (2, 7));
        let copy = bytes.clone();
        drop(bytes);
        assert_eq!(free(), 2);
        drop(copy);
        assert_eq!(free(), 4);
    }

    #[test]
    fn an_answer_larger_than_all_there_is_takes_all() {
        let answers = Answers::new(0);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        drop(runtime.block_on(answers.room(usize::MAX)));
        assert_eq!(answers.units.available_permits(), 1);
    }
}
