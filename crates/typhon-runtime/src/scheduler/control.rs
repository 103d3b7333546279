//! Stopping, from outside of the tick: who asked for it, and how long to wait for a tick in which nothing moves.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use typhon_sync::wait;

/// What the threads of a runtime and its user tell each other.
#[derive(Debug)]
pub(crate) struct Control {
    /// 0 while the runtime runs; the metronome waits on it.
    stop: AtomicU32,
    is_fatal: AtomicBool,
    is_in_tick: AtomicBool,
    /// A thread of the runtime ended that should not have.
    is_broken: AtomicBool,
    /// Number of the next tick, or of the one in flight.
    tick: AtomicI64,
    grace: Duration,
}

impl Control {
    pub(crate) fn new(grace: Duration) -> Self {
        Self {
            stop: AtomicU32::new(0),
            is_fatal: AtomicBool::new(false),
            is_in_tick: AtomicBool::new(false),
            is_broken: AtomicBool::new(false),
            tick: AtomicI64::new(1),
            grace,
        }
    }

    /// Asks for the end; the tick in flight is finished. `is_fatal`: without the handlers that a shutdown runs.
    pub(crate) fn request_stop(&self, is_fatal: bool) {
        if is_fatal {
            self.is_fatal.store(true, Ordering::Release);
        }
        self.stop.store(1, Ordering::Release);
        wait::wake_all(&self.stop);
    }

    /// The word that changes when the end is asked for, and its value until then.
    pub(crate) fn stop_word(&self) -> (&AtomicU32, u32) {
        (&self.stop, 0)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire) != 0
    }

    pub(crate) fn is_fatal(&self) -> bool {
        self.is_fatal.load(Ordering::Acquire)
    }

    pub(crate) fn set_broken(&self) {
        self.is_broken.store(true, Ordering::Release);
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Acquire)
    }

    pub(crate) fn begin_tick(&self) {
        self.is_in_tick.store(true, Ordering::Release);
    }

    pub(crate) fn end_tick(&self, next: i64) {
        self.tick.store(next, Ordering::Release);
        self.is_in_tick.store(false, Ordering::Release);
    }

    pub(crate) fn is_in_tick(&self) -> bool {
        self.is_in_tick.load(Ordering::Acquire)
    }

    pub(crate) fn tick(&self) -> i64 {
        self.tick.load(Ordering::Acquire)
    }

    /// Longest time without any completed system for which a stopping runtime waits.
    pub(crate) fn grace(&self) -> Duration {
        self.grace
    }

    /// Does the driver give up the tick in flight?
    pub(crate) fn gives_up(&self, watch: &mut Watch, progress: u64) -> bool {
        let idle = watch.look(progress);
        self.is_broken() || (self.is_stopping() && idle >= self.grace)
    }
}

/// Watches a count.
#[derive(Debug, Default)]
pub(crate) struct Watch(Option<(u64, Instant)>);

impl Watch {
    /// For how long the count has been what it is, as far as anybody looked.
    pub(crate) fn look(&mut self, count: u64) -> Duration {
        let now = Instant::now();
        match self.0 {
            Some((seen, since)) if seen == count => now - since,
            _ => {
                self.0 = Some((count, now));
                Duration::ZERO
            }
        }
    }

    /// Nothing is watched for now.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}
