//! What epochs promise.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use proptest::prelude::*;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, OnceLock};
use typhon_profiler::thread::{is_gone, os_id};
use typhon_sync::epoch::{EpochError, EpochGuard, EpochManager, RetireList, UnorderedEpochGuard};

#[test]
fn b13_epochs_begin_at_one_and_only_the_outermost_pin_counts() {
    let epochs = EpochManager::new();
    assert_eq!((epochs.current_epoch(), epochs.min_active_epoch()), (1, 1));
    let outer = epochs.pin().unwrap();
    epochs.advance();
    let inner = epochs.pin().unwrap();
    assert_eq!((outer.epoch(), inner.epoch()), (1, 1), "the thread stays where it was");
    assert_eq!(inner.exit(), Ok(()));
    assert_eq!(epochs.min_active_epoch(), 1);
    assert_eq!(outer.exit(), Ok(()));
    assert_eq!(epochs.min_active_epoch(), 2);
}

#[test]
fn b13_wrong_order_is_an_error_and_leaves_the_thread_pinned() {
    let epochs = EpochManager::new();
    let outer = epochs.pin().unwrap();
    let inner = epochs.pin().unwrap();
    epochs.advance();
    assert_eq!(outer.exit(), Err(EpochError::WrongOrder));
    assert_eq!(epochs.min_active_epoch(), 1, "the inner one holds it");
    drop(inner);
    assert_eq!(epochs.min_active_epoch(), 2);
}

#[test]
fn b13_unordered_scopes_end_in_any_order() {
    let epochs = EpochManager::new();
    let transaction = epochs.pin_unordered().unwrap();
    let read = epochs.pin().unwrap();
    let other = epochs.pin_unordered().unwrap();
    epochs.advance();
    drop(transaction);
    assert_eq!(read.exit(), Ok(()));
    assert_eq!(epochs.min_active_epoch(), 1);
    drop(other);
    assert_eq!(epochs.min_active_epoch(), 2);
}

#[test]
fn b14_the_minimum_over_threads_or_the_current_epoch() {
    let epochs = EpochManager::new();
    let (pinned, looked) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let pin = epochs.pin().unwrap();
            pinned.wait();
            looked.wait();
            drop(pin);
        });
        pinned.wait();
        epochs.advance();
        let here = epochs.pin().unwrap();
        assert_eq!((here.epoch(), epochs.min_active_epoch()), (2, 1));
        looked.wait();
    });
    assert_eq!(epochs.min_active_epoch(), epochs.current_epoch());
}

#[test]
fn b15_outermost_exits_advance_the_epoch_in_batches_and_anybody_can_force_it() {
    let epochs = EpochManager::new();
    for _ in 0..31 {
        let _outer = epochs.pin().unwrap();
        drop(epochs.pin().unwrap());
    }
    assert_eq!(epochs.current_epoch(), 1);
    drop(epochs.pin().unwrap());
    assert_eq!(epochs.current_epoch(), 2);
    assert_eq!(epochs.advance(), 3);
}

#[test]
fn b15_refresh_moves_a_sole_pin() {
    let epochs = EpochManager::new();
    let mut pin = epochs.pin().unwrap();
    epochs.advance();
    assert_eq!(epochs.min_active_epoch(), 1);
    assert_eq!(pin.refresh(), Ok(2));
    assert_eq!((pin.epoch(), epochs.min_active_epoch()), (2, 2));
    epochs.advance();
    let inner = epochs.pin().unwrap();
    assert_eq!(pin.refresh(), Err(EpochError::Nested));
    assert_eq!(epochs.min_active_epoch(), 2);
    drop(inner);
    assert_eq!(pin.refresh(), Ok(3));
}

