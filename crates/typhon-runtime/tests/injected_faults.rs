//! Errors, panics and hangs at every place where a tick calls code of the program: the tick ends, the failure has a name,
//! and the rest goes on.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;
use typhon_engine::Engine;
use typhon_engine::options::WorkerCount;
use typhon_runtime::runtime::{ShutdownError, SystemStage};
use typhon_runtime::schedule::{DagBuilder, Schedule};
use typhon_runtime::system::{Chunks, SystemResult};
use typhon_runtime::{FailureKind, Runtime, SkipReason};

/// How a callback goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Injected {
    Error,
    Panic,
    /// A panic whose payload panics when it is dropped.
    Spiteful,
}

struct Spite;

impl Drop for Spite {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            std::panic::resume_unwind(Box::new("the payload's own"));
        }
    }
}

impl Injected {
    const ALL: [Self; 3] = [Self::Error, Self::Panic, Self::Spiteful];

    fn go_wrong(self) -> SystemResult {
        match self {
            Self::Error => Err("as injected".into()),
            Self::Panic => std::panic::resume_unwind(Box::new("as injected")),
            Self::Spiteful => std::panic::resume_unwind(Box::new(Spite)),
        }
    }
}

/// Where a system calls the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Callback,
    RunIf,
    ShouldRun,
    Prepare,
    /// This chunk of four.
    Chunk(u32),
    /// This chunk of a pipeline of four.
    Pipeline(u32),
}

const PLACES: [Place; 12] = [
    Place::Callback,
    Place::RunIf,
    Place::ShouldRun,
    Place::Prepare,
    Place::Chunk(0),
    Place::Chunk(1),
    Place::Chunk(2),
    Place::Chunk(3),
    Place::Pipeline(0),
    Place::Pipeline(1),
    Place::Pipeline(2),
    Place::Pipeline(3),
];

impl Place {
    /// A system named "Fault" that goes wrong here.
    fn declare(self, dag: DagBuilder<'_>, injected: Injected) {
        match self {
            Self::Callback => _ = dag.callback_system("Fault", move |_| injected.go_wrong()),
            Self::RunIf => {
                _ = dag.callback_system("Fault", |_| {}).run_if(move |_| injected.go_wrong().map(|()| true));
            }
            Self::ShouldRun => {
                let system = dag.chunked_system_with("Fault", 4, |_: &u8, _| {});
                _ = system.should_run(move |_| injected.go_wrong().map(|()| true));
            }
            Self::Prepare => {
                let system = dag.chunked_system_with("Fault", 4, |_: &u8, _| {});
                _ = system.prepare(move |_| injected.go_wrong().map(|()| Chunks::Declared));
            }
            Self::Chunk(at) => {
                let run = move |chunk: u32| if chunk == at { injected.go_wrong() } else { Ok(()) };
                _ = dag.chunked_system("Fault", 4, move |ctx| run(ctx.chunk));
            }
            Self::Pipeline(at) => {
                let run = move |chunk, _| if chunk == at { injected.go_wrong() } else { Ok(()) };
                _ = dag.pipeline_system("Fault", 4, run);
            }
        }
    }

    fn kind(self, injected: Injected) -> FailureKind {
        match self {
            Self::RunIf => FailureKind::Gate("run_if"),
            Self::ShouldRun => FailureKind::Gate("should_run"),
            Self::Prepare => FailureKind::Gate("prepare"),
            _ if injected == Injected::Error => FailureKind::Error,
            _ => FailureKind::Panic,
        }
    }
}

fn runtime(workers: u8, declare: impl FnOnce(&Schedule)) -> Runtime {
    let options = Engine::builder().runtime(|runtime| {
        runtime.worker_count = WorkerCount::Fixed(workers);
        runtime.base_tick_rate_hz = 1000;
    });
    let runtime = Runtime::create(&options.build().unwrap(), declare).unwrap();
    runtime.always_call_helpers(true);
    runtime
}

#[test]
fn b43_trap4_trap5_a_fault_anywhere_ends_in_a_name_and_the_tick_goes_on() {
    for workers in [1, 2, 3] {
        for place in PLACES {
            for injected in Injected::ALL {
                let runtime = runtime(workers, |schedule| {
                    let dag = schedule.public_track().declare_dag("Sim");
                    place.declare(dag, injected);
                    dag.callback_system("Follows", |_| {}).after("Fault");
                    dag.callback_system("Other", |_| {});
                });
                if matches!(place, Place::ShouldRun | Place::Prepare) {
                    runtime.bind_context("Fault", 1_u8).unwrap();
                }
                for tick in 1..=3 {
                    check(&runtime, tick, place, injected);
                }
                runtime.shutdown().unwrap();
            }
        }
    }
}

