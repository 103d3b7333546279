//! The one protocol of all locks: a word, pure rules over it, and a wait that no wake escapes.
//!
//! A thread that must wait first says so in the word ([`Request::enlist`]), then spins, then sets the bit that says
//! that somebody blocks ([`PARKED`], or [`WRITER_PARKED`] in the lane of the writers), and blocks while the word (or the
//! lane's wake count) is what it saw. Every step that could let somebody in goes through `Core::step`, which
//! compares what was open before with what is open after, and wakes in the same step as it clears the bit. So:
//!
//! - a waiter set its bit while the lock was closed to it; the step that opens it comes later and sees the bit;
//! - the word has changed since, so that a waiter who has not blocked yet does not block.
//!
//! Writers of a lock with two words block in a lane of their own, one of whom is woken at a time; its bit stays until
//! no writer waits, and each opening wakes one.

use super::LockError;
use crate::atomic::{AtomicU32, Ordering};
use crate::clock::monotonic_ns;
use crate::context::WaitContext;
use crate::fault::{Fault, planted, unless};
use crate::wait::{wake_all, wake_one};
use crate::waiter::AdaptiveWaiter;
use std::time::Duration;

/// Somebody blocks on the lock's own word.
pub(super) const PARKED: u32 = 1 << 31;
/// Somebody has waited since the mark was last reset.
pub(super) const CONTENDED: u32 = 1 << 30;
/// A writer blocks in the writers' lane.
pub(super) const WRITER_PARKED: u32 = 1 << 29;

/// What the rules say about a request.
pub(super) enum Verdict {
    /// It is granted, and this is the word after it.
    Take(u32),
    /// It has to wait.
    Wait,
    /// It cannot be granted by waiting.
    Refuse(LockError),
}

/// What a word is open to: a set of bits, one per sort of request that could be decided now.
pub(super) trait Rules {
    /// Requests that could be granted or refused in this word without waiting.
    fn open(word: u32) -> u8;
    /// Those of [`Rules::open`] that are waited for in the writers' lane.
    const WRITERS: u8 = 0;
}

/// A request for a lock.
pub(super) trait Request {
    /// The writers' lane is where it blocks, if the lock has one.
    const IS_WRITER: bool = false;

    /// What the rules say in this word. `enlisted` once the word counts this request as waiting.
    fn verdict(&self, word: u32, enlisted: bool) -> Verdict;

    /// The word with this request waiting.
    fn enlist(&self, word: u32) -> Result<u32, LockError> {
        Ok(word)
    }

    /// The word without this request waiting.
    fn delist(&self, word: u32) -> u32 {
        word
    }

    /// Called when the request begins to wait; `first` if nobody has waited since the mark was last reset.
    fn began_waiting(&self, first: bool);

    /// Is somebody interested in how long the wait takes?
    fn is_timed(&self) -> bool;
}

/// What an acquisition went through, in one register: as a struct it would be assembled in memory, which takes longer
/// than the lock. The word after it in the low half; in the high half 0 if it did not wait, else one more than how long.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Acquired(u64);

impl Acquired {
    #[inline(always)]
    fn at_once(word: u32) -> Self {
        Self(u64::from(word))
    }

    fn after(word: u32, elapsed_us: u16) -> Self {
        Self(u64::from(word) | (u64::from(elapsed_us) + 1) << 32)
    }

    /// The word after it.
    pub(super) fn word(self) -> u32 {
        self.0 as u32
    }

    /// It had to wait.
    pub(super) fn had_to_wait(self) -> bool {
        self.0 >> 32 != 0
    }

    /// How long it waited; 0 if it did not or nobody asked, at most 65,535.
    pub(super) fn elapsed_us(self) -> u16 {
        (self.0 >> 32).saturating_sub(1) as u16
    }
}

/// A lock's words, seen through its rules.
pub(super) struct Core<'a, R> {
    state: &'a AtomicU32,
    /// Counts the wakes of the writers' lane, and is what they block on.
    writer_wakes: Option<&'a AtomicU32>,
    rules: std::marker::PhantomData<R>,
}

impl<'a, R: Rules> Core<'a, R> {
    #[inline(always)]
    pub(super) fn new(state: &'a AtomicU32, writer_wakes: Option<&'a AtomicU32>) -> Self {
        Self { state, writer_wakes, rules: std::marker::PhantomData }
    }

    /// Acquires what is requested, or fails and has changed nothing. Inlined, so that the result stays in registers.
    #[inline(always)]
    pub(super) fn acquire<Q: Request>(
        &self,
        request: &Q,
        context: &WaitContext<'_>,
    ) -> Result<Acquired, LockError> {
        let mut word = self.state.load(Ordering::Relaxed);
        loop {
            match request.verdict(word, false) {
                Verdict::Take(next) => match self.take(word, next) {
                    Ok(()) => return Ok(Acquired::at_once(next)),
                    Err(now) => word = now,
                },
                Verdict::Wait => return self.acquire_slowly(request, context),
                Verdict::Refuse(error) => return Err(error),
            }
        }
    }