#[test]
fn b16_threads_give_their_slots_back_and_managers_do_not_mix() {
    let (one, two) = (EpochManager::new(), EpochManager::new());
    for _ in 0..3 {
        let everyone = Barrier::new(100);
        std::thread::scope(|scope| {
            let work = || {
                let _one = one.pin().unwrap();
                drop(two.pin().unwrap());
                everyone.wait();
                assert_eq!((one.threads(), two.threads()), (100, 100));
                // Nobody ends before everybody has looked.
                everyone.wait();
            };
            let threads: Vec<_> = (0..100).map(|_| scope.spawn(work)).collect();
            // The scope would wait for the closures; joining waits for the ends of the threads.
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
    assert_eq!((one.threads(), two.threads()), (0, 0));
    assert_eq!(one.min_active_epoch(), one.current_epoch());
}

#[test]
fn b16_a_thread_outlives_a_manager_and_finds_the_next_one() {
    for _ in 0..1_000 {
        let epochs = EpochManager::new();
        let pin = epochs.pin().unwrap();
        assert_eq!((pin.epoch(), epochs.threads()), (1, 1));
    }
}

static LATE: OnceLock<EpochManager> = OnceLock::new();

#[test]
fn b16_pins_at_the_end_of_a_thread() {
    /// Runs after the thread's slots were given back.
    struct Last(RefCell<Option<EpochGuard<'static>>>);
    impl Drop for Last {
        fn drop(&mut self) {
            let epochs = LATE.get().unwrap();
            assert!(self.0.take().is_some());
            REFUSED.store(epochs.pin().err() == Some(EpochError::ThreadEnds), Ordering::Relaxed);
        }
    }
    static REFUSED: AtomicBool = AtomicBool::new(false);
    std::thread_local!(static LAST: Last = const { Last(RefCell::new(None)) });
    let epochs = LATE.get_or_init(EpochManager::new);
    let work = || {
        LAST.with(|last| *last.0.borrow_mut() = Some(epochs.pin().unwrap()));
        os_id()
    };
    let thread = std::thread::spawn(work).join().unwrap();
    assert!(REFUSED.load(Ordering::Relaxed));
    assert_eq!(epochs.min_active_epoch(), epochs.current_epoch(), "the pin ended with its guard");
    if cfg!(target_os = "linux") {
        while !is_gone(thread) {
            std::thread::yield_now();
        }
        assert_eq!((epochs.reclaim_dead_slots(), epochs.threads()), (1, 0));
    }
}

/// Four threads read what one replaces; nothing is used again that one of them can see.
#[test]
fn i7_stress_nothing_is_used_again_under_a_reader() {
    const FREE: u64 = 0;
    let (epochs, retired, stop) = (EpochManager::new(), RetireList::new(), AtomicBool::new(false));
    let cells: Vec<AtomicU64> = (0..64).map(|n| AtomicU64::new(u64::from(n == 0))).collect();
    let linked = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let mut pin = epochs.pin().unwrap();
                    for round in 0..20 {
                        let cell = &cells[linked.load(Ordering::Acquire) as usize];
                        let value = cell.load(Ordering::Acquire);
                        assert_ne!(value, FREE);
                        std::hint::spin_loop();
                        assert_eq!(cell.load(Ordering::Relaxed), value, "used again under a pin");
                        if round % 8 == 0 {
                            pin.refresh().unwrap();
                        }
                    }
                }
            });
        }
        let mut free: Vec<u64> = (1..64).collect();
        for value in 2..5_000 {
            for cell in retired.collect(&epochs) {
                cells[cell as usize].store(FREE, Ordering::Relaxed);
                free.push(cell);
            }
            let Some(cell) = free.pop() else {
                std::thread::yield_now();
                continue;
            };
            cells[cell as usize].store(value, Ordering::Release);
            retired.retire(&epochs, linked.swap(cell, Ordering::AcqRel));
        }
        stop.store(true, Ordering::Relaxed);
    });
    retired.collect(&epochs);
    assert!(retired.is_empty());
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Pin,
    PinUnordered,
    End(usize),
    Advance,
    Refresh,
}

enum Guard<'m> {
    Ordered(EpochGuard<'m>),
    Unordered(#[expect(dead_code, reason = "held to be dropped")] UnorderedEpochGuard<'m>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        Just(Step::Pin),
        Just(Step::PinUnordered),
        (0..8usize).prop_map(Step::End),
        Just(Step::Advance),
        Just(Step::Refresh)
    ];
    proptest::collection::vec(step, 0..120)
}

proptest! {
    /// Against a list of guards and the epoch in which the first of them came.
    #[test]
    fn b13_b14_b15_any_steps_of_one_thread_are_as_a_naive_epoch(steps in steps()) {
        let epochs = EpochManager::new();
        let mut guards: Vec<Guard<'_>> = Vec::new();
        let mut pinned = None;
        for step in steps {
            match step {
                Step::Pin => guards.push(Guard::Ordered(epochs.pin().unwrap())),
                Step::PinUnordered => guards.push(Guard::Unordered(epochs.pin_unordered().unwrap())),
                Step::End(_) if guards.is_empty() => {}
                Step::End(which) => drop(guards.remove(which % guards.len())),
                Step::Advance => _ = epochs.advance(),
                Step::Refresh => {
                    let is_sole = guards.len() == 1;
                    if let Some(Guard::Ordered(guard)) = guards.last_mut() {
                        let refreshed = guard.refresh();
                        prop_assert_eq!(refreshed.is_ok(), is_sole);
                        pinned = refreshed.ok().or(pinned);
                    }
                }
            }
            pinned = if guards.is_empty() { None } else { pinned.or(Some(epochs.current_epoch())) };
            prop_assert_eq!(epochs.min_active_epoch(), pinned.unwrap_or(epochs.current_epoch()));
        }
    }
}
