//! What locks and waits record: kinds 90 to 105 and 112, field by field.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "these are tests")]

#[path = "common/trace.rs"]
mod trace;

use std::time::{Duration, Instant};
use trace::{Row, recorded};
use typhon_sync::atomic::AtomicU32;
use typhon_sync::lock::{AccessControl, AccessControlSmall, ResourceAccessControl};
use typhon_sync::waiter::AdaptiveWaiter;
use typhon_sync::{CancelToken, WaitContext};

const FOREVER: WaitContext<'static> = WaitContext::INFINITE;
const NO_WAIT: WaitContext<'static> = WaitContext::NO_WAIT;
const ALL: [u8; 17] = [90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 112];

fn me() -> u16 {
    typhon_profiler::thread::current_id()
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

/// Long enough to be told from no time at all in a field of microseconds.
fn hold() {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_micros(50) {
        std::hint::spin_loop();
    }
}

fn kinds(rows: &[Row]) -> Vec<u8> {
    rows.iter().map(|row| row.kind).collect()
}

fn of_kind(rows: &[Row], kind: u8) -> Vec<&Row> {
    rows.iter().filter(|row| row.kind == kind).collect()
}

#[test]
fn k90_to_94_without_contention() {
    let lock = AccessControl::new();
    let rows = recorded(&ALL, || {
        let share = lock.try_shared().unwrap();
        assert!(lock.try_exclusive().is_err(), "a failure records nothing");
        drop(share.promote(&NO_WAIT).unwrap().demote().unwrap());
        drop(lock.exclusive(&FOREVER).unwrap());
        assert!(lock.exit_shared().is_err(), "misuse records nothing");
    });
    assert_eq!(kinds(&rows), [90, 94, 94, 91, 92, 93]);
    for row in &rows {
        match row.kind {
            90 | 92 => assert_eq!((row.u16(0), row.u8(2), row.u16(3)), (me(), 0, 0)),
            91 | 93 => assert_eq!(row.u16(0), me()),
            _ => assert_eq!(row.u16(0), 0),
        }
    }
    assert_eq!((rows[1].u8(2), rows[2].u8(2)), (0, 1));
}

#[test]
fn k95_once_per_wait_and_k90_k92_tell_its_length() {
    let lock = AccessControl::new();
    let mut other = 0;
    let rows = recorded(&ALL, || {
        let alone = lock.try_exclusive().unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                drop(lock.exclusive(&FOREVER).unwrap());
                me()
            });
            until(|| lock.waiting_writers() == 1);
            hold();
            drop(alone);
            other = writer.join().unwrap();
        });
    });
    assert_eq!(of_kind(&rows, 95).len(), 1);
    let waited = of_kind(&rows, 92)[1];
    assert_eq!((waited.u16(0), waited.u8(2)), (other, 1));
    assert!(waited.u16(3) > 0);
    let order: Vec<u8> = kinds(&rows).into_iter().filter(|kind| matches!(kind, 92 | 93)).collect();
    assert_eq!(order, [92, 93, 92, 93], "the release stands before the acquisition that followed it");
}

#[test]
fn k94_a_promotion_that_waited_tells_how_long() {
    let lock = AccessControl::new();
    let rows = recorded(&[94, 95], || {
        let share = lock.try_shared().unwrap();
        std::thread::scope(|scope| {
            let promoter = scope.spawn(|| drop(lock.shared(&FOREVER).unwrap().promote(&FOREVER).unwrap()));
            until(|| lock.was_contended());
            hold();
            drop(share);
            promoter.join().unwrap();
        });
    });
    assert_eq!(kinds(&rows), [95, 94]);
    assert!(rows[1].u16(0) > 0 && rows[1].u8(2) == 0);
}