    /// To let a waiter in may let in those who waited behind it, so that this is a step like any other.
    #[inline(always)]
    fn take(&self, word: u32, next: u32) -> Result<(), u32> {
        self.step(word, next, unless(Fault::TakeRelaxed, Ordering::Acquire), planted(Fault::TakePlain))
    }

    /// As [`Core::take`], for what is released or left.
    #[inline(always)]
    fn give(&self, word: u32, next: u32) -> Result<(), u32> {
        self.step(word, next, unless(Fault::ReleaseRelaxed, Ordering::Release), planted(Fault::ReleasePlain))
    }

    #[cold]
    #[inline(never)]
    fn acquire_slowly<Q: Request>(
        &self,
        request: &Q,
        context: &WaitContext<'_>,
    ) -> Result<Acquired, LockError> {
        if let Some(stop) = context.should_stop() {
            return Err(LockError::stopped(stop, Duration::ZERO));
        }
        let watch = Stopwatch::start(request.is_timed() || !context.is_unbounded());
        if let Some(word) = self.enlist(request)? {
            return Ok(Acquired::at_once(word));
        }
        let mut waiter = AdaptiveWaiter::new();
        loop {
            let word = self.state.load(Ordering::Relaxed);
            let error = match request.verdict(word, true) {
                Verdict::Take(next) => match self.take(word, request.delist(next)) {
                    Ok(()) => return Ok(watch.acquired(request.delist(next))),
                    Err(_) => continue,
                },
                Verdict::Refuse(error) => error,
                Verdict::Wait => match context.should_stop() {
                    Some(stop) => LockError::stopped(stop, watch.elapsed()),
                    None => {
                        if !waiter.pause() {
                            self.block(request, &mut waiter, context);
                        }
                        continue;
                    }
                },
            };
            if self.give_up(request, word) {
                return Err(error);
            }
        }
    }

    /// Makes the request one of those that wait; or acquires it after all, and then there is a word.
    fn enlist<Q: Request>(&self, request: &Q) -> Result<Option<u32>, LockError> {
        let mut word = self.state.load(Ordering::Relaxed);
        loop {
            let changed = match request.verdict(word, false) {
                Verdict::Take(next) => self.take(word, next).map(|()| Some(next)),
                Verdict::Refuse(error) => return Err(error),
                Verdict::Wait => {
                    let next = request.enlist(word)? | CONTENDED;
                    self.exchange(word, next).map(|()| None)
                }
            };
            match changed {
                Ok(None) => {
                    request.began_waiting(word & CONTENDED == 0);
                    return Ok(None);
                }
                Ok(taken) => return Ok(taken),
                Err(now) => word = now,
            }
        }
    }

    /// A step that lets nobody in and nobody out.
    fn exchange(&self, word: u32, next: u32) -> Result<(), u32> {
        self.state.compare_exchange(word, next, Ordering::Relaxed, Ordering::Relaxed).map(drop)
    }

    /// Leaves the list of those who wait; false if the word has changed, since it may have become open to the request:
    /// whoever was woken and leaves then would take the wake of another.
    fn give_up<Q: Request>(&self, request: &Q, word: u32) -> bool {
        let next = if planted(Fault::GiveUpCounted) { word } else { request.delist(word) };
        if planted(Fault::GiveUpSilent) {
            return self.exchange(word, next).is_ok();
        }
        self.give(word, next).is_ok()
    }

    /// Blocks, unless the word has changed meanwhile.
    fn block<Q: Request>(&self, request: &Q, waiter: &mut AdaptiveWaiter, context: &WaitContext<'_>) {
        let lane = self.writer_wakes.filter(|_| Q::IS_WRITER);
        let mut wakes = lane.map_or(0, |lane| lane.load(Ordering::Acquire));
        let word = self.state.load(Ordering::Relaxed);
        if !matches!(request.verdict(word, true), Verdict::Wait) {
            return;
        }
        let bit = if lane.is_some() { WRITER_PARKED } else { PARKED };
        let announced = if planted(Fault::BlockUnannounced) { word } else { word | bit };
        if announced != word && self.exchange(word, announced).is_err() {
            return;
        }
        if planted(Fault::WakeCountLate) {
            wakes = lane.map_or(0, |lane| lane.load(Ordering::Acquire));
        }
        let _ = match lane {
            Some(lane) => waiter.block(lane, wakes, context),
            None => waiter.block(self.state, announced, context),
        };
    }

