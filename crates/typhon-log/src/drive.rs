//! Who writes: one at a time, whoever needs it most, and always somebody while somebody waits.
//!
//! The writer is a value behind a mutex. A thread that waits for durability and finds it free takes it and writes for
//! everybody: no thread has to be woken first, so a lone append costs a write and a sync and nothing else. Whoever
//! gives the writer back wakes the first that still waits, to take it next.

use crate::stream::Stream;
use crate::sync::{Fault, Mutex, MutexGuard, lock, planted, try_lock};
use std::ops::{Deref, DerefMut};
use typhon_sync::Deadline;
use typhon_sync::wait::WaitEnd;

/// What drains the stream. Failures go to [`Stream::fail`].
pub(crate) trait Drive {
    /// Makes durable what is published, as one group; waits for the first frame if it is claimed and not published.
    fn step(&mut self, stream: &Stream) -> Step;
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A group is durable.
    Wrote,
    /// There was nothing to do.
    Idle,
    /// There is no room on disk; the frames wait.
    Full,
    /// The stream has failed.
    Failed,
}

/// Why a wait for durability ended without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotDurable {
    Failed,
    Expired,
    /// The position lies beyond everything appended.
    NotAppended,
    /// There is no room on disk, and nobody tries again by himself.
    Full,
}

/// The stream and what drains it.
#[derive(Debug)]
pub(crate) struct Driven<W> {
    pub(crate) stream: Stream,
    writer: Mutex<W>,
    /// May threads that wait write themselves?
    waiters_write: bool,
}

/// The writer, held. Giving it back lets the next one have it.
pub(crate) struct Held<'a, W> {
    guard: Option<MutexGuard<'a, W>>,
    stream: &'a Stream,
    /// Nothing was done: whoever waits for room has nothing to look for.
    was_idle: bool,
}

impl<W> Deref for Held<'_, W> {
    type Target = W;

    fn deref(&self) -> &W {
        self.guard.as_ref().expect("given back only by drop")
    }
}

impl<W> DerefMut for Held<'_, W> {
    fn deref_mut(&mut self) -> &mut W {
        self.guard.as_mut().expect("given back only by drop")
    }
}

impl<W> Drop for Held<'_, W> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Half a step was made, and nobody knows which half.
            #[cfg(not(loom))]
            self.stream.fail();
            return;
        }
        self.guard = None;
        // After the writer is free: whoever registers from now on finds it free by itself.
        if !planted(Fault::NoBaton) {
            self.stream.waiters.wake_first();
        }
        if !self.was_idle {
            self.stream.made_room();
        }
    }
}

impl<W: Drive> Driven<W> {
    pub(crate) fn new(stream: Stream, writer: W, waiters_write: bool) -> Self {
        Self { stream, writer: Mutex::new(writer), waiters_write }
    }

    /// The writer, as soon as it is free.
    pub(crate) fn hold(&self) -> Held<'_, W> {
        Held { guard: Some(lock(&self.writer)), stream: &self.stream, was_idle: false }
    }

    /// The writer, if it is free.
    pub(crate) fn try_hold(&self) -> Option<Held<'_, W>> {
        let guard = try_lock(&self.writer)?;
        Some(Held { guard: Some(guard), stream: &self.stream, was_idle: false })
    }

    /// One group, written by this thread if nobody else writes and waiting threads may.
    pub(crate) fn try_step(&self) -> Option<Step> {
        if !self.waiters_write {
            return None;
        }
        let mut writer = self.try_hold()?;
        let step = writer.step(&self.stream);
        writer.was_idle = step == Step::Idle;
        Some(step)
    }

    /// Waits until everything up to `position` is durable. `ring` asks the background thread to write, for when this
    /// one may not or could not; `false` if there is none.
    pub(crate) fn wait_durable(
        &self,
        position: u64,
        deadline: Deadline,
        ring: impl Fn() -> bool,
    ) -> Result<(), NotDurable> {
        if position > self.stream.next().position {
            return Err(NotDurable::NotAppended);
        }
        loop {
            if let Some(result) = self.settled(position) {
                return result;
            }
            if self.try_step() == Some(Step::Wrote) {
                continue;
            }
            let ticket = self.stream.waiters.register(position);
            // Between the attempt and the registration the writer may have become free, and nobody to be woken.
            let step = if planted(Fault::RegisterBlind) { None } else { self.try_step() };
            if step == Some(Step::Wrote) {
                self.stream.waiters.cancel(&ticket);
                continue;
            }
            if let Some(result) = self.settled(position) {
                self.stream.waiters.cancel(&ticket);
                return result;
            }
            let is_helped = ring();
            if step == Some(Step::Full) && !is_helped {
                self.stream.waiters.cancel(&ticket);
                return Err(NotDurable::Full);
            }
            if ticket.park(deadline) == WaitEnd::Expired {
                let was_woken = !self.stream.waiters.cancel(&ticket);
                let settled = self.settled(position);
                if was_woken && settled.is_none() {
                    // The call to write next must not end here.
                    self.stream.waiters.wake_first();
                }
                return settled.unwrap_or(Err(NotDurable::Expired));
            }
        }
    }

    fn settled(&self, position: u64) -> Option<Result<(), NotDurable>> {
        if self.stream.durable() >= position {
            Some(Ok(()))
        } else if self.stream.failed() {
            Some(Err(NotDurable::Failed))
        } else {
            None
        }
    }
}