#[test]
fn k96_to_100_of_the_small_lock() {
    let lock = AccessControlSmall::new();
    let rows = recorded(&ALL, || {
        drop(lock.try_shared().unwrap().promote(&NO_WAIT).unwrap().demote().unwrap());
        let alone = lock.exclusive(&FOREVER).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(lock.try_shared().is_err()));
            let token = CancelToken::new();
            let reader = scope.spawn({
                let (lock, token) = (&lock, token.clone());
                move || assert!(lock.shared(&FOREVER.cancelled_by(&token)).is_err())
            });
            until(|| lock.was_contended());
            token.cancel();
            reader.join().unwrap();
        });
        drop(alone);
    });
    // Promotion is an acquisition; demotion a release and an acquisition.
    let order: Vec<u8> = kinds(&rows).into_iter().filter(|kind| *kind != 112).collect();
    assert_eq!(order, [96, 98, 99, 96, 97, 98, 100, 99]);
    assert!(rows.iter().filter(|row| (96..=99).contains(&row.kind)).all(|row| row.u16(0) == me()));
}

#[test]
fn k101_to_105_of_the_resource_lock() {
    let lock = ResourceAccessControl::new();
    let rows = recorded(&ALL, || {
        let one = lock.access(&FOREVER).unwrap();
        let two = lock.access(&FOREVER).unwrap();
        drop(lock.modify(&FOREVER).unwrap());
        assert!(lock.destroy(&NO_WAIT).is_err());
        drop(two);
        std::thread::scope(|scope| {
            let promoter = scope.spawn(|| {
                let change = lock.access(&FOREVER).unwrap().promote(&FOREVER).unwrap();
                drop(change);
                me()
            });
            until(|| lock.was_contended());
            hold();
            drop(one);
            promoter.join().unwrap();
        });
        lock.destroy(&FOREVER).unwrap();
        assert!(lock.access(&FOREVER).is_err());
        assert!(lock.modify(&FOREVER).is_err());
    });
    let order: Vec<u8> = kinds(&rows).into_iter().filter(|kind| *kind != 112).collect();
    assert_eq!(order, [101, 101, 102, 103, 101, 105, 104, 102, 103, 101, 102]);
    let accesses: Vec<_> = of_kind(&rows, 101).iter().map(|row| (row.u8(0), row.u8(1))).collect();
    assert_eq!(accesses, [(1, 1), (1, 2), (1, 2), (0, 0)]);
    let changes: Vec<_> = of_kind(&rows, 102).iter().map(|row| row.u8(0)).collect();
    assert_eq!(changes, [1, 1, 0]);
    assert_eq!(of_kind(&rows, 102)[0].u16(1), me());
    assert!(of_kind(&rows, 102)[1].u16(3) > 0 && of_kind(&rows, 104)[0].u16(0) > 0);
    assert_eq!(of_kind(&rows, 103).iter().map(|row| row.u8(0)).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn k104_also_when_the_promotion_fails_and_k105_only_when_the_mark_is_set() {
    let lock = ResourceAccessControl::new();
    let token = CancelToken::new();
    let rows = recorded(&[101, 102, 104, 105], || {
        let one = lock.access(&FOREVER).unwrap();
        let promote_in_vain = || {
            let context = FOREVER.cancelled_by(&token);
            assert!(lock.access(&FOREVER).unwrap().promote(&context).is_err());
        };
        std::thread::scope(|scope| {
            let promoter = scope.spawn(promote_in_vain);
            until(|| lock.was_contended());
            hold();
            token.cancel();
            promoter.join().unwrap();
        });
        let (using, _) = lock.access(&FOREVER).unwrap().promote(&NO_WAIT).unwrap_err();
        drop((using, one));
    });
    assert_eq!(kinds(&rows), [101, 101, 105, 104, 101], "who does not wait has not waited");
    assert!(rows[3].u16(0) > 0);
}

#[test]
fn k112_each_transition_once_per_wait() {
    let word = AtomicU32::new(0);
    let rows = recorded(&[112], || {
        let mut waiter = AdaptiveWaiter::new();
        (0..20).for_each(|_| waiter.wait(&word, 0, &NO_WAIT));
    });
    let transitions: Vec<_> = rows.iter().map(|row| (row.u16(0), row.u8(2))).collect();
    assert_eq!(transitions, [(10, 1), (10, 2)]);
}

#[test]
fn b33_nothing_is_recorded_when_the_kinds_are_off() {
    let lock = AccessControl::new();
    let rows = recorded(&[90], || drop(lock.exclusive(&FOREVER).unwrap()));
    assert!(rows.is_empty());
}
