//! The consumer between sessions and on its thread: how it is started, asked and brought back.
//!
//! What the consumer does is behind [`Work`], so that the models in `tests/loom_capture.rs` run the very code that
//! sessions run, threads included.
#![forbid(unsafe_code)]

use crate::sync::{Condvar, Fault, JoinHandle, Mutex, MutexGuard, Travels, planted, spawn, wait_while};
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// What the consumer's thread does.
pub(crate) trait Work: Travels {
    /// Takes what threads have published before the call, unless a stop is wished for. What was there?
    fn pass(&mut self, control: &Control) -> Came;
    /// Hands on what was taken, if it has waited long enough or must go now.
    fn hand_on(&mut self, now: bool);
    /// Whatever else is due now and then.
    fn keep_house(&mut self);
    /// Takes and hands on all that is left, by the deadline.
    fn finish(&mut self, deadline: Instant);
    /// Time between two passes while records come in, and at most.
    fn pauses(&self) -> (Duration, Duration);
}

/// What a pass of the consumer found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    /// Nothing.
    Nothing,
    /// All that there was.
    All,
    /// More than it took: threads go on faster.
    More,
}

/// What others ask of the consumer.
#[derive(Debug)]
pub(crate) struct Control {
    wishes: Mutex<Wishes>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Wishes {
    /// Stop, and have everything handed over by then.
    stop: Option<Instant>,
    flushes_wanted: u64,
    flushes_done: u64,
}

impl Control {
    fn new() -> Self {
        Self { wishes: Mutex::new(Wishes::default()), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Wishes> {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self, deadline: Instant) {
        if planted(Fault::WishLate) {
            self.changed.notify_all();
        }
        self.lock().stop = Some(deadline);
        if !planted(Fault::WishLate) {
            self.changed.notify_all();
        }
    }

    /// Is a stop wished for?
    pub(crate) fn stops(&self) -> bool {
        self.lock().stop.is_some()
    }

    /// Waits until everything published before the call is handed on; false after the deadline, or if the session was
    /// stopped meanwhile.
    pub(crate) fn flush(&self, deadline: Instant) -> bool {
        let mut wishes = self.lock();
        wishes.flushes_wanted += 1;
        let ticket = wishes.flushes_wanted;
        self.changed.notify_all();
        let left = deadline.saturating_duration_since(Instant::now());
        let waits = |wishes: &mut Wishes| wishes.flushes_done < ticket && wishes.stop.is_none();
        wait_while(&self.changed, wishes, left, waits).flushes_done >= ticket
    }

    /// Waits for a wish, at most `pause`; the deadline of a stop and the flushes wanted so far.
    fn wait(&self, pause: Duration) -> (Option<Instant>, u64) {
        let waits =
            |wishes: &mut Wishes| wishes.stop.is_none() && wishes.flushes_wanted == wishes.flushes_done;
        let wishes = wait_while(&self.changed, self.lock(), pause, waits);
        (wishes.stop, wishes.flushes_wanted)
    }

    /// Is a flush wanted that is not done?
    fn wants_flush(&self) -> bool {
        let wishes = self.lock();
        wishes.flushes_wanted > wishes.flushes_done
    }

    fn flushed(&self, ticket: u64) {
        let mut wishes = self.lock();
        wishes.flushes_done = if planted(Fault::TicketLate) { wishes.flushes_wanted } else { ticket };
        drop(wishes);
        self.changed.notify_all();
    }

    /// A pause is over.
    #[cfg(loom)]
    pub(crate) fn end_pause(&self) {
        self.changed.notify_all();
    }
}

/// Passes until a stop is wished for, then the rest.
fn run<W: Work>(mut work: W, control: &Control) -> W {
    let (cadence, longest) = work.pauses();
    let mut pause = cadence;
    loop {
        let (stop, flush) = control.wait(pause);
        if let Some(deadline) = stop {
            if !planted(Fault::StopUndrained) {
                work.finish(deadline);
            }
            return work;
        }
        let came = work.pass(control);
        let must_flush = control.wants_flush();
        work.hand_on(must_flush);
        if must_flush {
            // What was wanted before the pass; a later flush needs another one.
            control.flushed(flush);
        }
        work.keep_house();
        pause = match came {
            Came::More => Duration::ZERO,
            Came::All => cadence,
            Came::Nothing => (pause * 2).clamp(cadence, longest.max(cadence)),
        };
    }
}

/// The consumer of a process, behind the lock that makes starts and stops take turns.
pub(crate) struct Stage<W, R> {
    /// The consumer while no session runs; there is none before the first.
    idle: Option<W>,
    is_made: bool,
    running: Option<Running<W, R>>,
}

struct Running<W, R> {
    control: Arc<Control>,
    thread: JoinHandle<W>,
    beside: R,
}

impl<W: Work, R> Stage<W, R> {
    /// Before the first session.
    pub(crate) const fn new() -> Self {
        Self { idle: None, is_made: false, running: None }
    }

    /// Does a session run?
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// How to ask the consumer of the session that runs.
    pub(crate) fn control(&self) -> Option<Arc<Control>> {
        self.running.as_ref().map(|running| Arc::clone(&running.control))
    }

    /// What runs beside the consumer, while a session does.
    pub(crate) fn beside(&mut self) -> Option<&mut R> {
        self.running.as_mut().map(|running| &mut running.beside)
    }

    /// The consumer, to prepare it for a session; `make` gives it for the first one. `None` when a panic took it: a
    /// second one would not know which chunks the first has read and given back, and would read them as others' use them.
    pub(crate) fn take_idle(&mut self, make: impl FnOnce() -> W) -> Option<W> {
        if self.is_made {
            return self.idle.take();
        }
        self.is_made = true;
        Some(make())
    }

    /// The consumer of a session that did not come about.
    pub(crate) fn put_back(&mut self, work: W) {
        self.idle = Some(work);
    }

    /// Starts the consumer's thread and then arms the session. If the thread cannot be started, the consumer is idle
    /// again.
    ///
    /// # Errors
    /// That of the operating system, and what would have run beside.
    pub(crate) fn begin(
        &mut self,
        name: &str,
        work: W,
        beside: R,
        arm: impl FnOnce(),
    ) -> Result<(), (io::Error, R)> {
        let control = Arc::new(Control::new());
        let place = Arc::new(Mutex::new(Some(work)));
        let take = |place: &Mutex<Option<W>>| place.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (asked, from) = (Arc::clone(&control), Arc::clone(&place));
        let spawned = spawn(name, move || {
            let work = take(&from).expect("the consumer was put in for this thread");
            run(work, &asked)
        });
        match spawned {
            Ok(thread) => {
                arm();
                self.running = Some(Running { control, thread, beside });
                Ok(())
            }
            Err(error) => {
                self.idle = take(&place);
                Err((error, beside))
            }
        }
    }

    /// Ends the session that runs: `before` while records still count, then `disarm`, then the consumer's last work,
    /// in `patience`. The consumer, idle again, and what ran beside it.
    pub(crate) fn end(
        &mut self,
        patience: Duration,
        before: impl FnOnce(&mut R),
        disarm: impl FnOnce(),
    ) -> Option<(&W, R)> {
        let Running { control, thread, mut beside } = self.running.take()?;
        before(&mut beside);
        disarm();
        control.stop(Instant::now() + patience);
        match thread.join() {
            Ok(work) => Some((self.idle.insert(work), beside)),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}
