//! Latches for more things than there are latches.
#![forbid(unsafe_code)]

use crate::context::WaitContext;
use crate::fault::{Fault, has_model_failed, planted};
use crate::lock::{AccessControlSmall, LockError};
use std::cell::Cell;
use std::marker::PhantomData;

/// Stripes of a table, unless said otherwise.
const STRIPES: usize = 65_536;

/// A fixed number of latches, of which each thing has one by its hash, four bytes each. A thread acquires all that it
/// needs at once: sorted and each only once, so that no two threads wait for each other. Things that share a stripe exclude
/// each other without need, which costs time and nothing else.
///
/// ```
/// use typhon_sync::{WaitContext, gate::LatchTable};
///
/// let table = LatchTable::new();
/// let stripes = [7, 3, 7].map(|entity| table.stripe(entity)).to_vec();
/// let latches = table.lock_sorted(stripes, &WaitContext::INFINITE)?;
/// assert_eq!(latches.stripes().len(), 2);
/// # Ok::<(), typhon_sync::lock::LockError>(())
/// ```
#[derive(Debug)]
pub struct LatchTable {
    latches: Box<[AccessControlSmall]>,
}

#[cfg(not(loom))]
std::thread_local! {
    static HOLDS_LATCHES: Cell<bool> = const { Cell::new(false) };
}

#[cfg(loom)]
loom::thread_local! {
    static HOLDS_LATCHES: Cell<bool> = Cell::new(false);
}

impl LatchTable {
    /// 65,536 latches.
    pub fn new() -> Self {
        Self::with_stripes(STRIPES)
    }

    /// As many latches as the next power of two.
    pub fn with_stripes(stripes: usize) -> Self {
        Self { latches: (0..stripes.next_power_of_two()).map(|_| AccessControlSmall::new()).collect() }
    }

    /// The stripe of a thing with this id or hash. All 64 bits decide: ids may well be equal in their low ones.
    pub fn stripe(&self, id: u64) -> u32 {
        let mut bits = id;
        for multiplier in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
            bits = (bits ^ (bits >> 33)).wrapping_mul(multiplier);
        }
        ((bits ^ (bits >> 33)) & (self.latches.len() as u64 - 1)) as u32
    }

    /// Acquires these stripes, in any order and each as often as you like, until the set is dropped. A thread has one set
    /// at a time: a second one could wait for the first of another thread, and that for ours.
    ///
    /// # Errors
    /// [`LockError::TimedOut`], [`LockError::Cancelled`], [`LockError::ThreadIdsExhausted`], with nothing held;
    /// [`LockError::HoldsLatches`] if the thread has a set; [`LockError::NoSuchStripe`].
    pub fn lock_sorted(
        &self,
        mut stripes: Vec<u32>,
        context: &WaitContext<'_>,
    ) -> Result<LatchSet<'_>, LockError> {
        if !planted(Fault::LatchesUnsorted) {
            stripes.sort_unstable();
        }
        stripes.dedup();
        if stripes.last().is_some_and(|stripe| *stripe as usize >= self.latches.len()) {
            return Err(LockError::NoSuchStripe);
        }
        if HOLDS_LATCHES.with(|holds| holds.replace(true)) {
            return Err(LockError::HoldsLatches);
        }
        let mut set = LatchSet { table: self, stripes, held: 0, not_send: PhantomData };
        match set.acquire(context) {
            Ok(()) => Ok(set),
            Err(error) => {
                if planted(Fault::LatchesKept) {
                    set.held = 0;
                }
                Err(error)
            }
        }
    }
}

impl Default for LatchTable {
    fn default() -> Self {
        Self::new()
    }
}

/// Latches that a thread holds. Stays on its thread.
#[must_use = "the latches are released when the set is dropped"]
#[derive(Debug)]
pub struct LatchSet<'t> {
    table: &'t LatchTable,
    /// Ascending.
    stripes: Vec<u32>,
    /// So many of them, from the first, are held.
    held: usize,
    not_send: PhantomData<*mut ()>,
}

impl LatchSet<'_> {
    /// The stripes that are held, ascending.
    pub fn stripes(&self) -> &[u32] {
        &self.stripes[..self.held]
    }

    fn acquire(&mut self, context: &WaitContext<'_>) -> Result<(), LockError> {
        for stripe in &self.stripes {
            self.table.latches[*stripe as usize].enter_exclusive(context)?;
            self.held += 1;
        }
        Ok(())
    }
}

impl Drop for LatchSet<'_> {
    fn drop(&mut self) {
        if has_model_failed() {
            return;
        }
        for stripe in self.stripes().iter().rev() {
            let exit = self.table.latches[*stripe as usize].exit_exclusive();
            debug_assert_eq!(exit, Ok(()), "nobody else can release a latch");
        }
        HOLDS_LATCHES.with(|holds| holds.set(false));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn rank3_each_stripe_once_in_ascending_order() {
        let table = LatchTable::with_stripes(10);
        assert_eq!(table.latches.len(), 16);
        let set = table.lock_sorted(vec![9, 1, 15, 1, 9], &WaitContext::NO_WAIT).unwrap();
        assert_eq!(set.stripes(), [1, 9, 15]);
        assert_eq!(table.lock_sorted(vec![2], &WaitContext::NO_WAIT).err(), Some(LockError::HoldsLatches));
        drop(set);
        assert_eq!(table.lock_sorted(vec![16], &WaitContext::NO_WAIT).err(), Some(LockError::NoSuchStripe));
        assert!(table.lock_sorted(Vec::new(), &WaitContext::NO_WAIT).is_ok());
    }

    #[test]
    fn rank3_what_cannot_be_completed_is_given_back() {
        let table = LatchTable::with_stripes(8);
        let _held = table.lock_sorted(vec![5], &WaitContext::NO_WAIT).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let timed_out = LockError::TimedOut { waited: Duration::ZERO };
                let error = table.lock_sorted(vec![6, 5, 2], &WaitContext::NO_WAIT).err();
                assert_eq!(error, Some(timed_out));
                assert!(
                    table.latches.iter().enumerate().all(|(n, latch)| (n == 5) == latch.owner().is_some())
                );
                assert!(table.lock_sorted(vec![6, 2], &WaitContext::NO_WAIT).is_ok());
            });
        });
    }

    proptest! {
        /// Families of ids that differ in some bits only fall on many stripes all the same.
        #[test]
        fn b21_stripes_of_ids_that_share_most_bits_differ(shift in 0u32..48, base in any::<u64>()) {
            let table = LatchTable::with_stripes(1_024);
            let stripes: std::collections::HashSet<u32> =
                (0..1_024u64).map(|n| table.stripe(base ^ (n << shift))).collect();
            // 647 of 1,024 on average if thrown at random.
            prop_assert!(stripes.len() > 560, "{}", stripes.len());
        }
    }
}
