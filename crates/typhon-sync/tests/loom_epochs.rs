//! Models of the epochs: what is retired is not used again while somebody can look at it.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p typhon-sync --release --test loom_epochs`
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "these are tests")]

#[path = "common/loom.rs"]
mod common;

use common::{Held, holds_and_finds};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use loom::thread;
use typhon_sync::epoch::{EpochManager, RetireList};
use typhon_sync::model::Fault;

/// Two pieces of memory, one of which is linked. Loom finds a use of the other that is not ordered.
struct World {
    epochs: EpochManager,
    retired: RetireList<usize>,
    linked: AtomicUsize,
    memory: [UnsafeCell<u32>; 2],
}

unsafe impl Sync for World {}

impl World {
    fn new() -> Held<Arc<Self>> {
        Held::new(Arc::new(Self {
            epochs: EpochManager::new(),
            retired: RetireList::new(),
            linked: AtomicUsize::new(0),
            memory: [UnsafeCell::new(0), UnsafeCell::new(0)],
        }))
    }

    fn read(&self) {
        let pin = Held::new(self.epochs.pin().unwrap());
        let linked = self.linked.load(Ordering::Acquire);
        self.memory[linked].with(|memory| unsafe { *memory });
        drop(pin);
    }

    /// Links the second piece, and uses the first again as soon as that is allowed.
    fn replace(&self) {
        self.write(1);
        self.linked.store(1, Ordering::Release);
        self.retired.retire(&self.epochs, 0);
        for _ in 0..2 {
            self.reuse();
        }
    }

    fn reuse(&self) {
        self.retired.collect(&self.epochs).into_iter().for_each(|piece| self.write(piece));
    }

    fn write(&self, piece: usize) {
        self.memory[piece].with_mut(|memory| unsafe { *memory += 1 });
    }
}

fn spawn(world: &Held<Arc<World>>, work: fn(&World)) -> thread::JoinHandle<()> {
    let world = Held::new(Arc::clone(world));
    thread::spawn(move || work(&world))
}

#[test]
fn i7_what_is_retired_is_not_used_while_a_pin_may_see_it() {
    let faults = [Fault::PinUnfenced, Fault::UnpinRelaxed, Fault::RetireUnfenced, Fault::ReuseEarly];
    holds_and_finds(3, &faults, || {
        let world = World::new();
        // The first exit advances the epoch, so that the second pin is of another one.
        let reader = spawn(&world, |world| (0..2).for_each(|_| world.read()));
        world.replace();
        reader.join().unwrap();
        world.reuse();
        assert!(world.retired.is_empty());
    });
}

#[test]
fn b16_a_slot_passes_from_thread_to_thread() {
    holds_and_finds(2, &[Fault::PinUnfenced, Fault::UnpinRelaxed], || {
        let world = World::new();
        let readers = [spawn(&world, World::read), spawn(&world, World::read)];
        world.replace();
        readers.map(|reader| reader.join().unwrap());
        world.reuse();
        assert!(world.retired.is_empty());
    });
}

#[test]
fn b14_the_oldest_active_epoch_never_passes_a_pin() {
    holds_and_finds(3, &[Fault::PinUnfenced, Fault::PinStale, Fault::ScanUnfenced], || {
        let shared = Held::new(Arc::new((EpochManager::new(), AtomicU64::new(0))));
        let collector = {
            let shared = Held::new(Arc::clone(&shared));
            thread::spawn(move || {
                let (epochs, oldest) = &**shared;
                epochs.advance();
                oldest.store(epochs.min_active_epoch(), Ordering::Release);
                epochs.advance();
                oldest.store(epochs.min_active_epoch(), Ordering::Release);
            })
        };
        let (epochs, oldest) = &**shared;
        let mut pin = epochs.pin().unwrap();
        let (epoch, seen) = (pin.epoch(), oldest.load(Ordering::Acquire));
        let refreshed = pin.refresh().unwrap();
        let seen_then = oldest.load(Ordering::Acquire);
        // Nothing may panic while the guard lives: it could not be dropped.
        drop(pin);
        assert!(epoch >= seen && refreshed >= seen_then && refreshed >= epoch);
        collector.join().unwrap();
    });
}