    /// Releases what is held, or some of it: `after` says what becomes of a word.
    #[inline(always)]
    pub(super) fn release(&self, after: impl Fn(u32) -> Result<u32, LockError>) -> Result<u32, LockError> {
        let mut word = self.state.load(Ordering::Relaxed);
        loop {
            let next = after(word)?;
            match self.give(word, next) {
                Ok(()) => return Ok(next),
                Err(now) => word = now,
            }
        }
    }

    /// One step that may let others in, and the wakes that belong to it.
    #[inline(always)]
    fn step(&self, before: u32, after: u32, order: Ordering, is_plain: bool) -> Result<(), u32> {
        if after & (PARKED | WRITER_PARKED) == 0 {
            return self.change(before, after, order, is_plain);
        }
        self.step_and_wake(before, after, order, is_plain)
    }

    #[inline(always)]
    fn change(&self, before: u32, after: u32, order: Ordering, is_plain: bool) -> Result<(), u32> {
        if is_plain {
            self.state.store(after, Ordering::Release);
            return Ok(());
        }
        self.state.compare_exchange_weak(before, after, order, Ordering::Relaxed).map(drop)
    }

    #[cold]
    #[inline(never)]
    fn step_and_wake(&self, before: u32, after: u32, order: Ordering, is_plain: bool) -> Result<(), u32> {
        let opened = R::open(after) & !R::open(before);
        let lane = self.writer_wakes.filter(|_| opened & R::WRITERS != 0 && after & WRITER_PARKED != 0);
        if let Some(lane) = lane {
            self.change(before, after, order, is_plain)?;
            if !planted(Fault::WakeCountStill) {
                lane.fetch_add(1, Ordering::Release);
            }
            wake_one(lane);
        } else if opened != 0 && after & PARKED != 0 {
            self.change(before, after & !PARKED, order, is_plain)?;
            if planted(Fault::WakeOneOfMany) { wake_one(self.state) } else { wake_all(self.state) }
        } else {
            self.change(before, after, order, is_plain)?;
        }
        Ok(())
    }

    /// The word at this moment; who it says has left is seen to have left.
    pub(super) fn word(&self) -> u32 {
        self.state.load(Ordering::Acquire)
    }

    /// Has anybody waited since the mark was last reset?
    pub(super) fn was_contended(&self) -> bool {
        self.state.load(Ordering::Relaxed) & CONTENDED != 0
    }

    /// Resets the mark of [`Core::was_contended`].
    pub(super) fn reset_contended(&self) {
        self.state.fetch_and(!CONTENDED, Ordering::Relaxed);
    }
}

struct Stopwatch(Option<i64>);

impl Stopwatch {
    fn start(is_wanted: bool) -> Self {
        Self(is_wanted.then(monotonic_ns))
    }

    fn elapsed(&self) -> Duration {
        let ns = self.0.map_or(0, |start_ns| monotonic_ns().saturating_sub(start_ns));
        Duration::from_nanos(ns.max(0).unsigned_abs())
    }

    fn acquired(&self, word: u32) -> Acquired {
        let elapsed_us = u16::try_from(self.elapsed().as_micros()).unwrap_or(u16::MAX);
        Acquired::after(word, elapsed_us)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::clock::READS;
    use crate::lock::{AccessControl, LockError};
    use crate::{Deadline, WaitContext};
    use std::time::Duration;

    /// How often the clock was read while `work` ran.
    fn reads(work: impl FnOnce()) -> u32 {
        let before = READS.get();
        work();
        READS.get() - before
    }

    #[test]
    fn b2_who_does_not_wait_or_waits_for_ever_reads_no_clock() {
        let lock = AccessControl::new();
        let in_an_hour = WaitContext::until(Deadline::from_timeout(Duration::from_secs(3_600)));
        let uncontended = reads(|| {
            for context in [WaitContext::INFINITE, WaitContext::NO_WAIT, in_an_hour] {
                assert!(lock.shared(&context).is_ok());
                assert!(lock.exclusive(&context).is_ok());
            }
        });
        let (alone, timed_out) = (lock.try_exclusive(), LockError::TimedOut { waited: Duration::ZERO });
        let (mut attempt, mut waiting, mut bounded) = (0, 0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                attempt = reads(|| assert_eq!(lock.try_shared().err(), Some(timed_out)));
                waiting = reads(|| assert!(lock.shared(&WaitContext::INFINITE).is_ok()));
            });
            while !lock.was_contended() {
                std::thread::yield_now();
            }
            drop(alone);
        });
        let alone = lock.try_exclusive();
        assert!(alone.is_ok());
        let soon = WaitContext::with_timeout(Duration::from_micros(1));
        std::thread::scope(|scope| {
            scope.spawn(|| bounded = reads(|| assert!(lock.shared(&soon).is_err())));
        });
        drop(alone);
        assert_eq!((uncontended, attempt, waiting), (0, 0, 0));
        assert!(bounded > 0, "the count would see it");
    }
}
