//! The threads of a runtime: the driver, its helpers, and one that watches.

use super::diagnostic::Diagnostic;
use super::driver::Driver;
use super::error::{StartError, Terminal};
use super::shared::{Shared, is_among, lock, say};
use crate::metronome::Metronome;
use crate::scheduler::affinity;
use crate::scheduler::control::Watch;
use crate::scheduler::failure::panic_message;
use crate::scheduler::worker::{Memory, Worker};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use typhon_profiler::thread::{ThreadKind, set_current_kind};
use typhon_profiler::{Ticks, emit, emit_root_span};
use typhon_sync::clock::SystemClock;
use typhon_sync::panics::drop_guarded;

/// Name of the driver's thread.
pub(crate) const DRIVER: &str = "Typhon.TickDriver";
const WATCHDOG: &str = "Typhon.Watchdog";

/// Starts the helpers: workers 1 and up.
pub(crate) fn start_helpers(shared: &Arc<Shared>) -> Result<(), StartError> {
    for id in 1..shared.workers {
        spawn(shared, &format!("Typhon.Worker-{id}"), move |shared| {
            set_current_kind(ThreadKind::Worker);
            pin(shared, id);
            let mut memory = Memory::new(&shared.board, id, shared.execution.local(id));
            Worker::new(&shared.board, &shared.execution, &mut memory).serve();
        })?;
    }
    Ok(())
}

/// Starts the driver, which keeps time by itself until it is told to stop.
pub(crate) fn start_driver(shared: &Arc<Shared>, driver: Driver) -> Result<(), StartError> {
    let driver = Mutex::new(driver);
    spawn(shared, DRIVER, move |shared| {
        set_current_kind(ThreadKind::Worker);
        pin(shared, 0);
        let mut driver = lock(&driver);
        drive(shared, &mut driver);
        // Helpers go home, also after a panic of the driver's own: see `spawn`.
        shared.board.stop();
    })?;
    spawn(shared, WATCHDOG, watch)
}

fn drive(shared: &Shared, driver: &mut Driver) {
    let options = &shared.options;
    let mut metronome =
        Metronome::start(Arc::new(SystemClock), options.base_tick_rate_hz, options.max_catch_up_ticks);
    let (stop, running) = shared.control.stop_word();
    loop {
        let before = Ticks::now();
        let wait = metronome.wait(driver.multiplier(), stop, running);
        emit_root_span(before, Ticks::now(), || wait.event());
        emit(|| wait.multiplier_event(driver.recorded_number()));
        shared.set_timer(metronome.metrics());
        if wait.is_interrupted {
            break;
        }
        if let Err(terminal) = driver.tick(shared, wait.into()) {
            shared.end(terminal);
            shared.control.request_stop(true);
            break;
        }
    }
    if !shared.control.is_fatal() {
        driver.shut_down(shared, metronome.clock().now_ns());
    }
    // A system may have asked for the stop, and nobody may be waiting for it: whoever looks has to see that it is over.
    shared.end(if shared.control.is_fatal() { Terminal::FatalStop } else { Terminal::ShutDown });
}

/// Says so when a tick hangs.
fn watch(shared: &Shared) {
    let limit = Duration::from_millis(u64::from(shared.options.stall_warn_ms));
    let mut watch = Watch::default();
    let mut has_said = false;
    while shared.threads.is_alive(DRIVER) {
        shared.threads.wait(limit / 4, |alive| !is_among(DRIVER, alive));
        if !shared.control.is_in_tick() {
            watch.forget();
        }
        // The tick counts too: one without systems completes none.
        let idle = watch.look(shared.board.progress().wrapping_add(shared.control.tick() as u64));
        if idle < limit {
            has_said = false;
        } else if shared.control.is_in_tick() && !has_said {
            has_said = true;
            say(format_args!(
                "nothing was completed for {} ms\n{}",
                idle.as_millis(),
                Diagnostic::of(shared)
            ));
        }
    }
}

/// A thread of the runtime. If it ends by a panic, which only a broken invariant can cause, the runtime ends too.
fn spawn(
    shared: &Arc<Shared>,
    name: &str,
    run: impl FnOnce(&Shared) + Send + 'static,
) -> Result<(), StartError> {
    let (own, own_name) = (Arc::clone(shared), name.to_owned());
    shared.threads.started(name);
    let body = move || {
        let entered = own.enter();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| run(&own))) {
            say(format_args!("thread {own_name} ended unexpectedly: {}", panic_message(payload)));
            let tick = own.control.tick();
            own.end(Terminal::ThreadDied { tick, thread: own_name.clone() });
            own.control.set_broken();
            own.control.request_stop(true);
            if own_name == DRIVER {
                own.board.stop();
            }
        }
        // Before anybody hears that the thread has ended, what it holds is gone: who drops a runtime can rely on the
        // systems, and what they hold, being dropped with it.
        let threads = Arc::clone(&own.threads);
        drop(entered);
        drop_guarded(own);
        threads.ended(&own_name);
    };
    let started = std::thread::Builder::new().name(name.to_owned()).spawn(body);
    started.map(drop).map_err(|source| {
        shared.threads.ended(name);
        StartError::Thread { name: name.to_owned(), source }
    })
}

/// Binds the calling thread to the processor of this number among those that it may use, if that is asked for.
fn pin(shared: &Shared, id: usize) {
    if shared.options.pin_workers
        && let Err(error) = affinity::pin_to_nth_allowed(id)
    {
        say(format_args!("worker {id} is not bound to a processor: {error}"));
    }
}
