//! Model of the telemetry slots: every schedule of one writer and a reader up to a bound on preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p typhon-runtime --release --test loom_telemetry`
//!
//! The scenario holds for the protocol as it is, and fails with each fault: a model that would not notice a mistake
//! proves nothing.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use typhon_runtime::telemetry::{Fault, Slots, plant};

/// Writes a tick whose words are alike.
fn write(slots: &Slots, tick: u64) {
    slots.write(tick, |words| words.iter().for_each(|word| word.store(tick + 10, Ordering::Relaxed)));
}

/// Two ticks go through one slot of two words that must agree, while a reader asks for both.
fn write_beside_reader() {
    let slots = Arc::new(Slots::new(1, 2));
    let writer = {
        let slots = Arc::clone(&slots);
        thread::spawn(move || (0..2).for_each(|tick| write(&slots, tick)))
    };
    // A thread of its own: loom explores hardly any schedules of its first thread.
    let reader = {
        let slots = Arc::clone(&slots);
        thread::spawn(move || (0..2).for_each(|tick| read_whole(&slots, tick)))
    };
    writer.join().unwrap();
    reader.join().unwrap();
    let mut words = [0; 2];
    assert!(slots.read(1, 0, &mut words) && !slots.read(0, 0, &mut words));
}

fn read_whole(slots: &Slots, tick: u64) {
    let mut words = [0; 2];
    if slots.read(tick, 0, &mut words) {
        assert_eq!(words, [tick + 10; 2]);
    }
}

fn check(fault: Option<Fault>) -> std::thread::Result<()> {
    plant(fault);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    let result = catch_unwind(AssertUnwindSafe(|| builder.check(write_beside_reader)));
    plant(None);
    result
}

#[test]
fn b56_no_read_is_torn_and_each_fault_would_be_noticed() {
    if let Err(panic) = check(None) {
        resume_unwind(panic);
    }
    let faults = [
        Fault::WriteUnannounced,
        Fault::AnnounceLate,
        Fault::PublishRelaxed,
        Fault::LookRelaxed,
        Fault::LookAgainEarly,
        Fault::LookOnce,
    ];
    let missed: Vec<_> = faults.into_iter().filter(|fault| check(Some(*fault)).is_ok()).collect();
    assert!(missed.is_empty(), "the model does not notice {missed:?}");
}
