//! Models of claiming, releasing, parking and stopping: every schedule up to a bound on preemptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p typhon-runtime --release --test loom_dispatch`
//!
//! Every scenario holds for the protocol as it is, and fails with each of the faults named beside it: a model that
//! would not notice a mistake proves nothing.
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use typhon_runtime::model::{Claims, Does, Fault, Model, plant};

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
        builder.max_branches = 10_000;
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

/// Drives ticks beside helpers, and waits until everybody is home.
fn together(model: &Arc<Model>, helpers: usize, ticks: u32) {
    let threads: Vec<_> = (1..=helpers)
        .map(|id| {
            let model = Arc::clone(model);
            thread::spawn(move || model.serve(id))
        })
        .collect();
    model.drive(ticks);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn b32_a_chunk_is_claimed_once_and_the_last_one_completes() {
    let faults = [Fault::ClaimPlain, Fault::FinishRelaxed];
    holds_and_finds(4, &faults, || {
        let claims = Claims::new(3);
        claims.publish(1, 3);
        let other = Arc::clone(&claims);
        let other = thread::spawn(move || other.work(1, None));
        claims.work(1, None);
        other.join().unwrap();
        assert_eq!((claims.runs(), claims.completions()), (vec![1; 3], 1));
    });
}

#[test]
fn b32_three_workers_share_the_chunks() {
    holds_and_finds(2, &[Fault::ClaimPlain, Fault::FinishRelaxed], || {
        let claims = Claims::new(3);
        claims.publish(1, 3);
        let others = [(); 2].map(|()| {
            let claims = Arc::clone(&claims);
            thread::spawn(move || claims.work(1, None))
        });
        claims.work(1, None);
        others.into_iter().for_each(|other| drop(other.join().unwrap()));
        assert_eq!((claims.runs(), claims.completions()), (vec![1; 3], 1));
    });
}

#[test]
fn b33_who_sees_a_chunk_sees_what_was_published_before_it() {
    let faults = [Fault::WordFirst, Fault::PublishRelaxed];
    holds_and_finds(4, &faults, || {
        let claims = Claims::new(2);
        let other = Arc::clone(&claims);
        let other = thread::spawn(move || other.work(1, None));
        claims.publish(1, 2);
        claims.work(1, None);
        other.join().unwrap();
        assert_eq!((claims.runs(), claims.completions()), (vec![1; 2], 1));
    });
}

#[test]
fn trap1_a_claim_of_an_earlier_tick_fails() {
    holds_and_finds(4, &[Fault::ClaimAnyTick], || {
        let claims = Claims::new(2);
        claims.publish(1, 1);
        // The stale worker believes in tick 1 for ever; tick 2 begins as soon as tick 1 is complete.
        let stale = Arc::clone(&claims);
        let stale = thread::spawn(move || stale.work(1, None).len());
        while claims.completions() == 0 && claims.work_once(1, None).is_none() {
            thread::yield_now();
        }
        claims.publish(2, 2);
        assert_eq!(claims.work(2, None), [0, 1]);
        assert!(stale.join().unwrap() <= 1);
        assert_eq!((claims.runs(), claims.completions()), (vec![2, 1], 2));
    });
}

#[test]
fn trap5_a_failed_system_is_drained_and_completes_once() {
    let faults = [Fault::DrainPlain];
    for failing in 0..3 {
        holds_and_finds(4, if failing < 2 { &faults } else { &[] }, move || {
            let claims = Claims::new(3);
            claims.publish(1, 3);
            let other = Arc::clone(&claims);
            let other = thread::spawn(move || other.work(1, Some(failing)));
            claims.work(1, Some(failing));
            other.join().unwrap();
            assert_eq!(claims.completions(), 1);
            assert!(claims.runs().iter().all(|&runs| runs <= 1));
        });
    }
}

#[test]
fn b31_the_last_predecessor_releases_and_all_are_seen() {
    let faults = [
        Fault::ReleaseRelaxed,
        Fault::ReleasePlain,
        Fault::SleepUnchecked,
        Fault::TrackEndSilent,
        Fault::TickEndSilent,
    ];
    holds_and_finds(2, &faults, || {
        // Two roots, of which one is published and the other kept, and one that joins them.
        let model = Model::new(&[Does::Run(1), Does::Run(1), Does::Run(1)], &[(0, 2), (1, 2)], 2);
        together(&model, 1, 1);
    });
}

#[test]
fn trap2_b35_b36_chunks_get_all_the_workers_that_they_need() {
    let faults = [Fault::PublishSilent, Fault::CallSilent, Fault::SleepUnchecked, Fault::LookPlain];
    holds_and_finds(2, &faults, || {
        let model = Model::new(&[Does::Run(1), Does::Meet], &[(0, 1)], 2);
        together(&model, 1, 1);
    });
}

#[test]
fn countdowns_start_again_with_every_tick() {
    holds_and_finds(1, &[Fault::NoRestart], || {
        let model = Model::new(&[Does::Run(1), Does::Run(1)], &[(0, 1)], 2);
        together(&model, 1, 2);
    });
}

#[test]
fn b39_failure_reaches_the_successors_and_a_skip_does_not() {
    holds_and_finds(1, &[Fault::DrainUncounted], || {
        let systems = [Does::FailIn(2, 0), Does::Skip, Does::Run(1), Does::Run(1)];
        let model = Model::new(&systems, &[(0, 2), (1, 2), (1, 3)], 2);
        together(&model, 1, 1);
    });
}

#[test]
fn b39_a_failure_is_known_before_the_successor_may_go() {
    holds_and_finds(2, &[Fault::FailureLate], || {
        let model = Model::new(&[Does::FailIn(1, 0), Does::Run(1), Does::Run(1)], &[(0, 2), (1, 2)], 2);
        together(&model, 1, 1);
    });
}

#[test]
fn b42_an_aborted_tick_completes_every_system() {
    holds_and_finds(1, &[Fault::DrainUncounted], || {
        let systems = [Does::FailIn(2, 0), Does::Run(2), Does::Run(1)];
        let model = Model::aborting(&systems, &[(0, 2)], 2);
        together(&model, 1, 1);
    });
}

#[test]
fn trap6_stopping_at_any_moment_gets_everybody_home() {
    let faults = [Fault::StopLate, Fault::CallSilent, Fault::TickEndSilent];
    holds_and_finds(2, &faults, || {
        // The call for the tick and the stop after it may reach the helper together or apart.
        let model = Model::new(&[Does::Meet], &[], 2);
        together(&model, 1, 1);
    });
}
