//! Models of the locks: every schedule up to a bound on preemptions. A lost wake is a deadlock, which loom reports.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p typhon-sync --release --test loom_locks`
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "these are tests")]

#[path = "common/loom.rs"]
mod common;

use common::{Held, holds_and_finds};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};
use typhon_sync::lock::{AccessControl, LockError, ReadersWriterLock, ResourceAccessControl, Variety};
use typhon_sync::model::Fault;
use typhon_sync::wait::{Parker, WaitEnd};
use typhon_sync::{CancelToken, Deadline, WaitContext};

const FOREVER: WaitContext<'static> = WaitContext::INFINITE;

/// A lock and what it protects; loom finds accesses that are not ordered.
struct Guarded<L> {
    lock: L,
    value: UnsafeCell<u32>,
}

unsafe impl<L: Sync> Sync for Guarded<L> {}
unsafe impl<L: Send> Send for Guarded<L> {}

impl<L> Guarded<L> {
    fn new(lock: L) -> Held<Arc<Self>> {
        Held::new(Arc::new(Self { lock, value: UnsafeCell::new(0) }))
    }

    fn read(&self) -> u32 {
        self.value.with(|value| unsafe { *value })
    }

    fn add_one(&self) {
        self.value.with_mut(|value| unsafe { *value += 1 });
    }
}

fn spawn<L: Send + Sync + 'static>(
    guarded: &Held<Arc<Guarded<L>>>,
    work: impl FnOnce(&Guarded<L>) + Send + 'static,
) -> JoinHandle<()> {
    let guarded = Held::new(Arc::clone(guarded));
    thread::spawn(move || work(&guarded))
}

fn write<V: Variety>(guarded: &Guarded<ReadersWriterLock<V>>) {
    let _alone = Held::new(guarded.lock.exclusive(&FOREVER).unwrap());
    guarded.add_one();
}

fn read<V: Variety>(guarded: &Guarded<ReadersWriterLock<V>>) -> u32 {
    let _share = Held::new(guarded.lock.shared(&FOREVER).unwrap());
    guarded.read()
}

fn three_writers<V: Variety + Send + Sync + 'static>()
where
    ReadersWriterLock<V>: Send + Sync,
{
    let guarded = Guarded::new(ReadersWriterLock::<V>::new());
    let others = [spawn(&guarded, write), spawn(&guarded, write)];
    write(&guarded);
    others.map(|other| other.join().unwrap());
    assert_eq!(read(&guarded), 3);
}

#[test]
fn b8_writers_exclude_each_other() {
    let faults = [
        Fault::TakeRelaxed,
        Fault::ReleaseRelaxed,
        Fault::TakePlain,
        Fault::ReleasePlain,
        Fault::BlockUnannounced,
        Fault::WakeCountStill,
        Fault::WakeCountLate,
    ];
    holds_and_finds(3, &faults, three_writers::<typhon_sync::lock::Fair>);
}

#[test]
fn b9_writers_exclude_each_other() {
    let faults = [
        Fault::TakeRelaxed,
        Fault::ReleaseRelaxed,
        Fault::TakePlain,
        Fault::ReleasePlain,
        Fault::BlockUnannounced,
        Fault::WakeOneOfMany,
    ];
    holds_and_finds(3, &faults, three_writers::<typhon_sync::lock::Compact>);
}

fn readers_and_a_writer<V: Variety + Send + Sync + 'static>()
where
    ReadersWriterLock<V>: Send + Sync,
{
    let guarded = Guarded::new(ReadersWriterLock::<V>::new());
    let reader = |guarded: &Guarded<ReadersWriterLock<V>>| {
        read(guarded);
    };
    let others = [spawn(&guarded, reader), spawn(&guarded, reader)];
    write(&guarded);
    others.map(|other| other.join().unwrap());
    assert_eq!(read(&guarded), 1);
}

#[test]
fn b8_readers_share_and_exclude_a_writer() {
    let faults = [
        Fault::TakeRelaxed,
        Fault::ReleaseRelaxed,
        Fault::TakePlain,
        Fault::ReleasePlain,
        Fault::BlockUnannounced,
        Fault::WakeOneOfMany,
    ];
    holds_and_finds(3, &faults, readers_and_a_writer::<typhon_sync::lock::Fair>);
}

