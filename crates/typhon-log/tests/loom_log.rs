//! Models of claim, ring, drain and waiting: every schedule up to a bound on preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p typhon-log --release --test loom_log`
//!
//! Every scenario holds for the protocol as it is, and fails with each of the faults named beside it.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use typhon_log::model::Model;
use typhon_log::{Fault, plant};

/// Checks the protocol, then that each fault is found.
fn holds_and_finds(
    preemptions: usize,
    faults: &[Fault],
    scenario: impl Fn() + Sync + Send + Clone + 'static,
) {
    let check = |planted: &[Fault]| {
        plant(planted);
        let scenario = scenario.clone();
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        let result = catch_unwind(AssertUnwindSafe(|| builder.check(scenario)));
        plant(&[]);
        result
    };
    if let Err(panic) = check(&[]) {
        std::panic::resume_unwind(panic);
    }
    let missed: Vec<_> = faults.iter().filter(|fault| check(&[**fault]).is_ok()).collect();
    assert!(missed.is_empty(), "the model does not notice {missed:?}");
}

/// Runs the work of each thread on a log, the last of it on the thread that checks. Each content arrives once.
fn beside(model: Model, mut work: Vec<fn(&Model)>, contents: &[u64]) {
    let mine = work.pop().unwrap();
    let threads: Vec<_> = work
        .into_iter()
        .map(|work| {
            let model = model.clone();
            thread::spawn(move || work(&model))
        })
        .collect();
    mine(&model);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let mut found = model.contents();
    found.sort_unstable();
    assert_eq!(found, contents);
}

/// Two producers that wait: one writes for both, or hands over.
#[test]
fn s4_no_wake_is_lost_and_the_orders_are_one() {
    let faults = [
        Fault::TwoAtomics,
        Fault::PublishFirst,
        Fault::PublishRelaxed,
        Fault::RegisterBlind,
        Fault::AwaitBlind,
    ];
    holds_and_finds(3, &faults, || {
        let one: fn(&Model) = |model| model.wait(model.append(1));
        let two: fn(&Model) = |model| model.wait(model.append(2));
        beside(Model::new(128), vec![one, two], &[1, 2]);
    });
}

/// A third thread writes and leaves: somebody must write what came meanwhile.
#[test]
fn s4_whoever_gives_the_writer_back_wakes_the_next() {
    holds_and_finds(2, &[Fault::NoBaton], || {
        let one: fn(&Model) = |model| model.wait(model.append(1));
        let two: fn(&Model) = |model| model.wait(model.append(2));
        let passing: fn(&Model) = Model::step;
        beside(Model::new(128), vec![one, two, passing], &[1, 2]);
    });
}

/// Two threads wait for what a third one writes: both are woken, however far they were on their way to sleep.
#[test]
fn s4_whoever_is_served_is_woken() {
    holds_and_finds(2, &[Fault::WakeBeforeMark], || {
        let model = Model::new(128);
        model.append(1);
        model.append(2);
        let one: fn(&Model) = |model| model.wait(Model::end_of(1));
        let two: fn(&Model) = |model| model.wait(Model::end_of(2));
        beside(model, vec![one, two, Model::step], &[1, 2]);
    });
}

/// A ring for one frame, and three: space is not used before it is free. That it comes back zeroed takes frames of
/// several sizes to notice; the crash sweep has them.
#[test]
fn s4_space_comes_back_whole() {
    holds_and_finds(2, &[Fault::FreeEarly], || {
        let one: fn(&Model) = |model| (1..=2).for_each(|content| model.wait(model.append(content)));
        let two: fn(&Model) = |model| model.wait(model.append(3));
        beside(Model::new(64), vec![one, two], &[1, 2, 3]);
    });
}

/// A ring for one frame: who waits for space is woken by whoever frees it or gives it back.
#[test]
fn s4_who_waits_for_space_is_woken() {
    holds_and_finds(2, &[Fault::SpaceBlind], || {
        let one: fn(&Model) = |model| model.wait(model.append(1));
        let two: fn(&Model) = |model| model.wait(model.append(2));
        let vain: fn(&Model) = Model::reserve_in_vain;
        beside(Model::new(64), vec![one, two, vain], &[1, 2]);
    });
}

/// A ring for one frame, and a third thread that looks for something to write and leaves: who found the writer taken then
/// is told that it is free.
#[test]
fn s4_who_waits_for_space_finds_the_writer_free() {
    holds_and_finds(2, &[Fault::FreedUntold], || {
        let two: fn(&Model) = |model| {
            model.append(1);
            model.wait(model.append(2));
        };
        beside(Model::new(64), vec![Model::step, two], &[1, 2]);
    });
}

/// Whoever is served need not look again: what it waited for is durable.
#[test]
fn s4_who_is_served_finds_it_durable() {
    holds_and_finds(2, &[Fault::DurableAfterMark], || {
        let model = Model::new(128);
        model.append(1);
        let one: fn(&Model) = |model| model.wait_once(Model::end_of(1));
        beside(model, vec![one, Model::step], &[1]);
    });
}

/// Whoever looks how full the ring is, while somebody drains it, finds what was true at some time.
#[test]
fn the_ring_never_holds_more_than_fits() {
    holds_and_finds(2, &[Fault::FreedReadLate], || {
        let passing: fn(&Model) = |model| {
            model.append(1);
            model.step();
        };
        beside(Model::new(128), vec![Model::measure, passing], &[1]);
    });
}

/// A frame that joins a group while that is being closed is written with it, or opens the next one: there is always a time
/// at which it will be written.
#[test]
fn a_frame_of_a_group_is_never_left_without_a_time() {
    holds_and_finds(3, &[Fault::GroupUnfenced], || {
        let model = Model::new(128);
        model.append(1);
        model.join_group();
        // Somebody who could not wait for the group: nothing of it is left, and what taking a frame fences is not done.
        model.step();
        let other = model.clone();
        let other = thread::spawn(move || {
            other.append(2);
            other.join_group();
        });
        model.write_group();
        other.join().unwrap();
        model.write_group();
        assert_eq!(model.contents(), [1, 2]);
    });
}
