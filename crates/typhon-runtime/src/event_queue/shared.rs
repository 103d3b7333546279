//! One queue, as all its handles see it.

use super::options::QueueOptions;
use super::roles::{BindError, Roles};
use super::store::{Store, drop_all};
use crate::{QueueId, SystemIndex};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(super) struct Shared<T> {
    pub(super) id: QueueId,
    pub(super) name: String,
    pub(super) options: QueueOptions,
    roles: OnceLock<Roles>,
    /// Producers that have not completed in this tick.
    remaining: AtomicU32,
    inbox: Mutex<Inbox<T>>,
    store: RwLock<Store<T>>,
}

/// What producers handed over and the merge has not taken yet.
struct Inbox<T> {
    batches: Vec<Batch<T>>,
    /// Producers of this tick that failed.
    failed: Vec<SystemIndex>,
    /// Memory of merged batches, for those that come.
    buffers: Vec<Vec<T>>,
    refused: u64,
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        self.batches.iter_mut().for_each(|batch| drop_all(&mut batch.events));
    }
}

/// What one chunk pushed.
struct Batch<T> {
    system: SystemIndex,
    chunk: u32,
    events: Vec<T>,
}

impl<T: Send + Sync + 'static> Shared<T> {
    pub(super) fn new(id: QueueId, name: String, options: QueueOptions) -> Self {
        Self {
            id,
            name,
            roles: OnceLock::new(),
            remaining: AtomicU32::new(0),
            inbox: Mutex::new(Inbox {
                batches: Vec::new(),
                failed: Vec::new(),
                buffers: Vec::new(),
                refused: 0,
            }),
            store: RwLock::new(Store::new(options.capacity as usize)),
            options,
        }
    }

    pub(super) fn bind(&self, roles: Roles) -> Result<(), BindError> {
        self.roles.set(roles).map_err(|_| BindError)?;
        self.store_mut().set_readers(self.roles());
        Ok(())
    }

    fn roles(&self) -> &Roles {
        static NONE: Roles = Roles { producers: Vec::new(), readers: Vec::new(), drainers: Vec::new() };
        self.roles.get().unwrap_or(&NONE)
    }

    // User code does not run under these locks, except for the destructors of events, which are guarded.
    fn inbox(&self) -> MutexGuard<'_, Inbox<T>> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn store(&self) -> RwLockReadGuard<'_, Store<T>> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn store_mut(&self) -> RwLockWriteGuard<'_, Store<T>> {
        self.store.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` while somebody holds events that were read.
    pub(super) fn try_store_mut(&self) -> Option<RwLockWriteGuard<'_, Store<T>>> {
        match self.store.try_write() {
            Ok(store) => Some(store),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    pub(super) fn begin_tick(&self) {
        let producers = u32::try_from(self.roles().producers.len()).unwrap_or(u32::MAX);
        self.remaining.store(producers, Ordering::Relaxed);
        self.store_mut().begin_tick(self.options.carry_over);
    }

    /// Takes what a chunk pushed, and gives empty memory in return.
    pub(super) fn hand_over(&self, system: SystemIndex, chunk: u32, events: &mut Vec<T>, refused: u64) {
        let mut inbox = self.inbox();
        inbox.refused += refused;
        if !events.is_empty() {
            let buffer = inbox.buffers.pop().unwrap_or_default();
            let events = std::mem::replace(events, buffer);
            inbox.batches.push(Batch { system, chunk, events });
        }
    }

    /// A producer has completed, or was skipped; merges if it was the last.
    pub(super) fn producer_done(&self, system: SystemIndex, succeeded: bool) {
        if !succeeded {
            self.inbox().failed.push(system);
        }
        // Acquire and release: the last one finds what the others handed over.
        if self.remaining.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.merge();
        }
    }

    fn merge(&self) {
        let mut inbox = self.inbox();
        let Inbox { batches, failed, buffers, refused } = &mut *inbox;
        let place = |system| {
            let producers = &self.roles().producers;
            producers.iter().find(|producer| producer.system == system).map(|found| found.topological_index)
        };
        batches.sort_unstable_by_key(|batch| (place(batch.system), batch.chunk));
        let mut store = self.store_mut();
        store.count_refused(std::mem::take(refused));
        for Batch { system, mut events, .. } in batches.drain(..) {
            if !failed.contains(&system) {
                store.append(&mut events, self.options.limit() as usize);
            }
            drop_all(&mut events);
            buffers.push(events);
        }
        failed.clear();
    }
}