#[test]
fn b9_readers_share_and_exclude_a_writer() {
    let faults = [Fault::ReleaseRelaxed, Fault::ReleasePlain, Fault::BlockUnannounced, Fault::WakeOneOfMany];
    holds_and_finds(3, &faults, readers_and_a_writer::<typhon_sync::lock::Compact>);
}

#[test]
fn b8_no_reader_joins_while_a_writer_waits() {
    holds_and_finds(3, &[Fault::ReaderJoins], || {
        let guarded = Guarded::new(AccessControl::new());
        let share = Held::new(guarded.lock.shared(&FOREVER).unwrap());
        let writer = spawn(&guarded, write);
        let reader = spawn(&guarded, |guarded| {
            if guarded.lock.waiting_writers() > 0 {
                assert!(guarded.lock.try_shared().is_err());
            }
        });
        reader.join().unwrap();
        drop(share);
        writer.join().unwrap();
    });
}

#[test]
fn b8_promotion_waits_for_other_readers_and_only_one_is_promoted() {
    let faults =
        [Fault::PromoteShared, Fault::SecondPromoterWaits, Fault::TakeRelaxed, Fault::BlockUnannounced];
    holds_and_finds(2, &faults, || {
        let guarded = Guarded::new(AccessControl::new());
        let promote = |guarded: &Guarded<AccessControl>| {
            let share = Held::new(guarded.lock.shared(&FOREVER).unwrap());
            let seen = guarded.read();
            match share.into_inner().promote(&FOREVER).map(Held::new) {
                Ok(_alone) => {
                    assert_eq!(guarded.read(), seen, "nobody writes between");
                    guarded.add_one();
                }
                Err((share, error)) => {
                    drop(Held::new(share));
                    assert_eq!(error, LockError::PromotionInProgress);
                }
            }
        };
        let others = [spawn(&guarded, promote), spawn(&guarded, write)];
        promote(&guarded);
        others.map(|other| other.join().unwrap());
        assert!((2..=3).contains(&read(&guarded)));
    });
}

#[test]
fn b8_demotion_lets_readers_in() {
    holds_and_finds(3, &[Fault::DemoteSilent], || {
        let guarded = Guarded::new(AccessControl::new());
        let alone = Held::new(guarded.lock.exclusive(&FOREVER).unwrap());
        guarded.add_one();
        let reader = spawn(&guarded, |guarded| assert_eq!(read(guarded), 1));
        let share = Held::new(alone.into_inner().demote().unwrap());
        reader.join().unwrap();
        drop(share);
    });
}

#[test]
fn b5_a_writer_that_gives_up_lets_readers_in() {
    holds_and_finds(3, &[Fault::GiveUpSilent, Fault::GiveUpCounted], || {
        let guarded = Guarded::new(AccessControl::new());
        let share = Held::new(guarded.lock.shared(&FOREVER).unwrap());
        let token = CancelToken::new();
        let writers = token.clone();
        let writer = spawn(&guarded, move |guarded| {
            // It may come after the share has ended.
            match guarded.lock.exclusive(&FOREVER.cancelled_by(&writers)).map(Held::new) {
                Ok(_alone) => {}
                Err(error) => assert!(matches!(error, LockError::Cancelled { .. })),
            }
        });
        let reader = spawn(&guarded, |guarded| _ = read(guarded));
        token.cancel();
        reader.join().unwrap();
        drop(share);
        writer.join().unwrap();
    });
}

#[test]
fn b10_one_modifies_beside_accessors() {
    let faults = [Fault::TakeRelaxed, Fault::ReleaseRelaxed, Fault::TakePlain, Fault::BlockUnannounced];
    holds_and_finds(3, &faults, || {
        let guarded = Guarded::new(ResourceAccessControl::new());
        let modify = |guarded: &Guarded<ResourceAccessControl>| {
            let _change = Held::new(guarded.lock.modify(&FOREVER).unwrap());
            guarded.add_one();
        };
        // Neither of the two has to wait for the access, but an access may wait for a modifier that waits.
        let others = [
            spawn(&guarded, modify),
            spawn(&guarded, |guarded| drop(guarded.lock.access(&FOREVER).unwrap())),
        ];
        modify(&guarded);
        others.map(|other| other.join().unwrap());
        let _change = Held::new(guarded.lock.modify(&FOREVER).unwrap());
        assert_eq!(guarded.read(), 2);
    });
}

