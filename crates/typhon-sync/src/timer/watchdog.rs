//! Deadlines that cancel work which does not look at the clock itself.
#![forbid(unsafe_code)]

use super::{Precision, Timer, TimerError, TimerService};
use crate::atomic::{Mutex, lock};
use crate::{CancelToken, Deadline};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How often deadlines are looked at.
const PERIOD: Duration = Duration::from_millis(5);

/// Cancels tokens whose deadlines have passed, within 5 ms. It has a timer only while it watches something; what is still
/// watched when it is dropped is cancelled.
pub struct DeadlineWatchdog {
    timers: Arc<TimerService>,
    watched: Arc<Mutex<Watched>>,
}

#[derive(Default)]
struct Watched {
    /// By deadline, then by number.
    tokens: BTreeMap<(Deadline, u64), CancelToken>,
    last_number: u64,
    timer: Option<Timer>,
}

impl fmt::Debug for DeadlineWatchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineWatchdog").field("watched", &self.watched()).finish_non_exhaustive()
    }
}

impl DeadlineWatchdog {
    /// A watchdog that uses these timers; [`super::shared`] as a rule.
    pub fn new(timers: Arc<TimerService>) -> Self {
        Self { timers, watched: Arc::default() }
    }

    /// A token that is cancelled when the deadline has passed. One that is past already gives a cancelled token, an
    /// infinite one a token that is never cancelled; neither is watched.
    ///
    /// # Errors
    /// [`TimerError::NoThread`] if the shared timer has no thread yet and gets none.
    pub fn watch(&self, deadline: Deadline) -> Result<WatchedDeadline, TimerError> {
        let token = CancelToken::new();
        let mut entry = None;
        if deadline.is_expired_at(self.timers.clock().now_ns()) {
            token.cancel();
        } else if !deadline.is_infinite() {
            entry = Some(self.add(deadline, token.clone())?);
        }
        Ok(WatchedDeadline { token, watched: Arc::clone(&self.watched), entry })
    }

    /// Number of deadlines that are watched.
    pub fn watched(&self) -> usize {
        lock(&self.watched).tokens.len()
    }

    fn add(&self, deadline: Deadline, token: CancelToken) -> Result<(Deadline, u64), TimerError> {
        let mut watched = lock(&self.watched);
        if watched.timer.is_none() {
            let polled = Arc::downgrade(&self.watched);
            let clock = Arc::clone(self.timers.clock());
            let poll = move || {
                if let Some(watched) = polled.upgrade() {
                    // The timer that has nothing left to do is dropped without the lock.
                    let idle = lock(&watched).poll(clock.now_ns());
                    drop(idle);
                }
            };
            watched.timer = Some(self.timers.every("DeadlineWatchdog", PERIOD, Precision::Coarse, poll)?);
        }
        watched.last_number += 1;
        let entry = (deadline, watched.last_number);
        watched.tokens.insert(entry, token);
        Ok(entry)
    }
}

impl Watched {
    /// Cancels what is due; returns the timer if nothing is left for it.
    fn poll(&mut self, now_ns: i64) -> Option<Timer> {
        while let Some(first) = self.tokens.first_entry() {
            if !first.key().0.is_expired_at(now_ns) {
                break;
            }
            first.remove().cancel();
        }
        if self.tokens.is_empty() { self.timer.take() } else { None }
    }
}

impl Drop for DeadlineWatchdog {
    fn drop(&mut self) {
        let mut watched = lock(&self.watched);
        let timer = watched.timer.take();
        let tokens = std::mem::take(&mut watched.tokens);
        drop(watched);
        drop(timer);
        tokens.values().for_each(CancelToken::cancel);
    }
}

/// A token that a watchdog cancels at its deadline; no longer watched once this is dropped.
pub struct WatchedDeadline {
    token: CancelToken,
    watched: Arc<Mutex<Watched>>,
    entry: Option<(Deadline, u64)>,
}

impl fmt::Debug for WatchedDeadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedDeadline").field("token", &self.token).finish_non_exhaustive()
    }
}

impl WatchedDeadline {
    /// The token.
    pub fn token(&self) -> &CancelToken {
        &self.token
    }
}

impl Drop for WatchedDeadline {
    fn drop(&mut self) {
        if let Some(entry) = &self.entry {
            lock(&self.watched).tokens.remove(entry);
        }
    }
}
