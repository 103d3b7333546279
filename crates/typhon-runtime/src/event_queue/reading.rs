//! What readers and drainers get.

use super::error::QueueError;
use super::shared::Shared;
use super::store::{Store, drop_all};
use crate::SystemIndex;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::RwLockReadGuard;

/// Events that a system reads: a slice, in the order in which everybody sees them.
pub struct Events<'a, T> {
    store: RwLockReadGuard<'a, Store<T>>,
    unread: Range<usize>,
}

impl<T: fmt::Debug> fmt::Debug for Events<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a, T: Send + Sync + 'static> Events<'a, T> {
    pub(super) fn new(queue: &'a Shared<T>, system: SystemIndex) -> Result<Self, QueueError> {
        let store = queue.store();
        match store.unread(system) {
            Some(unread) => Ok(Self { unread, store }),
            None => Err(QueueError::NotAReader { queue: queue.name.clone(), system }),
        }
    }
}

impl<T> Deref for Events<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.store.events()[self.unread.clone()]
    }
}

impl<'e, T> IntoIterator for &'e Events<'_, T> {
    type Item = &'e T;
    type IntoIter = std::slice::Iter<'e, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Events that a system takes out of a queue, in order.
pub struct Drained<'a, T: Send + Sync + 'static> {
    queue: &'a Shared<T>,
    /// In reverse, so that the next one is at the end and the memory can go back to the queue.
    events: Vec<T>,
}

impl<T: Send + Sync + 'static> fmt::Debug for Drained<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drained").field("left", &self.events.len()).finish_non_exhaustive()
    }
}

impl<'a, T: Send + Sync + 'static> Drained<'a, T> {
    pub(super) fn new(queue: &'a Shared<T>, system: SystemIndex) -> Result<Self, QueueError> {
        let name = || queue.name.clone();
        let mut store = queue.try_store_mut().ok_or_else(|| QueueError::InUse { queue: name() })?;
        if !store.may_drain(system) {
            return Err(QueueError::NotADrainer { queue: name(), system });
        }
        let mut events = store.take();
        drop(store);
        events.reverse();
        Ok(Self { queue, events })
    }
}

impl<T: Send + Sync + 'static> Iterator for Drained<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.events.pop()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.events.len(), Some(self.events.len()))
    }
}

impl<T: Send + Sync + 'static> ExactSizeIterator for Drained<'_, T> {}

impl<T: Send + Sync + 'static> Drop for Drained<'_, T> {
    fn drop(&mut self) {
        drop_all(&mut self.events);
        self.queue.store_mut().give_back(std::mem::take(&mut self.events));
    }
}
