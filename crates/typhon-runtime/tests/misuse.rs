//! Calls from places where nobody should call: each gets an error, and nothing waits for itself.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;
use typhon_engine::Engine;
use typhon_engine::options::WorkerCount;
use typhon_runtime::Runtime;
use typhon_runtime::runtime::{ContextError, StartError, Terminal};
use typhon_runtime::schedule::DagBuilder;

fn engine(workers: u8) -> Engine {
    let options = Engine::builder().runtime(|runtime| {
        runtime.worker_count = WorkerCount::Fixed(workers);
        runtime.base_tick_rate_hz = 1000;
    });
    options.build().unwrap()
}

/// A runtime with one DAG, which its systems can reach.
fn reachable(
    workers: u8,
    declare: impl FnOnce(DagBuilder<'_>, Arc<OnceLock<Runtime>>),
) -> Arc<OnceLock<Runtime>> {
    let slot: Arc<OnceLock<Runtime>> = Arc::default();
    let runtime = Runtime::create(&engine(workers), |schedule| {
        declare(schedule.public_track().declare_dag("Sim"), Arc::clone(&slot));
    })
    .unwrap();
    runtime.always_call_helpers(true);
    assert!(slot.set(runtime).is_ok());
    slot
}

/// Runs `test`, which must not hang.
fn in_time(test: impl FnOnce() + Send + 'static) {
    let (done, over) = mpsc::channel();
    let running = std::thread::spawn(move || {
        test();
        done.send(()).unwrap();
    });
    match over.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it waits for itself"),
        _ => running.join().unwrap(),
    }
}

/// What a system of a runtime gets that calls its own runtime.
fn call_it(runtime: &Runtime) -> Vec<String> {
    let step = runtime.step(Duration::from_secs(1)).unwrap_err();
    assert!(matches!(step, StartError::AlreadyRuns(_)), "{step}");
    let start = runtime.start().unwrap_err();
    assert!(matches!(start, StartError::AlreadyRuns(_)), "{start}");
    let bind = runtime.bind_context("Calls", 1_u8).unwrap_err();
    assert!(matches!(bind, ContextError::Started { .. }), "{bind}");
    runtime.on_output(|_| {});
    vec![step.to_string(), start.to_string(), bind.to_string()]
}

#[test]
fn b60_a_system_that_calls_its_own_runtime_gets_an_error_and_does_not_hang() {
    in_time(|| {
        for workers in [1, 2] {
            let said: Arc<Mutex<Vec<Vec<String>>>> = Arc::default();
            let saying = Arc::clone(&said);
            let slot = reachable(workers, |dag, slot| {
                dag.chunked_system("Calls", 2, move |_| {
                    let answers = call_it(slot.get().unwrap());
                    saying.lock().unwrap().push(answers);
                });
            });
            let outcome = slot.get().unwrap().step(Duration::ZERO).unwrap();
            assert_eq!(outcome.failed_systems, 0, "{:?}", outcome.failure);
            assert_eq!(said.lock().unwrap().len(), 2);
        }
    });
}

#[test]
fn b59_a_runtime_inside_a_system_of_another_can_stop_that() {
    in_time(|| {
        let outer = reachable(1, |dag, outer| {
            dag.callback_system("Outer", move |_| {
                let slot = Arc::clone(&outer);
                let inner = reachable(1, |dag, _| {
                    dag.callback_system("Inner", move |_| slot.get().unwrap().shutdown());
                });
                assert_eq!(inner.get().unwrap().step(Duration::ZERO).unwrap().failed_systems, 0);
                inner.get().unwrap().shutdown().unwrap();
            });
        });
        let outer = outer.get().unwrap();
        let outcome = outer.step(Duration::ZERO).unwrap();
        assert_eq!(outcome.failed_systems, 0, "{:?}", outcome.failure);
        assert_eq!(outer.terminal(), Some(Terminal::ShutDown));
    });
}

#[test]
fn b28_time_that_goes_back_moves_nothing_back() {
    let deltas: Arc<Mutex<Vec<f64>>> = Arc::default();
    let (of_systems, of_end) = (Arc::clone(&deltas), Arc::clone(&deltas));
    let slot = reachable(1, |dag, _| {
        dag.callback_system("Sees", move |ctx| of_systems.lock().unwrap().push(ctx.delta_seconds()));
    });
    let runtime = slot.get().unwrap();
    runtime.on_shutdown(move |tick| of_end.lock().unwrap().push(tick.measured_delta_seconds));
    for ms in [5000, 5010, 4000, 4010] {
        runtime.step(Duration::from_millis(ms)).unwrap();
    }
    runtime.shutdown().unwrap();
    assert_eq!(*deltas.lock().unwrap(), [0.0, 0.01, 0.0, 0.01, 0.0]);
}
