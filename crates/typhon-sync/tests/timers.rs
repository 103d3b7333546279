//! What timers and the watchdog promise, on a clock that the test moves.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use typhon_sync::clock::{Clock, SystemClock, VirtualClock};
use typhon_sync::timer::{DeadlineWatchdog, Dedicated, Precision, Timer, TimerError, TimerService};
use typhon_sync::{Deadline, WaitContext};

const MS: i64 = 1_000_000;
/// The thread waits for a change and for no moment.
const IDLE: i64 = i64::MAX;

fn service() -> (Arc<VirtualClock>, TimerService) {
    let clock = Arc::new(VirtualClock::new(0));
    let service = TimerService::new("test", Arc::clone(&clock) as Arc<dyn Clock>);
    (clock, service)
}

/// A timer that tells the time of each of its runs.
fn telling(clock: &Arc<VirtualClock>, service: &TimerService, interval_ms: u64) -> (Timer, Receiver<i64>) {
    let (sender, receiver) = channel();
    let clock = Arc::clone(clock);
    let callback = move || _ = sender.send(clock.now_ns());
    let timer = service.every("telling", Duration::from_millis(interval_ms), Precision::Coarse, callback);
    (timer.unwrap(), receiver)
}

#[test]
fn b26_runs_on_the_grid_and_blocks_when_idle() {
    let (clock, service) = service();
    let (timer, runs) = telling(&clock, &service, 10);
    for n in 1..=3 {
        clock.await_next_moment_ns(n * 10 * MS);
        // A little late each time: that does not add up.
        clock.advance_to_ns(n * 10 * MS + 1_000);
        assert_eq!(runs.recv().unwrap(), n * 10 * MS + 1_000);
    }
    clock.await_next_moment_ns(40 * MS);
    let metrics = service.metrics();
    assert_eq!((metrics.ticks, metrics.missed), (3, 0));
    assert_eq!((metrics.last_error_us, metrics.max_error_us), (1.0, 1.0));
    assert_eq!(timer.metrics().unwrap().invocations, 3);
    drop(timer);
    clock.await_next_moment_ns(IDLE);
    assert!(runs.try_recv().is_err());
}

#[test]
fn b26_more_than_an_interval_behind_skips_and_counts() {
    let (clock, service) = service();
    let (timer, runs) = telling(&clock, &service, 10);
    clock.await_next_moment_ns(10 * MS);
    clock.advance_to_ns(57 * MS);
    // The run that is due, and one for the last target that has passed; not four more.
    assert_eq!([runs.recv().unwrap(), runs.recv().unwrap()], [57 * MS; 2]);
    clock.await_next_moment_ns(60 * MS);
    assert!(runs.try_recv().is_err());
    assert_eq!((service.metrics().ticks, service.metrics().missed), (2, 3));
    assert_eq!(timer.metrics().unwrap().missed, 3);
}

#[test]
fn b26_the_nearest_timer_first_and_a_new_one_wakes_the_thread() {
    let (clock, service) = service();
    let (_slow, slow) = telling(&clock, &service, 100);
    clock.await_next_moment_ns(100 * MS);
    let (_fast, fast) = telling(&clock, &service, 30);
    for n in 1..=3 {
        clock.await_next_moment_ns(n * 30 * MS);
        clock.advance_to_ns(n * 30 * MS);
        assert_eq!(fast.recv().unwrap(), n * 30 * MS);
    }
    assert!(slow.try_recv().is_err());
    clock.await_next_moment_ns(100 * MS);
    clock.advance_to_ns(100 * MS);
    assert_eq!(slow.recv().unwrap(), 100 * MS);
    assert_eq!(service.timers(), ["telling", "telling"]);
}

/// The payload of a panic, or something that a callback holds, whose destructor panics too.
struct Spite;

impl Drop for Spite {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new("planned"));
    }
}

#[test]
fn b26_what_a_callback_held_may_panic_when_its_timer_is_dropped_meanwhile() {
    let (clock, service) = service();
    let (own, spite) = (Arc::new(Mutex::new(None::<Timer>)), Spite);
    let (held, (sender, ran)) = (Arc::clone(&own), channel());
    let callback = move || {
        let _ = &spite;
        drop(held.lock().unwrap().take());
        sender.send(()).unwrap();
    };
    *own.lock().unwrap() =
        Some(service.every("once", Duration::from_millis(1), Precision::Coarse, callback).unwrap());
    clock.await_next_moment_ns(MS);
    clock.advance_to_ns(MS);
    ran.recv().unwrap();
    let (_other, runs) = telling(&clock, &service, 1);
    clock.await_next_moment_ns(2 * MS);
    clock.advance_to_ns(2 * MS);
    assert_eq!(runs.recv().unwrap(), 2 * MS, "the thread goes on");
}

#[test]
fn b26_panics_and_slow_runs_are_counted_and_the_timer_goes_on() {
    let (clock, service) = service();
    let (sender, receiver) = channel();
    let (taken, runs) = (Arc::clone(&clock), AtomicU64::new(0));
    let callback = move || {
        let run = runs.fetch_add(1, Ordering::Relaxed);
        taken.advance_ns(if run == 1 { 100_001 } else { 100_000 });
        sender.send(run).unwrap();
        if run == 0 {
            std::panic::resume_unwind(Box::new(Spite));
        }
    };
    let timer = service.every("rough", Duration::from_millis(1), Precision::Coarse, callback).unwrap();
    for run in 0..3 {
        clock.await_next_moment_ns((run + 1) * MS);
        clock.advance_to_ns((run + 1) * MS);
        assert_eq!(receiver.recv().unwrap(), run as u64);
    }
    clock.await_next_moment_ns(4 * MS);
    let metrics = timer.metrics().unwrap();
    assert_eq!((metrics.invocations, metrics.panics, metrics.slow), (3, 1, 1));
    assert_eq!((metrics.last_ns, metrics.max_ns), (100_000, 100_001));
}

