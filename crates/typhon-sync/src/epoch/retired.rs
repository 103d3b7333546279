//! Things that were unlinked and wait until nobody can look at them.
#![forbid(unsafe_code)]

use super::EpochManager;
use crate::atomic::{Mutex, lock};
use crate::fault::{Fault, planted};
use std::collections::VecDeque;

/// Things that were unlinked, oldest first, until they can be used again.
///
/// ```
/// use typhon_sync::epoch::{EpochManager, RetireList};
///
/// let (epochs, retired) = (EpochManager::new(), RetireList::new());
/// let pin = epochs.pin()?;
/// retired.retire(&epochs, "page 7");
/// assert!(retired.collect(&epochs).is_empty(), "the pin may have seen it");
/// drop(pin);
/// assert_eq!(retired.collect(&epochs), ["page 7"]);
/// # Ok::<(), typhon_sync::epoch::EpochError>(())
/// ```
#[derive(Debug)]
pub struct RetireList<T> {
    /// Each with the epoch in which it retired; the epochs never fall.
    items: Mutex<VecDeque<(u64, T)>>,
}

impl<T> RetireList<T> {
    /// An empty list.
    pub fn new() -> Self {
        Self { items: Mutex::new(VecDeque::new()) }
    }

    /// Takes what the caller has unlinked just before.
    pub fn retire(&self, epochs: &EpochManager, item: T) {
        // The epoch under the lock, so that the list is in order.
        let mut items = lock(&self.items);
        items.push_back((epochs.retire_epoch(), item));
    }

    /// Takes out what nobody can look at any more, oldest first. Advances the epoch if something retired in the current
    /// one, so that calling it again after the pins have ended is enough.
    pub fn collect(&self, epochs: &EpochManager) -> Vec<T> {
        let mut items = lock(&self.items);
        if items.back().is_some_and(|(epoch, _)| *epoch >= epochs.current_epoch()) {
            epochs.advance();
        }
        let min_active = epochs.min_active_epoch() + u64::from(planted(Fault::ReuseEarly));
        let free = items.partition_point(|(epoch, _)| *epoch < min_active);
        items.drain(..free).map(|(_, item)| item).collect()
    }

    /// Number of things that wait.
    pub fn len(&self) -> usize {
        lock(&self.items).len()
    }

    /// Does nothing wait?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Default for RetireList<T> {
    fn default() -> Self {
        Self::new()
    }
}