#[test]
fn b10_promotion_drains_accessors() {
    let faults = [Fault::PromoteShared, Fault::SecondPromoterWaits, Fault::BlockUnannounced];
    holds_and_finds(3, &faults, || {
        let guarded = Guarded::new(ResourceAccessControl::new());
        let promote = |guarded: &Guarded<ResourceAccessControl>| {
            let using = Held::new(guarded.lock.access(&FOREVER).unwrap());
            match using.into_inner().promote(&FOREVER).map(Held::new) {
                Ok(_change) => guarded.add_one(),
                Err((using, error)) => {
                    drop(Held::new(using));
                    assert_eq!(error, LockError::PromotionInProgress);
                }
            }
        };
        let reader = |guarded: &Guarded<ResourceAccessControl>| {
            let using = Held::new(guarded.lock.access(&FOREVER).unwrap());
            if !guarded.lock.is_modified() {
                // Whoever is promoted from here on waits for this access.
                guarded.read();
            }
            drop(using);
        };
        let others = [spawn(&guarded, promote), spawn(&guarded, reader)];
        promote(&guarded);
        others.map(|other| other.join().unwrap());
    });
}

#[test]
fn b10_destruction_waits_for_accessors_and_ends_every_wait() {
    let faults = [
        Fault::DestroyEarly,
        Fault::DestroySilent,
        Fault::AccessDuringDestroy,
        Fault::TakeRelaxed,
        Fault::ReleaseRelaxed,
        Fault::BlockUnannounced,
    ];
    holds_and_finds(3, &faults, || {
        let guarded = Guarded::new(ResourceAccessControl::new());
        let using = Held::new(guarded.lock.access(&FOREVER).unwrap());
        let destroyer = spawn(&guarded, |guarded| {
            guarded.lock.destroy(&FOREVER).unwrap();
            guarded.add_one();
        });
        let late = spawn(&guarded, |guarded| {
            let is_destroyer_waiting = guarded.lock.was_contended();
            match guarded.lock.access(&FOREVER).map(Held::new) {
                Ok(_using) => {
                    assert!(!is_destroyer_waiting, "nobody enters while a destroyer waits");
                    assert_eq!(guarded.read(), 0);
                }
                Err(error) => assert_eq!(error, LockError::Destroyed),
            }
        });
        assert_eq!(guarded.read(), 0);
        drop(using);
        destroyer.join().unwrap();
        late.join().unwrap();
        assert_eq!(guarded.lock.access(&FOREVER).err(), Some(LockError::Destroyed));
    });
}

#[test]
fn b10_a_destroyer_that_gives_up_lets_accessors_in() {
    holds_and_finds(3, &[Fault::GiveUpSilent, Fault::GiveUpCounted], || {
        let guarded = Guarded::new(ResourceAccessControl::new());
        let using = Held::new(guarded.lock.access(&FOREVER).unwrap());
        let token = CancelToken::new();
        let destroyers = token.clone();
        let destroyer = spawn(&guarded, move |guarded| {
            // It may come after the use has ended.
            let result = guarded.lock.destroy(&FOREVER.cancelled_by(&destroyers));
            assert!(matches!(result, Ok(()) | Err(LockError::Cancelled { .. })));
        });
        let accessor = spawn(&guarded, |guarded| drop(guarded.lock.access(&FOREVER).unwrap()));
        token.cancel();
        accessor.join().unwrap();
        drop(using);
        destroyer.join().unwrap();
    });
}

#[test]
fn b6_a_permit_is_never_lost() {
    holds_and_finds(4, &[Fault::ParkRelaxed, Fault::UnparkRelaxed, Fault::UnparkSilent], || {
        let parker = Arc::new((Parker::new(), UnsafeCell::new(0u32)));
        let giver = Arc::clone(&parker);
        let giver = thread::spawn(move || {
            giver.1.with_mut(|value| unsafe { *value = 1 });
            giver.0.unpark();
            giver.0.unpark();
        });
        assert_eq!(parker.0.park(Deadline::INFINITE), WaitEnd::Woken);
        assert_eq!(parker.1.with(|value| unsafe { *value }), 1);
        giver.join().unwrap();
        parker.0.unpark();
        assert_eq!(parker.0.park(Deadline::INFINITE), WaitEnd::Woken);
    });
}