#[test]
fn b26_a_precise_timer_sleeps_to_its_lead_and_spins_to_the_target() {
    let clock = Arc::new(VirtualClock::new(0));
    let (sender, receiver) = channel();
    let told = Arc::clone(&clock);
    let callback = move || sender.send(told.now_ns()).unwrap();
    let timer =
        Dedicated::start("exact", Duration::from_millis(10), Arc::clone(&clock) as Arc<dyn Clock>, callback);
    let timer = timer.unwrap();
    clock.await_next_moment_ns(10 * MS - 150_000);
    clock.advance_to_ns(10 * MS - 100_000);
    clock.await_next_moment_ns(10 * MS);
    clock.advance_to_ns(10 * MS);
    assert_eq!(receiver.recv().unwrap(), 10 * MS);
    clock.await_next_moment_ns(20 * MS - 150_000);
    let (timer_metrics, service_metrics) = timer.metrics();
    assert_eq!((timer_metrics.invocations, service_metrics.max_error_us), (1, 0.0));
}

#[test]
fn b26_bad_intervals_are_refused() {
    let (_clock, service) = service();
    for interval in [Duration::ZERO, Duration::MAX] {
        let error = service.every("bad", interval, Precision::Coarse, || ()).unwrap_err();
        assert!(matches!(error, TimerError::BadInterval { .. }), "{error}");
    }
    assert!(service.timers().is_empty());
}

#[test]
fn b26_a_callback_may_drop_its_own_timer() {
    let (clock, service) = service();
    let own: Arc<Mutex<Option<Timer>>> = Arc::default();
    let (sender, receiver) = channel();
    let in_callback = Arc::clone(&own);
    let callback = move || {
        drop(in_callback.lock().unwrap().take());
        sender.send(()).unwrap();
    };
    *own.lock().unwrap() =
        Some(service.every("once", Duration::from_millis(1), Precision::Coarse, callback).unwrap());
    clock.await_next_moment_ns(MS);
    clock.advance_to_ns(MS);
    receiver.recv().unwrap();
    clock.await_next_moment_ns(IDLE);
    assert!(receiver.recv().is_err(), "what the callback held is gone");
    assert!(service.timers().is_empty());
}

#[test]
fn b26_runs_on_the_real_clock() {
    let (sender, receiver) = channel();
    let callback = move || _ = sender.send(());
    let timer =
        Dedicated::start("real", Duration::from_micros(500), Arc::new(SystemClock), callback).unwrap();
    (0..3).for_each(|_| receiver.recv().unwrap());
    drop(timer);
    while receiver.recv().is_ok() {}
}

fn watchdog() -> (Arc<VirtualClock>, Arc<TimerService>, DeadlineWatchdog) {
    let (clock, service) = service();
    let service = Arc::new(service);
    (clock, Arc::clone(&service), DeadlineWatchdog::new(service))
}

#[test]
fn b7_fires_within_five_milliseconds_and_has_a_timer_only_when_needed() {
    let (clock, service, watchdog) = watchdog();
    let never = watchdog.watch(Deadline::INFINITE).unwrap();
    let past = watchdog.watch(Deadline::EXPIRED).unwrap();
    assert!(past.token().is_cancelled() && !never.token().is_cancelled());
    assert_eq!((watchdog.watched(), service.timers().len()), (0, 0));

    let soon = watchdog.watch(Deadline::at_ns(7 * MS)).unwrap();
    let later = watchdog.watch(Deadline::at_ns(12 * MS)).unwrap();
    assert_eq!((watchdog.watched(), service.timers()), (2, vec!["DeadlineWatchdog".to_owned()]));
    clock.await_next_moment_ns(5 * MS);
    clock.advance_to_ns(5 * MS);
    clock.await_next_moment_ns(10 * MS);
    assert!(!soon.token().is_cancelled());
    clock.advance_to_ns(10 * MS);
    clock.await_next_moment_ns(15 * MS);
    assert!(soon.token().is_cancelled() && !later.token().is_cancelled());
    clock.advance_to_ns(15 * MS);
    clock.await_next_moment_ns(IDLE);
    assert!(later.token().is_cancelled() && !never.token().is_cancelled());
    assert!(service.timers().is_empty());

    let again = watchdog.watch(Deadline::at_ns(16 * MS)).unwrap();
    clock.await_next_moment_ns(20 * MS);
    clock.advance_to_ns(20 * MS);
    clock.await_next_moment_ns(IDLE);
    assert!(again.token().is_cancelled());
}

#[test]
fn b7_a_deadline_that_is_dropped_is_not_watched() {
    let (clock, _service, watchdog) = watchdog();
    let watched = watchdog.watch(Deadline::at_ns(3 * MS)).unwrap();
    let token = watched.token().clone();
    drop(watched);
    assert_eq!(watchdog.watched(), 0);
    clock.await_next_moment_ns(5 * MS);
    clock.advance_to_ns(5 * MS);
    clock.await_next_moment_ns(IDLE);
    assert!(!token.is_cancelled());
}

#[test]
fn b7_dropping_the_watchdog_cancels_the_rest() {
    let (clock, service, watchdog) = watchdog();
    let watched = watchdog.watch(Deadline::at_ns(1_000 * MS)).unwrap();
    let context = WaitContext::INFINITE.cancelled_by(watched.token());
    assert_eq!(context.should_stop(), None);
    drop(watchdog);
    assert!(context.should_stop().is_some());
    clock.await_next_moment_ns(IDLE);
    assert!(service.timers().is_empty());
}
