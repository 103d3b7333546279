//! The life of a runtime: created, started or stepped, failing, stopped.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::{Duration, Instant};
use typhon_engine::Engine;
use typhon_engine::options::{FailurePolicy, WorkerCount};
use typhon_runtime::runtime::{OutcomeReason, ShutdownError, StartError, Terminal};
use typhon_runtime::schedule::Schedule;
use typhon_runtime::{Runtime, SkipReason};

fn engine(workers: u8, rate_hz: u32) -> Engine {
    let options = Engine::builder().runtime(|runtime| {
        runtime.worker_count = WorkerCount::Fixed(workers);
        runtime.base_tick_rate_hz = rate_hz;
    });
    options.build().unwrap()
}

fn add(count: &AtomicU32) {
    count.fetch_add(1, Ordering::Relaxed);
}

fn counter(schedule: &Schedule) -> Arc<AtomicU32> {
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    schedule.public_track().declare_dag("Sim").callback_system("Count", move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    count
}

#[test]
fn b1_a_runtime_keeps_its_own_time_until_it_is_shut_down() {
    for workers in [1, 2, 3] {
        let mut count = None;
        let runtime =
            Runtime::create(&engine(workers, 1000), |schedule| count = Some(counter(schedule))).unwrap();
        let count = count.unwrap();
        runtime.start().unwrap();
        while count.load(Ordering::Relaxed) < 5 {
            std::thread::yield_now();
        }
        runtime.shutdown().unwrap();
        let ticks = runtime.current_tick() - 1;
        assert_eq!(i64::from(count.load(Ordering::Relaxed)), ticks);
        assert_eq!(runtime.terminal(), Some(Terminal::ShutDown));
        assert!(matches!(runtime.start(), Err(StartError::Terminal(Terminal::ShutDown))));
        assert_eq!(runtime.last_tick_outcome().unwrap().reason, OutcomeReason::Success);
        assert_eq!(runtime.telemetry().latest().unwrap().tick, ticks);
        assert_eq!(runtime.timer_metrics().ticks as i64, ticks);
    }
}

#[test]
fn trap7_a_shutdown_from_a_system_returns_into_its_tick() {
    for workers in [1, 2] {
        let runtime: Arc<std::sync::OnceLock<Runtime>> = Arc::default();
        let (ended, end) = mpsc::channel();
        let own = Arc::clone(&runtime);
        let created = Runtime::create(&engine(workers, 1000), |schedule| {
            let dag = schedule.public_track().declare_dag("Sim");
            dag.callback_system("Stop", move |ctx| {
                if ctx.tick_number() == 3 {
                    own.get().unwrap().shutdown().unwrap();
                    ended.send(()).unwrap();
                }
            });
        })
        .unwrap();
        runtime.set(created).unwrap();
        let runtime = runtime.get().unwrap();
        runtime.start().unwrap();
        end.recv().unwrap();
        // Whoever only looks sees that it is over.
        let patience = Instant::now() + Duration::from_secs(30);
        while runtime.terminal().is_none() {
            assert!(Instant::now() < patience, "it never ends");
            std::thread::yield_now();
        }
        assert_eq!(runtime.terminal(), Some(Terminal::ShutDown));
        runtime.shutdown().unwrap();
        assert_eq!(runtime.current_tick(), 4, "the number advances by one");
    }
}

#[test]
fn b60_stepping_and_keeping_time_exclude_each_other() {
    let runtime = Runtime::create(&engine(1, 60), |schedule| drop(counter(schedule))).unwrap();
    let outcome = runtime.step(Duration::from_millis(5)).unwrap();
    assert_eq!((outcome.tick, outcome.reason), (1, OutcomeReason::Success));
    assert!(matches!(runtime.start(), Err(StartError::AlreadyRuns("is stepped"))));
    runtime.shutdown().unwrap();
    let runtime = Runtime::create(&engine(1, 60), |schedule| drop(counter(schedule))).unwrap();
    runtime.start().unwrap();
    assert!(matches!(runtime.step(Duration::ZERO), Err(StartError::AlreadyRuns("keeps its own time"))));
}

#[test]
fn b42_isolate_fails_the_successors_and_goes_on() {
    let others = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&others);
    let runtime = Runtime::create(&engine(1, 60), |schedule| {
        let dag = schedule.public_track().declare_dag("Sim");
        dag.callback_system("Fails", |ctx| if ctx.tick_number() == 2 { Err("broken") } else { Ok(()) });
        dag.callback_system("Follows", |_| {}).after("Fails");
        dag.callback_system("Last", |_| {}).after("Follows");
        dag.callback_system("Other", move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
    })
    .unwrap();
    let steps: Vec<_> = (0..3).map(|at| runtime.step(Duration::from_millis(at)).unwrap()).collect();
    let reasons: Vec<_> = steps.iter().map(|step| (step.failed_systems, step.dependent_systems)).collect();
    assert_eq!(reasons, [(0, 0), (1, 2), (0, 0)]);
    let failure = steps[1].failure.as_ref().unwrap();
    assert_eq!((failure.system.as_str(), failure.tick, failure.message.as_str()), ("Fails", 2, "broken"));
    let (_, systems) = runtime.telemetry().tick_with_systems(2).unwrap();
    let skips: Vec<_> = systems.iter().map(|system| system.skip_reason).collect();
    let failed = SkipReason::DEPENDENCY_FAILED;
    assert_eq!(skips, [SkipReason::EXCEPTION, failed, failed, SkipReason::NOT_SKIPPED]);
    assert_eq!(others.load(Ordering::Relaxed), 3);
}

#[test]
fn b42_abort_leaves_out_what_has_not_started_and_ends_the_runtime() {
    let (aborted, output) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let engine = engine(1, 60);
    let mut options = engine.options().runtime.clone();
    options.failure_policy = FailurePolicy::AbortTickAndStop;
    let runtime = Runtime::create_with(&engine, options, |schedule| {
        let dag = schedule.public_track().declare_dag("Sim");
        dag.callback_system("First", |_| {});
        dag.callback_system("Fails", |_| -> () { panic!("broken") }).after("First");
        dag.callback_system("Never", |_| {}).after("Fails");
        schedule.declare_track("Later", &["x"]).declare_dag("More").callback_system("Nor", |_| {});
        schedule.engine_post_track().declare_dag("Engine").callback_system("Always", |_| {});
    })
    .unwrap();
    let (counted, shown) = (Arc::clone(&aborted), Arc::clone(&output));
    runtime.on_tick_aborted(move |_| add(&counted));
    runtime.on_output(move |_| add(&shown));
    let outcome = runtime.step(Duration::ZERO).unwrap();
    assert!(outcome.is_aborted);
    let (_, systems) = runtime.telemetry().tick_with_systems(1).unwrap();
    let skips: Vec<_> = systems.iter().map(|system| system.skip_reason.0).collect();
    assert_eq!(skips, [0, 6, 8, 8, 0]);
    assert_eq!((aborted.load(Ordering::Relaxed), output.load(Ordering::Relaxed)), (1, 0));
    assert!(matches!(runtime.terminal(), Some(Terminal::Aborted(_))));
    assert!(matches!(runtime.step(Duration::ZERO), Err(StartError::Terminal(Terminal::Aborted(_)))));
}

#[test]
fn b59_a_tick_that_hangs_is_given_up_by_name() {
    let gate = Arc::new(Barrier::new(2));
    let is_in = Arc::new(AtomicBool::new(false));
    let (hang, inside) = (Arc::clone(&gate), Arc::clone(&is_in));
    let runtime = Runtime::create(&engine(1, 1000), |schedule| {
        schedule.public_track().declare_dag("Sim").callback_system("Hangs", move |_| {
            inside.store(true, Ordering::Release);
            hang.wait();
        });
    })
    .unwrap();
    runtime.start().unwrap();
    while !is_in.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    let error = runtime.shutdown().unwrap_err();
    assert!(
        matches!(&error, ShutdownError::Stalled { tick: 1, running, .. } if running == &["Hangs"]),
        "{error}"
    );
    assert!(runtime.dump_diagnostic().to_string().contains("worker 0 runs \"Hangs\""));
    gate.wait();
}

#[test]
fn b8_an_unbound_context_fails_the_start_by_name() {
    let runtime = Runtime::create(&engine(1, 60), |schedule| {
        let dag = schedule.public_track().declare_dag("Sim");
        dag.chunked_system_with("Needs", 2, |_: &u32, _| {});
    })
    .unwrap();
    let error = runtime.start().unwrap_err();
    assert!(matches!(&error, StartError::UnboundContext { systems } if systems == &["Needs"]), "{error}");
    runtime.bind_context("Needs", 5_u32).unwrap();
    runtime.step(Duration::ZERO).unwrap();
    assert!(runtime.bind_context("Needs", 6_u32).is_err());
}

#[test]
fn b59_what_systems_hold_is_gone_when_the_runtime_is_dropped() {
    for _ in 0..200 {
        let held = Arc::new(());
        let holding = Arc::clone(&held);
        let runtime = Runtime::create(&engine(3, 1000), |schedule| {
            schedule.public_track().declare_dag("Sim").callback_system("Holds", move |_| {
                let _ = &holding;
            });
        })
        .unwrap();
        runtime.start().unwrap();
        drop(runtime);
        assert_eq!(Arc::strong_count(&held), 1, "a thread that has ended still holds it");
    }
}