fn check(runtime: &Runtime, tick: i64, place: Place, injected: Injected) {
    let outcome = runtime.step(Duration::from_millis(tick as u64)).unwrap();
    let failure = outcome.failure.unwrap();
    assert_eq!((failure.system.as_str(), failure.tick), ("Fault", tick), "{place:?} {injected:?}");
    assert_eq!(failure.kind, place.kind(injected), "{place:?} {injected:?}");
    if injected != Injected::Spiteful {
        assert!(failure.message.contains("as injected"), "{failure}");
    }
    let (_, systems) = runtime.telemetry().tick_with_systems(tick).unwrap();
    let reasons: Vec<_> = systems.iter().map(|system| system.skip_reason).collect();
    assert_eq!(reasons, [SkipReason::EXCEPTION, SkipReason::DEPENDENCY_FAILED, SkipReason::NOT_SKIPPED]);
}

#[test]
fn b43_hooks_that_go_wrong_do_not_stop_the_ticks() {
    for injected in Injected::ALL {
        let runtime = runtime(2, |schedule| {
            schedule.public_track().declare_dag("Sim").callback_system("Runs", |_| {});
        });
        let shut_down = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&shut_down);
        runtime.on_first_tick(move |_| injected.go_wrong());
        runtime.on_output(move |_| injected.go_wrong());
        runtime.on_shutdown(move |_| injected.go_wrong());
        runtime.on_shutdown(move |_| _ = counted.fetch_add(1, Ordering::Relaxed));
        (0..3).for_each(|tick| drop(runtime.step(Duration::from_millis(tick)).unwrap()));
        runtime.shutdown().unwrap();
        assert_eq!(runtime.current_tick(), 4);
        assert_eq!(shut_down.load(Ordering::Relaxed), 1, "hooks after the failed one run");
    }
}

/// A runtime with a system that hangs until the barrier lets it go on, at this place; and a message when it is there.
fn hanging(workers: u8, place: Place, gate: &Arc<Barrier>) -> (Runtime, mpsc::Receiver<()>) {
    let (send, arrived) = mpsc::channel();
    let gate = Arc::clone(gate);
    let hang = move || {
        if send.send(()).is_ok() {
            gate.wait();
        }
    };
    let runtime = runtime(workers, |schedule| {
        let dag = schedule.public_track().declare_dag("Sim");
        match place {
            Place::Callback => _ = dag.callback_system("Hangs", move |_| hang()),
            Place::RunIf => {
                _ = dag.callback_system("Hangs", |_| {}).run_if(move |_| {
                    hang();
                    true
                });
            }
            _ => {
                let hang = std::sync::Mutex::new(hang);
                _ = dag.chunked_system("Hangs", 4, move |ctx| {
                    if ctx.chunk == 1 {
                        hang.lock().unwrap()();
                    }
                });
            }
        }
        dag.callback_system("Follows", |_| {}).after("Hangs");
    });
    (runtime, arrived)
}

#[test]
fn b58_b59_a_hang_anywhere_is_given_up_and_named() {
    for workers in [1, 2] {
        for place in [Place::Callback, Place::RunIf, Place::Chunk(1)] {
            let gate = Arc::new(Barrier::new(2));
            let (runtime, arrived) = hanging(workers, place, &gate);
            runtime.start().unwrap();
            arrived.recv().unwrap();
            drop(arrived);
            let diagnostic = runtime.dump_diagnostic();
            assert_eq!(diagnostic.systems[1].stage, SystemStage::Waiting);
            assert_eq!(diagnostic.systems[1].stuck_predecessors, ["Hangs"]);
            let error = runtime.shutdown().unwrap_err();
            let ShutdownError::Stalled { tick, running, .. } = &error else { panic!("{error}") };
            assert_eq!((*tick, running.as_slice()), (1, &["Hangs".to_owned()][..]), "{place:?}");
            assert!(runtime.terminal().is_some() && runtime.start().is_err());
            gate.wait();
        }
    }
}

#[test]
fn b59_a_step_that_hangs_does_not_hold_up_a_shutdown_for_ever() {
    let gate = Arc::new(Barrier::new(2));
    let (runtime, arrived) = hanging(1, Place::Callback, &gate);
    std::thread::scope(|scope| {
        let step = scope.spawn(|| runtime.step(Duration::ZERO));
        arrived.recv().unwrap();
        let error = runtime.shutdown().unwrap_err();
        assert!(matches!(&error, ShutdownError::Stalled { running, .. } if running == &["Hangs"]), "{error}");
        gate.wait();
        assert!(step.join().unwrap().is_ok(), "the tick itself came to its end");
    });
    assert!(runtime.step(Duration::ZERO).is_err());
}

