//! Models of the capture buffer, the slots, the losses and sessions: every schedule up to a bound on preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p typhon-profiler --release --test loom_capture`
//!
//! Every scenario holds for the protocol as it is, and fails with each of the faults named beside it: a model that
//! would not notice a mistake proves nothing.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use typhon_profiler::model::{Fault, Model, ModelProcess, plant};

/// Checks the protocol, then that each fault is found.
fn holds_and_finds(
    preemptions: usize,
    faults: &[Fault],
    scenario: impl Fn() + Sync + Send + Clone + 'static,
) {
    let check = |fault: Option<Fault>| {
        plant(fault);
        let scenario = scenario.clone();
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        let result = catch_unwind(AssertUnwindSafe(|| builder.check(scenario)));
        plant(None);
        result
    };
    if let Err(panic) = check(None) {
        std::panic::resume_unwind(panic);
    }
    let missed: Vec<_> = faults.iter().filter(|fault| check(Some(**fault)).is_ok()).collect();
    assert!(missed.is_empty(), "the model does not notice {missed:?}");
}

/// Runs threads of a model beside the consumer, which makes some rounds of its own, and then stops and checks.
fn beside_consumer(model: &Arc<Model>, threads: Vec<fn(&Model)>, rounds: usize) {
    let mut consumer = model.consumer();
    let threads: Vec<_> = threads
        .into_iter()
        .map(|work| {
            let model = Arc::clone(model);
            thread::spawn(move || work(&model))
        })
        .collect();
    for _ in 0..rounds {
        consumer.round();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    consumer.stop();
    consumer.check();
}

fn instants(model: &Model, id: u32, count: usize) {
    let mut thread = model.thread(id);
    (0..count).for_each(|_| thread.instant());
}

#[test]
fn i1_chunks_are_linked_read_and_recycled_whole() {
    let faults = [Fault::LoadOrder, Fault::CommitRelaxed, Fault::RecycleEarly, Fault::RecycleCur];
    holds_and_finds(4, &faults, || {
        let model = Model::new(1, 3);
        beside_consumer(&model, vec![|model| instants(model, 1, 4)], 2);
    });
}

#[test]
fn i1_recycled_chunks_start_afresh() {
    holds_and_finds(3, &[Fault::NoReset, Fault::LinkRelaxed], || {
        let model = Model::new(1, 2);
        beside_consumer(&model, vec![|model| instants(model, 1, 6)], 2);
    });
}

#[test]
fn i1_a_free_chunk_has_one_taker() {
    holds_and_finds(4, &[Fault::PoolPlain], || {
        let model = Model::new(2, 3);
        beside_consumer(&model, vec![|model| instants(model, 1, 2), |model| instants(model, 2, 2)], 0);
    });
}

#[test]
fn b11_a_slot_has_one_owner() {
    holds_and_finds(4, &[Fault::ClaimPlain], || {
        let model = Model::new(1, 2);
        beside_consumer(&model, vec![|model| instants(model, 1, 1), |model| instants(model, 2, 1)], 0);
    });
}

#[test]
fn b12_a_slot_passes_from_thread_to_thread() {
    holds_and_finds(3, &[Fault::RetireEarly, Fault::StateLate], || {
        let model = Model::new(1, 3);
        let one = |model: &Model| {
            let mut thread = model.thread(1);
            thread.instant();
            thread.exit();
            thread.instant();
        };
        let two = |model: &Model| {
            let mut thread = model.thread(2);
            thread.instant();
            thread.exit();
        };
        beside_consumer(&model, vec![one, two], 2);
    });
}

#[test]
fn b11_no_slot_is_taken_from_a_live_thread() {
    holds_and_finds(4, &[Fault::ThreadIdEarly], || {
        let model = Model::new(1, 2);
        let mut consumer = model.consumer();
        let mut first = model.thread(1);
        first.instant();
        first.exit();
        consumer.round();
        let second = Arc::clone(&model);
        let second = thread::spawn(move || instants(&second, 2, 1));
        assert_eq!(consumer.retire_dead(), 0);
        second.join().unwrap();
        consumer.stop();
        consumer.check();
    });
}

#[test]
fn b36_losses_are_reported_once_and_before_what_follows() {
    let faults = [Fault::TotalFirst, Fault::CountReset, Fault::LastMark, Fault::CountLate];
    holds_and_finds(3, &faults, || {
        let model = Model::new(1, 2);
        beside_consumer(&model, vec![|model| instants(model, 1, 6)], 2);
    });
}

#[test]
fn b12_a_slot_is_freed_after_its_losses_are_reported() {
    holds_and_finds(2, &[Fault::FreeUnmarked], || {
        let model = Model::new(1, 1);
        let one = |model: &Model| {
            let mut thread = model.thread(1);
            (0..3).for_each(|_| thread.instant());
            thread.exit();
        };
        beside_consumer(&model, vec![one], 1);
    });
}

#[test]
fn b10_what_a_thread_cannot_record_is_counted() {
    holds_and_finds(2, &[Fault::ExitSilent], || {
        let model = Model::new(1, 2);
        let one = |model: &Model| {
            let mut thread = model.thread(1);
            thread.instant();
            thread.exit();
            thread.instant();
        };
        beside_consumer(&model, vec![one], 1);
    });
    holds_and_finds(2, &[Fault::ReentrySilent], || {
        let model = Model::new(1, 2);
        beside_consumer(&model, vec![|model| model.thread(1).instant_inside_instant()], 1);
    });
}

#[test]
fn b1_a_guard_does_not_outlive_its_slot() {
    holds_and_finds(3, &[Fault::GuardSlot], || {
        let model = Model::new(1, 3);
        let one = |model: &Model| {
            let mut thread = model.thread(1);
            let span = thread.begin();
            thread.exit();
            thread.end(span);
        };
        beside_consumer(&model, vec![one, |model| instants(model, 2, 1)], 1);
    });
}

#[test]
fn b36_a_kind_is_marked_no_later_than_its_first_record() {
    holds_and_finds(3, &[Fault::NotesFirst], || {
        let model = Model::new(1, 3);
        let mut consumer = model.consumer();
        assert!(model.switch(false));
        consumer.round();
        let producer = Arc::clone(&model);
        let producer = thread::spawn(move || {
            producer.switch(true);
            instants(&producer, 1, 1);
        });
        consumer.round();
        producer.join().unwrap();
        consumer.stop();
        consumer.check();
        consumer.check_marks();
    });
}

#[test]
fn b29_nothing_is_on_once_a_stop_has_returned() {
    holds_and_finds(3, &[Fault::MaskOn], || {
        let model = Model::new(1, 2);
        let mut consumer = model.consumer();
        let asking = Arc::clone(&model);
        let asking = thread::spawn(move || asking.asks_after_stop());
        // A change that comes while the session is stopped is taken by it, or refused.
        let changer = Arc::clone(&model);
        let changer = thread::spawn(move || changer.switch(true));
        consumer.stop();
        asking.join().unwrap();
        changer.join().unwrap();
        assert!(!model.switch(true), "no session runs");
        model.asks_after_stop();
    });
}

#[test]
fn b28_a_session_has_nothing_of_the_one_before() {
    holds_and_finds(2, &[Fault::NoDiscard, Fault::RestartTotal], || {
        let model = Model::with_sessions(1, 1);
        three_sessions(&model, |model| instants(model, 1, 4));
    });
}

#[test]
fn b7_spans_do_not_cross_into_the_next_session() {
    holds_and_finds(2, &[Fault::NoFloor], || {
        let model = Model::with_sessions(1, 4);
        three_sessions(&model, |model| {
            let mut thread = model.thread(1);
            let outer = thread.begin();
            let inner = thread.begin();
            thread.end(inner);
            thread.end(outer);
        });
    });
}

/// Two sessions beside a thread, and a third after it that finds what came too late for them.
fn three_sessions(model: &Arc<Model>, work: fn(&Model)) {
    let mut consumer = model.consumer();
    let producer = Arc::clone(model);
    let producer = thread::spawn(move || work(&producer));
    consumer.stop();
    consumer.start();
    consumer.stop();
    producer.join().unwrap();
    consumer.start();
    consumer.stop();
    consumer.check();
}

#[test]
fn b29_what_was_made_before_a_stop_is_in_its_file() {
    holds_and_finds(3, &[Fault::WishLate, Fault::StopUndrained], || {
        let process = ModelProcess::new(1, 3);
        assert!(process.start());
        let producer = thread::spawn(move || {
            let mut thread = process.thread(1);
            thread.instant();
            process.end_pause();
            thread.instant();
        });
        producer.join().unwrap();
        assert!(process.stop() && !process.stop());
        assert_eq!(process.check(), 0, "made and discarded");
    });
}

/// With three consumers one after the other, loom has no thread left for a producer.
#[test]
fn i9_starts_and_stops_of_many_threads_take_turns() {
    holds_and_finds(2, &[Fault::StartUnchecked, Fault::WishLate], || {
        let process = ModelProcess::new(1, 3);
        let other = thread::spawn(move || process.start());
        let began = process.start();
        process.thread(1).instant();
        let stopped = process.stop();
        let other_began = other.join().unwrap();
        let stopped_again = process.stop();
        let count = |yes: &[bool]| yes.iter().filter(|yes| **yes).count();
        assert_eq!(count(&[began, other_began]), count(&[stopped, stopped_again]));
        // Finds what came too late for the others.
        assert!(process.start() && process.stop());
        process.check();
    });
}

#[test]
fn a_flush_hands_on_everything_made_before_it() {
    holds_and_finds(3, &[Fault::TicketLate], || {
        let process = ModelProcess::new(1, 3);
        assert!(process.start());
        let producer = thread::spawn(move || {
            let mut thread = process.thread(1);
            process.end_pause();
            thread.instant();
            process.flush(&thread);
        });
        producer.join().unwrap();
        assert!(process.stop());
        process.check();
    });
}
