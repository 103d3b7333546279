//! One budget for all opened traces (brief 11 §8: at most 512 MiB, whatever the files).
//!
//! | Part | For |
//! |---|---|
//! | half | items that wait to be sorted while files are indexed. A file waits for its turn when others have taken it |
//! | a quarter | what stays: pieces of indexes that have no file, matches of filters, the heads of every index |
//! | the rest | blocks being decoded, answers, the program itself |
//!
//! What finds no room goes to a temporary file, takes the place of something older, or is refused by name; nothing
//! is taken all the same, but for the heads of indexes: whoever holds the sessions lets go of some when these are too
//! many ([`super::Session::rest`]).

use super::{Cancel, SessionError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Part of the memory, as a divisor, for indexing.
const INDEXING_SHARE: usize = 2;
/// Part of the memory, as a divisor, for what stays.
const KEPT_SHARE: usize = 4;
/// Time between two looks at whether waiting was cancelled.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Memory that sessions share. Clones are of the same memory.
#[derive(Debug, Clone)]
pub struct Memory {
    pub(crate) indexing: Pool,
    pub(crate) kept: Pool,
}

impl Memory {
    /// For so many bytes in all.
    pub fn new(total_bytes: usize) -> Self {
        Self { indexing: Pool::new(total_bytes / INDEXING_SHARE), kept: Pool::new(total_bytes / KEPT_SHARE) }
    }

    /// Is more kept than there is room for? Then sessions that can should [rest](super::Session::rest).
    pub fn is_overfull(&self) -> bool {
        self.kept.used() > self.kept.limit()
    }
}

/// A number of bytes that several take from.
#[derive(Debug, Clone)]
pub(crate) struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: usize,
    used: Mutex<usize>,
    freed: Condvar,
}

impl Pool {
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(Shared { limit, used: Mutex::new(0), freed: Condvar::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        // The number is right after every statement that changes it.
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn limit(&self) -> usize {
        self.0.limit
    }

    pub(crate) fn used(&self) -> usize {
        *self.lock()
    }

    /// Takes nothing yet.
    pub(crate) fn held(&self) -> Held {
        Held { pool: self.clone(), bytes: 0 }
    }

    /// Takes bytes if there are so many.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<Held> {
        let mut held = self.held();
        held.grow(bytes, self.limit()).then_some(held)
    }

    /// Takes bytes whether there are so many or not.
    pub(crate) fn take_anyway(&self, bytes: usize) -> Held {
        *self.lock() += bytes;
        Held { pool: self.clone(), bytes }
    }

    /// Takes up to `most` bytes, and waits while there are fewer than `least`.
    ///
    /// # Errors
    /// [`SessionError::Cancelled`].
    pub(crate) fn take(&self, least: usize, most: usize, cancel: &Cancel) -> Result<Held, SessionError> {
        let least = least.min(self.limit());
        let mut used = self.lock();
        loop {
            cancel.check()?;
            let free = self.limit().saturating_sub(*used);
            if free >= least {
                let bytes = free.min(most.max(least));
                *used += bytes;
                return Ok(Held { pool: self.clone(), bytes });
            }
            let waited = self.0.freed.wait_timeout(used, LOOK_EVERY);
            used = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Bytes taken from a pool. Dropping gives them back.
#[derive(Debug)]
pub(crate) struct Held {
    pool: Pool,
    bytes: usize,
}

impl Held {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes more bytes, if then no more than `limit` are taken from the pool in all.
    pub(crate) fn grow(&mut self, bytes: usize, limit: usize) -> bool {
        let mut used = self.pool.lock();
        let fits = used.checked_add(bytes).is_some_and(|after| after <= limit);
        if fits {
            *used += bytes;
            self.bytes += bytes;
        }
        fits
    }

    /// Gives back all but `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let freed = self.bytes.saturating_sub(bytes);
        self.bytes -= freed;
        *self.pool.lock() -= freed;
        self.pool.0.freed.notify_all();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn what_is_taken_is_given_back() {
        let pool = Pool::new(100);
        let mut first = pool.try_take(60).expect("there is room");
        assert!(pool.try_take(41).is_none());
        let second = pool.try_take(40).expect("there is room");
        assert!(!first.grow(1, 100));
        first.shrink_to(10);
        assert_eq!((first.bytes(), pool.used()), (10, 50));
        assert!(first.grow(50, 100));
        drop((first, second));
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn who_finds_no_room_waits_for_it() {
        let pool = Pool::new(100);
        let all = pool.take(10, 500, &Cancel::new()).expect("not cancelled");
        assert_eq!(all.bytes(), 100);
        let waiting = thread::spawn({
            let pool = pool.clone();
            move || pool.take(25, 50, &Cancel::new()).map(|held| held.bytes())
        });
        drop(all);
        assert_eq!(waiting.join().expect("no panic").expect("not cancelled"), 50);
        assert_eq!(pool.used(), 0);
    }

    #[test]
    fn waiting_can_be_cancelled() {
        let pool = Pool::new(100);
        let _all = pool.try_take(100);
        let cancel = Cancel::new();
        let waiting = thread::spawn({
            let (pool, cancel) = (pool.clone(), cancel.clone());
            move || pool.take(1, 1, &cancel).map(|held| held.bytes())
        });
        cancel.cancel();
        assert!(matches!(waiting.join().expect("no panic"), Err(SessionError::Cancelled)));
    }

    #[test]
    fn a_pool_without_bytes_keeps_nobody_waiting() {
        let held = Pool::new(0).take(1 << 20, 1 << 30, &Cancel::new()).expect("not cancelled");
        assert_eq!(held.bytes(), 0);
    }

    #[test]
    fn filters_without_room_take_the_place_of_older_ones_or_are_refused() {
        let memory = Memory::new(1 << 30);
        let trace =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/anthill.typhon-trace");
        let options = super::super::SessionOptions { memory: memory.clone(), ..Default::default() };
        let session = super::super::Session::open(&trace, options).expect("opens");
        session.wait_until_idle();
        let add = || session.add_filter("kind=TickStart", &Cancel::new(), |_| {}).map(|filter| filter.id);
        let bits = (session.meta().expect("ready").totals.events as usize).div_ceil(64) * 8;
        let free = memory.kept.limit() - memory.kept.used();
        let others = memory.kept.try_take(free - bits - bits / 2).expect("there is room");
        let first = add().expect("there is room for one");
        assert!(session.match_count(first).is_ok());
        let second = add().expect("the first gives way");
        assert!(session.match_count(first).is_err());
        session.remove_filter(second);
        let rest = memory.kept.try_take(bits).expect("there is room");
        assert!(matches!(add(), Err(SessionError::NoRoom)));
        drop((others, rest));
        assert!(add().is_ok());
    }
}