#[test]
fn trap3_a_chain_of_ten_thousand_and_a_fan_of_as_many_take_no_stack() {
    const SYSTEMS: usize = 10_000;
    for skips in [false, true] {
        let ran = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&ran);
        let declare = |schedule: &Schedule| {
            let chain = schedule.public_track().declare_dag("Chain");
            let fan = schedule.public_track().declare_dag("Fan");
            for at in 0..SYSTEMS {
                let counted = Arc::clone(&counted);
                let count = move |_: &mut typhon_runtime::system::SystemCtx<'_>| {
                    _ = counted.fetch_add(1, Ordering::Relaxed)
                };
                let before = at.checked_sub(1).map(|before| format!("C{before}"));
                // The first runs, so that the others are skipped in one go when it is through.
                _ = chain
                    .callback_system(format!("C{at}"), count)
                    .after_all(before)
                    .run_if(move |_| !skips || at == 0);
                _ = fan.callback_system(format!("F{at}"), |_| {}).after_all((at > 0).then_some("F0"));
            }
        };
        for workers in [1, 2] {
            ran.store(0, Ordering::Relaxed);
            let runtime = runtime(workers, declare);
            let outcome = runtime.step(Duration::ZERO).unwrap();
            assert_eq!((outcome.failed_systems, outcome.dependent_systems), (0, 0));
            assert_eq!(ran.load(Ordering::Relaxed) as usize, if skips { 1 } else { SYSTEMS });
        }
    }
}

#[test]
fn b58_b59_a_hook_that_hangs_is_given_up_and_named() {
    let gate = Arc::new(Barrier::new(2));
    let (send, arrived) = mpsc::channel();
    let runtime = runtime(2, |schedule| {
        schedule.public_track().declare_dag("Sim").callback_system("Runs", |_| {});
    });
    let hang = Arc::clone(&gate);
    runtime.on_output(move |_| {
        if send.send(()).is_ok() {
            hang.wait();
        }
    });
    runtime.start().unwrap();
    arrived.recv().unwrap();
    drop(arrived);
    assert!(runtime.dump_diagnostic().to_string().contains("on_output runs"));
    let error = runtime.shutdown().unwrap_err();
    assert!(matches!(&error, ShutdownError::Stalled { running, .. } if running == &["on_output"]), "{error}");
    gate.wait();
}

/// Something that a closure holds, and whose destructor panics.
struct Thorn(Spite);

impl Thorn {
    fn prick(&self) {
        let _ = &self.0;
    }
}

#[test]
fn b43_what_a_hook_of_the_first_tick_held_may_panic_when_it_goes() {
    for _ in 0..2 {
        let runtime = runtime(1, |schedule| {
            schedule.public_track().declare_dag("Sim").callback_system("Runs", |_| {});
        });
        let thorn = Thorn(Spite);
        runtime.on_first_tick(move |_| thorn.prick());
        assert_eq!(runtime.step(Duration::ZERO).unwrap().failed_systems, 0);
        runtime.shutdown().unwrap();
    }
}

#[test]
fn b59_all_helpers_end_after_a_tick_that_was_given_up() {
    let (is_in, may_leave) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (inside, leave) = (Arc::clone(&is_in), Arc::clone(&may_leave));
    let runtime = runtime(3, |schedule| {
        let sim = schedule.public_track().declare_dag("Sim");
        // A helper hangs; the driver is in the system until one does.
        sim.chunked_system("Hangs", 2, move |ctx| {
            let awaited = if ctx.worker.get() == 0 { &inside } else { &leave };
            inside.fetch_or(ctx.worker.get() != 0, Ordering::Release);
            while !awaited.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        });
    });
    runtime.start().unwrap();
    while !is_in.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    let error = runtime.shutdown().unwrap_err();
    assert!(matches!(&error, ShutdownError::Stalled { running, .. } if running == &["Hangs"]), "{error}");
    // When the driver has given the tick up, only the helper that hangs is left.
    let left = (0..20).find_map(|_| match runtime.shutdown().unwrap_err() {
        ShutdownError::Threads { threads } => Some(threads.len()),
        _ => None,
    });
    assert_eq!(left, Some(1));
    may_leave.store(true, Ordering::Release);
    runtime.shutdown().unwrap();
}
