//! Who writes: one at a time, whoever needs it most, and always somebody while somebody waits.
//!
//! The writer is a value behind a mutex. A thread that waits for durability and finds it free takes it and writes for
//! everybody: no thread has to be woken first, so a lone append costs a write and a sync and nothing else. Whoever
//! gives the writer back wakes the first that still waits, to take it next. Threads that wait at the same time again
//! and again form a crowd: the last one back writes, so that one sync serves them all.

use crate::stream::Stream;
use crate::sync::{Fault, Mutex, MutexGuard, lock, planted, try_lock};
use crate::waiters::{Ticket, Turn};
use std::ops::{Deref, DerefMut};
use typhon_sync::Deadline;

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

/// What a thread does when it has waited.
enum Next {
    Return(Result<(), NotDurable>),
    /// Look again, whether it is durable or who writes.
    Look,
    Write,
}

/// The stream and what drains it.
#[derive(Debug)]
pub(crate) struct Driven<W> {
    pub(crate) stream: Stream,
    writer: Mutex<W>,
    /// May threads that wait write themselves?
    waiters_write: bool,
    /// Is there a background thread, which writes when asked and tries again by itself when there was no room?
    is_helped: bool,
}

/// The writer, held. Giving it back lets the next one have it.
pub(crate) struct Held<'a, W> {
    guard: Option<MutexGuard<'a, W>>,
    stream: &'a Stream,
    /// There was no room on disk, and the background thread tries again: whoever were called now would find the same,
    /// and call the next.
    is_put_off: bool,
    /// It is used by a destructor while a panic of something else unwinds.
    was_panicking: bool,
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
        if std::thread::panicking() && !self.was_panicking {
            // Half a step was made, and nobody knows which half.
            #[cfg(not(loom))]
            self.stream.fail();
            return;
        }
        self.guard = None;
        self.stream.waiters.wake_served();
        // After the writer is free: whoever registers from now on finds it free by itself.
        if !self.is_put_off && !planted(Fault::NoBaton) {
            self.stream.waiters.call();
        }
        self.stream.writer_is_free();
    }
}

impl<W: Drive> Driven<W> {
    pub(crate) fn new(stream: Stream, writer: W, waiters_write: bool, is_helped: bool) -> Self {
        Self { stream, writer: Mutex::new(writer), waiters_write, is_helped }
    }

    /// The writer, as soon as it is free.
    pub(crate) fn hold(&self) -> Held<'_, W> {
        self.held(lock(&self.writer))
    }

    fn held<'a>(&'a self, guard: MutexGuard<'a, W>) -> Held<'a, W> {
        let was_panicking = std::thread::panicking();
        Held { guard: Some(guard), stream: &self.stream, is_put_off: false, was_panicking }
    }

    /// The writer, if it is free.
    pub(crate) fn try_hold(&self) -> Option<Held<'_, W>> {
        Some(self.held(try_lock(&self.writer)?))
    }

    /// One group, written by this thread if nobody else writes and waiting threads may.
    pub(crate) fn try_step(&self) -> Option<Step> {
        if !self.waiters_write {
            return None;
        }
        let mut writer = self.try_hold()?;
        let step = writer.step(&self.stream);
        writer.is_put_off = step == Step::Full && self.is_helped;
        Some(step)
    }

    /// Everything that is appended so far, written by this thread as soon as nobody else writes. What comes meanwhile is
    /// for others to write, or, where nobody else may, for this thread as well.
    pub(crate) fn write_appended(&self) {
        let end = if self.waiters_write { self.stream.next().position } else { u64::MAX };
        let mut writer = self.hold();
        let last = loop {
            match writer.step(&self.stream) {
                Step::Wrote if self.stream.durable() < end => self.stream.waiters.wake_served(),
                last => break last,
            }
        };
        writer.is_put_off = last == Step::Full && self.is_helped;
    }

    /// Waits until everything up to `position` is durable. `ring` asks the background thread, if there is one, to
    /// write, for when this one may not or could not.
    pub(crate) fn wait_durable(
        &self,
        position: u64,
        deadline: Deadline,
        ring: impl Fn(),
    ) -> Result<(), NotDurable> {
        if position > self.stream.next().position {
            return Err(NotDurable::NotAppended);
        }
        let mut gathers = self.waiters_write;
        loop {
            if let Some(result) = self.settled(position) {
                return result;
            }
            // Lets the others of a crowd come, until this thread was the first of them for long enough.
            if gathers && let Some(ticket) = self.stream.waiters.arrive(position) {
                match self.park(ticket, position, deadline, &ring) {
                    Next::Return(result) => return result,
                    Next::Look => {}
                    Next::Write => gathers = false,
                }
                continue;
            }
            gathers = self.waiters_write;
            if self.try_step() == Some(Step::Wrote) {
                continue;
            }
            let ticket = self.stream.waiters.register(position);
            // Between the attempt and the registration the writer may have become free, and nobody to be woken.
            let step = if planted(Fault::RegisterBlind) { None } else { self.try_step() };
            if step == Some(Step::Wrote) {
                self.stream.waiters.leave(&ticket);
                continue;
            }
            if step == Some(Step::Full) && !self.is_helped {
                let settled = self.settled(position);
                self.leave(&ticket);
                return settled.unwrap_or(Err(NotDurable::Full));
            }
            if !self.waiters_write || step == Some(Step::Full) {
                ring();
            }
            if let Next::Return(result) = self.park(ticket, position, deadline, &ring) {
                return result;
            }
        }
    }

    /// Waits for this thread's turn, or for the deadline.
    fn park(&self, mut ticket: Ticket, position: u64, deadline: Deadline, ring: &impl Fn()) -> Next {
        if let Some(result) = self.settled(position) {
            self.leave(&ticket);
            return Next::Return(result);
        }
        let waiters = &self.stream.waiters;
        let mut turn = ticket.park(deadline);
        if turn == Turn::Expired && waiters.disarm(&mut ticket) {
            turn = ticket.park(deadline);
        }
        if turn == Turn::Served {
            return Next::Look;
        }
        let was_called = waiters.leave(&ticket);
        let next = match self.settled(position) {
            Some(result) => Next::Return(result),
            None if ticket.has_alarm() && turn == Turn::Expired => Next::Write,
            None if turn == Turn::Called => Next::Look,
            None => {
                // Nobody waits for it any more; it is still to be written soon.
                ring();
                Next::Return(Err(NotDurable::Expired))
            }
        };
        if was_called && matches!(next, Next::Return(_)) {
            // Others rely on this thread to write.
            waiters.call();
        }
        next
    }

    /// Gives a place back. If this thread was called meanwhile, to write next, somebody else is.
    fn leave(&self, ticket: &Ticket) {
        if self.stream.waiters.leave(ticket) {
            self.stream.waiters.call();
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

#[cfg(all(test, not(loom)))]
mod tests;
