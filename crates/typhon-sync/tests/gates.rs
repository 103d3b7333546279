//! What the gates promise.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use typhon_sync::context::Stop;
use typhon_sync::gate::{GateError, LatchTable, QuiesceGate, SequenceError, SequenceGate, TickGate};
use typhon_sync::lock::LockError;
use typhon_sync::{CancelToken, WaitContext};

const FOREVER: WaitContext<'static> = WaitContext::INFINITE;
const NO_WAIT: WaitContext<'static> = WaitContext::NO_WAIT;

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

#[test]
fn rank1_one_tick_at_a_time() {
    let gate = TickGate::new();
    let token = gate.enter(&NO_WAIT).unwrap();
    let at_once = LockError::TimedOut { waited: Duration::ZERO };
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(gate.enter(&NO_WAIT).err(), Some(at_once)));
    });
    drop(token);
    assert!(gate.enter(&NO_WAIT).is_ok());
}

#[test]
fn rank4_tickets_nest_also_while_the_gate_closes() {
    let gate = QuiesceGate::new();
    let ticket = gate.enter(&NO_WAIT).unwrap();
    std::thread::scope(|scope| {
        let freezer = scope.spawn(|| drop(gate.exclusive(&FOREVER).unwrap()));
        until(|| gate.is_closed());
        // A thread that is inside goes on; others wait.
        drop(gate.enter(&NO_WAIT).unwrap());
        let other = scope.spawn(|| gate.enter(&NO_WAIT).err());
        assert_eq!(other.join().unwrap(), Some(GateError::Stopped(Stop::Expired)));
        drop(ticket);
        freezer.join().unwrap();
    });
    assert!(!gate.is_closed());
}

#[test]
fn rank4_misuse_is_an_error_and_not_a_wait_for_oneself() {
    let gate = QuiesceGate::new();
    let ticket = gate.enter(&FOREVER).unwrap();
    assert_eq!(gate.exclusive(&FOREVER).err(), Some(GateError::HoldsTicket));
    drop(ticket);
    let window = gate.exclusive(&FOREVER).unwrap();
    assert_eq!(gate.enter(&FOREVER).err(), Some(GateError::InsideWindow));
    assert_eq!(gate.exclusive(&FOREVER).err(), Some(GateError::InsideWindow));
    drop(window);
    assert!(gate.enter(&NO_WAIT).is_ok());
}

#[test]
fn rank4_closing_that_is_given_up_opens_the_gate() {
    let gate = QuiesceGate::new();
    let ticket = gate.enter(&NO_WAIT).unwrap();
    let token = CancelToken::new();
    std::thread::scope(|scope| {
        let freezer = scope.spawn(|| gate.exclusive(&FOREVER.cancelled_by(&token)).err());
        let waiter = scope.spawn(|| {
            until(|| gate.is_closed());
            drop(gate.enter(&FOREVER).unwrap());
        });
        until(|| gate.is_closed());
        token.cancel();
        assert_eq!(freezer.join().unwrap(), Some(GateError::Stopped(Stop::Cancelled)));
        // The other thread looks again and again until it has seen the gate closed, so it is closed once more.
        drop(ticket);
        while !waiter.is_finished() {
            drop(gate.exclusive(&FOREVER).unwrap());
        }
        waiter.join().unwrap();
    });
}

#[test]
fn rank4_stress_windows_see_nothing_half_done() {
    let (gate, stop) = (QuiesceGate::new(), AtomicBool::new(false));
    let counters: [[AtomicU64; 2]; 4] = Default::default();
    std::thread::scope(|scope| {
        for counter in &counters {
            let (gate, stop) = (&gate, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let _ticket = gate.enter(&FOREVER).unwrap();
                    counter.iter().for_each(|half| _ = half.fetch_add(1, Ordering::Relaxed));
                }
            });
        }
        for _ in 0..2_000 {
            let _window = gate.exclusive(&FOREVER).unwrap();
            for [one, two] in &counters {
                assert_eq!(one.load(Ordering::Relaxed), two.load(Ordering::Relaxed));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn rank3_stress_of_latch_sets() {
    let table = LatchTable::with_stripes(16);
    let owners: [AtomicU64; 16] = Default::default();
    std::thread::scope(|scope| {
        for thread in 1..=4u64 {
            let (table, owners) = (&table, &owners);
            scope.spawn(move || {
                for round in 0..5_000u64 {
                    let stripes = (0..3).map(|n| table.stripe(round * 7 + n * 31 + thread)).collect();
                    let set = table.lock_sorted(stripes, &FOREVER).unwrap();
                    let held = || set.stripes().iter().map(|stripe| &owners[*stripe as usize]);
                    held().for_each(|owner| assert_eq!(owner.swap(thread, Ordering::Relaxed), 0));
                    held().for_each(|owner| assert_eq!(owner.swap(0, Ordering::Relaxed), thread));
                }
            });
        }
    });
}

#[test]
fn seq_numbers_are_filled_once_and_within_the_ring() {
    let gate = SequenceGate::new(4, 10);
    gate.fill(12).unwrap();
    assert_eq!(gate.fill(12), Err(SequenceError::FilledBefore { number: 12 }));
    assert_eq!(gate.fill(10), Err(SequenceError::FilledBefore { number: 10 }));
    let too_far = SequenceError::TooFarAhead { number: 15, published: 10, capacity: 4 };
    assert_eq!(gate.fill(15), Err(too_far));
    assert_eq!(gate.published(), 10);
    gate.fill(11).unwrap();
    assert_eq!(gate.published(), 12);
    gate.fill(15).unwrap();
    assert_eq!(gate.wait_published(12, &NO_WAIT), Ok(()));
    assert_eq!(gate.wait_published(13, &NO_WAIT), Err(Stop::Expired));
}

#[test]
fn seq_stress_every_number_is_published() {
    let (gate, claim) = (SequenceGate::new(16, 0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5_000 {
                    let number = claim.fetch_add(1, Ordering::Relaxed) + 1;
                    gate.fill(number).unwrap();
                    gate.wait_published(number, &FOREVER).unwrap();
                }
            });
        }
    });
    assert_eq!(gate.published(), 20_000);
}

proptest! {
    /// Filled in any order, the watermark is the longest filled prefix after every step.
    #[test]
    fn seq_the_watermark_is_the_longest_filled_prefix(order in Just((1..=64u64).collect::<Vec<_>>()).prop_shuffle()) {
        let gate = SequenceGate::new(64, 0);
        let mut filled = [false; 66];
        for number in order {
            gate.fill(number).unwrap();
            filled[number as usize] = true;
            let prefix = (1..).take_while(|number| filled[*number as usize]).count();
            prop_assert_eq!(gate.published(), prefix as u64);
        }
    }
}
